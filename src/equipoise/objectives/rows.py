"""Rows to fit to, in memory or out of core: their classes and weights, before an objective."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from equipoise.arrays import Indices, NDArray, Vector
from equipoise.blocks.base import Blocks, Stream
from equipoise.losses import TrainedLoss
from equipoise.objectives.base import Objective
from equipoise.objectives.linear_objective import LinearObjective
from equipoise.objectives.partitioned import PartitionedObjective, PartMaker
from equipoise.objectives.registry import kind_of, open_objective
from equipoise.objectives.row_order import RowCut
from equipoise.objectives.sampling import sample_of
from equipoise.objectives.survey import survey
from equipoise.objectives.units import standard_or_raw
from equipoise.threads import ONE_BLAS_THREAD, Workers, limit_openmp, n_threads
from equipoise.validation.labels import encode_labels, weights_and_totals

# BLOCK_SHARE, SAMPLE_SHARE: a chunk, and the sample with its scores, take at most one part in so
# many of the memory; LARGEST_BLOCK: bytes of a chunk.
BLOCK_SHARE, SAMPLE_SHARE = 32, 3
LARGEST_BLOCK = 1 << 24


class TrainingRows(ABC):
    """Rows with labels and weights: their classes, and an objective over them."""

    classes: NDArray[Any]
    totals: Vector  # sums of the weights by class
    counts: Indices  # rows with a positive weight, by class

    @abstractmethod
    def open(
        self, *, fit_intercept: bool, ridge: float, loss: TrainedLoss
    ) -> AbstractContextManager[Objective]:
        """An objective over the rows; its threads end with the block."""


class RowsInMemory(TrainingRows):
    """An array or a sparse matrix, and labels of its rows; scores take ``memory`` bytes at most."""

    def __init__(self, X: Any, y: Any, sample_weight: Any, memory: int) -> None:
        self._cut = RowCut(kept_bytes=memory)
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
            cut=self._cut,
        )


class RowsInBlocks(TrainingRows):
    """Out-of-core data, read in a first pass; a fit takes about ``memory`` bytes."""

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
        workers = Workers(n_threads())
        try:
            with limit_openmp(), ONE_BLAS_THREAD.held():
                units = standard_or_raw(features, self._survey.moments, ridge)
                maker = PartMaker(self._survey, units, kernel)
                yield PartitionedObjective(self.stream, maker, self._sample(maker, workers))
        finally:
            workers.close()
            self.stream.blocks.close()

    def _sample(self, maker: PartMaker, workers: Workers) -> LinearObjective:
        """A sample of as many rows as the memory has room for: one pass."""
        shape = self._survey.n_rows, self._survey.n_features
        row_bytes = shape[1] * self._survey.empty().dtype.itemsize + 8 * (4 * len(self.classes) + 4)
        blocks = self.stream.blocks
        worth = max(int(blocks.sampled_share * shape[0]), blocks.sampled_rows)
        n_rows = min(self._memory // SAMPLE_SHARE // row_bytes, worth)
        return sample_of(self.stream, maker, n_rows, workers)
