"""Rows in the partitions of Dask collections.

On a cluster (any client of ``distributed``) workers hold them, and are asked about them. Without a
client, partitions are computed in threads where a pass needs them, and kept while they fit in
memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from equipoise.arrays import NDArray
from equipoise.blocks.base import Block, Blocks
from equipoise.blocks.cluster import HeldPartitions, bytes_of, hold, named
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.text import listing

T = TypeVar("T")
# Divisor of the memory: half of it keeps partitions where there is no cluster.
_KEPT_SHARE = 2


def is_dask(X: Any) -> bool:
    """Whether rows are a collection of Dask."""
    return hasattr(X, "__dask_graph__") and X.__dask_graph__() is not None


class KeptBlock:
    """A block that stays in memory, with what was last made of it by makers of each type."""

    def __init__(self, block: Block) -> None:
        self.X, self.y, self.weights = block
        self._made: dict[type, tuple[Any, Any]] = {}

    def part(self, make: Callable[[int, Block], T], place: int) -> T:
        """What ``make`` makes of the rows: once."""
        known, part = self._made.get(type(make), (None, None))
        if known is not make:
            part = make(place, Block(self.X, self.y, self.weights))
            self._made[type(make)] = make, part
        kept: T = part
        return kept


class ComputedPartitions(Blocks):
    """Partitions that are computed in this process, and kept while they fit in memory."""

    noun = "Partition"

    def __init__(self, parts: list[Any], columns: tuple[str, ...] | None, memory: int) -> None:
        self._parts, self.columns, self._room = parts, columns, memory // _KEPT_SHARE
        self._kept: dict[int, KeptBlock] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, place: int) -> Any:
        if place in self._kept:
            return self._kept[place]
        # Threads of Dask's own would outlive the fit.
        computed = require("dask", extra="dask").compute(
            *self._parts[place], scheduler="synchronous"
        )
        block = hold(place, *computed)
        kept, size = KeptBlock(block), bytes_of(block)
        with self._lock:
            if size <= self._room:
                self._room -= size
                self._kept[place] = kept
        return kept

    def map(
        self,
        function: Callable[[int, Block], T],
        n_threads: int = 1,
        begin: Callable[[], Any] | None = None,
    ) -> Iterator[T]:
        with named():
            yield from super().map(function, n_threads, begin)


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
        kind = type(values).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
        raise InvalidInputError(
            f"{name} must be a Dask array of one dimension or a Dask Series, as X is Dask's, got "
            f"{kind}: dask.array.from_array({name}, chunks=X.chunks[0]) makes one."
        )
    theirs, ours = (_lengths(part) for part in (values, X))
    known = not any(map(np.isnan, theirs + ours))
    if len(theirs) != len(ours) or (known and theirs != ours):
        counts = [
            f"{len(part)}" + (f" ({listing(part, 5)} rows)" if known else "")
            for part in (theirs, ours)
        ]
        raise InvalidInputError(
            f"{name} must have the partitions of X, got {counts[0]} where X has {counts[1]}: use "
            f"{name}.rechunk(X.chunks[0]) of an array, {name}.repartition(...) of a Series."
        )


def _lengths(values: Any) -> list[float]:
    """Rows of the partitions; NaN where nobody knows yet."""
    if hasattr(values, "chunks"):
        return list(values.chunks[0])
    return [np.nan] * int(values.npartitions)


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
    answered = partial(_answered, answer, like[:0])
    X = _whole_rows(X)
    if hasattr(X, "chunks"):
        chunks = (X.chunks[0], *((width,) for width in like.shape[1:]))
        dropped = {"drop_axis": 1} if like.ndim == 1 else {}
        return X.map_blocks(answered, token="answers", chunks=chunks, meta=like[:0], **dropped)
    # The answer, which holds a model, is sent once and not with every task.
    call, sent = delayed.delayed(_answered, pure=False), delayed.delayed(answer, traverse=False)
    parts = (call(sent, like[:0], part) for part in X.to_delayed())
    shape = (np.nan, *like.shape[1:])
    return array.concatenate([array.from_delayed(part, shape, meta=like[:0]) for part in parts])


def _answered(answer: Callable[[Any], NDArray[Any]], none: NDArray[Any], rows: Any) -> NDArray[Any]:
    """The answer to rows; to no rows, no answers."""
    return answer(rows) if rows.shape[0] else none
