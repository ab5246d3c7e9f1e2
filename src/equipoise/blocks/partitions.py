"""Rows in the partitions of Dask collections.

On a cluster (any client of ``distributed``) every partition is held by a worker, as one object with
its rows; functions are sent there and small answers come back, one message for each thread of a
worker. Sums are added in the order of partitions, or in a tree of fixed shape where answers are
large, whichever worker adds them. What a worker that dies has held is computed again from the
collection.
Without a client, partitions are computed in threads where a pass needs them, and kept while they
fit in memory.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from threading import Lock
from time import sleep
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np
from scipy.sparse import issparse

from equipoise.arrays import NDArray
from equipoise.blocks.base import Answer, AskedOf, Block, Blocks, added, in_block
from equipoise.exceptions import EquipoiseError, InvalidInputError, in_a_sentence
from equipoise.extras import require

T = TypeVar("T")
# Large answers that are added at a time, and how many numbers of small ones come here together.
_TOGETHER, _MANY_NUMBERS = 8, 1 << 20
# Bytes of partitions that are asked together: when their worker dies, they may meet at another.
_ASKED_BYTES = 1 << 28
# The part of the memory in which partitions are kept where there is no cluster.
_KEPT_SHARE = 2
# Memory that is kept, and arrays of which it may be (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD).
_AT_HAND = {-1: 1 << 26, -3: 1 << 25}
# Times to look for the partition that failed.
_PATIENCE = 20


def is_dask(X: Any) -> bool:
    """Whether rows are a collection of Dask.

    Examples
    --------
    >>> is_dask([[1.0], [2.0]])
    False
    """
    return hasattr(X, "__dask_graph__") and X.__dask_graph__() is not None


class HeldBlock:
    """A block that stays where it is, with what was last made of it."""

    def __init__(self, block: Block) -> None:
        self.X, self.y, self.weights = block
        self._made: tuple[Any, Any] = (None, None)

    def part(self, make: Callable[[int, Block], T], place: int) -> T:
        """What ``make`` makes of the rows: once."""
        if self._made[0] != make:  # it may have come here again
            self._made = make, make(place, Block(self.X, self.y, self.weights))
        part: T = self._made[1]
        return part

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_made": (None, None)}

    def __sizeof__(self) -> int:
        """Bytes, by which Dask judges what it would cost to move the rows."""
        X = self.X
        values = X.data.nbytes + X.indices.nbytes if issparse(X) else X.nbytes
        return int(values + 40 * X.shape[0])


def _hold(place: int, X: Any, y: Any, weights: Any) -> HeldBlock:
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


class ComputedPartitions(Blocks):
    """Partitions that are computed in this process, and kept while they fit in memory."""

    noun = "Partition"

    def __init__(self, parts: list[Any], columns: tuple[str, ...] | None, memory: int) -> None:
        self._parts, self.columns, self._room = parts, columns, memory // _KEPT_SHARE
        self._kept: dict[int, HeldBlock] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, place: int) -> Any:
        if place in self._kept:
            return self._kept[place]
        # Threads of Dask's own would outlive the fit.
        given = require("dask", extra="dask").compute(*self._parts[place], scheduler="synchronous")
        held = _hold(place, *given)
        size = sys.getsizeof(held)
        with self._lock:
            if size <= self._room:
                self._room -= size
                self._kept[place] = held
        return held

    def map(
        self,
        function: Callable[[int, Block], T],
        n_threads: int = 1,
        begin: Callable[[], Any] | None = None,
    ) -> Iterator[T]:
        with _named():
            yield from super().map(function, n_threads, begin)


class Group(NamedTuple):
    """Partitions that are asked together, and the worker that holds them, where it is known."""

    home: str | None
    places: list[int]


class HeldPartitions(Blocks):
    """Partitions that workers of a cluster hold."""

    noun = "Partition"
    # A pass is shared by all workers, a sample is solved here by one machine.
    sampled_share = 0.05
    elsewhere = True

    def __init__(self, client: Any, parts: list[Any], columns: tuple[str, ...] | None) -> None:
        self._client, self.columns = client, columns
        self._send = require("dask", extra="dask").delayed
        hold = self._send(_hold, pure=False)
        parts = [tuple(_at_hand(one, client) for one in part) for part in parts]
        self._held = [hold(place, *part) for place, part in enumerate(parts)]
        self._maker: tuple[Any, Any] = (None, None)
        self._spent: list[Any] = []
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
        return iter(self._each(_Sent(function)))

    def total(
        self, asked: AskedOf, n_threads: int = 1, begin: Callable[[], Any] | None = None
    ) -> Answer:
        if self._maker[0] is not asked.make:
            _release(self._maker[1:])
            self._maker = asked.make, self._sent(asked.make)
        total: Answer
        if asked.n_numbers * len(self) <= _MANY_NUMBERS:
            total = _sum(self._each(_Sent(asked.ask), self._maker[1]))
            return total
        call, add = (self._send(each, pure=False) for each in (_call, _sum))
        ask = self._sent(asked.ask)
        level = [call(*part, ask, self._maker[1]) for part in enumerate(self._held)]
        while len(level) > 1:
            groups = range(0, len(level), _TOGETHER)
            level = [add(level[start : start + _TOGETHER]) for start in groups]
        total = self._answers(level)[0]
        return total

    def _each(self, *sent: Any) -> list[Any]:
        """Answers of all partitions, in their order: one message to every group."""
        call = self._send(_call_each, pure=False)
        found = self._answers(
            [call(places, [self._held[at] for at in places], *sent) for _, places in self._groups]
        )
        answers: dict[int, Any] = {}
        for group, (_, own) in zip(self._groups, found, strict=True):
            answers.update(zip(group.places, own, strict=True))
        if [group.home for group in self._groups] != [home for home, _ in found]:
            self._groups = self._grouped_as(self._held)
        return [answers[place] for place in range(len(self))]

    def _grouped_as(self, futures: list[Any]) -> list[Group]:
        """Partitions in groups, by where what stands for each of them is now."""
        keys = [future.key for future in futures]
        homes, threads = self._client.who_has(futures), self._client.nthreads()
        sizes = self._client.nbytes(keys, summary=False)
        return _grouped([(homes.get(key, ()), sizes.get(key, 0)) for key in keys], threads)

    def close(self) -> None:
        _release((*self._held, *self._spent, self._maker[1]))

    def _sent(self, thing: Any) -> Any:
        """Something that goes out once, however many partitions it is for."""
        return self._send(_Sent(thing), pure=False, traverse=False)

    def _answers(self, work: list[Any]) -> list[Any]:
        futures = self._computed(work)
        # Dask sends nothing for some milliseconds after a message: what is spent goes after work.
        _release(self._spent)
        self._spent = futures
        try:
            with _named():
                return list(self._client.gather(futures))
        except BaseException as error:
            _release(self._spent)  # a traceback may live on
            if isinstance(error, Exception) and not isinstance(error, EquipoiseError):
                self._refuse_failed()
            raise

    def _computed(self, work: list[Any]) -> list[Any]:
        """Futures of work, which goes out in one message with what it needs and is to stay."""
        make, maker = self._maker
        new = [thing for thing in (*self._held, maker) if not (thing is None or _is_sent(thing))]
        futures = self._client.compute([*new, *work])
        sent = {future.key: future for future in futures[: len(new)]}
        self._held = [sent.get(held.key, held) for held in self._held]
        self._maker = make, None if maker is None else sent.get(maker.key, maker)
        return list(futures[len(new) :])

    def _refuse_failed(self) -> None:
        """Name the partition that could not be computed, once it is known."""
        for _ in range(_PATIENCE):
            for place, held in enumerate(self._held):
                if held.status == "error":
                    start = f"Partition {place}: it cannot be computed"
                    with _named(), in_a_sentence(start, Exception):
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
def _named() -> Iterator[None]:
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

    Copies of it are equal: a worker may let go of one, and be sent it again.
    """

    def __init__(self, thing: Any) -> None:
        self.thing, self._name = thing, uuid4().hex

    def __call__(self, *given: Any) -> Any:
        return self.thing(*given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sent) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)


def _call(place: int, held: Any, sent: _Sent, make: _Sent | None = None) -> Any:
    """What a function says of a partition, or what a question says of what is made of it."""
    return sent(place, held) if make is None else AskedOf(make, sent)(place, held)


def _call_each(places: list[int], held: list[HeldBlock], *sent: Any) -> tuple[str, list[Any]]:
    """Answers of some partitions, and where they are."""
    worker = require("distributed", extra="dask").get_worker()
    with _memory_at_hand():
        return worker.address, [_call(*part, *sent) for part in zip(places, held, strict=True)]


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


def from_dask(X: Any, y: Any, sample_weight: Any, memory: int) -> Blocks:
    """The partitions of Dask collections: where a client is, held by its workers."""
    columns = _check_rows(X)
    _check_beside(X, y, "y")
    if sample_weight is not None:
        _check_beside(X, sample_weight, "sample_weight")
    rows, labels = _partitions(_whole_rows(X)), _partitions(y)
    weights = [None] * len(rows) if sample_weight is None else _partitions(sample_weight)
    together = list(zip(rows, labels, weights, strict=True))
    client = _client()
    if client is None:
        return ComputedPartitions(together, columns, memory)
    return HeldPartitions(client, together, columns)


def _check_rows(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame; None of an array."""
    if len(getattr(X, "shape", ())) != 2:
        raise InvalidInputError(
            f"X must be a Dask array of two dimensions or a Dask DataFrame, got {type(X).__name__}."
        )
    if not hasattr(X, "columns"):
        return None
    for name, dtype in X.dtypes.items():
        if getattr(dtype, "kind", "O") not in "iufb":
            raise InvalidInputError(
                f"column {name!r} holds {dtype}, and features must be numbers: leave it out, or "
                "encode it before (dask.dataframe.get_dummies)."
            )
    names = X.columns.tolist()
    return tuple(names) if all(isinstance(name, str) for name in names) else None


def _check_beside(X: Any, values: Any, name: str) -> None:
    """That labels or weights have the partitions of the rows."""
    if not is_dask(values) or len(getattr(values, "shape", ())) != 1:
        shape = getattr(values, "shape", None)
        found = type(values).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
        raise InvalidInputError(
            f"{name} must be a Dask array of one dimension or a Dask Series, as X is Dask's, got "
            f"{found}: dask.array.from_array({name}, chunks=X.chunks[0]) makes one."
        )
    theirs, ours = (_lengths(part) for part in (values, X))
    known = not any(map(np.isnan, theirs + ours))
    if len(theirs) != len(ours) or (known and theirs != ours):
        told = [
            f"{len(part)}" + (f" ({_few(part)} rows)" if known else "") for part in (theirs, ours)
        ]
        raise InvalidInputError(
            f"{name} must have the partitions of X, got {told[0]} where X has {told[1]}: use "
            f"{name}.rechunk(X.chunks[0]) of an array, {name}.repartition(...) of a Series."
        )


def _lengths(values: Any) -> list[float]:
    """Rows of the partitions; NaN where nobody knows yet."""
    if hasattr(values, "chunks"):
        return list(values.chunks[0])
    return [np.nan] * int(values.npartitions)


def _few(lengths: list[float]) -> str:
    return ", ".join(map(str, lengths[:5])) + (", ..." if len(lengths) > 5 else "")


def _whole_rows(X: Any) -> Any:
    """An array in chunks that hold whole rows."""
    return X.rechunk({1: -1}) if hasattr(X, "chunks") else X


def _partitions(values: Any) -> list[Any]:
    # Arrays that share what they are made from would, each optimised alone, compute it twice.
    return list(np.ravel(values.to_delayed(optimize_graph=not hasattr(values, "chunks"))))


def _client() -> Any:
    """The client that Dask would use now; None where there is none."""
    distributed, dask = sys.modules.get("distributed"), require("dask", extra="dask")
    chosen = dask.config.get("scheduler", None)
    if distributed is None or chosen not in {None, "distributed", "dask.distributed"}:
        return None
    try:
        client = distributed.get_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise InvalidInputError(
            "fit waits for its answers, and the client is asynchronous: use "
            "Client(..., asynchronous=False)."
        )
    return client


def lazily(X: Any, answer: Callable[[Any], NDArray[Any]], like: NDArray[Any]) -> Any:
    """A Dask array of the answers to the partitions of ``X``; ``like`` is one to some row."""
    delayed, array = (require(f"dask.{name}", extra="dask") for name in ("delayed", "array"))
    answered = _Answered(answer, like[:0])
    X = _whole_rows(X)
    if hasattr(X, "chunks"):
        chunks = (X.chunks[0], *((width,) for width in like.shape[1:]))
        dropped = {"drop_axis": 1} if like.ndim == 1 else {}
        return X.map_blocks(answered, token="answers", chunks=chunks, meta=like[:0], **dropped)
    call, sent = delayed.delayed(_call_once, pure=False), delayed.delayed(answered, traverse=False)
    shape = (np.nan, *like.shape[1:])
    return array.concatenate([
        array.from_delayed(call(sent, part), shape, meta=like[:0]) for part in X.to_delayed()
    ])  # fmt: skip


class _Answered:
    """An answer to rows; to none, no answers."""

    def __init__(self, answer: Callable[[Any], NDArray[Any]], none: NDArray[Any]) -> None:
        self.answer, self._none = answer, none

    def __call__(self, rows: Any) -> NDArray[Any]:
        return self.answer(rows) if rows.shape[0] else self._none


def _call_once(answered: _Answered, rows: Any) -> NDArray[Any]:
    return answered(rows)
