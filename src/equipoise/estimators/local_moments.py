r"""Local polynomial regression: one small weighted least-squares problem for every query.

The problem is that of :class:`LocalPolynomialClassifier`, with points scaled beforehand so that
every window has radius one. All that a query needs are the moments
:math:`\sum_j w_j K(u_j) \phi_a \phi_b` and :math:`\sum_j w_j K(u_j) \phi_a y_j` with
:math:`u_j = z_j - x`. Queries that stand close together are served as a block:

* on a line by differences of running sums, since :math:`K` is a polynomial inside the window;
* in a crowd by one matrix product, monomials taken about the centre of the block and then moved,
  which loses no digits because the block is no wider than a few windows;
* in thin air, where a block is much wider than a window, pair by pair;
* with many monomials query by query, since there each of them is work enough.

Conventions
-----------
``n`` points and ``m`` queries in ``d`` dimensions, ``t`` targets, ``p`` monomials. Moments are
``gram`` of shape ``(m, p, p)`` and ``cross`` of shape ``(m, p, t)``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from sklearn.neighbors import KDTree

from equipoise.arrays import ROUNDING, Indices, Matrix

# Queries served together.
_BLOCK = 256
# A block up to so many windows wide has its monomials taken about its centre.
_CROWD = 4.0
# Floats in a temporary array: 1 MiB, so that it stays in the cache.
_ROOM = 1 << 17
# Relative to the total weight of a window: keeps systems solvable, changes no digit that matters.
_JITTER = 1e-10
# With more monomials than this a matrix product for each query is worth its overhead.
_MANY = 32
# On a line, running sums pay if a group of queries within one window has so many members.
_FEW = 8


Moments = tuple[Matrix, Matrix]


def n_monomials(degree: int, n_features: int) -> int:
    """Number of monomials up to the degree."""
    return comb(n_features + degree, degree)


@dataclass(frozen=True, eq=False)
class Smoother:
    """Local polynomial regression with windows of radius one.

    ``points`` have shape (n, d), positive ``weights`` (n,) and ``targets`` (n, t). ``power`` is the
    exponent ``r`` of the kernel; ``ridge`` penalises all coefficients but the constant, in the unit
    of the weights.
    """

    points: Matrix
    weights: Matrix
    targets: Matrix
    degree: int
    power: int
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

    def _blocks(self, queries: Matrix) -> Iterator[Indices]:
        if self.points.shape[1] > 1:
            return blocks(queries, min(_BLOCK, max(1, 8 * _ROOM // self._p**2)))
        windows = np.floor(queries[:, 0])
        groups = np.unique(windows)
        if len(groups) * _FEW > len(queries):
            return blocks(queries, _BLOCK)
        order = np.argsort(queries[:, 0], kind="stable")
        return iter(np.split(order, np.searchsorted(windows[order], groups[1:])))

    def _fitted(self, queries: Matrix) -> Matrix:
        low, high = queries.min(axis=0), queries.max(axis=0)
        radius = float(np.linalg.norm(high - low)) / 2
        gram, cross = self._moments(queries, (low + high) / 2, radius)
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

    def _moments(self, queries: Matrix, centre: Matrix, radius: float) -> Moments:
        """Moments by the way that suits the width of the block."""
        if self.points.shape[1] == 1 and 2 * radius <= 1:
            return self._moments_on_a_line(queries, centre)
        # Rounding must not cost a point at the edge of a window.
        near = self.tree.query_radius(centre[None], (radius + 1) * (1 + 1e-9))[0]
        if radius <= _CROWD and self._p <= _MANY:
            return self._moments_in_a_crowd(queries, centre, near)
        return self._moments_of_pairs(queries, near)

    def _nearest(self, queries: Matrix) -> Matrix:
        """Weighted means over the nearest points, all of them where several tie."""
        distance = self.tree.query(queries)[0][:, 0]
        found = self.tree.query_radius(queries, distance * (1 + 1e-9) + 1e-300)
        sizes = np.array([len(rows) for rows in found])
        rows, starts = np.concatenate(found), np.r_[0, np.cumsum(sizes)[:-1]]
        weights = self.weights[rows, None]
        sums = np.add.reduceat(weights * self.targets[rows], starts)
        return np.asarray(sums / np.add.reduceat(weights, starts))

    def _moments_on_a_line(self, queries: Matrix, centre: Matrix) -> Moments:
        """Sums over windows as differences of running sums of powers."""
        order, r = self._order, self.power
        line = self.points[order, 0]
        q = queries[:, 0]
        left, right = np.searchsorted(line, q - 1, "left"), np.searchsorted(line, q + 1, "right")
        first, last = int(left.min()), int(right.max())
        rows = order[first:last]
        values = np.hstack([np.ones((len(rows), 1)), self.targets[rows]])
        values *= self.weights[rows, None]
        powers = (line[first:last] - centre[0])[:, None] ** np.arange(2 * self.degree + 2 * r + 1)
        table = powers[:, :, None] * values[:, None, :]
        running = np.concatenate([np.zeros((1, *table.shape[1:])), np.cumsum(table, axis=0)])
        sums = running[right - first] - running[left - first]
        moved = _moved_powers(sums, q - centre[0])
        weighted = sum(
            comb(r, s) * (-1) ** s * moved[:, 2 * s : 2 * (s + self.degree) + 1]
            for s in range(r + 1)
        )
        places = np.arange(self.degree + 1)
        gram = weighted[:, places[:, None] + places, 0]
        gram[gram[:, 0, 0] <= ROUNDING * float(values[:, 0].sum())] = 0.0
        return gram, weighted[:, : self.degree + 1, 1:]

    def _moments_in_a_crowd(self, queries: Matrix, centre: Matrix, near: Indices) -> Moments:
        """One product of the kernel matrix with products of monomials, then a change of origin."""
        m, p, t = len(queries), self._p, self.targets.shape[1]
        upper = np.triu_indices(p)
        sums = np.zeros((m, len(upper[0]) + p * t))
        step = max(1, _ROOM // max(m, sums.shape[1]))
        for start in range(0, len(near), step):
            rows = near[start : start + step]
            moved = self.points[rows] - centre
            phi = monomials(moved, self.degree)
            right = (phi[:, :, None] * self.targets[rows, None, :]).reshape(len(rows), p * t)
            table = np.hstack([phi[:, upper[0]] * phi[:, upper[1]], right])
            sums += self._kernel(queries - centre, moved) @ (table * self.weights[rows, None])
        gram = np.empty((m, p, p))
        gram[:, upper[0], upper[1]] = gram[:, upper[1], upper[0]] = sums[:, : len(upper[0])]
        move = moves(queries - centre, self.degree)
        cross = move @ sums[:, len(upper[0]) :].reshape(m, p, t)
        return move @ gram @ move.transpose(0, 2, 1), cross

    def _kernel(self, queries: Matrix, points: Matrix) -> Matrix:
        """Kernel of all pairs; near the origin no digits are lost to the binomial formula."""
        room = queries @ (2 * points.T)
        room += 1 - np.einsum("ij,ij->i", queries, queries)[:, None]
        room -= np.einsum("ij,ij->i", points, points)
        if self.power == 0:
            return np.asarray(room >= 0, dtype=np.float64)
        np.maximum(room, 0.0, out=room)
        return np.asarray(room if self.power == 1 else room**self.power)

    def _moments_of_pairs(self, queries: Matrix, near: Indices) -> Moments:
        """Sums over the few pairs that are within a window of each other, or query by query."""
        m, p, t = len(queries), self._p, self.targets.shape[1]
        gram, cross = np.zeros((m, p, p)), np.zeros((m, p, t))
        step = 1 if p > _MANY else max(1, _ROOM // max(len(near), 1))
        for start in range(0, m, step):
            query, rows = _pairs(queries[start : start + step], self.points, near)
            if not len(query):
                continue
            u = self.points[rows] - queries[start + query]
            kernel = np.maximum(1 - np.einsum("ij,ij->i", u, u), 0.0) ** self.power
            phi, targets = monomials(u, self.degree), self.targets[rows]
            weighted = phi * (self.weights[rows] * kernel)[:, None]
            if p > _MANY:
                gram[start], cross[start] = weighted.T @ phi, weighted.T @ targets
                continue
            some, starts = np.unique(query, return_index=True)
            gram[start + some] = np.add.reduceat(weighted[:, :, None] * phi[:, None], starts)
            cross[start + some] = np.add.reduceat(weighted[:, :, None] * targets[:, None], starts)
        return gram, cross


def _pairs(queries: Matrix, points: Matrix, near: Indices) -> tuple[Indices, Indices]:
    """Queries and rows of points within a window of each other, sorted by query."""
    squares = np.zeros((len(queries), len(near)))
    for a, b in zip(queries.T, points[near].T, strict=True):
        squares += (a[:, None] - b) ** 2
    query, place = np.nonzero(squares <= 1)
    return query, near[place]


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


def moves(origins: Matrix, degree: int) -> Matrix:
    """Matrices that take monomials in ``v`` to monomials in ``v - origin``; shape (m, p, p)."""
    m, d = origins.shape
    if degree == 0:
        return np.ones((m, 1, 1))
    move = np.tile(np.eye(d + 1), (m, 1, 1))
    move[:, 1:, 0] = -origins
    if degree == 1:
        return move
    a, b = np.triu_indices(d + 1)
    straight = move[:, a[:, None], a] * move[:, b[:, None], b]
    crossed = move[:, a[:, None], b] * move[:, b[:, None], a]
    return straight + np.where(a != b, crossed, 0.0)


def _moved_powers(sums: Matrix, origins: Matrix) -> Matrix:
    """Sums of powers of ``v - origin`` from sums of powers of ``v``, powers in the second axis."""
    moved = np.zeros_like(sums)
    for j in range(sums.shape[1]):
        for i in range(j + 1):
            factor = comb(j, i) * (-origins) ** (j - i)
            moved[:, j] += factor[:, None] * sums[:, i]
    return moved


def blocks(points: Matrix, size: int) -> Iterator[Indices]:
    """Rows in blocks of at most ``size`` neighbours, by halving along the widest side."""
    waiting = [np.arange(len(points))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= size:
            yield rows
            continue
        side = points[rows, int(np.argmax(np.ptp(points[rows], axis=0)))]
        halves = np.argpartition(side, len(rows) // 2)
        waiting += [rows[halves[len(rows) // 2 :]], rows[halves[: len(rows) // 2]]]
