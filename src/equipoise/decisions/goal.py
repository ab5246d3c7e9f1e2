"""What decision weights are for: one contract for robust risks, metrics and recall floors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from equipoise.arrays import Matrix, Vector
from equipoise.decisions.evidence import Evidence

# Of two outcomes that are equally good the one with fewer errors is taken.
TIE_BREAK = 1e-7


@dataclass(frozen=True, eq=False)
class Tuned:
    """Decision weights and what they attain on the rows they were tuned on.

    Attributes
    ----------
    weights : decision weights, positive, summing to one.
    value : the goal's value, smaller is better (a metric to maximise is given as 1 - metric).
    class_risks : share of wrong decisions in each class.
    """

    weights: Vector
    value: float
    class_risks: Vector


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Many possible outcomes of deciding the same rows: all that goals depend on.

    Attributes
    ----------
    hits : weight of right decisions by class, shape ``(n_outcomes, n_classes)``.
    decided : weight of all decisions by class, same shape; None for goals that need none.
    totals : weight of the classes, shape ``(n_classes,)``.
    """

    hits: Matrix
    decided: Matrix | None
    totals: Vector

    @property
    def risks(self) -> Matrix:
        """Class risks of each outcome."""
        return np.asarray(1 - self.hits / self.totals)

    @property
    def all_decided(self) -> Matrix:
        """Weight of all decisions, for goals that have said that they need it."""
        if self.decided is None:
            raise TypeError("these outcomes were made for a goal without needs_decided")
        return self.decided

    @property
    def errors(self) -> Vector:
        """Mean of the class risks: what breaks ties."""
        return np.asarray(1 - self.hits @ (1 / self.totals) / len(self.totals))


class Goal(ABC):
    """A purpose that decision weights can serve; smaller values are better."""

    needs_decided = False
    # Whether log-weights of resamples cost little, and their mean does better than the optimum.
    bags_well = False

    @abstractmethod
    def values(self, outcomes: Outcomes) -> Vector:
        """The goal's value for each outcome."""

    def lowest(self, outcomes: Outcomes) -> tuple[int, float]:
        """The best outcome, and its value with a trace of its errors to break ties."""
        values = self.values(outcomes) + TIE_BREAK * outcomes.errors
        best = int(np.argmin(values))
        return best, float(values[best])

    def value(self, confusion: Matrix) -> float:
        """The goal's value for a table of weights by true class (first) and decision (second)."""
        hits, decided = np.diag(confusion), confusion.sum(axis=0)
        return float(self.values(Outcomes(hits[None], decided[None], confusion.sum(axis=1)))[0])

    @abstractmethod
    def tune(self, evidence: Evidence) -> Tuned:
        """The best decision weights for the evidence."""

    def sibling(self, evidence: Evidence) -> Vector:
        """Log-weights that ``retune`` can start from."""
        return np.asarray(np.log(self.tune(evidence).weights))

    @abstractmethod
    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        """Log-weights for other rows of the same kind, from those of a sibling: quick."""
