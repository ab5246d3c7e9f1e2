"""Rows in partitions that the workers of a Dask cluster hold.

A pass is one graph of tasks: a function of every partition, and sums of the answers in a tree of
fixed shape, so that results do not depend on which worker adds what. Partitions, and what is made
of them for later passes, are futures: Dask keeps them where they were computed, and computes again
from the collection what a worker that dies has held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from equipoise.arrays import NDArray
from equipoise.blocks.base import Answer, AskedOf, Block, Blocks, added, in_block
from equipoise.exceptions import EquipoiseError, in_a_sentence
from equipoise.extras import require

T = TypeVar("T")
# Answers that one task adds: the width of the tree of sums.
_TREE_WIDTH = 8


def hold(place: int, X: Any, y: Any, weights: Any) -> Block:
    """A partition as arrays."""
    with in_block(place):
        y, weights = (None if part is None else _array(part) for part in (y, weights))
        rows = X if issparse(X) else np.ascontiguousarray(_array(X))
        return Block(rows, y, weights)


def _array(values: Any) -> NDArray[Any]:
    """An array of a partition; missing values of pandas' own types are NaN."""
    if not hasattr(values, "to_numpy"):
        return np.asarray(values)
    array = np.asarray(values.to_numpy())
    if array.dtype == object and array.ndim == 2:
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return array


def bytes_of(block: Block) -> int:
    """The memory that a partition takes."""
    X = block.X
    values = X.data.nbytes + X.indices.nbytes if issparse(X) else X.nbytes
    return int(values + 40 * X.shape[0])


@dataclass(frozen=True, eq=False)
class WorkerPart:
    """What was made of a partition, of its size: by that Dask decides whether to move it."""

    made: Any
    n_bytes: int

    def __sizeof__(self) -> int:
        return self.n_bytes


class HeldPartitions(Blocks):
    """Partitions that workers of a cluster hold."""

    noun = "Partition"
    # A pass is shared by all workers, a sample is solved here by one machine.
    sampled_share = 0.04

    def __init__(self, client: Any, parts: list[Any], columns: tuple[str, ...] | None) -> None:
        self._client, self.columns = client, columns
        self._delayed = partial(require("dask", extra="dask").delayed, pure=False, traverse=False)
        call = self._delayed(hold)
        self._held = client.compute([call(place, *part) for place, part in enumerate(parts)])
        # By the type of a maker, the last one and its parts.
        self._made: dict[type, tuple[Any, list[Any]]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, place: int) -> Block:
        return Block(*self._held[place].result())

    def map(
        self,
        function: Callable[[int, Block], T],
        n_threads: int = 1,
        begin: Callable[[], Any] | None = None,
    ) -> Iterator[T]:
        return iter(self._computed(self._answers(function)))

    def total(
        self, asked: AskedOf, n_threads: int = 1, begin: Callable[[], Any] | None = None
    ) -> Answer:
        add, level = self._delayed(_sum), self._answers(asked)
        while len(level) > 1:
            groups = range(0, len(level), _TREE_WIDTH)
            level = [add(*level[start : start + _TREE_WIDTH]) for start in groups]
        total: Answer = self._computed(level)[0]
        return total

    def close(self) -> None:
        _release(self._held)
        for _, parts in self._made.values():
            _release(parts)

    def _answers(self, function: Callable[[int, Block], Any]) -> list[Any]:
        """Tasks that call a function of every partition, or ask what is made of each."""
        if not isinstance(function, AskedOf):
            call, sent = self._delayed(_call), self._delayed(function)
            return [call(sent, place, held) for place, held in enumerate(self._held)]
        call, sent = self._delayed(_ask), self._delayed(function.ask)
        return [call(sent, part) for part in self._parts(function.make)]

    def _parts(self, make: Callable[[int, Block], Any]) -> list[Any]:
        """What is made of every partition; it stays until another maker of the type comes."""
        known, parts = self._made.get(type(make), (None, []))
        if known is not make:
            _release(parts)
            call, sent = self._delayed(_made_of), self._delayed(make)
            work = [call(sent, place, held) for place, held in enumerate(self._held)]
            parts = self._client.compute(work)
            self._made[type(make)] = make, parts
        return parts

    def _computed(self, work: list[Any]) -> list[Any]:
        """The results of tasks, of which nothing is kept by the workers."""
        futures = self._client.compute(work)
        try:
            with named():
                return list(self._client.gather(futures))
        except EquipoiseError:
            raise
        except Exception:
            self._refuse_failed()
            raise
        finally:
            _release(futures)

    def _refuse_failed(self) -> None:
        """Name a partition that could not be computed."""
        for place, held in enumerate(self._held):
            if held.status == "error":
                start = f"Partition {place}: it cannot be computed"
                with named(), in_a_sentence(start, Exception):
                    raise held.exception()


def _release(futures: Iterable[Any]) -> None:
    """Let go of what workers keep for futures: tracebacks may refer to them for long."""
    for future in futures:
        future.release()


@contextmanager
def named() -> Iterator[None]:
    """Errors of a block, which is a partition here."""
    try:
        yield
    except EquipoiseError as error:
        text = str(error)
        if not text.startswith("Block "):
            raise
        raise type(error)("Partition " + text.removeprefix("Block ")) from error


def _call(function: Callable[[int, Block], T], place: int, block: Block) -> T:
    return function(place, block)


def _made_of(make: Callable[[int, Block], Any], place: int, block: Block) -> WorkerPart:
    return WorkerPart(make(place, block), bytes_of(block))


def _ask(ask: Callable[[Any], Answer], part: WorkerPart) -> Answer | None:
    return None if part.made is None else ask(part.made)


def _sum(*answers: Answer | None) -> Answer | None:
    """The sum of some answers in memory of its own: they may be needed again."""
    present = [answer for answer in answers if answer is not None]
    if not present:
        return None
    return reduce(added, present[1:], tuple(np.array(values) for values in present[0]))
