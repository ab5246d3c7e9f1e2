"""Sets of labels from held-out predictions: thresholds, their evaluation, and labels of sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Mask, Matrix, NDArray, Vector
from equipoise.decisions.abstained import labels_or_none
from equipoise.decisions.conformal import (
    Calibration,
    CoverageTask,
    calibration_rows,
    equal_rows_of_weights,
    in_cross_sets,
    in_sets,
    thresholds,
)
from equipoise.decisions.held_out import HeldOut
from equipoise.decisions.set_goals import abstentions
from equipoise.decisions.set_summary import SetSummary, evaluated_sets, sets_without_fold
from equipoise.weights.by_class import ByClass


@dataclass(frozen=True, eq=False)
class CalibratedSets:
    """The rows that sets were calibrated on, thresholds of probabilities, and the evaluation."""

    rows: Calibration
    thresholds: Vector
    summary: SetSummary


def calibrated_sets(
    held_out: HeldOut, task: CoverageTask, classes: NDArray[Any], seed: int, *, crossed: bool
) -> CalibratedSets:
    """Sets calibrated on held-out rows; ``crossed`` where each fold has a model of its own.

    Examples
    --------
    >>> from equipoise.goals import Predictions
    >>> scores = np.linspace(0.05, 0.95, 19)
    >>> table = np.column_stack([scores, 1 - scores])
    >>> rows = Predictions(table, np.zeros(19, int), np.ones(19))
    >>> task = CoverageTask(np.array([0.1, 0.1]), np.array([0.5, 0.5]))
    >>> held_out = HeldOut(rows, np.arange(19) % 2)
    >>> calibrated_sets(held_out, task, np.array(["a", "b"]), 0, crossed=False).thresholds.round(3)
    array([ 0.1, -inf])
    """
    predictions = held_out.predictions
    kept = equal_rows_of_weights(predictions.sample_weight, predictions.labels, seed)
    predictions, fold = predictions.take(np.flatnonzero(kept)), held_out.fold[kept]
    table, labels = predictions.probabilities, predictions.labels
    rows = calibration_rows(table, labels, fold if crossed else None)
    lowest = thresholds(rows, task)
    sets = sets_without_fold(table, labels, fold, task)
    summary = evaluated_sets(sets, labels, classes, task.prior, fold, lowest)
    return CalibratedSets(rows, lowest, summary)


def named_thresholds(
    task: CoverageTask, lowest: Vector, classes: NDArray[Any]
) -> dict[str, ByClass]:
    """What an estimator reports of its thresholds, by the names of its attributes."""
    values = {"thresholds_": lowest, "levels_": 1 - task.errors, "masses_": task.masses}
    return {name: ByClass(each, classes) for name, each in values.items() if each is not None}


def sets_of(tables: Sequence[Matrix], rows: Calibration, task: CoverageTask) -> Mask:
    """Which classes are in the set of each row, from the tables of one model or of several."""
    if len(tables) > 1:
        return in_cross_sets(tables, rows, task)
    return in_sets(tables[0], thresholds(rows, task))


def listed(sets: Mask, weighted: Matrix, classes: NDArray[Any]) -> NDArray[Any]:
    """The class names of each set, those of the largest weighted probability first.

    Examples
    --------
    >>> names = listed(np.array([[True, True]]), np.array([[0.3, 0.6]]), np.array(["a", "b"]))
    >>> names[0]
    ['b', 'a']
    """
    names = np.empty(len(sets), dtype=object)
    for row, in_set in enumerate(sets):
        # Of thousands of classes a set holds few, which alone are sorted.
        members = np.flatnonzero(in_set)
        ranked = np.argsort(-weighted[row, members], kind="stable")
        names[row] = classes[members[ranked]].tolist()
    return names


def labels_of_sets(
    sets: Mask, weighted: Matrix, classes: NDArray[Any], abstain: Any
) -> NDArray[Any]:
    """The likeliest class of each set, of all classes for an empty set; None if abstained.

    Examples
    --------
    >>> sets, weighted = np.array([[True, True], [False, True]]), np.array([[0.3, 0.6]] * 2)
    >>> labels_of_sets(sets, weighted, np.array(["a", "b"]), "several").tolist()
    [None, 'b']
    """
    size = sets.sum(axis=1)
    best = np.argmax(np.where(sets | (size == 0)[:, None], weighted, -1.0), axis=1)
    return labels_or_none(classes, best, abstentions(size, abstain))
