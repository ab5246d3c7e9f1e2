"""Labelled rows on their way into a base estimator, and the probabilities that come out."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.validation.labels import known_labels
from equipoise.validation.predictions import as_probabilities
from equipoise.validation.row_weights import weights_and_totals


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their labels, their weights, and whatever else the base estimator's fit takes.

    Attributes
    ----------
    X, y : features and labels, as given.
    labels : class index of every row.
    classes : class names.
    weights : weights of the rows.
    fit_params : arguments of the base estimator's fit; those with an entry per row follow the rows.
    """

    X: Any
    y: NDArray[Any]
    labels: Indices
    classes: NDArray[Any]
    weights: Vector
    fit_params: Mapping[str, Any]

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of rows of each class."""
        return np.bincount(self.labels, minlength=len(self.classes))

    @cached_property
    def shares(self) -> Vector:
        """Share of each class in the weight of the rows."""
        totals = np.bincount(self.labels, weights=self.weights, minlength=len(self.classes))
        return np.asarray(totals / totals.sum(), dtype=np.float64)

    def take(self, rows: Indices) -> "Rows":
        """Some of the rows."""
        n_rows = len(self.labels)
        params = {name: row_part(value, rows, n_rows) for name, value in self.fit_params.items()}
        X = _safe_indexing(self.X, rows)
        return Rows(X, self.y[rows], self.labels[rows], self.classes, self.weights[rows], params)

    def with_weight(self) -> "Rows":
        """The rows that count."""
        return self if np.all(self.weights > 0) else self.take(np.flatnonzero(self.weights > 0))

    def train(self, estimator: Any) -> Any:
        """A copy of the estimator, fitted to the rows."""
        return clone(estimator).fit(self.X, self.y, **self.fit_params)


def row_part(value: Any, rows: Indices, n_rows: int) -> Any:
    """The entries of some rows, where the value has one for each row."""
    shape = getattr(value, "shape", None)
    length = shape[0] if shape else len(value) if isinstance(value, list | tuple) else None
    return _safe_indexing(value, rows) if length == n_rows else value


def row_weights(sample_weight: Any, labels: Indices, classes: NDArray[Any]) -> Vector:
    """Weights of the rows; no class that has rows may be without weight."""
    present, among_present = np.unique(labels, return_inverse=True)
    return weights_and_totals(sample_weight, among_present, classes[present])[0]


def class_probabilities(model: Any, X: Any, classes: NDArray[Any]) -> Matrix:
    """Probabilities of a fitted model, with a column of zeros for a class it has never seen."""
    source = f"predict_proba of {type(model).__name__}"
    known = np.asarray(getattr(model, "classes_", classes))
    given = as_probabilities(model.predict_proba(X), len(known), name=source)
    if np.array_equal(known, classes):
        return given
    aligned = np.zeros((len(given), len(classes)))
    aligned[:, known_labels(known, classes, owner="the classifier")] = given
    return aligned
