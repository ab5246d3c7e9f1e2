"""What decision weights are for: one contract for robust risks, metrics and recall floors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from equipoise.decisions.evidence import Evidence, Matrix
from equipoise.priors import Vector


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


class Goal(ABC):
    """A purpose that decision weights can serve; smaller values are better."""

    @abstractmethod
    def value(self, confusion: Matrix) -> float:
        """The goal's value for a table of weights by true class (first) and decision (second)."""

    @abstractmethod
    def tune(self, evidence: Evidence) -> Tuned:
        """The best decision weights for the evidence."""
