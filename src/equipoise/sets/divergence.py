"""What a ball needs to know about its geometry.

Conventions
-----------
``risks``, ``point``, ``masses`` and ``center`` are float64 NumPy vectors with one entry per class
of the ball; ``center`` is a probability vector, and positive where ``needs_support``.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from equipoise.arrays import Vector


class Divergence(ABC):
    """A way to measure how far masses lie from a centre, with its two optimisation problems."""

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
