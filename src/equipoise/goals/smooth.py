r"""Decision weights for any smooth goal, with one term that pools small classes.

.. math:: \min_\theta \; g\bigl(C_T(\theta)\bigr)
          + \sum_i \frac{c}{n_i} (\theta_i - \theta_{0,i})^2

over log-weights :math:`\theta`. :math:`C_T` is the confusion table of the soft predictions

.. math:: D_{xj} = \frac{\exp((\log \eta_j(x) + \theta_j) / T)}
                        {\sum_l \exp((\log \eta_l(x) + \theta_l) / T)}

with the temperature :math:`T` lowered step by step; :math:`g` is the goal, :math:`\theta_0` the
weights that it would take if nothing were known (its ``centre``), :math:`n_i` the rows of class
``i`` and :math:`c` the strength of the pooling. A goal sees the recalls, and the shares of the
population that are predicted as each class: derivatives are in closed form, and an evaluation is
four products of an n x k matrix and a vector, for any number of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import issparse

from equipoise.arrays import Indices, Mask, Vector
from equipoise.goals import sparse_rows
from equipoise.goals.labelled_predictions import Predictions
from equipoise.goals.sparse_rows import Table
from equipoise.objectives.sampling import evenly, rows_of_classes

# TEMPERATURES: of the soft predictions, in units of log-probabilities, each step started from the
# last. Decided on splits 0 and 1 of 96 tables, confirmed on 2 and 3 (docs/studies/tuner.txt).
TEMPERATURES = (1.0, 0.2)
# FLOOR: probabilities below count as this, so that logarithms of a forest's zeros are finite.
FLOOR = 1e-9
# MOST_ITERATIONS, PRECISION: of L-BFGS at each temperature, and the relative progress in the goal
# at which it stops; a goal is known to 1e-3 at best from any number of rows in use.
MOST_ITERATIONS, PRECISION = 60, 1e-4
# MOST_ROWS: rows that one tuning looks at, evenly drawn from the classes where there are more: a
# recall is then known to half a point for ten classes.
MOST_ROWS = 100_000

# Values and derivatives of a goal by the recalls, and by the predicted shares.
Smooth = Callable[[Vector, Vector], tuple[float, Vector, Vector]]


# One goal of soft predictions: its value and gradient by the logarithms of factors of the classes.
Soft = Callable[[Vector], tuple[float, Vector]]


class Rows(NamedTuple):
    """Rows of one tuning: their classes, and what each adds to a recall and a predicted share."""

    labels: Indices
    recall: Vector
    share: Vector
    effective: Vector


def smooth_logs(
    predictions: Predictions, parts: Sequence[Mask], soft: Callable[[Table, Rows], Soft], *,
    centre: Vector, prior: Vector, pooling: float,
) -> list[Vector]:  # fmt: skip
    """Log-weights for each of some parts of the rows, of mean 0.

    ``soft`` makes the function of soft predictions from a table of them and its rows.

    Examples
    --------
    >>> table = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> rows = Predictions(table, np.array([0, 0, 1, 1]), np.ones(4))
    >>> nothing = lambda table, rows: lambda factors: (0.0, np.zeros(2))
    >>> options = {"centre": np.array([0.0, 1.0]), "prior": np.ones(2) / 2, "pooling": 0.01}
    >>> smooth_logs(rows, [np.ones(4, bool)], nothing, **options)[0]
    array([-0.5,  0.5])
    """
    rows, kept = predictions, parts
    # Sparse rows hold little each, and are of many classes: all of them are used.
    if len(rows.labels) > MOST_ROWS and not issparse(rows.probabilities):
        counts = np.bincount(rows.labels, minlength=len(centre))
        sample = rows_of_classes(rows.labels, evenly(counts, MOST_ROWS))
        rows, kept = rows.take(sample), [part[sample] for part in parts]
    logs = _shifted_logs(rows.probabilities, centre)
    part_rows = [counted_rows(rows, part, prior) for part in kept]
    shifts = [np.zeros_like(centre) for _ in parts]
    for temperature in TEMPERATURES:
        # Soft predictions are these, times exp(shift / T) by class, scaled to sum to one.
        table = _exponentials(logs, temperature)
        shifts = [
            _lowered(soft(table, each), each, shift, temperature, pooling)
            for each, shift in zip(part_rows, shifts, strict=True)
        ]
    return [centre - centre.mean() + shift - shift.mean() for shift in shifts]


def _shifted_logs(probabilities: Table, centre: Vector) -> Table:
    """Log-probabilities and the centre, the largest of each row 0; of what sparse rows hold."""
    if issparse(probabilities):
        values = np.log(np.maximum(probabilities.data, FLOOR)) + centre[probabilities.indices]
        rows = sparse_rows.rows_of(probabilities)
        logs = sparse_rows.with_values(probabilities, values)
        return sparse_rows.with_values(logs, values - sparse_rows.row_maxima(logs)[rows])
    logs = np.log(np.maximum(probabilities, FLOOR)) + centre
    logs -= logs.max(axis=1, keepdims=True)
    return logs


def _exponentials(logs: Table, temperature: float) -> Table:
    """The soft predictions at shift 0, up to a factor by row."""
    if issparse(logs):
        return sparse_rows.with_values(logs, np.exp(logs.data / temperature))
    return np.asarray(np.exp(logs / temperature))


def counted_rows(predictions: Predictions, part: Mask, prior: Vector) -> Rows:
    """What the rows of a part count; rows of another part count nothing."""
    labels, weights = predictions.labels, predictions.sample_weight * part
    totals = np.bincount(labels, weights, minlength=len(prior))
    recall = np.divide(weights, totals[labels], out=np.zeros(len(labels)), where=weights > 0)
    # Kish's effective number of rows: those of unequal weight count as fewer, at any scale.
    squares = np.bincount(labels, recall**2, minlength=len(prior))
    effective = np.divide(1.0, squares, out=np.ones(len(prior)), where=squares > 0)
    return Rows(labels, recall, recall * prior[labels], effective)


def soft_of_rates(table: Table, rows: Rows, goal: Smooth) -> Soft:
    """A goal of the recalls and the predicted shares, for these soft predictions."""
    k = table.shape[1]
    at_labels = sparse_rows.at_labels(table, rows.labels)

    def value_and_gradient(factors: Vector) -> tuple[float, Vector]:
        totals = table @ factors
        # A sparse row that holds none of the tuned classes is predicted as none of them.
        scale = np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)
        right = at_labels * factors[rows.labels] * scale
        recalls = np.bincount(rows.labels, rows.recall * right, minlength=k)
        shares = factors * ((rows.share * scale) @ table)
        value, by_recall, by_share = goal(np.asarray(recalls, dtype=np.float64), shares)
        added = by_recall[rows.labels] * rows.recall * right
        lost = added
        gradient = np.asarray(np.bincount(rows.labels, added, minlength=k), dtype=np.float64)
        if by_share.any():
            lost = added + rows.share * scale * (table @ (factors * by_share))
            gradient = gradient + by_share * shares
        return value, np.asarray(gradient - factors * ((scale * lost) @ table))

    return value_and_gradient


def _lowered(soft: Soft, rows: Rows, shift: Vector, temperature: float, pooling: float) -> Vector:
    """Shifts of the log-weights from the centre with a lower value, by L-BFGS."""
    penalty = pooling / rows.effective

    def value_and_gradient(shift: Vector) -> tuple[float, Vector]:
        value, gradient = soft(np.exp((shift - shift.max()) / temperature))
        return value + float(penalty @ shift**2), gradient / temperature + 2 * penalty * shift

    options = {"maxiter": MOST_ITERATIONS, "ftol": PRECISION}
    solution = minimize(value_and_gradient, shift, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(solution.x)
