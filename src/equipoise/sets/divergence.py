r"""What a ball needs to know about its geometry, and the multiplier of its constraint.

Along the solutions :math:`m(\mu)` of a problem with penalty :math:`\mu D(m, c)` the divergence
falls from its free value to zero as the multiplier :math:`\mu` grows. The constraint
:math:`D = \text{radius}` is met at one :math:`\mu`.

Conventions
-----------
``risks``, ``point``, ``masses`` and ``center`` are float64 NumPy vectors with one entry per class
of the ball; ``center`` is a probability vector, and positive where ``needs_support``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from equipoise.arrays import Vector

# Relative error of the multiplier: that of the masses' way from the centre is no larger.
_TOLERANCE = 1e-14
_MAX_TRIALS = 200
_SMALLEST = 1e-280
# Newton needs about ten trials; past this many every other one halves the bracket.
_PATIENCE = 30


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


def on_worst(risks: Vector, center: Vector) -> Vector:
    """The centre conditioned on the worst classes."""
    worst: Vector = np.where(risks == risks.max(), center, 0.0)
    return worst / float(worst.sum())


class AtMultiplier(NamedTuple):
    """Masses at one multiplier, their divergence, and its derivative in the multiplier."""

    masses: Vector
    divergence: float
    slope: float


def meet_radius(trial: Callable[[float], AtMultiplier], radius: float, start: float) -> Vector:
    r"""The masses at the multiplier where the divergence equals the radius.

    Newton on :math:`D^{-1/2}`, which is nearly linear in :math:`\mu`, as in trust-region methods.
    """
    low, high, mu = 0.0, math.inf, start
    for count in range(_MAX_TRIALS):
        current = trial(mu)
        low, high = (mu, high) if current.divergence > radius else (low, mu)
        new = _newton(mu, current, radius)
        if abs(new - mu) <= _TOLERANCE * mu or _closed(low, high):
            break
        outside = not low < new < high
        mu = _between(low, high) if outside or (count > _PATIENCE and count % 2) else new
    return current.masses


def _newton(mu: float, current: AtMultiplier, radius: float) -> float:
    if current.slope >= 0 or current.divergence <= 0:
        return math.nan
    ratio = math.sqrt(current.divergence / radius)
    return mu + 2 * current.divergence / current.slope * (1 - ratio)


def _between(low: float, high: float) -> float:
    if high == math.inf:
        return 16 * low
    return math.sqrt(low) * math.sqrt(high) if low > 0 else high / 16


def _closed(low: float, high: float) -> bool:
    return high < math.inf and (high - low <= _TOLERANCE * high or high < _SMALLEST)
