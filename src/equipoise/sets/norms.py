r"""Two balls in a norm: :math:`\frac12 \|m - c\|_1` or :math:`\|m - c\|_2` at most the radius."""

import numpy as np

from equipoise.arrays import Mask, Vector
from equipoise.sets.divergence import Divergence
from equipoise.sets.filling import fill, project_box, project_simplex


class TotalVariation(Divergence):
    """Half the L1 distance of the masses from the centre: the share that has moved."""

    name = "tv"
    needs_support = False

    def distance(self, masses: Vector, center: Vector) -> float:
        r"""The distance :math:`\frac12 \sum_i |m_i - c_i|`."""
        return float(np.abs(masses - center).sum()) / 2

    def maximize(self, risks: Vector, center: Vector, radius: float) -> Vector:
        """Move as much mass as allowed from the best classes to the worst."""
        worst = risks == risks.max()
        moved = min(radius, float(center[~worst].sum()))
        left: Vector = fill(risks, center, 1 - moved, np)
        added: Vector = np.where(worst, moved / np.count_nonzero(worst), 0.0)
        return left + added

    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        """Gains and losses both sum to the radius, and are two separate projections."""
        gain: Vector = project_simplex(point - center, radius, np)
        loss: Vector = project_box(center - point, np.zeros_like(center), center, radius, np)
        return center + gain - loss


class Euclidean(Divergence):
    """Euclidean distance of the masses from the centre."""

    name = "l2"
    needs_support = False

    def distance(self, masses: Vector, center: Vector) -> float:
        r"""The norm :math:`\|m - c\|_2`."""
        return float(np.linalg.norm(masses - center))

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
        masses: Vector = project_simplex(center + time * direction, 1.0, np)
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
