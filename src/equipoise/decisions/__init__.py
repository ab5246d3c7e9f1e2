"""Decisions in six stages, functions between frozen values:

:func:`split` -> :func:`predict` -> :func:`tune` -> :func:`evaluate` -> :func:`select` ->
:func:`refit`. :func:`tune_weights` takes probabilities of any model through the middle ones.
"""

from equipoise.decisions.evaluated import Evaluated, evaluate
from equipoise.decisions.folds import Folds, LabelledRows, RareClasses, Splitting, split
from equipoise.decisions.held_out import Fits, HeldOut, Training, predict, predict_fitted, refit
from equipoise.decisions.select import Choice, select
from equipoise.decisions.summary import DecisionSummary
from equipoise.decisions.tune import Task, Tuned, tune
from equipoise.decisions.tuned_weights import TunedWeights, tune_weights
from equipoise.goals.labelled_predictions import Predictions, decide

__all__ = [
    "Choice",
    "DecisionSummary",
    "Evaluated",
    "Fits",
    "Folds",
    "HeldOut",
    "LabelledRows",
    "Predictions",
    "RareClasses",
    "Splitting",
    "Task",
    "Training",
    "Tuned",
    "TunedWeights",
    "decide",
    "evaluate",
    "predict",
    "predict_fitted",
    "refit",
    "select",
    "split",
    "tune",
    "tune_weights",
]
