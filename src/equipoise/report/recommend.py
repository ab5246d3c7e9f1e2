"""Which choice to take when nobody can say which weights are right, and why, in plain words.

The choice whose largest regret over the sets of weightings is the smallest, or the plainest of
those that come within half a percentage point of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.arrays import Matrix, Vector
from equipoise.report.choices import Choice
from equipoise.report.judge import Verdict, regrets_of
from equipoise.report.words import called, percent, points

# Regrets that differ by less are called the same.
SAME = 0.005


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The choice and what speaks for it.

    Attributes
    ----------
    place : int
        Place of the choice.
    plain : int
        Place of the choice that errs least over all rows, to compare with.
    largest_regrets : ndarray of shape (n_choices,)
        The most that each choice costs beyond the best one, over the sets of weightings.
    stability : float
        Share of resamplings of the judged rows that recommend the same.
    rivals : tuple of int
        Choices that other resamplings recommend, the most frequent first.
    """

    place: int
    plain: int
    largest_regrets: Vector
    stability: float
    rivals: tuple[int, ...]


def recommend(costs: Matrix, resampled: Matrix) -> Recommendation:
    """The choice for these costs, and how often resampled costs say the same."""
    largest = regrets_of(costs).max(axis=1)
    place = _plainest(largest)
    others = np.array([_plainest(each) for each in regrets_of(resampled).max(axis=2)])
    times = np.bincount(others, minlength=len(costs))
    rivals = [int(other) for other in np.argsort(-times, kind="stable") if times[other]]
    return Recommendation(
        place=place,
        plain=int(costs[:, 0].argmin()),
        largest_regrets=largest,
        stability=float(times[place] / len(others)),
        rivals=tuple(other for other in rivals if other != place),
    )


def _plainest(largest: Vector) -> int:
    """The first choice, they are sorted from plain to elaborate, that is as good as the best."""
    return int(np.flatnonzero(largest <= largest.min() + SAME)[0])


def reasons(
    found: Recommendation,
    choices: Sequence[Choice],
    verdicts: Sequence[Verdict],
    costs: Matrix,
    worlds: Sequence[str],
) -> list[str]:
    """Why this choice, in sentences."""
    place, plain = found.place, found.plain
    mine = found.largest_regrets[place]
    name = called(choices[place].label)
    said = [
        f"Nobody can tell which weights are right. Under every one of the {len(worlds)} weightings "
        f"compared, {name} costs at most {points(mine)} more than the best choice there."
        if mine > 0
        else f"{name} is the best choice under every one of the {len(worlds)} weightings compared."
    ]
    if place != plain:
        world = int(regrets_of(costs)[plain].argmax())
        said.append(
            f"{called(choices[plain].label)} makes the fewest errors overall, but costs up to "
            f"{points(found.largest_regrets[plain])} more than the best choice (under "
            f"{called(worlds[world])})."
        )
        said.append(_worst_class(verdicts[plain], verdicts[place]))
    return said


def _worst_class(before: Verdict, after: Verdict) -> str:
    name = before.risks.worst_class()
    said = (
        f"Of the class it fails most, {called(name)}, it gets {percent(before.risks[name])} wrong; "
        f"the recommended choice {percent(after.risks[name])}"
    )
    other = after.risks.worst_class()
    if other == name:
        return f"{said}."
    return f"{said}, and {percent(after.risks.worst())} of its own worst class, {called(other)}."


def price(
    found: Recommendation, choices: Sequence[Choice], verdicts: Sequence[Verdict]
) -> list[str]:
    """What the choice costs, in sentences."""
    place, plain = found.place, found.plain
    if place == plain:
        return ["No other choice makes fewer errors overall: there is nothing to pay."]
    before, after = verdicts[plain].risks, verdicts[place].risks
    said = [
        f"Over all rows it errs on {percent(after.standard())} instead of "
        f"{percent(before.standard())}: {points(after.standard() - before.standard())} more than "
        f"{called(choices[plain].label)}."
    ]
    rises = {name: after[name] - before[name] for name in after}
    loser = max(rises, key=rises.__getitem__)
    if rises[loser] > 0:
        said.append(
            f"The class that pays most is {called(loser)}: {percent(after[loser])} wrong instead "
            f"of {percent(before[loser])}."
        )
    return said
