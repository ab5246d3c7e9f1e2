"""In which units features are seen: as they are, standardised, or from an origin of their own."""

import numpy as np

from equipoise.arrays import Mask, Vector
from equipoise.objectives.matrices import ColumnMoments, Features

# _TAME_SCALE, _TAME_SHIFT, _TAME_LENGTH: factors of scales, shifts (in scales) and lengths of rows
# that cost solvers nothing: such rows are not standardised.
_TAME_SCALE = 30.0
_TAME_SHIFT = 3.0
_TAME_LENGTH = 10.0
# _FAR: shifts, in spreads, from which columns have an origin: rounding of scores is then less than
# 2e-12 of a spread, a thousandth of the least tolerance that is likely (1e-6 of a risk of 1e-3).
_FAR = 1e4
# _LAST_PLACES: spread, in units in the last place of its mean, below which a column is constant.
_LAST_PLACES = 4.0


def _constant(shift: Vector, scale: Vector) -> Mask:
    """Columns whose spread is rounding."""
    rounding = _LAST_PLACES * np.finfo(np.float64).eps * np.abs(shift)
    return scale <= np.maximum(rounding, 1e-300)


def standard_or_raw(features: Features, moments: ColumnMoments, ridge: float) -> Features:
    """Rows standardised by the moments of their columns, or as they are when tame.

    Columns of one value belong to the intercept: their coefficients stay zero, which is optimal
    with any penalty and without one.

    The curvature along a coefficient is about a quarter of its column's variance plus the penalty's
    ``ridge``: that sum, not the variance alone, is what scaling has to even out.
    """
    shift, scale, one_value = moments
    fixed = one_value & features.fit_intercept
    scale = np.where(_constant(shift, scale), scale, np.sqrt(scale**2 + 4 * ridge))
    if not features.fit_intercept:  # nothing absorbs a shift: scale about zero instead
        shift, scale = np.zeros_like(shift), np.hypot(shift, scale)
    constant = _constant(shift, scale)
    tame = constant | ((scale < _TAME_SCALE) & (scale > 1 / _TAME_SCALE))
    if np.all(fixed | (tame & (np.abs(shift) < _TAME_SHIFT * np.maximum(scale, 1)))):
        length = float(np.sqrt(np.sum((shift**2 + scale**2)[~fixed])))
        short = not features.fit_intercept or length < _TAME_LENGTH
        unit = 1.0 if short else float(np.sqrt(length))
        if not np.any(fixed):
            return features if short else features.standardized(None, unit)
        units = np.where(fixed, shift, 0.0), np.where(fixed, np.maximum(np.abs(shift), 1.0), 1.0)
        return features.standardized(units, unit, fixed)
    far = features.filled(~fixed & (np.abs(shift) > _FAR * np.where(constant, 1.0, scale)))
    origin, shift = np.where(far, shift, 0.0), np.where(far, 0.0, shift)
    # A column that is constant in the sample may still vary elsewhere: only a large one is scaled.
    scale = np.where(constant, np.maximum(np.abs(shift), 1.0), scale)
    unit = max(1.0, float(np.sum(~constant)) ** 0.25)
    return features.standardized(
        (shift, scale), unit, fixed if np.any(fixed) else None, origin if np.any(far) else None
    )
