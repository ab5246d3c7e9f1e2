"""Labelled rows on their way into a base estimator, and the probabilities that come out."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from equipoise.decisions.evidence import Indices, Matrix
from equipoise.estimators.checks import check_weights
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.priors import Vector
from equipoise.risks.labels import positions

# Probabilities in float32 that are sums over many trees are off by less than this.
SUM_SLACK = 1e-4


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


def known_labels(y: NDArray[Any], classes: NDArray[Any], *, owner: str) -> Indices:
    """Class index of every label, all of which must be known."""
    labels = positions(y, classes)
    if np.any(labels < 0):
        stray = y[labels < 0].tolist()[0]
        raise ClassMismatchError(
            f"y must hold classes that {owner} knows, {classes.tolist()}, got {stray!r}: "
            "leave such rows out."
        )
    return np.asarray(labels, dtype=np.intp)


def row_weights(sample_weight: Any, labels: Indices, classes: NDArray[Any]) -> Vector:
    """Weights of the rows; no class that has rows may be without weight."""
    present, among_present = np.unique(labels, return_inverse=True)
    return check_weights(sample_weight, among_present, classes[present])[0]


def class_probabilities(model: Any, X: Any, classes: NDArray[Any]) -> Matrix:
    """Probabilities of a fitted model, with a column of zeros for a class it has never seen."""
    source = f"predict_proba of {type(model).__name__}"
    known = np.asarray(getattr(model, "classes_", classes))
    given = check_probabilities(model.predict_proba(X), len(known), source=source)
    if np.array_equal(known, classes):
        return given
    aligned = np.zeros((len(given), len(classes)))
    aligned[:, known_labels(known, classes, owner="the classifier")] = given
    return aligned


def check_probabilities(values: Any, n_classes: int, *, source: str) -> Matrix:
    """Probabilities by row and class: none missing, none negative, each row summing to one.

    ``source`` begins the sentence of every error.
    """
    probabilities = _columns(values, source)
    if probabilities.shape[1] != n_classes:
        raise InvalidInputError(
            f"{source} must have one column for each of the {n_classes} classes, got shape "
            f"{probabilities.shape}."
        )
    sums = probabilities.sum(axis=1)
    if np.any(np.isnan(sums)):
        row = int(np.argmax(np.isnan(sums)))
        raise InvalidInputError(
            f"{source} must not be NaN, got {probabilities[row].tolist()} in row {row}: drop such "
            "rows, or look for missing or extreme features in them."
        )
    if np.any(probabilities < 0) or np.any(np.abs(sums - 1) > SUM_SLACK):
        wrong = (probabilities < 0).any(axis=1) | (np.abs(sums - 1) > SUM_SLACK)
        row = int(np.argmax(wrong))
        raise InvalidInputError(
            f"{source} must be at least 0 and sum to one in every row, got "
            f"{probabilities[row].tolist()} in row {row} (sum {sums[row]:.6g}): divide scores by "
            "their sum, or calibrate them (CalibratedClassifierCV)."
        )
    return probabilities


def _columns(values: Any, source: str) -> Matrix:
    try:
        probabilities = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{source} must hold numbers: {error}.") from error
    if probabilities.ndim == 1:
        # About the second of two classes.
        probabilities = np.column_stack([1 - probabilities, probabilities])
    if probabilities.ndim != 2:
        raise InvalidInputError(
            f"{source} must be a table of rows and classes, got shape {probabilities.shape}."
        )
    return probabilities
