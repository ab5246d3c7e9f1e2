"""The kinds of features by name, and from labelled data to an objective over them."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from equipoise.arrays import Indices, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.losses import TrainedLoss, as_trained
from equipoise.objectives.linear_objective import (
    WORTH_A_THREAD,
    LinearObjective,
    Workers,
    by_class,
)
from equipoise.objectives.matrices import (
    DenseFeatures,
    Features,
    SparseFeatures,
)
from equipoise.objectives.units import standard_or_raw
from equipoise.registry import Registry

# The first kind that takes a matrix has it.
OBJECTIVES: Registry[type[Features]] = Registry("kind of features", DenseFeatures, SparseFeatures)


def kind_of(X: Any) -> type[Features]:
    """The kind of features that takes a matrix."""
    for known in OBJECTIVES.values():
        if known.takes(X):
            return known
    raise InvalidInputError(
        f"X must be of a kind that some features take ({', '.join(OBJECTIVES)}), got "
        f"{type(X).__name__}."
    )


@contextmanager
def open_objective(
    X: Any,
    labels: Indices,
    sample_weight: Vector,
    *,
    n_classes: int,
    fit_intercept: bool,
    ridge: float = 0.0,
    loss: TrainedLoss | None = None,
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
    workers = Workers(n_threads() if work > WORTH_A_THREAD else 1, limit_openmp)
    # One thread for each BLAS call, while our own threads share the rows.
    with closing(workers), limit_openmp(), ONE_BLAS_THREAD.held():
        features = standard_or_raw(features, kind.column_moments(X), ridge)
        yield LinearObjective(features, kernel, bounds, shares, workers)


@cache
def _libraries(*kinds: str) -> ThreadpoolController:
    """Control of the threads of all BLAS and OpenMP libraries, or of one kind of them."""
    import scipy.linalg  # noqa: F401  its BLAS must be loaded to be found

    found = ThreadpoolController()
    return found.select(user_api=list(kinds)) if kinds else found


def n_threads() -> int:
    """Threads that BLAS would use now: honours environment variables and joblib's limits."""
    return max((library["num_threads"] for library in _libraries().info()), default=1)


def limit_openmp() -> Any:
    """One thread for the OpenMP of this thread, whose count is its own, as a context manager."""
    return _libraries("openmp").limit(limits=1)


class BlasLimit:
    """One thread for every BLAS call of the process while any block of any thread is open.

    The count of threads is the whole process's: the first block to open sets it, and the last to
    close puts back what was there. A forked process goes on with the blocks of its one thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: list[int] = []  # the thread of every open block
        self._free: list[int] = []  # the count of every library where none is open
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._forked,
            )

    @property
    def _blas(self) -> Any:
        return _libraries("blas").lib_controllers

    @contextmanager
    def held(self) -> Iterator[None]:
        me = get_ident()
        with self._lock:
            if not self._open:
                self._free = [library.num_threads for library in self._blas]
                self._set([1] * len(self._free))
            self._open.append(me)
        try:
            yield
        finally:
            with self._lock:
                self._open.remove(me)
                if not self._open:
                    self._set(self._free)

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(self._blas, counts, strict=True):
            # Of some versions of threadpoolctl only the thread that was first can set them.
            release = getattr(library, "clear_controlling_thread", lambda force: None)
            release(force=True)
            library.set_num_threads(count)
            release(force=True)

    def _forked(self) -> None:
        others = bool(self._open)
        self._open = [thread for thread in self._open if thread == get_ident()]
        if others and not self._open:
            self._set(self._free)
        self._lock.release()


ONE_BLAS_THREAD = BlasLimit()
