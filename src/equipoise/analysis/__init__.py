"""Analyses: numbers in, frames out."""

from equipoise.analysis.decomposition import (
    Bootstrap,
    ClassExcess,
    ExcessRisk,
    estimated_excess_risk,
    excess_risk,
    excess_risk_in_class,
    model_excess_risk,
)
from equipoise.analysis.margin import MarginCondition, MarginRate, margin_condition
from equipoise.analysis.path import RobustPath, robust_path
from equipoise.analysis.robust_bayes import RobustBayes, robust_bayes, robust_bayes_known
from equipoise.analysis.tradeoff import WeightTradeoff, weight_tradeoff

__all__ = [
    "Bootstrap",
    "ClassExcess",
    "ExcessRisk",
    "MarginCondition",
    "MarginRate",
    "RobustBayes",
    "RobustPath",
    "WeightTradeoff",
    "estimated_excess_risk",
    "excess_risk",
    "excess_risk_in_class",
    "margin_condition",
    "model_excess_risk",
    "robust_bayes",
    "robust_bayes_known",
    "robust_path",
    "weight_tradeoff",
]
