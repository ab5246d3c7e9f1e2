"""Access to the feature matrix by blocks of rows: the one place where dense and sparse differ.

Conventions
-----------
``theta`` : flat float64 vector. Its layout belongs to the rows; ``unfold`` shows it as
    ``(n_scores, n_features + fit_intercept)`` with the intercepts last.
``block`` : a ``slice`` of rows.
``scores``, ``residual`` : arrays of shape ``(n_scores, rows)``.
``pulled`` : residuals times rows, in the rows' own layout; ``finish`` turns it into a gradient.
Features stay as they came, float32 as float32; all arithmetic is in float64, a block at a time.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]
# Sparse rows that are copied at a time.
_PART = 4096


class Rows(ABC):
    """A feature matrix that answers products with blocks of its rows."""

    fit_intercept: bool
    n_scores: int
    n_rows: int
    n_features: int
    unit: float = 1.0  # the intercept's column holds this value

    @property
    def width(self) -> int:
        """Columns of the parameter: features, and one more for the intercept."""
        return self.n_features + self.fit_intercept

    @property
    def size(self) -> int:
        """Length of a flat parameter."""
        return self.n_scores * self.width

    @abstractmethod
    def unfold(self, theta: Array) -> Array:
        """Flat parameters ``(..., size)`` seen as ``(..., n_scores, width)``."""

    @abstractmethod
    def fold(self, theta: Array) -> Array:
        """The inverse of ``unfold``."""

    def raw(self, theta: Array) -> Array:
        """The parameter in the units of the stored features."""
        return theta

    def standard(self, raw: Array) -> Array:
        """The inverse of ``raw``."""
        return raw

    @abstractmethod
    def prepare(self, theta: Array) -> Any:
        """A flat parameter in the form that ``scores`` takes: done once a pass."""

    @abstractmethod
    def scores(self, prepared: Any, block: slice) -> Array:
        """A fresh array of scores of the rows in a block."""

    @abstractmethod
    def pull(self, residual: Array, block: slice) -> Array:
        """Residuals of a block times its rows: a fresh float64 array."""

    @abstractmethod
    def finish(self, pulled: Array) -> Array:
        """A sum of pulled residuals as a flat gradient; may use its memory."""

    @abstractmethod
    def design(self, block: slice) -> Array:
        """The block as a dense array, intercept column included."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The type in which features are stored."""

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> "Rows":
        """Chosen rows, as a copy."""

    @property
    @abstractmethod
    def row_cost(self) -> float:
        """Stored values in an average row."""


class DenseRows(Rows):
    """A C-contiguous array."""

    def __init__(self, X: Array, n_scores: int, fit_intercept: bool) -> None:
        self._X, self.n_scores, self.fit_intercept = X, n_scores, fit_intercept
        self.n_rows, self.n_features = X.shape

    def unfold(self, theta: Array) -> Array:
        return theta.reshape(*theta.shape[:-1], self.n_scores, self.width)

    def fold(self, theta: Array) -> Array:
        return theta.reshape(*theta.shape[:-2], self.size)

    def prepare(self, theta: Array) -> Array:
        return self.unfold(theta)

    def scores(self, prepared: Array, block: slice) -> Array:
        # In this order BLAS reads each row once, in the order of memory.
        product = self._block(block) @ prepared[:, : self.n_features].T
        scores = np.ascontiguousarray(product.T)
        if self.fit_intercept:
            scores += prepared[:, -1:]
        return scores

    def pull(self, residual: Array, block: slice) -> Array:
        pulled = np.empty((self.n_scores, self.width))
        # The operator @ would hold the interpreter's lock, as for all results this small.
        pulled[:, : self.n_features] = np.dot(residual, self._block(block))
        if self.fit_intercept:
            pulled[:, -1] = residual.sum(axis=1)
        return pulled

    def finish(self, pulled: Array) -> Array:
        return pulled.reshape(self.size)

    def design(self, block: slice) -> Array:
        X = self._block(block)
        return np.hstack([X, np.ones((len(X), 1))]) if self.fit_intercept else X

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._X.dtype

    def take(self, rows: NDArray[np.intp]) -> "DenseRows":
        return DenseRows(self._X[rows], self.n_scores, self.fit_intercept)

    @property
    def row_cost(self) -> float:
        return float(self.n_features)

    def _block(self, block: slice) -> Array:
        return self._X[block].astype(np.float64, copy=False)


class SparseRows(Rows):
    """A CSR matrix; never made dense but for the blocks that ``design`` is asked for.

    Parameters are laid out ``(width, n_scores)``: products with sparse rows then read and write
    whole cache lines, and no transposed copy is ever made. The intercept is a stored column.
    """

    def __init__(
        self,
        X: Any,
        n_scores: int,
        fit_intercept: bool,
        order: NDArray[np.intp] | None = None,
    ) -> None:
        if fit_intercept:
            X = _with_ones(X, order)
        elif order is not None:
            X = X[order]
        self._init(X, n_scores, fit_intercept)

    def _init(self, X: Any, n_scores: int, fit_intercept: bool) -> None:
        self._X, self.n_scores, self.fit_intercept = X, n_scores, fit_intercept
        self.n_rows, self.n_features = X.shape[0], X.shape[1] - fit_intercept

    def unfold(self, theta: Array) -> Array:
        return theta.reshape(*theta.shape[:-1], self.width, self.n_scores).swapaxes(-1, -2)

    def fold(self, theta: Array) -> Array:
        return theta.swapaxes(-1, -2).reshape(*theta.shape[:-2], self.size)

    def prepare(self, theta: Array) -> Array:
        return theta.reshape(self.width, self.n_scores)

    def scores(self, prepared: Array, block: slice) -> Array:
        return np.ascontiguousarray((self._block(block) @ prepared).T)

    def pull(self, residual: Array, block: slice) -> Array:
        return np.asarray(self._block(block, transposed=True) @ np.ascontiguousarray(residual.T))

    def finish(self, pulled: Array) -> Array:
        return pulled.reshape(self.size)

    def design(self, block: slice) -> Array:
        return np.asarray(self._block(block).todense())

    @property
    def dtype(self) -> np.dtype[Any]:
        stored: np.dtype[Any] = self._X.dtype
        return stored

    def take(self, rows: NDArray[np.intp]) -> "SparseRows":
        taken = SparseRows.__new__(SparseRows)
        taken._init(self._X[rows], self.n_scores, self.fit_intercept)
        return taken

    @property
    def row_cost(self) -> float:
        # Blocks of sparse rows gain little from the cache and lose much by being many.
        return float(self._X.nnz / max(1, self.n_rows)) / 4

    def _block(self, block: slice, *, transposed: bool = False) -> Any:
        """Rows of a block that share the stored arrays with the whole.

        A slice would copy them, and so would the constructors of matrix and transpose, which prune
        views of larger arrays.
        """
        X = self._X
        bounds = X.indptr[block.start : block.stop + 1]
        stored = slice(bounds[0], bounds[-1])
        shape = len(bounds) - 1, self.width
        if transposed:
            out = sp.csc_matrix(shape[::-1], dtype=np.float64)
        else:
            out = sp.csr_matrix(shape, dtype=np.float64)
        out.data = X.data[stored].astype(np.float64, copy=False)
        out.indices, out.indptr = X.indices[stored], bounds - bounds[0]
        return out


def _with_ones(X: Any, order: NDArray[np.intp] | None) -> Any:
    """Rows of a CSR matrix, reordered and each followed by a one: both in a single copy."""
    n, d = X.shape
    lengths = np.diff(X.indptr) if order is None else np.diff(X.indptr)[order]
    indptr = np.zeros(n + 1, X.indptr.dtype)
    np.cumsum(lengths + 1, out=indptr[1:])
    data, indices = np.empty(indptr[-1], X.dtype), np.empty(indptr[-1], X.indices.dtype)
    for start in range(0, n, _PART):
        rows = slice(start, min(start + _PART, n))
        part = X[rows] if order is None else X[order[rows]]
        stored = slice(indptr[rows.start], indptr[rows.stop])
        features = np.ones(stored.stop - stored.start, dtype=bool)
        features[indptr[rows.start + 1 : rows.stop + 1] - 1 - stored.start] = False
        data[stored][features], data[stored][~features] = part.data, 1
        indices[stored][features], indices[stored][~features] = part.indices, d
    return sp.csr_matrix((data, indices, indptr), shape=(n, d + 1), copy=False)
