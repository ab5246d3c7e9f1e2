"""Risks of given predictions: by class, weighted, robust, of the worst class, with intervals.

Start with :func:`class_risks`: its result has methods for all other risks.
"""

from equipoise.risks.class_risks import (
    ClassRisks,
    RiskScorer,
    class_risks,
    classifier_risks,
)
from equipoise.risks.intervals import (
    RiskInterval,
    RiskIntervals,
    class_risk_intervals,
    robust_risk_interval,
)
from equipoise.risks.population import rescale_proba
from equipoise.weights.by_class import ByClass

__all__ = [
    "ByClass",
    "ClassRisks",
    "RiskInterval",
    "RiskIntervals",
    "RiskScorer",
    "class_risk_intervals",
    "class_risks",
    "classifier_risks",
    "rescale_proba",
    "robust_risk_interval",
]
