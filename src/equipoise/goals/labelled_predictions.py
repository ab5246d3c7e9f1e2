r"""Probabilities of rows, and the classes that decision weights or costs predict for them.

Conventions
-----------
``probabilities`` : float64, shape ``(n_rows, n_classes)``, columns in class order; or sparse rows,
    of which each holds the most probable classes (:mod:`equipoise.goals.sparse_rows`).
``labels`` : class index of every row.
``weights`` : decision weights :math:`w \geq 0`, one per class; only their ratios matter. The
    prediction is :math:`\arg\max_i w_i \eta_i(x)`, the first class in a tie.
``costs`` : by true class (first) and predicted class (second); the prediction is
    :math:`\arg\min_j \sum_i \eta_i(x) c_{ij}`, the first class in a tie.
``rule`` : decision weights or costs. One more weight than classes is that of abstaining, as of a
    last column of probabilities that are always 1: where it exceeds all weighted probabilities, the
    row has no class, and the decision is ``n_classes``. Costs may have a column of abstaining too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from equipoise.arrays import ROUNDING, Indices, Mask, Matrix, NDArray, Vector
from equipoise.goals import sparse_rows
from equipoise.goals.sparse_rows import Table

# BLOCK_VALUES: values that are converted or multiplied at a time, 2 MiB of float64, so that they
# stay in a processor's cache.
BLOCK_VALUES = 1 << 18
# DENSE_CELLS: cells of a confusion table, 128 MiB of float64, beyond which it is sparse: of more
# than 4,096 classes most pairs are never seen.
DENSE_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities of labelled rows, on which decision weights are tuned or evaluated.

    Examples
    --------
    >>> rows = Predictions(np.array([[0.8, 0.2], [0.6, 0.4]]), np.array([0, 1]), np.ones(2))
    >>> rows.confusion(np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 1.]])
    """

    probabilities: Table
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
        """Share of each class in the weight of the rows."""
        return np.asarray(self.totals / self.totals.sum())

    def confusion(self, rule: Vector | Matrix) -> Table:
        """Weight of rows by true class (first) and decision (second)."""
        predicted = decide(self.probabilities, rule)
        shape = self.n_classes, rule.shape[-1]
        return confusion_table(self.labels, predicted, self.sample_weight, *shape)

    def take(self, rows: Indices) -> Predictions:
        """Some of the rows."""
        return Predictions(self.probabilities[rows], self.labels[rows], self.sample_weight[rows])

    def among(self, some: Mask) -> Predictions:
        """The rows of some classes, as if there were no others."""
        if some.all():
            return self
        rows, classes = np.flatnonzero(some[self.labels]), np.flatnonzero(some)
        labels = np.searchsorted(classes, self.labels[rows])
        if issparse(self.probabilities):
            held = sparse_rows.among(self.probabilities, rows, some)
            return Predictions(held, labels, self.sample_weight[rows])
        probabilities = self.probabilities[np.ix_(rows, classes)]
        # A row that only other classes are possible for has no preference among these.
        probabilities[~probabilities.any(axis=1)] = 1 / len(classes)
        return Predictions(probabilities, labels, self.sample_weight[rows])


def confusion_table(
    labels: Indices, predicted: Indices, weights: Vector, k: int, n_decisions: int | None = None
) -> Table:
    """Weight of rows by true class (first) and decision (second), by default the classes."""
    m = k if n_decisions is None else n_decisions
    if k * m > DENSE_CELLS:
        return csr_array((weights, (labels, predicted)), shape=(k, m))
    counts = np.bincount(labels * m + predicted, weights=weights, minlength=k * m)
    return np.asarray(counts, dtype=np.float64).reshape(k, m)


def first_of_equal(rule: Vector) -> Vector:
    """Decision weights by which the first of classes wins whose products differ by rounding."""
    return np.asarray(rule * (1 - ROUNDING * np.arange(len(rule))))


def decide(probabilities: Table, rule: Vector | Matrix) -> Indices:
    """Class indices predicted by decision weights, or by a matrix of costs.

    Weighted probabilities that differ by rounding alone are equal, as votes of trees often are: the
    first class is taken, however the products were rounded.

    Examples
    --------
    >>> table = np.array([[0.5, 0.3, 0.2]])
    >>> decide(table, np.array([1.0, 1, 3])), decide(table, np.array([[0, 1, 9]] * 3))
    (array([2]), array([0]))

    One more weight is that of abstaining:

    >>> decide(table, np.array([1.0, 1, 3, 0.7]))
    array([3])
    """
    if rule.ndim == 2:
        n, k = probabilities.shape
        step = max(1, sparse_rows.MOST_CELLS // k)
        parts = [probabilities[i : i + step] for i in range(0, n, step)] or [probabilities]
        best = [np.argmax(scores(part, rule), axis=1) for part in parts]
        return np.asarray(np.concatenate(best), dtype=np.intp)
    probabilities, rule = _with_abstaining(probabilities, rule), first_of_equal(rule)
    if issparse(probabilities):
        weighted = probabilities.data * rule[probabilities.indices]
        return sparse_rows.row_argmax(sparse_rows.with_values(probabilities, weighted))
    if probabilities.shape[1] == 2:
        second = probabilities[:, 1] * rule[1] > probabilities[:, 0] * rule[0]
        return np.asarray(second, dtype=np.intp)
    out = np.empty(len(probabilities), dtype=np.intp)
    step = max(1, BLOCK_VALUES // probabilities.shape[1])
    for start in range(0, len(out), step):
        block = slice(start, start + step)
        np.argmax(probabilities[block] * rule, axis=1, out=out[block])
    return out


def _with_abstaining(probabilities: Table, rule: Vector) -> Table:
    """Probabilities with a last column of ones where a rule has a weight of abstaining."""
    if len(rule) == probabilities.shape[1]:
        return probabilities
    ones = np.ones((probabilities.shape[0], 1))
    if issparse(probabilities):
        return hstack([probabilities, csr_array(ones)], format="csr")
    return np.hstack([probabilities, ones])


def abstaining_costs(weights: Vector, factors: Vector) -> Matrix:
    r"""Costs that decide as weights do after probabilities were rescaled by factors.

    Rescaled probabilities are :math:`f_i \eta_i / \sum_j f_j \eta_j`: of the rows before, the
    weight of abstaining has no constant column, but the sum.

    Examples
    --------
    >>> table, factors = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([0.5, 2.0])
    >>> moved = table * factors / (table @ factors)[:, None]
    >>> weights = np.array([1.0, 1.0, 0.7])
    >>> decide(moved, weights), decide(table, abstaining_costs(weights, factors))
    (array([2, 1]), array([2, 1]))
    """
    of_classes, of_abstaining = weights[:-1], weights[-1]
    costs = of_classes[:, None] * (1 - np.eye(len(of_classes)))
    costs = np.column_stack([costs, of_classes - of_abstaining])
    return np.asarray(costs * factors[:, None])


def most_probable(probabilities: Table) -> Indices:
    """The most probable class of every row, the first of several."""
    if issparse(probabilities):
        return sparse_rows.row_argmax(probabilities)
    return np.asarray(np.argmax(probabilities, axis=1), dtype=np.intp)


def scores(probabilities: Table, rule: Vector | Matrix) -> NDArray[np.float64]:
    """Scores of the decisions: the one with the largest score of a row is taken.

    For two classes and two weights it is one number a row, positive for the second class.
    """
    probabilities = sparse_rows.dense(probabilities)
    if rule.ndim == 1:
        weighted = _with_abstaining(probabilities, rule) * first_of_equal(rule)
        return np.asarray(weighted if len(rule) > 2 else weighted[:, 1] - weighted[:, 0])
    shape = len(probabilities), rule.shape[1]
    negative_costs: NDArray[np.float64] = np.zeros(shape, dtype=probabilities.dtype)
    # Class by class and not as one product, whose rounding depends on the number of rows.
    for column, prices in zip(probabilities.T, rule, strict=True):
        negative_costs -= column[:, None] * prices
    return negative_costs
