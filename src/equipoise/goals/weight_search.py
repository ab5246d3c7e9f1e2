r"""Searches of log-weights for the least value of what is right and predicted, by class.

.. math:: \min_\theta \; v(\text{right}(\theta), \text{predicted}(\theta)), \qquad
          \text{decision}(x) = \arg\max_i \; \theta_i + \log \eta_i(x)

A last decision, whose log-weight and log-probability are 0, is that of abstaining: the log-weights
of the classes then have a scale, and class ``i`` is predicted for no row whose probability is below
:math:`e^{-\theta_i}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from equipoise.arrays import ROUNDING, Indices, Mask, Matrix, NDArray, Vector
from equipoise.goals.labelled_predictions import Predictions
from equipoise.goals.smooth import FLOOR
from equipoise.goals.sparse_rows import dense

# BEYOND: how far beyond the outermost rows a difference of log-weights is moved, twice: a factor of
# e from the last row on.
BEYOND = 2.0


@dataclass(frozen=True, eq=False)
class Counted:
    """Weights of rows that are right and predicted, by class; any leading axes."""

    right: NDArray[np.float64]
    predicted: NDArray[np.float64]
    totals: Vector

    @property
    def rates(self) -> dict[str, NDArray[np.float64]]:
        """Recalls, precisions and true-negative rates; 1 where no row counts."""
        others = self.totals.sum() - self.totals
        pairs = {
            "recall": (self.right, np.broadcast_to(self.totals, self.right.shape)),
            "precision": (self.right, self.predicted),
            "true-negative rate": (others - self.predicted + self.right, others),
        }
        return {name: _ratio(*pair) for name, pair in pairs.items()}


# Values that are to be the least, over leading axes; the last axis is the classes, or is summed up.
Value = Callable[[Counted], NDArray[np.float64]]


def _ratio(some: Any, every: Any) -> NDArray[np.float64]:
    every = np.broadcast_to(every, np.shape(some))
    ratios = np.divide(some, every, out=np.ones(np.shape(some)), where=every > ROUNDING)
    return np.asarray(ratios)


@dataclass(frozen=True, eq=False)
class SearchedRows:
    """Log-probabilities of the decisions, and labels and shares of the weight of labelled rows.

    Examples
    --------
    >>> eta = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    >>> rows = SearchedRows.of(Predictions(eta, np.array([0, 1, 1]), np.ones(3)), abstain=False)
    >>> def error(counted):
    ...     return 1 - counted.right.sum(axis=-1)
    >>> value, move = rows.least_along(np.zeros(2), 1, error)
    >>> value, bool(0.6 / 0.4 < np.exp(move) < 0.9 / 0.1)
    (0.0, True)
    """

    logs: Matrix
    labels: Indices
    shares: Vector
    n_classes: int

    @classmethod
    def of(cls, rows: Predictions, *, abstain: bool) -> SearchedRows:
        """The rows of predictions, with a decision more if they may be abstained from.

        A class that is impossible for a row cannot claim it from abstaining, by any weight.
        """
        table = dense(rows.probabilities)
        if abstain:
            with np.errstate(divide="ignore"):
                logs = np.column_stack([np.log(table), np.zeros(len(table))])
        else:
            logs = np.log(np.maximum(table, FLOOR))
        shares = rows.sample_weight / rows.sample_weight.sum()
        return cls(logs, rows.labels, shares, rows.n_classes)

    def least_along(self, theta: Vector, i: int, value: Value) -> tuple[float, float]:
        """The least value as one log-weight moves, and how far to move it."""
        scores, k = self.logs + theta, self.n_classes
        others = scores.copy()
        others[:, i] = -np.inf
        rival = np.argmax(others, axis=1)
        gaps = others[np.arange(len(rival)), rival] - scores[:, i]
        order = np.argsort(gaps, kind="stable")
        gaps, rival, shares = gaps[order], rival[order], self.shares[order]
        labels, bounded = self.labels[order], _bounded(gaps)
        # Row after row leaves its rival for class i.
        leave = np.zeros((len(gaps) + 1, scores.shape[1]))
        leave[np.arange(1, len(leave)), rival] = shares
        lost = leave * np.append(False, labels == rival)[:, None]
        predicted = leave.sum(axis=0) - np.cumsum(leave, axis=0)
        right = lost.sum(axis=0) - np.cumsum(lost, axis=0)
        predicted[1:, i] = np.cumsum(shares)
        right[1:, i] = np.cumsum(shares * (labels == i))
        predicted[0, i] = right[0, i] = 0.0
        values = value(Counted(right[:, :k], predicted[:, :k], _totals(labels, shares, k)))
        values[_within_ties(bounded)] = np.inf
        values[1:][gaps == np.inf] = np.inf
        values[:-1][gaps == -np.inf] = np.inf
        at = int(np.argmin(values))
        return float(values[at]), float(_cuts(bounded)[at])

    def without_abstaining(self, theta: Vector) -> Vector:
        r"""Log-weights of classes, raised just so far that no row is abstained from.

        Some weighted probability reaches 1 for all probabilities that sum to 1 if
        :math:`\sum_i e^{-\theta_i} \leq 1`.
        """
        best = (self.logs[:, :-1] + theta).max(axis=1)
        lowest = best.min(where=best > -np.inf, initial=np.inf)
        return np.append(theta + max(float(logsumexp(-theta)), -float(lowest)), 0.0)

    def least_pair(self, by_class: Value) -> Vector:
        """The best log-weights of two classes whose rows may be abstained from.

        In the order of the log-odds of the second class, the first class claims the rows up to a
        cut, and the second those from a later one: the value is a sum of a function of each, and
        the least sum for each later cut is that of the least before. Of equal values it is the one
        that abstains from the fewest rows.
        """
        gaps = self.logs[:, 1] - self.logs[:, 0]
        order = np.argsort(gaps, kind="stable")
        gaps, labels, shares = _bounded(gaps[order]), self.labels[order], self.shares[order]
        right = np.zeros((len(gaps) + 1, 2))
        right[1:] = np.cumsum(shares[:, None] * (labels[:, None] == [0, 1]), axis=0)
        predicted = np.zeros_like(right)
        predicted[1:] = np.cumsum(shares)[:, None]
        # The second class claims what comes from a row on.
        right[:, 1] = right[-1, 1] - right[:, 1]
        predicted[:, 1] = predicted[-1, 1] - predicted[:, 1]
        values = by_class(Counted(right, predicted, _totals(labels, shares, 2)))
        values[_within_ties(gaps)] = np.inf
        impossible = self.logs[order, :2] == -np.inf
        values[1:, 0][impossible[:, 0]] = np.inf
        values[:-1, 1][impossible[:, 1]] = np.inf
        first, second = values.T
        least, places = np.minimum.accumulate(first), np.arange(len(first))
        last = np.maximum.accumulate(np.where(first <= least + ROUNDING, places, 0))
        sums = least + second
        between = np.where(sums <= sums.min() + ROUNDING, places - last, len(places))
        at = int(np.argmin(between))
        cuts = _cuts(gaps)[[last[at], at]]
        # The probability of the first class at its cut is 1 / (1 + exp(cut)).
        return np.array([*np.logaddexp(0, [cuts[0], -cuts[1]]), 0.0])


def _totals(labels: Indices, shares: Vector, k: int) -> Vector:
    return np.asarray(np.bincount(labels, shares, minlength=k), dtype=np.float64)


def _bounded(gaps: Vector) -> Vector:
    """Infinite gaps, of rows that a class can never claim or lose, beyond all others."""
    finite = gaps[np.isfinite(gaps)]
    low, high = finite.min(initial=0.0), finite.max(initial=0.0)
    return np.asarray(np.clip(gaps, low - BEYOND, high + BEYOND))


def _within_ties(gaps: Vector) -> Mask:
    """Which numbers of first rows part rows of the same gap, which move together."""
    return np.concatenate([[False], gaps[1:] - gaps[:-1] <= ROUNDING, [False]])


def _cuts(gaps: Vector) -> Vector:
    """Where to part the first rows from the others, for each number of first rows."""
    ends = np.concatenate([[gaps[0] - BEYOND], gaps, [gaps[-1] + BEYOND]])
    return np.asarray((ends[:-1] + ends[1:]) / 2)
