"""Risks of given predictions: by class, weighted, robust, of the worst class, with intervals.

Start from :func:`class_risks`, whose result knows every risk that depends on the class risks
alone; the metrics and the scorers are short forms of it.
"""

from equipoise.by_class import ByClass
from equipoise.risks.bounds import (
    conditional_excess_bound,
    conditional_generalization_bound,
    iid_excess_bound,
    iid_generalization_bound,
    rate_excess_bound,
    rate_generalization_bound,
)
from equipoise.risks.class_risks import ClassRisks, class_risks
from equipoise.risks.fractional import Coefficients, EquivalentWeighting, LinearFractional
from equipoise.risks.fractional_metrics import (
    METRICS,
    accuracy,
    arithmetic_mean,
    as_metric,
    fbeta,
    jaccard,
    precision_recall_mix,
    weighted_accuracy,
)
from equipoise.risks.intervals import (
    RiskInterval,
    RiskIntervals,
    class_risk_intervals,
    worst_class_interval,
)
from equipoise.risks.macro import geometric_mean, macro_fbeta
from equipoise.risks.metrics import (
    balanced_risk,
    robust_risk,
    standard_risk,
    weighted_risk,
    worst_case_weights,
    worst_class_risk,
)
from equipoise.risks.population import population_proba
from equipoise.risks.rademacher import (
    RademacherComplexity,
    class_rademacher,
    contracted,
    linear_rademacher,
)
from equipoise.risks.risk_bound import RiskBound, RowsNeeded
from equipoise.risks.scorers import (
    RiskScorer,
    classifier_risks,
    robust_scorer,
    weighted_scorer,
    worst_class_scorer,
)
from equipoise.risks.thresholds import BestThreshold, best_threshold, optimal_rule

__all__ = [
    "METRICS",
    "BestThreshold",
    "ByClass",
    "ClassRisks",
    "Coefficients",
    "EquivalentWeighting",
    "LinearFractional",
    "RademacherComplexity",
    "RiskBound",
    "RiskInterval",
    "RiskIntervals",
    "RiskScorer",
    "RowsNeeded",
    "accuracy",
    "arithmetic_mean",
    "as_metric",
    "balanced_risk",
    "best_threshold",
    "class_rademacher",
    "class_risk_intervals",
    "class_risks",
    "classifier_risks",
    "conditional_excess_bound",
    "conditional_generalization_bound",
    "contracted",
    "fbeta",
    "geometric_mean",
    "iid_excess_bound",
    "iid_generalization_bound",
    "jaccard",
    "linear_rademacher",
    "macro_fbeta",
    "optimal_rule",
    "population_proba",
    "precision_recall_mix",
    "rate_excess_bound",
    "rate_generalization_bound",
    "robust_risk",
    "robust_scorer",
    "standard_risk",
    "weighted_accuracy",
    "weighted_risk",
    "weighted_scorer",
    "worst_case_weights",
    "worst_class_interval",
    "worst_class_risk",
    "worst_class_scorer",
]
