"""Analyses: numbers in, frames out."""

from equipoise.analysis.path import RobustPath, robust_path
from equipoise.analysis.tradeoff import WeightTradeoff, weight_tradeoff

__all__ = [
    "RobustPath",
    "WeightTradeoff",
    "robust_path",
    "weight_tradeoff",
]
