"""All goals by name, and what users may give as one."""

from __future__ import annotations

from typing import Any

from equipoise.exceptions import InvalidParameterError
from equipoise.goals.base import Goal
from equipoise.goals.costs import CostMatrix
from equipoise.goals.floors import RecallFloors
from equipoise.goals.metric_goal import LIKELY_METRICS, METRIC_NAMES, MetricGoal, is_metric
from equipoise.goals.rate_floors import Floors, PrecisionFloors
from equipoise.goals.set_goal import SetGoal
from equipoise.registry import Registry
from equipoise.sets import SETS, WORDS, Uncertainty, as_uncertainty
from equipoise.sets.registry import likely_goal
from equipoise.text import brief

GOALS: Registry[type[Goal]] = Registry(
    "goal", SetGoal, MetricGoal, CostMatrix, RecallFloors, Floors, PrecisionFloors
)


def as_goal(value: Any = None) -> Goal:
    """The goal that a value stands for; None is the smallest worst case over ``LabelCVaR(0.1)``.

    Parameters
    ----------
    value : Goal, Uncertainty, str, LinearFractional, callable or None
        A recipe; an uncertainty set or one of the words ``"worst_class"``, ``"balanced"`` and
        ``"standard"``; a metric or its name.

    Examples
    --------
    >>> as_goal("worst_class"), as_goal("f1_macro")
    (SetGoal(uncertainty=WorstClass()), MetricGoal(metric='f1_macro'))
    """
    if isinstance(value, Uncertainty | None) or (isinstance(value, str) and value in WORDS):
        # A set whose alpha is to be chosen is refused when it is resolved, unless it is chosen.
        return SetGoal(value if isinstance(value, Uncertainty) else as_uncertainty(value))
    if isinstance(value, Goal):
        return value
    if is_metric(value):
        return MetricGoal(value)
    words = ", ".join(repr(word) for word in [*WORDS, *METRIC_NAMES])
    calls = (f"{name}(...)" for name in [*SETS, *GOALS])
    raise InvalidParameterError(
        "goal must be an uncertainty set such as LabelCVaR(0.1), a linear-fractional metric, one "
        f"of the words {words}, FixedWeights(...) or CostMatrix(...) for known weights or costs, "
        f"RecallFloors(...) or Floors(...), a function of the confusion matrix, or None, got "
        f"{brief(value)}"
        f"{likely_goal(value, [*WORDS, *LIKELY_METRICS], calls)}."
    )


def as_training_set(value: Any = None) -> Uncertainty:
    """The uncertainty set that a linear model is trained for; a goal of decisions is refused.

    Examples
    --------
    >>> as_training_set("worst_class")
    WorstClass()
    """
    kind = value if isinstance(value, type) else type(value)
    if issubclass(kind, Goal) or is_metric(value):
        raise InvalidParameterError(
            "goal of a linear model must be an uncertainty set such as LabelCVaR(0.1), got "
            f"{brief(value)}: for a metric, recall floors or costs use "
            "RobustClassifier(LogisticRegression(), goal)."
        )
    return as_uncertainty(value)
