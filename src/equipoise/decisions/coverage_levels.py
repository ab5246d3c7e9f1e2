r"""Errors by class that make sets small, while their mean is bounded under every mass of a set.

.. math:: \min_\epsilon \; \sum_i S_i(\epsilon_i) \quad \text{subject to} \quad
          \max_{m \in M} \; \langle m, \epsilon \rangle \leq \alpha

:math:`S_i(\epsilon)` is the share of all rows whose set holds class ``i`` if the share
:math:`\epsilon` of the rows of class ``i`` may be without it; its lower convex hull is taken. Each
step takes the smallest sets for one mass, whose steepest steps come first, and moves the mass along
the errors and back into the set by its ``project``; the mean of the errors tends to the solution.
It is scaled down to the set's ``maximize``, so that it is feasible in any case, and compared
with equal errors. The rows are not those that thresholds are calibrated on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.arrays import ROUNDING, Indices, Vector
from equipoise.goals.labelled_predictions import Predictions
from equipoise.sets import MassSet

# CORNERS: errors of a class that are looked at, at most.
CORNERS = 64
# STEPS: of the mass; within 1% of the linear programme's sizes for 6 to 18 classes.
STEPS = 300
# SAMPLE: rows that the sizes are counted on, at most: a share is known to a third of a point.
SAMPLE = 20_000


def tuned_levels(rows: Predictions, masses: MassSet, error: float, prior: Vector) -> Vector:
    """The errors by class that make the sets smallest.

    Examples
    --------
    >>> from equipoise import WorstClass
    >>> rng = np.random.default_rng(0)
    >>> table = rng.dirichlet([1.0, 1.0], 200)
    >>> rows = Predictions(table, (rng.random(200) < table[:, 1]).astype(int), np.ones(200))
    >>> prior = np.array([0.5, 0.5])
    >>> tuned_levels(rows, WorstClass().resolve(prior), 0.1, prior).round(3)
    array([0.1, 0.1])
    """
    hulls = [_hull(*_sizes(_sampled(rows), i, prior)) for i in range(rows.n_classes)]
    curves = _curves(hulls)
    mass = np.asarray(masses.project(np.full(len(prior), 1 / len(prior))))
    total = np.zeros(len(prior))
    for step in range(STEPS):
        levels = curves.smallest(mass, error)
        if step >= STEPS // 4:
            total += levels
        away = (levels - error) / (error * len(prior) * np.sqrt(step + 1))
        mass = np.asarray(masses.project(mass + away))
    mean = total / (STEPS - STEPS // 4)
    equal = np.full(len(prior), error)
    candidates = [equal, within(mean, masses, error)]
    return min(
        candidates, key=lambda e: sum(np.interp(x, *h) for x, h in zip(e, hulls, strict=True))
    )


@dataclass(frozen=True, eq=False)
class Curves:
    """Steps along the hulls of all classes, what they save by their lengths, and their classes."""

    steps: Vector
    saved: Vector
    owner: Indices
    n_classes: int

    def smallest(self, mass: Vector, error: float) -> Vector:
        """The errors of this mean that make the sets smallest: what saves most comes first."""
        costs = mass[self.owner]
        worth = np.divide(self.saved, costs, out=np.full(len(costs), np.inf), where=costs > 0)
        order = np.argsort(-worth, kind="stable")
        spent = np.cumsum((costs * self.steps)[order])
        before = np.append(0.0, spent[:-1])
        cost = np.maximum(spent - before, np.finfo(float).tiny)
        taken = np.empty_like(self.steps)
        taken[order] = np.where(spent <= error, 1.0, np.clip((error - before) / cost, 0.0, 1.0))
        errors = np.bincount(self.owner, taken * self.steps, minlength=self.n_classes)
        return np.asarray(errors, dtype=np.float64)


def _curves(hulls: list[tuple[Vector, Vector]]) -> Curves:
    steps = [np.diff(x) for x, _ in hulls]
    saved = [-np.diff(y) / np.diff(x) for x, y in hulls]
    owner = np.repeat(np.arange(len(hulls)), [len(each) for each in steps])
    return Curves(np.concatenate(steps), np.concatenate(saved), owner, len(hulls))


def within(levels: Vector, masses: MassSet, error: float) -> Vector:
    """Errors that are scaled down until their largest mean is no more than allowed."""
    largest = float(masses.support(levels))
    return np.asarray(levels * min(1.0, error / largest)) if largest > 0 else levels


def whole_ranks(
    levels: Vector, counts: Indices, robust: MassSet | None = None, error: float = 0.0
) -> Indices:
    """Order statistics of ``counts`` rows that have at most these errors, or a mean over a set.

    Where a set is given, those that are rounded down most are rounded up as long as the set allows
    it; this goes by the numbers of rows alone, and no threshold depends on scores.

    Examples
    --------
    >>> whole_ranks(np.array([0.1, 0.1]), np.array([9, 25]))
    array([1, 2])
    """
    exact = levels * (counts + 1)
    ranks = np.floor(exact + ROUNDING * (counts + 1)).astype(np.intp)
    if robust is None:
        return ranks
    for i in np.argsort(ranks - exact).tolist():
        if counts[i] and ranks[i] < exact[i]:
            ranks[i] += 1
            if robust.support(ranks / (counts + 1)) > error:
                ranks[i] -= 1
    return ranks


def _sampled(rows: Predictions) -> Predictions:
    n = len(rows.labels)
    return rows if n <= SAMPLE else rows.take(np.random.default_rng(0).permutation(n)[:SAMPLE])


def _sizes(rows: Predictions, i: int, prior: Vector) -> tuple[Vector, Vector]:
    """Errors of a class, and the share of rows whose sets then hold it."""
    column, weights = rows.probabilities[:, i], rows.sample_weight
    label_probabilities = np.sort(column[rows.labels == i])
    n = len(label_probabilities)
    if not n or prior[i] == 0:
        return np.array([0.0, 1.0]), np.array([1.0, 0.0])
    ranks = np.unique(np.linspace(1, n, min(n, CORNERS)).round().astype(np.intp))
    order = np.argsort(column)
    above = 1 - np.append(0.0, np.cumsum(weights[order])) / weights.sum()
    held = above[np.searchsorted(column[order], label_probabilities[ranks - 1], side="left")]
    errors = np.concatenate([[0.0], ranks / (n + 1), [1.0]])
    return errors, np.concatenate([[1.0], held, [0.0]])


def _hull(x: Vector, y: Vector) -> tuple[Vector, Vector]:
    """The lower convex hull of points in the order of ``x``."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1 and _above(x[[kept[-2], kept[-1], i]], y[[kept[-2], kept[-1], i]]):
            kept.pop()
        kept.append(i)
    return x[kept], y[kept]


def _above(x: Vector, y: Vector) -> bool:
    """Whether the middle one of three points is not below the line through the others."""
    return bool((y[1] - y[0]) * (x[2] - x[0]) >= (y[2] - y[0]) * (x[1] - x[0]))
