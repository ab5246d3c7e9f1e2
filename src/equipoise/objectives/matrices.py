"""Features in an array, and in a CSR matrix."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.objectives.base import Features

# Rows from which the scale of a column is judged.
_SAMPLE = 2_000
# Rows that are copied, and stored values that are summed, at a time.
_ROWS_AT_A_TIME = 1 << 12
_VALUES_AT_A_TIME = 1 << 16
# Larger arrays are not copied: their rows are gathered, a block at a time, in every pass. That
# costs a little of the time of a fit; a copy would cost all of the memory again.
_LARGE = 1 << 26
# Squares of larger values may overflow.
_HUGE = 1e100


class DenseFeatures(Features):
    """An array, its rows taken in their own order or in that of ``order``, a block at a time."""

    def __init__(
        self, X: NDArray[Any], n_scores: int, fit_intercept: bool, order: Indices | None = None
    ) -> None:
        self._X, self._order = X, order
        self.n_scores, self.fit_intercept = n_scores, fit_intercept
        self.n_rows, self.n_features = X.shape
        self.row_cost = float(self.n_features)

    @classmethod
    def takes(cls, X: Any) -> bool:
        return isinstance(X, np.ndarray)

    @classmethod
    def in_order(
        cls, X: Any, order: Indices | None, n_scores: int, fit_intercept: bool
    ) -> "DenseFeatures":
        if order is None or X.nbytes > _LARGE:
            return cls(X, n_scores, fit_intercept, order)
        # Row by row in memory: one copy, whatever the layout they come in.
        sorted_rows = np.empty(X.shape, X.dtype)
        for start in range(0, len(order), _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            sorted_rows[part] = X[order[part]]
        return cls(sorted_rows, n_scores, fit_intercept)

    @classmethod
    def column_moments(cls, X: Any) -> tuple[Vector, Vector]:
        sample = X[:: max(1, len(X) // _SAMPLE)]
        unit = _tame_unit(sample)
        sample = sample / unit
        mean, spread = sample.mean(axis=0, dtype=np.float64), sample.std(axis=0, dtype=np.float64)
        return mean * unit, spread * unit

    def unfold(self, theta: Matrix) -> Matrix:
        return theta.reshape(*theta.shape[:-1], self.n_scores, self.width)

    def fold(self, theta: Matrix) -> Matrix:
        return theta.reshape(*theta.shape[:-2], self.size)

    def prepare(self, theta: Matrix) -> Matrix:
        return self.unfold(theta)

    def load(self, block: slice) -> Matrix:
        if self._order is None:
            rows = self._X[block]
        elif self._X.flags.c_contiguous:  # of any other array, take would copy the whole first
            rows = self._X.take(self._order[block], axis=0)
        else:
            rows = self._X[self._order[block]]
        return np.ascontiguousarray(rows, dtype=np.float64)

    def scores(self, prepared: Matrix, loaded: Matrix) -> Matrix:
        # In this order BLAS reads each row once, in the order of memory.
        product = loaded @ prepared[:, : self.n_features].T
        scores = np.ascontiguousarray(product.T)
        if self.fit_intercept:
            scores += prepared[:, -1:]
        return scores

    def pull(self, residual: Matrix, loaded: Matrix) -> Matrix:
        pulled = np.empty((self.n_scores, self.width))
        # The operator @ would hold the interpreter's lock, as for all results this small.
        pulled[:, : self.n_features] = np.dot(residual, loaded)
        if self.fit_intercept:
            pulled[:, -1] = residual.sum(axis=1)
        return pulled

    def design(self, loaded: Matrix) -> Matrix:
        return np.hstack([loaded, np.ones((len(loaded), 1))]) if self.fit_intercept else loaded

    def take(self, rows: Indices) -> "DenseFeatures":
        chosen = rows if self._order is None else self._order[rows]
        return DenseFeatures(self._X[chosen], self.n_scores, self.fit_intercept)


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
        unit, sums = _tame_unit(X.data), np.zeros((2, X.shape[1]))
        for start in range(0, X.nnz, _VALUES_AT_A_TIME):  # no copy in float64
            part = slice(start, start + _VALUES_AT_A_TIME)
            values = X.data[part].astype(np.float64) * (1 / unit)
            for row, terms in enumerate((values, values**2)):
                sums[row] += np.bincount(X.indices[part], weights=terms, minlength=X.shape[1])
        mean, square = sums / max(1, X.shape[0])
        return mean * unit, np.sqrt(np.maximum(square - mean**2, 0)) * unit

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
        # The transpose on the same arrays, which the constructor would copy.
        columns = sp.csc_matrix(loaded.shape[::-1], dtype=loaded.dtype)
        columns.data, columns.indices, columns.indptr = loaded.data, loaded.indices, loaded.indptr
        return np.asarray(columns @ np.ascontiguousarray(residual.T))

    def design(self, loaded: Any) -> Matrix:
        return np.asarray(loaded.todense())

    def take(self, rows: Indices) -> "SparseFeatures":
        return SparseFeatures(self._X[rows], self.n_scores, self.fit_intercept)


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


def _tame_unit(values: NDArray[Any]) -> float:
    """A unit in which squares do not overflow: one, unless values are huge."""
    top = float(np.abs(values).max(initial=0.0))
    return top if top > _HUGE else 1.0
