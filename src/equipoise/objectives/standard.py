r"""Rows seen through :math:`z = (x - \mu) / \sigma`, without touching the stored matrix.

Solvers see well-scaled features whatever the units of the data; sparse data stay sparse. With
:math:`\theta = (u, v)` in the new units, the raw parameter is
:math:`w = u / \sigma, \; b = \beta v - \mu^\top w`: the intercept absorbs the shift, and
:math:`\beta`, the root of a typical row's length, keeps its column from being drowned by very many
features. Only the penalty must know the scale.
"""

from typing import Any

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.objectives.base import Features

# Scales and shifts within these factors cost solvers nothing: the rows are then left as they are.
_TAME_SCALE = 30.0
_TAME_SHIFT = 3.0
_TAME_LENGTH = 10.0


class StandardizedFeatures(Features):
    """A view of other rows: columns shifted and scaled, the intercept's column of value ``unit``.

    ``moments`` are shift and scale, None where the columns are taken as they are.
    """

    def __init__(
        self, features: Features, moments: tuple[Vector, Vector] | None, unit: float = 1.0
    ) -> None:
        self._features, self._moments, self.unit = features, moments, unit
        self.n_scores, self.fit_intercept = features.n_scores, features.fit_intercept
        self.n_rows, self.n_features = features.n_rows, features.n_features
        self.row_cost = features.row_cost

    def unfold(self, theta: Matrix) -> Matrix:
        return self._features.unfold(theta)

    def fold(self, theta: Matrix) -> Matrix:
        return self._features.fold(theta)

    def raw(self, theta: Matrix) -> Matrix:
        out = theta.copy()
        coef, intercept = self._parts(out)
        intercept *= self.unit
        if self._moments is not None:
            shift, scale = self._moments
            coef /= scale
            intercept -= coef @ shift
        return out

    def standard(self, raw: Matrix) -> Matrix:
        out = raw.copy()
        coef, intercept = self._parts(out)
        if self._moments is not None:
            shift, scale = self._moments
            intercept += coef @ shift
            coef *= scale
        intercept /= self.unit
        return out

    def _parts(self, theta: Matrix) -> tuple[Matrix, Vector]:
        """Views of the coefficients and of the intercepts, which are zeros where there are none."""
        view, none = self.unfold(theta), np.zeros(self.n_scores)
        return view[:, : self.n_features], view[:, -1] if self.fit_intercept else none

    def prepare(self, theta: Matrix) -> Any:
        return self._features.prepare(self.raw(theta))

    def load(self, block: slice) -> Any:
        return self._features.load(block)

    def scores(self, prepared: Any, loaded: Any) -> Matrix:
        return self._features.scores(prepared, loaded)

    def pull(self, residual: Matrix, loaded: Any) -> Matrix:
        return self._features.pull(residual, loaded)

    def finish(self, pulled: Matrix) -> Matrix:
        out = self._features.finish(pulled)
        coef, intercept = self._parts(out)
        if self._moments is not None:
            shift, scale = self._moments
            coef -= np.outer(intercept, shift)
            coef /= scale
        intercept *= self.unit
        return out

    def design(self, loaded: Any) -> Matrix:
        out = np.array(self._features.design(loaded))
        if self._moments is not None:
            shift, scale = self._moments
            out[:, : self.n_features] -= shift
            out[:, : self.n_features] /= scale
        if self.fit_intercept:
            out[:, -1] = self.unit
        return out

    def take(self, rows: Indices) -> "StandardizedFeatures":
        return StandardizedFeatures(self._features.take(rows), self._moments, self.unit)


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
        return StandardizedFeatures(features, None, float(np.sqrt(length)))
    # A column that is constant in the sample may still vary elsewhere: only a large one is scaled.
    scale = np.where(constant, np.maximum(np.abs(shift), 1.0), scale)
    unit = max(1.0, float(np.sum(~constant)) ** 0.25)
    return StandardizedFeatures(features, (shift, scale), unit)
