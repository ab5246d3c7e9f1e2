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
from equipoise.text import did_you_mean

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
    given = " ".join(repr(value).split())  # arrays are printed over several lines
    words = ", ".join(repr(word) for word in [*WORDS, *METRIC_NAMES])
    calls = (f"{name}(...)" for name in [*SETS, *GOALS])
    raise InvalidParameterError(
        "goal must be an uncertainty set such as LabelCVaR(0.1), a linear-fractional metric, one "
        f"of the words {words}, FixedWeights(...) or CostMatrix(...) for known weights or costs, "
        f"RecallFloors(...), or None, got {given}"
        f"{did_you_mean(value, [*WORDS, *LIKELY_METRICS], calls)}."
    )
