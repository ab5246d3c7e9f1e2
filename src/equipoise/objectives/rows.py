"""Access to the feature matrix by blocks of rows: the one place where dense and sparse differ.

Conventions
-----------
``theta`` : flat float64 vector. Its layout belongs to the rows; ``unfold`` shows it as
    ``(n_scores, n_features + fit_intercept)`` with the intercepts last.
``block`` : a ``slice`` of rows; ``loaded``, what ``load`` makes of it for the products.
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


class Features(ABC):
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
    def load(self, block: slice) -> Any:
        """The rows of a block in float64, in the form that products take."""

    @abstractmethod
    def scores(self, prepared: Any, loaded: Any) -> Array:
        """A fresh array of scores of the rows in a block."""

    @abstractmethod
    def pull(self, residual: Array, loaded: Any) -> Array:
        """Residuals of a block times its rows: a fresh float64 array."""

    @abstractmethod
    def finish(self, pulled: Array) -> Array:
        """A sum of pulled residuals as a flat gradient; may use its memory."""

    @abstractmethod
    def design(self, loaded: Any) -> Array:
        """The block as a dense array, intercept column included."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The type in which features are stored."""

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> "Features":
        """Chosen rows, as a copy."""

    @property
    @abstractmethod
    def row_cost(self) -> float:
        """Stored values in an average row."""


class DenseFeatures(Features):
    """An array, its rows taken in their own order or in that of ``order``, a block at a time."""

    def __init__(
        self,
        X: Array,
        n_scores: int,
        fit_intercept: bool,
        order: NDArray[np.intp] | None = None,
    ) -> None:
        self._X, self._order = X, order
        self.n_scores, self.fit_intercept = n_scores, fit_intercept
        self.n_rows, self.n_features = X.shape

    def unfold(self, theta: Array) -> Array:
        return theta.reshape(*theta.shape[:-1], self.n_scores, self.width)

    def fold(self, theta: Array) -> Array:
        return theta.reshape(*theta.shape[:-2], self.size)

    def prepare(self, theta: Array) -> Array:
        return self.unfold(theta)

    def load(self, block: slice) -> Array:
        if self._order is None:
            rows = self._X[block]
        elif self._X.flags.c_contiguous:  # of any other array, take would copy the whole first
            rows = self._X.take(self._order[block], axis=0)
        else:
            rows = self._X[self._order[block]]
        return np.ascontiguousarray(rows, dtype=np.float64)

    def scores(self, prepared: Array, loaded: Array) -> Array:
        # In this order BLAS reads each row once, in the order of memory.
        product = loaded @ prepared[:, : self.n_features].T
        scores = np.ascontiguousarray(product.T)
        if self.fit_intercept:
            scores += prepared[:, -1:]
        return scores

    def pull(self, residual: Array, loaded: Array) -> Array:
        pulled = np.empty((self.n_scores, self.width))
        # The operator @ would hold the interpreter's lock, as for all results this small.
        pulled[:, : self.n_features] = np.dot(residual, loaded)
        if self.fit_intercept:
            pulled[:, -1] = residual.sum(axis=1)
        return pulled

    def finish(self, pulled: Array) -> Array:
        return pulled.reshape(self.size)

    def design(self, loaded: Array) -> Array:
        return np.hstack([loaded, np.ones((len(loaded), 1))]) if self.fit_intercept else loaded

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._X.dtype

    def take(self, rows: NDArray[np.intp]) -> "DenseFeatures":
        chosen = rows if self._order is None else self._order[rows]
        return DenseFeatures(self._X[chosen], self.n_scores, self.fit_intercept)

    @property
    def row_cost(self) -> float:
        return float(self.n_features)


class SparseFeatures(Features):
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

    def scores(self, prepared: Array, loaded: Any) -> Array:
        return np.ascontiguousarray((loaded @ prepared).T)

    def pull(self, residual: Array, loaded: Any) -> Array:
        return np.asarray(_transposed(loaded) @ np.ascontiguousarray(residual.T))

    def finish(self, pulled: Array) -> Array:
        return pulled.reshape(self.size)

    def design(self, loaded: Any) -> Array:
        return np.asarray(loaded.todense())

    @property
    def dtype(self) -> np.dtype[Any]:
        stored: np.dtype[Any] = self._X.dtype
        return stored

    def take(self, rows: NDArray[np.intp]) -> "SparseFeatures":
        taken = SparseFeatures.__new__(SparseFeatures)
        taken._init(self._X[rows], self.n_scores, self.fit_intercept)
        return taken

    @property
    def row_cost(self) -> float:
        # Blocks of sparse rows gain little from the cache and lose much by being many.
        return float(self._X.nnz / max(1, self.n_rows)) / 4


def _transposed(X: Any) -> Any:
    """The transpose of a CSR matrix on the same arrays, which the constructor would copy."""
    out = sp.csc_matrix(X.shape[::-1], dtype=X.dtype)
    out.data, out.indices, out.indptr = X.data, X.indices, X.indptr
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
