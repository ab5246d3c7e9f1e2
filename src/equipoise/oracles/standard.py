r"""Rows seen through :math:`z = (x - \mu) / \sigma`, without touching the stored matrix.

Solvers see well-scaled features whatever the units of the data; sparse data stay sparse. With
:math:`\theta = (u, b)` in the new units, the raw parameter is
:math:`w = u / \sigma, \; b - \mu^\top w`, so the intercept absorbs the shift and only the penalty
must know the scale.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.oracles.rows import Array, Rows
from equipoise.priors import Vector

# Scales and shifts within these factors cost solvers nothing: the rows are then left as they are.
_TAME_SCALE = 30.0
_TAME_SHIFT = 3.0


class StandardRows(Rows):
    """A view of other rows, shifted and scaled column by column."""

    def __init__(self, rows: Rows, shift: Vector, scale: Vector) -> None:
        self._rows, self._shift, self._scale = rows, shift, scale
        self.n_scores, self.fit_intercept = rows.n_scores, rows.fit_intercept
        self.n_rows, self.n_features, self.dtype = rows.n_rows, rows.n_features, rows.dtype

    def unfold(self, theta: Array) -> Array:
        return self._rows.unfold(theta)

    def fold(self, theta: Array) -> Array:
        return self._rows.fold(theta)

    def raw(self, theta: Array) -> Array:
        """The parameter in the units of the stored rows."""
        out = self.unfold(theta.copy())
        out[:, : self.n_features] /= self._scale
        if self.fit_intercept:
            out[:, -1] -= out[:, : self.n_features] @ self._shift
        return self.fold(out)

    def standard(self, raw: Array) -> Array:
        """The inverse of ``raw``."""
        out = self.unfold(raw.copy())
        if self.fit_intercept:
            out[:, -1] += out[:, : self.n_features] @ self._shift
        out[:, : self.n_features] *= self._scale
        return self.fold(out)

    def prepare(self, theta: Array) -> Any:
        return self._rows.prepare(self.raw(theta))

    def scores(self, prepared: Any, block: slice) -> Array:
        return self._rows.scores(prepared, block)

    def buffer(self) -> Array:
        return self._rows.buffer()

    def pull(self, residual: Array, block: slice, buffer: Array) -> None:
        self._rows.pull(residual, block, buffer)

    def finish(self, buffer: Array) -> Array:
        out = self.unfold(self._rows.finish(buffer))
        if self.fit_intercept:
            out[:, : self.n_features] -= np.outer(out[:, -1], self._shift)
        out[:, : self.n_features] /= self._scale
        return self.fold(out)

    def design(self, block: slice) -> Array:
        out = self._rows.design(block).copy()
        out[:, : self.n_features] -= self._shift.astype(self.dtype)
        out[:, : self.n_features] /= self._scale.astype(self.dtype)
        return out

    def take(self, rows: NDArray[np.intp]) -> "StandardRows":
        return StandardRows(self._rows.take(rows), self._shift, self._scale)

    @property
    def row_cost(self) -> float:
        return self._rows.row_cost


def moments(X: Any) -> tuple[Vector, Vector]:
    """Column means and root mean squares about them, in float64, of a dense or sparse matrix."""
    n = X.shape[0]
    if hasattr(X, "tocsr"):
        mean = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() / n
        square = np.asarray(X.astype(np.float64).power(2).sum(axis=0)).ravel() / n
        return mean, np.sqrt(np.maximum(square - mean**2, 0))
    return X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)


def _constant(shift: Vector, scale: Vector) -> NDArray[np.bool_]:
    """Columns whose spread is rounding."""
    return scale <= 1e-12 * np.maximum(np.abs(shift), 1e-300)


def is_tame(shift: Vector, scale: Vector) -> bool:
    """Whether columns are scaled well enough to be taken as they are."""
    used = ~_constant(shift, scale)
    scales_tame = np.all((scale[used] < _TAME_SCALE) & (scale[used] > 1 / _TAME_SCALE))
    return bool(scales_tame and np.all(np.abs(shift) < _TAME_SHIFT * np.maximum(scale, 1)))


def standard_or_raw(rows: Rows, X: Any) -> Rows:
    """Rows standardised by the moments of ``X`` (a sample of them), or as they are when tame."""
    shift, scale = moments(X)
    if not rows.fit_intercept:  # nothing absorbs a shift: scale about zero instead
        shift, scale = np.zeros_like(shift), np.hypot(shift, scale)
    if is_tame(shift, scale):
        return rows
    # A column that is constant in the sample may still vary elsewhere: only a large one is scaled.
    scale = np.where(_constant(shift, scale), np.maximum(np.abs(shift), 1.0), scale)
    return StandardRows(rows, shift, scale)
