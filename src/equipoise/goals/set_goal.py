r"""The smallest worst case over a set of weightings.

.. math:: \min_w \; \max_{m \in M} \; \sum_i m_i R_i(w)

with zero-one class risks. Of many ways to decide the best is found by cutting planes: masses that
were worst for some of them bound the value of all others from below.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from equipoise.arrays import ArrayLike, Matrix, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.goals.base import TIE_BREAK, Criterion, Goal, first_lowest, mean_risks
from equipoise.sets import (
    CappedSimplex,
    FixedWeights,
    LabelCVaR,
    MassSet,
    Uncertainty,
    WorstClass,
)
from equipoise.weights.priors import weights_of

# Masses that are remembered between searches.
MEMORY = 12


@dataclass(frozen=True, eq=False)
class RobustRisk(Criterion):
    """The worst case of zero-one risks over a set of masses."""

    masses: MassSet
    measures = "risk"
    _planes: list[Vector] = field(default_factory=list, repr=False)

    def values(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> Vector:
        risks, masses = 1 - hits / totals, self.masses
        if not isinstance(masses, CappedSimplex):
            return np.array([float(masses.support(line)) for line in risks])
        # The worst classes take all the room that they have, until the mass is spent.
        order = np.argsort(-risks, axis=1)
        room = (masses.upper - masses.lower)[order]
        left = 1 - masses.lower.sum() - (np.cumsum(room, axis=1) - room)
        taken = np.minimum(np.maximum(left, 0.0), room)
        return np.asarray(risks @ masses.lower - (taken * np.sort(-risks, axis=1)).sum(axis=1))

    def lowest(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> tuple[int, float]:
        risks, errors = 1 - hits / totals, TIE_BREAK * mean_risks(hits, totals)
        if self.masses.is_simplex:
            values = risks.max(axis=1) + errors
            best = first_lowest(values)
            return best, float(values[best])
        bounds = np.full(len(risks), -np.inf)
        if self._planes:
            bounds = (risks @ np.array(self._planes).T).max(axis=1)
        while True:
            best = first_lowest(bounds + errors)
            mass = np.asarray(self.masses.maximize(risks[best]))
            value = float(mass @ risks[best])
            if value <= bounds[best] + 1e-12:
                return best, value + float(errors[best])
            self._planes.append(mass)
            del self._planes[:-MEMORY]
            bounds = np.maximum(bounds, risks @ mass)

    def limited(self, caps: Vector) -> RobustRisk:
        """The same over the masses below the caps, where the set is a capped simplex."""
        if not isinstance(self.masses, CappedSimplex):
            return self
        lower, upper = (np.minimum(ends, caps) for ends in (self.masses.lower, self.masses.upper))
        # Without room for all of the mass, nothing can be limited.
        binds = np.any(upper < self.masses.upper) and upper.sum() >= 1
        return RobustRisk(CappedSimplex(lower, upper)) if binds else self

    def known(self, shares: Vector) -> Vector:
        """The weights of a single mass, on the scale of the probabilities."""
        mass, present = np.asarray(self.masses.maximize(np.zeros(len(shares)))), shares > 0
        return np.where(present, weights_of(mass * present, shares), 1.0)


class SetGoal(Goal):
    """The smallest worst-case risk over an uncertainty set; one known weighting is not tuned.

    Parameters
    ----------
    uncertainty : Uncertainty
        The set of weightings.

    Examples
    --------
    >>> from equipoise import FixedWeights, WorstClass
    >>> from equipoise.goals import SetGoal
    >>> SetGoal(WorstClass()).resolve([0.9, 0.1]).values(np.array([[9.0, 2]]), None, [10.0, 4])
    array([0.5])
    >>> SetGoal(FixedWeights("balanced")).is_known
    True
    """

    def __init__(self, uncertainty: Uncertainty) -> None:
        self.uncertainty = uncertainty

    @property
    def is_known(self) -> bool:
        """Whether the set is one weighting."""
        return isinstance(self.uncertainty, FixedWeights)

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> RobustRisk:
        """The robust risk over the set of masses."""
        if not isinstance(self.uncertainty, Uncertainty):
            raise InvalidParameterError(
                "uncertainty must be an uncertainty set such as LabelCVaR(0.1), got "
                f"{' '.join(repr(self.uncertainty).split())}."
            )
        return RobustRisk(self.uncertainty.resolve(prior, classes))

    @classmethod
    def examples(cls) -> list[Self]:
        """Over the simplex, a capped one, and a point."""
        return [cls(WorstClass()), cls(LabelCVaR(0.5)), cls(FixedWeights("balanced"))]
