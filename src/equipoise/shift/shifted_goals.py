"""What a goal asks at the class frequencies of new rows, and what is to be known about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.arrays import ROUNDING, NDArray, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.goals import Floors, Goal, PrecisionFloors, RecallFloors, SetGoal
from equipoise.risks import RiskInterval
from equipoise.sets import PriorBall, PriorBox, WeightHull
from equipoise.text import share_text
from equipoise.validation.numbers import check_numbers

# MOST_CORNERS: draws of the frequencies that a hull is made of; more are hardly further out.
MOST_CORNERS = 50

RECALLS_NOTE = (
    "Recalls do not depend on class frequencies: the floors hold under any class frequencies, as "
    "long as rows of a class look as before."
)
RATES_NOTE = (
    "Precisions and false-positive rates change with the class frequencies: the floors were "
    "recomputed, and are kept at the estimated ones alone."
)


@dataclass(frozen=True, eq=False)
class Region:
    """Class frequencies that unlabelled rows leave possible, and those of the labelled rows."""

    classes: NDArray[np.generic]
    prior: Vector
    mean: Vector
    draws: NDArray[np.float64]
    box: PriorBox


def for_population(goal: Goal, region: Region) -> tuple[Goal, tuple[str, ...]]:
    """The goal at the estimated frequencies, and notes about it.

    Examples
    --------
    >>> import numpy as np
    >>> mean, draws = np.array([0.2, 0.8]), np.array([[0.1, 0.9], [0.3, 0.7]])
    >>> box = PriorBox({"ill": 0.1, "well": 0.7}, {"ill": 0.3, "well": 0.9})
    >>> region = Region(np.array(["ill", "well"]), np.array([0.5, 0.5]), mean, draws, box)
    >>> for_population(SetGoal(PriorBox(lower={"ill": 0.2})), region)[1]
    ('The box was intersected with the estimated region.',)
    """
    if isinstance(goal, RecallFloors):
        return goal, (RECALLS_NOTE,)
    if isinstance(goal, PrecisionFloors):
        goal = Floors(precision=goal.floors, confidence=goal.confidence, abstain=goal.abstain)
    if isinstance(goal, Floors):
        return _floors(goal)
    if not isinstance(goal, SetGoal):
        return goal, ()
    if isinstance(goal.uncertainty, PriorBox):
        return _within_box(goal.uncertainty, region)
    if isinstance(goal.uncertainty, PriorBall):
        return _within_ball(goal.uncertainty, region)
    return goal, ()


def _floors(goal: Floors) -> tuple[Goal, tuple[str, ...]]:
    """Floors of recalls alone hold under any frequencies; others have no confidence any more."""
    if goal.precision is None and goal.false_positive_rate is None:
        if goal.confidence is not None:
            goal = RecallFloors(goal.recall, goal.confidence)
        return goal, (RECALLS_NOTE,)
    if goal.confidence is not None:
        raise InvalidInputError(
            "Floors of precisions and false-positive rates cannot have a confidence at estimated "
            f"class frequencies, got confidence={goal.confidence:.6g}: the frequencies are known "
            "with an error. Leave the confidence out, or set floors of recalls alone."
        )
    return goal, (RATES_NOTE,)


def _within_box(box: PriorBox, region: Region) -> tuple[Goal, tuple[str, ...]]:
    """The frequencies that both a box and the estimate allow."""
    classes = region.classes
    low, high = (
        check_numbers(free if each is None else each, classes, name=name, default=free)
        for each, name, free in ((box.lower, "lower", 0.0), (box.upper, "upper", 1.0))
    )
    low = np.maximum(low, check_numbers(region.box.lower, classes, name="lower"))
    high = np.minimum(high, check_numbers(region.box.upper, classes, name="upper"))
    if np.any(low > high) or low.sum() > 1 or high.sum() < 1:
        return _nothing_left(region, "PriorBox")
    return SetGoal(PriorBox(low, high)), ("The box was intersected with the estimated region.",)


def _within_ball(ball: PriorBall, region: Region) -> tuple[Goal, tuple[str, ...]]:
    """The hull of draws of the frequencies inside a ball."""
    masses = ball.resolve(region.prior, region.classes)
    inner = [s for s in region.draws if np.abs(masses.project(s) - s).max() < np.sqrt(ROUNDING)]
    if not inner:
        return _nothing_left(region, "PriorBall")
    hull = WeightHull([sample / region.mean for sample in inner[:MOST_CORNERS]])
    return SetGoal(hull), ("The ball was intersected with draws of the frequencies.",)


def _nothing_left(region: Region, name: str) -> tuple[Goal, tuple[str, ...]]:
    note = (
        f"The {name} of the goal and the estimated region have nothing in common: the frequencies "
        "are not those that were expected, and decisions are for the estimated region."
    )
    return SetGoal(region.box), (note,)


def note_of_sets(error: RiskInterval | None) -> str:
    """What becomes of the coverage of sets whose labels are missed with this error.

    None is for sets that class frequencies do not change.
    """
    if error is None:
        return (
            "The sets and their coverage do not depend on class frequencies, as long as rows of a "
            "class look as before."
        )
    return (
        f"The sets were recomputed for the estimated class frequencies: on the calibration rows "
        f"they hold the label of {share_text(1 - error.estimate)} of the new population, "
        f"{share_text(1 - error.upper)} to {share_text(1 - error.lower)} over the interval of the "
        "frequencies."
    )
