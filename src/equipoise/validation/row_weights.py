"""Weights of rows: one finite number each, none negative, and some weight for every class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices, Vector
from equipoise.exceptions import InvalidInputError


def check_sample_weight(sample_weight: Any, n_rows: int) -> Vector:
    """Weights of the rows; all one where none are given.

    Examples
    --------
    >>> check_sample_weight(None, 2).tolist()
    [1.0, 1.0]
    """
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sample_weight must hold numbers: {error}.") from error
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight must have one value for each of the {n_rows} rows, got an array of "
            f"shape {weights.shape}."
        )
    _refuse_bad(weights)
    return weights


def row_shares(sample_weight: Any, n_rows: int) -> Vector:
    """Weights of the rows, scaled to sum to one.

    Examples
    --------
    >>> row_shares([1, 3], 2).tolist()
    [0.25, 0.75]
    """
    weights = check_sample_weight(sample_weight, n_rows)
    return np.asarray(weights / weights.sum())


def _refuse_bad(weights: Vector) -> None:
    if not len(weights):
        return
    with np.errstate(over="ignore", invalid="ignore"):
        smallest, total = float(weights.min()), float(weights.sum())
    # NaN compares false, and makes the sum NaN.
    if not np.isfinite(total):
        what = "NaN" if np.isnan(weights).any() else f"a largest value of {weights.max():.6g}"
        raise InvalidInputError(
            f"sample_weight must hold finite values with a finite sum, got {what}."
        )
    if smallest < 0:
        raise InvalidInputError(
            f"sample_weight must not be negative, got a smallest value of {smallest:.6g}."
        )
    if total == 0:
        raise InvalidInputError(
            "sample_weight must be positive in at least one row, got only zeros."
        )


def weights_and_totals(
    sample_weight: Any, labels: Indices, classes: NDArray[Any]
) -> tuple[Vector, Vector]:
    """Weights of the rows, and their sums over the classes."""
    weights = check_sample_weight(sample_weight, len(labels))
    return weights, class_totals(weights, labels, classes)


def class_totals(weights: Vector, labels: Indices, classes: NDArray[Any]) -> Vector:
    """Sums of the weights over the classes, none of which may be without weight.

    Examples
    --------
    >>> class_totals(np.array([1.0, 3.0, 2.0]), np.array([0, 1, 1]), np.array(["a", "b"])).tolist()
    [1.0, 5.0]
    """
    sums = np.bincount(labels, weights=weights, minlength=len(classes))
    totals = sums.astype(np.float64, copy=False)
    if np.any(totals <= 0):
        empty = [repr(name) for name in classes[totals <= 0].tolist()]
        raise InvalidInputError(
            f"sample_weight is zero for every row of class {', '.join(empty)}: "
            "remove its rows, or give it some weight."
        )
    return totals
