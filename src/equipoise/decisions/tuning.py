r"""Decision weights tuned on folds, steadied where rows are few, and judged on rows left out.

Tuned weights fit the noise of their rows, the more so the fewer rows a class has. They are
therefore averaged over the folds, each left out in turn, and drawn towards balanced ones,

.. math:: \log w = (1 - \lambda) \, \overline{\log w_{-f}} + \lambda \log w_{\mathrm{balanced}},

with an amount :math:`\lambda` that is chosen by cross-validation over the folds. What is reported
of fold ``f`` comes from weights that were tuned, and from an amount that was chosen, without it.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.decisions.left_out import (
    FOLDS_OF_A_CLASS,
    Predictions,
    decide,
    refuse_few,
    threshold_of,
)
from equipoise.decisions.search import from_logs, tune, tune_resampled
from equipoise.exceptions import InvalidParameterError, UnattainableError
from equipoise.goals import Criterion, Goal
from equipoise.risks import RiskIntervals, class_risk_intervals
from equipoise.validation.numbers import check_number
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.by_class import ByClass, class_lines
from equipoise.weights.priors import balanced_weights

# Amounts of shrinkage that are compared. Of amounts whose values differ by less than this share of
# a standard error the largest is taken; a whole one gives too much away where rows are many.
AMOUNTS = (0.0, 0.25, 0.5, 0.75, 1.0)
NOISE = 0.25
# Where every class has so many rows, weights are averaged over resamples of each part as well.
ENOUGH_ROWS = 100
# Groups of rows that the jackknife leaves out in turn.
GROUPS = 20
# What to do with a class of too few rows.
RARE = ("error", "keep", "drop")

Shrinkage = float | Literal["auto"]
Folds = frozenset[int]


@dataclass(frozen=True, eq=False, repr=False)
class TunedWeights:
    r"""Decision weights, and what they do to rows that they were not tuned on.

    Attributes
    ----------
    weights : decision weights :math:`w` by class with :math:`\sum_i p_i w_i = 1`, :math:`p` the
        class shares of the rows. None where a cost matrix says more than weights can.
    threshold : for two classes, the second is decided where its probability is above this.
    class_risks : share of wrong decisions in each class; nan for a class of too few rows.
    class_risk_intervals : the same with confidence intervals.
    robust_risk : the worst case of the risks over the set of weightings, if there is one.
    metric_value : the metric, if there is one.
    fold_weights : weights that each fold was judged by, of shape (n_folds, n_classes): how far they
        differ says how uncertain the choice is.
    folds : fold of every row, the line of ``fold_weights`` that its label had no part in.
    shrinkage : how far the weights were drawn towards balanced ones.
    costs : costs beyond those of the right decision, where they decide.

    Examples
    --------
    >>> from equipoise import tune_weights
    >>> tune_weights([0] * 9 + [1] * 6, [0.1] * 9 + [0.4] * 6, "worst-class")
    class weight   risk lower upper
    0:    0.833333 0    0     0.336267
    1:    1.25     0    0     0.459258
    """

    weights: ByClass | None
    threshold: float | None
    class_risks: ByClass
    class_risk_intervals: RiskIntervals
    robust_risk: float | None = None
    metric_value: float | None = None
    fold_weights: Matrix | None = None
    folds: Indices | None = None
    shrinkage: float | None = None
    costs: Matrix | None = None

    def decide(self, probabilities: ArrayLike) -> NDArray[Any]:
        """The class of every row of probabilities.

        Parameters
        ----------
        probabilities : array-like of shape (n_rows, n_classes)
            Or of shape (n_rows,) for two classes, about the second.
        """
        classes = self.class_risks.classes
        table = as_probabilities(probabilities, len(classes))
        weights = None if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        return np.asarray(classes[decide(table, weights, self.costs)])

    def __repr__(self) -> str:
        intervals = self.class_risk_intervals
        columns = {"weight": self.weights, "risk": self.class_risks}
        columns |= {"lower": intervals.lower, "upper": intervals.upper}
        shown = {name: values for name, values in columns.items() if values is not None}
        return "\n".join(class_lines(**shown))


def check_shrinkage(shrinkage: Any, goal: Goal) -> Shrinkage:
    """An amount from 0 to 1, or "auto"; weights that keep floors cannot be drawn elsewhere."""
    named = isinstance(shrinkage, str) and shrinkage == "auto"
    if isinstance(shrinkage, str) and not named:
        raise InvalidParameterError(
            f'shrinkage must be "auto" or a number in [0, 1], got {shrinkage!r}.'
        )
    amount = 0.0 if named else check_number(shrinkage, "shrinkage", "[0, 1]")
    if goal.may_shrink:
        return "auto" if named else amount
    if amount > 0:
        raise InvalidParameterError(
            f'shrinkage must be "auto" or 0 for {type(goal).__name__}, got {shrinkage!r}: weights '
            "drawn towards balanced ones would not keep the floors."
        )
    return 0.0


def tune_predicted(
    predictions: Predictions,
    folds: Indices,
    goal: Goal,
    prior: ByClass,
    *,
    shrinkage: Shrinkage = "auto",
    rare: str = "error",
) -> TunedWeights:
    """Weights for rows that were predicted elsewhere; known ones are judged.

    Parameters
    ----------
    predictions : the rows.
    folds : fold of every row, ``0..n_folds-1``.
    goal : what the weights are for.
    prior : class frequencies of the population.
    shrinkage, rare : as in :class:`~equipoise.estimators.PlugInClassifier`.
    """
    classes, vector, shares = prior.classes, np.asarray(prior), predictions.prior
    counts = np.bincount(predictions.labels, minlength=len(classes))
    few, rule = counts < 1, "a row of every class to be judged by"
    if not goal.is_known:
        n = int(folds.max()) + 1
        cells = np.bincount(predictions.labels * n + folds, minlength=n * len(classes))
        few = np.count_nonzero(cells.reshape(-1, n), axis=1) < FOLDS_OF_A_CLASS
        rule = f"at least {FOLDS_OF_A_CLASS} rows of every class in the tuning part"
    refuse_few(few, rule, counts, classes, rare)
    if goal.is_known:
        weights, costs = goal.resolve(vector, classes).known(shares)
        decided = decide(predictions.probabilities, weights, costs)
        return _judged(predictions, decided, few, weights, classes, costs=costs)
    criterion = goal.resolve_some(vector, classes, few)
    return tune_on_folds(
        predictions, folds, criterion, ByClass(shares, classes),
        few=few, drop=rare == "drop", shrinkage=shrinkage,
    )  # fmt: skip


def tune_on_folds(
    predictions: Predictions,
    folds: Indices,
    criterion: Criterion,
    shares: ByClass,
    *,
    few: Mask,
    drop: bool = False,
    shrinkage: Shrinkage = "auto",
) -> TunedWeights:
    """Weights tuned on all rows, and judged fold by fold on rows left out.

    Parameters
    ----------
    predictions : rows that their models have not seen.
    folds : fold of every row, ``0..n_folds-1``.
    criterion : what the weights are for, among the classes that have rows enough.
    shares : class frequencies of the rows that the probabilities were learnt from.
    few : which classes have too few rows to be tuned or judged.
    drop : whether these are never decided; otherwise they have weight 1.
    shrinkage : how far weights are drawn towards balanced ones.
    """
    rows = np.flatnonzero(~few[predictions.labels])
    tuner = FoldTuner(predictions.among(~few), folds[rows], criterion, shrinkage)
    tuned, amount = tuner.choose()
    fold_tuned = [tuner.without(fold) for fold in range(tuner.n_folds)]
    weights, *fold_weights = (
        _of_all_classes(own, np.asarray(shares), few, drop) for own in (tuned, *fold_tuned)
    )
    decided = np.empty(len(folds), dtype=np.intp)
    for fold, own in enumerate(fold_weights):
        here = folds == fold
        decided[here] = decide(predictions.probabilities[here], own)
    found = _judged(predictions, decided, few, weights, shares.classes)
    # A decision for a class that was not tuned is an error like any other.
    table = predictions.take(rows).table(decided[rows])
    value = _value(criterion, table[:, ~few][~few], table.sum(axis=1)[~few])
    return replace(
        found,
        robust_risk=value if criterion.measures == "risk" else None,
        metric_value=1 - value if criterion.measures == "metric" else None,
        fold_weights=np.array(fold_weights),
        shrinkage=amount,
    )


def _of_all_classes(weights: Vector, shares: Vector, few: Mask, drop: bool) -> Vector:
    r"""Weights of all classes with :math:`\sum_i p_i w_i = 1` over the classes that count."""
    own = shares[~few]
    every = np.full(len(few), 0.0 if drop else 1.0)
    every[~few] = weights * (own.sum() / (own @ weights))
    return every


def _value(criterion: Criterion, table: Matrix, totals: Vector | None = None) -> float:
    """The value of a table of weights by true class (first) and decision (second)."""
    totals = table.sum(axis=1) if totals is None else totals
    return float(criterion.values(np.diag(table)[None], table.sum(axis=0)[None], totals)[0])


def _judged(
    predictions: Predictions,
    decided: Indices,
    few: Mask,
    weights: Vector | None,
    classes: NDArray[Any],
    costs: Matrix | None = None,
) -> TunedWeights:
    """Risks of decisions; that of a class of too few rows is nan, somewhere from 0 to 1."""
    rows, enough = np.flatnonzero(~few[predictions.labels]), np.flatnonzero(~few)
    found = class_risk_intervals(
        predictions.labels[rows], decided[rows],
        classes=enough, sample_weight=predictions.sample_weight[rows],
    )  # fmt: skip

    def with_few(values: ByClass, unknown: float) -> ByClass:
        every = np.full(len(classes), unknown)
        every[enough] = np.asarray(values)
        return ByClass(every, classes)

    intervals = replace(
        found,
        risks=with_few(found.risks, np.nan),
        lower=with_few(found.lower, 0.0),
        upper=with_few(found.upper, 1.0),
    )
    named = None if weights is None else ByClass(weights, classes)
    return TunedWeights(named, threshold_of(weights), intervals.risks, intervals, costs=costs)


def shrunk(weights: Vector, reference: Vector, amount: float) -> Vector:
    """The geometric mean of two weightings; an amount of 1 is the reference, 0 the weights."""
    return from_logs(_centered(weights) * (1 - amount) + _centered(reference) * amount)


def _centered(weights: Vector) -> Vector:
    logs = np.log(weights)
    return np.asarray(logs - logs.mean())


class FoldTuner:
    """Tunes decision weights on folds, with any of them left out.

    Parameters
    ----------
    predictions : Predictions
        All rows; every class has rows in three folds or more.
    folds : array of shape (n_rows,)
        Fold of every row, ``0..n_folds-1``.
    criterion : Criterion
        What the weights are for.
    shrinkage : float or "auto"
        The amount of shrinkage of the best weights for the rows; or the wish to average them over
        the folds and to choose the amount.
    """

    def __init__(
        self, predictions: Predictions, folds: Indices, criterion: Criterion, shrinkage: Shrinkage
    ) -> None:
        self.n_folds = int(folds.max()) + 1
        self._predictions, self._folds, self._criterion = predictions, folds, criterion
        self._shrinkage = shrinkage
        self._balanced = balanced_weights(predictions.prior)
        self._tuned: dict[Folds, Vector] = {}

    def choose(self, left_out: Folds = frozenset()) -> tuple[Vector, float]:
        """Weights from all folds but those left out, and how far they were shrunk."""
        if self._shrinkage != "auto":
            amount = self._shrinkage
            return shrunk(self._tune(left_out), self._balanced, amount), amount
        others = [left_out | {fold} for fold in range(self.n_folds) if fold not in left_out]
        amount = self._best_amount(left_out)
        average = np.exp(np.mean([_centered(self._tune(rest)) for rest in others], axis=0))
        return shrunk(average, self._balanced, amount), amount

    def without(self, fold: int) -> Vector:
        """Weights that a fold can be judged by."""
        try:
            return self.choose(frozenset({fold}))[0]
        except UnattainableError as error:
            raise UnattainableError(
                f"{error} This holds without fold {fold}, which is left out to be judged: with all "
                "rows the floors are attainable, so more folds (a larger cv) may do."
            ) from error

    def _tune(self, left_out: Folds) -> Vector:
        # Two folds are left out together once for each of them.
        if left_out not in self._tuned:
            rows = np.flatnonzero(~np.isin(self._folds, list(left_out)))
            self._tuned[left_out] = self._weights(self._predictions.take(rows))
        return self._tuned[left_out]

    def _weights(self, predictions: Predictions) -> Vector:
        masses = self._criterion.masses if self._shrinkage == "auto" else None
        if masses is None or min(map(len, predictions.by_class)) < ENOUGH_ROWS:
            return tune(predictions, self._criterion)
        return tune_resampled(predictions, self._criterion, masses)

    def _best_amount(self, left_out: Folds) -> float:
        """The largest amount that is as good as the best, up to noise, on folds left out next."""
        inner = [fold for fold in range(self.n_folds) if fold not in left_out]
        rows = [np.flatnonzero(self._folds == fold) for fold in inner]
        tuned = [self._tune(left_out | {fold}) for fold in inner]
        judged = self._predictions.take(np.concatenate(rows))
        decisions = [
            self._decisions(rows, [shrunk(weights, self._balanced, amount) for weights in tuned])
            for amount in AMOUNTS
        ]
        return AMOUNTS[_largest_as_good(judged, decisions, self._criterion)]

    def _decisions(self, rows: list[Indices], weights: list[Vector]) -> Indices:
        probabilities = self._predictions.probabilities
        parts = [decide(probabilities[part], w) for part, w in zip(rows, weights, strict=True)]
        return np.concatenate(parts)


def _largest_as_good(judged: Predictions, decisions: list[Indices], criterion: Criterion) -> int:
    """The last candidate whose value is the lowest, up to the noise of the comparison."""
    tables = [_tables(judged, decided) for decided in decisions]
    values = np.array([_value(criterion, table.sum(axis=0)) for table in tables])
    without = np.array(
        [[_value(criterion, table.sum(axis=0) - part) for part in table] for table in tables]
    )
    best = int(np.argmin(values))
    excess, excess_without = values - values[best], without - without[best]
    spread = excess_without - excess_without.mean(axis=1, keepdims=True)
    errors = np.sqrt((spread**2).sum(axis=1) * (GROUPS - 1) / GROUPS)
    return int(np.flatnonzero(excess <= NOISE * errors)[-1])


def _tables(judged: Predictions, decided: Indices) -> Matrix:
    """Tables of true class by decision, one for each of the jackknife's groups."""
    k, labels = judged.n_classes, judged.labels
    # Dealt out class by class, so that no group takes all rows of a class.
    order = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels))])[labels[order]]
    groups = np.empty_like(labels)
    groups[order] = (np.arange(len(labels)) - starts) % GROUPS
    cells = (groups * k + labels) * k + decided
    counts = np.bincount(cells, weights=judged.sample_weight, minlength=GROUPS * k * k)
    return np.asarray(counts, dtype=np.float64).reshape(GROUPS, k, k)
