"""Decision weights for held-out rows, and those that were tuned without each fold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.arrays import Mask, Matrix, NDArray, Vector
from equipoise.decisions.held_out import HeldOut
from equipoise.exceptions import UnattainableError
from equipoise.goals import Criterion, Goal, KnownRule
from equipoise.goals.labelled_predictions import Predictions

# POOLING: strength of the shrinkage of decision weights towards the goal's centre, in rows of a
# class times the goal's value for a factor of e: decided on splits 0 and 1 of 96 tables, where 0.5
# and 2 differ by half a point at most, and confirmed on 2 and 3 (docs/studies/tuner.txt).
POOLING = 2.0


@dataclass(frozen=True, eq=False)
class Task:
    """What decisions are tuned for.

    ``prior`` are the class frequencies of the population. Classes of too ``few`` rows are not
    tuned: they are never predicted if ``drop``, and otherwise have the weight 1.
    """

    goal: Goal
    classes: NDArray[Any]
    prior: Vector
    few: Mask
    drop: bool = False
    pooling: float = POOLING
    seed: int = 0

    @cached_property
    def criterion(self) -> Criterion:
        """The goal among the classes that have rows enough; of all where the rule is known."""
        if self.goal.is_known:
            return self.goal.resolve(self.prior, self.classes)
        return self.goal.resolve_some(self.prior, self.classes, self.few)


@dataclass(frozen=True, eq=False)
class Tuned:
    """A decision rule, on the scale of the predictions that it was tuned on.

    ``by_fold`` are the rules that were tuned without each fold, of shape (n_folds, n_weights);
    empty where fewer rows cannot show what all of them do.
    """

    rule: Vector | Matrix
    by_fold: Matrix
    pooling: float


def tune(held_out: HeldOut, task: Task) -> Tuned:
    """The decision weights that are the best for a goal, and those without each fold.

    Weights have a mean of one over the class frequencies of the population.
    """
    rows, fold = held_out.predictions, held_out.fold
    n_folds = int(fold.max()) + 1
    if task.goal.is_known:
        return known_rule(task, n_folds)
    everything = np.ones(len(fold), dtype=bool)
    rules = rules_for(rows, [everything], task)
    # Where all rows show what is promised, and fewer do not, nothing is evaluated.
    with suppress(UnattainableError):
        rules += rules_for(rows, [fold != each for each in range(n_folds)], task)
    return Tuned(rules[0], np.array(rules[1:]), task.pooling)


def rules_for(rows: Predictions, parts: Sequence[Mask], task: Task) -> list[Vector]:
    """The decision weights that are the best for some parts of the rows."""
    kept = ~task.few[rows.labels]
    among = on_scale_of(rows, task.prior).among(~task.few)
    masks = [part[kept] for part in parts]
    rules = task.criterion.tune(among, masks, pooling=task.pooling, seed=task.seed)
    return [_among_all(rule, task) for rule in rules]


def known_rule(task: Task, n_folds: int = 1) -> Tuned:
    """A rule that is known, the same without any fold; dropped classes have weight 0."""
    criterion = task.criterion
    if not isinstance(criterion, KnownRule):
        name = type(task.goal).__name__
        raise TypeError(f"{name} has no known rule: its weights must be tuned.")
    rule = criterion.known(task.prior)
    if rule.ndim == 1 and task.drop:
        rule = rule * ~task.few
    return Tuned(rule, np.array([rule] * n_folds), 0.0)


def on_scale_of(rows: Predictions, prior: Vector) -> Predictions:
    """The rows with weights under which the classes have the frequencies of the population."""
    totals = rows.totals
    factors = np.divide(prior, totals, out=np.zeros_like(prior), where=totals > 0)
    # A class that the population lacks still has recalls; its weight changes no other class.
    factors[(prior == 0) & (totals > 0)] = np.sqrt(np.finfo(np.float64).tiny)
    return replace(rows, sample_weight=rows.sample_weight * factors[rows.labels])


def _among_all(rule: Vector, task: Task) -> Vector:
    """Weights of some classes as those of all; untuned classes have weight 1, or 0 if dropped.

    A further weight is that of abstaining.
    """
    weights = np.full(len(task.few), 0.0 if task.drop else 1.0)
    prior = task.prior[~task.few]
    rule = rule * (prior.sum() / (prior @ rule[: len(prior)]))
    weights[~task.few] = rule[: len(prior)]
    return np.append(weights, rule[len(prior) :])
