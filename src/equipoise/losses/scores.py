r"""Score and probability matrices: checks, the two-class short form, and leads.

The *lead* of class :math:`j` over the true class is :math:`f_j(x) - f_y(x)`. Margins and the
cross-entropy of scores are both functions of the leads alone.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.exceptions import InvalidInputError
from equipoise.losses.base import Matrix, Positions
from equipoise.priors import Vector

# A block of this many entries and its temporaries stay in the cache of one core.
_BLOCK_ENTRIES = 2**17


def as_scores(scores: ArrayLike) -> Matrix:
    r"""Scores as an ``(n, k)`` matrix; one column :math:`f` stands for :math:`(-f/2, f/2)`.

    So the margin of the second class is :math:`f`, that of the first is :math:`-f`, and the
    cross-entropy is the logistic loss of :math:`f`.
    """
    matrix = _as_matrix(scores, "scores")
    if matrix.shape[1] == 1:
        matrix = np.hstack([-matrix / 2, matrix / 2])
    _check_finite(matrix, "scores")
    return matrix


def as_probabilities(probabilities: ArrayLike) -> Matrix:
    r"""Probabilities as an ``(n, k)`` matrix; one column :math:`p` stands for :math:`(1-p, p)`."""
    matrix = _as_matrix(probabilities, "probabilities")
    if matrix.shape[1] == 1:
        matrix = np.hstack([1 - matrix, matrix])
    _check_finite(matrix, "probabilities")
    _check_distribution(matrix, probability_eps(probabilities))
    return matrix


def probability_eps(probabilities: Any) -> float:
    """Spacing of the floating-point type that the probabilities were computed in."""
    dtype = np.asarray(probabilities).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)


def _as_matrix(values: ArrayLike, name: str) -> Matrix:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim == 1:
        matrix = matrix[:, np.newaxis]
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InvalidInputError(
            f"{name} must have shape (n, n_classes), or (n,) for two classes, got {matrix.shape}."
        )
    return matrix


def _check_finite(matrix: Matrix, name: str) -> None:
    # A finite sum proves that all is finite, at a fraction of the cost of looking.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(matrix.sum()):
            return
    bad = np.argwhere(~np.isfinite(matrix))
    if len(bad):
        row, column = bad[0]
        raise InvalidInputError(
            f"{name} must be finite, got {matrix[row, column]} in row {row}, column {column}."
        )


def _check_distribution(matrix: Matrix, eps: float) -> None:
    sums = matrix @ np.ones(matrix.shape[1])
    # Single precision is often widened before it gets here, hence the floor.
    worst = int(np.argmax(np.abs(sums - 1))) if len(sums) else 0
    if len(sums) and abs(sums[worst] - 1) > max(1e-5, np.sqrt(eps)):
        raise InvalidInputError(
            f"probabilities must sum to 1 in every row, got {sums[worst]:.6g} in row {worst}; "
            "raw scores are no probabilities: take predict_proba, or a loss that reads scores "
            "('cross_entropy_from_scores')."
        )
    if len(sums) and matrix.min() < 0:
        raise InvalidInputError(f"probabilities must be at least 0, got {matrix.min():.6g}.")


def check_true(true: ArrayLike, matrix: Matrix) -> Positions:
    """Positions of the true classes, one for each row of the matrix and within its columns."""
    positions = np.asarray(true)
    n, k = matrix.shape
    if positions.shape != (n,) or positions.dtype.kind not in "iu":
        raise InvalidInputError(
            f"true must be {n} integer positions, one for each row of predictions, got an array "
            f"of shape {positions.shape} and dtype {positions.dtype}."
        )
    if n and not 0 <= int(positions.min()) <= int(positions.max()) < k:
        raise InvalidInputError(
            f"true must hold positions of the {k} columns, 0 to {k - 1}, got values from "
            f"{positions.min()} to {positions.max()}."
        )
    return positions.astype(np.intp, copy=False)


def own(true: Positions, matrix: Matrix) -> Vector:
    """The entry of each row in the column of its true class."""
    return matrix[np.arange(len(matrix)), true]


def leads(true: Positions, scores: Matrix) -> Matrix:
    r"""Leads :math:`f_j - f_y` of the rivals, shape ``(k, n)``; minus infinity for ``y`` itself.

    Classes come first so that reductions over them run along contiguous memory.
    """
    lead = np.subtract(scores.T, own(true, scores), order="C")
    lead[true, np.arange(len(scores))] = -np.inf
    return lead


def in_blocks(
    rows: Callable[[Positions, Matrix], Vector],
) -> Callable[[ArrayLike, ArrayLike], Vector]:
    """Turn a loss of checked scores into one of user input that needs little extra memory."""

    @wraps(rows)
    def blockwise(true: ArrayLike, scores: ArrayLike) -> Vector:
        matrix = as_scores(scores)
        positions = check_true(true, matrix)
        size = max(1, _BLOCK_ENTRIES // matrix.shape[1])
        losses: NDArray[np.float64] = np.empty(len(matrix))
        for start in range(0, len(matrix), size):
            block = slice(start, start + size)
            losses[block] = rows(positions[block], matrix[block])
        return losses

    return blockwise
