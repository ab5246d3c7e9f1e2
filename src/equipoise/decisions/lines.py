r"""Rows and decision weights in logarithms, and everything that one change of weights can do.

Raising the log-weights of a group of classes by :math:`t` gives a row to the group's best class
once :math:`t` exceeds :math:`\tau = \max_{j \notin T} s_j - \max_{i \in T} s_i`, with scores
:math:`s = \log \eta + \log w`. Sorted by :math:`\tau`, the rows show every decision along the line.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.decisions.left_out import Predictions

# With more rows, shifts are looked at on a grid, no wider than this to either side.
MANY_ROWS = 5_000
CELLS, WIDE = 512, 2.0

# Sums by class at each shift, from those before all shifts and what each row adds once it turns.
Running = Callable[[Vector, list[tuple[Indices, Vector]]], Matrix]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Some rows, their log-probabilities ``(n_classes, rows)``, and that of their own class."""

    index: Indices | slice
    logs: Matrix
    own: Vector
    labels: Indices
    weight: Vector

    def best(self, theta: Vector, group: Mask, *, with_classes: bool) -> tuple[Vector, Indices]:
        """The best score of a group for each row, and the class that has it, if asked for."""
        members = np.flatnonzero(group)
        best = self.logs[members[0]] + theta[members[0]]
        classes = np.full(len(best) if with_classes else 0, members[0])
        for other in members[1:]:
            scores = self.logs[other] + theta[other]
            if with_classes:
                np.copyto(classes, other, where=scores > best)
            np.maximum(best, scores, out=best)
        return best, classes

    def sums(self, right: Mask | None, classes: Indices, n_classes: int) -> Vector:
        """Weight of the rows, or of those that are right, by class."""
        weight = self.weight if right is None else self.weight * right
        return np.asarray(np.bincount(classes, weights=weight, minlength=n_classes))


class OpenDecisions:
    """Rows whose decisions are open, on top of rows whose decisions are settled.

    Of the latter, ``settled`` are the hits, decisions and totals by class, as long as no
    log-weight moves by more than ``reach`` from where it started; they stay ``gaps`` apart.
    """

    def __init__(
        self, rows: Predictions, theta: Vector, settled: Any = (0, 0, 0), reach: float = np.inf,
        gaps: Matrix | None = None,
    ) -> None:  # fmt: skip
        self._k, labels = rows.n_classes, rows.labels
        with np.errstate(divide="ignore"):
            logs = np.ascontiguousarray(np.log(rows.probabilities).T)
        own = logs[labels, np.arange(len(labels))]
        weight = rows.sample_weight
        self._all = ScoredRows(slice(None), logs, own, labels, weight)
        self.theta, self._origin, self._reach = theta.copy(), theta.copy(), reach
        self._gaps = gaps
        hits, decided, totals = settled
        self.totals = totals + rows.totals
        everything = np.ones(self._k, dtype=bool)
        top, self._now = self._all.best(theta, everything, with_classes=True)
        self._hits, self._decided = hits, decided
        self._count(self._all, self._now)
        # For each class, the rows that it can win or lose within reach.
        self._contested: list[ScoredRows] | None = None
        if np.isfinite(reach):
            open_rows = logs + theta[:, None] >= top - 2.01 * reach
            self._contested = [
                ScoredRows(here, logs[:, here], own[here], labels[here], weight[here])
                for here in map(np.flatnonzero, open_rows)
            ]

    def _rows(self, group: Mask) -> ScoredRows:
        """Rows that a shift of a group can turn."""
        if self._contested is None or np.count_nonzero(group) > 1:
            return self._all
        return self._contested[int(np.argmax(group))]

    def line(
        self, group: Mask, *, with_decided: bool, exact: bool = False
    ) -> tuple[Vector, Matrix, Matrix | None]:
        """Shifts of the log-weights of a group, and the right and all decisions at each.

        All that make a difference, each between two thresholds; of very many rows, unless
        ``exact``, those on a fine grid.
        """
        rows, now = self._rows(group), self._now[self._rows(group).index]
        inside, there = rows.best(self.theta, group, with_classes=with_decided)
        outside, here = rows.best(self.theta, ~group, with_classes=with_decided)
        tau = outside - inside
        moved = (self.theta - self._origin)[group]
        low, high = -self._reach - moved.min(), self._reach - moved.max()
        if self._gaps is not None:
            spare = np.maximum(self.theta[:, None] - self.theta - self._gaps, 0)
            low = max(low, -float(spare[group][:, ~group].min()))
            high = min(high, float(spare[~group][:, group].min()))
        binned = len(tau) > MANY_ROWS and low < high and not exact
        if binned:
            low, high = max(low, -WIDE), min(high, WIDE)
        # Which rows are right on either side of their threshold.
        member, own = group[rows.labels], rows.own + self.theta[rows.labels]
        right_inside, right_outside = member & (own == inside), ~member & (own == outside)
        below = tau <= low
        moving = (tau > low) & (tau < high)
        if not with_decided:
            moving &= right_inside | right_outside
        # Decisions as they are, with these rows as they would be at the low end.
        hits = self._hits - rows.sums(now == rows.labels, rows.labels, self._k)
        hits += rows.sums(np.where(below, right_inside, right_outside), rows.labels, self._k)
        turning = np.flatnonzero(moving)
        shifts, running = (_on_a_grid if binned else _between_rows)(tau[turning], low, high)
        weights = rows.weight[turning]
        change = weights * right_inside[turning] - weights * right_outside[turning]
        hits = running(hits, [(rows.labels[turning], change)])
        decided = None
        if with_decided:
            start = self._decided - rows.sums(None, now, self._k)
            start += rows.sums(None, np.where(below, there, here), self._k)
            decided = running(start, [(there[turning], weights), (here[turning], -weights)])
        return shifts, hits, decided

    def move(self, group: Mask, shift: float) -> None:
        """Shift the log-weights of a group."""
        self.theta[group] += shift
        rows = self._rows(group)
        before = self._now[rows.index]
        _, after = rows.best(self.theta, np.ones(self._k, dtype=bool), with_classes=True)
        self._count(rows, before, -1)
        self._count(rows, after)
        self._now[rows.index] = after

    def _count(self, rows: ScoredRows, decided: Indices, sign: int = 1) -> None:
        right = rows.sums(decided == rows.labels, rows.labels, self._k)
        self._hits = self._hits + sign * right
        self._decided = self._decided + sign * rows.sums(None, decided, self._k)

    def risks(self) -> Vector:
        """Class risks as things stand."""
        return np.asarray(1 - self._hits / self.totals)


def _between_rows(tau: Vector, low: float, high: float) -> tuple[Vector, Running]:
    """Shifts between any two distinct thresholds, and beyond them all."""
    order = np.argsort(tau)
    shifts, kept = np.array([0.0]), np.array([0])  # how many thresholds lie below each
    if len(tau):
        tau = tau[order]
        first = tau[0] - 1 if np.isinf(low) else (low + tau[0]) / 2
        last = tau[-1] + 1 if np.isinf(high) else (high + tau[-1]) / 2
        middles = (tau[:-1] + tau[1:]) / 2
        # Rounding could put a middle on a threshold.
        inner = np.flatnonzero((tau[:-1] < middles) & (middles < tau[1:]))
        shifts = np.concatenate([[first], middles[inner], [last]])
        kept = np.concatenate([[0], inner + 1, [len(tau)]])

    def running(start: Vector, turns: list[tuple[Indices, Vector]]) -> Matrix:
        table = np.zeros((len(order) + 1, len(start)))
        table[0] = start
        place = np.arange(1, len(table))
        for classes, weights in turns:
            table[place, classes[order]] += weights[order]
        np.cumsum(table, axis=0, out=table)
        return np.asarray(table[kept])

    return shifts, running


def _on_a_grid(tau: Vector, low: float, high: float) -> tuple[Vector, Running]:
    """Shifts at the edges between the cells of a grid: no sort, no table of rows."""
    cells = ((tau - low) * (CELLS / (high - low))).astype(np.intp)
    np.minimum(cells, CELLS - 1, out=cells)

    def running(start: Vector, turns: list[tuple[Indices, Vector]]) -> Matrix:
        k = len(start)
        table = np.zeros((CELLS + 1, k))
        for classes, weights in turns:
            sums = np.bincount(cells * k + classes, weights, minlength=CELLS * k)
            table[1:] += sums.reshape(CELLS, k)
        table[0] += start
        return np.asarray(np.cumsum(table, axis=0))

    return np.linspace(low, high, CELLS + 1), running
