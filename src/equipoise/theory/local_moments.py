r"""Local polynomial regression: one small weighted least-squares problem for every query.

The problem is that of :class:`LocalPolynomialClassifier`, with points scaled beforehand so that
every window has radius one. All that a query needs are the moments
:math:`\sum_j w_j K(u_j) \phi_a \phi_b` and :math:`\sum_j w_j K(u_j) \phi_a y_j` with
:math:`u_j = z_j - x`. On a line, queries that stand close together get them as differences of
running sums, since :math:`K` is a polynomial inside the window; elsewhere each window is added up.

Conventions
-----------
``n`` points and ``m`` queries in ``d`` dimensions, ``t`` targets, ``p`` monomials. Moments are
``gram`` of shape ``(m, p, p)`` and ``cross`` of shape ``(m, p, t)``.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from sklearn.neighbors import KDTree

from equipoise.arrays import ROUNDING, Indices, Matrix

# _BLOCK: queries whose systems are solved at once: 0.2 MiB for ten monomials.
_BLOCK = 256
# _JITTER: added to the diagonal of a window's system, relative to its total weight: keeps it
# solvable, and changes no more than ten digits.
_JITTER = 1e-10

Moments = tuple[Matrix, Matrix]


def n_monomials(degree: int, n_features: int) -> int:
    """Number of monomials up to the degree."""
    return comb(n_features + degree, degree)


@dataclass(frozen=True, eq=False)
class Smoother:
    """Local polynomial regression with windows of radius one.

    ``points`` have shape (n, d), positive ``weights`` (n,) and ``targets`` (n, t). ``ridge``
    penalises all coefficients but the constant, in the unit of the weights.
    """

    points: Matrix
    weights: Matrix
    targets: Matrix
    degree: int
    ridge: float

    def __getstate__(self) -> dict[str, Any]:
        # What is cached is made again.
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def tree(self) -> KDTree:
        """The points, ready to be searched."""
        return KDTree(self.points)

    @cached_property
    def _order(self) -> Indices:
        """Points of a line from left to right."""
        return np.argsort(self.points[:, 0], kind="stable")

    @property
    def _p(self) -> int:
        return n_monomials(self.degree, self.points.shape[1])

    def __call__(self, queries: Matrix) -> Matrix:
        """Fitted values at the queries, of shape (m, t)."""
        values = np.empty((len(queries), self.targets.shape[1]))
        for rows in self._blocks(queries):
            values[rows] = self._fitted(queries[rows])
        return values

    def _blocks(self, queries: Matrix) -> list[Indices]:
        """Queries that are served together; on a line those within half a window."""
        order = np.arange(len(queries))
        if self.points.shape[1] > 1:
            return np.array_split(order, np.arange(_BLOCK, len(queries), _BLOCK))
        order, windows = np.argsort(queries[:, 0], kind="stable"), np.floor(queries[:, 0])
        return np.split(order, np.searchsorted(windows[order], np.unique(windows)[1:]))

    def _fitted(self, queries: Matrix) -> Matrix:
        line = self.points.shape[1] == 1
        gram, cross = (self._moments_on_a_line if line else self._moments)(queries)
        empty = gram[:, 0, 0] <= 0
        # A window without weight is not solved here, but must not stop the others.
        total = np.where(empty, 1.0, gram[:, 0, 0])
        scaled = gram / total[:, None, None]
        scaled[:, 0, 0] = 1.0
        others = np.arange(1, self._p)
        scaled[:, others, others] += (self.ridge / total + _JITTER)[:, None]
        # The constants of the fitted polynomials.
        values = np.linalg.solve(scaled, cross / total[:, None, None])[:, 0]
        if np.any(empty):
            values[empty] = self._nearest(queries[empty])
        return np.asarray(values)

    def _moments(self, queries: Matrix) -> Moments:
        """Sums over the window of each query."""
        p, t = self._p, self.targets.shape[1]
        gram, cross = np.zeros((len(queries), p, p)), np.zeros((len(queries), p, t))
        # Rounding must not cost a point at the edge of a window.
        windows = self.tree.query_radius(queries, 1 + 1e-9)
        for place, rows in enumerate(windows):
            u = self.points[rows] - queries[place]
            kernel = np.maximum(1 - np.einsum("ij,ij->i", u, u), 0.0)
            phi = monomials(u, self.degree)
            weighted = (phi * (self.weights[rows] * kernel)[:, None]).T
            gram[place], cross[place] = weighted @ phi, weighted @ self.targets[rows]
        return gram, cross

    def _nearest(self, queries: Matrix) -> Matrix:
        """Weighted means over the nearest points, all of them where several tie."""
        distance = self.tree.query(queries)[0][:, 0]
        nearest = self.tree.query_radius(queries, distance * (1 + 1e-9) + 1e-300)
        sizes = np.array([len(rows) for rows in nearest])
        rows, starts = np.concatenate(nearest), np.r_[0, np.cumsum(sizes)[:-1]]
        weights = self.weights[rows, None]
        sums = np.add.reduceat(weights * self.targets[rows], starts)
        return np.asarray(sums / np.add.reduceat(weights, starts))

    def _moments_on_a_line(self, queries: Matrix) -> Moments:
        """Sums over windows as differences of running sums of powers about a common centre."""
        order, degree = self._order, self.degree
        centre = (queries.min(axis=0) + queries.max(axis=0)) / 2
        line = self.points[order, 0]
        q = queries[:, 0]
        left, right = np.searchsorted(line, q - 1, "left"), np.searchsorted(line, q + 1, "right")
        first, last = int(left.min()), int(right.max())
        rows = order[first:last]
        values = np.hstack([np.ones((len(rows), 1)), self.targets[rows]])
        values *= self.weights[rows, None]
        powers = (line[first:last] - centre[0])[:, None] ** np.arange(2 * degree + 3)
        table = powers[:, :, None] * values[:, None, :]
        running = np.concatenate([np.zeros((1, *table.shape[1:])), np.cumsum(table, axis=0)])
        sums = running[right - first] - running[left - first]
        moved = _moved_powers(sums, q - centre[0])
        weighted = moved[:, : 2 * degree + 1] - moved[:, 2:]
        places = np.arange(degree + 1)
        gram = weighted[:, places[:, None] + places, 0]
        gram[gram[:, 0, 0] <= ROUNDING * float(values[:, 0].sum())] = 0.0
        return gram, weighted[:, : degree + 1, 1:]


def monomials(u: Matrix, degree: int) -> Matrix:
    """The monomials ``1, u_i, u_i u_j`` with ``i <= j``, up to the degree; shape (n, p)."""
    if degree == 0:
        return np.ones((len(u), 1))
    extended = np.hstack([np.ones((len(u), 1)), u])
    if degree == 1:
        return extended
    # With 1 as the first variable all monomials are products of two.
    a, b = np.triu_indices(extended.shape[1])
    return extended[:, a] * extended[:, b]


def _moved_powers(sums: Matrix, origins: Matrix) -> Matrix:
    """Sums of powers of ``v - origin`` from sums of powers of ``v``, powers in the second axis."""
    moved = np.zeros_like(sums)
    for j in range(sums.shape[1]):
        for i in range(j + 1):
            factor = comb(j, i) * (-origins) ** (j - i)
            moved[:, j] += factor[:, None] * sums[:, i]
    return moved
