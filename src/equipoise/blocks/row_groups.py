"""Blocks from Parquet files: one a row group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from equipoise.arrays import NDArray
from equipoise.blocks.base import Block, Blocks
from equipoise.exceptions import InvalidInputError, in_a_sentence
from equipoise.extras import require


class RowGroups(Blocks):
    """Row groups of Parquet files, each opened where it is read."""

    def __init__(
        self, paths: list[Path], columns: tuple[str, ...], target: str | None, weights: str | None
    ) -> None:
        self._parquet = require("pyarrow.parquet", extra="cli")
        self.columns, self._target, self._weights = columns, target, weights
        self._groups = [
            (path, group) for path in paths for group in range(self._open(path).num_row_groups)
        ]

    def _open(self, path: Path) -> Any:
        with in_a_sentence(f"{path} cannot be read as a Parquet file", Exception):
            return self._parquet.ParquetFile(path)

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, place: int) -> Block:
        path, group = self._groups[place]
        names = [name for name in (self._target, self._weights) if name is not None]
        assert self.columns is not None
        with self._open(path) as file:
            table = file.read_row_group(group, columns=[*self.columns, *names], use_threads=False)
        types = [table.schema.field(name).type for name in self.columns]
        floats = [np.dtype(kind.to_pandas_dtype()) for kind in types]
        X = np.empty((table.num_rows, len(self.columns)), np.result_type(np.float32, *floats))
        for position, name in enumerate(self.columns):
            X[:, position] = _numbers(table, name)
        y = None if self._target is None else _values(table, self._target)
        return Block(X, y, None if self._weights is None else _values(table, self._weights))


def _values(table: Any, name: str) -> NDArray[Any]:
    return np.asarray(table.column(name).to_numpy())


def _numbers(table: Any, name: str) -> NDArray[Any]:
    values = _values(table, name)
    if values.dtype.kind not in "iufb":
        raise InvalidInputError(
            f"column {name!r} holds {table.schema.field(name).type}, and features must be numbers: "
            "leave it out with columns=, or fit the table with 'equipoise fit'."
        )
    return values


def from_parquet(
    path: str | Path,
    target: str | None = None,
    *,
    weights: str | None = None,
    columns: list[str] | None = None,
) -> Blocks:
    """Rows of a Parquet file, or of all those in a folder, by row group.

    Parameters
    ----------
    path : str or Path
        A file, or a folder with files that end in ``.parquet``.
    target : str, optional
        The column with the labels; without it the rows can be predicted only.
    weights : str, optional
        The column with row weights.
    columns : list of str, optional
        The features; by default all other columns. All must be numbers; where all are float32 (or
        shorter), so are the blocks.

    Examples
    --------
    >>> import tempfile
    >>> import pandas
    >>> from equipoise.blocks import from_parquet
    >>> table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "ill": ["no", "no", "yes"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(folder + "/t.parquet", row_group_size=2)
    ...     blocks = from_parquet(folder + "/t.parquet", target="ill")
    ...     len(blocks), blocks.columns, blocks[1].y.tolist()
    (2, ('a',), ['yes'])
    """
    place = Path(path)
    paths = sorted(place.glob("*.parquet")) if place.is_dir() else [place]
    if not paths or not paths[0].is_file():
        raise InvalidInputError(f"There is no Parquet file at {path}.")
    parquet = require("pyarrow.parquet", extra="cli")
    with in_a_sentence(f"{paths[0]} cannot be read as a Parquet file", Exception):
        present = parquet.read_schema(paths[0]).names
    for name in (target, weights, *(columns or [])):
        if name is not None and name not in present:
            raise InvalidInputError(
                f"{paths[0]} has no column {name!r}; its columns are {', '.join(present)}."
            )
    features = columns or [name for name in present if name not in (target, weights)]
    return RowGroups(paths, tuple(features), target, weights)
