r"""Rows and decision weights in logarithms, and everything that one change of weights can do.

Raising the log-weights of a group of classes by :math:`t` gives a row to the group's best class
once :math:`t` exceeds :math:`\tau = \max_{j \notin T} s_j - \max_{i \in T} s_i`, with scores
:math:`s = \log \eta + \log w`. Sorted by :math:`\tau`, the rows show every decision along the line.
Of several lines, and many rows, a grid of shifts shows which is best and where.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.left_out import Predictions
from equipoise.goals import Criterion
from equipoise.sets.mass_program import mass_program

# Cells of the grid of shifts, which is finest near 0.
CELLS = 128

# Classes of rows, and what each row adds to the sum of its class once it turns.
Turns = list[tuple[Indices, Matrix]]
# Log-probabilities by class and row, labels, and the rows' shares in the weight of their class.
LogRows = tuple[Matrix, Indices, Vector]

# Steps of all log-weights at once. How far one may go in any of them, at first and at least, and by
# how much less after one in vain: in general, where others are averaged with it, and near these.
STEPS, LENGTHS, LONGER = 80, (1.0, 0.5), 1.2
RADII, ROUGH, ROUGH_NEARBY = (0.5, 0.002, 1.6), (0.5, 0.05, 2.0), (0.2, 0.05, 2.0)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Some rows, their log-probabilities ``(n_classes, rows)``, their labels and weights."""

    index: Indices | slice
    logs: Matrix
    labels: Indices
    weight: Vector

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
        weight = rows.sample_weight
        self._all = ScoredRows(slice(None), logs, labels, weight)
        self.theta, self._origin, self._reach = theta.copy(), theta.copy(), reach
        self._gaps = gaps
        hits, decided, totals = settled
        self.totals = totals + rows.totals
        self._now = np.argmax(logs + theta[:, None], axis=0)
        self._hits, self._decided = hits, decided
        self._count(self._all, self._now)
        # For each class, the rows that it can win or lose within reach.
        self._contested: list[ScoredRows] | None = None
        if np.isfinite(reach):
            scores = logs + theta[:, None]
            open_rows = scores >= scores.max(axis=0) - 2.01 * reach
            self._contested = [
                ScoredRows(here, logs[:, here], labels[here], weight[here])
                for here in map(np.flatnonzero, open_rows)
            ]

    def _rows(self, groups: Mask) -> ScoredRows:
        """Rows that a shift of one of the groups can turn."""
        if self._contested is None or np.count_nonzero(groups) > 1:
            return self._all
        return self._contested[int(np.argmax(groups))]

    def best_shift(
        self, groups: Mask, criterion: Criterion, *, exact: bool = False
    ) -> tuple[Mask, float, float]:
        """The group of classes to shift, by how much, and the lowest value that this gives.

        Groups are one a line. Shifts are compared on a grid, and then all that make a difference
        around the best; if ``exact``, all on the best line.
        """
        rows, with_decided = self._rows(groups), criterion.needs_decided
        every = len(groups) == self._k
        sums_of = self._sums_of_each if every else self._sums_of_groups
        tau, sums = sums_of(rows, groups, with_decided=with_decided)
        low, high = self._room(groups)
        slots = _slots(tau, low, high, min(1.0, self._reach))
        tables = [_running(slots, CELLS + 2, *one) for one in sums]
        hits, decided = (tables[i].reshape(-1, self._k) for i in (0, -1))
        edge, line = divmod(criterion.lowest(hits, decided, self.totals)[0], len(groups))
        first, last = (0, CELLS) if exact else (max(edge - 1, 0), min(edge + 1, CELLS))
        # On that line, rows that make a difference between its ends, and those near the edge.
        at, turns = slots[line], [[(c[line], v[line]) for c, v in turns] for _, turns in sums]
        some = (at > 0) & (at <= CELLS)
        if not with_decided:
            some &= turns[0][0][1] != 0
        ends = (
            tau[line, some & (at <= first)].max(initial=low[line, 0]),
            tau[line, some & (at > last)].min(initial=high[line, 0]),
        )
        near = np.flatnonzero(some & (at > first) & (at <= last))
        shifts, ranks = _between(tau[line, near], *ends)
        rest = [
            _running(ranks, len(near) + 2, table[first, line],
                     [(classes[near] - self._k * line, added[near]) for classes, added in own])
            for table, own in zip(tables, turns, strict=True)
        ]  # fmt: skip
        real = np.flatnonzero(shifts == shifts)
        best, value = criterion.lowest(rest[0][real], rest[-1][real], self.totals)
        return groups[line], float(shifts[real[best]]), value

    def _sums_of_each(
        self, rows: ScoredRows, groups: Mask, *, with_decided: bool
    ) -> tuple[Matrix, list[tuple[Matrix, Turns]]]:
        """What :meth:`_sums_of_groups` gives for each class alone, with fewer passes."""
        k, labels, now, every = self._k, rows.labels, self._now, np.arange(len(rows.labels))
        scores = rows.logs + self.theta[:, None]
        own, first = scores[labels, every], scores[now, every]
        scores[now, every] = -np.inf
        second, offset = scores.max(axis=0), k * np.arange(k)[:, None]
        tau = first - scores
        tau[now, every] = second - first
        # Right rows are lost on all lines but their own; wrong ones won there, or lost where the
        # class that takes them gives way to their own.
        right = now == labels
        added = np.repeat(np.where(right, -rows.weight, 0.0)[None], k, axis=0)
        added[labels, every] = rows.weight
        freed = np.flatnonzero(~right & (own == second))
        added[now[freed], freed] = -rows.weight[freed]
        hits = np.where(np.eye(k, dtype=bool), 0.0, self._hits)
        hits += _by_class(now[freed] * k + labels[freed], rows.weight[freed], hits.shape)
        sums: list[tuple[Matrix, Turns]] = [(hits, [(offset + labels, added)])]
        if with_decided:
            weight, runner = np.broadcast_to(rows.weight, tau.shape), np.argmax(scores, axis=0)
            here = np.repeat(now[None], k, axis=0)
            here[now, every] = runner
            decided = np.where(np.eye(k, dtype=bool), 0.0, self._decided)
            decided += _by_class(now * k + runner, rows.weight, decided.shape)
            there = np.broadcast_to(offset + np.arange(k)[:, None], tau.shape)
            sums.append((decided, [(there, weight), (offset + here, -weight)]))
        return tau, sums

    def _sums_of_groups(
        self, rows: ScoredRows, groups: Mask, *, with_decided: bool
    ) -> tuple[Matrix, list[tuple[Matrix, Turns]]]:
        """Thresholds of the rows on the line of each group, hits, and decisions if asked for.

        Sums by class are those with all rows on the outside, and what turning adds to them.
        """
        scores = rows.logs + self.theta[:, None]
        own = scores[rows.labels, np.arange(len(rows.labels))]
        inside = np.array([scores[group].max(axis=0) for group in groups])
        outside = np.array([scores[~group].max(axis=0) for group in groups])
        member = groups[:, rows.labels]
        won = np.where(member & (own == inside), rows.weight, 0.0)
        lost = np.where(~member & (own == outside), rows.weight, 0.0)
        now, offset = self._now[rows.index], self._k * np.arange(len(groups))[:, None]
        settled = self._hits - rows.sums(now == rows.labels, rows.labels, self._k)
        labels = offset + rows.labels
        sums: list[tuple[Matrix, Turns]] = [
            (settled + _by_class(labels, lost, groups.shape), [(labels, won - lost)])
        ]
        if with_decided:
            weight = np.broadcast_to(rows.weight, won.shape)
            settled = self._decided - rows.sums(None, now, self._k)
            there, here = (offset + _best_classes(scores, side) for side in (groups, ~groups))
            turns = [(there, weight), (here, -weight)]
            sums.append((settled + _by_class(here, weight, groups.shape), turns))
        return outside - inside, sums

    def _room(self, groups: Mask) -> tuple[Matrix, Matrix]:
        """How far the log-weights of each group may go down and up."""
        moved = self.theta - self._origin
        low = -self._reach - np.array([[moved[group].min()] for group in groups])
        high = self._reach - np.array([[moved[group].max()] for group in groups])
        if self._gaps is not None:
            spare = np.maximum(self.theta[:, None] - self.theta - self._gaps, 0)
            for line, group in enumerate(groups):
                low[line] = max(low[line], -spare[group][:, ~group].min())
                high[line] = min(high[line], spare[~group][:, group].min())
        return low, high

    def move(self, group: Mask, shift: float) -> None:
        """Shift the log-weights of a group."""
        self.theta[group] += shift
        rows = self._rows(group[None])
        before = self._now[rows.index]
        after = np.argmax(rows.logs + self.theta[:, None], axis=0)
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


def _best_classes(scores: Matrix, groups: Mask) -> Indices:
    """The class of each group with the best score of each row."""
    return np.array([np.flatnonzero(group)[np.argmax(scores[group], axis=0)] for group in groups])


def _slots(tau: Matrix, low: Matrix, high: Matrix, scale: float) -> Indices:
    """After which edge of the grid each threshold lies: 0 below the low end, the last above all."""
    near = np.clip(tau, -1e9, 1e9)
    slots = ((near / (scale + np.abs(near)) + 1) * (CELLS / 2)).astype(np.intp) + 1
    np.minimum(slots, CELLS, out=slots)
    slots[tau <= low] = 0
    slots[tau >= high] = CELLS + 1
    return slots


def _by_class(classes: Indices, weights: Matrix, shape: tuple[int, ...]) -> Matrix:
    counts = np.bincount(classes.ravel(), weights.ravel(), minlength=shape[0] * shape[1])
    return np.asarray(counts, dtype=np.float64).reshape(shape)


def _running(slots: Indices, n_slots: int, start: Matrix, turns: Turns) -> NDArray[np.float64]:
    """Sums with all rows of the slots up to each on the inside; the last are never there."""
    table = np.zeros((n_slots, *start.shape))
    for classes, added in turns:
        cells = (slots * start.size + classes).ravel()
        table += np.bincount(cells, added.ravel(), minlength=table.size).reshape(table.shape)
    table[0] += start
    return np.asarray(np.cumsum(table[:-1], axis=0))


def _between(tau: Vector, low: float, high: float) -> tuple[Vector, Indices]:
    """Shifts between neighbours among thresholds and ends, and the ranks of the thresholds.

    Nan where rounding leaves nothing between two; 0 where there is nothing to be beyond.
    """
    order = np.argsort(tau)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(1, len(tau) + 1)
    marks = np.concatenate([[low], tau[order], [high]])
    if np.isinf(marks[0]):
        marks[0] = marks[1] - 2 if np.isfinite(marks[1]) else -1.0
    if np.isinf(marks[-1]):
        marks[-1] = marks[-2] + 2
    shifts = (marks[:-1] + marks[1:]) / 2
    if len(tau):
        shifts[(shifts <= marks[:-1]) | (shifts >= marks[1:])] = np.nan
    return shifts, ranks


# All classes at once


def equalized(
    predictions: Predictions,
    criterion: Criterion,
    theta: Vector,
    radii: tuple[float, float, float] = RADII,
) -> Vector:
    r"""Log-weights with a lower robust risk than ``theta``, or ``theta`` itself.

    Over many rows the zero-one risks are nearly smooth in the log-weights :math:`\theta`: the rows
    within a width :math:`h` of a decision boundary give the slopes :math:`J_{ij} = \partial R_i /
    \partial \theta_j`. Each step solves

    .. math:: \min_\delta \; \max_{m \in M} \; \langle m, R + J \delta \rangle
              + \tfrac{1}{2 \eta} \|\delta\|^2

    through its dual in the masses. Lines alone would stall where several classes share the worst
    case.
    """
    masses = criterion.masses
    if masses is None:
        return theta
    with np.errstate(divide="ignore"):
        logs = np.ascontiguousarray(np.log(predictions.probabilities).T)
    shares = predictions.sample_weight / predictions.totals[predictions.labels]
    rows = logs, predictions.labels, shares
    ones = np.ones(masses.n_classes)
    program = mass_program(masses, np.asarray(masses.project(ones / masses.n_classes)))
    (radius, shortest, shorter), rate = radii, 1.0
    lead, scores, risks = _leads_and_risks(rows, theta)
    value = float(masses.support(risks))
    for _ in range(STEPS):
        # Slopes at the scale of the step that they are for.
        J = _slopes(rows, lead, scores, radius)
        mass = program.solve(rate * (J @ J.T), risks, 1e-9)
        slope = mass @ J
        steepest = max(1e-12, float(np.abs(slope).max()))
        step = -min(rate, radius / steepest) * slope
        rate = radius / steepest
        points = [theta + length * step for length in LENGTHS]
        there = [_leads_and_risks(rows, point) for point in points]
        values = criterion.values(1 - np.array([risks for _, _, risks in there]), None, ones)
        best = int(np.argmin(values))
        if values[best] < value:
            value, theta, (lead, scores, risks) = float(values[best]), points[best], there[best]
            radius *= LONGER
        else:
            radius /= shorter
            if radius < shortest:
                break
    return theta


def _leads_and_risks(rows: LogRows, theta: Vector) -> tuple[Vector, Matrix, Vector]:
    """How far each row's class is ahead of all others, the scores of these, and the risks."""
    logs, labels, shares = rows
    scores, every = logs + theta[:, None], np.arange(len(labels))
    own = scores[labels, every]
    scores[labels, every] = -np.inf
    lead = own - scores.max(axis=0)
    risks = np.bincount(labels, shares * (lead <= 0), minlength=len(theta))
    return lead, scores, np.asarray(risks, dtype=np.float64)


def _slopes(rows: LogRows, lead: Vector, scores: Matrix, width: float) -> Matrix:
    """Slopes of the class risks (rows) by the log-weights (columns)."""
    _, labels, shares = rows
    close, k = np.flatnonzero(np.abs(lead) < width), len(scores)
    cells = labels[close] * k + np.argmax(scores[:, close], axis=0)
    J = np.bincount(cells, shares[close], minlength=k * k).reshape(k, k)
    return np.asarray((J - np.diag(J.sum(axis=1))) / (2 * width))
