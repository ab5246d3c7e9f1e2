"""Metrics by name or by coefficients, as goals of decision weights."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.arrays import Vector
from equipoise.decisions.averages import GeometricMean, MacroFBeta, WeightedRecall
from equipoise.decisions.evidence import Evidence
from equipoise.decisions.goal import Goal, Outcomes, Tuned
from equipoise.decisions.search import retune, tune
from equipoise.exceptions import InvalidParameterError
from equipoise.metrics.fractional import LinearFractional
from equipoise.metrics.named import METRICS, Metric, as_metric, fbeta

# For any number of classes, given their shares.
AVERAGES: dict[str, Callable[[Vector], Goal]] = {
    "accuracy": WeightedRecall,
    "balanced_accuracy": lambda prior: WeightedRecall(np.full(len(prior), 1 / len(prior))),
    "geometric_mean": lambda prior: GeometricMean(),
    "macro_f1": lambda prior: MacroFBeta(),
}
_F_BETA = re.compile(r"(macro_)?f(\d+(?:\.\d+)?)")


@dataclass(frozen=True, eq=False)
class FractionalGoal(Goal):
    """One minus a linear-fractional metric of two classes, the second being the positive one."""

    metric: LinearFractional

    def values(self, outcomes: Outcomes) -> Vector:
        true_negatives, true_positives = outcomes.hits.T
        negatives, positives = outcomes.totals
        false_positives = negatives - true_negatives
        ratio = self.metric.ratio(true_positives, false_positives, positives, negatives)
        return np.asarray(1 - ratio)

    def tune(self, evidence: Evidence) -> Tuned:
        return tune(evidence, self)

    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        return retune(evidence, self, theta)


@dataclass(frozen=True, eq=False)
class MetricGoal(Goal):
    """A metric to maximise.

    Parameters
    ----------
    metric : str, LinearFractional or callable
        For any number of classes ``"macro_f1"`` (or another beta, ``"macro_f2"``),
        ``"geometric_mean"``, ``"balanced_accuracy"`` and ``"accuracy"``; for two classes also
        ``"f1"`` (``"f0.5"``), ``"jaccard"`` and every linear-fractional metric.
    prior : array of shape (n_classes,)
        Class shares.
    """

    metric: Metric
    prior: Vector

    @cached_property
    def goal(self) -> Goal:
        """The goal that the metric stands for."""
        if not isinstance(self.metric, str):
            return self._fractional(self.metric)
        named = _F_BETA.fullmatch(self.metric)
        if named and named[1]:
            return MacroFBeta(_positive(float(named[2])))
        if named:
            return self._fractional(fbeta(float(named[2])))
        if self.metric in AVERAGES:
            return AVERAGES[self.metric](self.prior)
        if self.metric in METRICS:
            return self._fractional(self.metric)
        names = ", ".join(repr(name) for name in sorted({*AVERAGES, *METRICS}))
        raise InvalidParameterError(
            f"metric must be a linear-fractional metric or one of {names}, got {self.metric!r}."
        )

    @property
    def needs_decided(self) -> bool:  # type: ignore[override]
        return self.goal.needs_decided

    def _fractional(self, metric: Metric) -> Goal:
        if len(self.prior) != 2:
            raise InvalidParameterError(
                f"metric {metric!r} is defined for two classes and there are {len(self.prior)}. "
                "Use 'macro_f1', 'geometric_mean', 'balanced_accuracy' or 'accuracy'."
            )
        share = float(self.prior[1])
        return FractionalGoal(as_metric(metric, share).with_positive_denominator(share))

    def values(self, outcomes: Outcomes) -> Vector:
        return self.goal.values(outcomes)

    def tune(self, evidence: Evidence) -> Tuned:
        return self.goal.tune(evidence)

    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        return self.goal.retune(evidence, theta)


def _positive(beta: float) -> float:
    if not beta > 0:
        raise InvalidParameterError(f"beta of a macro F-beta must be positive, got {beta:g}.")
    return beta
