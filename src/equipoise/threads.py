"""Threads: how many there are, one for each BLAS call while our own share the work, and workers."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


@cache
def _libraries(*kinds: str) -> ThreadpoolController:
    """Control of the threads of all BLAS and OpenMP libraries, or of one kind of them."""
    import scipy.linalg  # noqa: F401  its BLAS must be loaded to be seen

    everything = ThreadpoolController()
    return everything.select(user_api=list(kinds)) if kinds else everything


def n_threads() -> int:
    """Threads that BLAS would use now: honours environment variables and joblib's limits."""
    return max((library["num_threads"] for library in _libraries().info()), default=1)


def limit_openmp() -> Any:
    """One OpenMP thread for the calling thread, whose count is its own, as a context manager."""
    return _libraries("openmp").limit(limits=1)


class BlasLimit:
    """One thread for every BLAS call of the process while any ``held`` block is open.

    The count of threads belongs to the whole process: the first block to open sets it, the last to
    close restores it. A forked process goes on with the blocks of its one thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: list[int] = []  # the thread of every open block
        self._before: list[int] = []  # the count of every library before the first block
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
                self._before = [library.num_threads for library in self._blas]
                self._set([1] * len(self._before))
            self._open.append(me)
        try:
            yield
        finally:
            with self._lock:
                self._open.remove(me)
                if not self._open:
                    self._set(self._before)

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(self._blas, counts, strict=True):
            # In some versions of threadpoolctl only the thread that was first can set the count.
            release = getattr(library, "clear_controlling_thread", lambda force: None)
            release(force=True)
            library.set_num_threads(count)
            release(force=True)

    def _forked(self) -> None:
        others = bool(self._open)
        self._open = [thread for thread in self._open if thread == get_ident()]
        if others and not self._open:
            self._set(self._before)
        self._lock.release()


ONE_BLAS_THREAD = BlasLimit()


class Workers:
    """Maps a function over pieces of work, in order; one worker is the built-in ``map``."""

    def __init__(self, count: int = 1) -> None:
        self._pool = ThreadPoolExecutor(count, initializer=limit_openmp) if count > 1 else None

    def map(self, function: Callable[[Any], T], pieces: Iterable[Any]) -> Iterator[T]:
        work = list(pieces)
        if self._pool is None or len(work) == 1:
            return map(function, work)
        return self._pool.map(function, work)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
