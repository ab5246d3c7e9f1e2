"""Models in files that cannot execute code when they are loaded, with the facts of their training.

A model file is a zip archive: ``equipoise.json`` holds the training facts and can be read without
the model, ``model.json`` what a user could see of the model, and the other members its numbers.
Estimators, sets and goals are stored by their public names, so that moving a source file of the
library breaks no model; :mod:`equipoise.persistence.document` lists them. ``SECURITY.md`` states
what is guaranteed for files of unknown origin.
"""

from equipoise.persistence.saved_model import SavedModel, load_model, save_model
from equipoise.persistence.training_facts import TrainingFacts, facts_for

__all__ = ["SavedModel", "TrainingFacts", "facts_for", "load_model", "save_model"]
