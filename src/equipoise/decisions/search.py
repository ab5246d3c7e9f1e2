r"""The search for decision weights: exact along lines, from several starts, then on all rows.

The value is piecewise constant in the log-weights. Along a line that raises one class, or a group
of the worst classes together, all outcomes are known after one sort; descent over such lines ends
where none of them helps. Of very many rows only those matter in the end whose decision small
changes can still turn: the search runs on a sample first, and then exactly on these.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.decisions.board import Board
from equipoise.decisions.evidence import Evidence, decide, from_logs
from equipoise.decisions.goal import Goal, Tuned

# A descent takes so many rounds at most, and ends with one that gains less than ENOUGH; gains below
# PROGRESS are rounding.
ROUNDS = 50
ENOUGH = 1e-5
PROGRESS = 1e-12
# Rows on which starts are compared, and rows of the samples before all rows are looked at.
SIZES = (2_000, 12_000)
# Rows on which log-weights are brought nearer without searching lines.
LARGE = 30_000
# Random starts beside those with a meaning, how far they stray, and kicks out of a local optimum.
RANDOM_STARTS, STRAY = 6, 1.0
KICKS, KICK = 10, 0.3
# How far log-weights may move when only the rows that this can turn are looked at.
REACH = 0.05
LAST_ROUNDS = 2
# Keeps equal probabilities of two classes from being ties.
JITTER = 1e-9
# Rows of one block when all rows are looked at.
BLOCK = 1 << 14


Improve = Callable[[Evidence, Vector], Vector]


def tune(evidence: Evidence, goal: Goal, improve: Improve | None = None) -> Tuned:
    """Decision weights with the lowest value that the search finds.

    ``improve`` may bring log-weights nearer to the optimum before lines are searched.
    """
    if evidence.n_classes == 2:
        return _finish(evidence, goal, _two_classes(evidence, goal))
    rng, n_rows = np.random.default_rng(0), len(evidence.labels)
    few = Search(_sample(evidence, SIZES[0], rng), goal)
    # The more rows, the fewer local optima.
    many = n_rows > SIZES[-1]
    starts = list(_starts(evidence, 0 if many else RANDOM_STARTS, rng))
    if improve is not None:
        better = [improve(few.evidence, theta) for theta in starts[:2]]
        starts = better if many else starts + better
    found = [few.descended(theta) for theta in starts]
    _, theta = few.kicked(*min(found, key=lambda pair: pair[0]), 0 if many else KICKS, rng)
    for smaller, size in pairwise(SIZES):
        if n_rows > smaller:
            larger = Search(_sample(evidence, size, rng), goal)
            if improve is not None:
                theta = improve(larger.evidence, theta)
            _, theta = larger.descended(theta)
    if many:
        if improve is not None:
            theta = improve(_sample(evidence, LARGE, rng), theta)
        theta = _refined(evidence, goal, theta)
    return _finish(evidence, goal, theta)


def retune(evidence: Evidence, goal: Goal, theta: Vector) -> Vector:
    """Log-weights by descent from a point nearby."""
    if evidence.n_classes == 2:
        return _two_classes(evidence, goal)
    return Search(evidence, goal).descended(theta)[1]


def _finish(evidence: Evidence, goal: Goal, theta: Vector) -> Tuned:
    weights = from_logs(theta)
    confusion = evidence.confusion(weights)
    risks = 1 - np.diag(confusion) / evidence.totals
    return Tuned(weights, goal.value(confusion), risks)


def _two_classes(evidence: Evidence, goal: Goal) -> Vector:
    """The best of all thresholds."""
    board, second = Board(evidence, np.zeros(2)), np.array([False, True])
    line = board.line(second, with_decided=goal.needs_decided, exact=True)
    best, _ = goal.lowest(line.outcomes)
    return np.array([0.0, line.shifts[best]])


def _starts(evidence: Evidence, n_random: int, rng: np.random.Generator) -> Iterator[Vector]:
    balanced = -np.log(evidence.prior)
    yield balanced
    yield 0.5 * balanced
    yield np.zeros_like(balanced)
    for _ in range(n_random):
        yield balanced + STRAY * rng.standard_normal(len(balanced))


def _sample(evidence: Evidence, n_rows: int, rng: np.random.Generator) -> Evidence:
    """At most about so many rows, of every class its share but no fewer than all can have."""
    if len(evidence.labels) <= n_rows:
        return evidence
    parts = []
    for own in evidence.by_class:
        fair = n_rows * len(own) // len(evidence.labels)
        wanted = max(n_rows // (2 * evidence.n_classes), fair)
        # A row drawn twice does no harm, and drawing without replacement takes a pass.
        parts.append(own if len(own) <= wanted else own[rng.integers(0, len(own), wanted)])
    part = evidence.take(np.concatenate(parts))
    # Classes keep their weight, whatever share of their rows was taken.
    scale = evidence.totals / part.totals
    return Evidence(part.probabilities, part.labels, part.sample_weight * scale[part.labels])


@dataclass(frozen=True, eq=False)
class Search:
    """Descents on the same rows from several points."""

    evidence: Evidence
    goal: Goal

    def descended(self, theta: Vector) -> tuple[float, Vector]:
        """Where lines lead from log-weights, and the value there."""
        board = Board(self.evidence, theta + JITTER * np.sqrt(np.arange(2.0, 2 + len(theta))))
        return _descend(board, self.goal), board.theta

    def kicked(
        self, value: float, theta: Vector, kicks: int, rng: np.random.Generator
    ) -> tuple[float, Vector]:
        """The best of descents from around a point."""
        for _ in range(kicks):
            other, point = self.descended(theta + KICK * rng.standard_normal(len(theta)))
            if other < value - PROGRESS:
                value, theta = other, point
        return value, theta


def _descend(board: Board, goal: Goal, rounds: int = ROUNDS) -> float:
    """Improve along lines until none of them helps, or for so many rounds."""
    value = np.inf
    for left in reversed(range(rounds)):
        before = value
        value = _round(board, goal, value, _singles(len(board.theta)))
        if value > before - ENOUGH and left:
            value = _round(board, goal, value, _worst_groups(board.risks()))
            if value > before - ENOUGH:
                break
    return value


def _round(board: Board, goal: Goal, value: float, groups: Iterator[Mask]) -> float:
    for group in groups:
        line = board.line(group, with_decided=goal.needs_decided)
        best, lowest = goal.lowest(line.outcomes)
        if lowest < value - PROGRESS:
            board.move(group, float(line.shifts[best]))
            value = lowest
    return value


def _singles(k: int) -> Iterator[Mask]:
    yield from np.eye(k, dtype=bool)


def _worst_groups(risks: Vector) -> Iterator[Mask]:
    """The two worst classes together, the three worst, and so on."""
    order, k = np.argsort(-risks), len(risks)
    for size in range(2, k - 1):
        group = np.zeros(k, dtype=bool)
        group[order[:size]] = True
        yield group


def _refined(evidence: Evidence, goal: Goal, theta: Vector) -> Vector:
    """Descent on all rows, of which only those that can turn are looked at again."""
    rows, settled = _open_rows(evidence, theta)
    board = Board(evidence.take(rows), theta, settled, REACH)
    _descend(board, goal, LAST_ROUNDS)
    return board.theta


def _open_rows(evidence: Evidence, theta: Vector) -> tuple[Indices, tuple[Vector, Vector, Vector]]:
    """Rows whose decision log-weights within reach can turn, and the outcome of the others."""
    k, weights, open_parts = evidence.n_classes, np.exp(theta - theta.max()), []
    table = np.zeros(k * k)
    for start in range(0, len(evidence.labels), BLOCK):
        block = slice(start, start + BLOCK)
        first, second = _top_two(evidence.probabilities[block], weights)
        is_open = second > np.exp(-2.01 * REACH) * first
        open_parts.append(start + np.flatnonzero(is_open))
        shut = np.flatnonzero(~is_open)
        decisions = decide(evidence.probabilities[block][shut], weights)
        cells = evidence.labels[block][shut] * k + decisions
        table += np.bincount(cells, weights=evidence.sample_weight[block][shut], minlength=k * k)
    square = table.reshape(k, k)
    settled = np.diag(square).copy(), square.sum(axis=0), square.sum(axis=1)
    return np.concatenate(open_parts), settled


def _top_two(probabilities: Matrix, weights: Vector) -> tuple[Vector, Vector]:
    """The largest and the second largest weighted probability of each row."""
    columns = np.ascontiguousarray(probabilities.T) * weights[:, None]
    first, second = np.zeros((2, len(probabilities)))
    for column in columns:
        np.maximum(second, np.minimum(first, column), out=second)
        np.maximum(first, column, out=first)
    return first, second
