r"""Decision weights for the worst case over a set of masses.

.. math:: \min_w \; \max_{m \in M} \; \sum_i m_i R_i(w)

with zero-one class risks. Of many outcomes the best is found by cutting planes: masses that were
worst for some outcome bound the value of all others from below.
"""

from dataclasses import dataclass, field

import numpy as np

from equipoise.arrays import Vector
from equipoise.decisions.equalize import equalized
from equipoise.decisions.evidence import Evidence
from equipoise.decisions.goal import TIE_BREAK, Goal, Outcomes, Tuned
from equipoise.decisions.search import retune, tune
from equipoise.sets import MassSet

# Masses that are remembered between searches.
MEMORY = 50


@dataclass(frozen=True, eq=False)
class RobustGoal(Goal):
    """The robust zero-one risk over a set of masses."""

    masses: MassSet
    bags_well = True
    _planes: list[Vector] = field(default_factory=list, repr=False)

    def values(self, outcomes: Outcomes) -> Vector:
        return np.array([float(self.masses.support(risks)) for risks in outcomes.risks])

    def lowest(self, outcomes: Outcomes) -> tuple[int, float]:
        risks, errors = outcomes.risks, TIE_BREAK * outcomes.errors
        if self.masses.is_simplex:
            values = risks.max(axis=1) + errors
            best = int(np.argmin(values))
            return best, float(values[best])
        bounds = np.full(len(risks), -np.inf)
        if self._planes:
            bounds = (risks @ np.array(self._planes).T).max(axis=1)
        while True:
            best = int(np.argmin(bounds + errors))
            mass = np.asarray(self.masses.maximize(risks[best]))
            value = float(mass @ risks[best])
            if value <= bounds[best] + 1e-12:
                return best, value + float(errors[best])
            self._planes.append(mass)
            del self._planes[:-MEMORY]
            bounds = np.maximum(bounds, risks @ mass)

    def tune(self, evidence: Evidence) -> Tuned:
        return tune(evidence, self, lambda rows, theta: equalized(rows, self.masses, theta))

    def sibling(self, evidence: Evidence) -> Vector:
        # Not the optimum: resamples would all stay at what it learnt by heart.
        return np.asarray(-np.log(evidence.prior))

    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        if evidence.n_classes == 2:
            return retune(evidence, self, theta)
        return equalized(evidence, self.masses, theta)
