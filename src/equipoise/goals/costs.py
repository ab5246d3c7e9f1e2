"""The least expected cost, where the cost of every kind of error is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, permutations
from typing import Any, Self

import numpy as np

from equipoise.arrays import ArrayLike, Matrix, NDArray, Vector
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.goals.base import Goal, KnownRule
from equipoise.weights.priors import named_prior, normalize_weights


@dataclass(frozen=True, eq=False)
class ExpectedCost(KnownRule):
    """Costs beyond those of the right decision, by true class (first) and decision (second)."""

    regrets: Matrix
    prior: Vector

    def value(self, table: Matrix) -> float:
        """The expected cost, relative to the largest; predictions of other classes cost that."""
        costs = np.full(table.shape, self.regrets.max())
        costs[:, : len(self.regrets)] = self.regrets
        by_class = (table * costs).sum(axis=1) / table.sum(axis=1)
        return float(self.prior @ by_class / self.regrets.max())

    def known(self, shares: Vector) -> Vector | Matrix:
        """Decision weights where they say the same as the costs."""
        # What turns the probabilities into those of the population.
        p = shares / shares.sum()
        factors = np.divide(self.prior, p, out=np.ones_like(p), where=p > 0)
        regrets, k = np.asarray(self.regrets * factors[:, None]), len(shares)
        off_diagonal = regrets[~np.eye(k, dtype=bool)].reshape(k, -1)
        if np.all(off_diagonal == off_diagonal[:, :1]):
            return normalize_weights(off_diagonal[:, 0], shares)
        return regrets


class CostMatrix(Goal):
    r"""Predict the class of the smallest expected cost, :math:`\arg\min_j \sum_i \eta_i(x) c_{ij}`.

    Use it where the cost of each error is known. Nothing is tuned, so the probabilities must be
    calibrated. Where all errors of a class cost the same, the costs are decision weights.

    Parameters
    ----------
    costs : array-like of shape (n_classes, n_classes), dict of dicts, or float
        Cost of predicting ``j`` (second) where ``i`` is true (first); a dict may leave out correct
        predictions, which then cost nothing. A number is the cost of every error.

    Examples
    --------
    >>> from equipoise import CostMatrix
    >>> goal = CostMatrix({"healthy": {"ill": 1}, "ill": {"healthy": 9}})
    >>> criterion = goal.resolve([0.5, 0.5], ["healthy", "ill"])
    >>> criterion.known(np.array([0.5, 0.5]))
    array([0.2, 1.8])
    """

    is_known = True

    def __init__(self, costs: Any) -> None:
        self.costs = costs

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> ExpectedCost:
        """The costs beyond those of the right decision."""
        p, names = named_prior(prior, classes)
        costs = self.costs
        matrix = _from_dicts(costs, names) if isinstance(costs, Mapping) else _numbers(costs)
        if matrix.ndim == 0:
            matrix = matrix * (1 - np.eye(len(names)))
        # The cost of the right decision is paid anyway: what counts is the regret.
        return ExpectedCost(_regrets(matrix, names), p)

    @classmethod
    def examples(cls) -> list[Self]:
        """The same cost for every error."""
        return [cls(1.0)]


def _from_dicts(costs: Mapping[Any, Any], classes: NDArray[Any]) -> Matrix:
    names = classes.tolist()
    rows = {true: row for true, row in costs.items() if isinstance(row, Mapping)}
    unknown = [name for name in chain(costs, *rows.values()) if name not in names]
    missing = [pair for pair in permutations(names, 2) if pair[1] not in rows.get(pair[0], {})]
    if unknown or missing:
        problem = f"names {unknown[0]!r}" if unknown else f"lacks {missing[0]}"
        raise ClassMismatchError(
            f"costs, as a dict by true class and decision, {problem}; give a cost for every pair "
            f"of the classes {names}."
        )
    return _numbers([[rows[true].get(decided, 0.0) for decided in names] for true in names])


def _numbers(costs: Any) -> Matrix:
    try:
        matrix = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"costs, as a matrix, must hold numbers: {error}.") from error
    if not np.all(np.isfinite(matrix)):
        raise InvalidInputError(
            f"costs, as a matrix, must hold finite costs, got {matrix.tolist()}."
        )
    return matrix


def _regrets(matrix: Matrix, classes: NDArray[Any]) -> Matrix:
    """Costs beyond that of the right decision, none of them negative."""
    k, names = len(classes), classes.tolist()
    if matrix.shape != (k, k):
        raise ClassMismatchError(
            f"costs must have a row and a column for each of the {k} classes {names} (rows: the "
            f"true class), got shape {matrix.shape}."
        )
    regrets = np.asarray(matrix - np.diag(matrix)[:, None])
    if np.any(regrets < 0):
        true, decided = np.unravel_index(int(np.argmin(regrets)), regrets.shape)
        raise InvalidInputError(
            "costs must not be higher for a correct prediction than for a wrong one: where class "
            f"{names[true]!r} is true, predicting it costs {matrix[true, true]:.6g}, and "
            f"predicting {names[decided]!r} only {matrix[true, decided]:.6g}. "
            "Rows stand for the true class; give costs, not gains."
        )
    if not np.any(regrets > 0):
        raise InvalidInputError(
            "costs must be higher for some wrong prediction than for the correct one, got "
            f"{matrix.tolist()}."
        )
    return regrets
