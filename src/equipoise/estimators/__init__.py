"""Estimators in scikit-learn's form."""

from equipoise.decisions import DecisionSummary, TunedWeights, tune_weights
from equipoise.estimators.linear_classifier import RobustLinearClassifier
from equipoise.estimators.local_polynomial import LocalPolynomialClassifier
from equipoise.estimators.logistic import RobustLogisticRegression
from equipoise.estimators.logistic_cv import RobustLogisticRegressionCV
from equipoise.estimators.plug_in import PlugInClassifier
from equipoise.estimators.population_scale import predict_population_proba
from equipoise.estimators.robust_classifier import RobustClassifier
from equipoise.estimators.robust_path_cv import RobustPathCV

__all__ = [
    "DecisionSummary",
    "LocalPolynomialClassifier",
    "PlugInClassifier",
    "RobustClassifier",
    "RobustLinearClassifier",
    "RobustLogisticRegression",
    "RobustLogisticRegressionCV",
    "RobustPathCV",
    "TunedWeights",
    "predict_population_proba",
    "tune_weights",
]
