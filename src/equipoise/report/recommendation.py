"""Which candidate is recommended, by what each costs under every goal.

It is the plainest one whose largest regret over the goals is within one standard error of the
smallest: see :func:`equipoise.decisions.select`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Mask, NDArray, Vector
from equipoise.decisions import select


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The candidate to take, and what speaks for it; candidates are numbered.

    ``plain`` is the candidate that errs least over all rows, ``largest_regrets`` the most that
    each costs beyond the best one, ``rivals`` the others within one standard error. ``best_plain``
    is the plain model that would be taken if there were no others.
    """

    place: int
    plain: int
    best_plain: int
    largest_regrets: Vector
    rivals: tuple[int, ...]

    @classmethod
    def among(
        cls, costs: Any, without: NDArray[np.float64], standard: Vector, *, allowed: Mask,
        plain: Mask,
    ) -> "Recommendation":  # fmt: skip
        """The candidate for these costs, and for those with each group of rows left out.

        The latter are of shape (n_groups, n_candidates, n_goals).
        """
        largest, again = regrets_of(costs).max(axis=1), regrets_of(without).max(axis=2).T
        chosen = select(largest, again, allowed)
        return cls(
            place=chosen.index,
            plain=int(standard.argmin()),
            best_plain=select(largest, again, plain).index,
            largest_regrets=largest,
            rivals=tuple(other for other in chosen.close if other != chosen.index),
        )


def regrets_of(costs: Any) -> Any:
    """Costs minus the smallest of their column."""
    return costs - costs.min(axis=-2, keepdims=True)
