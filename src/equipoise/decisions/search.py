r"""The search for decision weights: exact along lines, from several starts, then on all rows.

The value is piecewise constant in the log-weights. Descent goes along lines that raise one class,
or a group of the worst classes together: all of them are looked at at once, and the best is taken,
until none of them helps. Of very many rows only those matter in the end whose decision small
changes can still turn: the search runs on a sample first, and then on these.

Tuned weights fit the noise of their rows, the more so the fewer rows a class has. They are
therefore averaged over the folds, each left out in turn, and drawn towards balanced ones,

.. math:: \log w = (1 - \lambda) \, \overline{\log w_{-f}} + \lambda \log w_{\mathrm{balanced}},

with an amount :math:`\lambda` that is chosen by cross-validation over the folds; for metrics of two
classes that count rows, such as F1, whose best weights are not nearly balanced, it is 0. What is
reported of fold ``f`` comes from weights that were tuned, and from an amount that was chosen,
without it. Searches whose weights are averaged are short, and those without one fold begin where
those without that and another have ended: they have seen no more.

Of three classes or more, one of a handful of rows can be the worst whatever the weights, and let
all others err as often as it does. Weights are then tuned a second time with no more mass on a
class than its rows are a share of ``FULL_ROWS``, and these are taken unless the first are better by
three standard errors.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.decisions.left_out import Predictions, decide
from equipoise.decisions.lines import ROUGH, ROUGH_NEARBY, OpenDecisions, equalized
from equipoise.exceptions import UnattainableError
from equipoise.goals import Criterion
from equipoise.goals.base import first_lowest

# A descent takes so many moves at most; where one class gains less than ENOUGH, groups are looked
# at, too; gains below PROGRESS are rounding.
MOVES = 200
ENOUGH = 1e-5
PROGRESS = 1e-12
# Rows on which starts are compared, and rows of the samples before all rows are looked at.
SIZES = (4_000, 12_000)
# Rows on which log-weights are brought nearer without searching lines.
LARGE = 30_000
# Random starts beside those with a meaning, how far they stray, and restarts around an optimum.
RANDOM_STARTS, STRAY = 6, 1.0
RESTARTS, NEARBY = 10, 0.3
# Starts of a short search, the best of the usual ones, and the least that a move must gain.
SHORT_STARTS, SHORT_GAIN = 2, 5e-4
# Resamples that weights are averaged over; those of two classes cost next to nothing.
RESAMPLES, OF_TWO_CLASSES = 5, 10
# How far log-weights may move when only the rows that this can turn are looked at.
REACH = 0.05
LAST_ROUNDS = 3
# Keeps equal probabilities of two classes from being ties.
JITTER = 1e-9
# Rows of one block when all rows are looked at.
BLOCK = 1 << 14
# How far apart log-weights may be.
FURTHEST = 600.0

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


def tune(
    predictions: Predictions,
    criterion: Criterion,
    seed: int = 0,
    starts: Sequence[Vector] | None = None,
) -> Vector:
    """Decision weights with the lowest value that the search finds; they sum to one.

    Weights that are averaged over folds need not be the best for their rows: with ``starts``, or
    none in a list, the search is short, and begins at the best of them.

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
        weights = from_logs(_search(predictions, wanted, gaps, starts))
        risks = 1 - np.diag(predictions.confusion(weights)) / predictions.totals
        wanted = wanted.instead(risks)
    return weights


def _leads(predictions: Predictions) -> list[tuple[Matrix, Vector]]:
    """For each class, how far other classes are behind on its rows, and the rows' shares."""
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


def tune_resampled(predictions: Predictions, criterion: Criterion) -> Vector:
    """The geometric mean of the weights of resamples: steadier than the optimum of a few rows.

    The optimum of a piecewise constant value fits the very rows it was tuned on; the mean keeps
    what resamples, each class drawn from its own rows, agree on. Classes of few rows do not lend
    themselves to it: their resamples hold too few different rows to show where risks rise and fall.
    """
    rng, found = np.random.default_rng(0), list[Vector]()
    # Not from the optimum: resamples would all stay at what it learnt by heart.
    start, radii = np.asarray(-np.log(predictions.prior)), ROUGH
    two = predictions.n_classes == 2
    for _ in range(OF_TWO_CLASSES if two else RESAMPLES):
        rows = np.concatenate([rng.choice(own, len(own)) for own in predictions.by_class])
        drawn = predictions.take(rows)
        theta = (
            _two_classes(drawn, criterion, None)
            if two
            else equalized(drawn, criterion, start, radii)
        )
        found.append(theta - theta.mean())
        start, radii = np.mean(found, axis=0), ROUGH_NEARBY
    return from_logs(np.mean(found, axis=0))


def from_logs(theta: Vector) -> Vector:
    """Decision weights that sum to one, from their logarithms."""
    # Further apart, the smallest weight would be no positive number any more.
    weights = np.exp(np.maximum(theta - theta.max(), -FURTHEST))
    return np.asarray(weights / weights.sum())


def _search(
    predictions: Predictions, criterion: Criterion, gaps: Matrix | None,
    near: Sequence[Vector] | None,
) -> Vector:  # fmt: skip
    """Log-weights with the lowest value that the search finds among those that keep gaps."""
    if predictions.n_classes == 2:
        return _two_classes(predictions, criterion, gaps)
    rng, n_rows = np.random.default_rng(0), len(predictions.labels)
    few = _sample(predictions, SIZES[0], rng)
    many = n_rows > SIZES[-1]
    theta = (
        _thorough(few, criterion, gaps, rng, many=many)
        if near is None
        else _short(few, criterion, gaps, near)
    )
    for smaller, size in pairwise(SIZES):
        if n_rows > smaller:
            larger = _sample(predictions, size, rng)
            _, theta = _descended(larger, criterion, equalized(larger, criterion, theta), gaps)
    if many:
        theta = equalized(_sample(predictions, LARGE, rng), criterion, theta)
        # Of all rows only those that can turn are looked at again.
        rows, settled = _open_rows(predictions, theta)
        state = OpenDecisions(predictions.take(rows), theta, settled, REACH, gaps)
        _descend_in_turn(state, criterion)
        theta = state.theta
    return theta


def _thorough(
    rows: Predictions, criterion: Criterion, gaps: Matrix | None, rng: np.random.Generator,
    *, many: bool,
) -> Vector:  # fmt: skip
    """The best log-weights that lines lead to from many starts; rows of many need only a few."""
    balanced = -np.log(rows.prior)
    # The more rows, the fewer local optima.
    strays = STRAY * rng.standard_normal((0 if many else RANDOM_STARTS, len(balanced)))
    starts = [balanced, *(balanced + strays)]
    # Where risks alone count, the scale of the probabilities should not matter.
    if many or criterion.counted_by is not None:
        starts[1:1] = [0.5 * balanced, np.zeros_like(balanced)]
    if criterion.masses is not None:
        better = [equalized(rows, criterion, theta) for theta in starts[:2]]
        starts = better if many else starts + better
    found = [_descended(rows, criterion, start, gaps) for start in starts]
    value, theta = found[first_lowest(np.array([value for value, _ in found]))]
    for _ in range(0 if many else RESTARTS):
        nearby = theta + NEARBY * rng.standard_normal(len(theta))
        other, point = _descended(rows, criterion, nearby, gaps)
        if other < value - PROGRESS:
            value, theta = other, point
    return theta


def _short(
    rows: Predictions, criterion: Criterion, gaps: Matrix | None, near: Sequence[Vector]
) -> Vector:
    """Log-weights that lines lead to from the best of some weights, or of a few usual ones."""
    starts = [np.log(weights) for weights in near]
    if not starts:
        balanced = -np.log(rows.prior)
        starts = [balanced]
        if criterion.masses is not None:
            starts.append(equalized(rows, criterion, balanced, ROUGH))
        if criterion.counted_by is not None:
            starts += [0.5 * balanced, np.zeros_like(balanced)]
    starts.sort(key=lambda theta: criterion.of_table(rows.confusion(from_logs(theta))))
    best = starts[: 1 if near else SHORT_STARTS]
    found = [_descended(rows, criterion, start, gaps, SHORT_GAIN) for start in best]
    return found[first_lowest(np.array([value for value, _ in found]))][1]


def _two_classes(predictions: Predictions, criterion: Criterion, gaps: Matrix | None) -> Vector:
    """The best of all thresholds that keep gaps."""
    state = OpenDecisions(predictions, _raised(np.zeros(2), gaps), gaps=gaps)
    second = np.array([False, True])
    _, shift, _ = state.best_shift(second[None], criterion, exact=True)
    return np.asarray(state.theta + shift * second)


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
    predictions: Predictions, criterion: Criterion, theta: Vector, gaps: Matrix | None,
    least: float = PROGRESS,
) -> tuple[float, Vector]:  # fmt: skip
    """Where lines lead from log-weights, and the value there."""
    apart = theta + JITTER * np.sqrt(np.arange(2.0, 2 + len(theta)))
    state = OpenDecisions(predictions, _raised(apart, gaps), gaps=gaps)
    return _descend(state, criterion, least), state.theta


def _descend(state: OpenDecisions, criterion: Criterion, least: float) -> float:
    """Improve along the best of all lines, by no less than so much a move."""
    value, classes = np.inf, np.eye(len(state.theta), dtype=bool)
    for _ in range(MOVES):
        group, shift, lowest = state.best_shift(classes, criterion)
        if lowest > value - max(ENOUGH, least) and len(classes) > 3:
            others = state.best_shift(_worst_groups(state.risks()), criterion)
            if others[2] < lowest:
                group, shift, lowest = others
        if lowest > value - least:
            break
        state.move(group, shift)
        value = lowest
    return value


def _descend_in_turn(state: OpenDecisions, criterion: Criterion) -> None:
    """Improve along the lines of all classes, one after the other."""
    value = np.inf
    for group in LAST_ROUNDS * list(np.eye(len(state.theta), dtype=bool)[:, None]):
        _, shift, lowest = state.best_shift(group, criterion)
        if lowest < value - PROGRESS:
            state.move(group[0], shift)
            value = lowest


def _worst_groups(risks: Vector) -> Mask:
    """The two worst classes together, the three worst, and so on."""
    ranks = np.argsort(np.argsort(-risks))
    return ranks < np.arange(2, len(risks) - 1)[:, None]


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
            if self._shrinkage != "auto":
                self._tuned[key] = tune(part, criterion, self._seed)
            elif criterion.masses is not None and enough:
                self._tuned[key] = tune_resampled(part, criterion)
            else:
                # From weights that have seen no more: those with another fold left out as well.
                rest = range(self.n_folds) if len(left_out) < 2 else ()
                starts = [
                    self._tune(left_out | {fold}, criterion)
                    for fold in rest
                    if fold not in left_out
                ]
                self._tuned[key] = tune(part, criterion, self._seed, starts)
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
    """The last candidate whose value is the lowest, up to so many standard errors.

    Of tables without any fold, where rows are too few to be judged, nothing is known.
    """
    if not all(map(len, tables)):
        return len(tables) - 1
    values = np.array([criterion.of_table(table.sum(axis=0)) for table in tables])
    without = np.array(
        [[criterion.of_table(table.sum(axis=0) - part) for part in table] for table in tables]
    )
    best = int(np.argmin(values))
    errors = excess_errors(without, best)
    return int(np.flatnonzero(values - values[best] <= noise * errors)[-1])


def excess_errors(without: Matrix, best: int) -> Vector:
    """Standard errors of how far candidates lie above one of them, by the jackknife.

    ``without`` has a line for each candidate, its values with each group of rows left out.
    """
    excess, n_groups = without - without[best], without.shape[1]
    spread = excess - excess.mean(axis=1, keepdims=True)
    return np.asarray(np.sqrt((spread**2).sum(axis=1) * (n_groups - 1) / n_groups))
