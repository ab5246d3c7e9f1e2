r"""The search for decision weights: exact along lines, from several starts, then on all rows.

The value is piecewise constant in the log-weights. Along a line that raises one class, or a group
of the worst classes together, all values are known after one sort; descent over such lines ends
where none of them helps. Of very many rows only those matter in the end whose decision small
changes can still turn: the search runs on a sample first, and then exactly on these.

Tuned weights fit the noise of their rows, the more so the fewer rows a class has. They are
therefore averaged over the folds, each left out in turn, and drawn towards balanced ones,

.. math:: \log w = (1 - \lambda) \, \overline{\log w_{-f}} + \lambda \log w_{\mathrm{balanced}},

with an amount :math:`\lambda` that is chosen by cross-validation over the folds; for metrics of two
classes that count rows, such as F1, whose best weights are not nearly balanced, it is 0. What is
reported of fold ``f`` comes from weights that were tuned, and from an amount that was chosen,
without it.

Of three classes or more, one of a handful of rows can be the worst whatever the weights, and let
all others err as often as it does. Weights are then tuned a second time with no more mass on a
class than its rows are a share of ``FULL_ROWS``, and these are taken unless the first are better by
three standard errors.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.decisions.left_out import Predictions, decide
from equipoise.decisions.lines import OpenDecisions
from equipoise.exceptions import UnattainableError
from equipoise.goals import Criterion
from equipoise.sets import MassSet
from equipoise.sets.mass_program import mass_program

# A descent takes so many rounds at most, and ends with one that gains less than ENOUGH; gains below
# PROGRESS are rounding.
ROUNDS = 50
ENOUGH = 1e-5
PROGRESS = 1e-12
# Rows on which starts are compared, and rows of the samples before all rows are looked at.
SIZES = (2_000, 12_000)
# Rows on which log-weights are brought nearer without searching lines.
LARGE = 30_000
# Random starts beside those with a meaning, how far they stray, and restarts around an optimum.
RANDOM_STARTS, STRAY = 6, 1.0
RESTARTS, NEARBY = 10, 0.3
# Resamples that weights are averaged over.
RESAMPLES = 10
# How far log-weights may move when only the rows that this can turn are looked at.
REACH = 0.05
LAST_ROUNDS = 2
# Keeps equal probabilities of two classes from being ties.
JITTER = 1e-9
# Rows of one block when all rows are looked at.
BLOCK = 1 << 14
# How far apart log-weights may be.
FURTHEST = 600.0
# Steps of all log-weights at once, and how far one may go in any of them: at first, and at least.
STEPS = 80
FIRST, SHORTEST = 0.5, 0.002
LENGTHS = (1.0, 0.5)

# Amounts of shrinkage that are compared. Of amounts whose values differ by less than this share of
# a standard error the largest is taken; a whole one gives too much away where rows are many.
AMOUNTS = (0.0, 0.25, 0.5, 0.75, 1.0)
NOISE = 0.25
# A class of fewer rows may carry all mass only where this is better by so many standard errors.
FULL_ROWS, CERTAIN = 30, 3.0
# Where every class has so many rows, weights are averaged over resamples of each part as well.
ENOUGH_ROWS = 100
# Groups of rows that the jackknife leaves out in turn.
GROUPS = 20

Shrinkage = float | Literal["auto"]
Folds = frozenset[int]
# For each class, how far its rows' other classes are behind, and the rows' shares of its weight.
Leads = list[tuple[Matrix, Vector]]


def tune(predictions: Predictions, criterion: Criterion, seed: int = 0) -> Vector:
    """Decision weights with the lowest value that the search finds; they sum to one.

    Examples
    --------
    >>> from equipoise.decisions import Predictions
    >>> from equipoise.goals import as_goal
    >>> table = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> rows = Predictions(table, np.array([0, 0, 1, 1]), np.ones(4))
    >>> tune(rows, as_goal("worst-class").resolve([0.5, 0.5])).round(3)
    array([0.247, 0.753])
    """
    wanted: Criterion | None = criterion
    gaps = None
    if criterion.confidence is not None:
        wanted, gaps = criterion.certified(_leads(predictions), predictions.prior, seed)
    while wanted is not None:
        weights = from_logs(_search(predictions, wanted, gaps))
        risks = 1 - np.diag(predictions.confusion(weights)) / predictions.totals
        wanted = wanted.instead(risks)
    return weights


def tune_resampled(predictions: Predictions, criterion: Criterion) -> Vector:
    """The geometric mean of the weights of resamples: steadier than the optimum of a few rows.

    The optimum of a piecewise constant value fits the very rows it was tuned on; the mean keeps
    what resamples, each class drawn from its own rows, agree on. Classes of few rows do not lend
    themselves to it: their resamples hold too few different rows to show where risks rise and fall.
    """
    rng = np.random.default_rng(0)
    # Not from the optimum: resamples would all stay at what it learnt by heart.
    start = np.asarray(-np.log(predictions.prior))
    found = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([rng.choice(own, len(own)) for own in predictions.by_class])
        drawn = predictions.take(rows)
        two = drawn.n_classes == 2
        theta = _two_classes(drawn, criterion, None) if two else equalized(drawn, criterion, start)
        found.append(theta - theta.mean())
    return from_logs(np.mean(found, axis=0))


def from_logs(theta: Vector) -> Vector:
    """Decision weights that sum to one, from their logarithms."""
    # Further apart, the smallest weight would be no positive number any more.
    weights = np.exp(np.maximum(theta - theta.max(), -FURTHEST))
    return np.asarray(weights / weights.sum())


def _search(predictions: Predictions, criterion: Criterion, gaps: Matrix | None) -> Vector:
    """Log-weights with the lowest value that the search finds among those that keep gaps."""
    if predictions.n_classes == 2:
        return _two_classes(predictions, criterion, gaps)
    rng, n_rows = np.random.default_rng(0), len(predictions.labels)
    few = _sample(predictions, SIZES[0], rng)
    # The more rows, the fewer local optima.
    many = n_rows > SIZES[-1]
    balanced = -np.log(predictions.prior)
    strays = STRAY * rng.standard_normal((0 if many else RANDOM_STARTS, len(balanced)))
    starts = [balanced, 0.5 * balanced, np.zeros_like(balanced), *(balanced + strays)]
    if criterion.masses is not None:
        better = [equalized(few, criterion, theta) for theta in starts[:2]]
        starts = better if many else starts + better
    found = [_descended(few, criterion, start, gaps) for start in starts]
    value, theta = min(found, key=lambda pair: pair[0])
    for _ in range(0 if many else RESTARTS):
        nearby = theta + NEARBY * rng.standard_normal(len(theta))
        other, point = _descended(few, criterion, nearby, gaps)
        if other < value - PROGRESS:
            value, theta = other, point
    for smaller, size in pairwise(SIZES):
        if n_rows > smaller:
            larger = _sample(predictions, size, rng)
            _, theta = _descended(larger, criterion, equalized(larger, criterion, theta), gaps)
    if many:
        theta = equalized(_sample(predictions, LARGE, rng), criterion, theta)
        # Of all rows only those that can turn are looked at again.
        rows, settled = _open_rows(predictions, theta)
        state = OpenDecisions(predictions.take(rows), theta, settled, REACH, gaps)
        _descend(state, criterion, LAST_ROUNDS)
        theta = state.theta
    return theta


def _two_classes(predictions: Predictions, criterion: Criterion, gaps: Matrix | None) -> Vector:
    """The best of all thresholds that keep gaps."""
    state = OpenDecisions(predictions, _raised(np.zeros(2), gaps), gaps=gaps)
    second = np.array([False, True])
    shifts, hits, decided = state.line(second, with_decided=criterion.needs_decided, exact=True)
    best, _ = criterion.lowest(hits, decided, state.totals)
    return np.asarray(state.theta + shifts[best] * second)


def _raised(theta: Vector, gaps: Matrix | None) -> Vector:
    """The least log-weights above given ones that keep gaps; two gaps in a row ask for no more."""
    return theta if gaps is None else np.maximum(theta, (theta + gaps).max(axis=1))


def _sample(predictions: Predictions, n_rows: int, rng: np.random.Generator) -> Predictions:
    """At most about so many rows, of every class its share but no fewer than all can have."""
    if len(predictions.labels) <= n_rows:
        return predictions
    parts = []
    for own in predictions.by_class:
        fair = n_rows * len(own) // len(predictions.labels)
        wanted = max(n_rows // (2 * predictions.n_classes), fair)
        # A row drawn twice does no harm, and drawing without replacement takes a pass.
        parts.append(own if len(own) <= wanted else own[rng.integers(0, len(own), wanted)])
    part = predictions.take(np.concatenate(parts))
    # Classes keep their weight, whatever share of their rows was taken.
    scale = predictions.totals / part.totals
    return Predictions(part.probabilities, part.labels, part.sample_weight * scale[part.labels])


# Along lines, one class or group of classes after the other


def _descended(
    predictions: Predictions, criterion: Criterion, theta: Vector, gaps: Matrix | None
) -> tuple[float, Vector]:
    """Where lines lead from log-weights, and the value there."""
    apart = theta + JITTER * np.sqrt(np.arange(2.0, 2 + len(theta)))
    state = OpenDecisions(predictions, _raised(apart, gaps), gaps=gaps)
    return _descend(state, criterion), state.theta


def _descend(state: OpenDecisions, criterion: Criterion, rounds: int = ROUNDS) -> float:
    """Improve along lines until none of them helps, or for so many rounds."""
    value = np.inf
    for left in reversed(range(rounds)):
        before = value
        value = _round(state, criterion, value, np.eye(len(state.theta), dtype=bool))
        if value > before - ENOUGH and left:
            value = _round(state, criterion, value, _worst_groups(state.risks()))
            if value > before - ENOUGH:
                break
    return value


def _round(
    state: OpenDecisions, criterion: Criterion, value: float, groups: Iterable[Mask]
) -> float:
    for group in groups:
        shifts, hits, decided = state.line(group, with_decided=criterion.needs_decided)
        best, lowest = criterion.lowest(hits, decided, state.totals)
        if lowest < value - PROGRESS:
            state.move(group, float(shifts[best]))
            value = lowest
    return value


def _worst_groups(risks: Vector) -> list[Mask]:
    """The two worst classes together, the three worst, and so on."""
    ranks = np.argsort(np.argsort(-risks))
    return [ranks < size for size in range(2, len(risks) - 1)]


def _open_rows(
    predictions: Predictions, theta: Vector
) -> tuple[Indices, tuple[Vector, Vector, Vector]]:
    """Rows whose decision log-weights within reach can turn, and what becomes of the others."""
    k, weights, open_parts = predictions.n_classes, np.exp(theta - theta.max()), []
    table = np.zeros((k, k))
    for start in range(0, len(predictions.labels), BLOCK):
        first, second = _top_two(predictions.probabilities[start : start + BLOCK], weights)
        is_open = second > np.exp(-2.01 * REACH) * first
        open_parts.append(start + np.flatnonzero(is_open))
        table += predictions.take(start + np.flatnonzero(~is_open)).confusion(weights)
    settled = np.diag(table).copy(), table.sum(axis=0), table.sum(axis=1)
    return np.concatenate(open_parts), settled


def _top_two(probabilities: Matrix, weights: Vector) -> tuple[Vector, Vector]:
    """The largest and the second largest weighted probability of each row."""
    columns = np.ascontiguousarray(probabilities.T) * weights[:, None]
    first, second = np.zeros((2, len(probabilities)))
    for column in columns:
        np.maximum(second, np.minimum(first, column), out=second)
        np.maximum(first, column, out=first)
    return first, second


# All classes at once


def equalized(predictions: Predictions, criterion: Criterion, theta: Vector) -> Vector:
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
    leads = _leads(predictions)
    start = np.full(masses.n_classes, 1 / masses.n_classes)
    program = mass_program(masses, np.asarray(masses.project(start)))
    risks, radius, rate = _risks(leads, theta), FIRST, 1.0
    value = float(masses.support(risks))
    for _ in range(STEPS):
        # Slopes at the scale of the step that they are for.
        J = _slopes(leads, theta, radius)
        mass = program.solve(rate * (J @ J.T), risks, 1e-9)
        slope = mass @ J
        steepest = max(1e-12, float(np.abs(slope).max()))
        found = _best_step(leads, masses, theta, -min(rate, radius / steepest) * slope)
        rate = radius / steepest
        if found[0] < value:
            value, theta, risks = found
            radius *= 1.2
        else:
            radius /= 1.6
            if radius < SHORTEST:
                break
    return theta


def _best_step(
    leads: Leads, masses: MassSet, theta: Vector, step: Vector
) -> tuple[float, Vector, Vector]:
    """The best of a few lengths of a step: its value, the point, and the risks there."""
    found = []
    for length in LENGTHS:
        point = theta + length * step
        risks = _risks(leads, point)
        found.append((float(masses.support(risks)), point, risks))
    return min(found, key=lambda one: one[0])


def _leads(predictions: Predictions) -> Leads:
    leads = []
    for own, rows in enumerate(predictions.by_class):
        # How far another class is behind the own one; -inf where only others are possible.
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(predictions.probabilities[rows])
            lead = np.ascontiguousarray((logs[:, own][:, None] - logs).T)
        lead[np.isnan(lead)] = np.inf  # both impossible: never in the way
        lead[own] = np.inf
        weight = predictions.sample_weight[rows]
        leads.append((lead, weight / weight.sum()))
    return leads


def _risks(leads: Leads, theta: Vector) -> Vector:
    out = np.empty(len(theta))
    for own, (lead, share) in enumerate(leads):
        behind = (lead + (theta[own] - theta)[:, None]).min(axis=0) <= 0
        out[own] = share @ behind
    return out


def _slopes(leads: Leads, theta: Vector, width: float) -> Matrix:
    """Slopes of the class risks (rows) by the log-weights (columns)."""
    J = np.zeros((len(theta), len(theta)))
    for own, (lead, share) in enumerate(leads):
        distance = lead + (theta[own] - theta)[:, None]
        nearest = distance.min(axis=0)
        close = np.abs(nearest) < width
        rival = distance[:, close].argmin(axis=0)
        J[own] = np.bincount(rival, weights=share[close], minlength=len(theta))
        J[own, own] = -J[own].sum()
    return J / (2 * width)


# On folds, steadied where rows are few


def shrunk(weights: Vector, reference: Vector, amount: float) -> Vector:
    """The geometric mean of two weightings; an amount of 1 is the reference, 0 the weights."""
    return from_logs(_centered(weights) * (1 - amount) + _centered(reference) * amount)


def _centered(weights: Vector) -> Vector:
    logs = np.log(weights)
    return np.asarray(logs - logs.mean())


class FoldTuner:
    """Tunes decision weights on folds ``0..n_folds-1``, with any of them left out.

    Every class must have rows in three folds or more. A number is the amount of shrinkage of the
    best weights for the rows; "auto" averages them over the folds and chooses the amount.
    """

    def __init__(
        self, predictions: Predictions, folds: Indices, criterion: Criterion,
        shrinkage: Shrinkage, seed: int,
    ) -> None:  # fmt: skip
        self.n_folds = int(folds.max()) + 1
        self._predictions, self._folds, self._criterion = predictions, folds, criterion
        self._shrinkage, self._seed = shrinkage, seed
        # Up to a factor, which decides nothing.
        self._balanced = 1 / predictions.totals
        rows = predictions.effective_rows
        caps = np.minimum(rows / min(FULL_ROWS, rows.max()), 1.0)
        cautious = criterion.limited(caps) if len(caps) > 2 else criterion
        self._criteria = [criterion] if cautious is criterion else [criterion, cautious]
        self._tuned: dict[tuple[Folds, Criterion], Vector] = {}

    def choose(self, left_out: Folds = frozenset()) -> tuple[Vector, float]:
        """Weights from all folds but those left out, and how far they were shrunk."""
        if self._shrinkage != "auto":
            tuned = self._tune(left_out, self._criterion)
            return shrunk(tuned, self._balanced, self._shrinkage), self._shrinkage
        found = [self._steadied(left_out, criterion) for criterion in self._criteria]
        best = 0
        if len(found) > 1:
            best = last_as_good([table for _, _, table in found], self._criterion, CERTAIN)
        return found[best][:2]

    def _steadied(self, left_out: Folds, criterion: Criterion) -> tuple[Vector, float, Matrix]:
        """Averaged and shrunk weights, the amount, and what it does to folds left out in turn."""
        inner = [fold for fold in range(self.n_folds) if fold not in left_out]
        tuned = [self._tune(left_out | {fold}, criterion) for fold in inner]
        # Where rows count and not risks, two balanced classes are no guess at the best weights.
        known = self._predictions.n_classes == 2 and criterion.counted_by is not None
        amount, table = self._best_amount(
            inner, tuned, criterion, AMOUNTS[:1] if known else AMOUNTS
        )
        average = np.exp(np.mean([_centered(weights) for weights in tuned], axis=0))
        return shrunk(average, self._balanced, amount), amount, table

    def without(self, fold: int) -> Vector:
        """Weights that a fold can be judged by."""
        try:
            return self.choose(frozenset({fold}))[0]
        except UnattainableError as error:
            raise UnattainableError(
                f"{error} This holds without fold {fold}, which is left out to be judged: with all "
                "rows the floors are attainable, so more folds (a larger cv) may do."
            ) from error

    def _tune(self, left_out: Folds, criterion: Criterion) -> Vector:
        # Two folds are left out together once for each of them.
        key = left_out, criterion
        if key not in self._tuned:
            rows = np.flatnonzero(~np.isin(self._folds, list(left_out)))
            part = self._predictions.take(rows)
            enough = min(map(len, part.by_class)) >= ENOUGH_ROWS
            if self._shrinkage == "auto" and criterion.masses is not None and enough:
                self._tuned[key] = tune_resampled(part, criterion)
            else:
                self._tuned[key] = tune(part, criterion, self._seed)
        return self._tuned[key]

    def _best_amount(
        self, folds: list[int], tuned: list[Vector], criterion: Criterion, amounts: Sequence[float]
    ) -> tuple[float, Matrix]:
        """The largest amount that is as good as the best for folds left out, and its tables."""
        rows = [np.flatnonzero(self._folds == fold) for fold in folds]
        parts = [self._predictions.probabilities[part] for part in rows]
        judged, tables = self._predictions.take(np.concatenate(rows)), []
        for amount in amounts:
            weights = [shrunk(own, self._balanced, amount) for own in tuned]
            decided = np.concatenate(list(map(decide, parts, weights)))
            tables.append(group_tables(judged, decided))
        best = last_as_good(tables, criterion, NOISE)
        return amounts[best], tables[best]


def group_tables(judged: Predictions, decided: Indices) -> Matrix:
    """Tables of true class by decision, one for each of the jackknife's groups."""
    k, groups = judged.n_classes, np.zeros_like(judged.labels)
    # Dealt out class by class, so that no group takes all rows of a class.
    for own in judged.by_class:
        groups[own] = np.arange(len(own)) % GROUPS
    cells = (groups * k + judged.labels) * k + decided
    counts = np.bincount(cells, weights=judged.sample_weight, minlength=GROUPS * k * k)
    return np.asarray(counts, dtype=np.float64).reshape(GROUPS, k, k)


def last_as_good(tables: list[Matrix], criterion: Criterion, noise: float) -> int:
    """The last candidate whose value is the lowest, up to so many standard errors."""
    values = np.array([criterion.of_table(table.sum(axis=0)) for table in tables])
    without = np.array(
        [[criterion.of_table(table.sum(axis=0) - part) for part in table] for table in tables]
    )
    best = int(np.argmin(values))
    excess, excess_without = values - values[best], without - without[best]
    spread = excess_without - excess_without.mean(axis=1, keepdims=True)
    errors = np.sqrt((spread**2).sum(axis=1) * (GROUPS - 1) / GROUPS)
    return int(np.flatnonzero(excess <= noise * errors)[-1])
