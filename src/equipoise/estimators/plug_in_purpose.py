"""What decision weights are chosen for: known costs, a metric, a set of weightings, or floors."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.decisions import FloorGoal, Goal, MetricGoal, RobustGoal
from equipoise.estimators.plug_in_rules import Rule, WeightRule, cost_rule, is_cost_matrix
from equipoise.estimators.plug_in_tuning import Shrinkage
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import FixedWeights, Uncertainty, as_uncertainty
from equipoise.validation.numbers import check_interval, check_number, check_numbers
from equipoise.weights.priors import normalize_weights, weights_of

Kind = Literal["weights", "metric", "uncertainty", "min_recall"]


@dataclass(frozen=True, eq=False)
class Purpose:
    """One of the four things that a user can ask for.

    Attributes
    ----------
    kind : which of them.
    request : what was asked, as given.
    floor_confidence : probability with which floors shall hold on new data, if they shall.
    """

    kind: Kind
    request: Any
    floor_confidence: float | None = None

    @property
    def is_known(self) -> bool:
        """Whether the rule is known and nothing is to be tuned."""
        return self.kind == "weights"

    def rule(self, prior: Vector, shares: Vector, classes: NDArray[Any]) -> Rule:
        """The rule of known weights or costs.

        Parameters
        ----------
        prior : class frequencies of the population.
        shares : class frequencies of the rows that the probabilities were learnt from.
        classes : class names.
        """
        present = shares > 0
        if is_cost_matrix(self.request):
            factors = np.divide(prior, shares, out=np.ones_like(prior), where=present)
            rule = cost_rule(self.request, classes, factors)
            if not isinstance(rule, WeightRule):
                return rule
            return WeightRule(normalize_weights(rule.weights, shares))
        mass = _fixed(self.request).resolve(prior, classes).mass
        return WeightRule(np.where(present, weights_of(mass * present, shares), 1.0))

    def goal(self, prior: Vector, classes: NDArray[Any], few: NDArray[np.bool_]) -> Goal:
        """The goal of decision weights for the classes that have rows enough.

        Parameters
        ----------
        prior : class frequencies of the population.
        classes : class names.
        few : which classes have too few rows.
        """
        tuned = classes[~few]
        among = _renormalized(prior[~few], tuned)
        if self.kind == "metric":
            # The goal behind the name, so that a wrong name is refused at once.
            return MetricGoal(self.request, among).goal
        if self.kind == "min_recall":
            floors = _floors(self.request, classes, few)
            return FloorGoal(floors, among, self.floor_confidence, tuned)
        return RobustGoal(as_uncertainty(self.request).resolve(among, tuned))


def _renormalized(prior: Vector, classes: NDArray[Any]) -> Vector:
    if not prior.sum() > 0:
        raise InvalidParameterError(
            "class_prior must be positive for a class whose weight can be tuned, got "
            f"{prior.tolist()} for {classes.tolist()}."
        )
    return np.asarray(prior / prior.sum())


def _fixed(weights: Any) -> FixedWeights:
    if isinstance(weights, FixedWeights):
        return weights
    if isinstance(weights, Uncertainty):
        raise InvalidParameterError(
            "weights must be known: a name, a dict by class, an array, a cost matrix or "
            f"FixedWeights, got {weights!r}; give a set of weightings as uncertainty=."
        )
    return FixedWeights(weights)


def _floors(min_recall: Any, classes: NDArray[Any], few: NDArray[np.bool_]) -> Vector:
    floors = check_numbers(min_recall, classes, name="min_recall", default=0.0)
    check_interval(floors, classes, "min_recall", "[0, 1]")
    unknown = few & (floors > 0)
    if np.any(unknown):
        raise InvalidParameterError(
            f"min_recall must not name {classes[unknown].tolist()}, which has too few rows to be "
            "tuned; leave it out of the floors, or collect more rows."
        )
    return floors[~few]


def choose_purpose(
    *, weights: Any, metric: Any, uncertainty: Any, min_recall: Any, floor_confidence: Any
) -> Purpose:
    """The one purpose that was given; none means the default uncertainty set."""
    requests: dict[Kind, Any] = {
        "weights": weights, "metric": metric, "uncertainty": uncertainty, "min_recall": min_recall,
    }  # fmt: skip
    given = [kind for kind, request in requests.items() if request is not None]
    if len(given) > 1:
        raise InvalidParameterError(
            f"give one of weights, metric, uncertainty and min_recall, got {' and '.join(given)}: "
            "decision weights can serve one purpose only."
        )
    kind: Kind = given[0] if given else "uncertainty"
    if floor_confidence is None:
        return Purpose(kind, requests[kind])
    if kind != "min_recall":
        raise InvalidParameterError(
            f"floor_confidence is about the floors of min_recall, got {floor_confidence!r} "
            "without any; leave it out, or give min_recall."
        )
    confidence = check_number(floor_confidence, "floor_confidence", "(0, 1)")
    return Purpose(kind, requests[kind], confidence)


def check_shrinkage(shrinkage: Any, purpose: Purpose) -> Shrinkage:
    """An amount from 0 to 1, or "auto"; weights that keep floors cannot be drawn elsewhere."""
    named = isinstance(shrinkage, str) and shrinkage == "auto"
    if isinstance(shrinkage, str) and not named:
        raise InvalidParameterError(
            f'shrinkage must be "auto" or a number in [0, 1], got {shrinkage!r}.'
        )
    amount = 0.0 if named else check_number(shrinkage, "shrinkage", "[0, 1]")
    if purpose.kind != "min_recall":
        return "auto" if named else amount
    if amount > 0:
        raise InvalidParameterError(
            f'shrinkage must be "auto" or 0 with min_recall, got {shrinkage!r}: weights drawn '
            "towards balanced ones would not keep the floors."
        )
    return 0.0
