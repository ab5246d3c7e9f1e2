"""From labels and predictions to losses by row, and to their sums by class."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from equipoise.arrays import ArrayLike, Indices, Vector, on_host
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.losses import Loss
from equipoise.text import listing
from equipoise.validation.labels import (
    Names,
    as_labels,
    check_classes,
    check_length,
    check_sample_weight,
    classes_of,
    known_labels,
    predicted_positions,
)


@dataclass(frozen=True)
class RowLosses:
    """The loss of every row, with the position of its class and its weight.

    ``weights`` is ``None`` where every row counts the same.
    """

    classes: Names
    true: Indices
    losses: Vector
    weights: Vector | None

    def sums(self, values: Vector | None = None) -> Vector:
        """Sums of values (ones if not given) over the rows of each class."""
        sums = np.bincount(self.true, weights=values, minlength=len(self.classes))
        return sums.astype(np.float64)

    def row_counts(self) -> Vector:
        """How many rows of positive weight each class has."""
        return self.sums(None if self.weights is None else (self.weights > 0).astype(np.float64))

    def total_weights(self) -> Vector:
        """The weight of each class."""
        return self.sums(self.weights)

    def weighted_sums(self, values: Vector) -> Vector:
        """Sums of weight times value over the rows of each class."""
        return self.sums(values if self.weights is None else self.weights * values)


def row_losses(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    loss: Loss,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> RowLosses:
    """Checked losses by row; the classes are ``classes``, or those in ``y_true``, sorted."""
    truth = as_labels(y_true, name="y_true")
    names = classes_of(truth) if classes is None else check_classes(classes)
    true = known_labels(truth, names, name="y_true")
    weights = None if sample_weight is None else check_sample_weight(sample_weight, len(truth))
    predictions = _predictions(y_pred, names, len(truth), loss)
    if classes is None and loss.reads == "labels" and np.all(predictions < 0):
        raise ClassMismatchError(
            f"y_pred must hold classes of y_true, [{listing(names.tolist())}], got none of them "
            f"but {np.asarray(on_host(y_pred)).reshape(-1)[:1].tolist()[0]!r}: spell classes "
            "alike, or name all of them in classes=."
        )
    return RowLosses(names, true, loss(true, predictions), weights)


def _predictions(y_pred: Any, classes: Names, n_rows: int, loss: Loss) -> Any:
    """Positions of predicted labels, or the columns that the loss reads."""
    if issparse(y_pred):
        raise InvalidInputError(
            f"y_pred must be an array, got a sparse array of shape {y_pred.shape}: for sparse "
            'probabilities take the labels of tune_weights(y, probabilities, "standard")'
            ".decide(probabilities), or its class_risks."
        )
    values = np.asarray(on_host(y_pred))
    if loss.reads == "labels":
        if values.ndim == 2 and values.shape[1] > 1:
            raise InvalidInputError(
                f"y_pred must hold one class label per row for loss={loss.name!r}, got an array of "
                f"shape {values.shape}; for scores choose a loss that reads them."
            )
        predicted = as_labels(values, name="y_pred")
        check_length(predicted, n_rows, name="y_pred")
        return predicted_positions(predicted, classes)
    if values.dtype.kind not in "iuf":
        raise InvalidInputError(
            f"y_pred must hold {loss.reads} for loss={loss.name!r}, got dtype {values.dtype}."
        )
    check_length(values, n_rows, name="y_pred")
    columns = 1 if values.ndim == 1 else values.shape[1]
    if (2 if columns == 1 else columns) != len(classes):
        raise InvalidInputError(
            f"y_pred must have one column of {loss.reads} for each of {len(classes)} classes, got "
            f"shape {values.shape}; classes= names the columns where y_true lacks a class."
        )
    return values
