r"""The squared hinge loss, summed over the rivals of the true class.

.. math:: \ell(f, y) = \sum_{j \neq y} \max(0, \, 1 - (f_y - f_j))^2

Of two classes with one score ``f`` it is :math:`\max(0, 1 - f)^2` for a row of the second class and
:math:`\max(0, 1 + f)^2` for one of the first: the loss of scikit-learn's ``LinearSVC``. It is above
the zero-one loss. Its second derivative jumps where a margin is one.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.losses.base import Loss
from equipoise.losses.leads import curvature_by_scores, leads, slopes_by_scores
from equipoise.losses.trained import TrainedLoss


@dataclass(frozen=True)
class SquaredHinge(TrainedLoss):
    """The squared hinge loss of every lead that is not at least one behind."""

    reaches_zero = True

    def values(self, scores: Matrix, labels: Indices) -> Vector:
        excess = _excess(scores, labels)
        excess *= excess
        return np.asarray(excess.sum(axis=0))

    def slopes(self, scores: Matrix, labels: Indices) -> Matrix:
        excess = _excess(scores, labels)
        excess *= 2
        return slopes_by_scores(labels, excess)

    def curvature(self, scores: Matrix, labels: Indices) -> NDArray[np.float64]:
        k, n = scores.shape
        out = np.zeros((k, k, n))
        np.einsum("aan->an", out)[:] = np.where(_excess(scores, labels) > 0, 2.0, 0.0)
        return curvature_by_scores(labels, out)

    def diagonal(self, scores: Matrix, labels: Indices) -> Matrix:
        out = np.where(_excess(scores, labels) > 0, 2.0, 0.0)
        out[labels, np.arange(len(labels))] = out.sum(axis=0)
        return out


def _excess(scores: Matrix, labels: Indices) -> Matrix:
    """By how much each rival comes too close."""
    lead = leads(labels, scores)
    lead += 1
    return np.maximum(lead, 0.0, out=lead)


SQUARED_HINGE = Loss.of_scores("squared_hinge", SquaredHinge())
