r"""The smallest worst case over a set of weightings.

.. math:: \min_w \; \max_{m \in M} \; \sum_i m_i R_i(w)

with zero-one class risks. The search goes by the smooth value

.. math:: \max_{m \in M} \; \langle m, R \rangle - \frac{\mu}{2} \| m - m_0 \|^2,

whose maximiser is the projection of :math:`m_0 + R / \mu` onto the set; :math:`m_0` is the point of
the set nearest to equal masses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from equipoise.arrays import ArrayLike, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.goals.base import Goal, KnownRule, SmoothCriterion, log_ratio
from equipoise.sets import FixedWeights, LabelCVaR, MassSet, Uncertainty, WorstClass
from equipoise.weights.priors import named_prior, weights_of

# MU: difference of class risks that one unit of mass is worth, so that classes whose risks are
# within about MU / n_classes share the worst case (docs/studies/tuner.txt was run with it).
MU = 0.1


@dataclass(frozen=True, eq=False)
class RobustRisk(SmoothCriterion):
    """The worst case of zero-one risks over a set of masses."""

    masses: MassSet
    prior: Vector
    measures = "risk"

    @cached_property
    def equal(self) -> Vector:
        """The masses of the set that are the nearest to equal ones."""
        k = len(self.prior)
        return np.asarray(self.masses.project(np.full(k, 1 / k)), dtype=np.float64)

    @property
    def centre(self) -> Vector:
        return log_ratio(self.equal, self.prior)

    def of_rates(self, recalls: Vector, shares: Vector) -> float:
        return float(self.masses.support(1 - recalls))

    def smooth(self, recalls: Vector, shares: Vector) -> tuple[float, Vector, Vector]:
        risks = 1 - recalls
        mass = np.asarray(self.masses.project(self.equal + risks / MU))
        value = mass @ risks - MU / 2 * np.sum((mass - self.equal) ** 2)
        return float(value), -mass, np.zeros_like(shares)


@dataclass(frozen=True, eq=False)
class KnownRisk(RobustRisk, KnownRule):
    """The risk under one weighting, whose best decisions are known."""

    tune = KnownRule.tune

    def known(self, shares: Vector) -> Vector:
        """The weights of the single mass, on the scale of the probabilities."""
        mass, present = self.equal, shares > 0
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
    >>> SetGoal(WorstClass()).resolve([0.9, 0.1]).value(np.array([[9.0, 1.0], [2.0, 2.0]]))
    0.5
    >>> SetGoal(FixedWeights("balanced")).is_known
    True
    """

    def __init__(self, uncertainty: Uncertainty) -> None:
        self.uncertainty = uncertainty

    @property
    def is_known(self) -> bool:
        """Whether the set is one weighting."""
        return getattr(self.uncertainty, "weighting", None) is not None

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> RobustRisk:
        """The robust risk over the set of masses."""
        if not isinstance(self.uncertainty, Uncertainty):
            raise InvalidParameterError(
                "uncertainty must be an uncertainty set such as LabelCVaR(0.1), got "
                f"{' '.join(repr(self.uncertainty).split())}."
            )
        p, names = named_prior(prior, classes)
        kind = KnownRisk if self.is_known else RobustRisk
        return kind(self.uncertainty.resolve(p, names), p)

    @classmethod
    def examples(cls) -> list[Self]:
        """Over the simplex, a capped one, and a point."""
        return [cls(WorstClass()), cls(LabelCVaR(0.5)), cls(FixedWeights("balanced"))]
