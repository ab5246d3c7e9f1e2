r"""Feature matrices, arrays among them, standardised without touching what is stored.

Features form products with blocks of their rows, scaled as :math:`z = (x - \mu) / \sigma`:
solvers see well-scaled features in any units of the data; sparse data stay sparse. With
:math:`\theta = (u, v)` in the new units, the raw parameter is
:math:`w = u / \sigma, \; b = \beta v - \mu^\top w`: the intercept absorbs the shift, and
:math:`\beta`, the root of a typical row's length, keeps its column from being drowned by very many
features. Only the penalty must know the scale.

Columns far from zero are worse than unscaled ones: scores would be small differences of large
products. Such columns have an ``origin``, which is taken off the rows whenever they are loaded, and
:math:`\mu` is then zero. The difference of two numbers within a factor of two is exact: solvers see
such columns as exactly as any.
"""

from abc import ABC, abstractmethod
from copy import copy
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector

# _SAMPLE: rows from which the scale of a column is estimated.
_SAMPLE = 2_000
# ROWS_AT_A_TIME: copied.
ROWS_AT_A_TIME = 1 << 12
# _HUGE: values whose squares may overflow.
_HUGE = 1e100
# LARGE: bytes above which an array is not copied: rows are gathered, a block at a time, in every
# pass. That costs a little of the time of a fit; a copy would cost all of the memory again.
LARGE = 1 << 26


class ColumnMoments(NamedTuple):
    """Where the columns of a matrix lie, perhaps by a sample of its rows."""

    mean: Vector
    spread: Vector  # root mean square about the mean
    one_value: Mask  # whether all rows, not those of a sample, hold one value other than zero

    @classmethod
    def none(cls) -> "ColumnMoments":
        """The moments of no columns at all."""
        return cls(np.empty(0), np.empty(0), np.empty(0, dtype=bool))


class Features(ABC):
    """A feature matrix that forms products with blocks of its rows."""

    fit_intercept: bool
    n_scores: int
    n_rows: int
    n_features: int
    row_cost: float  # stored values in an average row
    locked: bool = False  # whether products hold the interpreter's lock
    unit: float = 1.0  # the intercept's column holds this value
    moments: tuple[Vector, Vector] | None = None  # shift and scale of the columns, if any
    fixed: Mask | None = None  # columns of one value, which the intercept stands for
    dtype: Any = np.float64  # of loaded rows
    stored_scale: Vector | None = None  # that columns were divided by before they were stored
    origin: Vector | None = None  # what is taken off the rows as they are loaded

    @classmethod
    @abstractmethod
    def takes(cls, X: Any) -> bool:
        """Whether this class reads a matrix of a user."""

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
    def column_moments(cls, X: Any) -> ColumnMoments:
        """Where the columns of a user's matrix lie."""

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

    @property
    def scale(self) -> Vector | None:
        """The scale of the columns in the units of solvers; None for that of the user."""
        return self.stored_scale if self.moments is None else self.moments[1]

    @abstractmethod
    def single(self) -> "Features":
        """A copy in single precision, for the same parameters in the units of solvers."""

    @abstractmethod
    def load(self, block: slice) -> Any:
        """The rows of a block in ``dtype``, in the form that products take."""

    @abstractmethod
    def scores(self, raw: Matrix, loaded: Any) -> Matrix:
        """A fresh array of scores of the rows in a block, by an unfolded raw parameter."""

    @abstractmethod
    def adjoint(self, residual: Matrix, loaded: Any) -> Matrix:
        """Residuals of a block times its rows as they are stored: a fresh float64 array."""

    @abstractmethod
    def dense(self, loaded: Any) -> Matrix:
        """The block as it is stored, as a dense array with a column of ones for the intercept."""

    @abstractmethod
    def take(self, rows: Indices) -> "Features":
        """Chosen rows, as a copy."""

    def standardized(
        self,
        moments: tuple[Vector, Vector] | None,
        unit: float,
        fixed: Mask | None = None,
        origin: Vector | None = None,
    ) -> Self:
        """The same rows, seen in other units."""
        out = copy(self)
        out.moments, out.unit, out.fixed, out.origin = moments, unit, fixed, origin
        return out

    def in_units_of(self, other: "Features") -> Self:
        """The same rows, seen in the units of others."""
        return self.standardized(other.moments, other.unit, other.fixed, other.origin)

    def filled(self, columns: Mask) -> Mask:
        """Which of some columns have a stored value in every row: an origin can be taken off."""
        return columns

    def model(self, theta: Matrix, precision: Any) -> tuple[Matrix, Vector]:
        """Coefficients and intercepts of a precision, the latter for the former as they are then.

        Intercepts of several scores have mean zero.
        """
        coef, intercept = self._parts(self.raw(theta))
        rounded = np.ascontiguousarray(coef.astype(precision), dtype=np.float64)
        if self.moments is not None:
            intercept = intercept + (coef - rounded) @ self.moments[0]
        if len(intercept) > 1:
            intercept = intercept - self.at_zero(rounded, intercept).mean()
        return rounded, self.at_zero(rounded, intercept).astype(precision).astype(np.float64)

    def spill(self, coef: Matrix, intercept: Vector, precision: Any) -> float:
        """The largest change of scores of typical rows by rounding to a precision."""
        places = np.zeros(self.n_features)
        for part in (self.moments and self.moments[0], self.origin):
            places += 0.0 if part is None else np.abs(part)
        largest = float(np.max(np.abs(coef) @ places + np.abs(intercept)))
        return float(np.finfo(precision).eps) * largest

    def at_origin(self, coef: Matrix, intercept: Vector) -> Vector:
        """Intercepts that count from the origin, each rounded once."""
        return self._moved(coef, intercept, 1)

    def at_zero(self, coef: Matrix, intercept: Vector) -> Vector:
        """The inverse of ``at_origin``."""
        return self._moved(coef, intercept, -1)

    def _moved(self, coef: Matrix, intercept: Vector, sign: int) -> Vector:
        if self.origin is None:
            return intercept
        far = np.flatnonzero(self.origin)
        origin = [sign * Fraction(value) for value in self.origin[far].tolist()]
        rows = zip(coef[:, far].tolist(), intercept.tolist(), strict=True)
        products = (
            sum((Fraction(w) * c for w, c in zip(row, origin, strict=True)), Fraction(b))
            for row, b in rows
        )
        return np.array([float(total) for total in products])

    def blur(self, theta: Matrix) -> float:
        """The largest change of a score by rounding where large values cancel."""
        if self.moments is None:
            return 0.0
        coef, intercept = self._parts(np.abs(self.raw(theta)))
        largest = float(np.max(coef @ np.abs(self.moments[0]) + intercept))
        return float(np.finfo(np.float64).eps) * largest

    def apart(self, theta: Matrix) -> Matrix:
        """The parameter without what the coefficients of several scores have in common.

        Losses see differences of scores alone, which a common part would only round.
        """
        out = theta.copy()
        coef, _ = self._parts(out)
        if self.n_scores > 1:
            coef -= coef.mean(axis=0)
        return out

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

    def finish(self, products: Matrix) -> Matrix:
        """A sum of products residuals as a flat gradient; may use its memory."""
        out = products.reshape(self.size)
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
        if order is None or not copied or X.nbytes > LARGE:
            return cls(X, n_scores, fit_intercept, order)
        # Row by row in memory: one copy, whatever the layout they come in.
        sorted_rows = np.empty(X.shape, X.dtype)
        for start in range(0, len(order), ROWS_AT_A_TIME):
            part = slice(start, start + ROWS_AT_A_TIME)
            sorted_rows[part] = X[order[part]]
        return cls(sorted_rows, n_scores, fit_intercept)

    @classmethod
    def column_moments(cls, X: Any) -> ColumnMoments:
        sample = X[:: max(1, len(X) // _SAMPLE)]
        unit = tame_unit(sample)
        sample = sample / unit
        # From the first row, which lies where the others do: their differences are exact.
        first = sample[0].astype(np.float64)
        sample = sample - first
        mean, spread = (first + sample.mean(axis=0)) * unit, sample.std(axis=0) * unit
        one_value = (spread == 0) & (X[0] != 0)
        for column in np.flatnonzero(one_value):
            one_value[column] = np.all(X[:, column] == X[0, column])
        mean[one_value] = X[0, one_value]
        return ColumnMoments(mean, spread, one_value)

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
        rows = np.ascontiguousarray(rows, dtype=self.dtype)
        return rows if self.origin is None else rows - self.origin

    def single(self) -> "DenseFeatures":
        # In the units of solvers: there are then no products whose difference is small.
        out = np.empty((self.n_rows, self.n_features), np.float32)
        for start in range(0, self.n_rows, ROWS_AT_A_TIME):
            block = slice(start, start + ROWS_AT_A_TIME)
            out[block] = self.design(self.load(block))[:, : self.n_features]
        if self.fixed is not None:
            out[:, self.fixed] = 0.0
        copied = DenseFeatures(out, self.n_scores, self.fit_intercept)
        copied.unit, copied.dtype, copied.stored_scale = self.unit, np.float32, self.scale
        return copied

    def scores(self, raw: Matrix, loaded: Matrix) -> Matrix:
        coef = raw[:, : self.n_features]
        if self.n_scores > len(loaded):  # the transpose would cost more than the product
            scores: Matrix = np.dot(coef, loaded.T)
        else:
            # In this order BLAS reads each row once, in the order of memory.
            scores = np.ascontiguousarray((loaded @ coef.T).T)
        if self.fit_intercept:
            scores += raw[:, -1:]
        return scores

    def adjoint(self, residual: Matrix, loaded: Matrix) -> Matrix:
        products = np.empty((self.n_scores, self.width))
        # The operator @ would hold the interpreter's lock, as for all results this small.
        products[:, : self.n_features] = np.dot(residual, loaded)
        if self.fit_intercept:
            products[:, -1] = residual.sum(axis=1)
        return products

    def dense(self, loaded: Matrix) -> Matrix:
        return np.hstack([loaded, np.ones((len(loaded), 1))]) if self.fit_intercept else loaded

    def take(self, rows: Indices) -> "DenseFeatures":
        chosen = rows if self._order is None else self._order[rows]
        taken = DenseFeatures(self._X[chosen], self.n_scores, self.fit_intercept)
        return taken.in_units_of(self)


def with_last_score(features: Features, free: Matrix) -> Matrix:
    """The whole Hessian from the blocks of all scores but the last.

    Equal shifts of all scores change nothing: rows of blocks sum to zero. Along those shifts the
    matrix is made regular, which no direction that a solver takes can notice.
    """
    k, width = features.n_scores, features.width
    out = np.zeros((k, width, k, width))
    out[:-1, :, :-1, :] = free.reshape(k - 1, width, k - 1, width)
    out[-1] = -out[:-1].sum(axis=0)
    out[:, :, -1, :] = -out[:, :, :-1, :].sum(axis=2)
    typical = np.maximum(np.einsum("axax->x", out) / k, np.finfo(float).tiny)
    out += np.einsum("ab,xy->axby", np.ones((k, k)) / k, np.diag(typical))
    places = np.arange(float(k * width)).reshape(k, width)
    order = features.fold(places).astype(np.intp)
    return np.asarray(out.reshape(k * width, k * width)[np.ix_(order, order)])


def tame_unit(values: NDArray[Any]) -> float:
    """A unit in which squares do not overflow: one, unless values are huge."""
    top = float(np.abs(values).max(initial=0.0))
    return top if top > _HUGE else 1.0
