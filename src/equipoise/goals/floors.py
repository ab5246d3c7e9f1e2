r"""Recalls of some classes no lower than floors, at the least risk (Neyman-Pearson).

.. math:: \min_w \; \sum_i p_i R_i(w) \quad \text{subject to} \quad 1 - R_i(w) \geq f_i .

With a ``confidence`` :math:`1 - \delta` all floors hold together for new rows, with that
probability over the rows at hand. Log-weights :math:`\theta` are raised, class after class, just so
far that class ``i`` has no more errors than

.. math:: e_i = \max \{e : P(\mathrm{Bin}(n_i, 1 - f_i) \leq e) \leq \delta / m\},

with :math:`m` floors. There is a least such :math:`\theta`, as raising a class costs only others.
Given their rows, it lies on a curve along which the rows that class ``i`` gets right only grow with
:math:`\theta_i`: those of class ``i`` choose its place on the curve by an order statistic, so that
a recall below :math:`f_i` has probability :math:`\delta / m` at most (Tong, Feng and Li 2018, for
two classes). So it is for each class, and for all weights that keep it as far above the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.stats import binom

from equipoise.arrays import ArrayLike, Indices, Mask, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidParameterError, UnattainableError
from equipoise.goals.base import Criterion, Goal, prior_among
from equipoise.text import listing
from equipoise.validation.numbers import check_interval, check_number, check_numbers
from equipoise.weights.priors import named_prior

# A violation counts for more than any risk.
PRICE = 1e3
# Rounding in sums of weights.
SLACK = 1e-12
# How far a log-weight is above what its class needs, so that rounding turns no row; how closely it
# is found, how near classes are that chase each other, and where it is out of reach.
MARGIN, PRECISION, NEAR = 1e-9, 1e-10, 1e-6
SWEEPS, FURTHEST = 1_000, 500.0


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

    def short(self, table: Matrix) -> float:
        totals, bound = table.sum(axis=1), self.floors > 0
        missing = np.maximum(self.floors - SLACK - np.diag(table) / totals, 0)[bound]
        spread = np.sqrt(self.floors * (1 - self.floors) / totals)[bound]
        ratios = np.divide(
            missing, spread, out=np.where(missing > 0, np.inf, 0.0), where=spread > 0
        )
        return float(ratios.max(initial=0.0))

    def free(self) -> Criterion:
        return replace(self, floors=0 * self.floors)

    def allowed_errors(self, counts: Indices) -> Indices:
        """The most errors of each class that show its floor; too few rows show none."""
        if self.confidence is None:
            return counts
        bound = self.floors > 0
        tail = (1 - self.confidence) / max(1, int(np.count_nonzero(bound)))
        # The largest e with P(Bin(count, 1 - floor) <= e) <= tail.
        errors = binom.ppf(tail, counts, 1 - self.floors)
        errors -= binom.cdf(errors, counts, 1 - self.floors) > tail
        short = np.flatnonzero(bound & (errors < 0))
        if len(short):
            i = short[0]
            needed = int(np.ceil(np.log(tail) / np.log(self.floors[i])))
            raise UnattainableError(
                f"{counts[i]} rows of class {self.classes.tolist()[i]!r} cannot show a recall of "
                f"{self.floors[i]:.6g} with confidence {self.confidence:.6g}: at least {needed} "
                "are needed, of equal weight, that the model was not trained on. Lower the floor "
                "or the confidence, give more rows, or hold out a larger share of them."
            )
        return np.asarray(errors, dtype=np.intp)

    def certified(
        self, leads: list[tuple[Matrix, Vector]], shares: Vector, seed: int
    ) -> tuple[FlooredRisk, Matrix]:
        """What is left to search for, and how far apart log-weights must be for the floors.

        ``leads`` are, for each class, how far log-probabilities are behind that of the rows' own,
        of shape (n_classes, rows), and the rows' weights. Gaps are by class and those it is above.
        """
        rng, bound = np.random.default_rng(seed), np.flatnonzero(self.floors > 0)
        drawn = [_drawn(*lead, rng) if i in bound else lead[0] for i, lead in enumerate(leads)]
        allowed = self.allowed_errors(np.array([rows.shape[1] for rows in drawn]))

        def tight(values: Vector, i: int) -> float:
            """What all rows of class ``i`` stay below or at, but those that may be errors."""
            return float(np.partition(values, -1 - allowed[i])[-1 - allowed[i]])

        # Where no floor binds, probabilities decide as they are, on the population's scale.
        theta = np.log(np.maximum(self.prior, SLACK) / shares)
        least, rose = np.full_like(theta, -np.inf), np.full(len(theta), -SWEEPS)
        for sweep in range(SWEEPS):
            for i in bound.tolist():
                least[i] = tight((theta[:, None] - drawn[i]).max(axis=0), i) + MARGIN
            rose[least > theta + PRECISION] = sweep
            if not np.any(rose == sweep):
                gaps = np.minimum(least, theta)[:, None] - theta
                return replace(self, floors=0 * self.floors, confidence=None), gaps
            theta = np.maximum(theta, least)
            if theta.max() > FURTHEST:
                break
            # Classes that chase each other all rise until others are in the way, or for ever.
            chase, step = sweep - rose < len(bound), np.inf
            for i in np.flatnonzero(chase).tolist():
                ahead = theta[:, None] - drawn[i] - theta[i]
                within = ahead[chase].max(axis=0) > -NEAR
                beyond = ahead[~chase].max(axis=0, initial=-np.inf)
                step = min(step, tight(np.where(within, np.inf, beyond), i))
            if step == np.inf:
                break
            theta[chase] += step if step > NEAR else 0.0
        raise UnattainableError(
            f"No decision weights reach recalls of at least {self._listed(self.floors, '.6g')} "
            f"together with confidence {self.confidence:.6g}, as far as the rows show. Lower a "
            "floor or the confidence, or give more rows."
        )

    def _listed(self, recalls: Vector, digits: str) -> str:
        names, bound = self.classes.tolist(), np.flatnonzero(self.floors > 0)
        return " and ".join(f"{recalls[i]:{digits}} for class {names[i]!r}" for i in bound)

    def instead(self, risks: Vector) -> FlooredRisk | None:
        """Where a floor is missed, the floors alone; those missed even then are out of reach."""
        missed = self.floors - SLACK > 1 - risks
        if not np.any(missed):
            return None
        if not self.alone:
            return replace(self, alone=True)
        raise UnattainableError(
            f"No decision weights reach recalls of at least {self._listed(self.floors, '.6g')} "
            f"together on the tuning rows: the nearest found are {self._listed(1 - risks, '.3f')} "
            f"(short for {listing(self.classes[missed].tolist())}). Lower a floor."
        )


class RecallFloors(Goal):
    """The least standard risk among all weights that keep the recall of some classes above floors.

    Parameters
    ----------
    floors : float, dict by class, or array-like of shape (n_classes,)
        Smallest recalls, from 0 to 1; a dict leaves the classes that it does not name free.
    confidence : float in (0, 1), default=None
        The probability with which all floors together shall hold for new rows. None keeps them on
        the tuning rows alone.

    Notes
    -----
    With a confidence, whatever the model and the population, the rule that is returned keeps all
    floors for new rows of the population, except with probability ``1 - confidence`` at most over
    the draw of the tuning rows. These must be independent rows of the population that one model was
    not trained on: ``PlugInClassifier`` holds some out, and returns the model that has not seen
    them. It takes ``log((1 - confidence) / m) / log(floor)`` of a class at least, with ``m``
    floors; where rows cannot show what is asked, there is an ``UnattainableError``.

    Rows of unequal weight stand for a population where they are as much more frequent. Those of a
    class with a floor are drawn, each with the share of its weight in the largest, and then count
    one each: nothing is promised of rows heavier than all that were seen, and few may be left.

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
        p, names = named_prior(prior, classes)
        floors = check_numbers(self.floors, names, name="floors", default=0.0)
        confidence, allowed = self.confidence, "[0, 1]"
        if confidence is not None:
            # No number of rows shows that errors never happen.
            confidence, allowed = check_number(confidence, "confidence", "(0, 1)"), "[0, 1)"
        check_interval(floors, names, "floors", allowed)
        return FlooredRisk(floors, p, names, confidence)

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


def _drawn(lead: Matrix, weight: Vector, rng: np.random.Generator) -> Matrix:
    """Rows drawn by their weight, as they come from the weighted population."""
    if weight.min() == weight.max():
        return lead
    # Given the largest weight, the others are independent rows of the population up to it.
    kept = rng.random(len(weight)) * weight.max() < weight
    kept[np.argmax(weight)] = False
    return lead[:, kept]
