"""Features in an array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.objectives.base import HUGE, Features

# Rows from which the scale of a column is judged.
_SAMPLE = 2_000
# Rows that are copied at a time.
_PART = 4_096
# Larger arrays are not copied: their rows are gathered, a block at a time, in every pass. That
# costs a little of the time of a fit; a copy would cost all of the memory again.
_LARGE = 1 << 26


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
        return cls(_reordered(X, order), n_scores, fit_intercept)

    @classmethod
    def column_moments(cls, X: Any) -> tuple[Vector, Vector]:
        sample = X[:: max(1, len(X) // _SAMPLE)]
        top = float(np.abs(sample).max(initial=0.0))
        if top > HUGE:  # squares would overflow
            mean, spread = cls.column_moments(sample / top)
            return mean * top, spread * top
        return sample.mean(axis=0, dtype=np.float64), sample.std(axis=0, dtype=np.float64)

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


def _reordered(X: NDArray[Any], order: Indices) -> NDArray[Any]:
    """Rows in another order, row by row in memory: one copy, whatever the layout they come in."""
    out = np.empty(X.shape, X.dtype)
    for start in range(0, len(order), _PART):
        part = slice(start, start + _PART)
        out[part] = X[order[part]]
    return out
