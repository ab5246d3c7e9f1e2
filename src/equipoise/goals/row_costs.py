"""Decisions of the least expected cost, where every row has costs of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.arrays import Indices, Matrix, NDArray
from equipoise.exceptions import InvalidInputError
from equipoise.goals.sparse_rows import dense

# COST_VALUES: values that are multiplied at a time, 64 MiB of float64.
COST_VALUES = 1 << 23


def check_row_costs(costs: Any, n_rows: int, k: int) -> NDArray[np.float64]:
    """Costs of rows, finite, with an entry for each class or each pair of classes."""
    try:
        array = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"costs must hold numbers: {error}.") from error
    if array.shape not in ((n_rows, k), (n_rows, k, k)):
        raise InvalidInputError(
            f"costs must have shape ({n_rows}, {k}, {k}), by row, true class and decision, or "
            f"({n_rows}, {k}), of missing each class, got {array.shape}."
        )
    if not np.isfinite(array).all():
        raise InvalidInputError("costs must be finite, got NaN or infinity.")
    if array.ndim == 2 and np.any(array < 0):
        raise InvalidInputError(
            f"costs of missing a class must be at least 0, got {array.min():.6g}."
        )
    return array


def decide_by_costs(probabilities: Matrix, costs: Any) -> Indices:
    r"""The decision of least expected cost :math:`\arg\min_j \sum_i \eta_i(x) c_{ij}(x)`.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows, n_classes)
        Probabilities on the scale of the population.
    costs : array-like of shape (n_rows, n_classes, n_classes) or (n_rows, n_classes)
        By row, true class and decision; or by row the cost of missing each class, for all that is
        decided instead, such as the amount of a fraud and the price of a false alarm.

    Returns
    -------
    ndarray of int of shape (n_rows,)
        Class indices, the first class in a tie.

    Examples
    --------
    >>> table = np.array([[0.9, 0.1], [0.9, 0.1]])
    >>> decide_by_costs(table, [[5.0, 10.0], [5.0, 100.0]])
    array([0, 1])
    """
    table = np.asarray(dense(probabilities), dtype=np.float64)
    n_rows, k = table.shape
    by_row = check_row_costs(costs, n_rows, k)
    if by_row.ndim == 2:
        return np.asarray(np.argmax(table * by_row, axis=1), dtype=np.intp)
    decisions, step = np.empty(n_rows, dtype=np.intp), max(1, COST_VALUES // (k * k))
    for start in range(0, n_rows, step):
        part = slice(start, start + step)
        expected = np.einsum("xi,xij->xj", table[part], by_row[part])
        decisions[part] = np.argmin(expected, axis=1)
    return decisions
