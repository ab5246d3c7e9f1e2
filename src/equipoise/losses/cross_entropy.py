"""The cross-entropy, in natural logarithms: of probabilities, and of raw scores.

Training keeps probabilities: with one score those of the second class, else one a class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from equipoise.arrays import ArrayLike, Indices, Matrix, NDArray, Vector
from equipoise.losses.base import Loss, Pair, ScoreKernel, TrainedLoss, in_blocks, leads
from equipoise.validation.predictions import as_probabilities, check_true, probability_eps


def cross_entropy(true: ArrayLike, probabilities: ArrayLike) -> Vector:
    r"""The cross-entropy of predicted probabilities.

    .. math:: \ell(f, z) = -\log \max(f_y(x), \varepsilon)

    :math:`\varepsilon` is the spacing of the floating-point type given (2.2e-16 for double
    precision), as in :func:`sklearn.metrics.log_loss`. A class that a model calls impossible thus
    costs 36.04, not infinity, in each row where it occurs: trees and neighbours predict zeros all
    the time, and one such row would otherwise decide every comparison. A row whose loss is 36.04
    (15.94 in single precision) is a zero.

    Parameters
    ----------
    true : array-like of shape (n,)
        Positions of the true classes.
    probabilities : array-like of shape (n, k), or (n,) or (n, 1) for two classes
        Rows sum to one; the short form is the probability of the second class.

    Examples
    --------
    >>> cross_entropy([0, 1], [[0.5, 0.5], [0.75, 0.25]]).round(3).tolist()
    [0.693, 1.386]
    """
    matrix = as_probabilities(probabilities)
    mine = matrix[np.arange(len(matrix)), check_true(true, matrix)]
    # The absolute value, because minus the logarithm of 1 would print as -0.0.
    return np.abs(np.log(np.clip(mine, probability_eps(probabilities), 1.0)))


@in_blocks
def cross_entropy_from_scores(true: Indices, scores: Matrix) -> Vector:
    r"""The cross-entropy of the softmax of raw scores.

    .. math:: \ell(f, z) = \log \sum_j \exp(f_j(x) - f_y(x))

    Arguments are as in :func:`margins`. With one column ``f`` it is the logistic loss,
    ``log(1 + exp(-f))`` for a row of the second class.

    Examples
    --------
    >>> cross_entropy_from_scores([0, 1], [[0.0, 0.0], [1000.0, 0.0]]).round(3).tolist()
    [0.693, 1000.0]
    """
    lead = leads(true, scores)
    shift: Vector = np.maximum(lead.max(axis=0), 0.0)
    # The true class has lead 0. Its term exp(-shift), written as 1 + expm1(-shift), gives the 1
    # of log1p, which keeps a loss of 1e-20 from being rounded to 0.
    rest: Vector = np.exp(lead - shift).sum(axis=0)
    return shift + np.log1p(rest + np.expm1(-shift))


@dataclass(frozen=True)
class CrossEntropy(TrainedLoss):
    """The cross-entropy of the softmax of the scores."""

    def values(self, scores: Matrix, labels: Indices) -> Vector:
        return SoftmaxKernel(len(scores)).losses(scores.copy(), labels)

    def gradients(self, scores: Matrix, labels: Indices) -> Matrix:
        out: Matrix = softmax(scores, axis=0)
        out[labels, np.arange(len(labels))] -= 1
        return out

    def curvature(self, scores: Matrix, labels: Indices) -> NDArray[np.float64]:
        p: Matrix = softmax(scores, axis=0)
        out: NDArray[np.float64] = -p[:, None] * p[None, :]
        np.einsum("aan->an", out)[:] += p
        return out

    def kernel(self, n_classes: int) -> ScoreKernel:
        return LogisticKernel() if n_classes == 2 else SoftmaxKernel(n_classes)


class SoftmaxKernel(ScoreKernel):
    r"""Multinomial: :math:`\ell(s, i) = \log \sum_a e^{s_a} - s_i`."""

    settled = 1e-6
    keeps_probabilities = True

    def __init__(self, n_classes: int) -> None:
        self.n_scores = n_classes

    def losses(self, scores: Matrix, labels: Indices) -> Vector:
        label_scores = scores[labels, np.arange(scores.shape[1])]
        top = scores.max(axis=0)
        scores -= top
        np.exp(scores, out=scores)
        total = scores.sum(axis=0)
        scores /= total
        losses: Vector = np.log(total) + (top - label_scores)
        return losses

    def residual(self, kept: Matrix, labels: Indices, scale: Vector) -> Matrix:
        out = kept * scale
        out[labels, np.arange(len(labels))] -= scale
        return out

    def hessian_product(
        self, kept: Matrix, labels: Indices, scale: Vector, change: Matrix
    ) -> Matrix:
        return np.asarray(kept * (change - (kept * change).sum(axis=0)) * scale)

    def hessian(self, X: Matrix, kept: Matrix, labels: Indices, scale: Vector) -> Matrix:
        r"""Blocks :math:`\sum_j s_j (\delta_{ab} p_{ja} - p_{ja} p_{jb}) x_j x_j^\top`, a, b < k.

        The second term is one symmetric product of the rows :math:`p_j \otimes x_j`. The last
        class follows from the others, because the blocks of a row of blocks sum to zero.
        """
        p = kept[:-1]
        spread = X * np.sqrt(scale)[:, None]
        wide = (p.T[:, :, None] * spread[:, None, :]).reshape(len(X), -1)
        out = -(wide.T @ wide)
        blocks = out.reshape(len(p), X.shape[1], len(p), X.shape[1])
        for a, root in enumerate(np.sqrt(p)):
            scaled = spread * root[:, None]
            blocks[a, :, a, :] += scaled.T @ scaled
        return np.asarray(out)

    def departed(self, mass: Vector) -> Vector:
        return np.where(mass > 0, 0.0, -np.inf)

    def moved(self, kept: Matrix, by: Vector) -> Matrix:
        odds = np.exp(by).astype(kept.dtype, copy=False)
        out = kept * odds[:, None]
        out /= _positive(odds @ kept)
        return out

    def growth(self, kept: Matrix, labels: Indices, by: Vector) -> Vector:
        odds = np.exp(by).astype(kept.dtype, copy=False)
        growth: Vector = np.log(_positive(odds @ kept))
        return growth - np.where(np.isfinite(by), by, 0.0)[labels]

    def moments(self, kept: Matrix, labels: Indices, scale: Vector, *, diagonal: bool) -> Pair:
        weighted = kept * scale
        mean = weighted.sum(axis=1)
        slope = mean - np.bincount(labels, weights=scale, minlength=self.n_scores)
        if diagonal:
            return slope, mean - (weighted * kept).sum(axis=1)
        return slope, np.diag(mean) - np.dot(weighted, kept.T)


class LogisticKernel(ScoreKernel):
    r"""Two classes: :math:`\ell(s, 1) = \log(1 + e^{-s})`, :math:`\ell(s, 0) = \log(1 + e^s)`."""

    n_scores = 1
    settled = 1e-6
    keeps_probabilities = True

    def losses(self, scores: Matrix, labels: Indices) -> Vector:
        s = scores[0]
        tail = np.exp(-np.abs(s))
        losses: Vector = np.log1p(tail) + np.maximum(np.where(labels == 1, -s, s), 0)
        scores[0] = np.where(s >= 0, 1, tail) / (1 + tail)
        return losses

    def residual(self, kept: Matrix, labels: Indices, scale: Vector) -> Matrix:
        out: Matrix = (kept - (labels == 1)) * scale
        return out.astype(kept.dtype, copy=False)

    def hessian_product(
        self, kept: Matrix, labels: Indices, scale: Vector, change: Matrix
    ) -> Matrix:
        return kept * (1 - kept) * change * scale

    def hessian(self, X: Matrix, kept: Matrix, labels: Indices, scale: Vector) -> Matrix:
        p = kept[0]
        root = np.sqrt(p * (1 - p) * scale)
        scaled = X * root[:, None]
        out: Matrix = scaled.T @ scaled
        return out

    def departed(self, mass: Vector) -> Vector:
        first, second = mass > 0
        return np.array([0.0 if first and second else -np.inf if first else np.inf])

    def moved(self, kept: Matrix, by: Vector) -> Matrix:
        if np.isinf(by[0]):
            return np.full_like(kept, by[0] > 0)
        out = kept * np.exp(by[0])
        return np.asarray(out / ((1 - kept) + out))

    def growth(self, kept: Matrix, labels: Indices, by: Vector) -> Vector:
        p, shift = kept[0], by[0]
        if np.isinf(shift):
            return np.asarray(np.log(_positive(p if shift > 0 else 1 - p)))
        return np.asarray(np.log((1 - p) + p * np.exp(shift)) - shift * (labels == 1))

    def moments(self, kept: Matrix, labels: Indices, scale: Vector, *, diagonal: bool) -> Pair:
        p = kept[0]
        slope, curvature = (p - (labels == 1)) @ scale, (p * (1 - p)) @ scale
        return np.array([slope]), np.array([[curvature]])


def _positive(values: Vector) -> Vector:
    """Sums of probabilities that may be divided by."""
    return np.maximum(values, np.finfo(values.dtype).tiny)


CROSS_ENTROPY = Loss(
    "cross_entropy", cross_entropy, "probabilities", "[0, inf)", trained=CrossEntropy()
)
CROSS_ENTROPY_FROM_SCORES = Loss(
    "cross_entropy_from_scores", cross_entropy_from_scores, "scores", "[0, inf)", CrossEntropy()
)
