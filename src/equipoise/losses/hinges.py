"""The zero-one loss, and the losses of the margin above it: cut off at one, hinge, smooth hinges.

The margin is that of Crammer and Singer. Two hinge losses are smooth enough to be trained: the
square, over all rivals, and the hinge loss with its corners rounded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.arrays import ArrayLike, Indices, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.losses.base import (
    Loss,
    TrainedLoss,
    curvature_by_scores,
    gradients_by_scores,
    in_blocks,
    leads,
)


def zero_one(true: ArrayLike, predicted: ArrayLike) -> Vector:
    r"""The zero-one loss of every row.

    .. math:: \ell_{01}(f, z) = 1\{f(x) \neq y\}

    Parameters
    ----------
    true, predicted : array-like of shape (n,)
        Positions of classes; a prediction of -1 is some other class, and wrong.

    Examples
    --------
    >>> zero_one([0, 1, 1], [0, 1, 0]).tolist()
    [0.0, 0.0, 1.0]
    """
    left, right = np.asarray(true), np.asarray(predicted)
    if left.ndim != 1 or left.shape != right.shape:
        raise InvalidInputError(
            "true and predicted must be one-dimensional and equally long, got shapes "
            f"{left.shape} and {right.shape}."
        )
    return np.asarray(left != right, dtype=np.float64)


@in_blocks
def margins(true: Indices, scores: Matrix) -> Vector:
    r"""By how much the score of the true class beats that of its best rival.

    .. math:: a = f_y(x) - \max_{y' \neq y} f_{y'}(x)

    Parameters
    ----------
    true : array-like of shape (n,)
        Positions of the true classes.
    scores : array-like of shape (n, k), or (n,) or (n, 1) for two classes
        One column ``f`` is a decision for the second class, whose margin is ``f``.

    Examples
    --------
    >>> margins([0, 2], [[3.0, 1.0, 0.5], [1.0, 4.0, 2.0]]).tolist()
    [2.0, -2.0]
    """
    best_lead: Vector = leads(true, scores).max(axis=0)
    return -best_lead


def margin_loss(true: ArrayLike, scores: ArrayLike) -> Vector:
    r"""The multiclass margin loss, in the unit interval and above the zero-one loss.

    .. math:: \Phi(a) = 1\{a \leq 0\} + (1 - a) 1\{0 < a \leq 1\}

    of the margin :math:`a`, with the paper's margin parameter of one (Sec. 2 of Xu et al., 2020);
    arguments as in :func:`margins`.

    Examples
    --------
    >>> margin_loss([1, 1, 1], [-2.0, 0.25, 3.0]).tolist()
    [1.0, 0.75, 0.0]
    """
    return np.clip(1 - margins(true, scores), 0.0, 1.0)


def hinge(true: ArrayLike, scores: ArrayLike) -> Vector:
    r"""The multiclass hinge loss: convex, and above the margin loss.

    .. math:: \ell(f, z) = \max(0, 1 - a)

    of the margin :math:`a`; arguments as in :func:`margins`.

    Examples
    --------
    >>> hinge([1, 1, 1], [-2.0, 0.25, 3.0]).tolist()
    [3.0, 0.75, 0.0]
    """
    return np.maximum(0.0, 1 - margins(true, scores))


@dataclass(frozen=True)
class SquaredHinge(TrainedLoss):
    r"""The squared hinge loss, summed over the rivals of the true class.

    .. math:: \ell(f, y) = \sum_{j \neq y} \max(0, \, 1 - (f_y - f_j))^2

    Of two classes with one score ``f`` it is :math:`\max(0, 1 - f)^2` for a row of the second class
    and :math:`\max(0, 1 + f)^2` for one of the first: the loss of scikit-learn's ``LinearSVC``. It
    is above the zero-one loss. Its second derivative jumps where a margin is one.
    """

    reaches_zero = True

    def values(self, scores: Matrix, labels: Indices) -> Vector:
        excess = _excess(scores, labels)
        excess *= excess
        return np.asarray(excess.sum(axis=0))

    def gradients(self, scores: Matrix, labels: Indices) -> Matrix:
        excess = _excess(scores, labels)
        excess *= 2
        return gradients_by_scores(labels, excess)

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


@dataclass(frozen=True)
class SmoothedHinge(TrainedLoss):
    r"""The multiclass hinge loss of Crammer and Singer, its corners rounded by quadratics.

    The hinge loss is the largest of :math:`\sum_j u_j (1 + f_j - f_y)` over shares :math:`u \ge 0`
    of the rivals that sum to at most one. Charging the shares makes it smooth (Nesterov 2005):

    .. math:: \ell(f, y) = \max_{u \ge 0, \; \sum_{j \neq y} u_j \le 1} \;
              \sum_{j \neq y} u_j (1 + f_j - f_y) - \frac{\mu}{2} \sum_{j \neq y} u_j^2 .

    The charge :math:`\mu` is ``smoothing``; the loss is at most half of it below the hinge loss.
    With :math:`\mu = 1`, the registered loss, it is of two classes zero for margins
    :math:`a \ge 1`, :math:`(1 - a)^2 / 2` for margins in [0, 1], and :math:`1/2 - a` below: linear,
    so that rows far on the wrong side pull with no more force than others.
    """

    smoothing: float = 1.0

    reaches_zero = True

    def values(self, scores: Matrix, labels: Indices) -> Vector:
        excess = leads(labels, scores)
        excess += 1
        shares, _ = self._shares(excess)
        excess[labels, np.arange(len(labels))] = 0.0
        excess -= self.smoothing / 2 * shares
        return np.asarray((shares * excess).sum(axis=0))

    def gradients(self, scores: Matrix, labels: Indices) -> Matrix:
        return gradients_by_scores(labels, self._shares(leads(labels, scores) + 1)[0])

    def curvature(self, scores: Matrix, labels: Indices) -> NDArray[np.float64]:
        used, sharing = self._faces(scores, labels)
        out = -used[:, None] * (used * sharing)[None, :]
        np.einsum("aan->an", out)[:] += used
        out /= self.smoothing
        return curvature_by_scores(labels, out)

    def diagonal(self, scores: Matrix, labels: Indices) -> Matrix:
        used, sharing = self._faces(scores, labels)
        out = (used - used * sharing) / self.smoothing
        count = used.sum(axis=0)
        out[labels, np.arange(len(labels))] = (count - count**2 * sharing) / self.smoothing
        return out

    def _shares(self, excess: Matrix) -> tuple[Matrix, Vector]:
        """The best shares, the nearest to ``excess / smoothing``, and the level taken off them.

        It is positive where they would sum to more than one.
        """
        shares = excess / self.smoothing
        order = -np.sort(-shares, axis=0)
        np.maximum(order, 0.0, out=order)  # a rival behind takes no part, whatever the level
        counts = np.arange(1.0, len(shares) + 1)[:, None]
        levels = (np.cumsum(order, axis=0) - 1) / counts
        level: Vector = np.maximum(levels.max(axis=0), 0.0)
        shares -= level
        return np.maximum(shares, 0.0, out=shares), level

    def _faces(self, scores: Matrix, labels: Indices) -> tuple[Matrix, Vector]:
        """Rivals with a share, and one over their number where the shares sum to one."""
        shares, level = self._shares(leads(labels, scores) + 1)
        used = (shares > 0).astype(np.float64)
        return used, np.where(level > 0, 1 / np.maximum(used.sum(axis=0), 1.0), 0.0)


ZERO_ONE = Loss("zero_one", zero_one, reads="labels", range="{0, 1}")
HINGE = Loss("hinge", hinge, reads="scores", range="[0, inf)")
SQUARED_HINGE = Loss.of_scores("squared_hinge", SquaredHinge())
SMOOTHED_HINGE = Loss.of_scores("smoothed_hinge", SmoothedHinge())
