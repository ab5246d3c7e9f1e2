r"""Class risks of a linear model on out-of-core data: sums over chunks, each read for every pass.

Every result is a sum over chunks of that of a :class:`LinearObjective` of one chunk, whose shares
are relative to all rows of a class. No scores are kept: risks and class gradients of a point come
from one pass, and a certificate takes two more (one for the gradient and the Hessian in the
intercepts, one along the step that they give). Coarse problems and sampled Hessians are those of a
sample of the rows that is read once and kept: an equal number of every class, all of a rare one.

A question is a function of a chunk's objective whose answer is a tuple of arrays. Questions, and
the maker that turns a chunk into an objective, can be pickled: they may go to where chunks are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.blocks.base import Answer, AskedOf, Block, Stream
from equipoise.losses.base import ScoreKernel, TrainedLoss
from equipoise.objectives.base import Evaluation, Objective
from equipoise.objectives.centering import ShiftMoments, intercept_step
from equipoise.objectives.linear_objective import LinearObjective
from equipoise.objectives.matrices import Features
from equipoise.objectives.row_order import by_class
from equipoise.objectives.survey import Survey
from equipoise.threads import ONE_BLAS_THREAD, Workers, limit_openmp

Question = Callable[[LinearObjective], Answer]
# MANY_GRADIENTS: numbers of class gradients above which no pass forms them beside the risks.
MANY_GRADIENTS = 1 << 22
# NO_GAIN: predicted decrease, as a share of the risk, at which Newton steps in the intercepts end.
NO_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class PartMaker:
    """Turns a block into an objective over its rows."""

    survey: Survey
    features: Features  # without rows: they know the units
    kernel: ScoreKernel

    def rows(self, place: int, block: Block) -> tuple[Any, Indices, Vector] | None:
        """Rows of positive weight, their class indices and weights; None where there are none."""
        block_rows = self.survey.again(place, block)
        if block_rows is None:
            return None
        X, labels, weights = block_rows
        if np.all(weights > 0):
            return X, labels, weights
        used = weights > 0
        return X[used], labels[used], weights[used]

    def __call__(self, place: int, block: Block) -> LinearObjective | None:
        rows = self.rows(place, block)
        if rows is None:
            return None
        return self.objective(*rows, self.survey.totals, Workers(), copied=False)

    def objective(
        self,
        X: Any,
        labels: Indices,
        weights: Vector,
        totals: Vector,
        workers: Workers,
        *,
        copied: bool = True,
    ) -> LinearObjective:
        """An objective over rows, shares of classes of these total weights."""
        order, bounds, shares = by_class(labels, weights, totals)
        ours = self.features
        rows = type(ours).in_order(X, order, ours.n_scores, ours.fit_intercept, copied=copied)
        return LinearObjective(rows.in_units_of(ours), self.kernel, bounds, shares, workers)


@dataclass(frozen=True, eq=False)
class OnOneThread:
    """A question that is answered on one thread of its process."""

    question: Callable[[Any], Answer]

    def __call__(self, part: Any) -> Answer:
        with limit_openmp(), ONE_BLAS_THREAD.held():
            return self.question(part)


@dataclass(frozen=True, eq=False)
class Risks:
    """Class risks at a point."""

    theta: Vector
    gradients: bool

    def __call__(self, part: LinearObjective) -> Answer:
        if not self.gradients:
            return (part.evaluate(self.theta).risks,)
        state, gradients = part.evaluate_with_gradients(self.theta)
        return state.risks, gradients


@dataclass(frozen=True, eq=False)
class Curvature:
    """The Hessian of the weighted risk."""

    theta: Vector
    mass: Vector
    single: bool

    def __call__(self, part: LinearObjective) -> Answer:
        return (part.hessian(self.theta, self.mass, single=self.single),)


@dataclass(frozen=True, eq=False)
class AfterShift:
    """Growth of the risks by a shift; under masses also gradients and curvature after it."""

    theta: Vector
    shift: Vector
    mass: Vector | None = None
    direction: Vector | None = None

    def __call__(self, part: LinearObjective) -> Answer:
        state = part.evaluate(self.theta)
        if self.mass is None:
            return (part.growths(state, self.shift),)
        moved = part.shifted(state, self.shift, self.theta, state.risks)
        if self.direction is not None:
            return (part.hessian_product(moved, self.mass, self.direction),)
        moments = part.moments_at(state, self.shift, self.mass)
        return (*moments, part.gradient(moved, self.mass))


class Point(NamedTuple):
    """A point: no scores, but what they are recomputed from, and gradients."""

    theta: Vector  # before the shift
    shift: Vector
    gradients: Matrix | None = None
    mass: Vector | None = None  # whose gradient and curvature in the intercepts are known
    gradient: Vector | None = None
    curvature: Matrix | Vector | None = None


class PartitionedObjective(Objective):
    """Class risks of a linear model on out-of-core data, with a sample of the rows in memory."""

    no_gain = NO_GAIN

    def __init__(self, stream: Stream, maker: PartMaker, sample: LinearObjective) -> None:
        super().__init__(maker.features, maker.kernel, len(maker.survey.classes))
        self.n_rows, self.sample_rows = maker.survey.n_rows, sample.n_rows
        self._stream, self._maker, self._sample = stream, maker, sample
        self._few = self.n_classes * self.size <= MANY_GRADIENTS
        self._last: tuple[tuple[Any, ...], Answer] = ((), ())

    def _total(self, question: Question) -> Answer:
        """The sum of the answers of all chunks, in an order that never changes: one pass."""
        return self._stream.total(AskedOf(self._maker, OnOneThread(question)))

    def evaluate(self, theta: Vector) -> Evaluation:
        return self._evaluate(theta, gradients=self._few)

    def evaluate_with_gradients(self, theta: Vector) -> tuple[Evaluation, Matrix]:
        state = self._evaluate(theta, gradients=True)
        return state, self.class_gradients(state)

    def _evaluate(self, theta: Vector, *, gradients: bool) -> Evaluation:
        self.n_evaluations += 1
        risks, *formed = self._total(Risks(theta, gradients))
        point = Point(theta, np.zeros(self.kernel.n_scores), formed[0] if formed else None)
        return Evaluation(theta, risks + self.offsets, point)

    def class_gradients(self, state: Evaluation, spent: Matrix | None = None) -> Matrix:
        if state.kept.gradients is None:
            return self._total(Risks(state.kept.theta, gradients=True))[1]
        return np.asarray(state.kept.gradients)

    def gradient(self, state: Evaluation, mass: Vector) -> Vector:
        point = state.kept
        if point.gradients is not None:
            return np.asarray(mass @ point.gradients)
        if point.gradient is not None and np.array_equal(point.mass, mass):
            return np.asarray(point.gradient)
        return self._look(point, mass)[-1]

    def hessian_product(self, state: Evaluation, mass: Vector, direction: Vector) -> Vector:
        point = state.kept
        return self._total(AfterShift(point.theta, point.shift, mass, direction))[0]

    def hessian(self, theta: Vector, mass: Vector, *, single: bool = False) -> Matrix:
        return self._total(Curvature(theta, mass, single))[0]

    def growths(self, state: Evaluation, shift: Vector) -> Vector:
        return self._total(AfterShift(state.kept.theta, state.kept.shift + shift))[0]

    def moments_at(self, state: Evaluation, shift: Vector, mass: Vector) -> ShiftMoments:
        point = state.kept._replace(shift=state.kept.shift + shift)
        return ShiftMoments(*self._look(point, mass)[:3])

    def _look(self, point: Point, mass: Vector) -> Answer:
        """Growths, slope, curvature and gradient after a shift; the last is remembered."""
        key = point.theta.tobytes(), point.shift.tobytes(), mass.tobytes()
        if self._last[0] != key:
            self._last = key, self._total(AfterShift(point.theta, point.shift, mass))
        return self._last[1]

    def shifted(self, state: Evaluation, shift: Vector, theta: Vector, risks: Vector) -> Evaluation:
        point = Point(state.kept.theta, state.kept.shift + shift)
        (start, moved, mass), answer = self._last if self._last[0] else ((None,) * 3, ())
        if (start, moved) == (point.theta.tobytes(), point.shift.tobytes()):
            known = np.frombuffer(mass)
            point = point._replace(mass=known, curvature=answer[2], gradient=answer[3])
        return Evaluation(theta, risks, point)

    def intercept_inverse(self, state: Evaluation, mass: Vector) -> Callable[[Vector], Vector]:
        point = state.kept
        if point.curvature is None or not np.array_equal(point.mass, mass):
            return super().intercept_inverse(state, mass)
        live = np.isfinite(point.shift)

        def inverse(gradients: Vector) -> Vector:
            out = np.zeros_like(gradients)
            slope = self.features.unfold(gradients)[:, -1] / self.features.unit**2
            self.features.unfold(out)[:, -1] = intercept_step(point.curvature, slope, live)
            return out

        return inverse

    def with_loss(self, loss: TrainedLoss) -> "PartitionedObjective":
        maker = replace(self._maker, kernel=loss.kernel(self.n_classes))
        return self._like(PartitionedObjective(self._stream, maker, self._sample.with_loss(loss)))

    def thin(self, rows_per_class: int) -> LinearObjective:
        most = int(np.diff(self._sample.bounds).max())
        whole = rows_per_class >= most
        return self._like(self._sample if whole else self._sample.thin(rows_per_class))
