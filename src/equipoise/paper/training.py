r"""The paper's training: full-batch gradient descent on a linear softmax model.

.. math:: W \leftarrow W - r_t \sum_i m_i \nabla R_i(W)

with :math:`R_i` the mean cross-entropy over the rows of class ``i`` and rates :math:`r_t` that fall
linearly. There is no penalty and no stopping rule, and the last iterate is kept. The ways of
training differ in how the masses :math:`m` come about, so each is a :class:`StepMasses`.

Conventions
-----------
``W`` has shape ``(n_starts, n_classes, n_features + 1)``, the bias last: all starts are trained at
once. ``risks`` and masses have shape ``(n_starts, n_classes)``. Arithmetic has the precision of
the rows.

References
----------
Xu, Dan, Khim and Ravikumar (2020), Section 5 and Appendix G.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.paper.methods import Method
from equipoise.sets import MassSet

# The authors' scripts start the trained level here, and move it so much faster than the model.
_FIRST_LEVEL = 10.0
_LEVEL_SPEED = 10.0


@dataclass(frozen=True)
class LearningRates:
    """Learning rates that fall linearly from the first epoch to the last."""

    first: float
    last: float
    epochs: int

    def values(self) -> NDArray[Any]:
        """One rate per epoch."""
        return np.linspace(self.first, self.last, self.epochs)


class BlockedRows:
    """Training rows, sorted by class so that every class is one block of columns."""

    def __init__(self, X: NDArray[Any], y: NDArray[Any]) -> None:
        order = np.argsort(y, kind="stable")
        self.classes, starts = np.unique(y[order], return_index=True)
        self.blocks = [slice(*ends) for ends in zip(starts, [*starts[1:], len(y)], strict=True)]
        self.counts = np.array([block.stop - block.start for block in self.blocks])
        self.prior = self.counts / len(y)
        ones = np.ones((len(y), 1), dtype=X.dtype)
        self.X = np.ascontiguousarray(np.hstack([X[order], ones]))

    def risks(self, W: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Class risks, and the probabilities of the rows (n_starts, n_classes, n_rows)."""
        scores = W.astype(self.X.dtype) @ self.X.T
        scores -= scores.max(axis=1, keepdims=True)
        label_means = [scores[:, i, block].mean(axis=1) for i, block in enumerate(self.blocks)]
        np.exp(scores, out=scores)
        total = scores.sum(axis=1, keepdims=True)
        scores /= total
        logs = np.log(total[:, 0])
        risks = [
            logs[:, block].mean(axis=1) - label_means[i] for i, block in enumerate(self.blocks)
        ]
        return np.stack(risks, axis=1), scores

    def gradient(self, probabilities: NDArray[Any], masses: NDArray[Any]) -> NDArray[Any]:
        """Gradient of the weighted risk; it overwrites the probabilities."""
        shares = (masses / self.counts).astype(self.X.dtype)
        for i, block in enumerate(self.blocks):
            probabilities[:, i, block] -= 1
            probabilities[:, :, block] *= shares[:, i, None, None]
        return np.asarray(probabilities @ self.X)

    def starts(self, seeds: list[int]) -> NDArray[Any]:
        """Weights and biases uniform in (-1, 1), one draw per seed, as in the scripts."""
        shape = len(self.classes), self.X.shape[1]
        draws = [np.random.default_rng(seed).uniform(-1, 1, shape) for seed in seeds]
        return np.stack(draws).astype(self.X.dtype)


class StepMasses(ABC):
    """How much of the objective each class carries at a step."""

    @abstractmethod
    def at(self, risks: NDArray[Any], rate: float) -> NDArray[Any]:
        """Masses for these class risks; ``rate`` is that of the step."""


@dataclass(frozen=True)
class ClosedFormMasses(StepMasses):
    """The worst case in closed form: the paper's Appendix G.1, corrected.

    The set may be a single point: the standard and the balanced risk.

    As printed there, the level is always 0: the gradient would be that of the standard risk,
    scaled by 1/alpha, and nothing robust would be trained.
    """

    set: MassSet

    def at(self, risks: NDArray[Any], rate: float) -> NDArray[Any]:
        return np.stack([self.set.maximize(row) for row in risks.astype(np.float64)])


class TrainedLevel(StepMasses):
    r"""The dual level :math:`\lambda` trained beside the model, as in the authors' scripts.

    .. math:: m_i = \frac{p_i}{\alpha_i} 1\{R_i > \lambda\}, \qquad
              \lambda \leftarrow \min(\lambda - 10 \, r_t (1 - \textstyle\sum_i m_i), \max_i R_i)

    The masses need not sum to one on the way.
    """

    def __init__(self, caps: ArrayLike) -> None:
        self.caps = np.asarray(caps, dtype=np.float64)
        self.level: Any = _FIRST_LEVEL

    def at(self, risks: NDArray[Any], rate: float) -> NDArray[Any]:
        levels = np.broadcast_to(self.level, len(risks))
        masses = np.where(risks > levels[:, None], self.caps, 0.0)
        moved = levels - _LEVEL_SPEED * rate * (1 - masses.sum(axis=1))
        self.level = np.minimum(moved, risks.max(axis=1))
        return masses


@dataclass(frozen=True)
class TrainingRecipe:
    """How the paper's text, or a script of its authors, trains.

    Attributes
    ----------
    way : str
        One of :data:`equipoise.paper.study.WAYS`.
    first, last : float
        Rates of the first and the last epoch.
    last_fixed : float
        Rate of the last epoch for the standard and the balanced risk.
    trained_level : bool
        Whether the level of the dual is trained beside the model.
    """

    way: str
    first: float
    last: float
    last_fixed: float
    trained_level: bool

    def train(
        self, method: Method, rows: BlockedRows, epochs: int, seeds: list[int]
    ) -> NDArray[Any]:
        """Where training a method ends, once for every seed."""
        rates = LearningRates(self.first, self.last_fixed if method.is_fixed else self.last, epochs)
        masses: StepMasses = ClosedFormMasses(method.uncertainty().resolve(rows.prior))
        if self.trained_level and not method.is_fixed:
            masses = TrainedLevel(method.caps(rows.prior))
        return train(rows, masses, rates, seeds)


TRAININGS = {
    "text": TrainingRecipe("text", 0.01, 0.0001, 0.0001, trained_level=False),
    "synthetic-scripts": TrainingRecipe("scripts", 0.1, 0.001, 0.001, trained_level=True),
    "covertype-scripts": TrainingRecipe("scripts", 0.01, 0.0001, 0.01, trained_level=True),
}


def train(
    rows: BlockedRows, masses: StepMasses, rates: LearningRates, seeds: list[int]
) -> NDArray[Any]:
    """The weights at which gradient descent ends, one set per seed."""
    W = rows.starts(seeds)
    for rate in rates.values():
        risks, probabilities = rows.risks(W)
        W -= (rate * rows.gradient(probabilities, masses.at(risks, rate))).astype(W.dtype)
    return W


def predict(W: NDArray[Any], X: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Labels of one start's model: the class with the highest score."""
    return np.asarray(classes[np.argmax(X @ W[:, :-1].T + W[:, -1], axis=1)])
