r"""The largest value of a metric: averages over classes, and ratios of two classes.

All are functions of the right decisions :math:`h_i`, all decisions :math:`d_i` and the weight
:math:`n_i` of each class. Values are one minus the metric, so that smaller is better.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Matrix, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.goals.base import Criterion, Goal
from equipoise.metrics.fractional import LinearFractional
from equipoise.metrics.named import (
    METRICS,
    Metric,
    as_metric,
    fbeta,
    mean_fbeta,
    root_of_recalls,
)
from equipoise.text import listing
from equipoise.validation.numbers import check_number
from equipoise.weights.priors import check_prior

_F_BETA = re.compile(r"(macro_)?f(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class MacroFBeta(Criterion):
    r"""The mean over classes of :math:`(1+\beta^2) h_i / (\beta^2 n_i + d_i)`."""

    beta: float = 1.0
    needs_decided = True
    measures = "metric"

    def values(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> Vector:
        if decided is None:
            raise TypeError("macro F-beta depends on all decisions: see needs_decided.")
        return 1 - mean_fbeta(hits, decided, totals, self.beta)


@dataclass(frozen=True)
class GeometricMean(Criterion):
    r"""The geometric mean of the recalls :math:`h_i / n_i`."""

    measures = "metric"

    def values(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> Vector:
        return 1 - root_of_recalls(hits, totals)


@dataclass(frozen=True, eq=False)
class MeanRecall(Criterion):
    r"""The mean :math:`\sum_i m_i h_i / n_i` of the recalls with given masses.

    With the class shares as masses it is the accuracy, with equal ones the balanced accuracy.
    """

    mass: Vector
    measures = "metric"

    def values(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> Vector:
        return np.asarray((1 - hits / totals) @ self.mass)


@dataclass(frozen=True, eq=False)
class Ratio(Criterion):
    """A linear-fractional metric of two classes, the second being the positive one."""

    metric: LinearFractional
    measures = "metric"

    def values(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> Vector:
        true_negatives, true_positives = hits.T
        negatives, positives = totals
        false_positives = negatives - true_negatives
        ratio = self.metric.ratio(true_positives, false_positives, positives, negatives)
        return np.asarray(1 - ratio)


# For any number of classes, given their frequencies.
AVERAGES: dict[Any, Callable[[Vector], Criterion]] = {
    "accuracy": MeanRecall,
    "balanced_accuracy": lambda prior: MeanRecall(np.full(len(prior), 1 / len(prior))),
    "geometric_mean": lambda prior: GeometricMean(),
}
METRIC_NAMES = sorted({*AVERAGES, "macro_f1", *METRICS})


def is_metric(value: Any) -> bool:
    """Whether a value names or is a metric."""
    if isinstance(value, str):
        return value in METRIC_NAMES or _F_BETA.fullmatch(value) is not None
    return isinstance(value, LinearFractional) or (callable(value) and not isinstance(value, type))


class MetricGoal(Goal):
    """The largest value of a metric.

    Parameters
    ----------
    metric : str, LinearFractional or callable
        For any number of classes ``"macro_f1"`` (or another beta, ``"macro_f2"``),
        ``"geometric_mean"``, ``"balanced_accuracy"`` and ``"accuracy"``; for two classes, of which
        the second is the positive one, also ``"f1"`` (``"f0.5"``), ``"jaccard"`` and every
        linear-fractional metric of :mod:`equipoise.metrics`.

    Examples
    --------
    >>> from equipoise.goals import MetricGoal
    >>> MetricGoal("macro_f2").resolve([0.7, 0.2, 0.1])
    MacroFBeta(beta=2.0)
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Criterion:
        """One minus the metric, for classes of these frequencies."""
        names = np.arange(np.size(prior)) if classes is None else classes
        vector = check_prior(prior, names, name="prior")
        if not is_metric(self.metric):
            raise InvalidParameterError(
                "metric must be a linear-fractional metric or one of "
                f"{listing(METRIC_NAMES)}, got {self.metric!r}."
            )
        if self.metric in AVERAGES:
            return AVERAGES[self.metric](vector)
        named = _F_BETA.fullmatch(self.metric) if isinstance(self.metric, str) else None
        if named and named[1]:
            return MacroFBeta(check_number(float(named[2]), "beta", "(0, inf)"))
        if len(vector) != 2:
            raise InvalidParameterError(
                f"metric {self.metric!r} is defined for two classes and there are {len(vector)}. "
                "Use 'macro_f1', 'geometric_mean', 'balanced_accuracy' or 'accuracy'."
            )
        share = float(vector[1])
        metric = fbeta(float(named[2])) if named else as_metric(self.metric, share)
        return Ratio(metric.with_positive_denominator(share))

    @classmethod
    def examples(cls) -> list[Self]:
        """The averages over any number of classes."""
        return [cls("macro_f1"), cls("geometric_mean"), cls("balanced_accuracy"), cls("accuracy")]
