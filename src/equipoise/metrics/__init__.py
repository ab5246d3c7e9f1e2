"""Metrics of decisions: linear-fractional ones, macro averages, and their best thresholds."""

from equipoise.metrics.fractional import Coefficients, EquivalentWeighting, LinearFractional
from equipoise.metrics.named import (
    METRICS,
    accuracy,
    arithmetic_mean,
    as_metric,
    fbeta,
    geometric_mean,
    jaccard,
    macro_fbeta,
    precision_recall_mix,
    weighted_accuracy,
)
from equipoise.metrics.thresholds import BestThreshold, best_threshold, optimal_rule

__all__ = [
    "METRICS",
    "BestThreshold",
    "Coefficients",
    "EquivalentWeighting",
    "LinearFractional",
    "accuracy",
    "arithmetic_mean",
    "as_metric",
    "best_threshold",
    "fbeta",
    "geometric_mean",
    "jaccard",
    "macro_fbeta",
    "optimal_rule",
    "precision_recall_mix",
    "weighted_accuracy",
]
