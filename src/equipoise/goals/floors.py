r"""Recalls of some classes no lower than floors, at the least risk (Neyman-Pearson).

.. math:: \min_w \; \sum_i p_i R_i(w) \quad \text{subject to} \quad 1 - R_i(w) \geq f_i .

With a ``confidence`` the floors hold on new data with that probability: of the ``n`` rows of a
class, only so many errors are allowed that a class with a recall below its floor would show so few
with probability at most ``1 - confidence`` (an order statistic; Tong, Feng and Li 2018). For two
classes and one floor this is a guarantee. Several floors share the probability; with more than two
classes the errors depend on several weights at once, and it is an approximation.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.exceptions import InvalidParameterError, UnattainableError
from equipoise.goals.base import Criterion, Goal, prior_among
from equipoise.text import listing
from equipoise.validation.numbers import check_interval, check_number, check_numbers
from equipoise.weights.priors import check_prior

# A violation counts for more than any risk.
PRICE = 1e3
# Rounding in sums of weights.
SLACK = 1e-12


@dataclass(frozen=True, eq=False)
class FlooredRisk(Criterion):
    """The standard risk, with recalls no smaller than floors; a floor of 0 leaves a class free.

    Floors ``alone`` are the largest distance of a recall below its floor, whatever the risk.
    """

    floors: Vector
    prior: Vector
    classes: NDArray[Any]
    confidence: float | None = None
    alone: bool = False

    def values(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> Vector:
        if self.alone:
            distances = np.where(self.floors > 0, self.floors - hits / totals, -1.0)
            return np.asarray(distances.max(axis=1))
        risks = 1 - hits / totals
        short = np.maximum(self.floors - SLACK - (1 - risks), 0).sum(axis=1)
        return np.asarray(risks @ self.prior + PRICE * short)

    def for_rows(self, counts: Indices) -> "FlooredRisk":
        """Floors for the rows at hand that make the given ones hold on new data."""
        if self.confidence is None:
            return self
        bound = self.floors > 0
        tail = (1 - self.confidence) / max(1, int(np.count_nonzero(bound)))
        allowed = _allowed_errors(counts, self.floors, tail)
        short = np.flatnonzero(bound & (allowed < 0))
        if len(short):
            i = short[0]
            needed = int(np.ceil(np.log(tail) / np.log(self.floors[i])))
            raise UnattainableError(
                f"{counts[i]} rows of class {self.classes.tolist()[i]!r} cannot show a recall of "
                f"{self.floors[i]:.6g} with confidence {self.confidence:.6g}: at least {needed} "
                "are needed. Lower the floor or the confidence, or give more rows."
            )
        return replace(self, floors=np.where(bound, 1 - allowed / counts, 0.0), confidence=None)

    def instead(self, risks: Vector) -> "FlooredRisk | None":
        """Where a floor is missed, the floors alone; those missed even then are out of reach."""
        missed = self.floors - SLACK > 1 - risks
        if not np.any(missed):
            return None
        if not self.alone:
            return replace(self, alone=True)
        names, bound = self.classes.tolist(), np.flatnonzero(self.floors > 0)
        asked = " and ".join(f"{self.floors[i]:.6g} for class {names[i]!r}" for i in bound)
        found = ", ".join(f"{1 - risks[i]:.3f} for class {names[i]!r}" for i in bound)
        short = listing(self.classes[missed].tolist())
        raise UnattainableError(
            f"No decision weights reach recalls of at least {asked} together on the tuning "
            f"rows: the nearest found are {found} (short for {short}). Lower a floor."
        )


class RecallFloors(Goal):
    """The least standard risk among all weights that keep the recall of some classes above floors.

    Parameters
    ----------
    floors : float, dict by class, or array-like of shape (n_classes,)
        Smallest recalls, from 0 to 1; a dict leaves the classes that it does not name free.
    confidence : float in (0, 1), default=None
        The probability with which the floors shall hold on new data. None keeps them on the tuning
        rows.

    Examples
    --------
    >>> from equipoise import RecallFloors
    >>> RecallFloors({"ill": 0.9}).resolve([0.8, 0.2], ["healthy", "ill"]).floors
    array([0. , 0.9])
    """

    may_shrink = False

    def __init__(self, floors: Any, confidence: float | None = None) -> None:
        self.floors = floors
        self.confidence = confidence

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> FlooredRisk:
        """The standard risk with floors."""
        names = np.asarray(np.arange(np.size(prior)) if classes is None else classes)
        floors = check_numbers(self.floors, names, name="floors", default=0.0)
        confidence, allowed = self.confidence, "[0, 1]"
        if confidence is not None:
            # No number of rows shows that errors never happen.
            confidence, allowed = check_number(confidence, "confidence", "(0, 1)"), "[0, 1)"
        check_interval(floors, names, "floors", allowed)
        return FlooredRisk(floors, check_prior(prior, names, name="prior"), names, confidence)

    def resolve_some(self, prior: Vector, classes: NDArray[Any], few: Mask) -> FlooredRisk:
        """The same among the classes that have rows enough; no other may have a floor."""
        found = self.resolve(prior, classes)
        unknown = few & (found.floors > 0)
        if np.any(unknown):
            raise InvalidParameterError(
                f"floors must not name {classes[unknown].tolist()}, which has too few rows to be "
                "tuned; leave it out of the floors, or collect more rows."
            )
        among = prior_among(prior, classes, ~few)
        return FlooredRisk(found.floors[~few], among, classes[~few], found.confidence)

    @classmethod
    def examples(cls) -> list[Self]:
        """A floor for every class, kept on the rows at hand or with a confidence."""
        return [cls(0.1), cls(0.05, confidence=0.6)]


def _allowed_errors(counts: Indices, floors: Vector, tail: float) -> Vector:
    """The most errors that a class with a recall below its floor shows with small probability."""
    # The largest e with P(Bin(count, 1 - floor) <= e) <= tail.
    errors = binom.ppf(tail, counts, 1 - floors)
    return np.asarray(errors - (binom.cdf(errors, counts, 1 - floors) > tail))
