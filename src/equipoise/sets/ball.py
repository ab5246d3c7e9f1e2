"""Balls of masses around a centre: the class priors at test time are near a known prior."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from equipoise.arrays import ArrayLike, Mask, Vector
from equipoise.registry import Registry
from equipoise.sets.base import (
    MassSet,
    Uncertainty,
    check_masses,
    check_point,
    check_risks,
    unit_range,
)
from equipoise.sets.capped_simplex import CappedSimplex
from equipoise.sets.divergence import Divergence, Euclidean, TotalVariation
from equipoise.sets.f_divergences import ChiSquared, KullbackLeibler
from equipoise.sets.filling import project_simplex
from equipoise.sets.hull import Hull
from equipoise.validation.numbers import check_number
from equipoise.weights.priors import check_prior, named_prior

DIVERGENCES: Registry[Divergence] = Registry(
    "divergence", KullbackLeibler(), ChiSquared(), TotalVariation(), Euclidean()
)


@dataclass(frozen=True, eq=False)
class Ball(MassSet):
    """Masses within a radius of a centre.

    Parameters
    ----------
    center : array-like of shape (n_classes,)
        A probability vector. Where the divergence needs it, classes without mass here have none
        anywhere in the ball.
    radius : float > 0
        Largest divergence from the centre.
    divergence : Divergence
        How far masses lie from the centre.

    Examples
    --------
    >>> ball = PriorBall(radius=0.2, divergence="tv").resolve([0.9, 0.1])
    >>> ball.maximize([0.2, 0.6]).round(12).tolist()
    [0.7, 0.3]
    """

    center: Vector
    radius: float
    divergence: Divergence

    def __post_init__(self) -> None:
        check_number(self.radius, "radius", "(0, inf)")
        object.__setattr__(self, "center", check_masses(self.center, "center"))

    @property
    def n_classes(self) -> int:
        return len(self.center)

    @property
    def ellipsoid(self) -> tuple[Vector, Vector] | None:
        weights = self.divergence.weights(self.center, self.radius)
        return None if weights is None else (self.center, weights)

    @cached_property
    def allowed(self) -> Mask:
        """The classes that have mass somewhere in the ball."""
        return self.center > 0 if self.divergence.needs_support else np.ones(self.n_classes, bool)

    @cached_property
    def is_simplex(self) -> bool:
        return bool(np.all(self.allowed)) and self.covers_support

    @cached_property
    def covers_support(self) -> bool:
        """Whether the ball covers all masses on the classes it allows."""
        # The corner of the rarest class lies farthest from the centre.
        corner = np.zeros(len(self._core))
        corner[np.argmin(self._core)] = 1.0
        return self.divergence.distance(corner, self._core) <= self.radius * (1 + 1e-12)

    @cached_property
    def is_point(self) -> bool:
        # The radius is never zero.
        return len(self._core) == 1

    def maximize(self, risks: ArrayLike) -> Vector:
        scaled = unit_range(check_risks(risks, self.n_classes)[self.allowed])
        if scaled is None:
            return self.center.copy()
        return self._spread(self.divergence.maximize(scaled, self._core, self.radius))

    def project(self, point: ArrayLike) -> Vector:
        inside = check_point(point, self.n_classes)[self.allowed]
        masses = project_simplex(inside, 1.0)
        if self.divergence.distance(masses, self._core) > self.radius:
            masses = self.divergence.project(inside - inside.max(), self._core, self.radius)
        return self._spread(masses)

    def _spread(self, core: Vector) -> Vector:
        """Masses of the allowed classes among those of all classes."""
        masses = np.zeros(self.n_classes)
        masses[self.allowed] = core
        return masses

    @cached_property
    def _core(self) -> Vector:
        """The centre on the classes that the ball allows."""
        return self.center[self.allowed]


class PriorBall(Uncertainty):
    r"""Class priors at test time within a distance of the training prior, or of a given one.

    .. math:: M = \{ m \ge 0 : D(m, c) \le \text{radius}, \; \textstyle\sum_i m_i = 1 \}.

    Use it where the class frequencies will differ from those of training by a known amount, but you
    do not know which way. As in :class:`PriorBox`, a prior at test time is a mass.

    Parameters
    ----------
    radius : float >= 0
        Largest divergence from the centre; 0 is the centre alone.
    divergence : {"kl", "chi2", "tv", "l2"}
        :math:`\sum_i m_i \log(m_i/c_i)`; :math:`\sum_i (m_i - c_i)^2 / c_i`;
        :math:`\frac12 \sum_i |m_i - c_i|`; :math:`\|m - c\|_2`. Under the first two a class with
        no mass in the centre has none in the ball.
    center : dict by class or array, optional
        A prior; the training prior when not given.

    Examples
    --------
    >>> mass_set = PriorBall(radius=0.2, divergence="tv").resolve([0.9, 0.1])
    >>> mass_set.maximize([0.2, 0.6]).round(12)
    array([0.7, 0.3])
    """

    def __init__(self, radius: float, divergence: str = "kl", center: Any = None) -> None:
        self.radius = radius
        self.divergence = divergence
        self.center = center

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> MassSet:
        """The ball; a point or a simplex where the radius makes it one."""
        p, names = named_prior(prior, classes)
        center = p if self.center is None else check_prior(self.center, names, name="center")
        radius = check_number(self.radius, "radius", "[0, inf)")
        divergence = DIVERGENCES.find(self.divergence)
        if radius == 0:
            return Hull(center[np.newaxis])
        ball = Ball(center, radius, divergence)
        if ball.covers_support:
            return CappedSimplex(np.zeros(len(p)), np.where(ball.allowed, 1.0, 0.0))
        return ball

    @classmethod
    def examples(cls) -> list[Self]:
        balls = [cls(radius, name) for name in DIVERGENCES for radius in (0.02, 0.2, 3.0)]
        return [cls(0.0), cls(1e-4), cls(0.7, "l2"), *balls]
