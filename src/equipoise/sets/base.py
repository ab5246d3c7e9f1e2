"""The two contracts of an uncertainty set.

A *recipe* (:class:`Uncertainty`) holds hyper-parameters only. Given the class priors and names it
*resolves* to a frozen numerical set of masses (:class:`MassSet`), which is all that solvers,
estimators, metrics and plots ever need.

Conventions
-----------
``risks``, ``point`` and masses are float64 NumPy vectors with one entry per class; anything that
NumPy reads as such a vector is taken. A risk of ``+inf`` is a class that is infinitely bad; NaN is
refused, because a maximiser that skips it would hide a broken class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from equipoise.arrays import ROUNDING, ArrayLike, Matrix, Vector, to_numpy
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.weights.priors import check_prior

# Distance from the worst risk, as a share of the range of risks, below which a risk ties with it:
# exponentials of a smaller one, divided by the smallest multiplier, are 1.
_TIE = 1e-90


class MassSet(ABC):
    """A compact convex set of masses inside the probability simplex.

    A new one needs ``n_classes``, ``maximize`` and ``project``, which begin with
    :func:`check_risks` and :func:`check_point`. Where ``box`` or ``corners`` describes the set, it
    gets the faster algorithms for such sets.

    Examples
    --------
    >>> from equipoise.sets import WorstClass
    >>> mass_set = WorstClass().resolve([0.9, 0.1])
    >>> mass_set.n_classes, mass_set.is_simplex, mass_set.project([0.5, 0.9]).round(12).tolist()
    (2, True, [0.3, 0.7])
    """

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    def box(self) -> tuple[Vector, Vector] | None:
        """Floors and caps, if the set is all masses between them."""
        return None

    @property
    def corners(self) -> Matrix | None:
        """Masses of which the set is the convex hull, one a row, if they are known."""
        return None

    @property
    def ellipsoid(self) -> tuple[Vector, Vector] | None:
        r"""Centre and weights, if the set is an ellipsoid that ends where masses are negative.

        .. math:: \sum_i w_i (m_i - c_i)^2 \le 1

        A class of infinite weight has no mass.
        """
        return None

    @cached_property
    def bounds(self) -> tuple[Vector, Vector]:
        """The least and the largest mass of each class over the set."""
        units = np.eye(self.n_classes)
        ends = [[self.maximize(sign * unit) @ unit for unit in units] for sign in (-1, 1)]
        return np.array(ends[0]), np.array(ends[1])

    @cached_property
    def is_simplex(self) -> bool:
        """Whether the set is the whole simplex, so that the robust risk is the worst class's."""
        # A convex set that reaches every corner holds all that lies between them.
        return bool(np.all(self.bounds[1] >= 1 - ROUNDING))

    @cached_property
    def is_point(self) -> bool:
        """Whether the set holds a single mass: nothing is uncertain."""
        least, largest = self.bounds
        return bool(np.all(largest - least <= ROUNDING))

    @abstractmethod
    def maximize(self, risks: ArrayLike) -> Vector:
        r"""A mass :math:`m \in \arg\max_{m \in M} \langle m, r \rangle`."""

    @abstractmethod
    def project(self, point: ArrayLike) -> Vector:
        r"""The mass :math:`\arg\min_{m \in M} \|m - v\|_2`."""

    def support(self, risks: ArrayLike) -> float:
        r"""The robust risk :math:`\max_{m \in M} \langle m, r \rangle`."""
        vector = check_risks(risks, self.n_classes)
        return float(weighted(self.maximize(vector), vector))


class Uncertainty(BaseEstimator, ABC):  # type: ignore[misc]
    """A recipe for an uncertainty set: hyper-parameters only, so that ``clone`` works.

    A new one is a final class with ``resolve`` and, unless it has no parameters, ``examples``;
    ``SETS.register`` makes it known to the command line, to saved models and to the tests.

    Examples
    --------
    >>> from equipoise.sets import SETS
    >>> SETS["LabelCVaR"].examples()
    [LabelCVaR(alpha=1.0), LabelCVaR(alpha=0.5), LabelCVaR(alpha=0.01)]
    """

    @property
    def weighting(self) -> Any:
        """The weighting of which the set consists for every prior, as users write it, or None."""
        return None

    @property
    def is_open(self) -> bool:
        """Whether a parameter is still to be chosen on held-out rows: ``resolve`` says by what."""
        return False

    @abstractmethod
    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> MassSet:
        """The set of masses for these class priors (and names, ``0..k-1`` when not given)."""

    @classmethod
    def examples(cls) -> list[Self]:
        """A few recipes of this class that resolve for two to a hundred classes of any prior."""
        return [cls()]


def check_risks(risks: ArrayLike, n_classes: int) -> Vector:
    """Risks as a vector, without NaN.

    Examples
    --------
    >>> check_risks([0.2, 0.6], 2)
    array([0.2, 0.6])
    """
    vector = _vector(risks, n_classes, "risks")
    if not (best := float(vector.min())) > -np.inf:
        if best == -np.inf:
            raise InvalidInputError("risks must be above -inf.")
        raise InvalidInputError("risks must not be NaN: a class without rows has no risk.")
    return vector


def check_point(point: ArrayLike, n_classes: int) -> Vector:
    """A point as a vector of finite values.

    Examples
    --------
    >>> check_point([0.2, 1.6], 2)
    array([0.2, 1.6])
    """
    vector = _vector(point, n_classes, "point")
    if not np.all(np.isfinite(vector)):
        raise InvalidInputError(f"point must hold finite values, got {vector}.")
    return vector


def _vector(values: Any, size: int, name: str) -> Vector:
    vector = to_numpy(values)
    if vector.shape != (size,):
        raise ClassMismatchError(
            f"{name} must be a vector with one value for each of the {size} classes, "
            f"got shape {vector.shape}."
        )
    return vector


def unit_range(risks: Vector) -> Vector | None:
    """Risks moved and scaled onto [-1, 0]; None where all are equal.

    Infinitely bad classes outrank all others: only the mass on them counts.

    Examples
    --------
    >>> unit_range(np.array([0.2, 0.4, 0.6])).round(12).tolist()
    [-1.0, -0.5, 0.0]
    """
    if risks.max() == np.inf:
        risks = np.where(risks == np.inf, 1.0, 0.0)
    # Halves keep the range of the largest floats finite.
    halves = risks / 2
    span = float(np.ptp(halves))
    if span == 0:
        return None
    scaled: Vector = (halves - halves.max()) / span
    return np.where(scaled > -_TIE, 0.0, scaled)


def weighted(masses: Matrix, risks: Vector) -> Any:
    """The sum of risks by masses, along the last axis.

    A class without mass counts nothing, even where its risk is infinite.
    """
    return np.sum(masses * np.where(masses > 0, risks, 0.0), axis=-1)


def check_masses(values: Any, name: str) -> Vector:
    """A read-only probability vector."""
    return frozen(check_prior(values, range(np.size(values)), name=name))


def frozen(array: Matrix) -> Matrix:
    """The array itself, made read-only."""
    array.setflags(write=False)
    return array
