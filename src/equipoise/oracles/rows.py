"""Access to the feature matrix by blocks of rows: the one place where dense and sparse differ.

Conventions
-----------
A block is a ``slice`` of rows. Scores and residuals are ``(n_scores, rows)``, parameters
``(n_scores, n_features + fit_intercept)`` with the intercepts last.
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
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]

    @property
    def width(self) -> int:
        """Columns of the parameter: features, and one more for the intercept."""
        return self.n_features + self.fit_intercept

    @abstractmethod
    def scores(self, theta: Array, block: slice) -> Array:
        """A fresh array of scores of the rows in a block."""

    @abstractmethod
    def pull(self, residual: Array, block: slice) -> Array:
        """Residuals of a block times its rows: the shape of the parameter, in float64."""

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

    def __init__(self, X: Array, fit_intercept: bool) -> None:
        self._X, self.fit_intercept = X, fit_intercept
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype

    def scores(self, theta: Array, block: slice) -> Array:
        scores = theta[:, : self.n_features] @ self._X[block].T
        if self.fit_intercept:
            scores += theta[:, -1:]
        return scores

    def pull(self, residual: Array, block: slice) -> Array:
        out = np.empty((residual.shape[0], self.width))
        out[:, : self.n_features] = residual @ self._X[block]
        if self.fit_intercept:
            out[:, -1] = residual.sum(axis=1, dtype=np.float64)
        return out

    def design(self, block: slice) -> Array:
        X = self._X[block]
        return np.hstack([X, np.ones((len(X), 1), X.dtype)]) if self.fit_intercept else X

    def take(self, rows: NDArray[np.intp]) -> "DenseRows":
        return DenseRows(np.ascontiguousarray(self._X[rows]), self.fit_intercept)

    @property
    def row_cost(self) -> float:
        return float(self.n_features)


class SparseRows(Rows):
    """A CSR matrix; never made dense but for the blocks that ``design`` is asked for."""

    def __init__(self, X: Any, fit_intercept: bool) -> None:
        self._X, self.fit_intercept = X, fit_intercept
        self.n_rows, self.n_features = X.shape
        self.dtype = X.dtype

    def scores(self, theta: Array, block: slice) -> Array:
        coefficients = np.ascontiguousarray(theta[:, : self.n_features].T)
        scores = np.ascontiguousarray((self._block(block) @ coefficients).T)
        if self.fit_intercept:
            scores += theta[:, -1:]
        return scores

    def pull(self, residual: Array, block: slice) -> Array:
        out = np.empty((residual.shape[0], self.width))
        out[:, : self.n_features] = (self._block(block).T @ np.ascontiguousarray(residual.T)).T
        if self.fit_intercept:
            out[:, -1] = residual.sum(axis=1, dtype=np.float64)
        return out

    def design(self, block: slice) -> Array:
        X = self._block(block)
        if self.fit_intercept:
            X = sp.hstack([X, np.ones((X.shape[0], 1), X.dtype)])
        return np.asarray(X.todense())

    def take(self, rows: NDArray[np.intp]) -> "SparseRows":
        return SparseRows(self._X[rows], self.fit_intercept)

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
