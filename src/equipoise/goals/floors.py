r"""Recalls of some classes no lower than floors, at the least risk (Neyman-Pearson).

.. math:: \min_w \; \sum_i p_i R_i(w) \quad \text{subject to} \quad 1 - R_i(w) \geq f_i .

Log-weights :math:`\theta` start where the risk is the least, at those that put the probabilities
on the scale of the population, and are raised, class after class, just so far that every floor
holds. There is a least such :math:`\theta`, as raising a class costs only others; by the
multipliers of the floors, raising those classes alone is what the best rule does.

On the tuning rows class ``i`` may have errors of the weight :math:`(1 - f_i) n_i`. With a
``confidence`` :math:`1 - \delta` all floors hold together for new rows, with that probability over
the rows at hand, if class ``i`` has no more errors than

.. math:: e_i = \max \{e : P(\mathrm{Bin}(n_i, 1 - f_i) \leq e) \leq \delta / m\},

with :math:`m` floors. Given the rows of the others, :math:`\theta` lies on a curve along which the
rows that class ``i`` gets right only grow with :math:`\theta_i`: those of class ``i`` choose its
position on the curve by an order statistic, so that a recall below :math:`f_i` has probability
:math:`\delta / m` at most (Tong, Feng and Li 2018, for two classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from equipoise.arrays import ROUNDING, ArrayLike, Indices, Mask, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidParameterError, UnattainableError
from equipoise.goals.base import FURTHEST, Criterion, Goal, from_logs, log_ratio, prior_among
from equipoise.goals.labelled_predictions import Predictions
from equipoise.goals.sparse_rows import dense
from equipoise.risks.tolerance import allowed_misses
from equipoise.text import listing
from equipoise.validation.numbers import check_interval, check_number, check_numbers
from equipoise.weights.priors import named_prior

# PRICE: of a recall below its floor, in units of risk, so that no risk makes up for one.
PRICE = 1e3
# MARGIN: in log-weights, how far one is raised above what its class needs, so that rounding turns
# no row; it is raised once it lacks a tenth of that.
MARGIN = 1e-9
# NEAR: in log-weights, how near classes are that chase each other.
NEAR = 1e-6
# SWEEPS: over the classes with a floor, at most.
SWEEPS = 1_000


def refuse_floors_of(few: Mask, classes: NDArray[Any]) -> None:
    """Refuse floors of some classes, which have too few rows."""
    if np.any(few):
        raise InvalidParameterError(
            f"floors must not name [{listing(classes[few].tolist())}], which has too few rows to "
            "be tuned; leave it out of the floors, or collect more rows."
        )


@dataclass(frozen=True, eq=False)
class FlooredRisk(Criterion):
    """The standard risk, with recalls no smaller than floors; a floor of 0 leaves a class free."""

    floors: Vector
    prior: Vector
    classes: NDArray[Any]
    confidence: float | None = None

    def value(self, table: Any) -> float:
        recalls = table.diagonal() / table.sum(axis=1)
        short = np.maximum(self.floors - ROUNDING - recalls, 0).sum()
        return float((1 - recalls) @ self.prior + PRICE * short)

    def check_counts(self, counts: Indices) -> None:
        if self.confidence is not None:
            self.allowed_errors(counts)

    def allowed_errors(self, counts: Indices) -> Indices:
        """The most errors of each class that show its floor with confidence."""
        assert self.confidence is not None
        bound = self.floors > 0
        tail = (1 - self.confidence) / max(1, int(np.count_nonzero(bound)))
        errors = allowed_misses(counts, 1 - self.floors, tail)
        short = np.flatnonzero(bound & (errors < 0))
        if len(short):
            i = short[0]
            needed = int(np.ceil(np.log(tail) / np.log(self.floors[i])))
            raise UnattainableError(
                f"{counts[i]} rows of class {self.classes.tolist()[i]!r} cannot show a recall of "
                f"{self.floors[i]:.6g} with confidence {self.confidence:.6g}: at least {needed} "
                "are needed, of equal weight, that the model was not trained on. Lower the floor "
                "or the confidence, give more rows, or hold out a larger share "
                "of them, such as cv=0.5."
            )
        return errors

    def tune(
        self, rows: Predictions, parts: Sequence[Mask], *, pooling: float, seed: int
    ) -> list[Vector]:
        return [from_logs(self._least(rows.take(np.flatnonzero(part)), seed)) for part in parts]

    def _bounds(self, rows: Predictions, seed: int) -> dict[int, ClassBound]:
        """What the rows of each class with a floor ask for."""
        bound = np.flatnonzero(self.floors > 0).tolist()
        leads = {i: _leads(rows, i) for i in bound}
        if self.confidence is None:
            return {i: ClassBound(*leads[i], 1 - self.floors[i] + ROUNDING) for i in bound}
        rng, drawn = np.random.default_rng(seed), {}
        for i in bound:
            lead = _drawn(*leads[i], rng)
            drawn[i] = lead, np.full(lead.shape[1], 1 / max(lead.shape[1], 1))
        counts = np.zeros(len(self.floors), dtype=np.intp)
        counts[bound] = [drawn[i][0].shape[1] for i in bound]
        allowed = self.allowed_errors(counts)
        # Between so many errors and one more.
        return {i: ClassBound(*drawn[i], (allowed[i] + 0.5) / counts[i]) for i in bound}

    def _least(self, rows: Predictions, seed: int) -> Vector:
        """The least log-weights above the starting ones that keep all floors."""
        theta, bounds = log_ratio(self.prior, rows.prior), self._bounds(rows, seed)
        rose = dict.fromkeys(bounds, -SWEEPS)
        for sweep in range(SWEEPS):
            least = {i: class_bound.tight((theta[:, None] - class_bound.lead).max(axis=0)) + MARGIN
                     for i, class_bound in bounds.items()}  # fmt: skip
            for i in bounds:
                if least[i] > theta[i] + MARGIN / 10:
                    rose[i] = sweep
            if sweep not in rose.values():
                return theta
            for i in bounds:
                theta[i] = max(theta[i], least[i])
            if theta.max() > FURTHEST:
                break
            chasing = [i for i in bounds if sweep - rose[i] < len(bounds)]
            step = _step(theta, {i: bounds[i] for i in chasing})
            if step == np.inf:
                break
            theta[chasing] += step if step > NEAR else 0.0
        together = "together on the tuning rows"
        if self.confidence is not None:
            together = f"together with confidence {self.confidence:.6g}, as far as the rows show"
        bound = self.floors > 0
        named = zip(self.floors[bound], self.classes[bound].tolist(), strict=True)
        asked = " and ".join(f"{floor:.6g} for class {name!r}" for floor, name in named)
        raise UnattainableError(
            f"No decision weights reach recalls of at least {asked} {together}. Lower a floor"
            f"{' or the confidence' if self.confidence else ''}, or give more rows."
        )


@dataclass(frozen=True, eq=False)
class ClassBound:
    """The rows of a class: leads of its log-probability, shares of weight, and those that may err.

    ``lead`` is of shape (n_classes, n_rows).
    """

    lead: Matrix
    shares: Vector
    may_err: float

    def tight(self, values: Vector) -> float:
        """What all rows stay below or at, but those that may be errors."""
        order = np.argsort(-values, kind="stable")
        errors = np.cumsum(self.shares[order])
        first = int(np.searchsorted(errors, self.may_err, side="right"))
        return float(values[order[min(first, len(order) - 1)]])


def _step(theta: Vector, chasing: dict[int, ClassBound]) -> float:
    """How far classes that chase each other rise until others are in the way, or for ever."""
    among, step = np.isin(np.arange(len(theta)), list(chasing)), np.inf
    for i, bound in chasing.items():
        ahead = theta[:, None] - bound.lead - theta[i]
        within = ahead[among].max(axis=0) > -NEAR
        beyond = ahead[~among].max(axis=0, initial=-np.inf)
        step = min(step, bound.tight(np.where(within, np.inf, beyond)))
    return float(step)


def _leads(rows: Predictions, own: int) -> tuple[Matrix, Vector]:
    """How far other classes are behind on the rows of a class, and the rows' shares of weight."""
    here = np.flatnonzero((rows.labels == own) & (rows.sample_weight > 0))
    # A class that is impossible for a row is infinitely far behind, or ahead of the own one.
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(dense(rows.probabilities[here]))
        lead = np.ascontiguousarray((logs[:, own][:, None] - logs).T)
    lead[np.isnan(lead)] = np.inf  # both impossible: never in the way
    lead[own] = np.inf
    weight = rows.sample_weight[here]
    return lead, weight / weight.sum()


class RecallFloors(Goal):
    """The smallest overall error among all decision weights that keep recalls above floors.

    Use it where a recall of some classes is required; with a ``confidence`` the floors hold for new
    rows.

    Parameters
    ----------
    floors : float, dict by class, or array-like of shape (n_classes,)
        Smallest recalls, from 0 to 1; a dict leaves the classes that it does not name free.
    confidence : float in (0, 1), default=None
        The probability with which all floors hold together for new rows. None keeps them on the
        tuning rows only.

    Notes
    -----
    The overall error is the smallest if the probabilities are calibrated. Where the default
    predictions keep the floors, nothing changes; otherwise weights are raised just as far as the
    floors need.

    With a confidence, the returned rule keeps all floors for new rows of the population, for any
    model and population, except with probability ``1 - confidence`` over the draw of the tuning
    rows. The tuning rows must be independent, and held out from the training of a single model:
    ``TunedDecisionClassifier`` holds them out, and returns the model that was trained without them.
    A class with a floor needs at least ``log((1 - confidence) / m) / log(floor)`` tuning rows, with
    ``m`` the number of floors; with fewer, an ``UnattainableError`` is raised.

    With row weights, rows stand for a population in which heavier rows are more frequent. Rows of
    classes with a floor are then sampled in proportion to their weights and count one each. So the
    guarantee excludes rows heavier than all tuning rows, and unequal weights leave fewer rows.

    Examples
    --------
    >>> from equipoise import RecallFloors
    >>> RecallFloors({"ill": 0.9}).resolve([0.8, 0.2], ["healthy", "ill"]).floors
    array([0. , 0.9])
    """

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
        """The same for the classes that have enough rows; the others must not have a floor."""
        floored = self.resolve(prior, classes)
        refuse_floors_of(few & (floored.floors > 0), classes)
        among = prior_among(prior, classes, ~few)
        return FlooredRisk(floored.floors[~few], among, classes[~few], floored.confidence)

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
