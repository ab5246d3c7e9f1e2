r"""Class risks and derivatives of a linear model on rows in memory.

.. math:: R_i(\theta) = \sum_{j : y_j = i} c_j \, \ell(\theta x_j, i), \qquad
          \sum_{j : y_j = i} c_j = 1.

Rows sorted by class make all class gradients contiguous block products that together cost one
ordinary gradient. Each block runs on one thread with single-threaded BLAS, and results are handed
back in the order of the blocks, so sums are the same bit for bit on one core and on many.

Conventions, beside those of the contract
-----------------------------------------
``block`` : a ``slice`` of rows; ``loaded``, what ``load`` makes of it for the products.
``scores``, ``residual`` : arrays of shape ``(n_scores, rows)``.
``products`` : residuals times rows, in the layout of the features; ``finish`` makes a gradient.
Features stay as they came, float32 as float32; all arithmetic is in float64, a block at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import iadd
from typing import Any, TypeVar

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.losses.base import ScoreKernel, TrainedLoss
from equipoise.objectives.base import (
    FEW_DIGITS_PATIENCE,
    SINGLE_ROUNDING,
    Evaluation,
    Objective,
)
from equipoise.objectives.centering import MANY_INTERCEPTS, ShiftMoments
from equipoise.objectives.diagonal import SquareSums
from equipoise.objectives.kept_scores import KeptScores, ScoreRoom
from equipoise.objectives.matrices import Features, with_last_score
from equipoise.objectives.row_order import RowCut
from equipoise.objectives.score_inverse import ScoreInverse, sampled_blocks
from equipoise.objectives.thinning import drawn
from equipoise.threads import Workers

T = TypeVar("T")
# WORTH_A_THREAD: multiplications that are done before another thread has woken up.
WORTH_A_THREAD = 1e6
# BLOCKS_PER_PIECE: at least, so that a piece is worth handing to a worker.
BLOCKS_PER_PIECE = 4
# LEAST_PRODUCT_ROWS: of a block that residuals multiply: adding up products costs as much as each.
LEAST_PRODUCT_ROWS = 256
# PRODUCTS_PER_COLUMN: stored values per column in blocks of sparse rows that residuals multiply.
PRODUCTS_PER_COLUMN = 16
# SAMPLED_PER_PARAMETER: rows of a diagonal block of the Hessian, per parameter of a score;
# BLOCK_PASSES: what such blocks may cost, in passes.
SAMPLED_PER_PARAMETER, BLOCK_PASSES = 20, 4
# Floating-point warnings at trial points that lie far out.
QUIET: Any = {"over": "ignore", "invalid": "ignore"}


class LinearObjective(Objective):
    """Class risks of a linear model.

    Class ``i`` holds the rows ``bounds[i]:bounds[i + 1]`` of the features; ``shares`` is each row's
    share of its class, sample weights divided by their sum over the class. ``exact`` is the
    objective of which this one has fewer digits.
    """

    def __init__(
        self,
        features: Features,
        kernel: ScoreKernel,
        bounds: Indices,
        shares: Vector,
        workers: Workers,
        cut: RowCut | None = None,
        *,
        exact: "LinearObjective | None" = None,
    ) -> None:
        super().__init__(features, kernel, len(bounds) - 1)
        self._exact = exact
        if exact is not None:
            self.patience, self.rounding = FEW_DIGITS_PATIENCE, SINGLE_ROUNDING
        self._cut = cut = cut or RowCut()
        self.bounds, self.shares, self.workers = bounds, shares, workers
        self.labels = np.repeat(np.arange(self.n_classes), np.diff(bounds))
        self._shares = shares.astype(features.dtype)  # in the precision of residuals
        shape, dtype = (features.n_scores, self.n_rows), np.dtype(features.dtype)
        fits = features.n_scores * self.n_rows * dtype.itemsize <= cut.kept_bytes
        self._room = ScoreRoom(partial(np.empty, shape, dtype), fits=fits)
        values_per_row = features.row_cost + 3 * features.n_scores
        self._block_rows = max(cut.least_rows, self._fitting(values_per_row))
        # Adding up products of fewer values would cost more than the products.
        least = int(PRODUCTS_PER_COLUMN * features.width / max(1.0, 4 * features.row_cost))
        self._product_rows = max(self._block_rows, LEAST_PRODUCT_ROWS, least)
        # Hessians of a few rows are still worth sharing when one pass over them is not.
        light = self.n_rows * features.row_cost * features.n_scores <= WORTH_A_THREAD
        self._sharing = Workers() if light else workers
        # Threads that wait for each other would only crowd the cache with their gradients.
        alone = features.locked and self.size >= self._cut.wide
        self._summing = Workers() if alone else self._sharing

    def _fitting(self, values_per_row: float) -> int:
        """Rows whose values stay in the cache of one core."""
        return max(1, int(self._cut.block_bytes / (8 * values_per_row)))

    def evaluate(self, theta: Vector) -> Evaluation:
        raw, kept = self._begin(theta)
        room = kept.write()

        def work(piece: slice) -> Vector:
            risks = np.zeros(self.n_classes)
            with np.errstate(**QUIET):
                for block in self._blocks(piece):
                    scores = self.features.scores(raw, self.features.load(block))
                    losses = self.kernel.losses(scores, self.labels[block])
                    if room is not None:
                        room[:, block] = scores
                    risks += self._class_sums(losses, block)
            return risks

        return Evaluation(theta, self._total(work, self._pieces()) + self.offsets, kept)

    def evaluate_with_gradients(self, theta: Vector) -> tuple[Evaluation, Matrix]:
        if self.size >= self._cut.wide:  # no block stays in the cache beside its gradient
            state = self.evaluate(theta)
            return state, self.class_gradients(state)
        # Block by block, while it is in the cache.
        raw, kept = self._begin(theta)
        room = kept.write()
        piece_risks: dict[int, float] = {}  # risks of pieces, by where they start

        def part(block: slice) -> tuple[float, Matrix]:
            loaded = self.features.load(block)
            scores = self.features.scores(raw, loaded)
            labels, shares = self.labels[block], self._shares[block]
            risk = float(self.kernel.losses(scores, labels) @ shares)
            if room is not None:
                room[:, block] = scores
            return risk, self.features.adjoint(self.kernel.residual(scores, labels, shares), loaded)

        def products(piece: slice) -> Vector:
            with np.errstate(**QUIET):
                parts = [part(block) for block in self._blocks(piece)]
                piece_risks[piece.start] = sum(risk for risk, _ in parts)
                return self.features.finish(reduce(iadd, (products for _, products in parts)))

        pieces, risks = list(self._pieces(by_class=True)), np.zeros(self.n_classes)
        gradients = self._gathered(products, pieces)
        for piece in pieces:
            risks[self.labels[piece.start]] += piece_risks[piece.start]
        return Evaluation(theta, risks + self.offsets, kept), gradients

    def class_gradients(self, state: Evaluation, spent: Matrix | None = None) -> Matrix:
        pieces = list(self._pieces(self.size, by_class=True))
        return self._gathered(lambda piece: self._summed(state, piece, self._shares), pieces, spent)

    def _begin(self, theta: Vector) -> tuple[Matrix, KeptScores]:
        """A parameter in raw units, unfolded, and what is kept of its scores."""
        self.n_evaluations += 1
        raw = self._unfolded(theta)

        def compute(place: tuple[slice, slice]) -> Matrix:
            start, stop, _ = place[1].indices(self.n_rows)
            with np.errstate(**QUIET):
                scores = self.features.scores(raw, self.features.load(slice(start, stop)))
                self.kernel.losses(scores, self.labels[start:stop])
            return scores[place[0]]

        return raw, KeptScores(self._room, compute)

    def _unfolded(self, theta: Vector) -> Matrix:
        """A parameter in raw units, in the precision of the rows."""
        with np.errstate(**QUIET):
            raw = self.features.unfold(self.features.raw(theta))
            return raw.astype(self.features.dtype, copy=False)

    def _gathered(
        self, products: Callable[[slice], Vector], pieces: list[slice], spent: Matrix | None = None
    ) -> Matrix:
        """Gradients of pieces, summed by the class that owns them, always in the same order."""
        gradients = np.empty((self.n_classes, self.size)) if spent is None else spent
        gradients[np.diff(self.bounds) == 0] = 0

        def work(piece: slice) -> Vector | None:
            part, owner = products(piece), self.labels[piece.start]
            if piece.start > self.bounds[owner]:
                return part
            gradients[owner] = part  # here, not by one thread for all
            return None

        for piece, part in zip(pieces, self._summing.map(work, pieces), strict=True):
            if part is not None:
                gradients[self.labels[piece.start]] += part
        return gradients

    def gradient(self, state: Evaluation, mass: Vector) -> Vector:
        scale = self._scale(mass)
        pieces = self._pieces(self.size)
        return self._total(lambda piece: self._summed(state, piece, scale), pieces)

    def hessian_product(self, state: Evaluation, mass: Vector, direction: Vector) -> Vector:
        scale, along = self._scale(mass), self._unfolded(direction)
        pieces = self._pieces(self.size)
        return self._total(lambda piece: self._summed(state, piece, scale, along), pieces)

    def hessian(self, theta: Vector, mass: Vector, *, single: bool = False) -> Matrix:
        dtype = np.dtype(np.float32 if single else np.float64)
        scale, raw = self._scale(mass), self.features.unfold(self.features.raw(theta))
        free = max(1, self.features.n_scores - 1) * self.features.width
        step = max(256, self._fitting(self.size))

        def work(piece: slice) -> Matrix:
            total = np.zeros((free, free))
            for block in self._blocks(piece, step):
                loaded, labels = self.features.load(block), self.labels[block]
                kept = self.features.scores(raw, loaded)
                self.kernel.losses(kept, labels)
                X, kept, shares = (
                    each.astype(dtype, copy=False)
                    for each in (self.features.design(loaded), kept, scale[block])
                )
                total += self.kernel.hessian(X, kept, labels, shares)
            return total

        pieces = self._pieces(self.size**2, block_rows=step, fewest=1)
        total = reduce(iadd, self.workers.map(work, pieces))
        return total if self.features.n_scores == 1 else with_last_score(self.features, total)

    @property
    def keeps_probabilities(self) -> bool:
        """Whether the loss does: its curvature along a score is then p (1 - p)."""
        return self.kernel.keeps_probabilities

    def hessian_diagonal(self, state: Evaluation, mass: Vector) -> Vector | None:
        if not self.keeps_probabilities:
            return None
        scale = self._scale(mass)

        def part(block: slice) -> SquareSums:
            kept = state.kept[:, block]
            weights = kept * (1 - kept) * scale[block]
            return SquareSums.of(self.features, weights, self.features.load(block))

        def work(piece: slice) -> SquareSums:
            return reduce(SquareSums.plus, map(part, self._blocks(piece, self._product_rows)))

        sums = self._sharing.map(work, self._pieces(self.size))
        return reduce(SquareSums.plus, sums).finished(self.features)

    def share(self, work: Callable[[slice], T], pieces: Iterable[slice]) -> Iterable[T]:
        return self.workers.map(work, pieces)

    def score_inverse(self, state: Evaluation, mass: Vector, ridges: Vector) -> ScoreInverse | None:
        width, n_rows = self.features.width, SAMPLED_PER_PARAMETER * self.features.width
        passes = n_rows * width / (2 * self.n_rows)  # what they cost: risks and all gradients
        if not (self.keeps_probabilities and self._room.fits and passes <= BLOCK_PASSES):
            return None
        kept, scale = state.kept[:, :], self._scale(mass)
        blocks = sampled_blocks(
            self.features, lambda score: kept[score], scale, n_rows, self.workers
        )
        return ScoreInverse(self.features, blocks, ridges)

    def shifted(self, state: Evaluation, shift: Vector, theta: Vector, risks: Vector) -> Evaluation:
        kept, room = state.kept.changed(lambda part: self.kernel.moved(part, shift))

        def work(piece: slice) -> None:
            for block in self._blocks(piece):
                room[:, block] = self.kernel.moved(room[:, block], shift)

        if room is not None:
            list(self._sharing.map(work, self._pieces()))
        return Evaluation(theta, risks, kept)

    def growths(self, state: Evaluation, shift: Vector) -> Vector:
        def work(piece: slice) -> Vector:
            growths = np.zeros(self.n_classes)
            for block in self._blocks(piece):
                growth = self.kernel.growth(state.kept[:, block], self.labels[block], shift)
                growths += self._class_sums(growth, block)
            return growths

        return self._total(work, self._pieces())

    def moments_at(self, state: Evaluation, shift: Vector, mass: Vector) -> ShiftMoments:
        scale, n = self._scale(mass), len(shift)
        many = n > MANY_INTERCEPTS

        def work(piece: slice) -> Matrix:
            total = np.zeros(self.n_classes + n + (n if many else n * n))
            growths, slope, curvature = np.split(total, [self.n_classes, self.n_classes + n])
            for block in self._blocks(piece):
                kept, labels = state.kept[:, block], self.labels[block]
                if np.any(shift):
                    growths += self._class_sums(self.kernel.growth(kept, labels, shift), block)
                    kept = self.kernel.moved(kept, shift)
                moments = self.kernel.moments(kept, labels, scale[block], diagonal=many)
                slope += moments[0]
                curvature += moments[1].ravel()
            return total

        total = self._total(work, self._pieces(n**2))
        growths, slope, curvature = np.split(total, [self.n_classes, self.n_classes + n])
        return ShiftMoments(growths, slope, curvature if many else curvature.reshape(n, n))

    def risk_gradients(self, state: Evaluation, shift: Vector) -> tuple[Vector, Matrix]:
        k, by = self.n_classes, shift.astype(self.features.dtype)
        odds = np.exp(by)

        def work(piece: slice) -> Matrix:
            total = np.zeros((k, 1 + k), self.features.dtype)
            for block in self._blocks(piece):
                kept, labels = state.kept[:, block], self.labels[block]
                sums = np.maximum(odds @ kept, np.finfo(kept.dtype).tiny)
                total[:, 0] += self._class_sums(np.log(sums) - by[labels], block)
                # Sums by class as one product: classes of few rows lie side by side.
                starts = np.diff(labels, prepend=-1) > 0
                by_class = np.zeros((len(labels), np.count_nonzero(starts)), kept.dtype)
                rows = np.arange(len(labels))
                by_class[rows, np.cumsum(starts) - 1] = self._shares[block] / sums
                total[labels[starts], 1:] += np.dot(kept, by_class).T
            return total

        total = self._total(work, self._pieces(k * k))
        gradients = total[:, 1:]
        gradients *= odds
        # Rows sum to zero: a small difference to one keeps its digits as a sum of the others.
        diagonal = np.diag_indices(k)
        gradients[diagonal] = 0.0
        gradients[diagonal] = -gradients.sum(axis=1)
        return total[:, 0].astype(np.float64), gradients

    def intercept_product(
        self, state: Evaluation, shift: Vector, mass: Vector
    ) -> Callable[[Vector], Vector] | None:
        if not self.keeps_probabilities or self.features.n_scores == 1:
            return None
        scale, odds = self._scale(mass), np.exp(shift).astype(self.features.dtype)
        shares = np.empty_like(scale)
        mean = self._mean_probabilities(state, odds, scale, shares)

        def product(direction: Vector) -> Vector:
            along = odds * direction.astype(odds.dtype)

            def weights(kept: Matrix, block: slice) -> Vector:
                return np.asarray(scale[block] * shares[block] ** 2 * (along @ kept))

            return np.asarray(mean * direction - odds * self._scores_times(state, weights))

        return product

    def mean_probabilities(self, state: Evaluation, shift: Vector, mass: Vector) -> Vector:
        scale, odds = self._scale(mass), np.exp(shift).astype(self.features.dtype)
        return self._mean_probabilities(state, odds, scale, np.empty_like(scale))

    def _mean_probabilities(
        self, state: Evaluation, odds: Vector, scale: Vector, shares: Vector
    ) -> Vector:
        """Scaled probabilities, summed; ``shares`` become one over the sum of each row's odds."""

        def weights(kept: Matrix, block: slice) -> Vector:
            shares[block] = 1 / np.maximum(odds @ kept, np.finfo(kept.dtype).tiny)
            return np.asarray(scale[block] * shares[block])

        return np.asarray(odds * self._scores_times(state, weights))

    def _scores_times(
        self, state: Evaluation, weights: Callable[[Matrix, slice], Vector]
    ) -> Vector:
        """What is kept, times a weight of each row, summed over rows."""

        def work(piece: slice) -> Vector:
            out = np.zeros(self.features.n_scores)
            for block in self._blocks(piece, self._product_rows):
                kept = state.kept[:, block]
                out += np.dot(kept, weights(kept, block))
            return out

        return self._total(work, self._pieces())

    def with_loss(self, loss: TrainedLoss) -> "LinearObjective":
        kernel = loss.kernel(self.n_classes)
        return self._like(
            LinearObjective(
                self.features, kernel, self.bounds, self.shares, self.workers, self._cut
            )
        )

    def rougher(self) -> "LinearObjective | None":
        if self._exact is not None or not self.keeps_probabilities:
            return None
        rows = self.features.single(), self.kernel, self.bounds, self.shares
        return self._like(LinearObjective(*rows, self.workers, self._cut, exact=self))

    def sharper(self) -> "LinearObjective | None":
        return self._exact

    def thin(self, rows_per_class: int) -> "LinearObjective":
        chosen, shares, bounds = [], [], [0]
        for start, stop in pairwise(self.bounds):
            places, chances = drawn(self._sizes[start:stop], rows_per_class)
            chosen.append(start + places)
            class_shares = self.shares[chosen[-1]] / chances
            shares.append(class_shares / class_shares.sum())
            bounds.append(bounds[-1] + len(places))
        rows = self.features.take(np.concatenate(chosen)), self.kernel
        return self._like(
            LinearObjective(
                *rows, np.array(bounds), np.concatenate(shares), self.workers, self._cut
            )
        )

    @cached_property
    def _sizes(self) -> Vector:
        """Sizes of rows for ``drawn``: half by their shares, half by their squared lengths.

        Lengths are in units in which all columns have the same mean square. By lengths alone some
        rows would stand for very many others.
        """
        step = max(256, self._fitting(8 * self.features.width))
        out = np.empty(self.n_rows)

        def squares(block: slice) -> Matrix:
            return np.square(self.features.design(self.features.load(block)))

        def by_column(piece: slice) -> Vector:
            blocks = self._blocks(piece, step)
            return reduce(iadd, (self.shares[block] @ squares(block) for block in blocks))

        def fill(piece: slice) -> None:
            for block in self._blocks(piece, step):
                out[block] = np.dot(squares(block), units)

        with np.errstate(**QUIET):
            means = self._total(by_column, self._pieces()) / self.n_classes
            units = 1 / np.maximum(means, np.finfo(float).tiny)
            list(self._sharing.map(fill, self._pieces()))
        # A row whose square overflows dominates its column.
        out[~np.isfinite(out)] = self.n_rows
        out *= self.shares
        # Rows of zeros all have the same length.
        sums = np.maximum(np.bincount(self.labels, weights=out), np.finfo(float).tiny)
        return out / sums[self.labels] + self.shares

    def _scale(self, mass: Vector) -> Vector:
        """The share of each row in the weighted risk."""
        return np.asarray(self.shares * mass[self.labels], dtype=self.features.dtype)

    def _summed(
        self, state: Evaluation, piece: slice, scale: Vector, along: Matrix | None = None
    ) -> Vector:
        """Gradient of the scaled losses of the rows of a piece, or how it bends along a change."""

        def part(block: slice) -> Matrix:
            loaded, inputs = self.features.load(block), (state.kept[:, block], self.labels[block])
            if along is None:
                residual = self.kernel.residual(*inputs, scale[block])
            else:
                change = self.features.scores(along, loaded)
                residual = self.kernel.hessian_product(*inputs, scale[block], change)
            return self.features.adjoint(residual, loaded)

        blocks = self._blocks(piece, self._product_rows)
        return self.features.finish(reduce(iadd, map(part, blocks)))

    def _class_sums(self, values: Vector, block: slice) -> Vector:
        """Shares times values, summed by class."""
        weighted = values * self.shares[block]
        sums = np.bincount(self.labels[block], weights=weighted, minlength=self.n_classes)
        return np.asarray(sums, dtype=np.float64)

    def _total(self, work: Callable[[slice], Matrix], pieces: Iterator[slice]) -> Matrix:
        """The sum over pieces, always in the same order, in the memory of the first."""
        return reduce(iadd, self._sharing.map(work, pieces))

    def _blocks(self, piece: slice, step: int | None = None) -> Iterator[slice]:
        step = step or self._block_rows
        for start in range(piece.start, piece.stop, step):
            yield slice(start, min(start + step, piece.stop))

    def _pieces(
        self,
        sum_size: int = 0,
        *,
        by_class: bool = False,
        block_rows: int | None = None,
        fewest: int = BLOCKS_PER_PIECE,
    ) -> Iterator[slice]:
        """A fixed cut of the rows, or of those of each class, for the workers.

        It must not depend on the number of threads.
        """
        count = self._cut.pieces if sum_size < self._cut.wide else 2
        block_rows = block_rows or self._block_rows
        step = block_rows * max(fewest, -(-self.n_rows // (count * block_rows)))
        for start, stop in pairwise(self.bounds if by_class else [0, self.n_rows]):
            yield from self._blocks(slice(start, stop), step)
