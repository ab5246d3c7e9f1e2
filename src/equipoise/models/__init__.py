"""Models in files that cannot execute code when they are loaded, with the facts of their training.

A model file is a zip archive in the format of skops with one member more, ``equipoise.json``,
which holds the training facts and can be read without the model.
"""

from equipoise.files import atomic_write
from equipoise.models.facts import HeldOut, TrainingFacts, versions
from equipoise.models.models import SavedModel, load_model, save_model

__all__ = [
    "HeldOut",
    "SavedModel",
    "TrainingFacts",
    "atomic_write",
    "load_model",
    "save_model",
    "versions",
]
