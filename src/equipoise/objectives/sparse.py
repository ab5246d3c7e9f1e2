"""Features in a CSR matrix."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.objectives.base import HUGE, Features

# Rows that are copied, and stored values that are summed, at a time.
_ROWS_AT_A_TIME = 1 << 12
_VALUES_AT_A_TIME = 1 << 16


class SparseFeatures(Features):
    """A CSR matrix; never made dense but for the blocks that ``design`` is asked for.

    Parameters are laid out ``(width, n_scores)``: products with sparse rows then read and write
    whole cache lines, and no transposed copy is ever made. The intercept is a stored column.
    """

    def __init__(self, X: Any, n_scores: int, fit_intercept: bool) -> None:
        self._X, self.n_scores, self.fit_intercept = X, n_scores, fit_intercept
        self.n_rows, self.n_features = X.shape[0], X.shape[1] - fit_intercept
        # Blocks of sparse rows gain little from the cache and lose much by being many.
        self.row_cost = float(X.nnz / max(1, self.n_rows)) / 4

    @classmethod
    def takes(cls, X: Any) -> bool:
        return bool(sp.issparse(X))

    @classmethod
    def in_order(
        cls, X: Any, order: Indices | None, n_scores: int, fit_intercept: bool
    ) -> "SparseFeatures":
        X = sp.csr_matrix(X, copy=False)
        if fit_intercept:
            X = _with_ones(X, order)
        elif order is not None:
            X = X[order]
        return cls(X, n_scores, fit_intercept)

    @classmethod
    def column_moments(cls, X: Any) -> tuple[Vector, Vector]:
        # Of all rows: a sample would miss the rare columns.
        top = float(np.abs(X.data).max(initial=0.0))
        if top > HUGE:  # squares would overflow
            mean, spread = cls.column_moments(X / top)
            return mean * top, spread * top
        mean, square = _sparse_sums(X) / max(1, X.shape[0])
        return mean, np.sqrt(np.maximum(square - mean**2, 0))

    def unfold(self, theta: Matrix) -> Matrix:
        return theta.reshape(*theta.shape[:-1], self.width, self.n_scores).swapaxes(-1, -2)

    def fold(self, theta: Matrix) -> Matrix:
        return theta.swapaxes(-1, -2).reshape(*theta.shape[:-2], self.size)

    def prepare(self, theta: Matrix) -> Matrix:
        return theta.reshape(self.width, self.n_scores)

    def load(self, block: slice) -> Any:
        # On the stored arrays: a slice would copy them, and so would the constructor, which prunes
        # views of larger arrays.
        X = self._X
        bounds = X.indptr[block.start : block.stop + 1]
        stored = slice(bounds[0], bounds[-1])
        out = sp.csr_matrix((len(bounds) - 1, self.width), dtype=np.float64)
        out.data = X.data[stored].astype(np.float64, copy=False)
        out.indices, out.indptr = X.indices[stored], bounds - bounds[0]
        return out

    def scores(self, prepared: Matrix, loaded: Any) -> Matrix:
        return np.ascontiguousarray((loaded @ prepared).T)

    def pull(self, residual: Matrix, loaded: Any) -> Matrix:
        return np.asarray(_transposed(loaded) @ np.ascontiguousarray(residual.T))

    def design(self, loaded: Any) -> Matrix:
        return np.asarray(loaded.todense())

    def take(self, rows: Indices) -> "SparseFeatures":
        return SparseFeatures(self._X[rows], self.n_scores, self.fit_intercept)


def _transposed(X: Any) -> Any:
    """The transpose of a CSR matrix on the same arrays, which the constructor would copy."""
    out = sp.csc_matrix(X.shape[::-1], dtype=X.dtype)
    out.data, out.indices, out.indptr = X.data, X.indices, X.indptr
    return out


def _with_ones(X: Any, order: Indices | None) -> Any:
    """Rows of a CSR matrix, reordered and each followed by a one: both in a single copy."""
    n, d = X.shape
    lengths = np.diff(X.indptr) if order is None else np.diff(X.indptr)[order]
    indptr = np.zeros(n + 1, X.indptr.dtype)
    np.cumsum(lengths + 1, out=indptr[1:])
    data, indices = np.empty(indptr[-1], X.dtype), np.empty(indptr[-1], X.indices.dtype)
    for start in range(0, n, _ROWS_AT_A_TIME):
        rows = slice(start, min(start + _ROWS_AT_A_TIME, n))
        part = X[rows] if order is None else X[order[rows]]
        stored = slice(indptr[rows.start], indptr[rows.stop])
        features = np.ones(stored.stop - stored.start, dtype=bool)
        features[indptr[rows.start + 1 : rows.stop + 1] - 1 - stored.start] = False
        data[stored][features], data[stored][~features] = part.data, 1
        indices[stored][features], indices[stored][~features] = part.indices, d
    return sp.csr_matrix((data, indices, indptr), shape=(n, d + 1), copy=False)


def _sparse_sums(X: Any) -> Matrix:
    """Column sums of a CSR matrix and of its squares, a part at a time: no copy in float64."""
    sums = np.zeros((2, X.shape[1]))
    for start in range(0, X.nnz, _VALUES_AT_A_TIME):
        part = slice(start, start + _VALUES_AT_A_TIME)
        values = X.data[part].astype(np.float64)
        for row, terms in enumerate((values, values**2)):
            sums[row] += np.bincount(X.indices[part], weights=terms, minlength=X.shape[1])
    return sums
