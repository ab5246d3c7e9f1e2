"""Metrics of decisions: linear-fractional ones, macro averages, and their best thresholds."""

from equipoise.metrics.fractional import (
    METRICS,
    Coefficients,
    EquivalentWeighting,
    LinearFractional,
    arithmetic_mean,
    as_metric,
    fbeta,
    geometric_mean,
    macro_fbeta,
    weighted_accuracy,
)
from equipoise.metrics.thresholds import BestThreshold, best_threshold, optimal_rule

__all__ = [
    "METRICS",
    "BestThreshold",
    "Coefficients",
    "EquivalentWeighting",
    "LinearFractional",
    "arithmetic_mean",
    "as_metric",
    "best_threshold",
    "fbeta",
    "geometric_mean",
    "macro_fbeta",
    "optimal_rule",
    "weighted_accuracy",
]
