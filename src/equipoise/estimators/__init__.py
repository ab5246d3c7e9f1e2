"""Estimators in scikit-learn's form."""

from equipoise.estimators.local_polynomial import LocalPolynomialClassifier
from equipoise.estimators.logistic import RobustLogisticRegression
from equipoise.estimators.plug_in import PlugInClassifier
from equipoise.estimators.plug_in_trial import TunedWeights
from equipoise.estimators.plug_in_weights import tune_weights

__all__ = [
    "LocalPolynomialClassifier",
    "PlugInClassifier",
    "RobustLogisticRegression",
    "TunedWeights",
    "tune_weights",
]
