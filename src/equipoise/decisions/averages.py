r"""Decision weights that maximise an average over classes: macro F-beta, recalls, accuracy.

All are functions of the right decisions :math:`h_i`, all decisions :math:`d_i` and the weight
:math:`n_i` of each class. Values are one minus the metric, so that smaller is better.
"""

from dataclasses import dataclass

import numpy as np

from equipoise.arrays import Vector
from equipoise.decisions.evidence import Evidence
from equipoise.decisions.goal import Goal, Outcomes, Tuned
from equipoise.decisions.search import retune, tune


@dataclass(frozen=True)
class MacroFBeta(Goal):
    r"""The mean over classes of :math:`(1+\beta^2) h_i / (\beta^2 n_i + d_i)`."""

    beta: float = 1.0
    needs_decided = True

    def values(self, outcomes: Outcomes) -> Vector:
        square, decided = self.beta**2, outcomes.all_decided
        scores = (1 + square) * outcomes.hits / (square * outcomes.totals + decided)
        return np.asarray(1 - scores.mean(axis=1))

    def tune(self, evidence: Evidence) -> Tuned:
        return tune(evidence, self)

    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        return retune(evidence, self, theta)


@dataclass(frozen=True)
class GeometricMean(Goal):
    r"""The geometric mean of the recalls :math:`h_i / n_i`."""

    def values(self, outcomes: Outcomes) -> Vector:
        recalls = np.maximum(outcomes.hits / outcomes.totals, 0.0)
        return np.asarray(1 - np.prod(recalls ** (1 / recalls.shape[1]), axis=1))

    def tune(self, evidence: Evidence) -> Tuned:
        return tune(evidence, self)

    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        return retune(evidence, self, theta)


@dataclass(frozen=True, eq=False)
class WeightedRecall(Goal):
    r"""The mean :math:`\sum_i m_i h_i / n_i` of the recalls with given masses.

    With the class shares as masses it is the accuracy, with equal ones the balanced accuracy.
    """

    masses: Vector

    def values(self, outcomes: Outcomes) -> Vector:
        return np.asarray(outcomes.risks @ self.masses)

    def tune(self, evidence: Evidence) -> Tuned:
        return tune(evidence, self)

    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        return retune(evidence, self, theta)
