r"""The simplex with a floor and a cap for every class.

.. math:: M = \{ m : \text{lower} \le m \le \text{upper}, \; \textstyle\sum_i m_i = 1 \}.

The simplex itself, LCVaR, LHCVaR and the boxes are all of this form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.arrays import ArrayLike, Vector
from equipoise.exceptions import ClassMismatchError, EmptySetError, InvalidParameterError
from equipoise.sets.base import MassSet, check_point, check_risks, frozen, weighted
from equipoise.sets.filling import fill, fill_level, project_box

# Distance from 1 within which a cap is 1: rounding of prior / alpha at the smallest prior.
_SNAP = 1e-12
# Excess or lack of the sum of floors or caps that is forgiven: users type a few digits.
_SUM_SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class CappedSimplex(MassSet):
    """Masses between a floor and a cap per class (definitions 3 and 4 of the paper).

    Parameters
    ----------
    lower, upper : array-like of shape (n_classes,)
        Floors and caps of the masses; an infinite cap is no cap.

    Examples
    --------
    >>> CappedSimplex([0.0, 0.0, 0.0], [1.0, 0.5, 0.2]).maximize([0.1, 0.2, 0.3]).round(12).tolist()
    [0.3, 0.5, 0.2]
    >>> CappedSimplex([0.0, 0.0], [1.0, 0.5]).dual([0.25, 0.5])
    (0.25, 0.375)
    """

    lower: Vector
    upper: Vector

    def __post_init__(self) -> None:
        for name, values in zip(("lower", "upper"), _bounds(self.lower, self.upper), strict=True):
            object.__setattr__(self, name, frozen(values))

    @cached_property
    def n_classes(self) -> int:
        return len(self._room)

    @property
    def box(self) -> tuple[Vector, Vector]:
        return self.lower, self.upper

    @cached_property
    def bounds(self) -> tuple[Vector, Vector]:
        """Floors and caps, or what those of the other classes leave."""
        over = max(float(self.upper.sum()) - 1, 0.0)
        return (
            np.maximum(self.lower, self.upper - over),
            np.minimum(self.upper, self.lower + self._budget),
        )

    def maximize(self, risks: ArrayLike) -> Vector:
        """Water-filling; classes that tie share what is left in proportion to their room."""
        vector = check_risks(risks, self.n_classes)
        filled: Vector = fill(vector, self._room, self._budget)
        return self.lower + filled

    def project(self, point: ArrayLike) -> Vector:
        return project_box(check_point(point, self.n_classes), self.lower, self.upper, 1.0)

    def dual(self, risks: ArrayLike) -> tuple[float, float]:
        r"""Minimiser and value of the dual in one scalar (propositions 4 and 5 of the paper).

        .. math:: \min_\lambda \; \lambda \beta + \sum_i (u_i - l_i) (r_i - \lambda)_+
                  + \sum_i l_i r_i, \qquad \beta = 1 - \textstyle\sum_i l_i,

        which is :math:`\lambda + \sum_i u_i (r_i - \lambda)_+` without floors. The minimiser is
        the risk of the first class, from the worst down, with which the caps sum to one; the
        paper's appendix G.1 prints another, which is always zero.
        """
        vector = check_risks(risks, self.n_classes)
        level = fill_level(vector, self._room, self._budget)
        # Gathered by risks, because infinite ones have no differences.
        above = np.where(vector > level, self._room, 0.0)
        rest = self._budget - float(above.sum())
        value = float(weighted(self.lower + above, vector))
        return level, value + (rest * level if rest > 0 else 0.0)

    @cached_property
    def _room(self) -> Vector:
        return self.upper - self.lower

    @cached_property
    def _budget(self) -> float:
        return max(1 - float(np.sum(self.lower)), 0.0)


def _bounds(lower: ArrayLike, upper: ArrayLike) -> tuple[Vector, Vector]:
    """Floors and caps, checked; caps above one are cut, sums within rounding of one corrected."""
    low, up = np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)
    if low.ndim != 1 or low.shape != up.shape or len(low) == 0:
        raise ClassMismatchError(
            f"lower and upper must hold one value per class, got shapes {low.shape} and {up.shape}."
        )
    up = np.where(up > 1 - _SNAP, 1.0, up)
    valid = (low >= 0) & (low <= up)
    if not valid.all():
        bad = int(np.argmin(valid))
        raise InvalidParameterError(
            f"lower and upper must satisfy 0 <= lower <= upper, got lower = {low[bad]:.6g} and "
            f"upper = {up[bad]:.6g} for class number {bad}."
        )
    check_sums(low, up)
    if len(low) == 1:
        return np.zeros(1), np.ones(1)
    return low / max(low.sum(), 1.0), up / min(up.sum(), 1.0)


def check_sums(
    lower: Vector, upper: Vector, names: tuple[str, str] = ("lower", "upper"), *, remedy: str = ""
) -> None:
    """Refuse floors and caps that leave no mass, by the names that users know them under."""
    for values, name, side, sign in zip(
        (lower, upper), names, ("most", "least"), (1, -1), strict=True
    ):
        if sign * (values.sum() - 1) > _SUM_SLACK:
            raise EmptySetError(
                f"The set is empty unless the sum of {name} over the classes is at {side} 1, "
                f"got a sum of {values.sum():.6g}{remedy}."
            )
