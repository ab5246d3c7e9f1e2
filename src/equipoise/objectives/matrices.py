r"""Feature matrices: an array, or a CSR matrix, standardised without touching what is stored.

Features answer products with blocks of their rows, seen through :math:`z = (x - \mu) / \sigma`:
solvers see well-scaled features whatever the units of the data; sparse data stay sparse. With
:math:`\theta = (u, v)` in the new units, the raw parameter is
:math:`w = u / \sigma, \; b = \beta v - \mu^\top w`: the intercept absorbs the shift, and
:math:`\beta`, the root of a typical row's length, keeps its column from being drowned by very many
features. Only the penalty must know the scale.
"""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector

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
# Scales and shifts within these factors cost solvers nothing: the rows are then left as they are.
_TAME_SCALE = 30.0
_TAME_SHIFT = 3.0
_TAME_LENGTH = 10.0


class Features(ABC):
    """A feature matrix that answers products with blocks of its rows."""

    fit_intercept: bool
    n_scores: int
    n_rows: int
    n_features: int
    row_cost: float  # stored values in an average row
    locked: bool = False  # whether products hold the interpreter's lock
    unit: float = 1.0  # the intercept's column holds this value
    moments: tuple[Vector, Vector] | None = None  # shift and scale of the columns, if any
    fixed: Mask | None = None  # columns of one value, which the intercept stands for

    @classmethod
    @abstractmethod
    def takes(cls, X: Any) -> bool:
        """Whether a matrix that a user gives is of this kind."""

    @classmethod
    @abstractmethod
    def in_order(
        cls,
        X: Any,
        order: Indices | None,
        n_scores: int,
        fit_intercept: bool,
        *,
        copied: bool = True,
    ) -> "Features":
        """The rows of a user's matrix in another order; None where they are in it already.

        Unless ``copied``, rows are not put into that order before they are used, where they can.
        """

    @classmethod
    @abstractmethod
    def column_moments(cls, X: Any) -> tuple[Vector, Vector]:
        """Means of the columns and root mean squares about them, perhaps of a sample of rows."""

    @property
    def width(self) -> int:
        """Columns of the parameter: features, and one more for the intercept."""
        return self.n_features + self.fit_intercept

    @property
    def size(self) -> int:
        """Length of a flat parameter."""
        return self.n_scores * self.width

    @abstractmethod
    def unfold(self, theta: Matrix) -> Matrix:
        """Flat parameters ``(..., size)`` seen as ``(..., n_scores, width)``."""

    @abstractmethod
    def fold(self, theta: Matrix) -> Matrix:
        """The inverse of ``unfold``."""

    @abstractmethod
    def load(self, block: slice) -> Any:
        """The rows of a block in float64, in the form that products take."""

    @abstractmethod
    def scores(self, raw: Matrix, loaded: Any) -> Matrix:
        """A fresh array of scores of the rows in a block, by an unfolded raw parameter."""

    @abstractmethod
    def pull(self, residual: Matrix, loaded: Any) -> Matrix:
        """Residuals of a block times its rows as they are stored: a fresh float64 array."""

    @abstractmethod
    def dense(self, loaded: Any) -> Matrix:
        """The block as it is stored, as a dense array with a column of ones for the intercept."""

    @abstractmethod
    def take(self, rows: Indices) -> "Features":
        """Chosen rows, as a copy."""

    def standardized(
        self, moments: tuple[Vector, Vector] | None, unit: float, fixed: Mask | None = None
    ) -> Self:
        """The same rows, seen in other units."""
        out = copy(self)
        out.moments, out.unit, out.fixed = moments, unit, fixed
        return out

    def of_one_value(self, columns: Indices) -> Mask:
        """Which of some columns hold the same value in all rows; none where nobody has looked."""
        return np.zeros(len(columns), dtype=bool)

    def blur(self, theta: Matrix) -> float:
        """How far rounding may move scores where large values cancel."""
        if self.moments is None:
            return 0.0
        coef, intercept = self._parts(np.abs(self.raw(theta)))
        largest = float(np.max(coef @ np.abs(self.moments[0]) + intercept))
        return float(np.finfo(np.float64).eps) * largest

    @property
    def _is_raw(self) -> bool:
        return self.moments is None and self.unit == 1.0

    def raw(self, theta: Matrix) -> Matrix:
        """The parameter in the units of the stored features."""
        if self._is_raw:
            return theta
        out = theta.copy()
        coef, intercept = self._parts(out)
        intercept *= self.unit
        if self.moments is not None:
            shift, scale = self.moments
            coef /= scale
            intercept -= coef @ shift
        return out

    def standard(self, raw: Matrix) -> Matrix:
        """The inverse of ``raw``."""
        out = raw.copy()
        coef, intercept = self._parts(out)
        if self.moments is not None:
            shift, scale = self.moments
            intercept += coef @ shift
            coef *= scale
            if self.fixed is not None:
                coef[:, self.fixed] = 0.0
        intercept /= self.unit
        return out

    def _parts(self, theta: Matrix) -> tuple[Matrix, Vector]:
        """Views of the coefficients and of the intercepts, which are zeros where there are none."""
        view, none = self.unfold(theta), np.zeros(self.n_scores)
        return view[:, : self.n_features], view[:, -1] if self.fit_intercept else none

    def finish(self, pulled: Matrix) -> Matrix:
        """A sum of pulled residuals as a flat gradient; may use its memory."""
        out = pulled.reshape(self.size)
        if self._is_raw:
            return out
        coef, intercept = self._parts(out)
        if self.moments is not None:
            shift, scale = self.moments
            coef -= np.outer(intercept, shift)
            coef /= scale
            if self.fixed is not None:  # but for rounding
                coef[:, self.fixed] = 0.0
        intercept *= self.unit
        return out

    def design(self, loaded: Any) -> Matrix:
        """The block as a dense array, intercept column included."""
        if self._is_raw:
            return self.dense(loaded)
        out = np.array(self.dense(loaded))
        if self.moments is not None:
            shift, scale = self.moments
            out[:, : self.n_features] -= shift
            out[:, : self.n_features] /= scale
        if self.fit_intercept:
            out[:, -1] = self.unit
        return out


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
        cls,
        X: Any,
        order: Indices | None,
        n_scores: int,
        fit_intercept: bool,
        *,
        copied: bool = True,
    ) -> "DenseFeatures":
        if order is None or not copied or X.nbytes > _LARGE:
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

    def load(self, block: slice) -> Matrix:
        if self._order is None:
            rows = self._X[block]
        elif self._X.flags.c_contiguous:  # of any other array, take would copy the whole first
            rows = self._X.take(self._order[block], axis=0)
        else:
            rows = self._X[self._order[block]]
        return np.ascontiguousarray(rows, dtype=np.float64)

    def scores(self, raw: Matrix, loaded: Matrix) -> Matrix:
        # In this order BLAS reads each row once, in the order of memory.
        product = loaded @ raw[:, : self.n_features].T
        scores = np.ascontiguousarray(product.T)
        if self.fit_intercept:
            scores += raw[:, -1:]
        return scores

    def pull(self, residual: Matrix, loaded: Matrix) -> Matrix:
        pulled = np.empty((self.n_scores, self.width))
        # The operator @ would hold the interpreter's lock, as for all results this small.
        pulled[:, : self.n_features] = np.dot(residual, loaded)
        if self.fit_intercept:
            pulled[:, -1] = residual.sum(axis=1)
        return pulled

    def dense(self, loaded: Matrix) -> Matrix:
        return np.hstack([loaded, np.ones((len(loaded), 1))]) if self.fit_intercept else loaded

    def take(self, rows: Indices) -> "DenseFeatures":
        chosen = rows if self._order is None else self._order[rows]
        taken = DenseFeatures(self._X[chosen], self.n_scores, self.fit_intercept)
        return taken.standardized(self.moments, self.unit, self.fixed)

    def of_one_value(self, columns: Indices) -> Mask:
        if self.n_rows == 0:  # a layout for rows elsewhere
            return super().of_one_value(columns)
        return np.array([np.all(self._X[:, at] == self._X[0, at]) for at in columns], dtype=bool)


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

    def scores(self, raw: Matrix, loaded: Any) -> Matrix:
        return np.ascontiguousarray((loaded @ raw.T).T)

    def pull(self, residual: Matrix, loaded: Any) -> Matrix:
        # The transpose on the same arrays, which the constructor would copy.
        columns = sp.csc_matrix(loaded.shape[::-1], dtype=loaded.dtype)
        columns.data, columns.indices, columns.indptr = loaded.data, loaded.indices, loaded.indptr
        return np.asarray(columns @ np.ascontiguousarray(residual.T))

    def dense(self, loaded: Any) -> Matrix:
        return np.asarray(loaded.todense())

    def take(self, rows: Indices) -> "SparseFeatures":
        taken = SparseFeatures(self._X[rows], self.n_scores, self.fit_intercept)
        return taken.standardized(self.moments, self.unit)


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


def _constant(shift: Vector, scale: Vector) -> Mask:
    """Columns whose spread is rounding."""
    return scale <= 1e-12 * np.maximum(np.abs(shift), 1e-300)


def standard_or_raw(features: Features, moments: tuple[Vector, Vector], ridge: float) -> Features:
    """Rows standardised by the moments of ``X`` (a sample of them), or as they are when tame.

    The curvature along a coefficient is about a quarter of its column's variance plus the penalty's
    ``ridge``: that sum, not the variance alone, is what scaling has to even out.
    """
    shift, scale = moments
    scale = np.where(_constant(shift, scale), scale, np.sqrt(scale**2 + 4 * ridge))
    if not features.fit_intercept:  # nothing absorbs a shift: scale about zero instead
        shift, scale = np.zeros_like(shift), np.hypot(shift, scale)
    constant = _constant(shift, scale)
    tame = constant | ((scale < _TAME_SCALE) & (scale > 1 / _TAME_SCALE))
    if np.all(tame & (np.abs(shift) < _TAME_SHIFT * np.maximum(scale, 1))):
        length = float(np.sqrt(np.sum(shift**2 + scale**2)))
        if not features.fit_intercept or length < _TAME_LENGTH:
            return features
        return features.standardized(None, float(np.sqrt(length)))
    # A column that is constant in the sample may still vary elsewhere: only a large one is scaled.
    scale = np.where(constant, np.maximum(np.abs(shift), 1.0), scale)
    unit = max(1.0, float(np.sum(~constant)) ** 0.25)
    fixed = np.zeros(len(shift), dtype=bool)
    if features.fit_intercept:
        fixed[constant] = features.of_one_value(np.flatnonzero(constant))
    return features.standardized((shift, scale), unit, fixed if np.any(fixed) else None)
