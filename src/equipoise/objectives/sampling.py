"""Samples of rows, an equal number of every class, all of a rare one; one of out-of-core rows.

The latter is read once and kept in memory.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import Indices, Vector
from equipoise.blocks.base import Block, Stream
from equipoise.objectives.linear_objective import LinearObjective
from equipoise.objectives.matrices import ColumnMoments
from equipoise.objectives.partitioned import PartMaker
from equipoise.objectives.thinning import drawn
from equipoise.threads import Workers


def sample_of(stream: Stream, maker: PartMaker, n_rows: int, workers: Workers) -> LinearObjective:
    """An objective over about ``n_rows`` rows of all blocks: one pass."""
    counts = maker.survey.counts
    wanted = spread(counts, evenly(counts.sum(axis=0), n_rows))
    parts = [part for part in stream.map(TakenRows(maker, wanted)) if part is not None]
    X, labels, weights = (
        sp.vstack(each) if sp.issparse(each[0]) else np.concatenate(each)
        for each in zip(*parts, strict=True)
    )
    del parts
    totals = np.bincount(labels, weights=weights, minlength=counts.shape[1]).astype(float)
    return maker.objective(X, labels, weights, totals, workers)


def evenly(by_class: Indices, n_rows: int) -> Indices:
    """Rows to take of each class: an equal number of all, and all of classes with fewer.

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


def rows_of_classes(labels: Indices, wanted: Indices) -> Indices:
    """Random rows in order, at most as many of each class as are wanted.

    Examples
    --------
    >>> rows_of_classes(np.array([0, 0, 1, 1, 1]), np.array([2, 1])).tolist()
    [0, 1, 4]
    """
    rng, ends = np.random.default_rng(0), np.cumsum(np.bincount(labels, minlength=len(wanted)))
    by_class = np.split(np.argsort(labels, kind="stable"), ends[:-1])
    chosen = [
        rows if len(rows) <= most else rng.permutation(rows)[:most]
        for rows, most in zip(by_class, wanted, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def spread(counts: Indices, wanted: Indices, seed: int = 0) -> Indices:
    """Rows to take of every chunk and class, for ``wanted`` rows of each class."""
    random = np.random.default_rng(seed)
    by_class = zip(counts.T, wanted, strict=True)
    columns = [random.multivariate_hypergeometric(rows, int(n)) for rows, n in by_class]
    return np.column_stack(columns)


@dataclass(frozen=True, eq=False)
class TakenRows:
    """Random rows of every chunk, about ``wanted`` of each class, weighted by inverse probability.

    Rows that lie far out in some column are taken with higher probability.
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
        chosen, probabilities = [], []
        for label in np.flatnonzero(self.wanted[place]):
            rows = np.flatnonzero(labels == label)
            wanted = int(self.wanted[place, label])
            taken, probability = drawn(reach[rows], wanted, random.random())
            chosen.append(rows[taken])
            probabilities.append(probability)
        rows, probability = np.concatenate(chosen), np.concatenate(probabilities)
        return X[rows], labels[rows], weights[rows] / probability


def _farthest(X: Any, moments: ColumnMoments) -> Vector:
    """How far out every row lies in some column, in standard units."""
    mean, spread, _ = moments
    # The spread was estimated from a few rows: a column without any may still vary in others.
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
