r"""The chi-squared ball: :math:`\sum_i (m_i - c_i)^2 / c_i \le \text{radius}`."""

from functools import partial

import numpy as np

from equipoise.arrays import Vector
from equipoise.sets.divergence import AtMultiplier, Divergence, meet_radius, on_worst


class ChiSquared(Divergence):
    """Pearson's divergence of the masses from the centre."""

    name = "chi2"
    needs_support = True

    def distance(self, masses: Vector, center: Vector) -> float:
        r"""The divergence :math:`\sum_i (m_i - c_i)^2 / c_i`."""
        return float(((masses - center) ** 2 / center).sum())

    def maximize(self, risks: Vector, center: Vector, radius: float) -> Vector:
        r"""Masses in proportion to :math:`c_i (r_i - z)_+`, with one level ``z`` to find.

        On the classes above the level, of total centre ``w`` and with :math:`V = \sum c_i (r_i -
        \bar r)^2`, it lies :math:`\sqrt{V / (w (w \, \text{radius} - (1 - w)))}` below their mean
        risk. Counting too many classes puts the level too low, so dropping those below it until
        none is left is exact.
        """
        worst = on_worst(risks, center)
        if self.distance(worst, center) <= radius:
            return worst
        kept = np.ones(len(risks), dtype=bool)
        while True:
            height = _height(risks, np.where(kept, center, 0.0), float(center[~kept].sum()), radius)
            still = kept & (height > 0)
            if np.array_equal(still, kept):
                break
            kept = still
        masses: Vector = np.where(kept, center * height, 0.0)
        return masses / float(masses.sum())

    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        r"""Penalised: :math:`m_i = c_i (v_i + \mu + s)_+ / (c_i + \mu)`, the sum fixing ``s``.

        The square root of the divergence is at most the deviation of ``v - c`` over ``mu``.
        """
        order = np.argsort(-point)
        gap, c = (point - center)[order], center[order]
        deviation = float(c @ (gap - c @ gap) ** 2)
        masses = np.empty_like(point)
        start = (deviation / radius) ** 0.5
        masses[order] = meet_radius(partial(_penalised, gap, c), radius, start)
        return masses


def _height(risks: Vector, kept: Vector, dropped: float, radius: float) -> Vector:
    """Risks above the level. From the mean, because the level itself may round to a risk."""
    total = float(kept.sum())
    # The mean lies next to the risk of the most common class, and is measured from there.
    risks = risks - risks[np.argmax(kept)]
    deviation: Vector = risks - float(kept @ risks) / total
    room = total * (total * radius - dropped)
    # Within rounding of the radius at which only the worst classes are left.
    if room <= 0:
        return np.ones_like(risks)
    return deviation + float(np.sqrt(kept @ deviation**2 / room))


def _penalised(gap: Vector, center: Vector, mu: float) -> AtMultiplier:
    """One trial, classes sorted by falling point; all in differences from the centre."""
    share = center / (center + mu)
    dropped = np.append(np.cumsum(center[:0:-1])[::-1], 0.0)
    shift = float(((dropped - np.cumsum(share * gap)) / np.cumsum(share)).min())
    step = np.maximum(share * (gap + shift), -center)
    kept = step > -center
    divergence = float((step**2 / center).sum())
    pull = np.where(kept, step / (center + mu), 0.0)
    share = np.where(kept, share, 0.0)
    slope = 2 * float(step / center @ (share * (pull.sum() / share.sum()) - pull))
    masses = center + step
    return AtMultiplier(masses / masses.sum(), divergence, slope)
