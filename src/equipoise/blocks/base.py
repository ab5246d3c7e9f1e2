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
from dataclasses import dataclass
from functools import reduce
from operator import iadd
from typing import Any, NamedTuple, TypeVar

from equipoise.arrays import NDArray
from equipoise.exceptions import EquipoiseError, InvalidInputError

T = TypeVar("T")
Answer = tuple[NDArray[Any], ...]
# Number of chunks that are read before a thread needs them.
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

    def part(self, make: Callable[[int, Block], T], place: int) -> T:
        """The result of ``make`` for the block."""
        return make(place, self)


@dataclass(frozen=True, eq=False)
class AskedOf:
    """A question of what is made of a block; None where nothing is."""

    make: Callable[[int, Block], Any]
    ask: Callable[[Any], Answer]

    def __call__(self, place: int, block: Block) -> Answer | None:
        part = block.part(self.make, place)
        return None if part is None else self.ask(part)


def added(total: Answer, answer: Answer) -> Answer:
    """An answer added to others, in the memory of their sum."""
    return tuple(map(iadd, total, answer))


class Blocks(ABC):
    """Chunks of rows, which can be read in any order and as often as needed.

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
    >>> RobustLogisticRegression("worst_class").fit(Simulated()).status_
    'converged'
    """

    # Names of the columns, where they have any.
    columns: tuple[str, ...] | None = None
    # What errors call a block.
    noun: str = "Block"
    # The largest share of the rows that is worth bringing here as a sample, and a number of rows
    # that always is: enough for Hessians of a thousand parameters (SAMPLE_ROWS_PER_PARAMETER).
    sampled_share: float = 1.0
    sampled_rows: int = 20_000

    @abstractmethod
    def __len__(self) -> int:
        """The number of blocks."""

    @abstractmethod
    def __getitem__(self, place: int) -> Block:
        """Read a block."""

    def of_at_most(self, n_bytes: int) -> Blocks:
        """The same rows in chunks of at most ``n_bytes``, where they can be cut."""
        return self

    def map(
        self,
        function: Callable[[int, Block], T],
        n_threads: int = 1,
        begin: Callable[[], object] | None = None,
    ) -> Iterator[T]:
        """A function of every block and its place, in order; threads each ``begin`` with a call.

        One more thread reads ahead. All threads end with the iterator, also after an error.
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

    def total(
        self,
        asked: AskedOf,
        n_threads: int = 1,
        begin: Callable[[], object] | None = None,
    ) -> Answer:
        """The sum of the results of all blocks, always in the same order."""
        answers = self.map(asked, n_threads, begin)
        return reduce(added, (answer for answer in answers if answer is not None))

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Release the resources held for passes."""

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
    """Errors about data, with the block they are about."""
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
        self._n_blocks, self._n_threads, self._begin = len(blocks), n_threads, begin

    def map(self, function: Callable[[int, Block], T]) -> Iterator[T]:
        """One pass: a function of every block and its place, in order."""
        self._begin_pass()
        return self.blocks.map(function, self._n_threads, self._begin)

    def total(self, asked: AskedOf) -> Answer:
        """One pass: the sum of the answers of all blocks."""
        self._begin_pass()
        return self.blocks.total(asked, self._n_threads, self._begin)

    def _begin_pass(self) -> None:
        self.n_passes += 1
        if len(self.blocks) != self._n_blocks:
            raise InvalidInputError(
                f"The number of {self.blocks.noun.lower()}s changed between passes, from "
                f"{self._n_blocks} to {len(self.blocks)}: store them before the fit."
            )
