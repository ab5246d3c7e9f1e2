r"""Class risks and derivatives of a linear model, by blocks of rows sorted by class.

Rows sorted by class make all class gradients contiguous block products that together cost one
ordinary gradient.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from equipoise.oracles.base import Matrix, Oracle, State
from equipoise.oracles.kernels import Array, kernel_for
from equipoise.oracles.rows import Rows
from equipoise.oracles.threads import Workers
from equipoise.priors import Vector

BLOCK_BYTES = 1 << 20
PIECES = 16


@dataclass(frozen=True)
class Piece:
    """Consecutive rows for one worker; ``owner`` is their class when they have only one."""

    start: int
    stop: int
    owner: int


class LinearOracle(Oracle):
    """Cross-entropy class risks of a linear model.

    Parameters
    ----------
    rows : Rows
        The features, sorted by class.
    bounds : array of shape (n_classes + 1,)
        Class ``i`` holds the rows ``bounds[i]:bounds[i + 1]``.
    shares : array of shape (n_rows,)
        Each row's share of its class: sample weights divided by their sum over the class.
    workers : Workers
        Threads to share the blocks.
    """

    def __init__(
        self, rows: Rows, bounds: NDArray[np.intp], shares: Vector, workers: Workers
    ) -> None:
        self.rows, self.bounds, self.workers = rows, bounds, workers
        self.shares = shares.astype(rows.dtype, copy=False)
        self.n_classes, self.n_rows = len(bounds) - 1, rows.n_rows
        self.kernel = kernel_for(self.n_classes)
        self.shape = (self.kernel.n_scores, rows.width)
        self.labels = np.repeat(np.arange(self.n_classes), np.diff(bounds))
        stored = rows.row_cost + 3 * self.kernel.n_scores
        self.block_rows = max(256, int(BLOCK_BYTES / (stored * rows.dtype.itemsize)))

    def evaluate(self, theta: Matrix) -> State:
        cast = theta.astype(self.rows.dtype)
        probabilities = np.empty((self.shape[0], self.n_rows), self.rows.dtype)

        def work(piece: Piece) -> Vector:
            risks = np.zeros(self.n_classes)
            for block in self._blocks(piece):
                scores, labels = self.rows.scores(cast, block), self.labels[block]
                losses = self.kernel.losses(scores, labels)
                probabilities[:, block] = scores
                risks += self._class_sums(losses, block)
            return risks

        risks = np.sum(list(self.workers.map(work, self._pieces())), axis=0)
        return State(theta, risks, probabilities)

    def class_gradients(self, state: State) -> NDArray[np.float64]:
        gradients = np.zeros((self.n_classes, *self.shape))
        pieces = list(self._pieces(by_class=True))

        def work(piece: Piece) -> Matrix:
            return self._sum(piece, lambda block: self._pull(state, block, self.shares[block]))

        for piece, part in zip(pieces, self.workers.map(work, pieces), strict=True):
            gradients[piece.owner] += part
        return gradients

    def gradient(self, state: State, mass: Vector) -> Matrix:
        scale = self._scale(mass)

        def work(piece: Piece) -> Matrix:
            return self._sum(piece, lambda block: self._pull(state, block, scale[block]))

        return np.sum(list(self.workers.map(work, self._pieces())), axis=0)

    def hessian_product(self, state: State, mass: Vector, direction: Matrix) -> tuple[Matrix, Vector]:
        scale, cast = self._scale(mass), direction.astype(self.rows.dtype)

        def work(piece: Piece) -> tuple[Matrix, Vector]:
            product, slopes = np.zeros(self.shape), np.zeros(self.n_classes)
            for block in self._blocks(piece):
                p, labels = state.probabilities[:, block], self.labels[block]
                moved = self.rows.scores(cast, block)
                residual = self.kernel.residual(p, labels, np.ones(len(labels), p.dtype))
                slopes += self._class_sums((residual * moved).sum(axis=0), block)
                product += self.rows.pull(self.kernel.curve(p, moved) * scale[block], block)
            return product, slopes

        parts = list(self.workers.map(work, self._pieces()))
        return np.sum([p for p, _ in parts], axis=0), np.sum([s for _, s in parts], axis=0)

    def hessian(self, state: State, mass: Vector) -> Matrix:
        size = self.shape[0] * self.shape[1]
        scale = self._scale(mass)

        def work(piece: Piece) -> Matrix:
            return self._sum(piece, lambda block: self._hessian_block(state, block, scale[block]))

        return np.sum(list(self.workers.map(work, self._pieces())), axis=0).reshape(size, size)

    def _hessian_block(self, state: State, block: slice, scale: Array) -> Array:
        r"""Blocks :math:`\sum_j s_j (\delta_{ab} p_{ja} - p_{ja} p_{jb}) x_j x_j^\top`.

        The second term is one symmetric product of the rows :math:`p_j \otimes x_j`.
        """
        X, p = self.rows.design(block), state.probabilities[:, block]
        if self.shape[0] == 1:
            return (X * (self.kernel.spread(p)[0] * scale)[:, None]).T @ X
        spread = X * np.sqrt(scale)[:, None]
        wide = (p.T[:, :, None] * spread[:, None, :]).reshape(len(X), -1)
        out = -(wide.T @ wide).reshape(*self.shape, *self.shape)
        for a, share in enumerate(np.sqrt(p)):
            scaled = spread * share[:, None]
            out[a, :, a, :] += scaled.T @ scaled
        return out

    def diagonal_blocks(self, state: State, mass: Vector) -> NDArray[np.float64]:
        scale = self._scale(mass)

        def part(block: slice) -> Array:
            X, spread = self.rows.design(block), self.kernel.spread(state.probabilities[:, block])
            roots = np.sqrt(spread * scale[block])
            return np.stack([self._gram(X * root[:, None]) for root in roots])

        return np.sum(
            list(self.workers.map(lambda piece: self._sum(piece, part), self._pieces())), axis=0
        )

    @staticmethod
    def _gram(scaled: Array) -> Array:
        return scaled.T @ scaled

    def thin(self, rows_per_class: int) -> "LinearOracle":
        random = np.random.default_rng(0)
        chosen = [
            start + np.sort(random.permutation(stop - start)[:rows_per_class])
            for start, stop in pairwise(self.bounds)
        ]
        rows = np.concatenate(chosen)
        bounds = np.concatenate([[0], np.cumsum([len(part) for part in chosen])])
        shares = self.shares[rows].astype(np.float64)
        totals = np.add.reduceat(shares, bounds[:-1])
        shares /= np.repeat(totals, np.diff(bounds))
        return LinearOracle(self.rows.take(rows), bounds, shares, self.workers)

    def _scale(self, mass: Vector) -> Array:
        """Each row's share of the weighted risk."""
        return self.shares * mass.astype(self.rows.dtype)[self.labels]

    def _pull(self, state: State, block: slice, scale: Array) -> Matrix:
        p = state.probabilities[:, block]
        return self.rows.pull(self.kernel.residual(p, self.labels[block], scale), block)

    def _class_sums(self, values: Array, block: slice) -> Vector:
        """Shares times values, summed by class."""
        weighted = (values * self.shares[block]).astype(np.float64, copy=False)
        return np.bincount(self.labels[block], weights=weighted, minlength=self.n_classes)

    def _sum(self, piece: Piece, part):  # type: ignore[no-untyped-def]
        total = None
        for block in self._blocks(piece):
            value = part(block)
            total = value.astype(np.float64) if total is None else np.add(total, value, out=total)
        return total

    def _blocks(self, piece: Piece) -> Iterator[slice]:
        for start in range(piece.start, piece.stop, self.block_rows):
            yield slice(start, min(start + self.block_rows, piece.stop))

    def _pieces(self, *, by_class: bool = False) -> Iterator[Piece]:
        """A fixed cut of the rows: it must not depend on the number of threads."""
        step = max(self.block_rows, -(-self.n_rows // PIECES))
        if not by_class:
            for start in range(0, self.n_rows, step):
                yield Piece(start, min(start + step, self.n_rows), -1)
            return
        for owner, (start, stop) in enumerate(pairwise(self.bounds)):
            for a in range(start, stop, step):
                yield Piece(a, min(a + step, stop), owner)
