r"""Inverse curvature :math:`B^{-1}` of the Lagrangian, in the three products an SQP step needs.

A base matrix, and on top of it the last few steps and gradient changes in the compact form of
the BFGS inverse (Byrd, Nocedal and Schnabel 1994):

.. math:: B^{-1} = \gamma H_0 + [S \; \gamma H_0 Y] \, M \, [S \; \gamma H_0 Y]^\top .
"""

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import pairwise
from operator import iadd
from typing import Any

import numpy as np
import scipy.linalg as sl

from equipoise.arrays import (
    Matrix,
    Vector,
    is_tensor,
    like,
    to_numpy,
)
from equipoise.objectives import Hessians, offered
from equipoise.objectives.capabilities import Inverse
from equipoise.solvers.problem import Problem

Share = Callable[[Callable[[slice], Any], Iterable[slice]], Iterable[Any]]
# PIECES: of a long vector, for threads to share; SHORT: numbers of a part that stays in the cache
# while several rows are multiplied.
PIECES, SHORT = 16, 1 << 12
# LEAST_DIAGONAL: of an entry of a diagonal, relative to the largest; LEAST_HESSIAN: the same of a
# whole Hessian, whose factor rounds more.
LEAST_DIAGONAL, LEAST_HESSIAN = 1e-12, 1e-14
# LEAST_CURVATURE: the largest entry of a diagonal counts as this much at least: where all rows are
# certain, there is no curvature for entries to be relative to.
LEAST_CURVATURE = 1e-3
# SINGLE_RIDGE: the penalty's curvature above which a Hessian may be formed in single precision, if
# it need not be ``precise``: ten times the rounding of single precision, in features of unit scale.
SINGLE_RIDGE = 1e-6
# FIRST_DAMPING: of a Hessian in unit scale, as a share of its number of parameters: the rounding
# of a Cholesky factor; STRONGER: what a damping that is too little is multiplied by; MOST_DAMPING:
# beyond all entries of a Hessian in unit scale, unless they are not numbers.
FIRST_DAMPING, STRONGER, MOST_DAMPING = 1e-14, 100.0, 1e9
# LEAST_ANGLE: cosine of a step and its change of the gradient, below which a pair has no curvature
# but that of rounding.
LEAST_ANGLE = 1e-10


class NewtonInverse:
    """The inverse of the Hessian of the Lagrangian at a point."""

    def __init__(
        self,
        problem: Problem,
        theta: Vector,
        mass: Vector,
        *,
        precise: bool = False,
        damping: float = 0.0,
    ) -> None:
        # Rounding in single precision must stay far below the curvature of the penalty, along
        # every coefficient: where all rows are certain there may be no other.
        ridges = to_numpy(problem.ridges)
        held = ridges[ridges > 0]
        single = not precise and bool(held.size) and float(held.min()) > SINGLE_RIDGE
        objective: Hessians = offered(problem.objective, Hessians, user="A Newton step")
        self._hessian = objective.hessian(theta, mass, single=single)
        # A column without curvature must not turn rounding into a step. The penalty has no part in
        # this floor: in the units of a tiny feature it is larger than all else by any factor.
        self._floor = LEAST_HESSIAN * max(float(np.diag(self._hessian).max()), LEAST_CURVATURE)
        self._hessian[np.diag_indices_from(self._hessian)] += ridges
        self.damp(damping)

    def damp(self, damping: float) -> None:
        """Add curvature along every parameter, in place of earlier damping."""
        diagonal = np.diag(self._hessian) + damping
        self._unit = 1 / np.sqrt(np.maximum(diagonal, self._floor))
        scaled = self._hessian * np.outer(self._unit, self._unit)
        scaled[np.diag_indices_from(scaled)] = diagonal * self._unit**2
        self._factor = _regular_cholesky(scaled)

    def apply(self, rows: Matrix) -> Any:
        """The inverse times each row."""
        columns = (to_numpy(rows) * self._unit).T
        solved = sl.cho_solve((self._factor, True), columns, check_finite=False)
        return like(np.asarray(solved).T * self._unit, rows)


def _regular_cholesky(matrix: Matrix) -> Matrix:
    """Cholesky factor of a matrix with unit diagonal, damped as little as rounding allows."""
    damping = FIRST_DAMPING * len(matrix)
    while damping < MOST_DAMPING:
        try:
            damped = matrix + damping * np.eye(len(matrix))
            return np.asarray(sl.cholesky(damped, lower=True, check_finite=False))
        except sl.LinAlgError:
            damping *= STRONGER
    return np.eye(len(matrix))  # not numbers


class DiagonalInverse:
    """The inverse of the Hessian's diagonal plus the penalty's curvature ``ridges``."""

    def __init__(self, diagonal: Vector, ridges: Vector) -> None:
        # A column without curvature must not turn rounding into a step.
        floor = LEAST_DIAGONAL * max(float(diagonal.max()), LEAST_CURVATURE)
        self._inverse = 1 / (diagonal.clip(min=floor) + ridges)

    def apply(self, rows: Matrix) -> Any:
        """The inverse times each row."""
        return rows * self._inverse


class InverseCurvature:
    """A base and at most ``memory`` pairs of steps and gradient changes.

    Without a base, or with one that is ``scaled``, the last step sets the scale. Steps are kept
    where the parameters ``theta`` are: in memory, or on the device of a tensor.
    """

    def __init__(
        self,
        base: Inverse | None,
        theta: Vector,
        memory: int,
        share: Share = map,
        *,
        scaled: bool = False,
    ) -> None:
        self.base, self._memory, self._share, self._scaled = base, memory, share, scaled
        size = len(theta)
        whole = size // SHORT * SHORT
        step = -(-whole // (PIECES * SHORT)) * SHORT
        cuts = [*range(0, whole, max(step, 1)), whole, size]
        self._pieces = [slice(*cut) for cut in pairwise(cuts) if cut[0] < cut[1]]
        self._empty = getattr(theta, "new_empty", np.empty)
        self._kept = self._empty((2 * memory, size))
        self._fresh = self._empty((2, size))
        self.clear()

    def clear(self, base: Inverse | None = None) -> None:
        """Forget all pairs, and take a new base if one is given."""
        self.base = base or self.base
        # Without a base, changes are their own images.
        shape = (self._memory, self._kept.shape[1])
        self._changes = self._empty(shape) if self.base else self._kept[1::2]
        self._gamma, self._order = 1.0, []  # type: tuple[float, list[int]]
        self._SY, self._YY = np.zeros((2, self._memory, self._memory))
        self._middle = np.zeros((0, 0))

    def rebase(self, base: Inverse) -> None:
        """Keep all pairs on top of another base."""
        pairs = self._kept[[2 * row for row in self._order]], self._changes[self._order]
        self.clear(base)
        for step, change in zip(*pairs, strict=True):
            self.update(step, change)

    def damp(self, damping: float) -> None:
        """Damp the base, and forget the pairs that came on top of it."""
        if isinstance(self.base, NewtonInverse):
            self.base.damp(damping)
        self.clear()

    @property
    def n_pairs(self) -> int:
        return len(self._order)

    def update(self, step: Vector, change: Vector, *, rescale: bool = True) -> None:
        """Keep a step and the change of the Lagrangian's gradient along it, if it has curvature."""
        self._fresh[0], self._fresh[1] = step, change
        (square, product), (_, length) = self._products(self._fresh, self._fresh)
        if not product > LEAST_ANGLE * (square * length) ** 0.5 or length == 0:
            return
        full = len(self._order) == self._memory
        row = self._order.pop(0) if full else len(self._order)
        self._order.append(row)
        self._kept[2 * row], self._changes[row] = step, change
        if self.base is not None:
            self._kept[2 * row + 1] = self.base.apply(change[None])[0]
        n, image = len(self._order), self._kept[2 * row + 1]
        products = self._products(self._pairs, change[None])[:, 0]
        by_image = products[1::2]
        if self.base is not None:
            by_image = self._products(self._changes[:n], image[None])[:, 0]
        self._SY[:n, row] = products[::2]
        self._YY[row, :n] = self._YY[:n, row] = by_image
        if rescale and self.base is None:
            self._gamma = product / length
        elif rescale and self._scaled:
            self._gamma = product / float(by_image[row])
        self._middle = self._middle_matrix()

    @property
    def _pairs(self) -> Any:
        """Steps and images of gradient changes by the base, in turns."""
        return self._kept[: 2 * len(self._order)]

    def _middle_matrix(self) -> Matrix:
        """The matrix M, rows in the order of storage, for images without their factor."""
        order, n = np.array(self._order), len(self._order)
        # Of a step and a later change; what is below the diagonal is of no use.
        SY = self._SY[np.ix_(order, order)]
        inverse = np.linalg.inv(np.triu(SY))
        inner = np.diag(np.diag(SY)) + self._gamma * self._YY[np.ix_(order, order)]
        out = np.zeros((2 * n, 2 * n))
        out[np.ix_(2 * order, 2 * order)] = inverse.T @ inner @ inverse
        out[np.ix_(2 * order + 1, 2 * order)] = -self._gamma * inverse
        out[np.ix_(2 * order, 2 * order + 1)] = -self._gamma * inverse.T
        return out

    def _by_base(self, rows: Matrix) -> Matrix:
        return rows if self.base is None else self.base.apply(rows)

    def _products(self, rows: Any, others: Any) -> Matrix:
        """All products of two rows, formed in a fixed cut of their length."""
        if is_tensor(rows):
            return to_numpy(rows @ others.T)

        def part(cut: slice) -> Matrix:
            short = min(SHORT, cut.stop - cut.start)
            a, b = (x[:, cut].reshape(len(x), -1, short).swapaxes(0, 1) for x in (rows, others))
            return np.asarray(np.matmul(a, b.swapaxes(1, 2)).sum(axis=0))

        return reduce(iadd, self._share(part, self._pieces))

    def gram(self, rows: Matrix, vector: Vector) -> tuple[Matrix, Vector]:
        r"""Products :math:`G B^{-1} G^\top` and :math:`G B^{-1} v` for the rows of G."""
        images = self._by_base(rows)
        A = self._gamma * self._products(images, rows)
        c = self._gamma * self._products(images, vector[None])[:, 0]
        if self._order:
            T = self._products(self._pairs, rows)
            A += T.T @ self._middle @ T
            c += T.T @ (self._middle @ self._products(self._pairs, vector[None])[:, 0])
        return 0.5 * (A + A.T), c

    def apply(self, vector: Vector) -> Any:
        r"""The product :math:`B^{-1} v`."""
        known = self._by_base(vector[None])[0]
        if not self._order:
            return self._gamma * known
        weights = self._middle @ self._products(self._pairs, vector[None])[:, 0]
        out = self.combine(weights, self._pairs)
        out += self._gamma * known
        return out

    def combine(self, weights: Vector, rows: Any) -> Any:
        """Rows as long as the parameter, added up with weights."""
        if is_tensor(rows):
            return like(weights, rows) @ rows
        out = np.empty(rows.shape[1])

        def part(cut: slice) -> None:
            np.matmul(weights, rows[:, cut], out=out[cut])

        list(self._share(part, self._pieces))
        return out
