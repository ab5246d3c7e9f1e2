"""Blocks from arrays that slice, from folders of npy files, and from sequences."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse

from equipoise.arrays import NDArray
from equipoise.blocks.base import Block, Blocks
from equipoise.blocks.partitions import from_dask, is_dask
from equipoise.exceptions import InvalidInputError, in_a_sentence

# Bytes of a chunk where no memory is stated, 32 MiB: small beside any machine's memory, and read in
# some ten milliseconds.
DEFAULT_BYTES = 1 << 25
# Methods that only arrays held in memory, frames and collections on other machines have.
_NOT_SLICED = ("__array_namespace__", "__dlpack__", "__dask_graph__", "to_numpy", "iloc")


class Sliced(Protocol):
    """An array that is read a slice at a time: a memory map, a data set in HDF5 or Zarr."""

    shape: tuple[int, ...]
    dtype: Any

    def __getitem__(self, rows: slice, /) -> Any:
        """Rows, as an array."""


def is_sliced(X: Any) -> bool:
    """Whether an array lies outside of memory and is read a slice at a time."""
    if isinstance(X, np.ndarray) or issparse(X):
        return isinstance(X, np.memmap)
    needed = ("shape", "dtype", "__getitem__")
    return all(hasattr(X, name) for name in needed) and not any(
        hasattr(X, name) for name in _NOT_SLICED
    )


class SlicedBlocks(Blocks):
    """Rows of arrays that slice, so many at a time."""

    def __init__(self, X: Sliced, y: Any = None, weights: Any = None, rows: int = 0) -> None:
        self._parts, self._n_rows = (X, y, weights), X.shape[0]
        self._row_bytes = max(1, int(np.prod(X.shape[1:]) * np.dtype(X.dtype).itemsize))
        self._rows = rows or max(1, DEFAULT_BYTES // self._row_bytes)
        for name, part in (("y", y), ("weights", weights)):
            if part is not None and len(part) != self._n_rows:
                raise InvalidInputError(
                    f"{name} must have one entry for each of the {self._n_rows} rows of X, got "
                    f"{len(part)}."
                )

    def __len__(self) -> int:
        return len(range(0, self._n_rows, self._rows))

    def __getitem__(self, place: int) -> Block:
        rows = slice(place * self._rows, min((place + 1) * self._rows, self._n_rows))
        return Block(*(None if part is None else _cut(part, rows) for part in self._parts))

    def of_at_most(self, n_bytes: int) -> Blocks:
        rows = max(1, min(self._rows, n_bytes // self._row_bytes))
        return SlicedBlocks(*self._parts, rows=rows)


def _cut(array: Any, rows: slice) -> NDArray[Any]:
    """A slice, copied out of any file."""
    if isinstance(array, np.memmap):
        mapped: Any = array._mmap  # type: ignore[attr-defined]
        # Reading beyond the end of a file through a map would end the process.
        if mapped is not None and mapped.size() < len(mapped):
            raise InvalidInputError(
                f"the file {array.filename} has shrunk while it was read: it has {mapped.size()} "
                f"bytes and had {len(mapped)}. Fit again when nobody writes to it."
            )
        return np.array(array[rows], subok=False)
    read = np.asarray(array[rows])
    if len(read) != rows.stop - rows.start:
        raise InvalidInputError(
            f"rows {rows.start} to {rows.stop - 1} were asked for and {len(read)} came: the "
            "source has shrunk while it was read. Fit again when nobody writes to it."
        )
    return read


class NpyArray:
    """The array in an npy file, read a slice at a time without a memory map."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with in_a_sentence(f"{path} is not a whole npy file", OSError, ValueError, EOFError):
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if not mapped.flags.c_contiguous:
            raise InvalidInputError(
                f"{path} is stored column by column, and reading rows would read all of it: save "
                "numpy.ascontiguousarray(X) instead."
            )
        self.shape, self.dtype, self._offset = mapped.shape, mapped.dtype, int(mapped.offset)
        self._row_bytes = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        start, stop, _ = rows.indices(len(self))
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        with self._path.open("rb", buffering=0) as stream:
            stream.seek(self._offset + start * self._row_bytes)
            view, done = out.reshape(-1).view(np.uint8), 0
            while done < len(view):
                count = stream.readinto(view[done:].data)
                if not count:
                    raise InvalidInputError(
                        f"{self._path} ends before row {stop - 1}: it has shrunk while it was "
                        "read. Fit again when nobody writes to it."
                    )
                done += count
        return out


class JoinedBlocks(Blocks):
    """The blocks of one source after those of another."""

    def __init__(self, sources: list[Blocks]) -> None:
        self._sources = sources
        self._ends = list(accumulate(len(source) for source in sources))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, place: int) -> Block:
        owner = bisect_right(self._ends, place)
        return self._sources[owner][place - self._ends[owner] + len(self._sources[owner])]

    def of_at_most(self, n_bytes: int) -> Blocks:
        return JoinedBlocks([source.of_at_most(n_bytes) for source in self._sources])


def from_npy(folder: str | Path) -> Blocks:
    """Rows in the npy files of a folder.

    Features are in files whose names begin with ``X``, labels in those with ``y`` and row weights,
    if any, in those with ``weights``; the rest of the name says what belongs together: ``X.npy``
    and ``y.npy``, or ``X_00.npy`` and ``y_00.npy``, ``X_01.npy`` and ``y_01.npy``, and so on.
    Files are read in the order of their names, a few rows at a time. Without any labels the rows
    can be predicted only.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from equipoise.blocks import from_npy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(folder + "/X.npy", np.ones((5, 2), np.float32))
    ...     np.save(folder + "/y.npy", [0, 1, 0, 1, 1])
    ...     from_npy(folder)[0].y.tolist()
    [0, 1, 0, 1, 1]
    """
    place = Path(folder)
    if not place.is_dir():
        raise InvalidInputError(f"{folder} is not a folder; give one that holds X.npy and y.npy.")
    rests = sorted(path.name[1:] for path in place.glob("X*.npy"))
    if not rests:
        raise InvalidInputError(f"There is no file X*.npy in {folder}.")
    labelled = any(place.glob("y*.npy"))
    weighted = any(place.glob("weights*.npy"))
    sources: list[Blocks] = []
    for rest in rests:
        names = [f"X{rest}", *([f"y{rest}"] if labelled else [])]
        names += [f"weights{rest}"] if weighted else []
        for name in names:
            if not (place / name).is_file():
                raise InvalidInputError(f"There is no {name} in {folder} beside X{rest}.")
        arrays = {name[: -len(rest)]: NpyArray(place / name) for name in names}
        sources.append(SlicedBlocks(arrays["X"], arrays.get("y"), arrays.get("weights")))
    return JoinedBlocks(sources)


class SequenceBlocks(Blocks):
    """Blocks that a user's sequence holds, or makes when it is asked."""

    def __init__(self, sequence: Any) -> None:
        self._sequence = sequence

    def __len__(self) -> int:
        return len(self._sequence)

    def __getitem__(self, place: int) -> Block:
        item = self._sequence[place]
        if not isinstance(item, tuple | list) or not 1 <= len(item) <= 3:
            raise InvalidInputError(
                f"it must be (X, y) or (X, y, weights), got {type(item).__name__}."
            )
        return Block(*item)


def from_blocks(blocks: Any) -> Blocks:
    """A sequence of ``(X, y)`` or ``(X, y, weights)``, which may load each on access.

    Only ``len(blocks)`` and ``blocks[i]`` are used; every pass over the rows asks for all of them
    again, and must get the same rows. ``(X,)`` alone can be predicted.

    Examples
    --------
    >>> from equipoise.blocks import from_blocks
    >>> len(from_blocks([([[1.0], [2.0]], [0, 1]), ([[3.0], [1.0]], [1, 0])]))
    2
    """
    if not (hasattr(blocks, "__len__") and hasattr(blocks, "__getitem__")):
        raise InvalidInputError(
            f"blocks must be a sequence that can be read again for every pass, got "
            f"{type(blocks).__name__}, which is used up after one: give a list, an object with "
            "__len__ and __getitem__, or write the blocks to files and use from_npy."
        )
    return SequenceBlocks(blocks)


def as_blocks(
    X: Any, y: Any, sample_weight: Any, memory: int, *, labelled: bool = True
) -> Blocks | None:
    """Blocks of rows that would not fit in memory; None where rows can be read whole."""
    if isinstance(X, Blocks):
        if y is not None or sample_weight is not None:
            raise InvalidInputError(
                "Labels and weights come with the blocks, as (X, y, weights): give no others."
            )
        return X
    if is_dask(X):
        return from_dask(X, y, sample_weight, memory)
    if not is_sliced(X) or len(X.shape) != 2:
        return None
    if np.dtype(X.dtype).itemsize * X.shape[0] * X.shape[1] <= memory // 2:
        return None
    if not labelled:
        return SlicedBlocks(X)
    if y is None:
        raise InvalidInputError("y must be given beside X: one label for each row.")
    return SlicedBlocks(X, _held(y), None if sample_weight is None else _held(sample_weight))


def _held(values: Any) -> Any:
    return values if is_sliced(values) else np.asarray(values)
