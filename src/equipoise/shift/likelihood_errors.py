r"""How far likelihoods of classes are from right, by held-out rows of known class.

The scores

.. math:: s_j(x) = L_j(x) / \sum_i \pi_i L_i(x)

of rows with the class frequencies :math:`\pi` have a mean of one for every class if the likelihoods
are right, and those of held-out rows, mixed as the frequencies say, have the mean

.. math:: \bar s_j = \sum_i \pi_i \bar s_{ij}

with the means :math:`\bar s_{ij}` over the rows of class :math:`i`. Calibrated probabilities are
right on average at the frequencies of the held-out rows, and need not be elsewhere: factors of the
likelihoods make them so where the new rows are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.shift.new_rows import NewRows

# MATCHING_STEPS, MATCHED: of the iteration, and the change of frequencies that ends it.
MATCHING_STEPS, MATCHED = 200, 1e-4


def scores(table: Matrix, pi: Vector) -> Matrix:
    """Likelihoods of the classes relative to that of the mixture."""
    return np.asarray(table / (table @ pi)[:, None])


class MeanScores(NamedTuple):
    """Mean scores of the mixture of held-out rows, by class, and their sampling covariance."""

    mean: Vector
    covariance: Matrix


class LabelledLikelihoods(NamedTuple):
    """Likelihoods of the classes for held-out rows, and their class indices.

    Every class counts one further row, whose scores are one: it says nothing of the frequencies,
    and keeps mean scores off zero where no held-out row looks like the class.
    """

    table: Matrix
    labels: Indices

    @property
    def row_counts(self) -> Indices:
        """Rows of each class, with the further one."""
        return np.bincount(self.labels, minlength=self.table.shape[1]) + 1

    def mean_scores(self, pi: Vector) -> MeanScores:
        """Mean scores of the rows, mixed as the frequencies say.

        Examples
        --------
        >>> rows = LabelledLikelihoods(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0, 1]))
        >>> rows.mean_scores(np.array([0.5, 0.5])).mean.tolist()
        [1.0, 1.0]
        """
        values, counts = scores(self.table, pi), self.row_counts
        covariance = np.zeros((len(pi), len(pi)))
        for i, count in enumerate(counts):
            class_scores = np.vstack([values[self.labels == i], np.ones(len(pi))])
            covariance += pi[i] ** 2 * np.cov(class_scores.T, ddof=1) / count
        return MeanScores(self._means(values, pi / counts), covariance)

    def _means(self, values: Matrix, weights: Vector) -> Vector:
        return np.asarray(weights[self.labels] @ values + weights.sum())

    def means_at(self, pi: Vector) -> Vector:
        """The mean scores alone."""
        return self._means(scores(self.table, pi), pi / self.row_counts)


def matching_factors(rows: NewRows, held_out: LabelledLikelihoods) -> Vector:
    """Factors of the likelihoods that make mean scores one at the frequencies of the new rows.

    Steps of expectation maximisation for the frequencies, with one further row of each class, and
    of the factors in turn.
    """
    k, n = len(rows.totals), rows.n_rows
    pi, factors = np.full(k, 1 / k), np.ones(k)
    for _ in range(MATCHING_STEPS):
        expected = pi * (rows.counts @ scores(rows.table * factors, pi))
        pi, before = (expected + 1) / (n + k), pi
        scaled = LabelledLikelihoods(held_out.table * factors, held_out.labels)
        factors = factors / scaled.means_at(pi)
        factors = factors / factors.max()
        if np.abs(pi - before).max() < MATCHED:
            break
    return factors
