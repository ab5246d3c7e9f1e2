r"""The cross-entropy as a function of scores: losses, probabilities and score-space curvature.

Conventions
-----------
Scores and probabilities are laid out ``(n_scores, rows)``, so that reductions over classes run
along contiguous rows of data. ``labels`` holds class indices. Two classes have one score, as in
scikit-learn, and their probability is that of class 1; more have one score a class.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Kernel(ABC):
    """A link between scores and class probabilities, with the loss that belongs to it."""

    n_scores: int

    @abstractmethod
    def losses(self, scores: Array, labels: NDArray[np.intp]) -> Array:
        """Losses of the rows; ``scores`` becomes the probabilities in place."""

    @abstractmethod
    def residual(self, probabilities: Array, labels: NDArray[np.intp], scale: Array) -> Array:
        """Derivative of the scaled losses by the scores."""

    @abstractmethod
    def shift(self, probabilities: Array, by: Array) -> tuple[Array, Array]:
        """Probabilities after a shift of the scores, and the growth of the log-partition."""

    @abstractmethod
    def own_shift(self, by: Array, n_classes: int) -> Array:
        """How much a shift of the scores moves each class's own score in its loss."""

    @abstractmethod
    def hessian(self, X: Array, probabilities: Array, scale: Array) -> Array:
        """Sum over rows of the scaled Hessian, by the parameters of all but the last score."""


class Softmax(Kernel):
    r"""Multinomial: :math:`\ell(s, i) = \log \sum_a e^{s_a} - s_i`."""

    def __init__(self, n_classes: int) -> None:
        self.n_scores = n_classes

    def losses(self, scores: Array, labels: NDArray[np.intp]) -> Array:
        own = scores[labels, np.arange(scores.shape[1])]
        top = scores.max(axis=0)
        scores -= top
        np.exp(scores, out=scores)
        total = scores.sum(axis=0)
        scores /= total
        losses: Array = np.log(total) + (top - own)
        return losses

    def residual(self, probabilities: Array, labels: NDArray[np.intp], scale: Array) -> Array:
        out = probabilities * scale
        out[labels, np.arange(len(labels))] -= scale
        return out

    def shift(self, probabilities: Array, by: Array) -> tuple[Array, Array]:
        moved = probabilities * np.exp(by)[:, None]
        total = moved.sum(axis=0)
        moved /= np.maximum(total, np.finfo(moved.dtype).tiny)
        return moved, np.log(np.maximum(total, np.finfo(moved.dtype).tiny))

    def own_shift(self, by: Array, n_classes: int) -> Array:
        return by

    def hessian(self, X: Array, probabilities: Array, scale: Array) -> Array:
        r"""Blocks :math:`\sum_j s_j (\delta_{ab} p_{ja} - p_{ja} p_{jb}) x_j x_j^\top`, a, b < k.

        The second term is one symmetric product of the rows :math:`p_j \otimes x_j`. The last
        class follows from the others, because the blocks of a row of blocks sum to zero.
        """
        p = probabilities[:-1]
        spread = X * np.sqrt(scale)[:, None]
        wide = (p.T[:, :, None] * spread[:, None, :]).reshape(len(X), -1)
        out = -(wide.T @ wide)
        blocks = out.reshape(len(p), X.shape[1], len(p), X.shape[1])
        for a, root in enumerate(np.sqrt(p)):
            scaled = spread * root[:, None]
            blocks[a, :, a, :] += scaled.T @ scaled
        return np.asarray(out)


class Logistic(Kernel):
    r"""Two classes: :math:`\ell(s, 1) = \log(1 + e^{-s})`, :math:`\ell(s, 0) = \log(1 + e^s)`."""

    n_scores = 1

    def losses(self, scores: Array, labels: NDArray[np.intp]) -> Array:
        s = scores[0]
        tail = np.exp(-np.abs(s))
        losses: Array = np.log1p(tail) + np.maximum(np.where(labels == 1, -s, s), 0)
        scores[0] = np.where(s >= 0, 1, tail) / (1 + tail)
        return losses

    def residual(self, probabilities: Array, labels: NDArray[np.intp], scale: Array) -> Array:
        out: Array = (probabilities - (labels == 1)) * scale
        return out.astype(probabilities.dtype, copy=False)

    def shift(self, probabilities: Array, by: Array) -> tuple[Array, Array]:
        if np.isinf(by[0]):
            gone = np.full_like(probabilities, by[0] > 0)
            left = probabilities[0] if by[0] > 0 else 1 - probabilities[0]
            return gone, np.log(np.maximum(left, np.finfo(left.dtype).tiny))
        moved = probabilities * np.exp(by[0])
        total = (1 - probabilities[0]) + moved[0]
        return moved / total, np.log(total)

    def own_shift(self, by: Array, n_classes: int) -> Array:
        return np.array([0.0, by[0] if np.isfinite(by[0]) else 0.0])

    def hessian(self, X: Array, probabilities: Array, scale: Array) -> Array:
        p = probabilities[0]
        root = np.sqrt(p * (1 - p) * scale)
        scaled = X * root[:, None]
        out: Array = scaled.T @ scaled
        return out


def kernel_for(n_classes: int) -> Kernel:
    """The kernel for so many classes."""
    return Logistic() if n_classes == 2 else Softmax(n_classes)
