"""Access to the feature matrix by blocks of rows: the one place where dense and sparse differ.

Conventions
-----------
``theta`` : flat float64 vector. Its layout belongs to the rows; ``unfold`` shows it as
    ``(n_scores, n_features + fit_intercept)`` with the intercepts last.
``block`` : a ``slice`` of rows.
``scores``, ``residual`` : arrays of shape ``(n_scores, rows)``.
``buffer`` : a raw sum of pulled residuals; ``finish`` turns it into a flat gradient.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[Any]


class Rows(ABC):
    """A feature matrix that answers products with blocks of its rows."""

    fit_intercept: bool
    n_scores: int
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]

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
    def buffer(self) -> Array:
        """An empty sum for ``pull``, in float64."""

    @abstractmethod
    def pull(self, residual: Array, block: slice, buffer: Array) -> None:
        """Add residuals of a block times its rows to a buffer."""

    @abstractmethod
    def finish(self, buffer: Array) -> Array:
        """A buffer as a flat gradient."""

    @abstractmethod
    def design(self, block: slice) -> Array:
        """The block as a dense array, intercept column included."""

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
        self.dtype = X.dtype

    def unfold(self, theta: Array) -> Array:
        return theta.reshape(*theta.shape[:-1], self.n_scores, self.width)

    def fold(self, theta: Array) -> Array:
        return theta.reshape(*theta.shape[:-2], self.size)

    def prepare(self, theta: Array) -> Array:
        return self.unfold(theta).astype(self.dtype)

    def scores(self, prepared: Array, block: slice) -> Array:
        scores: Array = prepared[:, : self.n_features] @ self._X[block].T
        if self.fit_intercept:
            scores += prepared[:, -1:]
        return scores

    def buffer(self) -> Array:
        return np.zeros((self.n_scores, self.width))

    def pull(self, residual: Array, block: slice, buffer: Array) -> None:
        buffer[:, : self.n_features] += residual @ self._X[block]
        if self.fit_intercept:
            buffer[:, -1] += residual.sum(axis=1, dtype=np.float64)

    def finish(self, buffer: Array) -> Array:
        return buffer.reshape(self.size)

    def design(self, block: slice) -> Array:
        X = self._X[block]
        return np.hstack([X, np.ones((len(X), 1), X.dtype)]) if self.fit_intercept else X

    def take(self, rows: NDArray[np.intp]) -> "DenseRows":
        return DenseRows(self._X[rows], self.n_scores, self.fit_intercept)

    @property
    def row_cost(self) -> float:
        return float(self.n_features)


class SparseRows(Rows):
    """A CSR matrix; never made dense but for the blocks that ``design`` is asked for.

    Parameters are laid out ``(width, n_scores)``: products with sparse rows then read and write
    whole cache lines, and no transposed copy is ever made.
    """

    def __init__(self, X: Any, n_scores: int, fit_intercept: bool) -> None:
        self._X, self.n_scores, self.fit_intercept = X, n_scores, fit_intercept
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype

    def unfold(self, theta: Array) -> Array:
        return theta.reshape(*theta.shape[:-1], self.width, self.n_scores).swapaxes(-1, -2)

    def fold(self, theta: Array) -> Array:
        return theta.swapaxes(-1, -2).reshape(*theta.shape[:-2], self.size)

    def prepare(self, theta: Array) -> Array:
        return theta.reshape(self.width, self.n_scores).astype(self.dtype)

    def scores(self, prepared: Array, block: slice) -> Array:
        scores = np.ascontiguousarray((self._block(block) @ prepared[: self.n_features]).T)
        if self.fit_intercept:
            scores += prepared[-1][:, None]
        return scores

    def buffer(self) -> Array:
        return np.zeros((self.width, self.n_scores))

    def pull(self, residual: Array, block: slice, buffer: Array) -> None:
        buffer[: self.n_features] += self._block(block).T @ np.ascontiguousarray(residual.T)
        if self.fit_intercept:
            buffer[-1] += residual.sum(axis=1, dtype=np.float64)

    def finish(self, buffer: Array) -> Array:
        return buffer.reshape(self.size)

    def design(self, block: slice) -> Array:
        X = self._block(block)
        if self.fit_intercept:
            X = sp.hstack([X, np.ones((X.shape[0], 1), X.dtype)])
        return np.asarray(X.todense())

    def take(self, rows: NDArray[np.intp]) -> "SparseRows":
        return SparseRows(self._X[rows], self.n_scores, self.fit_intercept)

    @property
    def row_cost(self) -> float:
        return float(self._X.nnz / max(1, self.n_rows))

    def _block(self, block: slice) -> Any:
        """Rows of a block that share the stored arrays with the whole (a slice would copy)."""
        X = self._X
        bounds = X.indptr[block.start : block.stop + 1]
        stored = slice(bounds[0], bounds[-1])
        parts = (X.data[stored], X.indices[stored], bounds - bounds[0])
        return sp.csr_matrix(parts, shape=(len(bounds) - 1, self.n_features), copy=False)
