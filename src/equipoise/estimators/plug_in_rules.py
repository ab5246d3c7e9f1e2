r"""Rules that decide from probabilities: by weights, or by the costs of every kind of error.

Conventions
-----------
``probabilities`` : float64, shape ``(n_rows, n_classes)``, columns in class order.
``scores`` : one per class, the largest decides; for two classes one per row, positive for the
    second class.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.decisions import decide
from equipoise.exceptions import ClassMismatchError, InvalidInputError


class Rule(ABC):
    """A way to decide from the probabilities of the classes."""

    weights: Vector | None = None
    costs: Matrix | None = None

    @property
    def threshold(self) -> float | None:
        r"""For two classes, the ``t`` of :math:`\eta_1 > t`."""
        if self.weights is None or len(self.weights) != 2:
            return None
        return float(self.weights[0] / self.weights.sum())

    @abstractmethod
    def scores(self, probabilities: Matrix) -> NDArray[np.float64]:
        """What the decision goes by, without rounding that could change it."""

    @abstractmethod
    def decide(self, probabilities: Matrix) -> Indices:
        """Class index of the decision for every row."""


@dataclass(frozen=True, eq=False)
class WeightRule(Rule):
    r"""The class :math:`\arg\max_i w_i \eta_i(x)`, the first one in a tie."""

    weights: Vector

    def scores(self, probabilities: Matrix) -> NDArray[np.float64]:
        weighted = probabilities * self.weights
        return weighted if len(self.weights) > 2 else np.asarray(weighted[:, 1] - weighted[:, 0])

    def decide(self, probabilities: Matrix) -> Indices:
        return decide(probabilities, self.weights)


@dataclass(frozen=True, eq=False)
class CostRule(Rule):
    r"""The class :math:`\arg\min_j \sum_i \eta_i(x) c_{ij}`, the first one in a tie."""

    costs: Matrix

    def scores(self, probabilities: Matrix) -> NDArray[np.float64]:
        # Class by class and not as one product, whose rounding depends on the number of rows.
        scores = np.zeros_like(probabilities)
        for column, costs in zip(probabilities.T, self.costs, strict=True):
            scores -= column[:, None] * costs
        return scores

    def decide(self, probabilities: Matrix) -> Indices:
        return np.asarray(np.argmax(self.scores(probabilities), axis=1), dtype=np.intp)


def is_cost_matrix(weights: Any) -> bool:
    """Whether known weights were given as costs by true class and decision."""
    if isinstance(weights, Mapping):
        return any(isinstance(row, Mapping) for row in weights.values())
    if isinstance(weights, list | tuple):
        # Also where its rows are not of one length, which is for its own check to refuse.
        return any(np.iterable(row) and not isinstance(row, str) for row in weights)
    return np.ndim(weights) == 2


def cost_rule(costs: Any, classes: NDArray[Any], factors: Vector) -> Rule:
    r"""The rule of least expected cost, by weights where these say the same.

    Parameters
    ----------
    costs : array-like of shape (n_classes, n_classes), or dict of dicts
        Cost of deciding ``j`` (second) where ``i`` is true (first); a dict may leave out right
        decisions, which then cost nothing.
    classes : class names.
    factors : array of shape (n_classes,)
        What turns the probabilities into those of the population, :math:`\pi_i / p_i`.
    """
    matrix = _from_dicts(costs, classes) if isinstance(costs, Mapping) else _numbers(costs)
    # The cost of the right decision is paid anyway: what counts is the regret.
    regrets = _regrets(matrix, classes) * factors[:, None]
    off_diagonal = regrets[~np.eye(len(classes), dtype=bool)].reshape(len(classes), -1)
    if np.all(off_diagonal == off_diagonal[:, :1]):
        return WeightRule(np.asarray(off_diagonal[:, 0]))
    return CostRule(regrets)


def _from_dicts(costs: Mapping[Any, Any], classes: NDArray[Any]) -> Matrix:
    names = classes.tolist()
    rows = {true: row for true, row in costs.items() if isinstance(row, Mapping)}
    named = [*costs, *(decided for row in rows.values() for decided in row)]
    unknown = [name for name in named if name not in names]
    missing = [
        (true, decided)
        for true in names
        for decided in names
        if true != decided and decided not in rows.get(true, {})
    ]
    if unknown or missing:
        problem = f"names {unknown[0]!r}" if unknown else f"lacks {missing[0]}"
        raise ClassMismatchError(
            f"weights, as a dict of costs by true class and decision, {problem}; give a cost for "
            f"every pair of the classes {names}."
        )
    return _numbers([[rows[true].get(decided, 0.0) for decided in names] for true in names])


def _numbers(costs: Any) -> Matrix:
    try:
        matrix = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"weights, as a cost matrix, must hold numbers: {error}."
        ) from error
    if not np.all(np.isfinite(matrix)):
        raise InvalidInputError(
            f"weights, as a cost matrix, must hold finite costs, got {matrix.tolist()}."
        )
    return matrix


def _regrets(matrix: Matrix, classes: NDArray[Any]) -> Matrix:
    """Costs beyond that of the right decision, none of them negative."""
    k, names = len(classes), classes.tolist()
    if matrix.shape != (k, k):
        raise ClassMismatchError(
            f"weights, as a cost matrix, must have a row and a column for each of the {k} classes "
            f"{names} (rows: the true class), got shape {matrix.shape}."
        )
    regrets = np.asarray(matrix - np.diag(matrix)[:, None])
    if np.any(regrets < 0):
        true, decided = np.unravel_index(int(np.argmin(regrets)), regrets.shape)
        raise InvalidInputError(
            f"weights, as a cost matrix, must not make a right decision dearer than a wrong one: "
            f"where class {names[true]!r} is true, deciding it costs {matrix[true, true]:.6g} and "
            f"deciding {names[decided]!r} only {matrix[true, decided]:.6g}. Rows stand for the "
            "true class; give costs, not gains."
        )
    if not np.any(regrets > 0):
        raise InvalidInputError(
            "weights, as a cost matrix, must make some wrong decision dearer than the right one, "
            f"got {matrix.tolist()}."
        )
    return regrets
