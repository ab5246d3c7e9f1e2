r"""Probabilities and scores of rows as matrices, true classes, and tables of both.

Conventions
-----------
Matrices have shape ``(n_rows, n_classes)``, columns in class order. Of two classes one column is
enough: a probability :math:`p` of the second class stands for :math:`(1-p, p)`, a decision
:math:`f` for it for :math:`(-f/2, f/2)`, so that the cross-entropy is the logistic loss of
:math:`f`.
"""

from reprlib import repr as shortened
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from equipoise.arrays import ArrayLike, Indices, Matrix, Vector, on_host
from equipoise.exceptions import InvalidInputError

# Probabilities in single precision that are sums over many trees are off by less than this.
_SLACK = 1e-4


def as_scores(scores: ArrayLike) -> Matrix:
    """Scores as a finite matrix with a column for each class."""
    matrix = _as_matrix(scores, "scores")
    if matrix.shape[1] == 1:
        matrix = np.hstack([-matrix / 2, matrix / 2])
    _check_finite(matrix, "scores")
    return matrix


def as_probabilities(
    probabilities: ArrayLike, n_classes: int | None = None, *, name: str = "probabilities"
) -> Matrix:
    """Probabilities as a matrix: none missing, none negative, each row summing to one."""
    if hasattr(probabilities, "predict_proba"):
        raise InvalidInputError(
            f"{name} must be an array, such as classifier.predict_proba(X), got {probabilities!r}."
        )
    matrix = _as_matrix(probabilities, name)
    if matrix.shape[1] == 1:
        matrix = np.hstack([1 - matrix, matrix])
    if n_classes is not None and matrix.shape[1] != n_classes:
        raise InvalidInputError(
            f"{name} must have one column for each of the {n_classes} classes, got shape "
            f"{matrix.shape}."
        )
    _check_finite(matrix, name)
    _check_distribution(matrix, name)
    return matrix


def as_sparse_probabilities(probabilities: Any, n_classes: int) -> csr_array:
    """Sparse rows of the largest probabilities: none negative, no row without any or above 1."""
    if probabilities.ndim != 2 or probabilities.shape[1] != n_classes:
        raise InvalidInputError(
            f"probabilities must have one column for each of the {n_classes} classes, got a sparse "
            f"array of shape {probabilities.shape}."
        )
    table = csr_array(probabilities, dtype=np.float64)
    if not table.has_canonical_format:
        table = table.copy()  # the user's array stays as it is
        table.sum_duplicates()  # sorts what each row holds by class, too
    if not np.isfinite(table.data).all() or np.any(table.data < 0):
        wrong = np.flatnonzero(~(np.isfinite(table.data) & (table.data >= 0)))[0]
        row = int(np.searchsorted(table.indptr, wrong, side="right")) - 1
        raise InvalidInputError(
            f"probabilities must be finite and at least 0, got {table.data[wrong]} in row {row}."
        )
    sums = table @ np.ones(n_classes)
    wrong = np.flatnonzero(~((sums > 0) & (sums <= 1 + _SLACK)))
    if len(wrong):
        raise InvalidInputError(
            "sparse probabilities must sum to more than 0 and at most 1 in every row, got "
            f"{sums[wrong[0]]:.6g} in row {wrong[0]}: hold the largest probabilities of each row."
        )
    return table


def probability_eps(probabilities: Any) -> float:
    """Spacing of the floating-point type that the probabilities were computed in."""
    dtype = np.asarray(on_host(probabilities)).dtype
    return float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)


def _as_matrix(values: ArrayLike, name: str) -> Matrix:
    if issparse(values):
        raise InvalidInputError(
            f"{name} must be a dense array here, got a {type(values).__name__}: take its toarray()."
        )
    try:
        matrix = np.asarray(on_host(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must hold numbers: {error}.") from error
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
            f"{name} must be finite, got {matrix[row, column]} in row {row}, column {column}: "
            "drop such rows, or look for missing or extreme features in them."
        )


def _check_distribution(matrix: Matrix, name: str) -> None:
    if not len(matrix):
        return
    sums = matrix @ np.ones(matrix.shape[1])
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > _SLACK:
        raise InvalidInputError(
            f"{name} must sum to 1 in every row, got {_row(matrix[worst])} in row {worst} (sum "
            f"{sums[worst]:.6g}); raw scores are not probabilities: take predict_proba, or "
            "calibrate them (CalibratedClassifierCV)."
        )
    if matrix.min() < 0:
        row = int(np.argmin(matrix.min(axis=1)))
        raise InvalidInputError(f"{name} must be at least 0, got {_row(matrix[row])} in row {row}.")


def _row(values: Vector) -> str:
    """A row of numbers, of four digits each."""
    return f"[{', '.join(f'{value:.4g}' for value in values)}]"


def check_true(true: ArrayLike, matrix: Matrix, *, name: str = "true") -> Indices:
    """Positions of the true classes, one for each row of the matrix and within its columns."""
    positions = np.asarray(true)
    n, k = matrix.shape
    if positions.shape != (n,) or positions.dtype.kind not in "iub":
        raise InvalidInputError(
            f"{name} must be {n} integer positions, one for each row of predictions, got an array "
            f"of shape {positions.shape} and dtype {positions.dtype}."
        )
    if n and not 0 <= int(positions.min()) <= int(positions.max()) < k:
        raise InvalidInputError(
            f"{name} must hold positions of the {k} columns, 0 to {k - 1}, got values from "
            f"{positions.min()} to {positions.max()}."
        )
    return positions.astype(np.intp, copy=False)


def check_rows(table: Any, n_rows: int, *, name: str = "probabilities") -> None:
    """As many rows of probabilities as labels."""
    if table.shape[0] != n_rows:
        raise InvalidInputError(
            f"{name} must have one row for each of the {n_rows} labels, got {table.shape[0]}."
        )


def check_table(table: ArrayLike, n_classes: int | None = None) -> Matrix:
    """A table of at least one row, with a row and a column for each of so many classes."""
    cells = np.asarray(table, dtype=np.float64)
    k = len(cells) if n_classes is None and cells.ndim else n_classes
    which = "class" if n_classes is None else f"of {n_classes} classes"
    if cells.shape != (k, k) or not np.isfinite(cells).all() or np.any(cells < 0):
        raise InvalidInputError(
            f"table must have a row and a column for each {which}, rows by true class and columns "
            f"by decision, with finite values of at least 0, got {shortened(cells.tolist())}."
        )
    if not cells.any():
        raise InvalidInputError("table must hold at least one row, got only zeros.")
    return cells
