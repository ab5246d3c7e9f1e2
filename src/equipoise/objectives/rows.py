"""Rows to fit to, in memory or in blocks: what is known of them before there is an objective."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import Indices, NDArray, Vector
from equipoise.blocks.base import Block, Blocks, Stream
from equipoise.losses import TrainedLoss
from equipoise.objectives.base import Objective
from equipoise.objectives.linear_objective import LinearObjective, Workers
from equipoise.objectives.matrices import standard_or_raw
from equipoise.objectives.partitioned import PartitionedObjective, PartMaker
from equipoise.objectives.registry import (
    ONE_BLAS_THREAD,
    kind_of,
    limit_openmp,
    n_threads,
    open_objective,
)
from equipoise.objectives.survey import survey
from equipoise.objectives.thinning import drawn
from equipoise.validation.labels import encode_labels, weights_and_totals

# Parts of the memory: that of one block, and of the sample with what is kept of its scores.
BLOCK_SHARE, SAMPLE_SHARE = 32, 3
LARGEST_BLOCK = 1 << 24
# So many rows are a sample worth having, wherever they are.
LEAST_SAMPLE = 20_000


class TrainingRows(ABC):
    """Rows with labels and weights: their classes, and an objective over them."""

    classes: NDArray[Any]
    totals: Vector  # sums of the weights by class
    counts: Indices  # rows that weigh something, by class

    @abstractmethod
    def open(
        self, *, fit_intercept: bool, ridge: float, loss: TrainedLoss
    ) -> AbstractContextManager[Objective]:
        """An objective over the rows; its threads end with the block."""


class RowsInMemory(TrainingRows):
    """An array or a sparse matrix, and labels of its rows."""

    def __init__(self, X: Any, y: Any, sample_weight: Any) -> None:
        self.classes, labels = encode_labels(y)
        weights, self.totals = weights_and_totals(sample_weight, labels, self.classes)
        used = weights > 0
        if not np.all(used):
            X, labels, weights = X[used], labels[used], weights[used]
        self._rows = X, labels, weights
        self.counts = np.bincount(labels)

    def open(
        self, *, fit_intercept: bool, ridge: float, loss: TrainedLoss
    ) -> AbstractContextManager[Objective]:
        return open_objective(
            *self._rows,
            n_classes=len(self.classes),
            fit_intercept=fit_intercept,
            ridge=ridge,
            loss=loss,
        )


class RowsInBlocks(TrainingRows):
    """Blocks, looked at in a first pass; about so many bytes are used to fit to them."""

    def __init__(self, blocks: Blocks, memory: int) -> None:
        self._memory = memory
        blocks = blocks.of_at_most(min(LARGEST_BLOCK, memory // BLOCK_SHARE))
        self.stream = Stream(blocks, n_threads(), limit_openmp)
        try:
            self._survey = survey(self.stream)
        except BaseException:
            blocks.close()
            raise
        self.classes, self.totals = self._survey.classes, self._survey.totals
        self.counts, self.n_features = self._survey.counts.sum(axis=0), self._survey.n_features

    @contextmanager
    def open(
        self, *, fit_intercept: bool, ridge: float, loss: TrainedLoss
    ) -> Iterator[PartitionedObjective]:
        kernel, empty = loss.kernel(len(self.classes)), self._survey.empty()
        features = kind_of(empty).in_order(empty, None, kernel.n_scores, fit_intercept)
        workers = Workers(n_threads(), limit_openmp)
        try:
            with limit_openmp(), ONE_BLAS_THREAD.held():
                units = standard_or_raw(features, self._survey.moments, ridge)
                maker = PartMaker(self._survey, units, kernel)
                yield PartitionedObjective(self.stream, maker, self._sample(maker, workers))
        finally:
            workers.close()
            self.stream.blocks.close()

    def _sample(self, maker: PartMaker, workers: Workers) -> LinearObjective:
        """Rows of all classes, as many as the memory has room for: one pass."""
        counts = self._survey.counts
        shape = self._survey.n_rows, self._survey.n_features
        row_bytes = shape[1] * self._survey.empty().dtype.itemsize + 8 * (4 * len(self.classes) + 4)
        share = max(self.stream.blocks.sampled_share * shape[0], LEAST_SAMPLE)
        n_rows = min(self._memory // SAMPLE_SHARE // row_bytes, int(share))
        wanted = spread(counts, evenly(counts.sum(axis=0), n_rows))
        found = list(self.stream.map(TakenRows(maker, wanted)))
        X, labels, weights = (
            sp.vstack(parts) if sp.issparse(parts[0]) else np.concatenate(parts)
            for parts in zip(*(part for part in found if part is not None), strict=True)
        )
        del found
        totals = np.bincount(labels, weights=weights, minlength=len(self.classes)).astype(float)
        return maker.objective(X, labels, weights, totals, workers)


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
        if not self.wanted[place].any():
            return None
        return self.of_rows(place, *self.maker.rows(place, block))

    def of_rows(
        self, place: int, X: Any, labels: Indices, weights: Vector
    ) -> tuple[Any, Indices, Vector]:
        """The choice among the rows of a block."""
        random = np.random.default_rng([0, place])
        # No value of a column that varies lies farther out than the root of the number of rows.
        most = self.maker.survey.n_rows**0.5
        reach = 1 + np.minimum(_farthest(X, *self.maker.survey.moments), most)
        chosen, chances = [], []
        for label in np.flatnonzero(self.wanted[place]):
            rows = np.flatnonzero(labels == label)
            wanted = int(self.wanted[place, label])
            taken, chance = drawn(reach[rows], wanted, random.random())
            chosen.append(rows[taken])
            chances.append(chance)
        rows, chance = np.concatenate(chosen), np.concatenate(chances)
        return X[rows], labels[rows], weights[rows] / chance


def _farthest(X: Any, mean: Vector, spread: Vector) -> Vector:
    """How far out every row lies in some column, in standard units."""
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
