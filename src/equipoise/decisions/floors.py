r"""Decision weights that keep the recall of some classes above floors (Neyman-Pearson).

.. math:: \min_w \; \sum_i p_i R_i(w) \quad \text{subject to} \quad 1 - R_i(w) \geq f_i .

With a ``confidence`` the floors hold on new data with that probability: of the ``n`` rows of a
class, only so many errors are allowed that a class with a recall below its floor would show so few
with probability at most ``1 - confidence`` (an order statistic; Tong, Feng and Li 2018). For two
classes and one floor this is a guarantee. Several floors share the probability; with more than two
classes the errors depend on several weights at once, and it is an approximation.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from equipoise.arrays import Vector
from equipoise.decisions.evidence import Evidence
from equipoise.decisions.goal import Goal, Outcomes, Tuned
from equipoise.decisions.search import retune, tune
from equipoise.exceptions import UnattainableError

# A violation counts for more than any risk.
PRICE = 1e3
# Rounding in sums of weights.
SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class FloorGoal(Goal):
    """The standard risk, with recalls no smaller than floors.

    Parameters
    ----------
    floors : array of shape (n_classes,)
        Smallest recall of each class; 0 leaves it free.
    prior : array of shape (n_classes,)
        Class shares that weigh the risk.
    confidence : float, optional
        Probability with which the floors shall hold on new data.
    classes : array of shape (n_classes,), optional
        Names for messages.
    """

    floors: Vector
    prior: Vector
    confidence: float | None = None
    classes: NDArray[Any] | None = None

    def values(self, outcomes: Outcomes) -> Vector:
        short = np.maximum(self.floors - SLACK - (1 - outcomes.risks), 0).sum(axis=1)
        return np.asarray(outcomes.risks @ self.prior + PRICE * short)

    def tune(self, evidence: Evidence) -> Tuned:
        goal = FloorGoal(self._raised(evidence), self.prior)
        tuned = tune(evidence, goal)
        if np.any(goal.floors - SLACK > 1 - tuned.class_risks):
            nearest = tune(evidence, _Shortfall(goal.floors))
            if np.any(goal.floors - SLACK > 1 - nearest.class_risks):
                raise UnattainableError(self._refusal(goal.floors, nearest.class_risks))
            tuned = nearest
        return Tuned(tuned.weights, float(tuned.class_risks @ self.prior), tuned.class_risks)

    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        return retune(evidence, FloorGoal(self._raised(evidence), self.prior), theta)

    def _raised(self, evidence: Evidence) -> Vector:
        """Floors for the rows at hand that make the given ones hold on new data."""
        if self.confidence is None:
            return self.floors
        counts = np.bincount(evidence.labels, minlength=evidence.n_classes)
        bound = self.floors > 0
        tail = (1 - self.confidence) / max(1, int(np.count_nonzero(bound)))
        raised = np.zeros_like(self.floors)
        for i in np.flatnonzero(bound):
            allowed = _allowed_errors(int(counts[i]), float(self.floors[i]), tail)
            if allowed < 0:
                needed = int(np.ceil(np.log(tail) / np.log(self.floors[i])))
                raise UnattainableError(
                    f"{counts[i]} rows of class {self._name(i)} cannot show a recall of "
                    f"{self.floors[i]:.6g} with confidence {self.confidence:.6g}: at least "
                    f"{needed} are needed. Lower the floor or the confidence, or give more rows."
                )
            raised[i] = 1 - allowed / counts[i]
        return raised

    def _refusal(self, floors: Vector, risks: Vector) -> str:
        missed = np.flatnonzero(floors - SLACK > 1 - risks)
        asked = " and ".join(
            f"{floors[i]:.6g} for class {self._name(i)}" for i in np.flatnonzero(floors > 0)
        )
        found = ", ".join(
            f"{1 - risks[i]:.3f} for class {self._name(i)}" for i in np.flatnonzero(floors > 0)
        )
        names = ", ".join(self._name(i) for i in missed)
        return (
            f"No decision weights reach recalls of at least {asked} together on the tuning rows: "
            f"the nearest found are {found} (short for {names}). Lower a floor."
        )

    def _name(self, i: Any) -> str:
        return repr(i if self.classes is None else self.classes.tolist()[i])


@dataclass(frozen=True, eq=False)
class _Shortfall(Goal):
    """The largest distance of a recall below its floor."""

    floors: Vector

    def values(self, outcomes: Outcomes) -> Vector:
        recalls = 1 - outcomes.risks
        return np.asarray(np.where(self.floors > 0, self.floors - recalls, -1.0).max(axis=1))

    def tune(self, evidence: Evidence) -> Tuned:
        return tune(evidence, self)

    def retune(self, evidence: Evidence, theta: Vector) -> Vector:
        return retune(evidence, self, theta)


def _allowed_errors(count: int, floor: float, tail: float) -> int:
    """The most errors that a class with a recall below its floor shows with small probability."""
    if floor >= 1:
        return -1 if tail < 1 else 0
    # The largest e with P(Bin(count, 1 - floor) <= e) <= tail.
    errors = int(binom.ppf(tail, count, 1 - floor))
    while errors >= 0 and binom.cdf(errors, count, 1 - floor) > tail:
        errors -= 1
    return errors
