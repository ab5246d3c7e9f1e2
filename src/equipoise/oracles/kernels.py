r"""The cross-entropy as a function of scores: losses, probabilities and score-space curvature.

Conventions
-----------
Scores and probabilities are laid out ``(n_scores, rows)``, so that reductions over classes run
along contiguous rows of data. ``labels`` holds class indices. Two classes have one score, as in
scikit-learn; more have one score a class.
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
    def curve(self, probabilities: Array, direction: Array) -> Array:
        """Hessian of each loss by the scores, times a direction."""

    @abstractmethod
    def spread(self, probabilities: Array) -> Array:
        """Diagonal of the Hessian of each loss by the scores."""


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
        return np.log(total) + (top - own)

    def residual(self, probabilities: Array, labels: NDArray[np.intp], scale: Array) -> Array:
        out = probabilities * scale
        out[labels, np.arange(len(labels))] -= scale
        return out

    def curve(self, probabilities: Array, direction: Array) -> Array:
        out = probabilities * direction
        return out - probabilities * out.sum(axis=0)

    def spread(self, probabilities: Array) -> Array:
        return probabilities * (1 - probabilities)


class Logistic(Kernel):
    r"""Two classes: :math:`\ell(s, 1) = \log(1 + e^{-s})`, :math:`\ell(s, 0) = \log(1 + e^s)`."""

    n_scores = 1

    def losses(self, scores: Array, labels: NDArray[np.intp]) -> Array:
        s = scores[0]
        tail = np.exp(-np.abs(s))
        losses = np.log1p(tail) + np.maximum(np.where(labels == 1, -s, s), 0)
        scores[0] = np.where(s >= 0, 1, tail) / (1 + tail)
        return losses

    def residual(self, probabilities: Array, labels: NDArray[np.intp], scale: Array) -> Array:
        return (probabilities - (labels == 1).astype(probabilities.dtype)) * scale

    def curve(self, probabilities: Array, direction: Array) -> Array:
        return self.spread(probabilities) * direction

    def spread(self, probabilities: Array) -> Array:
        return probabilities * (1 - probabilities)


def kernel_for(n_classes: int) -> Kernel:
    """The kernel for so many classes."""
    return Logistic() if n_classes == 2 else Softmax(n_classes)
