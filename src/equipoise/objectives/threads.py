"""Row blocks on all cores, with results that do not depend on how many there are.

Each block runs on one thread with single-threaded BLAS, and results are handed back in the order
of the blocks, so sums are the same bit for bit on one core and on many.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")
# Fewer multiplications than this are done before another thread has woken up.
WORTH_A_THREAD = 1e6


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  its BLAS must be loaded to be found

    return ThreadpoolController()


def n_threads() -> int:
    """Threads that BLAS would use now: honours environment variables and joblib's limits."""
    counts = [library["num_threads"] for library in _controller().info()]
    return max(counts, default=1)


def single_threaded_blas() -> AbstractContextManager[Any]:
    """One thread for each BLAS call, while our own threads share the rows."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1)
    return limit


class Workers:
    """Maps a function over blocks, in order; with one worker it is the built-in ``map``."""

    def __init__(self, count: int = 1) -> None:
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def map(self, function: Callable[[Any], T], blocks: Iterable[Any]) -> Iterator[T]:
        work = list(blocks)
        if self._pool is None or len(work) == 1:
            return map(function, work)
        return self._pool.map(function, work)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)


def workers_for(work: float) -> tuple[Workers, AbstractContextManager[Any]]:
    """Workers, and the BLAS limit that goes with them, for so many floating-point operations."""
    count = n_threads() if work > WORTH_A_THREAD else 1
    return Workers(count), single_threaded_blas()
