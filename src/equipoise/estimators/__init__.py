"""Estimators in scikit-learn's form."""

from equipoise.decisions import DecisionSummary, TunedWeights, tune_weights
from equipoise.estimators.given_probabilities import GivenProbabilities
from equipoise.estimators.linear_classifier import RobustLinearClassifier
from equipoise.estimators.logistic import RobustLogisticRegression
from equipoise.estimators.logistic_cv import RobustLogisticRegressionCV
from equipoise.estimators.population_probabilities import population_proba
from equipoise.estimators.prediction_sets import PredictionSets
from equipoise.estimators.robust_classifier import RobustClassifier
from equipoise.estimators.robustness_cv import RobustnessCV
from equipoise.estimators.tuned_decisions import TunedDecisionClassifier

__all__ = [
    "DecisionSummary",
    "GivenProbabilities",
    "PredictionSets",
    "RobustClassifier",
    "RobustLinearClassifier",
    "RobustLogisticRegression",
    "RobustLogisticRegressionCV",
    "RobustnessCV",
    "TunedDecisionClassifier",
    "TunedWeights",
    "population_proba",
    "tune_weights",
]
