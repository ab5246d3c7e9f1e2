"""From labelled data to an objective: sort by class, choose the storage, tame the scales."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.objectives.kernels import kernel_for
from equipoise.objectives.linear import LinearObjective
from equipoise.objectives.rows import DenseFeatures, Features, SparseFeatures
from equipoise.objectives.standard import standard_or_raw
from equipoise.objectives.threads import workers_for

# Dense rows from which the scale of a column is judged; the rare columns of sparse data need all.
_SAMPLE = 2_000
# Rows that are copied at a time.
_PART = 4_096
# Larger arrays are not copied: their rows are gathered, a block at a time, in every pass. That
# costs a little of the time of a fit; a copy would cost all of the memory again.
_LARGE = 1 << 26


@contextmanager
def open_objective(
    X: Any,
    labels: NDArray[np.intp],
    sample_weight: Vector,
    *,
    n_classes: int,
    fit_intercept: bool,
    ridge: float = 0.0,
) -> Iterator[LinearObjective]:
    """An objective over ``X`` with class indices ``labels``; its threads end with the block.

    ``ridge`` is the strength of the penalty that will go with it.

    ``X`` is sorted by class in one copy, in its own dtype. A large array, or one whose rows are
    sorted already, is used in place.
    """
    n_scores = kernel_for(n_classes).n_scores
    rows, bounds, shares = _by_class(X, labels, sample_weight, n_classes, fit_intercept)
    workers, limit = workers_for(rows.n_rows * rows.row_cost * n_scores)
    try:
        with limit:
            sample = X if sp.issparse(X) else X[:: max(1, X.shape[0] // _SAMPLE)]
            yield LinearObjective(standard_or_raw(rows, sample, ridge), bounds, shares, workers)
    finally:
        workers.close()


def _by_class(
    X: Any, labels: NDArray[np.intp], sample_weight: Vector, n_classes: int, fit_intercept: bool
) -> tuple[Features, NDArray[np.intp], Vector]:
    """Rows sorted by class, where each class begins, and each row's share of its class."""
    totals = np.bincount(labels, weights=sample_weight, minlength=n_classes)
    counts = np.bincount(labels, minlength=n_classes)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    order = None
    if not np.all(labels[:-1] <= labels[1:]):
        # Of 16 bits, a stable sort takes one pass for each eight.
        short = labels.astype(np.uint16) if n_classes < 1 << 16 else labels
        order = np.argsort(short, kind="stable")
        sample_weight = sample_weight[order]
    shares = sample_weight / np.repeat(totals, counts)
    return _rows(X, order, kernel_for(n_classes).n_scores, fit_intercept), bounds, shares


def _rows(X: Any, order: NDArray[np.intp] | None, n_scores: int, fit_intercept: bool) -> Features:
    if sp.issparse(X):
        return SparseFeatures(sp.csr_matrix(X, copy=False), n_scores, fit_intercept, order)
    if order is None or X.nbytes > _LARGE:
        return DenseFeatures(X, n_scores, fit_intercept, order)
    return DenseFeatures(_reordered(X, order), n_scores, fit_intercept)


def _reordered(X: NDArray[Any], order: NDArray[np.intp]) -> NDArray[Any]:
    """Rows in another order, row by row in memory: one copy, whatever the layout they come in."""
    out = np.empty(X.shape, X.dtype)
    for start in range(0, len(order), _PART):
        part = slice(start, start + _PART)
        out[part] = X[order[part]]
    return out
