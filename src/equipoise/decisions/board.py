r"""Rows and decision weights in logarithms, and everything that one change of weights can do.

Raising the log-weights of a group of classes by :math:`t` gives a row to the group's best class
once :math:`t` exceeds :math:`\tau = \max_{j \notin T} s_j - \max_{i \in T} s_i`, with scores
:math:`s = \log \eta + \log w`. Sorted by :math:`\tau`, the rows show every outcome along the line.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.decisions.evidence import Evidence, Indices, Matrix
from equipoise.decisions.goal import Outcomes
from equipoise.priors import Vector

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Line:
    """Shifts of a group's log-weights, and the outcome of each."""

    shifts: Vector
    outcomes: Outcomes


class Board:
    """Rows whose decisions are open, on top of rows whose decisions are settled.

    Parameters
    ----------
    evidence : Evidence
        The open rows.
    theta : array of shape (n_classes,)
        Log-weights to start from.
    settled : tuple of arrays (hits, decided, totals), optional
        Outcome of the other rows: it stays as it is while ``theta`` moves by less than ``reach``.
    reach : float
        How far any log-weight may move from where it started.
    """

    def __init__(
        self,
        evidence: Evidence,
        theta: Vector,
        settled: tuple[Vector, Vector, Vector] | None = None,
        reach: float = np.inf,
    ) -> None:
        k = evidence.n_classes
        with np.errstate(divide="ignore"):
            self._scores = np.ascontiguousarray(np.log(evidence.probabilities).T) + theta[:, None]
        self._labels, self._row_weight = evidence.labels, evidence.sample_weight
        self._own = self._scores[self._labels, np.arange(len(self._labels))]
        self.theta, self._origin, self._reach = theta.copy(), theta.copy(), reach
        nothing = np.zeros(k)
        self._hits, self._decided, totals = settled or (nothing, nothing, nothing)
        self.totals = totals + evidence.totals

    def line(self, group: Mask, *, with_decided: bool) -> Line:
        """All outcomes of shifting the log-weights of a group."""
        inside, outside = self._best(group), self._best(~group)
        tau = outside - inside
        low, high = self._range(group)
        # Which rows are right on either side of their threshold.
        member = group[self._labels]
        right_inside = member & (self._own == inside)
        right_outside = ~member & (self._own == outside)
        below = tau <= low
        moving = (tau > low) & (tau < high)
        hits = self._hits + self._sums(np.where(below, right_inside, right_outside), self._labels)
        decided = None
        if with_decided:
            there, here = self._chosen(group), self._chosen(~group)
            decided = self._decided + self._sums(None, np.where(below, there, here))
            rows = np.flatnonzero(moving)
        else:
            rows = np.flatnonzero(moving & (right_inside | right_outside))
        rows = rows[np.argsort(tau[rows])]
        shifts, kept = _between(tau[rows], low, high)
        change = np.where(right_inside[rows], 1.0, 0.0) - right_outside[rows]
        weights = self._row_weight[rows]
        hits = _running(hits, [(self._labels[rows], change * weights)], kept)
        if decided is not None:
            flips = [(there[rows], weights), (here[rows], -weights)]
            decided = _running(decided, flips, kept)
        return Line(shifts, Outcomes(hits, decided, self.totals))

    def move(self, group: Mask, shift: float) -> None:
        """Shift the log-weights of a group."""
        self.theta[group] += shift
        self._scores[group] += shift
        self._own[group[self._labels]] += shift

    def risks(self) -> Vector:
        """Class risks as things stand."""
        top = self._scores.max(axis=0)
        hits = self._hits + self._sums(self._own == top, self._labels)
        return np.asarray(1 - hits / self.totals)

    def at_border(self) -> bool:
        """Whether the log-weights have moved as far as they may."""
        return bool(np.abs(self.theta - self._origin).max() >= 0.9 * self._reach)

    def _range(self, group: Mask) -> tuple[float, float]:
        if np.isinf(self._reach):
            return -np.inf, np.inf
        moved = (self.theta - self._origin)[group]
        return float(-self._reach - moved.min()), float(self._reach - moved.max())

    def _best(self, group: Mask) -> Vector:
        if np.count_nonzero(group) == 1:
            return np.asarray(self._scores[int(np.argmax(group))])
        return np.asarray(self._scores[group].max(axis=0))

    def _chosen(self, group: Mask) -> Indices:
        """The best class of a group for each row."""
        if np.count_nonzero(group) == 1:
            return np.full(len(self._labels), np.argmax(group))
        return np.asarray(np.flatnonzero(group)[self._scores[group].argmax(axis=0)])

    def _sums(self, right: NDArray[np.bool_] | None, classes: Indices) -> Vector:
        weight = self._row_weight if right is None else self._row_weight * right
        return np.asarray(np.bincount(classes, weights=weight, minlength=len(self.totals)))


def _between(tau: Vector, low: float, high: float) -> tuple[Vector, Indices]:
    """Shifts between distinct thresholds (sorted), and how many thresholds lie below each."""
    if not len(tau):
        return np.array([0.0]), np.array([0])
    first = tau[0] - 1 if np.isinf(low) else (low + tau[0]) / 2
    last = tau[-1] + 1 if np.isinf(high) else (high + tau[-1]) / 2
    middles = (tau[:-1] + tau[1:]) / 2
    # Rounding could put a middle on a threshold.
    kept = np.flatnonzero((tau[:-1] < middles) & (middles < tau[1:])) + 1
    shifts = np.concatenate([[first], middles[kept - 1], [last]])
    return shifts, np.concatenate([[0], kept, [len(tau)]])


def _running(start: Vector, flips: list[tuple[Indices, Vector]], kept: Indices) -> Matrix:
    """Sums by class after each kept number of flips, rows in flip order."""
    length = len(flips[0][0])
    table = np.zeros((length + 1, len(start)))
    table[0] = start
    place = np.arange(1, length + 1)
    for classes, weights in flips:
        table[place, classes] += weights
    np.cumsum(table, axis=0, out=table)
    return table[kept]
