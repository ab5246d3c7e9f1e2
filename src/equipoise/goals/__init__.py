"""What decisions are for: a set of weightings, a metric, costs, or floors of the recall.

A goal is a recipe: like an uncertainty set it *resolves*, given the classes, to a criterion.
"""

from equipoise.goals.base import Criterion, Goal, KnownRule, SmoothCriterion
from equipoise.goals.costs import CostMatrix
from equipoise.goals.floors import RecallFloors
from equipoise.goals.grammar import GOAL_WORDS, bind_classes, format_goal, goal_names, parse_goal
from equipoise.goals.labelled_predictions import Predictions, decide
from equipoise.goals.metric_goal import MetricGoal
from equipoise.goals.rate_floors import Floors, PrecisionFloors
from equipoise.goals.registry import GOALS, as_goal
from equipoise.goals.row_costs import decide_by_costs
from equipoise.goals.set_goal import SetGoal

__all__ = [
    "GOALS",
    "GOAL_WORDS",
    "CostMatrix",
    "Criterion",
    "Floors",
    "Goal",
    "KnownRule",
    "MetricGoal",
    "PrecisionFloors",
    "Predictions",
    "RecallFloors",
    "SetGoal",
    "SmoothCriterion",
    "as_goal",
    "bind_classes",
    "decide",
    "decide_by_costs",
    "format_goal",
    "goal_names",
    "parse_goal",
]
