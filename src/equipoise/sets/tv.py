r"""The total variation ball: :math:`\frac12 \sum_i |m_i - c_i| \le \text{radius}`."""

import numpy as np

from equipoise.arrays import Vector
from equipoise.sets.divergence import Divergence
from equipoise.sets.filling import fill, project_box, project_simplex


class TotalVariation(Divergence):
    """Half the L1 distance of the masses from the centre: the share that has moved."""

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
