"""What blocks of rows are, and a stream that reads them ahead of where they are used.

Blocks are rows in pieces that can be read again and again: ``len(blocks)`` says how many there are,
``blocks[i]`` reads one as ``(X, y, weights)``, the same rows every time. ``X`` is an array or a
sparse matrix; ``y`` is None where rows are only predicted, ``weights`` where all weigh the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from equipoise.exceptions import EquipoiseError, InvalidInputError

T = TypeVar("T")
# Blocks that are read before a thread asks for them.
AHEAD = 1


class Block(NamedTuple):
    """Rows, their labels and their weights.

    Examples
    --------
    >>> Block([[1.0], [2.0]], ["a", "b"]).weights is None
    True
    """

    X: Any
    y: Any = None
    weights: Any = None


class Blocks(ABC):
    """Rows in blocks, which can be read in any order and as often as needed.

    Examples
    --------
    Rows that are made where they are needed:

    >>> import numpy as np
    >>> from equipoise import RobustLogisticRegression
    >>> from equipoise.blocks import Block, Blocks
    >>> class Simulated(Blocks):
    ...     def __len__(self):
    ...         return 20
    ...     def __getitem__(self, place):
    ...         rng = np.random.default_rng(place)
    ...         y = rng.integers(2, size=1000)
    ...         return Block(y[:, None] + rng.normal(size=(1000, 3)), y)
    >>> RobustLogisticRegression("worst-class").fit(Simulated()).status_
    'converged'
    """

    # Names of the columns, where they have any.
    columns: tuple[str, ...] | None = None

    @abstractmethod
    def __len__(self) -> int:
        """The number of blocks."""

    @abstractmethod
    def __getitem__(self, place: int) -> Block:
        """Read a block."""

    def of_at_most(self, n_bytes: int) -> Blocks:
        """The same rows in blocks of at most so many bytes, where they can be cut."""
        return self

    def map(
        self,
        function: Callable[[int, Block], T],
        n_threads: int = 1,
        begin: Callable[[], object] | None = None,
    ) -> Iterator[T]:
        """A function of every block and its place, in order; threads each ``begin`` with a call.

        One more thread reads ahead. All end with the iterator, whatever ends it.
        """
        pending: deque[Future[T]] = deque()
        reader, workers = ThreadPoolExecutor(1), ThreadPoolExecutor(n_threads, initializer=begin)

        def work(place: int, read: Future[Block]) -> T:
            return function(place, read.result())

        try:
            for place in range(len(self)):
                pending.append(workers.submit(work, place, reader.submit(self._read, place)))
                if len(pending) >= n_threads + AHEAD:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            reader.shutdown(wait=True, cancel_futures=True)
            workers.shutdown(wait=True, cancel_futures=True)

    def _read(self, place: int) -> Block:
        with in_block(place):
            try:
                return self[place]
            except (EquipoiseError, MemoryError):
                raise
            except Exception as error:
                detail = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
                raise InvalidInputError(f"it cannot be read ({detail}).") from error


@contextmanager
def in_block(place: int) -> Iterator[None]:
    """Errors about data, with the block they are about.

    Examples
    --------
    >>> with in_block(3):
    ...     raise InvalidInputError("weights must not be negative.")
    Traceback (most recent call last):
    equipoise.exceptions.InvalidInputError: Block 3: weights must not be negative.
    """
    try:
        yield
    except InvalidInputError as error:
        raise type(error)(f"Block {place}: {error}") from error


class Stream:
    """Passes over blocks, counted; sums do not depend on the number of threads."""

    def __init__(
        self, blocks: Blocks, n_threads: int = 1, begin: Callable[[], object] | None = None
    ) -> None:
        self.blocks, self.n_passes = blocks, 0
        self._n_threads, self._begin = n_threads, begin

    def map(self, function: Callable[[int, Block], T]) -> Iterator[T]:
        """One pass: a function of every block and its place, in order."""
        self.n_passes += 1
        return self.blocks.map(function, self._n_threads, self._begin)
