"""Decisions in six stages, functions between frozen values:

:func:`split` -> :func:`predict` -> :func:`tune` -> :func:`evaluate` -> :func:`select` ->
:func:`refit`. :func:`tune_weights` takes probabilities of any model through the middle ones.
"""

from equipoise.decisions.evaluated import Evaluated, evaluate, evaluate_labels
from equipoise.decisions.folds import Folds, split
from equipoise.decisions.held_out import FitCache, HeldOut, Training, predict, predict_fitted, refit
from equipoise.decisions.select import Choice, select
from equipoise.decisions.summary import DecisionSummary
from equipoise.decisions.trained import LabelledRows
from equipoise.decisions.tune import Tuned, tune
from equipoise.decisions.tuned_weights import TunedWeights, tune_weights
from equipoise.goals.labelled_predictions import Predictions, decide

__all__ = [
    "Choice",
    "DecisionSummary",
    "Evaluated",
    "FitCache",
    "Folds",
    "HeldOut",
    "LabelledRows",
    "Predictions",
    "Training",
    "Tuned",
    "TunedWeights",
    "decide",
    "evaluate",
    "evaluate_labels",
    "predict",
    "predict_fitted",
    "refit",
    "select",
    "split",
    "tune",
    "tune_weights",
]
