r"""One weighting, known for certain, and weightings as users give them.

Conventions
-----------
A weighting is ``"standard"``, ``"balanced"``, a dict by class or an array in class order. It is
scaled to weights :math:`q` with :math:`\sum_i p_i q_i = 1`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Vector, fresh
from equipoise.exceptions import InvalidParameterError
from equipoise.sets.base import MassSet, Uncertainty, check_masses
from equipoise.validation.numbers import check_numbers
from equipoise.weights.priors import masses_of, normalize_weights, weights_of


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


def mass_of_weighting(weights: Any, prior: Vector, classes: NDArray[Any], *, name: str) -> Vector:
    """The mass of one weighting, given by name, by class or in class order."""
    if isinstance(weights, str):
        return _named_mass(weights, prior, name)
    q = check_numbers(weights, classes, name=name)
    return masses_of(normalize_weights(q, prior, name=name), prior)


def scaled_weights(
    weights: Any, prior: Vector, classes: ArrayLike | None = None, *, name: str = "weights"
) -> Vector:
    r"""One weighting as weights :math:`q` with :math:`\sum_i p_i q_i = 1`."""
    names = np.arange(len(prior)) if classes is None else np.asarray(classes)
    return weights_of(mass_of_weighting(weights, prior, names, name=name), prior)


def named_weightings(weightings: Any) -> dict[str, Any]:
    """Weightings by name; those of a list are called what they are, or ``q1``, ``q2``, ..."""
    if isinstance(weightings, str):
        weightings = [weightings]
    if isinstance(weightings, Mapping):
        found = {str(name): value for name, value in weightings.items()}
    elif isinstance(weightings, Iterable):
        listed = list(weightings)
        names = [w if isinstance(w, str) else f"q{place}" for place, w in enumerate(listed, 1)]
        found = dict(zip(names, listed, strict=True))
        if len(found) < len(listed):
            raise InvalidParameterError(f"weightings must be distinct, got {names}.")
    else:
        found = {}
    if not found:
        raise InvalidParameterError(
            "weightings must be a dict by name or a list with at least one weighting, such as "
            f'["standard", "balanced"], got {weightings!r}.'
        )
    return found


def _named_mass(weights: str, prior: Vector, name: str) -> Vector:
    if weights == "standard":
        return prior
    if weights == "balanced":
        # A class of prior zero has no rows, and no weight could give it mass.
        return (prior > 0) / np.count_nonzero(prior)
    raise InvalidParameterError(
        f'{name} must be "standard", "balanced", a dict by class or an array, got {weights!r}.'
    )
