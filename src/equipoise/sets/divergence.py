"""What a ball needs to know about its geometry, and the two balls in a norm.

Conventions
-----------
``risks``, ``point``, ``masses`` and ``center`` are float64 NumPy vectors with one entry per class
of the ball; ``center`` is a probability vector, and positive where ``needs_support``.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from equipoise.arrays import Vector
from equipoise.sets.filling import fill, project_box, project_simplex


class Divergence(ABC):
    """A way to measure how far masses lie from a centre, with its two optimisation problems."""

    # What users call it.
    name: ClassVar[str]
    # Whether the divergence is infinite once a class has mass where the centre has none.
    needs_support: ClassVar[bool]

    @abstractmethod
    def distance(self, masses: Vector, center: Vector) -> float:
        """The divergence of masses from the centre."""

    @abstractmethod
    def maximize(self, risks: Vector, center: Vector, radius: float) -> Vector:
        r"""The mass :math:`\arg\max \langle m, r \rangle` in the ball.

        The risks lie in [-1, 0] and reach both ends.
        """

    @abstractmethod
    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        """The mass of the ball nearest to a point whose nearest mass lies outside the ball."""

    def weights(self, center: Vector, radius: float) -> Vector | None:
        """Weights of squares that sum to at most one in the ball; None where it has no such form.

        Here the centre may have classes without mass, which get an infinite weight if they have
        none in the ball.
        """
        return None


class TotalVariation(Divergence):
    r"""The share that has moved, :math:`\frac12 \sum_i |m_i - c_i|`."""

    name = "tv"
    needs_support = False

    def distance(self, masses: Vector, center: Vector) -> float:
        return float(np.abs(masses - center).sum()) / 2

    def maximize(self, risks: Vector, center: Vector, radius: float) -> Vector:
        """Move as much mass as allowed from the best classes to the worst."""
        worst = risks == risks.max()
        moved = min(radius, float(center[~worst].sum()))
        left: Vector = fill(risks, center, 1 - moved)
        return left + np.where(worst, moved / np.count_nonzero(worst), 0.0)

    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        """Gains and losses both sum to the radius, and are two separate projections."""
        gain: Vector = project_simplex(point - center, radius)
        loss: Vector = project_box(center - point, np.zeros_like(center), center, radius)
        return center + gain - loss


class Squares(Divergence):
    r"""A ball of squares :math:`\sum_i (m_i - c_i)^2 / a_i \le b`, with positive :math:`a`."""

    @abstractmethod
    def scales(self, center: Vector) -> Vector:
        """The scales :math:`a` of the classes."""

    @abstractmethod
    def budget(self, radius: float) -> float:
        """The bound :math:`b` of the sum."""

    def weights(self, center: Vector, radius: float) -> Vector:
        with np.errstate(divide="ignore"):
            return np.asarray(1 / (self.budget(radius) * self.scales(center)))

    def maximize(self, risks: Vector, center: Vector, radius: float) -> Vector:
        r"""Masses :math:`c_i + a_i (D / A + t (r_i - \bar r))` on the classes that keep any.

        The others have the total centre :math:`D`; :math:`A` sums the scales of those that keep
        mass, and :math:`\bar r` is their mean risk by scale. The time :math:`t` uses up what
        :math:`D` leaves of the budget. It never comes too late while classes are left to be
        dropped, and a class that is dropped at some time never returns, so dropping all that fall
        below zero until none is left is exact.
        """
        scales, kept = self.scales(center), np.ones(len(center), dtype=bool)
        while True:
            a, lost = np.where(kept, scales, 0.0), center[~kept]
            total, moved = float(a.sum()), float(lost.sum())
            # The mean lies next to the risk of the largest class, and is measured from there.
            away = risks - risks[np.argmax(a)]
            away = np.where(kept, away - float(a @ away) / total, 0.0)
            variance = float(a @ away**2)
            room = self.budget(radius) - moved**2 / total - float((lost**2 / scales[~kept]).sum())
            # Without room, or where all tie, only rounding moves masses.
            time = (room / variance) ** 0.5 if variance > 0 and room > 0 else 0.0
            masses = np.where(kept, center + scales * (moved / total + time * away), 0.0)
            still = kept & (masses > 0)
            if np.array_equal(still, kept):
                return np.asarray(masses / masses.sum())
            kept = still


class Euclidean(Squares):
    r"""The norm :math:`\|m - c\|_2`."""

    name = "l2"
    needs_support = False

    def distance(self, masses: Vector, center: Vector) -> float:
        return float(np.linalg.norm(masses - center))

    def scales(self, center: Vector) -> Vector:
        return np.ones_like(center)

    def budget(self, radius: float) -> float:
        return radius**2

    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        r"""The first point at the radius on the path of projections of :math:`c + t (v - c)`."""
        return self.maximize(point - center, center, radius)
