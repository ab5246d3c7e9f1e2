r"""Errors by class whose mean is bounded under every mass of a set, from numbers of rows alone.

.. math:: \epsilon_i = \frac{c}{\sqrt{m_i}}, \qquad
          \max_{m' \in M} \langle m', \epsilon \rangle = \alpha

If sets that may miss a share :math:`\epsilon` of a class hold it for :math:`1 / \epsilon` rows, up
to a factor, these errors have the smallest sets where :math:`m` is the mass of the largest
:math:`\sum_i \sqrt{m_i}`; for caps and floors that is the projection of equal masses into the set.
A class that can have little mass may be missed more often. The errors depend on the set, on the
class frequencies and on numbers of rows, so that all rows are left to calibrate on
(``docs/studies/prediction_sets.txt`` compares them with errors tuned on rows of their own).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from equipoise.arrays import ROUNDING, Indices, Vector
from equipoise.sets import MassSet

# FRACTIONS: steps of the factor of all errors, which is known to a thousandth.
FRACTIONS = 1000
# HELD: sets without the share alpha of a class hold it for one of 1 + HELD rows, as a rough guess.
HELD = 9


def levels_within(masses: MassSet, error: float) -> Vector:
    """Errors by class of which the largest mean over the set is ``error``.

    Examples
    --------
    >>> from equipoise import LabelCVaR
    >>> levels_within(LabelCVaR(0.5).resolve([0.9, 0.05, 0.05]), 0.1).round(3)
    array([0.073, 0.207, 0.207])
    """
    k = masses.n_classes
    even = np.asarray(masses.project(np.full(k, 1 / k)))
    # A class that some mass of the set counts is counted, if the projected mass leaves it out.
    even = np.maximum(even, masses.bounds[1] / k)
    shape = 1 / np.sqrt(np.maximum(even, np.finfo(float).tiny))
    return np.minimum(shape * (error / masses.support(shape)), 1.0)


def whole_ranks(levels: Vector, counts: Indices) -> Indices:
    """Order statistics of ``counts`` rows that have at most these errors.

    Examples
    --------
    >>> whole_ranks(np.array([0.1, 0.1]), np.array([9, 25]))
    array([1, 2])
    """
    return np.floor((levels + ROUNDING) * (counts + 1)).astype(np.intp)


def ranks_within(levels: Vector, counts: Indices, masses: MassSet, error: float) -> Indices:
    """Order statistics near these errors whose largest mean error over the set is no larger.

    They are rounded down, or to the nearest after the largest factor of all that the set allows;
    then one after another is raised as far as the set allows, up to its level. To round down is
    better where a class of few rows can have much mass: of the two those are taken whose sets are
    the smaller by the curve ``1 / (1 + HELD * epsilon / alpha)``.

    Examples
    --------
    >>> from equipoise import LabelCVaR
    >>> masses = LabelCVaR(0.5).resolve([0.9, 0.05, 0.05])
    >>> levels = levels_within(masses, 0.1)
    >>> ranks_within(levels, np.array([360, 20, 2]), masses, 0.1)
    array([21,  4,  1])
    """
    known = counts > 0
    exact = np.where(known, levels * (counts + 1), 0.0)
    allowed = Allowed(counts, masses, error + ROUNDING)

    def nearest(step: int) -> Indices:
        ranks = np.floor(step / FRACTIONS * exact + 0.5).astype(np.intp)
        return np.where(known, np.minimum(ranks, counts + 1), 0)

    down = np.where(known, whole_ranks(levels, counts), 0)
    scaled = nearest(allowed.largest(range(2 * FRACTIONS), nearest))
    return min(
        (allowed.raised(scaled, exact), allowed.raised(down, exact)),
        key=lambda ranks: float(np.sum(1 / (1 + HELD * ranks / (counts + 1) / error))),
    )


@dataclass(frozen=True, eq=False)
class Allowed:
    """Order statistics whose largest mean error over a set is no more than a limit."""

    counts: Indices
    masses: MassSet
    limit: float

    def largest(self, steps: range, ranks_at: Callable[[int], Indices]) -> int:
        """The last of the steps whose ranks are allowed; those of the first are."""

        def mean(step: int) -> float:
            return self.masses.support(ranks_at(step) / (self.counts + 1))

        return steps[bisect_right(steps, self.limit, key=mean) - 1]

    def raised(self, ranks: Indices, exact: Vector) -> Indices:
        """Ranks that are raised up to their exact values, that which lost the most first."""
        order = np.argsort((ranks - exact) / (self.counts + 1), kind="stable")
        for i in order[ranks[order] < exact[order]].tolist():
            others = ranks.copy()
            others[i] = 0
            alone = (np.arange(len(ranks)) == i).astype(np.intp)
            steps = range(int(ranks[i]), int(np.ceil(exact[i])) + 1)
            ranks = others + alone * self.largest(steps, partial(_one_of, others, alone))
        return ranks


def _one_of(others: Indices, alone: Indices, rank: int) -> Indices:
    return others + alone * rank
