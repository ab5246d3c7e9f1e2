"""No class counts more than a given number of times another."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from equipoise.arrays import ArrayLike, Mask, Vector
from equipoise.sets.base import (
    MassSet,
    Uncertainty,
    check_masses,
    check_point,
    check_risks,
    unit_range,
)
from equipoise.sets.filling import project_box
from equipoise.sets.hull import Hull
from equipoise.validation.numbers import check_number
from equipoise.weights.priors import masses_of, named_prior

# Size of a point from which on the maximiser is nearer than the rounded projection: the inverse
# square root of the machine epsilon, as one is off by 1 / size and the other by epsilon * size.
_FAR_FROM_CONE = 7e7
# Newton steps of a projection. On a piecewise linear function each step ends on another piece; a
# bracket closes by bisection where the steps leave it, to all digits in about 60 steps.
_MAX_SHIFTS = 200


@dataclass(frozen=True, eq=False)
class RatioCone(MassSet):
    r"""Masses whose weights lie within a factor of each other.

    .. math:: \{ m : t p_i \le m_i \le r t p_i \text{ for some } t, \; \textstyle\sum_i m_i = 1 \}.

    Parameters
    ----------
    prior : array-like of shape (n_classes,)
        A probability vector; classes without prior have no mass.
    ratio : float >= 1
        The factor :math:`r`.

    Examples
    --------
    >>> RatioCone([0.9, 0.1], 3.0).maximize([0.2, 0.6]).round(12).tolist()
    [0.75, 0.25]
    """

    prior: Vector
    ratio: float

    def __post_init__(self) -> None:
        check_number(self.ratio, "ratio", "[1, inf)")
        object.__setattr__(self, "prior", check_masses(self.prior, "prior"))

    @property
    def n_classes(self) -> int:
        return len(self.prior)

    @cached_property
    def bounds(self) -> tuple[Vector, Vector]:
        p, others, r = self.prior, 1 - self.prior, self.ratio
        return p / (p + r * others), r * p / (r * p + others)

    @cached_property
    def present(self) -> Mask:
        """The classes of positive prior."""
        return self.prior > 0

    def maximize(self, risks: ArrayLike) -> Vector:
        """Two weights: the larger for classes whose risk exceeds the robust risk.

        The robust risk is the largest that any split into worse and better classes gives.
        """
        vector = check_risks(risks, self.n_classes)
        scaled = unit_range(np.where(self.present, vector, vector[self.present].min()))
        if scaled is None:
            return self.prior.copy()
        worst_first = np.argsort(-scaled)
        p, low = self.prior[worst_first], 1 / self.ratio
        worse, total = np.cumsum(p), np.cumsum(p * scaled[worst_first])
        shares = worse + low * (worse[-1] - worse)
        robust = ((total + low * (total[-1] - total)) / shares).max()
        masses = masses_of(np.where(scaled > robust, 1.0, low), self.prior)
        return np.asarray(masses / masses.sum())

    def project(self, point: ArrayLike) -> Vector:
        r"""A box at the right :math:`t`, which a shift of the point determines.

        With the shift :math:`\nu` of the constraint on the sum, masses are the projection of
        :math:`v - \nu` onto the cone of the ratio. Their sum falls with the shift, piece by piece
        linearly, and Newton's method finds where it is one.
        """
        vector = check_point(point, self.n_classes)
        if np.abs(vector).max() > _FAR_FROM_CONE:
            return self.maximize(vector)
        p, v = self.prior[self.present], vector[self.present]
        least, most = float(v.min()) - 1, float(v.max())
        shift = (float(v.sum()) - 1) / len(v)
        for _ in range(_MAX_SHIFTS):
            level, low, high = self._on_cone(v - shift, p)
            inside = ~(low | high)
            scaled = float(p @ low + self.ratio * (p @ high))
            excess = level * scaled + float((v - shift)[inside].sum()) - 1
            least, most = (shift, most) if excess > 0 else (least, shift)
            size = float(p[low] @ p[low] + self.ratio**2 * (p[high] @ p[high]))
            fall = np.count_nonzero(inside) + (scaled**2 / size if size > 0 else 0.0)
            step = shift + excess / fall if fall > 0 else np.nan
            new = step if least < step < most else (least + most) / 2
            if new in (shift, least, most):
                break
            shift = new
        level = min(max(level, 1 / self.ratio), 1.0)
        masses = np.zeros(self.n_classes)
        masses[self.present] = project_box(v, level * p, self.ratio * level * p, 1.0)
        return masses

    def _on_cone(self, w: Vector, p: Vector) -> tuple[float, Mask, Mask]:
        """The level ``t`` of the projection onto the cone, and the classes at either bound.

        It is where a piecewise linear function rises through zero: the derivative of half the
        squared distance between the bounds at ``t`` and ``w``.
        """
        r = self.ratio

        def derivative(t: float) -> float:
            return float(p @ np.maximum(t * p - w, 0) - r * (p @ np.maximum(w - r * t * p, 0)))

        breaks = np.maximum(np.sort(np.concatenate([w / p, w / (r * p)])), 0.0).tolist()
        end = min(bisect_left(breaks, 0.0, key=derivative), len(breaks) - 1)
        middle = (breaks[max(end - 1, 0)] + breaks[end]) / 2
        low, high = w < middle * p, w > r * middle * p
        size = p[low] @ p[low] + r**2 * (p[high] @ p[high])
        if size == 0:
            return middle, low, high
        return float((p[low] @ w[low] + r * (p[high] @ w[high])) / size), low, high


class WeightRatio(Uncertainty):
    r"""No class counts more than ``ratio`` times another.

    .. math:: M = \{ m : q_i \le r \, q_j \text{ for all } i, j, \;
              \textstyle\sum_i m_i = 1 \}, \qquad q_i = m_i / p_i.

    Use it when you can say how much more one row may matter than another, but not which class
    matters most. A ratio of 1 is the standard risk; a large one approaches the worst class.

    Parameters
    ----------
    ratio : float >= 1
        The largest ratio of two class weights.

    Examples
    --------
    >>> from equipoise import WeightRatio
    >>> mass_set = WeightRatio(3).resolve([0.9, 0.1])
    >>> round(mass_set.support([0.2, 0.6]), 12)
    0.3
    """

    def __init__(self, ratio: float) -> None:
        self.ratio = ratio

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(3.0), cls(1.0), cls(100.0)]

    def constraints(self, mass: Any, prior: Vector, cvxpy: Any) -> list[Any]:
        weights = cvxpy.multiply(mass, 1 / prior)
        return [cvxpy.max(weights) <= self.ratio * cvxpy.min(weights)]

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> MassSet:
        """The set of masses; the prior alone where the ratio is 1."""
        p, _ = named_prior(prior, classes)
        ratio = check_number(self.ratio, "ratio", "[1, inf)")
        return Hull(p[np.newaxis]) if ratio == 1 else RatioCone(p, ratio)
