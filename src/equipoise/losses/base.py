r"""What a loss is, and what a linear model asks of one that can be trained.

``true`` holds the position of each row's class, an integer array of shape ``(n,)``.
What is predicted comes in one of three kinds:

* ``labels``: positions of predicted classes, shape ``(n,)``; -1 stands for any other class;
* ``probabilities``: shape ``(n, k)``, rows summing to one;
* ``scores``: shape ``(n, k)``, the larger the likelier.

Two-class probabilities and scores may also be ``(n,)`` or ``(n, 1)``, about the second class.

A loss that can be trained is a function of the scores with derivatives, and equal shifts of all
scores leave it as it is: all follows from the leads :math:`f_j - f_y` of the rivals over the
true class. It says what it is in :class:`TrainedLoss`; a :class:`ScoreKernel` computes it for the
scores of a linear model, in few passes over memory.

Conventions of training
-----------------------
Scores are laid out ``(n_scores, rows)``, ``labels`` holds class indices. Two classes have one score
:math:`f`, as in scikit-learn, which stands for the class scores :math:`(-f/2, f/2)`; more have one
score a class. ``kept`` is what is kept of the scores for derivatives and for shifts of the
intercepts, in the same shape: the scores themselves, or what a loss would rather have. All is in
float64, but that Hessians may be asked for in float32.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

import numpy as np

from equipoise.arrays import ArrayLike, Indices, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.validation.predictions import as_scores, check_true

Kind = Literal["labels", "probabilities", "scores"]
Range = Literal["{0, 1}", "[0, 1]", "[0, inf)"]
Pair = tuple[Vector, Matrix | Vector]  # first and second derivatives

_RESPONSE_METHODS = {
    "labels": "predict",
    "probabilities": "predict_proba",
    "scores": "decision_function",
}
# _ROOM: second derivatives that are formed at a time.
_ROOM = 1 << 19
# _BLOCK_ENTRIES: of a block that stays, with its temporaries, in the cache of one core.
_BLOCK_ENTRIES = 2**17


class ScoreKernel(ABC):
    """A loss for linear models of a given number of classes."""

    n_scores: int
    # The length of a Newton step in the intercepts, in log-odds, after which the next is rounding.
    settled: float = 0.0
    # Whether losses have no curvature at some scores.
    flat: bool = False
    # Whether the loss is convex: tangents bound it from below.
    convex: bool = True
    # Whether probabilities are kept: the curvature along a score is then p (1 - p).
    keeps_probabilities: bool = False

    @abstractmethod
    def losses(self, scores: Matrix, labels: Indices) -> Vector:
        """Losses of the rows; ``scores`` becomes what is kept of them, in place."""

    @abstractmethod
    def residual(self, kept: Matrix, labels: Indices, scale: Vector) -> Matrix:
        """Derivative of the scaled losses by the scores."""

    @abstractmethod
    def hessian_product(
        self, kept: Matrix, labels: Indices, scale: Vector, change: Matrix
    ) -> Matrix:
        """Second derivative of the scaled losses by the scores, times a change of the scores."""

    @abstractmethod
    def hessian(self, X: Matrix, kept: Matrix, labels: Indices, scale: Vector) -> Matrix:
        """Sum over rows of the scaled Hessian, by the parameters of all but the last score.

        With one score, by the parameters of that one.
        """

    @abstractmethod
    def departed(self, mass: Vector) -> Vector:
        """The shift of the intercepts to begin with: infinite where a class leaves the model."""

    @abstractmethod
    def moved(self, kept: Matrix, by: Vector) -> Matrix:
        """What is kept after a shift of the scores."""

    @abstractmethod
    def growth(self, kept: Matrix, labels: Indices, by: Vector) -> Vector:
        """How much a shift of the scores adds to the losses; infinite shifts add nothing."""

    @abstractmethod
    def moments(self, kept: Matrix, labels: Indices, scale: Vector, *, diagonal: bool) -> Pair:
        """Sums over rows of the scaled first and second derivatives by the scores.

        The second are a matrix, or its ``diagonal``.
        """


class TrainedLoss(ABC):
    """A loss as a function of the scores: values, first and second derivatives.

    Two such losses are equal if they would train the same.

    Examples
    --------
    The squares of one plus the leads :math:`f_j - f_y` of all rivals, and how it is made known:

    >>> from equipoise.losses import LOSSES, Loss, TrainedLoss
    >>> class SquaredLeads(TrainedLoss):
    ...     def values(self, scores, labels):
    ...         return (self._excess(scores, labels) ** 2).sum(axis=0) - 1
    ...     def gradients(self, scores, labels):
    ...         out = 2 * self._excess(scores, labels)
    ...         out[labels, np.arange(len(labels))] -= out.sum(axis=0)
    ...         return out
    ...     def curvature(self, scores, labels):
    ...         unit = np.eye(len(scores))
    ...         leads = unit[:, :, None] - unit[:, labels]
    ...         return 2 * np.einsum("jan,jbn->abn", leads, leads)
    ...     def _excess(self, scores, labels):
    ...         return 1 + scores - scores[labels, np.arange(len(labels))]
    >>> loss = LOSSES.register(Loss.of_scores("squared_leads", SquaredLeads()))
    >>> loss([0, 1], [[0.0, 0.0], [2.0, 0.0]]).tolist()
    [1.0, 9.0]
    >>> from equipoise import RobustLinearClassifier
    >>> model = RobustLinearClassifier("standard", loss="squared_leads")
    >>> model.fit([[0], [1], [2], [4]], [0, 0, 1, 1]).status_
    'converged'
    >>> LOSSES.remove("squared_leads")
    """

    # Whether large margins cost nothing: separable data then have a finite optimum.
    reaches_zero: bool = False

    @property
    def way(self) -> tuple[TrainedLoss, ...]:
        """Losses that are fitted before one that is not convex, each from where the last ended.

        The first is convex: the way begins at an optimum. A convex loss needs none.
        """
        return ()

    @property
    def convex(self) -> bool:
        return not self.way

    def for_classes(self, totals: Vector) -> TrainedLoss:
        """The loss for classes of these total row weights."""
        return self

    @abstractmethod
    def values(self, scores: Matrix, labels: Indices) -> Vector:
        """Losses of the rows, shape ``(rows,)``, from scores of shape ``(k, rows)``."""

    @abstractmethod
    def gradients(self, scores: Matrix, labels: Indices) -> Matrix:
        """Derivatives of the losses by the scores, shape ``(k, rows)``."""

    @abstractmethod
    def curvature(self, scores: Matrix, labels: Indices) -> NDArray[np.float64]:
        """Second derivatives by the scores, shape ``(k, k, rows)``, positive semidefinite.

        Of a loss that is not convex, what is left of them without a part that is negative.
        """

    def diagonal(self, scores: Matrix, labels: Indices) -> Matrix:
        """The diagonal of the curvature, shape ``(k, rows)``."""
        return np.asarray(np.einsum("aan->an", self.curvature(scores, labels)))

    def kernel(self, n_classes: int) -> ScoreKernel:
        """The kernel for a linear model of ``n_classes`` classes."""
        return ClassScores(self, n_classes)

    def __call__(self, true: ArrayLike, scores: ArrayLike) -> Vector:
        """Losses of rows of scores that a user gives."""
        return in_blocks(lambda labels, block: self.values(block, labels))(true, scores)


@dataclass(frozen=True)
class Loss:
    """A named loss, with what it reads and the values it can take.

    Parameters
    ----------
    name : str
        Key in the registry :data:`equipoise.losses.LOSSES`.
    rows : callable
        ``rows(true, predictions)`` gives the loss of every row, shape ``(n,)``.
    reads : {"labels", "probabilities", "scores"}
        The kind of prediction that ``rows`` takes.
    range : {"{0, 1}", "[0, 1]", "[0, inf)"}
        The values of the loss; confidence intervals depend on it.
    trained : TrainedLoss, optional
        The loss in the scores with its derivatives, where it can be trained.

    Examples
    --------
    >>> import numpy as np
    >>> def absolute(true, probabilities):
    ...     return 1 - np.asarray(probabilities)[np.arange(len(true)), true]
    >>> loss = Loss("absolute", absolute, reads="probabilities", range="[0, 1]")
    >>> loss(np.array([0, 1]), [[0.75, 0.25], [0.5, 0.5]]).tolist()
    [0.25, 0.5]
    """

    name: str
    rows: Callable[[Indices, Any], Vector]
    reads: Kind
    range: Range
    trained: TrainedLoss | None = None

    @classmethod
    def of_scores(cls, name: str, trained: TrainedLoss) -> Loss:
        """A loss of scores that can be trained, known by its values and derivatives."""
        return cls(name, trained, "scores", "[0, inf)", trained)

    def __call__(self, true: Indices, predictions: Any) -> Vector:
        """The loss of every row."""
        return self.rows(true, predictions)

    @property
    def response_method(self) -> str:
        """The scikit-learn method whose output this loss reads."""
        return _RESPONSE_METHODS[self.reads]

    def response(self, estimator: Any, X: Any) -> tuple[NDArray[Any], Any]:
        """What it reads of a fitted classifier, and the classes that the columns belong to.

        Labels name their class, and have no columns: the classes are then None.
        """
        method = getattr(estimator, self.response_method, None)
        if method is None:
            raise InvalidInputError(
                f"loss={self.name!r} needs an estimator with {self.response_method}, got "
                f"{estimator!r}."
            )
        return np.asarray(method(X)), None if self.reads == "labels" else estimator.classes_


class ClassScores(ScoreKernel):
    """Any loss with derivatives; the scores themselves are kept."""

    flat = True

    def __init__(self, loss: TrainedLoss, n_classes: int) -> None:
        self._loss, self.n_scores = loss, 1 if n_classes == 2 else n_classes
        self.convex = loss.convex

    def losses(self, scores: Matrix, labels: Indices) -> Vector:
        return self._loss.values(self._of_classes(scores), labels)

    def residual(self, kept: Matrix, labels: Indices, scale: Vector) -> Matrix:
        gradients = self._loss.gradients(self._of_classes(kept), labels)
        if self.n_scores == 1:
            gradients = (gradients[1:] - gradients[:1]) / 2
        return gradients * scale

    def hessian_product(
        self, kept: Matrix, labels: Indices, scale: Vector, change: Matrix
    ) -> Matrix:
        out, step = np.empty_like(change), max(1, _ROOM // self.n_scores**2)
        for start in range(0, len(labels), step):
            rows = slice(start, start + step)
            curvature = self._curvature(kept[:, rows], labels[rows])
            out[:, rows] = np.einsum("abn,bn->an", curvature, change[:, rows])
        return out * scale

    def hessian(self, X: Matrix, kept: Matrix, labels: Indices, scale: Vector) -> Matrix:
        k, (n, d) = max(1, self.n_scores - 1), X.shape
        total = np.zeros((k, d, k, d), X.dtype)
        step = max(1, _ROOM // (self.n_scores**2 + (0 if d >= k else d**2)))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            curvature = self._curvature(kept[:, rows], labels[rows])[:k, :k]
            weights = (curvature * scale[rows]).astype(X.dtype, copy=False)
            add = _add_by_pairs if d >= k else _add_at_once
            add(total, weights, X[rows])
        out = total.reshape(k * d, k * d)
        # What is not symmetric, by rounding, would mix equal shifts of all scores into steps.
        return (out + out.T) / 2

    def departed(self, mass: Vector) -> Vector:
        return np.zeros(self.n_scores)

    def moved(self, kept: Matrix, by: Vector) -> Matrix:
        return kept + by[:, None]

    def growth(self, kept: Matrix, labels: Indices, by: Vector) -> Vector:
        before = self._loss.values(self._of_classes(kept), labels)
        return self._loss.values(self._of_classes(self.moved(kept, by)), labels) - before

    def moments(self, kept: Matrix, labels: Indices, scale: Vector, *, diagonal: bool) -> Pair:
        slope = self.residual(kept, labels, scale).sum(axis=1)
        if diagonal:
            return slope, self._loss.diagonal(self._of_classes(kept), labels) @ scale
        step = max(1, _ROOM // self.n_scores**2)
        curvature = np.zeros((self.n_scores, self.n_scores))
        for start in range(0, len(labels), step):
            rows = slice(start, start + step)
            curvature += self._curvature(kept[:, rows], labels[rows]) @ scale[rows]
        return slope, curvature

    def _of_classes(self, kept: Matrix) -> Matrix:
        """Scores of the classes."""
        return np.concatenate([-kept / 2, kept / 2]) if self.n_scores == 1 else kept

    def _curvature(self, kept: Matrix, labels: Indices) -> NDArray[np.float64]:
        """Second derivatives by the scores of the model."""
        out = self._loss.curvature(self._of_classes(kept), labels)
        if self.n_scores > 1:
            return out
        return (out[:1, :1] - out[:1, 1:] - out[1:, :1] + out[1:, 1:]) / 4


def _add_by_pairs(total: NDArray[Any], weights: NDArray[Any], X: Matrix) -> None:
    """A product of matrices for every pair of scores, of the rows that count in it."""
    for a in range(len(weights)):
        for b in range(a + 1):
            used = np.flatnonzero(weights[a, b])
            if len(used) == 0:
                continue
            rows = X[used]
            block = np.dot(rows.T, rows * weights[a, b, used, None])
            total[a, :, b, :] += block
            if a != b:
                total[b, :, a, :] += block.T


def _add_at_once(total: NDArray[Any], weights: NDArray[Any], X: Matrix) -> None:
    """One product for all pairs: with few features, rows times themselves are small."""
    k, (n, d) = len(weights), X.shape
    squares = (X[:, :, None] * X[:, None, :]).reshape(n, d * d)
    blocks = np.dot(weights.reshape(k * k, n), squares).reshape(k, k, d, d)
    total += blocks.transpose(0, 2, 1, 3)


def leads(labels: Indices, scores: Matrix) -> Matrix:
    r"""Leads :math:`f_j - f_y` of the rivals; minus infinity for ``y`` itself."""
    places = np.arange(scores.shape[1])
    lead = np.subtract(scores, scores[labels, places], order="C")
    lead[labels, places] = -np.inf
    return lead


def gradients_by_scores(labels: Indices, by_leads: Matrix) -> Matrix:
    """Derivatives by the scores from those by the leads, in the same memory."""
    by_leads[labels, np.arange(len(labels))] = -by_leads.sum(axis=0)
    return by_leads


def curvature_by_scores(labels: Indices, by_leads: NDArray[np.float64]) -> NDArray[np.float64]:
    """Second derivatives by the scores from those by the leads, in the same memory."""
    places = np.arange(len(labels))
    sums = by_leads.sum(axis=0)
    by_leads[labels, :, places], by_leads[:, labels, places] = -sums.T, -sums
    by_leads[labels, labels, places] = sums.sum(axis=0)
    return by_leads


def in_blocks(
    rows: Callable[[Indices, Matrix], Vector],
) -> Callable[[ArrayLike, ArrayLike], Vector]:
    """Turn a loss of checked scores into one of user input that needs little extra memory."""

    @wraps(rows)
    def blockwise(true: ArrayLike, scores: ArrayLike) -> Vector:
        matrix = as_scores(scores)
        positions = check_true(true, matrix)
        size = max(1, _BLOCK_ENTRIES // matrix.shape[1])
        losses: NDArray[np.float64] = np.empty(len(matrix))
        for start in range(0, len(matrix), size):
            block = slice(start, start + size)
            losses[block] = rows(positions[block], matrix[block].T)
        return losses

    return blockwise
