r"""Class risks and derivatives of a linear model: all that a solver may ask of the data.

.. math:: R_i(\theta) = \sum_{j : y_j = i} c_j \, \ell(\theta x_j, i), \qquad
          \sum_{j : y_j = i} c_j = 1.

Rows sorted by class make all class gradients contiguous block products that together cost one
ordinary gradient. Each block runs on one thread with single-threaded BLAS, and results are handed
back in the order of the blocks, so sums are the same bit for bit on one core and on many.

Conventions
-----------
``theta`` : flat float64 vector of length ``size``. Its layout belongs to the features; ``unfold``
    shows it as ``(n_scores, n_features + fit_intercept)`` with the intercepts last.
``mass`` : float64 vector with one entry per class.
``state`` : a point with everything computed there that later questions need again.
``block`` : a ``slice`` of rows; ``loaded``, what ``load`` makes of it for the products.
``scores``, ``residual`` : arrays of shape ``(n_scores, rows)``.
``pulled`` : residuals times rows, in the features' own layout; ``finish`` turns it into a gradient.
Features stay as they came, float32 as float32; all arithmetic is in float64, a block at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import iadd
from typing import Any, NamedTuple, TypeVar

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.losses.base import ScoreKernel, TrainedLoss
from equipoise.objectives.matrices import Features

T = TypeVar("T")
BLOCK_BYTES = 1 << 21
# Fewer multiplications than this are done before another thread has woken up.
WORTH_A_THREAD = 1e6
# Pieces are handed to workers: enough to share, and large enough to be worth handing over.
PIECES = 16
BLOCKS_PER_PIECE = 4
# Sums with this many numbers are formed in fewer pieces: adding them up would cost more.
WIDE = 1 << 18
# A trial point may lie far too far out.
QUIET: Any = {"over": "ignore", "invalid": "ignore"}
CENTER_STEPS, CENTER_HALVINGS = 30, 10
# A rise of the weighted risk by so small a share may be rounding.
ROUNDING = 1e-13
# With more intercepts than this, Newton steps in them use the diagonal alone.
MANY_INTERCEPTS = 1000


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A parameter, the class risks there, and what is kept of the scores for derivatives."""

    theta: Vector
    risks: Vector
    kept: Any


class Workers:
    """Maps a function over blocks, in order; with one worker it is the built-in ``map``.

    Threads of its own each ``begin`` with a call.
    """

    def __init__(self, count: int = 1, begin: Callable[[], object] | None = None) -> None:
        self._pool = ThreadPoolExecutor(count, initializer=begin) if count > 1 else None

    def map(self, function: Callable[[Any], T], blocks: Iterable[Any]) -> Iterator[T]:
        work = list(blocks)
        if self._pool is None or len(work) == 1:
            return map(function, work)
        return self._pool.map(function, work)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)


@dataclass(frozen=True)
class ShiftedScores:
    """What is kept after a shift of the scores, computed where it is asked for."""

    kernel: ScoreKernel
    kept: Matrix
    shift: Vector

    def __getitem__(self, place: tuple[slice, slice]) -> Matrix:
        return self.kernel.moved(self.kept[place], self.shift)


class ShiftMoments(NamedTuple):
    """What a shift of the scores does: growth of the class risks, then slope and curvature."""

    growths: Vector
    slope: Vector
    curvature: Matrix | Vector


class LinearObjective:
    """Class risks of a linear model.

    Class ``i`` holds the rows ``bounds[i]:bounds[i + 1]`` of the features; ``shares`` is each row's
    share of its class, sample weights divided by their sum over the class.
    """

    def __init__(
        self,
        features: Features,
        kernel: ScoreKernel,
        bounds: Indices,
        shares: Vector,
        workers: Workers,
    ) -> None:
        self.features, self.kernel, self.workers = features, kernel, workers
        self.bounds, self.shares = bounds, shares
        self.n_classes, self.n_rows, self.size = len(bounds) - 1, features.n_rows, features.size
        self.n_evaluations = 0  # how often the risks were evaluated
        self.flat = kernel.flat  # whether there are places without any curvature
        self.convex = kernel.convex  # whether the class risks are
        shift, scale = features.moments or (0.0, 1.0)  # what is taken off was rounded before
        # Of slopes, relative to the objective.
        self.rounding = 1e-15 * (1 + float(np.max(np.abs(shift) / scale)))
        self.labels = np.repeat(np.arange(self.n_classes), np.diff(bounds))
        # The largest class risk where all parameters are zero.
        zeros = np.zeros((kernel.n_scores, self.n_classes))
        self.zero_risk = float(kernel.losses(zeros, np.arange(self.n_classes)).max())
        self._block_rows = self._fitting(features.row_cost + 3 * features.n_scores)
        # Hessians of a few rows are still worth sharing when one pass over them is not.
        light = self.n_rows * features.row_cost * features.n_scores <= WORTH_A_THREAD
        self._sharing = Workers() if light else workers

    def _fitting(self, values_per_row: float) -> int:
        """Rows whose values, so many each, stay in a core's cache."""
        return max(256, int(BLOCK_BYTES / (8 * values_per_row)))

    @cached_property
    def squares(self) -> Vector:
        """Weights of the squared parameters that sum to the coefficients' squared norm.

        Intercepts have weight 0.
        """
        scaled, _ = self.unpack(np.ones(self.size))
        out = np.zeros((self.features.n_scores, self.features.width))
        out[:, : self.features.n_features] = scaled**2
        return self.features.fold(out)

    def pack(self, coef: Matrix, intercept: Vector) -> Vector:
        """Coefficients and intercepts as a parameter."""
        columns = [coef, intercept[:, None]] if self.features.fit_intercept else [coef]
        return self.features.standard(self.features.fold(np.hstack(columns)))

    def unpack(self, theta: Vector) -> tuple[Matrix, Vector]:
        """A parameter as coefficients ``(n_scores, n_features)`` and intercepts."""
        raw = self.features.unfold(self.features.raw(theta))
        coef = np.ascontiguousarray(raw[:, : self.features.n_features])
        return coef, raw[:, -1].copy() if self.features.fit_intercept else np.zeros(len(raw))

    def evaluate(self, theta: Vector) -> Evaluation:
        """Class risks at ``theta``: one pass over the data."""
        raw, kept = self._begin(theta)

        def work(piece: slice) -> Vector:
            risks = np.zeros(self.n_classes)
            with np.errstate(**QUIET):
                for block in self._blocks(piece):
                    scores = self.features.scores(raw, self.features.load(block))
                    losses = self.kernel.losses(scores, self.labels[block])
                    kept[:, block] = scores
                    risks += self._class_sums(losses, block)
            return risks

        return Evaluation(theta, self._total(work, self._pieces()), kept)

    def evaluate_with_gradients(self, theta: Vector) -> tuple[Evaluation, Matrix]:
        """``evaluate`` and ``class_gradients`` in one pass, block by block, while in the cache."""
        raw, kept = self._begin(theta)
        risks = np.zeros(self.n_classes)

        def part(block: slice) -> tuple[float, Matrix]:
            loaded = self.features.load(block)
            scores = self.features.scores(raw, loaded)
            labels, shares = self.labels[block], self.shares[block]
            risk = float(self.kernel.losses(scores, labels) @ shares)
            kept[:, block] = scores
            return risk, self.features.pull(self.kernel.residual(scores, labels, shares), loaded)

        def work(piece: slice) -> tuple[float, Vector]:
            with np.errstate(**QUIET):
                found = [part(block) for block in self._blocks(piece)]
                pulled = reduce(iadd, (pulled for _, pulled in found))
                return sum(risk for risk, _ in found), self.features.finish(pulled)

        pieces, parts = list(self._pieces(by_class=True)), []
        for piece, (risk, pulled) in zip(pieces, self._sharing.map(work, pieces), strict=True):
            risks[self.labels[piece.start]] += risk
            parts.append(pulled)
        return Evaluation(theta, risks, kept), self._gathered(pieces, parts)

    def class_gradients(self, state: Evaluation) -> Matrix:
        """Gradients of all class risks, shape ``(n_classes, size)``: one pass."""
        pieces = list(self._pieces(by_class=True))
        parts = self._sharing.map(lambda piece: self._pulled(state, piece, self.shares), pieces)
        return self._gathered(pieces, parts)

    def _begin(self, theta: Vector) -> tuple[Matrix, Matrix]:
        """A parameter in raw units, unfolded, and room for what is kept of its scores."""
        self.n_evaluations += 1
        with np.errstate(**QUIET):
            raw = self.features.unfold(self.features.raw(theta))
        return raw, np.empty((self.features.n_scores, self.n_rows))

    def _gathered(self, pieces: list[slice], parts: Iterable[Vector]) -> Matrix:
        """Gradients of pieces, summed by the class that owns them."""
        gradients, written = np.empty((self.n_classes, self.size)), -1
        for owner, part in zip((self.labels[piece.start] for piece in pieces), parts, strict=True):
            if owner == written:
                gradients[owner] += part
            else:
                gradients[owner], written = part, owner
        return gradients

    def gradient(self, state: Evaluation, mass: Vector) -> Vector:
        """Gradient of the weighted risk: one pass."""
        scale = self._scale(mass)
        pieces = self._pieces(self.size)
        return self._total(lambda piece: self._pulled(state, piece, scale), pieces)

    def bend(self, state: Evaluation, mass: Vector, direction: Vector) -> Vector:
        """The Hessian of the weighted risk times a direction: one pass."""
        scale, along = self._scale(mass), self.features.unfold(self.features.raw(direction))
        pieces = self._pieces(self.size)
        return self._total(lambda piece: self._pulled(state, piece, scale, along), pieces)

    def hessian(self, state: Evaluation, mass: Vector, *, single: bool = False) -> Matrix:
        """Hessian of the weighted risk, regular on the directions that change the model.

        With ``single``, products may be formed in single precision.
        """
        dtype = np.dtype(np.float32 if single else np.float64)
        scale = self._scale(mass).astype(dtype, copy=False)
        step = self._fitting(self.size)

        def work(piece: slice) -> Matrix:
            size = self.size if self.features.n_scores == 1 else self.size - self.features.width
            total = np.zeros((size, size))
            for block in self._blocks(piece, step):
                X = self.features.design(self.features.load(block)).astype(dtype, copy=False)
                kept = state.kept[:, block].astype(dtype, copy=False)
                total += self.kernel.hessian(X, kept, self.labels[block], scale[block])
            return total

        pieces = self._pieces(self.size**2, block_rows=step, fewest=1)
        free = reduce(iadd, self.workers.map(work, pieces))
        return free if self.features.n_scores == 1 else self._with_last_score(free)

    def _with_last_score(self, free: Matrix) -> Matrix:
        """The whole Hessian from the blocks of all scores but the last.

        Equal shifts of all scores change nothing: rows of blocks sum to zero. Along those shifts
        the matrix is made regular, which no direction that a solver takes can notice.
        """
        k, width = self.features.n_scores, self.features.width
        out = np.zeros((k, width, k, width))
        out[:-1, :, :-1, :] = free.reshape(k - 1, width, k - 1, width)
        out[-1] = -out[:-1].sum(axis=0)
        out[:, :, -1, :] = -out[:, :, :-1, :].sum(axis=2)
        typical = np.maximum(np.einsum("axax->x", out) / k, np.finfo(float).tiny)
        out += np.einsum("ab,xy->axby", np.ones((k, k)) / k, np.diag(typical))
        places = np.arange(float(k * width)).reshape(k, width)
        order = self.features.fold(places).astype(np.intp)
        return np.asarray(out.reshape(k * width, k * width)[np.ix_(order, order)])

    def center(self, state: Evaluation, mass: Vector) -> Evaluation:
        """The state with intercepts that minimise the weighted risk, coefficients unchanged.

        A class without mass may leave the model: its intercept has then gone to minus infinity.
        """
        if not self.features.fit_intercept:
            return state
        shift, growths = self._center_shift(state, mass)
        risks = state.risks + growths
        if np.any(np.isinf(shift)) and np.count_nonzero(mass) == 1:
            risks[mass > 0] = 0  # the only class left is certain, however small it was
        theta = state.theta.copy()
        finite = np.where(np.isfinite(shift), shift, 0.0)
        self.features.unfold(theta)[:, -1] += finite / self.features.unit
        moved = ShiftedScores(self.kernel, state.kept, shift)
        return replace(state, theta=theta, risks=risks, kept=moved)

    def _center_shift(self, state: Evaluation, mass: Vector) -> tuple[Vector, Vector]:
        """The shift after which the weighted risk has no slope, and what it adds to the risks."""
        shift = self.kernel.departed(mass)
        live = np.isfinite(shift)
        if not np.any(live):
            return shift, self._growths(state, shift)
        here, reach = self._moments_at(state, shift, mass), 1.0
        for _ in range(CENTER_STEPS):
            slope = np.where(live, here.slope, 0.0)
            if float(np.abs(slope).sum()) <= 1e-13:
                break
            whole = _intercept_step(here.curvature, slope, live)
            step = np.clip(whole, -reach, reach)
            if self.flat and not np.array_equal(step, whole):
                reach *= 2  # on a slope without curvature, ever longer steps
            # After a Newton step this short the slope is as much smaller again.
            if here.curvature.ndim == 2 and float(np.abs(step).max()) < self.kernel.settled:
                return shift - step, self._growths(state, shift - step)
            moved = self._search_shift(state, mass, here, shift, step)
            if moved is None:
                break
            shift, here = moved
        return shift, here.growths

    def _search_shift(
        self, state: Evaluation, mass: Vector, here: ShiftMoments, shift: Vector, step: Vector
    ) -> tuple[Vector, ShiftMoments] | None:
        """The step, halved until it does not raise the weighted risk; None where all do."""
        limit = float(mass @ here.growths) + ROUNDING * (1 + float(mass @ state.risks))
        for halvings in range(CENTER_HALVINGS):
            trial = shift - step / 2**halvings
            there = self._moments_at(state, trial, mass)
            if float(mass @ there.growths) <= limit:
                return trial, there
        return None

    def _growths(self, state: Evaluation, shift: Vector) -> Vector:
        """What a shift of the scores adds to the class risks."""

        def work(piece: slice) -> Vector:
            growths = np.zeros(self.n_classes)
            for block in self._blocks(piece):
                growth = self.kernel.growth(state.kept[:, block], self.labels[block], shift)
                growths += self._class_sums(growth, block)
            return growths

        return self._total(work, self._pieces())

    def _moments_at(self, state: Evaluation, shift: Vector, mass: Vector) -> ShiftMoments:
        """Growth of the risks, slope and curvature of the weighted risk after a shift."""
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
                found = self.kernel.moments(kept, labels, scale[block], diagonal=many)
                slope += found[0]
                curvature += found[1].ravel()
            return total

        total = self._total(work, self._pieces(n**2))
        growths, slope, curvature = np.split(total, [self.n_classes, self.n_classes + n])
        return ShiftMoments(growths, slope, curvature if many else curvature.reshape(n, n))

    def with_loss(self, loss: TrainedLoss) -> "LinearObjective":
        """The same rows with another loss."""
        kernel = loss.kernel(self.n_classes)
        return LinearObjective(self.features, kernel, self.bounds, self.shares, self.workers)

    def thin(self, rows_per_class: int) -> "LinearObjective":
        """The same problem on at most so many rows of each class (a fixed random choice)."""
        random = np.random.default_rng(0)
        # Rows that weigh nothing could leave a class without any weight.
        weighty = [a + np.flatnonzero(self.shares[a:b]) for a, b in pairwise(self.bounds)]
        chosen = [np.sort(random.permutation(rows)[:rows_per_class]) for rows in weighty]
        rows = np.concatenate(chosen)
        bounds = np.concatenate([[0], np.cumsum([len(part) for part in chosen])])
        shares = self.shares[rows].astype(np.float64)
        totals = np.add.reduceat(shares, bounds[:-1])
        shares /= np.repeat(totals, np.diff(bounds))
        return LinearObjective(self.features.take(rows), self.kernel, bounds, shares, self.workers)

    def _scale(self, mass: Vector) -> Vector:
        """Each row's share of the weighted risk."""
        return np.asarray(self.shares * mass[self.labels])

    def _pulled(
        self, state: Evaluation, piece: slice, scale: Vector, along: Matrix | None = None
    ) -> Vector:
        """Gradient of the scaled losses of the rows of a piece, or how it bends along a change."""

        def part(block: slice) -> Matrix:
            loaded, given = self.features.load(block), (state.kept[:, block], self.labels[block])
            if along is None:
                residual = self.kernel.residual(*given, scale[block])
            else:
                change = self.features.scores(along, loaded)
                residual = self.kernel.bend(*given, scale[block], change)
            return self.features.pull(residual, loaded)

        return self.features.finish(reduce(iadd, map(part, self._blocks(piece))))

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
        count = PIECES if sum_size < WIDE else 2
        block_rows = block_rows or self._block_rows
        step = block_rows * max(fewest, -(-self.n_rows // (count * block_rows)))
        for start, stop in pairwise(self.bounds if by_class else [0, self.n_rows]):
            yield from self._blocks(slice(start, stop), step)


def _intercept_step(curvature: Matrix | Vector, slope: Vector, live: Mask) -> Vector:
    """A Newton step in the intercepts; with many classes, one by the diagonal alone."""
    if curvature.ndim == 1:
        # Two classes that are taken for each other make whole steps overshoot by a factor of two.
        return np.asarray(slope / (1.5 * np.maximum(curvature, 1e-300)))
    step, hessian = np.zeros(len(slope)), curvature[np.ix_(live, live)]
    if len(slope) > 1:  # equal shifts change nothing: left singular, rounding would choose one
        hessian = hessian + np.trace(hessian) / len(hessian)
    # Where a loss is linear there is no curvature: the step is then as long as it may be.
    slight = 1e-12 * max(float(np.trace(hessian)) / len(hessian), 1e-3)
    step[live] = np.linalg.solve(hessian + slight * np.eye(len(hessian)), slope[live])
    return step
