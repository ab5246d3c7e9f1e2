r"""A metric to be large on new rows: averages over classes, and ratios of two classes.

All are functions of the recalls :math:`r_i`, the class frequencies :math:`p_i` and the shares
:math:`d_i` of the population that are predicted as each class. Values are one minus the metric, so
that smaller is better.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.arrays import ArrayLike, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.goals.base import Criterion, Goal, SmoothCriterion, log_ratio
from equipoise.goals.own_metric import TableMetric, check_function, is_scorer, scorer_function
from equipoise.metrics.fractional import METRICS, LinearFractional, as_metric, fbeta
from equipoise.sets.registry import likely_goal
from equipoise.text import brief, listing
from equipoise.validation.numbers import check_number
from equipoise.weights.priors import named_prior

# f1, f0.5, f2_macro
_F_BETA = re.compile(r"f(?P<beta>\d+(?:\.\d+)?)(?P<macro>_macro)?")
# _LEAST_RECALL: recalls below count as this in the gradient of the geometric mean, which is
# infinite at 0.
_LEAST_RECALL = 1e-3


@dataclass(frozen=True, eq=False)
class MeanRecall(SmoothCriterion):
    """One minus a weighted mean of the recalls."""

    prior: Vector
    masses: Vector
    measures = "metric"

    @property
    def centre(self) -> Vector:
        return log_ratio(self.masses, self.prior)

    def of_rates(self, recalls: Vector, shares: Vector) -> float:
        return float((1 - recalls) @ self.masses)

    def smooth(self, recalls: Vector, shares: Vector) -> tuple[float, Vector, Vector]:
        return self.of_rates(recalls, shares), -self.masses, np.zeros_like(shares)


@dataclass(frozen=True, eq=False)
class GeometricMean(SmoothCriterion):
    """One minus the geometric mean of the recalls."""

    prior: Vector
    measures = "metric"

    def of_rates(self, recalls: Vector, shares: Vector) -> float:
        # Roots first: a product of a thousand recalls would vanish.
        return float(1 - np.prod(np.maximum(recalls, 0.0) ** (1 / len(recalls))))

    def smooth(self, recalls: Vector, shares: Vector) -> tuple[float, Vector, Vector]:
        some = np.maximum(recalls, _LEAST_RECALL)
        value = self.of_rates(some, shares)
        return value, -(1 - value) / (len(some) * some), np.zeros_like(shares)


@dataclass(frozen=True, eq=False)
class MeanFBeta(SmoothCriterion):
    r"""One minus the mean of the classes' F-beta.

    .. math:: F_i = \frac{(1 + \beta^2) \, p_i r_i}{\beta^2 p_i + d_i}
    """

    prior: Vector
    beta: float
    measures = "metric"

    @property
    def centre(self) -> Vector:
        return f_centre(self.beta, self.prior)

    def of_rates(self, recalls: Vector, shares: Vector) -> float:
        return self.smooth(recalls, shares)[0]

    def smooth(self, recalls: Vector, shares: Vector) -> tuple[float, Vector, Vector]:
        square, p, k = self.beta**2, self.prior, len(self.prior)
        slope = (1 + square) * p / (square * p + shares) / k
        loss = float(1 - slope @ recalls)
        return loss, -slope, slope * recalls / (square * p + shares)


@dataclass(frozen=True, eq=False)
class FractionalLoss(SmoothCriterion):
    """One minus a linear-fractional metric of two classes, of which the second is the positive."""

    prior: Vector
    metric: LinearFractional
    beta: float
    measures = "metric"

    @property
    def centre(self) -> Vector:
        return f_centre(self.beta, self.prior)

    def of_rates(self, recalls: Vector, shares: Vector) -> float:
        (p0, p1), (r0, r1) = self.prior, recalls
        return float(1 - self.metric.ratio(p1 * r1, p0 * (1 - r0), p1, p0))

    def smooth(self, recalls: Vector, shares: Vector) -> tuple[float, Vector, Vector]:
        (p0, p1), (r0, r1) = self.prior.tolist(), recalls.tolist()
        loss, a, b = self.of_rates(recalls, shares), self.metric.numerator, self.metric.denominator
        below = b.total(p1 * r1, p0 * (1 - r0), p1, p0)
        by_tp = (a.tp - a.fn - (1 - loss) * (b.tp - b.fn)) / below
        by_fp = (a.fp - a.tn - (1 - loss) * (b.fp - b.tn)) / below
        return loss, np.array([p0 * by_fp, -p1 * by_tp]), np.zeros(2)


def f_centre(beta: float, prior: Vector) -> Vector:
    r"""Log-weights between none and balanced ones, :math:`-\beta^2 / (1 + \beta^2) \log p`.

    Balanced decisions are the best for recalls, which a large beta comes to.
    """
    lean = beta**2 / (1 + beta**2)
    return np.asarray(lean * log_ratio(np.ones(len(prior)), prior))


def _mean_fbeta(beta: float, prior: Vector) -> MeanFBeta:
    if not prior.all():
        raise InvalidParameterError(
            f"class_prior must be positive for every class, got {prior.tolist()}: a class that the "
            "population lacks has no F-beta."
        )
    return MeanFBeta(prior, beta)


def _mean_recall(prior: Vector) -> MeanRecall:
    return MeanRecall(prior, np.full(len(prior), 1 / len(prior)))


# For any number of classes, given their frequencies; scikit-learn has two names for one of them.
AVERAGES: dict[Any, Callable[[Vector], Criterion]] = {
    "accuracy": lambda prior: MeanRecall(prior, prior),
    "balanced_accuracy": _mean_recall,
    "geometric_mean": GeometricMean,
    "recall_macro": _mean_recall,
}
METRIC_NAMES = sorted({*AVERAGES, "f1_macro", *METRICS})
# What a word that is no metric may mean.
LIKELY_METRICS = [*METRIC_NAMES, "f2", "f0.5", "f2_macro", "f0.5_macro"]


# Names that stand for metrics of ours, whatever scorers have them.
_KNOWN = frozenset(METRIC_NAMES)


def is_metric(value: Any) -> bool:
    """Whether a value names or is a metric."""
    if isinstance(value, str):
        known = value in METRIC_NAMES or _F_BETA.fullmatch(value) is not None
        return known or is_scorer(value)
    return isinstance(value, LinearFractional) or (callable(value) and not isinstance(value, type))


def _is_of_table(metric: Any) -> bool:
    """Whether a function is one of confusion matrices, not one that makes a metric from a share."""
    if isinstance(metric, str | LinearFractional):
        return False
    try:
        return not isinstance(metric(0.5), LinearFractional)
    except Exception:
        return True


class MetricGoal(Goal):
    """A metric whose value on new rows is to be large.

    Parameters
    ----------
    metric : str, LinearFractional or callable
        For any number of classes ``"f1_macro"`` (or another beta, ``"f2_macro"``),
        ``"geometric_mean"``, ``"balanced_accuracy"`` (or ``"recall_macro"``, which is the same) and
        ``"accuracy"``; for two classes, of which the second is the positive one, also ``"f1"``
        (``"f0.5"``), ``"jaccard"`` and every linear-fractional metric of
        :mod:`equipoise.metrics`. A function of your own takes the confusion matrix of population
        shares (rows by true class, columns by predicted class, all cells summing to one) and
        returns a number that is to be large. Scorers of scikit-learn, by name or as objects, are
        taken where the confusion matrix determines them.
    gradient : callable, default=None
        The derivatives of a function of your own by the cells of the confusion matrix, of its
        shape; None takes differences, of two values for each class.

    Examples
    --------
    >>> from equipoise.goals import MetricGoal
    >>> MetricGoal("accuracy").resolve([0.7, 0.3]).value(np.array([[7.0, 0.0], [2.0, 1.0]]))
    0.2
    >>> MetricGoal("matthews_corrcoef").resolve([0.5, 0.5]).value(np.eye(2))
    0.0
    """

    def __init__(self, metric: Any, gradient: Any = None) -> None:
        self.metric = metric
        self.gradient = gradient

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Criterion:
        """One minus the metric, for classes of these frequencies."""
        vector, names = named_prior(prior, classes)
        self._check_gradient()
        if is_scorer(self.metric) and self.metric not in _KNOWN:
            return TableMetric(vector, scorer_function(self.metric, names))
        if not is_metric(self.metric):
            raise InvalidParameterError(
                "metric must be a linear-fractional metric or one of "
                f"{listing(METRIC_NAMES)}, got {self.metric!r}"
                f"{likely_goal(self.metric, LIKELY_METRICS, ())}."
            )
        if _is_of_table(self.metric):
            check_function(self.metric)
            return TableMetric(vector, self.metric, self.gradient)
        if self.metric in AVERAGES:
            return AVERAGES[self.metric](vector)
        named = _F_BETA.fullmatch(self.metric) if isinstance(self.metric, str) else None
        if named and named["macro"]:
            return _mean_fbeta(check_number(float(named["beta"]), "beta", "(0, inf)"), vector)
        if len(vector) != 2:
            raise InvalidParameterError(
                f"metric {self.metric!r} is defined for two classes and there are {len(vector)}. "
                "Use 'f1_macro', 'geometric_mean', 'balanced_accuracy' or 'accuracy'."
            )
        share = float(vector[1])
        beta = float(named["beta"]) if named else 1.0
        metric = fbeta(beta) if named else as_metric(self.metric, share)
        return FractionalLoss(vector, metric.with_positive_denominator(share), beta)

    def _check_gradient(self) -> None:
        own = is_metric(self.metric) and not is_scorer(self.metric) and _is_of_table(self.metric)
        if self.gradient is not None and not (own and callable(self.gradient)):
            raise InvalidParameterError(
                "gradient must be a function of the confusion matrix beside a metric that is one, "
                f"or None, got {brief(self.gradient)} beside {brief(self.metric)}."
            )

    @classmethod
    def examples(cls) -> list[Self]:
        """The averages over any number of classes."""
        return [cls("f1_macro"), cls("geometric_mean"), cls("balanced_accuracy"), cls("accuracy")]
