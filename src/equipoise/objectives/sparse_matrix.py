"""Feature matrices that are CSR matrices: products with stored values alone."""

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.objectives.matrices import ROWS_AT_A_TIME, ColumnMoments, Features, tame_unit

# _VALUES_AT_A_TIME: stored values summed.
_VALUES_AT_A_TIME = 1 << 16


class SparseFeatures(Features):
    """A CSR matrix; never made dense but for the blocks that ``design`` is asked for.

    Parameters are laid out ``(width, n_scores)``: products with sparse rows then read and write
    whole cache lines, and no transposed copy is ever made. The intercept is a stored column.
    """

    locked = True

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
        cls,
        X: Any,
        order: Indices | None,
        n_scores: int,
        fit_intercept: bool,
        *,
        copied: bool = True,  # noqa: ARG003  the column of ones is a copy anyway
    ) -> "SparseFeatures":
        X = _canonical(X)
        if fit_intercept:
            X = _with_ones(X, order)
        elif order is not None:
            X = X[order]
        return cls(X, n_scores, fit_intercept)

    @classmethod
    def column_moments(cls, X: Any) -> ColumnMoments:
        # Of all rows: a sample would miss the rare columns.
        X = _canonical(X)
        n, d = X.shape
        unit, sums, first = tame_unit(X.data), np.zeros((2, d)), np.zeros(d)
        # From some stored value of the column, which lies where the others do.
        first[X.indices] = X.data
        value = first.copy()
        first /= unit
        for start in range(0, X.nnz, _VALUES_AT_A_TIME):  # no copy in float64
            part = slice(start, start + _VALUES_AT_A_TIME)
            columns = X.indices[part]
            values = X.data[part].astype(np.float64) / unit - first[columns]
            for row, terms in enumerate((values, values**2)):
                sums[row] += np.bincount(columns, weights=terms, minlength=d)
        # Those that are not stored are zero.
        absent = n - np.bincount(X.indices, minlength=d)
        mean, square = (sums + absent * np.array([-first, first**2])) / max(1, n)
        spread = np.sqrt(np.maximum(square - mean**2, 0)) * unit
        mean = (first + mean) * unit
        one_value = (spread == 0) & (absent == 0) & (value != 0)
        if np.any(one_value):
            one_value[X.indices[X.data != value[X.indices]]] = False
        mean[one_value] = value[one_value]
        return ColumnMoments(mean, spread, one_value)

    def unfold(self, theta: Matrix) -> Matrix:
        return theta.reshape(*theta.shape[:-1], self.width, self.n_scores).swapaxes(-1, -2)

    def fold(self, theta: Matrix) -> Matrix:
        return theta.swapaxes(-1, -2).reshape(*theta.shape[:-2], self.size)

    def load(self, block: slice) -> Any:
        # On the stored arrays: a slice would copy them, and so would the constructor, which prunes
        # views of larger arrays.
        X = self._X
        bounds = X.indptr[block.start : block.stop + 1]
        stored = slice(bounds[0], bounds[-1])
        out = sp.csr_matrix((len(bounds) - 1, self.width), dtype=self.dtype)
        out.data = X.data[stored].astype(self.dtype, copy=False)
        if self.origin is not None:
            out.data = out.data - self._stored_origin[X.indices[stored]]
        out.indices, out.indptr = X.indices[stored], bounds - bounds[0]
        return out

    @property
    def _stored_origin(self) -> Vector:
        """The origin of every stored column; that of the intercept's is zero."""
        assert self.origin is not None
        return np.append(self.origin, np.zeros(self.width - self.n_features))

    def single(self) -> "SparseFeatures":
        # Shifts of sparse columns are small beside their scales: no difference loses digits.
        copied, X = copy(self), self._X
        values = X.data if self.origin is None else X.data - self._stored_origin[X.indices]
        shape = X.shape
        single = sp.csr_matrix((values.astype(np.float32), X.indices, X.indptr), shape, copy=False)
        copied._X, copied.dtype, copied.origin = single, np.float32, None
        return copied

    def scores(self, raw: Matrix, loaded: Any) -> Matrix:
        return np.ascontiguousarray((loaded @ raw.T).T)

    def adjoint(self, residual: Matrix, loaded: Any) -> Matrix:
        # The transpose on the same arrays, which the constructor would copy.
        columns = sp.csc_matrix(loaded.shape[::-1], dtype=loaded.dtype)
        columns.data, columns.indices, columns.indptr = loaded.data, loaded.indices, loaded.indptr
        return np.asarray(columns @ np.ascontiguousarray(residual.T))

    def dense(self, loaded: Any) -> Matrix:
        return np.asarray(loaded.todense())

    def filled(self, columns: Mask) -> Mask:
        # A zero would lie so far out that the spread is more than the mean by the root of the rows.
        if self.n_rows == 0 or not np.any(columns):  # a layout for rows elsewhere
            return columns
        stored = np.bincount(self._X.indices, minlength=self.width)[: self.n_features]
        return np.asarray(columns & (stored == self.n_rows))

    def take(self, rows: Indices) -> "SparseFeatures":
        taken = SparseFeatures(self._X[rows], self.n_scores, self.fit_intercept)
        return taken.in_units_of(self)


def _canonical(X: Any) -> Any:
    """A CSR matrix; two entries in a place are one, their sum."""
    X = sp.csr_matrix(X, copy=False)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _with_ones(X: Any, order: Indices | None) -> Any:
    """Rows of a CSR matrix, reordered and each followed by a one: both in a single copy."""
    n, d = X.shape
    lengths = np.diff(X.indptr) if order is None else np.diff(X.indptr)[order]
    indptr = np.zeros(n + 1, X.indptr.dtype)
    np.cumsum(lengths + 1, out=indptr[1:])
    data, indices = np.empty(indptr[-1], X.dtype), np.empty(indptr[-1], X.indices.dtype)
    for start in range(0, n, ROWS_AT_A_TIME):
        rows = slice(start, min(start + ROWS_AT_A_TIME, n))
        part = X[rows] if order is None else X[order[rows]]
        stored = slice(indptr[rows.start], indptr[rows.stop])
        features = np.ones(stored.stop - stored.start, dtype=bool)
        features[indptr[rows.start + 1 : rows.stop + 1] - 1 - stored.start] = False
        data[stored][features], data[stored][~features] = part.data, 1
        indices[stored][features], indices[stored][~features] = part.indices, d
    return sp.csr_matrix((data, indices, indptr), shape=(n, d + 1), copy=False)
