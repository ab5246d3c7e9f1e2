"""The two contracts of an uncertainty set.

A *recipe* (:class:`Uncertainty`) holds hyper-parameters only. Given the class priors and names it
*resolves* to a frozen numerical set of masses (:class:`MassSet`), which is all that solvers,
estimators, metrics and plots ever need.

Conventions
-----------
``risks``, ``point`` and masses are vectors with one entry per class. Numerical sets follow the
array namespace of their input. A risk of ``+inf`` is a class that is infinitely bad; NaN is
refused, because a maximiser that skips it would hide a broken class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from equipoise.arrays import ArrayLike, Matrix, Vector, as_vector
from equipoise.exceptions import InvalidInputError
from equipoise.weights.priors import check_prior

# Masses that differ by less are the same.
_ROUNDING = 1e-12


class MassSet(ABC):
    """A compact convex set of masses inside the probability simplex.

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
        return bool(np.all(self.bounds[1] >= 1 - _ROUNDING))

    @cached_property
    def is_point(self) -> bool:
        """Whether the set holds a single mass: nothing is uncertain."""
        least, largest = self.bounds
        return bool(np.all(largest - least <= _ROUNDING))

    @abstractmethod
    def maximize(self, risks: Any) -> Any:
        r"""A mass :math:`m \in \arg\max_{m \in M} \langle m, r \rangle`."""

    @abstractmethod
    def project(self, point: Any) -> Any:
        r"""The mass :math:`\arg\min_{m \in M} \|m - v\|_2`."""

    def support(self, risks: Any) -> Any:
        r"""The robust risk :math:`\max_{m \in M} \langle m, r \rangle`."""
        vector, xp = as_vector(risks, self.n_classes, name="risks")
        return weighted(self.maximize(vector), vector, xp)

    def _risks(self, risks: Any) -> tuple[Any, Any]:
        """Checked risks and their namespace: NaN would hide a broken class."""
        vector, xp = as_vector(risks, self.n_classes, name="risks")
        if not (best := float(xp.min(vector))) > -np.inf:
            if best == -np.inf:
                raise InvalidInputError("risks must be above -inf.")
            raise InvalidInputError("risks must not be NaN: a class without rows has no risk.")
        return vector, xp

    def _point(self, point: Any) -> tuple[Any, Any]:
        """A checked point and its namespace: only a finite one has a nearest mass."""
        vector, xp = as_vector(point, self.n_classes, name="point")
        if not bool(xp.all(xp.isfinite(vector))):
            raise InvalidInputError(f"point must hold finite values, got {vector}.")
        return vector, xp


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

    @abstractmethod
    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> MassSet:
        """The set of masses for these class priors (and names, ``0..k-1`` when not given)."""

    @classmethod
    def examples(cls) -> list[Self]:
        """A few recipes of this kind that resolve for two to a hundred classes of any prior."""
        return [cls()]


def weighted(masses: Any, risks: Any, xp: Any) -> Any:
    """The sum of risks by masses, along the last axis.

    A class without mass counts nothing, even where its risk is infinite.
    """
    return xp.sum(masses * xp.where(masses > 0, risks, 0.0), axis=-1)


def check_masses(values: Any, name: str) -> Vector:
    """A read-only probability vector."""
    return frozen(check_prior(values, range(np.size(values)), name=name))


def frozen(array: Matrix) -> Matrix:
    """The array itself, made read-only."""
    array.setflags(write=False)
    return array
