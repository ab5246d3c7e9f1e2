"""No class counts more than a given number of times another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

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
# Levels that a projection tries. Newton's steps on a piecewise linear function end on another piece
# each; the bracket closes by bisection where they leave it, to all digits in about 60 steps.
_MAX_LEVELS = 200


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
        r"""The nearest of the boxes :math:`[t p, r t p]`, cut by the sum of the masses.

        The squared distance to them is convex in :math:`t`. With the shift :math:`\nu` of the box's
        projection, half its derivative is :math:`\sum_{low} p_i (t p_i - v_i + \nu) +
        r \sum_{high} p_i (r t p_i - v_i + \nu)`, over the classes at either bound: Newton's steps
        solve it for these classes, within a bracket.
        """
        vector = check_point(point, self.n_classes)
        if np.abs(vector).max() > _FAR_FROM_CONE:
            return self.maximize(vector)
        p, v = self.prior[self.present], vector[self.present]
        least, most = 1 / self.ratio, 1.0
        t = (least + most) / 2
        for _ in range(_MAX_LEVELS):
            projected = project_box(v, t * p, self.ratio * t * p, 1.0)
            rises, step = self._step(v, p, t, projected)
            least, most = (least, t) if rises else (t, most)
            new = step if least < step < most else (least + most) / 2
            if step == t or new in (t, least, most):
                break
            t = new
        masses = np.zeros(self.n_classes)
        masses[self.present] = projected
        return masses

    def _step(self, v: Vector, p: Vector, t: float, masses: Vector) -> tuple[bool, float]:
        """Whether the distance rises at ``t``, and the best level for these classes at bounds."""
        low, high = masses <= t * p, masses >= self.ratio * t * p
        slopes = np.where(low, p, 0.0) + np.where(high & ~low, self.ratio * p, 0.0)
        at_bounds = float(slopes.sum())
        square, pull = float(slopes @ slopes), float(slopes @ v)
        inside = ~(low | high)
        free = int(np.count_nonzero(inside))
        if free == len(v):
            return False, t
        if free:
            rest = float(v[inside].sum()) - 1
            step = (pull - at_bounds * rest / free) / (square + at_bounds**2 / free)
            shift = (t * at_bounds + rest) / free
            return bool(t * square - pull + shift * at_bounds > 0), step
        # Any shift between these leaves every class where it is.
        first = float((v - t * p).max(where=low, initial=-np.inf))
        last = float((v - self.ratio * t * p).min(where=high, initial=np.inf))
        if t * square - pull + first * at_bounds > 0:
            return True, np.nan
        return False, t if t * square - pull + last * at_bounds >= 0 else np.nan


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

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> MassSet:
        """The set of masses; the prior alone where the ratio is 1."""
        p, _ = named_prior(prior, classes)
        ratio = check_number(self.ratio, "ratio", "[1, inf)")
        return Hull(p[np.newaxis]) if ratio == 1 else RatioCone(p, ratio)
