"""Classifiers that have nothing to fit: probabilities or predictions that exist already."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from equipoise.arrays import NDArray


class Prefitted(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose class names are a parameter, ``classes``, and whose ``fit`` does nothing.

    Use it as the base of classifiers with a ``predict_proba`` that depends on parameters alone.
    """

    classes: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing: there is nothing to fit."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        """Class names."""
        return np.asarray(self.classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest probability."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
