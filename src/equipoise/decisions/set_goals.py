"""What prediction sets are for, which rows they are calibrated on, and when they abstain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Mask, NDArray, Vector
from equipoise.decisions.conformal import CoverageTask
from equipoise.decisions.coverage_levels import levels_within
from equipoise.decisions.folds import Folds, LabelledRows, deal, set_aside
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import as_uncertainty
from equipoise.validation.numbers import check_interval, check_number, check_numbers

ABSTENTIONS = ("empty", "several", "empty or several")


def coverage_task(
    goal: Any,
    coverage: Any,
    confidence: Any,
    prior: Vector,
    classes: NDArray[Any],
    *,
    estimated: bool = False,
) -> CoverageTask:
    """What is to be covered at these class frequencies, which may be those of the rows alone."""
    error = 1 - check_number(coverage, "coverage", "(0, 1)")
    tail = None
    if confidence is not None:
        tail = 1 - check_number(confidence, "confidence", "(0, 1)")
    unseen = prior == 0 if estimated and np.any(prior == 0) else None
    if isinstance(goal, Mapping):
        levels = check_numbers(goal, classes, name="goal", default=1 - error)
        check_interval(levels, classes, "goal", "[0, 1)")
        return CoverageTask(1 - levels, prior, tail=tail, unseen=unseen)
    recipe = as_uncertainty("balanced" if goal is None else goal, or_else="{class: level}")
    masses = recipe.resolve(prior, classes)
    errors = np.full(len(prior), error)
    task = CoverageTask(errors, prior, error=error, tail=tail, unseen=unseen)
    if masses.is_point:
        return replace(task, masses=np.asarray(masses.project(prior)))
    if masses.is_simplex:
        return task
    return replace(task, errors=levels_within(masses, error), robust=masses)


def share_to_calibrate(cv: Any, confidence: Any) -> float | None:
    """The share of the rows to calibrate on; None where folds have models of their own.

    Examples
    --------
    >>> share_to_calibrate(0.3, None), share_to_calibrate(5, None), share_to_calibrate(5, 0.9)
    (0.3, None, 0.2)
    """
    if isinstance(cv, Integral) and int(cv) > 1:
        return None if confidence is None else 1 / int(cv)
    if not isinstance(cv, Real):
        return None
    if isinstance(cv, bool) or not 0 < float(cv) < 1:
        raise InvalidParameterError(
            "cv must be a share of the rows in (0, 1), a number of folds of at least 2, a splitter "
            f"or an iterable of splits, got {cv!r}."
        )
    return float(cv)


def held_out_share(rows: LabelledRows, share: float, seed: int) -> Folds:
    """A share of the rows of every class to calibrate on; a class of a single row trains."""
    labels = rows.labels[rows.used]
    aside = set_aside(np.arange(len(labels)), labels, share, seed)
    if np.count_nonzero(np.bincount(labels)) < 2:
        classes = rows.classes.tolist()
        raise InvalidInputError(f"y must hold at least two classes, got one: {classes}.")
    if not aside.any():
        raise InvalidInputError(
            f"y must hold at least two rows of some class, one to train and one to calibrate on, "
            f"got {len(labels)} rows of {len(rows.classes)} classes."
        )
    parts = [(rows.used[~aside], rows.used[aside])]
    return Folds(parts, np.zeros(len(rows.classes), dtype=bool), deal(labels[aside], seed))


def rule_of(task: CoverageTask, lowest: Vector) -> Vector:
    """Decision weights by which the label that is in the set the longest is predicted."""
    if task.masses is not None:
        return task.decision_weights
    usual = (lowest > 0) & (lowest < np.inf)
    weights = np.divide(1.0, lowest, out=np.zeros_like(lowest), where=usual)
    weights[lowest <= 0] = weights.max() if usual.any() else 1.0
    return np.asarray(weights) if weights.any() else np.ones_like(weights)


def check_abstention(abstain: Any) -> Any:
    """When no label is predicted: a word, a largest size of sets, or None."""
    whole = isinstance(abstain, Integral) and not isinstance(abstain, bool)
    word = isinstance(abstain, str) and abstain in ABSTENTIONS
    if abstain is None or (whole and abstain >= 1) or word:
        return abstain
    words = ", ".join(map(repr, ABSTENTIONS))
    raise InvalidParameterError(
        f"abstain must be None, one of {words}, or the largest size of a set, got {abstain!r}."
    )


def abstentions(sizes: Indices, abstain: Any) -> Mask | None:
    """Rows for which no label is predicted; None where there is always one.

    Examples
    --------
    >>> abstentions(np.array([0, 1, 2, 3]), 2)
    array([ True, False, False,  True])
    """
    if check_abstention(abstain) is None:
        return None
    if not isinstance(abstain, str):
        return np.asarray((sizes == 0) | (sizes > abstain))
    several, empty = "several" in abstain, "empty" in abstain
    return np.asarray((several & (sizes > 1)) | (empty & (sizes == 0)))
