"""A sample of rows in blocks: which rows it takes, and where its Hessians are formed.

It is read once and kept here, an equal number of every class, all of a rare one. Where blocks are
held by other processes, each keeps its share as well.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.blocks.base import Answer, AskedOf, Block, Stream
from equipoise.losses.base import ScoreKernel, TrainedLoss
from equipoise.objectives.linear_objective import LinearObjective
from equipoise.objectives.matrices import ColumnMoments
from equipoise.objectives.partitioned import Curvature, OnOneThread, PartMaker
from equipoise.objectives.thinning import drawn
from equipoise.threads import Workers

# Rows of a share that are worth a Hessian of their own: it takes as long as its way here.
WORTH_ASKING = 200


def sample_of(stream: Stream, maker: PartMaker, n_rows: int, workers: Workers) -> LinearObjective:
    """An objective over about so many rows of all blocks: one pass."""
    counts, blocks = maker.survey.counts, stream.blocks
    wanted = spread(counts, evenly(counts.sum(axis=0), n_rows))
    take = TakenRows(maker, wanted)
    shared, make = blocks.elsewhere and wanted.sum() >= WORTH_ASKING * len(blocks), ShareMaker(take)
    found = list(stream.map(AskedOf(make, rows_of) if shared else take))
    X, labels, weights = (
        sp.vstack(parts) if sp.issparse(parts[0]) else np.concatenate(parts)
        for parts in zip(*(part for part in found if part is not None), strict=True)
    )
    del found
    totals = np.bincount(labels, weights=weights, minlength=counts.shape[1]).astype(float)
    sample = maker.objective(X, labels, weights, totals, workers)
    return SharedSample(sample, totals, stream, make) if shared else sample


def evenly(by_class: Indices, n_rows: int) -> Indices:
    """How many rows to take of each class: an equal number of all, and all of those with fewer.

    Examples
    --------
    >>> evenly(np.array([1000, 20, 300]), 220)
    array([100,  20, 100])
    """
    level, left = 0, n_rows
    for place, count in enumerate(np.sort(by_class)):
        level = max(1, left // (len(by_class) - place))
        if level <= count:
            break
        left -= count
    return np.minimum(by_class, level)


def spread(counts: Indices, wanted: Indices, seed: int = 0) -> Indices:
    """How many rows to take of every block and class, for so many of each class."""
    random = np.random.default_rng(seed)
    return np.column_stack([
        random.multivariate_hypergeometric(ours, int(own))
        for ours, own in zip(counts.T, wanted, strict=True)
    ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class TakenRows:
    """Random rows of every block, about so many of each class, with weights that make up for it.

    Rows that lie far out in some column are taken more surely.
    """

    maker: PartMaker
    wanted: Indices

    def __call__(self, place: int, block: Block) -> tuple[Any, Indices, Vector] | None:
        rows = self.maker.rows(place, block) if self.wanted[place].any() else None
        return None if rows is None else self.of_rows(place, *rows)

    def of_rows(
        self, place: int, X: Any, labels: Indices, weights: Vector
    ) -> tuple[Any, Indices, Vector]:
        """The choice among the rows of a block."""
        random = np.random.default_rng([0, place])
        # No value of a column that varies lies farther out than the root of the number of rows.
        most = self.maker.survey.n_rows**0.5
        reach = 1 + np.minimum(_farthest(X, self.maker.survey.moments), most)
        chosen, chances = [], []
        for label in np.flatnonzero(self.wanted[place]):
            rows = np.flatnonzero(labels == label)
            wanted = int(self.wanted[place, label])
            taken, chance = drawn(reach[rows], wanted, random.random())
            chosen.append(rows[taken])
            chances.append(chance)
        rows, chance = np.concatenate(chosen), np.concatenate(chances)
        return X[rows], labels[rows], weights[rows] / chance


def _farthest(X: Any, moments: ColumnMoments) -> Vector:
    """How far out every row lies in some column, in standard units."""
    mean, spread, _ = moments
    # The spread was judged from a few rows: a column without any may still vary in others.
    scale = np.maximum(spread, np.maximum(1e-9 * np.abs(mean), np.finfo(float).tiny))
    if sp.issparse(X):
        far = sp.csr_matrix(X, dtype=np.float64, copy=True)
        with np.errstate(over="ignore"):
            far.data = np.abs(far.data / scale[far.indices])
        return np.asarray(far.max(axis=1).todense()).ravel()
    far = np.zeros(len(X))
    with np.errstate(over="ignore"):
        for column in range(X.shape[1]):
            np.maximum(far, np.abs(X[:, column] - mean[column]) / scale[column], out=far)
    return far


@dataclass(frozen=True, eq=False)
class Share:
    """Rows that were taken of a block, kept where it is, and what makes an objective of them."""

    maker: PartMaker
    rows: tuple[Any, Indices, Vector]


@dataclass(frozen=True, eq=False)
class ShareMaker:
    """Turns a block into its share of a sample."""

    take: TakenRows

    def __call__(self, place: int, block: Block) -> Share | None:
        rows = self.take(place, block)
        return None if rows is None else Share(self.take.maker, rows)


def rows_of(share: Share) -> Answer:
    """The rows of a share, as they are."""
    return share.rows


@dataclass(frozen=True, eq=False)
class CurvatureOfShare:
    """The part of a share in the Hessian of a sample whose classes have these total weights."""

    curvature: Curvature
    totals: Vector
    kernel: ScoreKernel

    def __call__(self, share: Share) -> Answer:
        maker = replace(share.maker, kernel=self.kernel)
        return self.curvature(maker.objective(*share.rows, self.totals, Workers()))


class SharedSample(LinearObjective):
    """A sample that is here whole, and in shares where its rows came from.

    Coarse problems are solved here; Hessians, which take as long as many evaluations, are the work
    of those who have nothing else to do then.
    """

    def __init__(
        self, sample: LinearObjective, totals: Vector, stream: Stream, make: ShareMaker
    ) -> None:
        super().__init__(
            sample.features, sample.kernel, sample.bounds, sample.shares, sample.workers
        )
        self._totals, self._stream, self._make = totals, stream, make

    def hessian(self, theta: Vector, mass: Vector, *, single: bool = False) -> Matrix:
        curvature = Curvature(theta, mass, single)
        question = OnOneThread(CurvatureOfShare(curvature, self._totals, self.kernel))
        return self._stream.glance(AskedOf(self._make, question))[0]

    def with_loss(self, loss: TrainedLoss) -> "SharedSample":
        other = super().with_loss(loss)
        return self._like(SharedSample(other, self._totals, self._stream, self._make))
