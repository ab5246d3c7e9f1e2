r"""Rules that decide from probabilities: by weights, or by the costs of every kind of error.

Conventions
-----------
``probabilities`` : float64, shape ``(n_rows, n_classes)``, columns in class order.
``scores`` : one per class, the largest decides; for two classes one per row, positive for the
    second class.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.decisions import decide


class Rule(ABC):
    """A way to decide from the probabilities of the classes."""

    weights: Vector | None = None
    costs: Matrix | None = None

    @property
    def threshold(self) -> float | None:
        r"""For two classes, the ``t`` of :math:`\eta_1 > t`."""
        if self.weights is None or len(self.weights) != 2:
            return None
        return float(self.weights[0] / self.weights.sum())

    @abstractmethod
    def scores(self, probabilities: Matrix) -> NDArray[np.float64]:
        """What the decision goes by, without rounding that could change it."""

    @abstractmethod
    def decide(self, probabilities: Matrix) -> Indices:
        """Class index of the decision for every row."""


@dataclass(frozen=True, eq=False)
class WeightRule(Rule):
    r"""The class :math:`\arg\max_i w_i \eta_i(x)`, the first one in a tie."""

    weights: Vector

    def scores(self, probabilities: Matrix) -> NDArray[np.float64]:
        weighted = probabilities * self.weights
        return weighted if len(self.weights) > 2 else np.asarray(weighted[:, 1] - weighted[:, 0])

    def decide(self, probabilities: Matrix) -> Indices:
        return decide(probabilities, self.weights)


@dataclass(frozen=True, eq=False)
class CostRule(Rule):
    r"""The class :math:`\arg\min_j \sum_i \eta_i(x) c_{ij}`, the first one in a tie."""

    costs: Matrix

    def scores(self, probabilities: Matrix) -> NDArray[np.float64]:
        # Class by class and not as one product, whose rounding depends on the number of rows.
        scores = np.zeros_like(probabilities)
        for column, costs in zip(probabilities.T, self.costs, strict=True):
            scores -= column[:, None] * costs
        return scores

    def decide(self, probabilities: Matrix) -> Indices:
        return np.asarray(np.argmax(self.scores(probabilities), axis=1), dtype=np.intp)
