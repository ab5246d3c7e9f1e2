"""What a ball needs to know about its geometry, and the two balls in a norm.

Conventions
-----------
``risks``, ``point``, ``masses`` and ``center`` are float64 NumPy vectors with one entry per class
of the ball; ``center`` is a probability vector, and positive where ``needs_support``.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from equipoise.arrays import Mask, Vector
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


class Euclidean(Divergence):
    r"""The norm :math:`\|m - c\|_2`."""

    name = "l2"
    needs_support = False

    def distance(self, masses: Vector, center: Vector) -> float:
        return float(np.linalg.norm(masses - center))

    def weights(self, center: Vector, radius: float) -> Vector:
        return np.full(len(center), 1 / radius**2)

    def maximize(self, risks: Vector, center: Vector, radius: float) -> Vector:
        r"""The first point at the radius on the path :math:`P(c + t r)`, or its end."""
        return _walk(risks, center, radius)

    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        r"""The first point at the radius on the path :math:`P(c + t (v - c))`, :math:`t \le 1`."""
        return _walk(point - center, center, radius)


def _walk(direction: Vector, center: Vector, radius: float) -> Vector:
    r"""Where the path :math:`P(c + t d)` of projections onto the simplex leaves the ball.

    Classes leave the support of the path and never return, so the squared distance is piecewise
    linear and concave in :math:`t^2`: Newton steps from the left stay left and end exactly.
    """
    # Measured from its largest entry, a long direction keeps the digits of the classes that stay.
    direction = direction - direction.max()
    time = radius / float(np.linalg.norm(direction - direction.mean()))
    while True:
        masses: Vector = project_simplex(center + time * direction, 1.0)
        later = _exit_time(masses > 0, direction, center, radius)
        if not later > time * (1 + 1e-15):
            return masses
        time = later


def _exit_time(kept: Mask, direction: Vector, center: Vector, radius: float) -> float:
    """When the path with this support reaches the radius; NaN where it has come to rest."""
    moving = direction[kept]
    variance = float(((moving - moving.mean()) ** 2).sum())
    dropped = center[~kept]
    room = radius**2 - float(dropped.sum()) ** 2 / len(moving) - float(dropped @ dropped)
    return float((room / variance) ** 0.5) if variance > 0 and room > 0 else np.nan
