"""Feature matrices by name, and from labelled data to an objective over them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.losses import TrainedLoss, as_trained
from equipoise.objectives.linear_objective import WORTH_A_THREAD, LinearObjective
from equipoise.objectives.matrices import DenseFeatures, Features
from equipoise.objectives.row_order import RowCut, by_class
from equipoise.objectives.sparse_matrix import SparseFeatures
from equipoise.objectives.units import standard_or_raw
from equipoise.registry import Registry
from equipoise.threads import ONE_BLAS_THREAD, Workers, limit_openmp, n_threads

# The first class that takes a matrix reads it.
OBJECTIVES: Registry[type[Features]] = Registry("feature matrix", DenseFeatures, SparseFeatures)


def kind_of(X: Any) -> type[Features]:
    """The class of features that takes a matrix."""
    for known in OBJECTIVES.values():
        if known.takes(X):
            return known
    raise InvalidInputError(
        f"X must be an array or a matrix that one of {', '.join(OBJECTIVES)} takes, got "
        f"{type(X).__name__}."
    )


@contextmanager
def open_objective(  # noqa: PLR0913  rows, what is fitted to them, and how they are cut
    X: Any,
    labels: Indices,
    sample_weight: Vector,
    *,
    n_classes: int,
    fit_intercept: bool,
    ridge: float = 0.0,
    loss: TrainedLoss | None = None,
    cut: RowCut | None = None,
) -> Iterator[LinearObjective]:
    """An objective over ``X`` with class indices ``labels``; its threads end with the block.

    ``ridge`` is the strength of the penalty that will go with it; the loss is the cross-entropy
    unless another is given.

    ``X`` is sorted by class in one copy, in its own dtype. A large array, or one whose rows are
    sorted already, is used in place.
    """
    kernel = (loss or as_trained("cross_entropy")).kernel(n_classes)
    totals = np.bincount(labels, weights=sample_weight, minlength=n_classes).astype(float)
    order, bounds, shares = by_class(labels, sample_weight, totals)
    kind = kind_of(X)
    features = kind.in_order(X, order, kernel.n_scores, fit_intercept)
    work = features.n_rows * features.row_cost * kernel.n_scores
    workers = Workers(n_threads() if work > WORTH_A_THREAD else 1)
    # One thread for each BLAS call, while our own threads share the rows.
    with closing(workers), limit_openmp(), ONE_BLAS_THREAD.held():
        features = standard_or_raw(features, kind.column_moments(X), ridge)
        yield LinearObjective(features, kernel, bounds, shares, workers, cut)
