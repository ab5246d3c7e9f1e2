"""Analyses: numbers in, frames out."""

from equipoise.analysis.level_choice import LevelChoice, choose_levels
from equipoise.analysis.path import RobustPath, robust_path
from equipoise.analysis.tradeoff import WeightTradeoff, weight_tradeoff

__all__ = [
    "LevelChoice",
    "RobustPath",
    "WeightTradeoff",
    "choose_levels",
    "robust_path",
    "weight_tradeoff",
]
