r"""A metric to be large on new rows: averages over classes, and ratios of two classes.

All are functions of the right decisions :math:`h_i`, all decisions :math:`d_i` and the weight
:math:`n_i` of each class. Values are one minus the metric, so that smaller is better.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.arrays import ArrayLike, Matrix, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.goals.base import Criterion, Goal
from equipoise.metrics.fractional import (
    METRICS,
    LinearFractional,
    Metric,
    as_metric,
    fbeta,
    mean_fbeta,
    root_of_recalls,
)
from equipoise.text import did_you_mean, listing
from equipoise.validation.numbers import check_number
from equipoise.weights.priors import named_prior

_F_BETA = re.compile(r"(macro_)?f(\d+(?:\.\d+)?)")


@dataclass(frozen=True, eq=False)
class MetricLoss(Criterion):
    """One minus a metric, as a function of the right decisions, all decisions and the totals."""

    loss: Callable[[Matrix, Any, Vector], Vector]
    needs_decided: bool = False
    counted_by: Vector | None = None
    lean: float | None = None
    measures = "metric"

    def values(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> Vector:
        return self.loss(hits, decided, totals)


def _mean_recall(mass: Vector, counted_by: Vector | None = None) -> MetricLoss:
    return MetricLoss(
        lambda hits, _, totals: np.asarray((1 - hits / totals) @ mass), counted_by=counted_by
    )


def _mean_fbeta(beta: float, prior: Vector) -> MetricLoss:
    if not prior.all():
        raise InvalidParameterError(
            f"class_prior must be positive for every class, got {prior.tolist()}: a class that the "
            "population lacks has no F-beta."
        )
    # Of recalls alone, which a large beta comes to, balanced decisions are the best. With more than
    # two classes, tuned weights are drawn towards balanced ones as far as this helps.
    lean = beta**2 / (1 + beta**2) if len(prior) == 2 else None
    return MetricLoss(lambda hits, d, n: 1 - mean_fbeta(hits, d, n, beta), True, prior, lean)


def _fractional(metric: LinearFractional, prior: Vector) -> MetricLoss:
    """For two classes, of which the second is the positive one."""
    return MetricLoss(
        lambda hits, _, totals: np.asarray(
            1 - metric.ratio(hits[:, 1], totals[0] - hits[:, 0], totals[1], totals[0])
        ),
        counted_by=prior,
    )


# For any number of classes, given their frequencies.
AVERAGES: dict[Any, Callable[[Vector], Criterion]] = {
    "accuracy": lambda prior: _mean_recall(prior, prior),
    "balanced_accuracy": lambda prior: _mean_recall(np.full(len(prior), 1 / len(prior))),
    "geometric_mean": lambda prior: MetricLoss(lambda hits, _, n: 1 - root_of_recalls(hits, n)),
}
METRIC_NAMES = sorted({*AVERAGES, "macro_f1", *METRICS})
# What a word that is no metric may mean.
LIKELY_METRICS = [*METRIC_NAMES, "f2", "f0.5", "macro_f2", "macro_f0.5"]


def is_metric(value: Any) -> bool:
    """Whether a value names or is a metric."""
    if isinstance(value, str):
        return value in METRIC_NAMES or _F_BETA.fullmatch(value) is not None
    return isinstance(value, LinearFractional) or (callable(value) and not isinstance(value, type))


class MetricGoal(Goal):
    """A metric that is to be large on new rows.

    With ``shrinkage=0`` decision weights have the largest value that the tuning rows allow, found
    exactly for two classes. By default they are averaged over folds, which has less on these rows
    and more on new ones; metrics of the recalls alone are drawn towards balanced weights as well,
    which gains with calibrated probabilities and can lose with others. By how much, over sizes and
    frequencies of two classes, is printed by ``pytest -m slow -s tests/test_metric_tuning.py``.

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
    >>> MetricGoal("accuracy").resolve([0.7, 0.3]).values(np.array([[7.0, 1]]), None, [7.0, 3])
    array([0.2])
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Criterion:
        """One minus the metric, for classes of these frequencies."""
        vector, _ = named_prior(prior, classes)
        if not is_metric(self.metric):
            raise InvalidParameterError(
                "metric must be a linear-fractional metric or one of "
                f"{listing(METRIC_NAMES)}, got {self.metric!r}"
                f"{did_you_mean(self.metric, LIKELY_METRICS)}."
            )
        if self.metric in AVERAGES:
            return AVERAGES[self.metric](vector)
        named = _F_BETA.fullmatch(self.metric) if isinstance(self.metric, str) else None
        if named and named[1]:
            return _mean_fbeta(check_number(float(named[2]), "beta", "(0, inf)"), vector)
        if len(vector) != 2:
            raise InvalidParameterError(
                f"metric {self.metric!r} is defined for two classes and there are {len(vector)}. "
                "Use 'macro_f1', 'geometric_mean', 'balanced_accuracy' or 'accuracy'."
            )
        share = float(vector[1])
        metric = fbeta(float(named[2])) if named else as_metric(self.metric, share)
        return _fractional(metric.with_positive_denominator(share), vector)

    @classmethod
    def examples(cls) -> list[Self]:
        """The averages over any number of classes."""
        return [cls("macro_f1"), cls("geometric_mean"), cls("balanced_accuracy"), cls("accuracy")]
