"""Estimators in scikit-learn's form."""

from equipoise.estimators.logistic import RobustLogisticRegression

__all__ = ["RobustLogisticRegression"]
