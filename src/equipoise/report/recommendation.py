"""Which candidate is recommended, by what each costs under every goal.

It is the one whose largest regret over the goals is the smallest. Others may come within a standard
error of it, as far as the rows tell: of these it is the one that comes out best most often when the
rows judged are drawn anew. Where the only goal is the worst case over a set of weightings, which
hangs on a class or two and so on chance, it is the one of those within half a standard error that
errs least over all classes.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, Vector

# Standard errors up to which candidates are as good, and where other classes tell them apart.
CLOSE, TIED = 1.0, 0.5


class Ties(NamedTuple):
    """Mean class risks of the candidates, and those if rows are drawn anew."""

    risks: Vector
    resampled: Matrix


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The place of the candidate to take, and what speaks for it.

    ``plain`` is the candidate that errs least over all rows, ``largest_regrets`` the most that
    each costs beyond the best one, ``stability`` the share of resamplings of the judged rows that
    recommend the same; the others recommend ``rivals``, the most frequent first. ``best_plain`` is
    the plain model that would be taken if there were no others.
    """

    place: int
    plain: int
    best_plain: int
    largest_regrets: Vector
    stability: float
    rivals: tuple[int, ...]

    @classmethod
    def among(
        cls, costs: Matrix, resampled: Matrix, ties: Ties | None, standard: Vector, allowed: Mask,
        plain: Mask,
    ) -> "Recommendation":  # fmt: skip
        """The candidate for these costs, and how often resampled costs say the same."""
        largest, again = regrets_of(costs).max(axis=1), regrets_of(resampled).max(axis=2)
        place, times = _steadiest(largest, again, ties, allowed)
        rivals = [int(other) for other in np.argsort(-times, kind="stable") if times[other]]
        return cls(
            place=place,
            plain=int(standard.argmin()),
            best_plain=_steadiest(largest, again, ties, plain)[0],
            largest_regrets=largest,
            stability=float(times[place] / times.sum()),
            rivals=tuple(other for other in rivals if other != place),
        )


def regrets_of(costs: Any) -> Any:
    """Costs minus the smallest of their column."""
    return costs - costs.min(axis=-2, keepdims=True)


def _steadiest(
    largest: Vector, again: Matrix, ties: Ties | None, allowed: Mask
) -> tuple[int, Indices]:
    """The best of those allowed, and how often each is, if rows are drawn anew.

    Of those that are as good it is the one that errs least over the classes, or, where there are no
    ties to be broken, the one that is best most often; the plainest come first.
    """
    own, drawn = np.where(allowed, largest, np.inf), np.where(allowed, again, np.inf)
    best = int(own.argmin())
    noise = (again - again[:, [best]]).std(axis=0) * (CLOSE if ties is None else TIED)
    close = own <= own[best] + noise + 1e-12
    if ties is None:
        times = np.bincount(np.round(drawn, 12).argmin(axis=1), minlength=len(own))
        return int(np.where(close, times, -1).argmax()), times
    near = drawn <= drawn.min(axis=1, keepdims=True) + noise + 1e-12
    first = np.where(near, np.round(ties.resampled, 12), np.inf).argmin(axis=1)
    place = np.where(close, np.round(ties.risks, 12), np.inf).argmin()
    return int(place), np.bincount(first, minlength=len(own))
