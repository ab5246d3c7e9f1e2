r"""Probabilities with the labels that came true: what decision weights are judged by.

Conventions
-----------
``probabilities`` : float64, shape ``(n_rows, n_classes)``, columns in class order.
``labels`` : class index of every row.
``weights`` : decision weights :math:`w > 0`, one per class; only their ratios matter. A row gets
    the class :math:`\arg\max_i w_i \eta_i(x)`, the first one in a tie. For two classes this is
    :math:`\eta_1 > w_0 / (w_0 + w_1)`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector

_BLOCK = 1 << 12
# How far apart log-weights may be.
_FURTHEST = 600.0


def from_logs(theta: Vector) -> Vector:
    """Decision weights that sum to one, from their logarithms."""
    # Further apart, the smallest weight would be no positive number any more.
    weights = np.exp(np.maximum(theta - theta.max(), -_FURTHEST))
    return np.asarray(weights / weights.sum())


def decide(probabilities: Matrix, weights: Vector) -> Indices:
    """Class indices chosen by the decision weights."""
    if probabilities.shape[1] == 2:
        second = probabilities[:, 1] * weights[1] > probabilities[:, 0] * weights[0]
        return np.asarray(second, dtype=np.intp)
    out = np.empty(len(probabilities), dtype=np.intp)
    for start in range(0, len(out), _BLOCK):  # products that stay in the cache
        block = slice(start, start + _BLOCK)
        np.argmax(probabilities[block] * weights, axis=1, out=out[block])
    return out


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows that decision weights can be tuned or judged on; every class has weight in them."""

    probabilities: Matrix
    labels: Indices
    sample_weight: Vector

    @property
    def n_classes(self) -> int:
        return int(self.probabilities.shape[1])

    @cached_property
    def totals(self) -> Vector:
        """Weight of each class."""
        totals = np.bincount(self.labels, weights=self.sample_weight, minlength=self.n_classes)
        return np.asarray(totals, dtype=np.float64)

    @cached_property
    def prior(self) -> Vector:
        """Share of each class in the rows."""
        return np.asarray(self.totals / self.totals.sum())

    @cached_property
    def by_class(self) -> list[Indices]:
        """Rows of each class that have weight."""
        # Of 16 bits, a stable sort takes one pass for each eight.
        short = self.labels.astype(np.uint16) if self.n_classes < 1 << 16 else self.labels
        order = np.argsort(short, kind="stable")
        order = order[self.sample_weight[order] > 0]
        counts = np.bincount(self.labels[order], minlength=self.n_classes)
        return np.split(order, np.cumsum(counts)[:-1])

    def confusion(self, weights: Vector) -> Matrix:
        """Weight of rows by true class (first) and decision (second)."""
        k = self.n_classes
        cells = self.labels * k + decide(self.probabilities, weights)
        counts = np.bincount(cells, weights=self.sample_weight, minlength=k * k)
        return np.asarray(counts, dtype=np.float64).reshape(k, k)

    def class_risks(self, weights: Vector) -> Vector:
        """Share of wrong decisions in each class."""
        return np.asarray(1 - np.diag(self.confusion(weights)) / self.totals)

    def take(self, rows: Indices) -> "Evidence":
        """Some of the rows."""
        return Evidence(self.probabilities[rows], self.labels[rows], self.sample_weight[rows])
