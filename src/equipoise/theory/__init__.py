"""What the paper proves, to compute with: bounds, decompositions, margins, robust Bayes."""

from equipoise.theory.bounds import (
    RiskBound,
    RowsNeeded,
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
from equipoise.theory.rademacher import (
    RademacherComplexity,
    class_rademacher,
    linear_rademacher,
)
from equipoise.theory.robust_bayes import RobustBayes, robust_bayes, robust_bayes_known
from equipoise.theory.shifted_margin import MarginCondition, margin_condition

__all__ = [
    "ClassExcess",
    "ExcessRisk",
    "MarginCondition",
    "RademacherComplexity",
    "RiskBound",
    "RobustBayes",
    "RowsNeeded",
    "class_rademacher",
    "conditional_bound",
    "excess_risk",
    "excess_risk_in_class",
    "iid_bound",
    "linear_rademacher",
    "margin_condition",
    "rate_bound",
    "robust_bayes",
    "robust_bayes_known",
]
