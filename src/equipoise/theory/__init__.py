"""What the paper proves, to compute with: bounds, decompositions, margins, saddle points."""

from equipoise.solvers.descent_ascent import StepConstants
from equipoise.theory.bounds import (
    RiskBound,
    conditional_bound,
    iid_bound,
    rate_bound,
)
from equipoise.theory.decomposition import (
    ClassExcess,
    ExcessRisk,
    excess_risk,
    excess_risk_in_class,
)
from equipoise.theory.local_polynomial import LocalPolynomialClassifier
from equipoise.theory.rademacher import class_rademacher
from equipoise.theory.robust_bayes import RobustBayes, robust_bayes, robust_bayes_known
from equipoise.theory.saddle_point import SaddleAverages, descent_ascent
from equipoise.theory.shifted_margin import MarginCondition, margin_condition

__all__ = [
    "ClassExcess",
    "ExcessRisk",
    "LocalPolynomialClassifier",
    "MarginCondition",
    "RiskBound",
    "RobustBayes",
    "SaddleAverages",
    "StepConstants",
    "class_rademacher",
    "conditional_bound",
    "descent_ascent",
    "excess_risk",
    "excess_risk_in_class",
    "iid_bound",
    "margin_condition",
    "rate_bound",
    "robust_bayes",
    "robust_bayes_known",
]
