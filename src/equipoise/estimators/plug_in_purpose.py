"""What decision weights are chosen for: the goal that was given, as the search takes it."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.decisions import FloorGoal, MetricGoal, RobustGoal
from equipoise.decisions import Goal as SearchGoal
from equipoise.estimators.plug_in_rules import CostRule, Rule, WeightRule
from equipoise.estimators.plug_in_tuning import Shrinkage
from equipoise.exceptions import InvalidParameterError
from equipoise.goals import FlooredRisk, Goal, RobustRisk
from equipoise.goals import MetricGoal as MetricRecipe
from equipoise.validation.numbers import check_number

Kind = Literal["metric", "uncertainty", "floors"]


@dataclass(frozen=True, eq=False)
class Purpose:
    """A goal on its way to the search."""

    recipe: Goal

    @property
    def is_known(self) -> bool:
        return self.recipe.is_known

    @property
    def kind(self) -> Kind:
        if isinstance(self.recipe, MetricRecipe):
            return "metric"
        return "uncertainty" if self.recipe.may_shrink else "floors"

    def rule(self, prior: Vector, shares: Vector, classes: NDArray[Any]) -> Rule:
        """The rule of known weights or costs."""
        weights, costs = self.recipe.resolve(prior, classes).known(shares)
        if costs is not None:
            return CostRule(costs)
        return WeightRule(np.asarray(weights))

    def goal(self, prior: Vector, classes: NDArray[Any], few: NDArray[np.bool_]) -> SearchGoal:
        """The goal of decision weights for the classes that have rows enough."""
        found = self.recipe.resolve_some(prior, classes, few)
        if isinstance(self.recipe, MetricRecipe):
            among = prior[~few] / prior[~few].sum()
            return MetricGoal(self.recipe.metric, among).goal
        if isinstance(found, FlooredRisk):
            return FloorGoal(found.floors, found.prior, found.confidence, found.classes)
        assert isinstance(found, RobustRisk)
        return RobustGoal(found.masses)


def check_shrinkage(shrinkage: Any, purpose: Purpose) -> Shrinkage:
    """An amount from 0 to 1, or "auto"; weights that keep floors cannot be drawn elsewhere."""
    named = isinstance(shrinkage, str) and shrinkage == "auto"
    if isinstance(shrinkage, str) and not named:
        raise InvalidParameterError(
            f'shrinkage must be "auto" or a number in [0, 1], got {shrinkage!r}.'
        )
    amount = 0.0 if named else check_number(shrinkage, "shrinkage", "[0, 1]")
    if purpose.recipe.may_shrink:
        return "auto" if named else amount
    if amount > 0:
        raise InvalidParameterError(
            f'shrinkage must be "auto" or 0 for {purpose.recipe!r}, got {shrinkage!r}: weights '
            "drawn towards balanced ones would not keep the floors."
        )
    return 0.0
