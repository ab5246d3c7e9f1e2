"""Models in files that cannot execute code when they are loaded, with the facts of their training.

A model file is a zip archive in the format of skops with one member more, ``equipoise.json``,
which holds the training facts and can be read without the model. Our classes stand in it under
their public names, so that a file of the library can move and no model breaks.
"""

from equipoise.models.saved_model import SavedModel, load_model, save_model
from equipoise.models.training_facts import TrainingFacts

__all__ = ["SavedModel", "TrainingFacts", "load_model", "save_model"]
