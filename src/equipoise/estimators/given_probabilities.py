"""A classifier whose rows are their own probabilities, for those that exist already."""

from __future__ import annotations

from typing import Any

from equipoise.arrays import Matrix
from equipoise.validation.predictions import as_probabilities
from equipoise.validation.prefitted import Prefitted


class GivenProbabilities(Prefitted):
    """Rows of probabilities as a fitted classifier, for probabilities from anywhere.

    Use it where an estimator is asked for and only probabilities exist.

    Parameters
    ----------
    classes : array-like of shape (n_classes,)
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from equipoise import PredictionSets
    >>> from equipoise.estimators import GivenProbabilities
    >>> table = np.linspace([0.95, 0.05], [0.05, 0.95], 40)
    >>> given = FrozenEstimator(GivenProbabilities(["a", "b"]))
    >>> sets = PredictionSets(given, 0.8).fit(table, ["a"] * 20 + ["b"] * 20)
    >>> sets.predict_set([[0.9, 0.1]])
    array([[ True, False]])
    """

    def __init__(self, classes: Any) -> None:
        self.classes = classes

    def predict_proba(self, X: Any) -> Matrix:
        """The rows themselves."""
        return as_probabilities(X, len(self.classes_))
