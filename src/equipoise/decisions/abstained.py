"""Class names of decisions that may abstain, and the share of rows that they get right."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from equipoise.arrays import Indices, Mask, NDArray
from equipoise.validation.labels import as_labels, check_length, check_sample_weight


def labels_or_none(
    classes: NDArray[Any], decisions: Indices, abstained: Mask | None
) -> NDArray[Any]:
    """Class names, and None for abstained rows; ``abstained`` is None where there cannot be any.

    Examples
    --------
    >>> labels_or_none(np.array(["a", "b"]), np.array([1, 0]), np.array([False, True])).tolist()
    ['b', None]
    """
    if abstained is None:
        return np.asarray(classes[decisions])
    labels = np.full(len(decisions), None, dtype=object)
    labels[~abstained] = classes[decisions[~abstained]]
    return labels


def share_right(y: Any, predicted: NDArray[Any], sample_weight: Any = None) -> float:
    """The share of rows whose label is predicted; None is an error.

    Examples
    --------
    >>> share_right(["a", "b", "b", "a"], np.array(["a", None, "b", "b"], dtype=object))
    0.5
    """
    labels, predicted = as_labels(y, name="y").astype(object), predicted.astype(object)
    check_length(labels, len(predicted), name="y", of="X")
    weights = check_sample_weight(sample_weight, len(labels))
    return float(np.average(labels == predicted, weights=weights))


class ScoredWithAbstentions(ClassifierMixin, ABC):  # type: ignore[misc]
    """A classifier whose score counts abstained rows as errors."""

    @property
    @abstractmethod
    def may_abstain(self) -> bool:
        """Whether ``predict`` may give None instead of a class."""

    @abstractmethod
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row, or None."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose class is predicted; a row without a class is an error.

        Parameters
        ----------
        X, y : array-like
            Rows and labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        """
        if not self.may_abstain:
            return float(super().score(X, y, sample_weight))
        return share_right(y, self.predict(X), sample_weight)
