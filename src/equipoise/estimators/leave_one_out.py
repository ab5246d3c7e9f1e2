r"""Scores of rows by the linear model that would have been fitted without them, approximately.

The fit minimises, at the masses :math:`m` where it ended,

.. math:: L(\theta) = \sum_i m_i R_i(\theta) + \tfrac{\rho}{2} \|w\|^2, \qquad
          R_i = \sum_{r : y_r = i} \frac{v_r}{V_i} \, \ell(f(z_r), i), \quad
          f(z) = (I \otimes z)^\top \theta,

with row weights :math:`v_r` and their sums :math:`V_i` by class. A group :math:`G` of rows with
equal features, all with the same :math:`z`, holds the share :math:`a_i` of the weight of class
:math:`i`. Without the group the other rows of a class share its mass, :math:`m_i v_r / (V_i (1 -
a_i))` each; the masses and the penalty stay. One Newton step goes from the optimum, where :math:`L`
has no gradient, to

.. math:: \theta_{-G} = \theta + (H - Z \Lambda Z^\top)^{-1}
          \Bigl( Z g - \sum_i \frac{m_i a_i}{1 - a_i} \nabla R_i \Bigr), \qquad Z = I \otimes z,

with :math:`H` the Hessian of :math:`L`, and by the scores the gradient :math:`g = \sum_{r \in G}
m_{y_r} v_r / (V_{y_r} (1 - a_{y_r})) \nabla \ell` and the Hessian :math:`\Lambda = \sum_{r \in G}
m_{y_r} v_r / V_{y_r} \nabla^2 \ell`. (The Hessian of the other rows is that of their weights before
the group is left out: an error of the order :math:`a_i`, of a step that is itself that small.) With
:math:`A = Z^\top H^{-1} Z`, which has as many rows as there are scores, the scores of the group
become

.. math:: f_{-G}(z) = f(z) + (I - A \Lambda)^{-1}
          \Bigl( A g - \sum_i \frac{m_i a_i}{1 - a_i} Z^\top H^{-1} \nabla R_i \Bigr).

(Pregibon 1981, "Logistic regression diagnostics"; Rad and Maleki 2020, "A scalable estimate of the
out-of-sample prediction error via approximate leave-one-out".)

Gauge: equal shifts of all scores change no loss, so scores are leads over the last class,
:math:`\psi_a = f_a - f_k`. Of all parameters with these leads the penalty takes the shortest, whose
coefficients sum to zero over the classes: :math:`\tfrac{\rho}{2} \sum_{ab} (\delta_{ab} -
1/k) \langle \psi_a, \psi_b \rangle`. Intercepts carry no penalty. Two classes have one score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
from scipy.sparse import issparse

from equipoise.arrays import Indices, Matrix, NDArray, Vector
from equipoise.decisions.equal_rows import equal_rows
from equipoise.goals.labelled_predictions import BLOCK_VALUES
from equipoise.losses.base import ScoreKernel

# MOST_WORK: multiplications for a row, which then takes a few milliseconds at most.
MOST_WORK = 2_500_000
# _MOST_SHARE: of the weight of a class that its other rows make up for; without half of a class, or
# all of it, the class counts for less.
_MOST_SHARE = 0.5
# _DAMPING: of the Hessian, relative to its diagonal, against rounding where no penalty holds.
_DAMPING = 1e-10


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear model where its fit ended: all that leaving rows out depends on."""

    coef: Matrix
    intercept: Vector
    fit_intercept: bool
    mass: Vector
    ridge: float
    kernel: ScoreKernel

    @property
    def n_leads(self) -> int:
        """Leads over the last class; with two classes, the one score."""
        return max(1, len(self.coef) - 1)

    @property
    def work(self) -> int:
        """Multiplications for a row: products with the Hessian, and a system of the leads."""
        n_parameters = self.n_leads * (self.coef.shape[1] + self.fit_intercept)
        return int(n_parameters**2 + self.n_leads**3)

    def leads(self, scores: Matrix) -> Matrix:
        """Scores of shape ``(n_scores, n_rows)`` as leads ``(n_rows, n_leads)``."""
        return (scores if len(scores) == 1 else scores[:-1] - scores[-1]).T


class DistinctRows(NamedTuple):
    """Rows of equal features and class as one, those with equal features next to each other.

    ``first`` are their positions among all rows, and ``position`` those of all rows among them.
    """

    first: Indices
    position: Indices
    groups: Indices
    labels: Indices
    weights: Vector

    @classmethod
    def of(cls, X: Any, labels: Indices, weights: Vector) -> DistinctRows:
        """The distinct rows of a table."""
        k = int(labels.max()) + 1
        keys = equal_rows(X) * k + labels
        distinct, first, position = np.unique(keys, return_index=True, return_inverse=True)
        sums = np.asarray(np.bincount(position, weights), dtype=np.float64)
        return cls(first, position, distinct // k, labels[first], sums)

    def blocks(self, n_values: int) -> Iterator[slice]:
        """Rows of so many values each that stay in the cache; no group is cut."""
        starts = np.flatnonzero(np.diff(self.groups, prepend=-1))
        step, end = max(1, BLOCK_VALUES // n_values), len(self.groups)
        cuts = np.unique(starts[np.searchsorted(starts, np.arange(0, starts[-1] + 1, step))])
        for start, stop in pairwise([*cuts.tolist(), end]):
            yield slice(start, stop)


class Part(NamedTuple):
    """Some distinct rows: their design, scores, and shares in the weight of their class."""

    design: Matrix
    scores: Matrix
    labels: Indices
    groups: Indices
    shares: Vector

    def kept(self, kernel: ScoreKernel) -> Matrix:
        """What the kernel keeps of the scores for derivatives."""
        kept = self.scores.copy()
        kernel.losses(kept, self.labels)
        return kept


class InverseHessian(NamedTuple):
    """The inverse Hessian of the objective by the leads, and its products with class gradients.

    Of shapes ``(n_leads, width, n_leads, width)`` and ``(n_classes, n_leads, width)``.
    """

    inverse: NDArray[np.float64]
    by_class: NDArray[np.float64]


def left_out_leads(
    fit: LinearFit, X: Any, labels: Indices, weights: Vector, totals: Vector
) -> tuple[DistinctRows, Matrix]:
    """The distinct rows, and their leads where all rows with the same features are left out.

    Leads are over the last class, of two classes the score of the second, and of shape
    ``(n_distinct, n_leads)``. The rows may be a sample of those of the fit, whose weights sum to
    ``totals`` by class; rows that are not in the sample are not left out.
    """
    rows = DistinctRows.of(X, labels, weights)
    table = (X[rows.first].toarray() if issparse(X) else X[rows.first]).astype(np.float64)
    scores = (table @ fit.coef.T + fit.intercept).T
    design, ridges = _design(fit, table)
    shares = rows.weights / totals[rows.labels]
    parts = [
        Part(design[block], scores[:, block], rows.labels[block], rows.groups[block], shares[block])
        for block in rows.blocks(fit.n_leads * (fit.n_leads + design.shape[1]))
    ]
    present = np.bincount(rows.labels, shares, minlength=len(totals)).astype(np.float64)
    curvature = _curvature(fit, parts, ridges, present)
    moves = [_moves(fit, part, curvature) for part in parts]
    return rows, fit.leads(scores) + np.concatenate(moves)


def _design(fit: LinearFit, table: Matrix) -> tuple[Matrix, Vector]:
    """Standardised columns and one of ones, and the penalties of their parameters."""
    Z = table - table.mean(axis=0) if fit.fit_intercept else table
    unit = np.sqrt(np.mean(Z * Z, axis=0))
    unit[unit == 0] = 1.0
    Z, ridges = Z / unit, fit.ridge / unit**2
    if fit.fit_intercept:
        Z, ridges = np.hstack([Z, np.ones((len(Z), 1))]), np.append(ridges, 0.0)
    return Z, ridges


def _curvature(
    fit: LinearFit, parts: Sequence[Part], ridges: Vector, present: Vector
) -> InverseHessian:
    """The curvature of the objective, where shares of the classes are ``present`` in the sample."""
    n_leads, width, k = fit.n_leads, len(ridges), len(fit.mass)
    hessian, gradients = np.zeros((n_leads * width,) * 2), np.zeros((k, n_leads, width))
    for part in parts:
        kept, labels = part.kept(fit.kernel), part.labels
        shares = part.shares / present[labels]
        hessian += fit.kernel.hessian(part.design, kept, labels, shares * fit.mass[labels])
        residual = fit.kernel.residual(kept, labels, shares)[:n_leads]
        for label in np.unique(labels):
            in_class = labels == label
            gradients[label] += residual[:, in_class] @ part.design[in_class]
    gauge = np.eye(n_leads) - (1 / len(fit.coef) if len(fit.coef) > 1 else 0.0)
    hessian += np.kron(gauge, np.diag(ridges))
    hessian[np.diag_indices_from(hessian)] *= 1 + _DAMPING
    hessian[np.diag_indices_from(hessian)] += _DAMPING**2
    inverse = sl.cho_solve(sl.cho_factor(hessian), np.eye(len(hessian)))
    by_class = (gradients.reshape(k, -1) @ inverse).reshape(k, n_leads, width)
    return InverseHessian(inverse.reshape(n_leads, width, n_leads, width), by_class)


def _moves(fit: LinearFit, part: Part, curvature: InverseHessian) -> Matrix:
    """How far the leads of some rows move where each group is left out in turn."""
    labels, n_leads, kept = part.labels, fit.n_leads, part.kept(fit.kernel)
    first, group = np.unique(part.groups, return_index=True, return_inverse=True)[1:]
    lost = np.minimum(part.shares, _MOST_SHARE)
    lost = lost / (1 - lost)
    mass = fit.mass[labels]
    gradient = fit.kernel.residual(kept, labels, mass * part.shares * (1 + lost))[:n_leads].T
    hessian = np.empty((len(labels), n_leads, n_leads))
    for place in range(n_leads):
        change = np.zeros_like(part.scores)
        change[place] = 1.0
        bent = fit.kernel.hessian_product(kept, labels, mass * part.shares, change)
        hessian[:, :, place] = bent[:n_leads].T
    # What the other rows of the class of a row that is left out gain in weight.
    gained = np.einsum("nx,nax->na", part.design, curvature.by_class[labels])
    gradient, hessian, gained = (
        np.add.reduceat(each, first)
        for each in (gradient, hessian, gained * (mass * lost)[:, None])
    )
    spread = _spread(part.design[first], curvature.inverse)
    moved = (spread @ gradient[:, :, None])[:, :, 0] - gained
    left = np.eye(n_leads) - spread @ hessian
    return np.asarray(np.linalg.solve(left, moved[:, :, None])[group, :, 0])


def _spread(Z: Matrix, inverse: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""The matrix :math:`Z^\top H^{-1} Z` of every row."""
    n_leads = len(inverse)
    matrices = np.empty((len(Z), n_leads, n_leads))
    for a in range(n_leads):
        for b in range(a + 1):
            entries = np.einsum("nx,nx->n", Z @ inverse[a, :, b], Z)
            matrices[:, a, b] = matrices[:, b, a] = entries
    return matrices
