"""One weighting, known for certain."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from numpy.typing import ArrayLike

from equipoise.arrays import Vector, fresh
from equipoise.sets.base import MassSet, Uncertainty, check_masses
from equipoise.weights.priors import mass_of_weighting


@dataclass(frozen=True, eq=False)
class Point(MassSet):
    """The set of one mass.

    Parameters
    ----------
    mass : array-like of shape (n_classes,)
        A probability vector.

    Examples
    --------
    >>> Point([0.9, 0.1]).maximize([0.2, 0.6]).tolist()
    [0.9, 0.1]
    """

    mass: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", check_masses(self.mass, "mass"))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.mass)

    @property
    def is_simplex(self) -> bool:
        """Whether there is but one class."""
        return len(self.mass) == 1

    @cached_property
    def bounds(self) -> tuple[Vector, Vector]:
        """The mass, twice."""
        return self.mass, self.mass

    def maximize(self, risks: Any) -> Any:
        """The mass, whatever the risks."""
        vector, xp = self._risks(risks)
        return fresh(self.mass, vector, xp)

    def project(self, point: Any) -> Any:
        """The mass, whatever the point."""
        vector, xp = self._point(point)
        return fresh(self.mass, vector, xp)


class FixedWeights(Uncertainty):
    r"""One weighting :math:`q`, scaled so that :math:`\sum_i p_i q_i = 1`.

    Parameters
    ----------
    weights : "standard", "balanced", dict by class, or array
        ``"standard"`` weighs all classes alike, :math:`q_i = 1`; ``"balanced"`` gives all classes
        the same mass, :math:`q_i = 1/(k p_i)`.

    Examples
    --------
    >>> from equipoise.sets import FixedWeights
    >>> FixedWeights({"common": 1, "rare": 9}).resolve([0.9, 0.1], ["common", "rare"]).mass
    array([0.5, 0.5])
    """

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    @classmethod
    def examples(cls) -> list[Self]:
        """The weightings that have a name."""
        return [cls("standard"), cls("balanced")]

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Point:
        """The point of masses ``p * q``."""
        p, names = self._prior(prior, classes)
        return Point(mass_of_weighting(self.weights, p, names, name="weights"))
