r"""The two contracts of a goal: what decision weights are for.

A *recipe* (:class:`Goal`) holds hyper-parameters only. Given the class frequencies and names it
*resolves* to a numerical :class:`Criterion`, which is all that the search for weights needs, or
which knows the best decisions without any search.

Conventions
-----------
Decision weights :math:`w > 0` give a row the class :math:`\arg\max_i w_i \eta_i(x)`. Of ways to
decide the same rows, one a line, ``hits`` is the weight of right decisions and ``decided`` that of
all decisions by class, both of shape ``(n_ways, n_classes)``; ``totals`` is the weight of the
classes, of shape ``(n_classes,)``. ``prior`` holds the class frequencies of the population,
``shares`` those of the rows that the probabilities were learnt from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from equipoise.arrays import ArrayLike, Indices, Mask, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import MassSet

# Of two ways that are equally good the one with fewer errors is taken.
TIE_BREAK = 1e-7
# Values that differ by less are equal but for the rounding of sums.
ROUNDING = 1e-12


class Criterion(ABC):
    """What the search for decision weights goes by; smaller values are better.

    Examples
    --------
    >>> from equipoise.goals import as_goal
    >>> criterion = as_goal("balanced_accuracy").resolve([0.8, 0.2])
    >>> hits, totals = np.array([[8.0, 1.0], [6.0, 2.0]]), np.array([8.0, 2.0])
    >>> criterion.values(hits, None, totals), criterion.lowest(hits, None, totals)[0]
    (array([0.25 , 0.125]), 1)
    """

    # Whether the values depend on all decisions, and not on the right ones alone.
    needs_decided: bool = False
    # The set whose worst case the value is: weights can then be improved all at once, and averaged.
    masses: MassSet | None = None
    # Class frequencies that the value counts rows by, where class risks alone do not tell it: the
    # best weights of two classes then are not drawn towards balanced ones.
    counted_by: Vector | None = None
    # Where the best decisions are likely to lie, from those as trained (0) to balanced ones (1), if
    # that can be guessed.
    lean: float | None = None
    # The probability of what is promised about new rows, if anything is.
    confidence: float | None = None
    # What the value is reported as; a metric is one minus it.
    measures: ClassVar[Literal["risk", "metric"] | None] = None

    @abstractmethod
    def values(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> Vector:
        """The value of each way to decide; ``decided`` is None unless ``needs_decided``."""

    def lowest(self, hits: Matrix, decided: Matrix | None, totals: Vector) -> tuple[int, float]:
        """The best way, and its value with a trace of its errors to break ties."""
        values = self.values(hits, decided, totals) + TIE_BREAK * mean_risks(hits, totals)
        best = first_lowest(values)
        return best, float(values[best])

    def of_table(self, table: Matrix) -> float:
        """The value of a table of weights by true class (first) and decision (second).

        Decisions for classes that are not judged come last, and are errors.
        """
        k = len(table)
        hits, decided = np.diag(table[:, :k]), table[:, :k].sum(axis=0)
        return float(self.values(hits[None], decided[None], table.sum(axis=1))[0])

    def known(self, shares: Vector) -> Vector | Matrix:
        """Decision weights that need no search, or a matrix of costs where it says more."""
        raise TypeError(f"{type(self).__name__} has no known weights: they must be searched for.")

    def allowed_errors(self, counts: Indices) -> Indices:
        """The most errors of each class, of so many rows; an error if none would be too many."""
        return counts

    def certified(
        self, leads: list[tuple[Matrix, Vector]], shares: Vector, seed: int
    ) -> tuple[Criterion, Matrix]:
        """What to search for, and the least gaps between log-weights, to keep a confidence."""
        raise TypeError(f"{type(self).__name__} promises nothing with a confidence.")

    def limited(self, caps: Vector) -> Criterion:
        """The same where no class carries more mass than its cap, if that can be said."""
        return self

    def short(self, table: Matrix) -> float:
        """By how many standard errors decisions miss what they must keep, if anything."""
        return 0.0

    def free(self) -> Criterion:
        """The same without anything to keep."""
        return self

    def instead(self, risks: Vector) -> Criterion | None:
        """What to search for if class risks as found will not do; None if they will."""
        return None


def first_lowest(values: Vector) -> int:
    """The first of the lowest values, those that differ by rounding alone taken for equal."""
    return int(np.argmax(values <= values.min() + ROUNDING))


def mean_risks(hits: Matrix, totals: Vector) -> Vector:
    """Mean of the class risks of each way to decide."""
    return np.asarray(1 - hits @ (1 / totals) / len(totals))


def prior_among(prior: Vector, classes: NDArray[Any], some: Mask) -> Vector:
    """Frequencies among some of the classes."""
    if not prior[some].sum() > 0:
        raise InvalidParameterError(
            "class_prior must be positive for a class whose weight can be tuned, got "
            f"{prior[some].tolist()} for {classes[some].tolist()}."
        )
    return np.asarray(prior[some] / prior[some].sum())


class Goal(BaseEstimator, ABC):  # type: ignore[misc]
    """A recipe for what decisions are for: hyper-parameters only, so that ``clone`` works.

    A goal of your own is a class with ``resolve`` and ``examples``, and a line
    ``GOALS.register(MyGoal)``.

    Examples
    --------
    >>> class Median(Criterion):
    ...     def values(self, hits, decided, totals):
    ...         return np.median(1 - hits / totals, axis=1)
    >>> class MedianRisk(Goal):
    ...     def resolve(self, prior, classes=None):
    ...         return Median()
    ...
    ...     @classmethod
    ...     def examples(cls):
    ...         return [cls()]
    >>> from equipoise import tune_weights
    >>> tune_weights([0] * 9 + [1] * 6, [0.1] * 9 + [0.6] * 6, MedianRisk()).class_risks
    0: 0
    1: 0
    """

    # The probability with which the goal shall be met on new rows: a promise about one model.
    confidence: float | None = None
    # Whether weights may be drawn towards balanced ones without missing the goal.
    may_shrink: ClassVar[bool] = True

    @property
    def is_known(self) -> bool:
        """Whether the best decisions are known, so that nothing is tuned."""
        return False

    @abstractmethod
    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Criterion:
        """The criterion for these class frequencies (and names, ``0..k-1`` when not given)."""

    def resolve_some(self, prior: Vector, classes: NDArray[Any], few: Mask) -> Criterion:
        """The criterion among the classes that have rows enough, as if there were no others."""
        return self.resolve(prior_among(prior, classes, ~few), classes[~few])

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few recipes that resolve for any classes."""
