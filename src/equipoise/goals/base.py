r"""The two contracts of a goal: what decision weights are for.

A *recipe* (:class:`Goal`) holds hyper-parameters only. Given the class frequencies and names it
*resolves* to a numerical :class:`Criterion`, which evaluates confusion tables and finds the
decision rule that serves it best.

Conventions
-----------
A ``table`` holds the weight of rows by true class (first) and predicted class (second). ``prior``
holds the class frequencies of the population, ``recalls`` the share of each class that is predicted
right, ``shares`` those of the population that are predicted as each class. All of these are of
classes that are evaluated; columns of other classes come last in a table, and are errors. Of very
many classes a table is a sparse array, which has ``sum``, ``diagonal`` and products like a matrix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from equipoise.arrays import ArrayLike, Indices, Mask, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.goals.labelled_predictions import Predictions
from equipoise.goals.smooth import Rows, Soft, smooth_logs, soft_of_rates
from equipoise.goals.sparse_rows import Table
from equipoise.weights.priors import weights_of

# FURTHEST: the largest difference of log-weights; further apart, the smaller weight is 0.
FURTHEST = 600.0


class Criterion(ABC):
    """What decisions are for, once the classes are known; smaller values are better."""

    # What the value is reported as: a robust risk, a metric (one minus the value), or neither.
    measures: ClassVar[Literal["risk", "metric", "other"]] = "other"

    @abstractmethod
    def value(self, table: Any) -> float:
        """The value of a table of weights by true class (first) and predicted class (second)."""

    @abstractmethod
    def tune(
        self, rows: Predictions, parts: Sequence[Mask], *, pooling: float, seed: int
    ) -> list[Vector]:
        """The decision weights that are the best for some parts of the rows, one after another."""

    def check_counts(self, counts: Indices) -> None:
        """Refuse numbers of rows that can never show that the goal is met; by default none."""
        return


class SoftCriterion(Criterion):
    """A function of soft predictions, whose weights are found by gradients."""

    prior: Vector

    @property
    def centre(self) -> Vector:
        """Log-weights towards which those of small classes are shrunk: balanced ones."""
        return log_ratio(np.ones(len(self.prior)), self.prior)

    @abstractmethod
    def soft(self, table: Table, rows: Rows) -> Soft:
        """The value of soft predictions and its gradient, by factors of the classes."""

    def tune(
        self, rows: Predictions, parts: Sequence[Mask], *, pooling: float, seed: int
    ) -> list[Vector]:
        options: dict[str, Any] = {"centre": self.centre, "prior": self.prior, "pooling": pooling}
        return [from_logs(logs) for logs in smooth_logs(rows, parts, self.soft, **options)]


class SmoothCriterion(SoftCriterion):
    """A function of the recalls and the predicted shares, whose weights are found by gradients.

    Examples
    --------
    >>> from equipoise.goals import as_goal
    >>> criterion = as_goal("balanced_accuracy").resolve([0.8, 0.2])
    >>> criterion.value(np.array([[8.0, 0.0], [1.0, 1.0]]))
    0.25
    """

    @abstractmethod
    def of_rates(self, recalls: Vector, shares: Vector) -> float:
        """The value, from the recalls and the shares of the population predicted as each class."""

    def smooth(self, recalls: Vector, shares: Vector) -> tuple[float, Vector, Vector]:
        """The value, made smooth if need be, and its derivatives by the recalls and the shares."""
        point = np.concatenate([recalls, shares])
        # Central differences are the most exact at the cube root of the rounding error.
        step = float(np.cbrt(np.finfo(np.float64).eps))
        steps = step * np.eye(len(point))
        ends = [[self.of_rates(*np.split(p, 2)) for p in (point + s, point - s)] for s in steps]
        derivatives = np.array([up - down for up, down in ends]) / (2 * step)
        by_recall, by_share = np.split(derivatives, 2)
        return self.of_rates(recalls, shares), by_recall, by_share

    def soft(self, table: Table, rows: Rows) -> Soft:
        return soft_of_rates(table, rows, self.smooth)

    def value(self, table: Any) -> float:
        totals = table.sum(axis=1)
        shares = (self.prior / totals) @ table
        return float(self.of_rates(table.diagonal() / totals, shares[: len(totals)]))


class KnownRule(Criterion):
    """A criterion whose best decisions are known without any search."""

    @abstractmethod
    def known(self, shares: Vector) -> Vector | Matrix:
        """Decision weights or costs, for probabilities of rows with these class shares."""

    def tune(
        self, rows: Predictions, parts: Sequence[Mask], *, pooling: float, seed: int
    ) -> list[Vector]:
        return [self.known(rows.prior) for _ in parts]


def log_ratio(masses: Vector, prior: Vector) -> Vector:
    """Logarithms of weights by which classes of these frequencies have these masses.

    A class that the population lacks has the weight one.
    """
    ratios = np.where(prior > 0, weights_of(masses, prior), 1.0)
    return np.asarray(np.maximum(np.log(np.maximum(ratios, np.finfo(float).tiny)), -FURTHEST))


def from_logs(theta: Vector) -> Vector:
    """Decision weights that sum to one, from their logarithms."""
    weights = np.exp(np.maximum(theta - theta.max(), -FURTHEST))
    return np.asarray(weights / weights.sum())


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
    >>> class MeanSquare(SmoothCriterion):
    ...     def __init__(self, prior):
    ...         self.prior = np.asarray(prior)
    ...
    ...     def of_rates(self, recalls, shares):
    ...         return np.mean((1 - recalls) ** 2)
    >>> class MeanSquareRisk(Goal):
    ...     def resolve(self, prior, classes=None):
    ...         return MeanSquare(prior)
    ...
    ...     @classmethod
    ...     def examples(cls):
    ...         return [cls()]
    >>> from equipoise import tune_weights
    >>> tune_weights([0] * 9 + [1] * 6, [0.1] * 9 + [0.6] * 6, MeanSquareRisk()).class_risks
    0: 0
    1: 0
    """

    # The probability with which the goal shall be met on new rows: a promise about one model.
    confidence: float | None = None
    # Whether decisions for the goal may leave a row without a class.
    abstain: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the best decisions are known, so that nothing is tuned."""
        return False

    @abstractmethod
    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Criterion:
        """The criterion for these class frequencies (and names, ``0..k-1`` when not given)."""

    def resolve_some(self, prior: Vector, classes: NDArray[Any], few: Mask) -> Criterion:
        """The criterion for the classes that have enough rows, without the others."""
        return self.resolve(prior_among(prior, classes, ~few), classes[~few])

    @classmethod
    @abstractmethod
    def examples(cls) -> list[Self]:
        """A few recipes that resolve for any classes."""
