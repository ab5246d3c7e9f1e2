"""Decision weights for classifiers with probabilities: the search for them, and what they do.

:func:`~equipoise.decisions.search.tune` finds the weights that a criterion asks for; weights tuned
on folds are judged on rows left out.
"""

from equipoise.decisions.left_out import (
    FOLDS_OF_A_CLASS,
    Predictions,
    class_probabilities,
    deal,
    decide,
)
from equipoise.decisions.probabilities import tune_weights
from equipoise.decisions.search import tune, tune_resampled
from equipoise.decisions.tuning import TunedWeights, shrunk, tune_on_folds, tune_one_model

__all__ = [
    "FOLDS_OF_A_CLASS",
    "Predictions",
    "TunedWeights",
    "class_probabilities",
    "deal",
    "decide",
    "shrunk",
    "tune",
    "tune_on_folds",
    "tune_one_model",
    "tune_resampled",
    "tune_weights",
]
