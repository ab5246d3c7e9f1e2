"""Rows in partitions that the workers of a Dask cluster hold.

Every partition is one object with its rows; functions are sent to where it is and small answers
come back, in one message to every worker and one to the client. Sums are added in the order of
partitions, or in a tree of fixed shape where answers are large, whichever worker adds them. What a
worker that dies has held is computed again from the collection.

Messages cost a third of what Dask's tasks do, of which it keeps books. Tasks compute partitions and
large answers, and passes that take so long that everybody should know of them; they answer whatever
messages did not: where a worker died, or let go of what it held, or where an error is to be told.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import reduce
from math import inf
from time import perf_counter, sleep
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

import numpy as np
from scipy.sparse import issparse

from equipoise.arrays import NDArray
from equipoise.blocks.base import Answer, AskedOf, Block, Blocks, added, in_block
from equipoise.exceptions import EquipoiseError, in_a_sentence
from equipoise.extras import require

T = TypeVar("T")
# Large answers that are added at a time, and how many numbers of small ones come here together.
_TOGETHER, _MANY_NUMBERS = 8, 1 << 20
# Bytes of partitions that are asked together: when their worker dies, they may meet at another.
_ASKED_BYTES = 1 << 28
# Seconds of a pass of which Dask is to know: by how busy workers are, it may add and retire some.
_LONG = 1.0
# Memory that is kept, and arrays of which it may be (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD).
_AT_HAND = {-1: 1 << 26, -3: 1 << 25}
# Times to look for the partition that failed.
_PATIENCE = 20


class HeldBlock:
    """A block that stays where it is, with what was last made of it by makers of each kind."""

    def __init__(self, block: Block) -> None:
        self.X, self.y, self.weights = block
        self._made: dict[str, tuple[Any, Any]] = {}

    def part(self, make: Callable[[int, Block], T], place: int) -> T:
        """What ``make`` makes of the rows: once."""
        kind = _kind(make)
        if kind not in self._made or self._made[kind][0] != make:  # it may have come here again
            self._made[kind] = make, make(place, Block(self.X, self.y, self.weights))
        part: T = self._made[kind][1]
        return part

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_made": {}}

    def __sizeof__(self) -> int:
        """Bytes, by which Dask judges what it would cost to move the rows."""
        X = self.X
        values = X.data.nbytes + X.indices.nbytes if issparse(X) else X.nbytes
        return int(values + 40 * X.shape[0])


def hold(place: int, X: Any, y: Any, weights: Any) -> HeldBlock:
    """A partition as arrays."""
    with in_block(place):
        y, weights = (None if part is None else _array(part) for part in (y, weights))
        rows = X if issparse(X) else np.ascontiguousarray(_array(X))
        return HeldBlock(Block(rows, y, weights))


def _array(values: Any) -> NDArray[Any]:
    """An array of a partition; missing values of pandas' own types are NaN."""
    if not hasattr(values, "to_numpy"):
        return np.asarray(values)
    found = np.asarray(values.to_numpy())
    if found.dtype == object and found.ndim == 2:
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    return found


# What tasks have met in this process: partitions by collection and place.
_MET: WeakValueDictionary[tuple[str, int], HeldBlock] = WeakValueDictionary()


class Group(NamedTuple):
    """Partitions that are asked together, and the worker that holds them, where it is known."""

    home: str | None
    places: list[int]


class HeldPartitions(Blocks):
    """Partitions that workers of a cluster hold."""

    noun = "Partition"
    # A pass is shared by all workers, a sample is solved here by one machine.
    sampled_share = 0.04
    elsewhere = True

    def __init__(self, client: Any, parts: list[Any], columns: tuple[str, ...] | None) -> None:
        self._client, self.columns, self._name = client, columns, uuid4().hex
        self._send = require("dask", extra="dask").delayed
        send = self._send(hold, pure=False)
        parts = [tuple(_at_hand(one, client) for one in part) for part in parts]
        self._held = [send(place, *part) for place, part in enumerate(parts)]
        self._makers: dict[str, _Maker] = {}  # the last of each kind
        self._spent: list[Any] = []
        # Of the last pass over what workers held, by the kind of what was made of it.
        self._seconds: dict[str, float] = {}
        # In the first pass each is asked as soon as it is there; then it is known where.
        self._groups = [Group(None, [place]) for place in range(len(parts))]
        rows = [part[0] for part in parts]
        if all(_is_sent(one) and one.done() for one in rows):
            self._groups = self._grouped_as(rows)

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, place: int) -> Any:
        self._computed([])
        return self._held[place].result()

    def map(
        self,
        function: Callable[[int, Block], T],
        n_threads: int = 1,
        begin: Callable[[], Any] | None = None,
    ) -> Iterator[T]:
        if isinstance(function, AskedOf):
            return iter(self._each(_Sent(function.ask), self._maker(function.make)))
        return iter(self._each(_Sent(function)))

    def total(
        self, asked: AskedOf, n_threads: int = 1, begin: Callable[[], Any] | None = None
    ) -> Answer:
        total: Answer
        if asked.n_numbers * len(self) <= _MANY_NUMBERS:
            total = _sum(list(self.map(asked)))
            return total
        call, add = (self._send(each, pure=False) for each in (_call, _sum))
        ask, make = self._sent(_Sent(asked.ask)), self._maker(asked.make)
        level = [call(*part, ask, make.task) for part in enumerate(self._held)]
        while len(level) > 1:
            groups = range(0, len(level), _TOGETHER)
            level = [add(level[start : start + _TOGETHER]) for start in groups]
        total = self._answers(level)[0]
        return total

    def _maker(self, make: Any) -> _Maker:
        """What stands for something that makes parts of partitions: its own, until another comes.

        Parts are kept by those who made them, as long as theirs is the last of its kind.
        """
        known = self._makers.get(_kind(make))
        if known is None or known.sent.thing is not make:
            if known is not None:
                _release([known.task])
            sent = _Sent(make)
            known = self._makers[_kind(make)] = _Maker(sent, self._sent(sent))
        return known

    def _each(self, ask: _Sent, *make: _Maker) -> list[Any]:
        """Answers of all partitions, in their order."""
        start = perf_counter() if self._there else inf
        kind = make[0].sent.kind if make else ""
        answers: dict[int, Any] = {}
        if self._seconds.get(kind, 0.0) <= _LONG:
            known = (one.sent.alone() if one.known else one.sent for one in make)
            answers = self._told(ask, *known)
        left = [Group(home, [at for at in places if at not in answers])
                for home, places in self._groups]  # fmt: skip
        left = [group for group in left if group.places]
        if left:
            call, sent = self._send(_call_each, pure=False), (ask, *(one.task for one in make))
            found = self._answers([
                call(self._name, places, [self._held[at] for at in places], *sent)
                for _, places in left
            ])  # fmt: skip
            for group, (_, own) in zip(left, found, strict=True):
                answers.update(zip(group.places, own, strict=True))
            if [group.home for group in left] != [home for home, _ in found]:
                self._groups = self._grouped_as(self._held)
        self._seconds[kind] = perf_counter() - start
        for one in make:
            one.known = True
        return [answers[place] for place in range(len(self))]

    @property
    def _there(self) -> bool:
        """Whether partitions have been computed."""
        return all(map(_is_sent, self._held))

    def _told(self, *sent: _Sent) -> dict[int, Any]:
        """Answers, by place, of what workers hold that were asked in messages."""
        if not self._there:
            return {}
        shares: dict[str | None, list[list[int]]] = {}
        for home, places in self._groups:
            shares.setdefault(home, []).append(places)
        # All that there are now: those that have gone would be waited for.
        found: dict[str, Any] = {}
        with suppress(Exception):  # whatever happens to messages, tasks are left
            found = self._client.run(_tell, self._name, shares, *sent, on_error="return")
        return {
            place: answer
            for own in found.values()
            if isinstance(own, dict)
            for place, answer in own.items()
        }

    def _grouped_as(self, futures: list[Any]) -> list[Group]:
        """Partitions in groups, by where what stands for each of them is now."""
        keys = [future.key for future in futures]
        homes, threads = self._client.who_has(futures), self._client.nthreads()
        sizes = self._client.nbytes(keys, summary=False)
        return _grouped([(homes.get(key, ()), sizes.get(key, 0)) for key in keys], threads)

    def close(self) -> None:
        _release((*self._held, *self._spent, *(maker.task for maker in self._makers.values())))

    def _sent(self, thing: _Sent) -> Any:
        """Something that goes out once, however many partitions it is for."""
        return self._send(thing, pure=False, traverse=False)

    def _answers(self, work: list[Any]) -> list[Any]:
        futures = self._computed(work)
        # Dask sends nothing for some milliseconds after a message: what is spent goes after work.
        _release(self._spent)
        self._spent = futures
        try:
            with named():
                return list(self._client.gather(futures))
        except BaseException as error:
            _release(self._spent)  # a traceback may live on
            if isinstance(error, Exception) and not isinstance(error, EquipoiseError):
                self._refuse_failed()
            raise

    def _computed(self, work: list[Any]) -> list[Any]:
        """Futures of work, which goes out in one message with what it needs and is to stay."""
        makers = self._makers.values()
        new = [*self._held, *(maker.task for maker in makers)]
        new = [thing for thing in new if not _is_sent(thing)]
        futures = self._client.compute([*new, *work])
        sent = {future.key: future for future in futures[: len(new)]}
        self._held = [sent.get(held.key, held) for held in self._held]
        for maker in makers:
            maker.task = sent.get(maker.task.key, maker.task)
        return list(futures[len(new) :])

    def _refuse_failed(self) -> None:
        """Name the partition that could not be computed, once it is known."""
        for _ in range(_PATIENCE):
            for place, held in enumerate(self._held):
                if held.status == "error":
                    start = f"Partition {place}: it cannot be computed"
                    with named(), in_a_sentence(start, Exception):
                        raise held.exception()
            sleep(0.05)


def _at_hand(part: Any, client: Any) -> Any:
    """The future of a partition that was computed or sent out before, whatever it is called now.

    Collections that are made of others have names of their own for the same partitions: tasks that
    do nothing, and take the scheduler as long as others.
    """
    iskey = require("dask.core", extra="dask").iskey
    graph, key = getattr(part, "dask", {}), getattr(part, "key", None)
    while iskey(key) and (found := graph.get(key)) is not None:
        if getattr(found, "client", None) is client:
            return found
        key = getattr(found, "target", found)
    return part


def _is_sent(thing: Any) -> bool:
    """Whether it is a future, and not something to compute."""
    return isinstance(thing, require("distributed", extra="dask").Future)


def _release(futures: Iterable[Any]) -> None:
    """Let go of what workers keep for futures."""
    for future in filter(_is_sent, futures):
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


def _grouped(held: list[tuple[tuple[str, ...], int]], threads: dict[str, int]) -> list[Group]:
    """Partitions, of each of which homes and bytes are known: a share for every thread.

    Examples
    --------
    >>> _grouped([(("a",), 3), (("a",), 5), (("a", "b"), 4), ((), 0)], {"a": 1, "b": 1})
    [Group(home='a', places=[1, 0]), Group(home='b', places=[2]), Group(home=None, places=[3])]
    """
    loads = {home: [0] * count for home, count in threads.items()}
    found: dict[tuple[Any, int, int], list[int]] = {}
    for place in sorted(range(len(held)), key=lambda place: -held[place][1]):
        homes, size = held[place]
        least = [(load, home, at) for home in homes for at, load in enumerate(loads.get(home, ()))]
        load, home, at = min(least, default=(0, None, place))
        found.setdefault((home, at, load // _ASKED_BYTES), []).append(place)
        if home is not None:
            loads[home][at] += size
    return [Group(home, places) for (home, *_), places in found.items()]


class _Sent:
    """A callable as data: Dask would put a function into every task that calls it.

    Copies of it are equal: a worker may let go of one, and be sent it again. So is its name alone,
    for those who have called it.
    """

    def __init__(self, thing: Any) -> None:
        self.thing, self.kind, self._name = thing, _kind(thing), uuid4().hex

    def alone(self) -> _Sent:
        name = copy(self)
        name.thing = None
        return name

    def __call__(self, *given: Any) -> Any:
        return self.thing(*given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sent) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)


def _kind(make: Any) -> str:
    """What sort of a maker something is, here or sent: parts of each are kept."""
    return make.kind if isinstance(make, _Sent) else type(make).__qualname__


@dataclass
class _Maker:
    """What makes parts of partitions, as it goes out."""

    sent: _Sent
    task: Any  # what stands for it in tasks
    known: bool = False  # whether all who hold partitions have it


def _call(place: int, held: Any, sent: _Sent, make: _Sent | None = None) -> Any:
    """What a function says of a partition, or what a question says of what is made of it."""
    return sent(place, held) if make is None else AskedOf(make, sent)(place, held)


def _call_each(name: str, places: list[int], held: list[HeldBlock], *sent: Any) -> Any:
    """Answers of some partitions, and where they are."""
    worker = require("distributed", extra="dask").get_worker()
    _MET.update(((name, place), block) for place, block in zip(places, held, strict=True))
    with _memory_at_hand():
        return worker.address, [_call(*part, *sent) for part in zip(places, held, strict=True)]


async def _tell(
    name: str, shares: dict[str, list[list[int]]], *sent: Any, dask_worker: Any
) -> dict[int, Any]:
    """Answers of the partitions that this worker has its shares of, by its own threads."""
    loop, threads = asyncio.get_running_loop(), dask_worker.executors["default"]
    found: dict[int, Any] = {}
    ours = shares.get(dask_worker.address, [])
    for own in await asyncio.gather(
        *(loop.run_in_executor(threads, _told_of, name, places, sent) for places in ours)
    ):
        found.update(own)
    return found


def _told_of(name: str, places: list[int], sent: tuple[Any, ...]) -> dict[int, Any]:
    """Answers of partitions that are here; tasks will ask again for others, and tell of errors."""
    found: dict[int, Any] = {}
    with _memory_at_hand(), suppress(Exception):
        for place in places:
            if (held := _MET.get((name, place))) is not None:
                found[place] = _call(place, held, *sent)
    return found


@contextmanager
def _memory_at_hand() -> Iterator[None]:
    """Memory that is freed stays at hand for a while, where Dask has it given back at once.

    A worker's allocator, which it starts with a setting of its own, would hand every array of more
    than 128 KiB back to the system and fetch it again: more than half of the time of a pass.
    """
    given = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    libc: Any = ctypes.CDLL(None) if sys.platform == "linux" and given.isdigit() else None
    if not hasattr(libc, "mallopt"):
        yield
        return
    for option, value in _AT_HAND.items():
        libc.mallopt(option, value)
    try:
        yield
    finally:
        for option, value in zip(_AT_HAND, (int(given), 1 << 17), strict=True):
            libc.mallopt(option, value)


def _sum(answers: list[Answer | None]) -> Any:
    """The sum of some answers in memory of its own: they may be needed again."""
    found = [answer for answer in answers if answer is not None]
    if not found:
        return None
    return reduce(added, found[1:], tuple(np.array(values) for values in found[0]))
