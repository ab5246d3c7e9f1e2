r"""Rows seen through :math:`z = (x - \mu) / \sigma`, without touching the stored matrix.

Solvers see well-scaled features whatever the units of the data; sparse data stay sparse. With
:math:`\theta = (u, v)` in the new units, the raw parameter is
:math:`w = u / \sigma, \; b = \beta v - \mu^\top w`: the intercept absorbs the shift, and
:math:`\beta`, the root of a typical row's length, keeps its column from being drowned by very many
features. Only the penalty must know the scale.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.objectives.rows import Array, Features

# Scales and shifts within these factors cost solvers nothing: the rows are then left as they are.
_TAME_SCALE = 30.0
_TAME_SHIFT = 3.0
_TAME_LENGTH = 10.0
_HUGE = 1e100
# Stored values of sparse data that are summed at a time.
_PART = 1 << 16


class StandardizedFeatures(Features):
    """A view of other rows: columns shifted and scaled, the intercept's column of value ``unit``.

    ``shift`` and ``scale`` are None where the columns are taken as they are.
    """

    def __init__(
        self, rows: Features, shift: Vector | None, scale: Vector | None, unit: float = 1.0
    ) -> None:
        self._rows, self._shift, self._scale, self.unit = rows, shift, scale, unit
        self.n_scores, self.fit_intercept = rows.n_scores, rows.fit_intercept
        self.n_rows, self.n_features = rows.n_rows, rows.n_features

    def unfold(self, theta: Array) -> Array:
        return self._rows.unfold(theta)

    def fold(self, theta: Array) -> Array:
        return self._rows.fold(theta)

    def raw(self, theta: Array) -> Array:
        out, features = theta.copy(), slice(self.n_features)
        view = self.unfold(out)
        if self._scale is not None:
            view[:, features] /= self._scale
        if self.fit_intercept:
            view[:, -1] *= self.unit
            if self._shift is not None:
                view[:, -1] -= view[:, features] @ self._shift
        return out

    def standard(self, raw: Array) -> Array:
        out, features = raw.copy(), slice(self.n_features)
        view = self.unfold(out)
        if self.fit_intercept:
            if self._shift is not None:
                view[:, -1] += view[:, features] @ self._shift
            view[:, -1] /= self.unit
        if self._scale is not None:
            view[:, features] *= self._scale
        return out

    def prepare(self, theta: Array) -> Any:
        return self._rows.prepare(self.raw(theta))

    def load(self, block: slice) -> Any:
        return self._rows.load(block)

    def scores(self, prepared: Any, loaded: Any) -> Array:
        return self._rows.scores(prepared, loaded)

    def pull(self, residual: Array, loaded: Any) -> Array:
        return self._rows.pull(residual, loaded)

    def finish(self, pulled: Array) -> Array:
        out, features = self._rows.finish(pulled), slice(self.n_features)
        view = self.unfold(out)
        if self.fit_intercept:
            if self._shift is not None:
                view[:, features] -= np.outer(view[:, -1], self._shift)
            view[:, -1] *= self.unit
        if self._scale is not None:
            view[:, features] /= self._scale
        return out

    def design(self, loaded: Any) -> Array:
        out = np.array(self._rows.design(loaded))
        features = slice(self.n_features)
        if self._shift is not None:
            out[:, features] -= self._shift
        if self._scale is not None:
            out[:, features] /= self._scale
        if self.fit_intercept:
            out[:, -1] = self.unit
        return out

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._rows.dtype

    def take(self, rows: NDArray[np.intp]) -> "StandardizedFeatures":
        return StandardizedFeatures(self._rows.take(rows), self._shift, self._scale, self.unit)

    @property
    def row_cost(self) -> float:
        return self._rows.row_cost


def moments(X: Any) -> tuple[Vector, Vector]:
    """Column means and root mean squares about them, in float64, of a dense or sparse matrix."""
    top = float(np.abs(X.data if sp.issparse(X) else X).max(initial=0.0))
    if top > _HUGE:  # squares would overflow
        mean, spread = moments(X / top)
        return mean * top, spread * top
    if sp.issparse(X):
        mean, square = _sparse_sums(X) / max(1, X.shape[0])
        return mean, np.sqrt(np.maximum(square - mean**2, 0))
    return X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)


def _sparse_sums(X: Any) -> NDArray[np.float64]:
    """Column sums of a CSR matrix and of its squares, a part at a time: no copy in float64."""
    sums = np.zeros((2, X.shape[1]))
    for start in range(0, X.nnz, _PART):
        part = slice(start, start + _PART)
        values = X.data[part].astype(np.float64)
        for power in (1, 2):
            found = np.bincount(X.indices[part], weights=values**power, minlength=X.shape[1])
            sums[power - 1] += found
    return sums


def _constant(shift: Vector, scale: Vector) -> NDArray[np.bool_]:
    """Columns whose spread is rounding."""
    return scale <= 1e-12 * np.maximum(np.abs(shift), 1e-300)


def is_tame(shift: Vector, scale: Vector) -> bool:
    """Whether columns are scaled well enough to be taken as they are."""
    used = ~_constant(shift, scale)
    scales_tame = np.all((scale[used] < _TAME_SCALE) & (scale[used] > 1 / _TAME_SCALE))
    return bool(scales_tame and np.all(np.abs(shift) < _TAME_SHIFT * np.maximum(scale, 1)))


def standard_or_raw(rows: Features, X: Any, ridge: float) -> Features:
    """Rows standardised by the moments of ``X`` (a sample of them), or as they are when tame.

    The curvature along a coefficient is about a quarter of its column's variance plus the penalty's
    ``ridge``: that sum, not the variance alone, is what scaling has to even out.
    """
    shift, scale = moments(X)
    scale = np.where(_constant(shift, scale), scale, np.sqrt(scale**2 + 4 * ridge))
    if not rows.fit_intercept:  # nothing absorbs a shift: scale about zero instead
        shift, scale = np.zeros_like(shift), np.hypot(shift, scale)
    if is_tame(shift, scale):
        length = float(np.sqrt(np.sum(shift**2 + scale**2)))
        if not rows.fit_intercept or length < _TAME_LENGTH:
            return rows
        return StandardizedFeatures(rows, None, None, float(np.sqrt(length)))
    # A column that is constant in the sample may still vary elsewhere: only a large one is scaled.
    constant = _constant(shift, scale)
    scale = np.where(constant, np.maximum(np.abs(shift), 1.0), scale)
    return StandardizedFeatures(rows, shift, scale, max(1.0, float(np.sum(~constant)) ** 0.25))
