"""Tables that do not fit in memory: read in chunks, stored as blocks, fitted in passes.

What the preprocessing of :mod:`equipoise.tables.features` needs of a whole table is computed in
passes over blocks in a temporary folder: levels of texts and their rows, medians (of a sample of
rows), means and deviations.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer

from equipoise.arrays import Indices, NDArray
from equipoise.blocks import Block, Blocks
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.tables.columns import (
    Column,
    columns_of,
    conform,
    find_column,
    refuse_empty,
    text_of,
)
from equipoise.tables.features import MAX_LEVELS, MIN_LEVEL_ROWS, MISSING, preprocessor
from equipoise.tables.labelled import label_and_dropped, labels_by_text
from equipoise.tables.read import MAX_CHUNK_ROWS, read_chunks

# Rows that medians are of.
MEDIAN_ROWS = 50_000
# Distinct texts of a column that are counted; the rarest of more are taken for rare.
_COUNTED = 100_000
# _GROWTH: bytes in memory for each byte of a file of texts, gzipped texts and Parquet, about.
_GROWTH = {"csv": 2, "gz": 10, "parquet": 3}

# Passes over the rows that are not yet fits; ``progress`` counts to 100 in each.
PASSES = 5

Reach = Callable[[int, str], None]


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """Labelled rows in blocks of features, and the fitted preprocessing that they came from.

    Without ``features`` the blocks are DataFrames, as models of tables read them.
    """

    blocks: Blocks
    features: ColumnTransformer | None
    classes: NDArray[Any]
    counts: Indices
    columns: tuple[Column, ...]
    warnings: tuple[str, ...] = ()


class StoredBlocks(Blocks):
    """Blocks in files of a folder, to which nobody else writes."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._n = folder, 0

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: int) -> Block:
        return Block(*pickle.loads(self._file(index).read_bytes()))

    def store(self, index: int, X: Any, y: NDArray[Any]) -> None:
        """Write a block, behind the others or in the place of one."""
        self._file(index).write_bytes(pickle.dumps((X, y), protocol=pickle.HIGHEST_PROTOCOL))
        self._n = max(self._n, index + 1)

    def _file(self, index: int) -> Path:
        return self._folder / str(index)


def size_in_memory(path: str | Path) -> int:
    """About how many bytes the table in a file takes in memory.

    Examples
    --------
    >>> from importlib.resources import files
    >>> size_in_memory(files("equipoise.datasets") / "data" / "thyroid.csv.gz") > 100_000
    True
    """
    file = Path(path)
    if not file.is_file():
        return 0
    with file.open("rb") as stream:
        first = stream.read(4)
    kind = {b"PAR1": "parquet"}.get(first, "gz" if first[:2] == b"\x1f\x8b" else "csv")
    return file.stat().st_size * _GROWTH[kind]


@contextmanager
def streamed_table(
    path: str | Path,
    target: str,
    *,
    drop: Sequence[str] = (),
    text_labels: bool = False,
    encoded: bool = True,
    progress: Reach = lambda done, label: None,
    max_rows: int = MAX_CHUNK_ROWS,
) -> Iterator[StreamedTable]:
    """The labelled rows in a file of any size, as blocks in a temporary folder.

    They are ``encoded`` as features of a linear model, or stay tables of numbers and texts, for
    models that encode them themselves. A block has at most ``max_rows`` rows. The folder, beside
    the system's other temporary files, goes with the block, whatever ends it.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("equipoise.datasets") / "data" / "thyroid.csv.gz"
    >>> with streamed_table(path, "target") as table:
    ...     table.counts.tolist(), len(table.blocks)
    ([166, 368, 6666], 1)
    """
    source = TableSource(Path(path), target, tuple(drop), progress, max_rows)
    columns, names = source.look()
    labels = labels_by_text(names, target, text_labels=text_labels)
    classes, counts = np.unique(np.array(list(labels.values()))), Counter[Any]()
    for name, rows in names.items():
        counts[labels[name]] += rows
    with TemporaryDirectory(prefix="equipoise-") as folder:
        blocks, features = StoredBlocks(Path(folder)), None
        for index, (frame, texts) in enumerate(source.frames(columns)):
            blocks.store(index, frame, np.array([labels[name] for name in texts], classes.dtype))
        if encoded:
            features = _fitted_features(source, blocks, columns)
            for index, (frame, y, _) in enumerate(source.passed(blocks, "Encoding")):
                blocks.store(index, features.transform(frame), y)
        rows_of = np.array([counts[name] for name in classes.tolist()], dtype=np.intp)
        yield StreamedTable(blocks, features, classes, rows_of, columns)


@dataclass(eq=False)
class TableSource:
    """A file, which is read twice and must be the same both times, and the passes so far."""

    path: Path
    target: str
    drop: tuple[str, ...]
    progress: Reach
    max_rows: int
    stage: int = -1
    state: tuple[int, ...] | None = None

    def _begin(self, label: str, length: int) -> Callable[[int], None]:
        """A function that reports how far a new pass is."""
        self.stage += 1
        begin = 100 * self.stage
        return lambda done: self.progress(begin + int(100 * done / max(1, length)), label)

    def _chunks(self, label: str, columns: tuple[Column, ...] | None = None) -> Iterator[Any]:
        report = self._begin(label, self.path.stat().st_size)
        texts, max_rows = [self.target], self.max_rows
        for chunk in read_chunks(
            self.path, columns, texts=texts, progress=report, max_rows=max_rows
        ):
            now = self.path.stat()
            state = now.st_ino, now.st_size, now.st_mtime_ns
            self.state = self.state or state
            if state != self.state:
                raise InvalidInputError(
                    f"{self.path} changed while it was read: give a copy that nobody writes to."
                )
            yield chunk

    def look(self) -> tuple[tuple[Column, ...], Counter[str]]:
        """The kinds of all columns, and how many rows every label has."""
        kinds: dict[str, list[Column]] = {}
        labels: Counter[str] = Counter()
        for chunk in self._chunks("Reading"):
            label, others = label_and_dropped(chunk, self.target, self.drop)
            missing = chunk[label].isna().to_numpy()
            if missing.any():
                row = chunk.index[int(np.argmax(missing))] + 1
                raise InvalidInputError(
                    f"The label {self.target!r} is missing in data row {row}: remove such rows or "
                    "fill them in (values such as NA, None and ? are read as missing)."
                )
            labels.update(map(text_of, chunk[label].tolist()))
            for column in columns_of(chunk.drop(columns=[label, *others])):
                kinds.setdefault(column.name, []).append(column)
        columns = tuple(_joined(by_chunk) for by_chunk in kinds.values())
        refuse_empty(columns)
        return columns, labels

    def frames(self, columns: tuple[Column, ...]) -> Iterator[tuple[Any, list[str]]]:
        """Features as models read them, and labels as texts, a chunk at a time."""
        for chunk in self._chunks("Storing", columns):
            target = find_column(chunk, self.target)
            yield conform(chunk, columns), [text_of(name) for name in chunk[target].tolist()]

    def passed(self, blocks: Blocks, label: str) -> Iterator[Block]:
        """A pass over the stored blocks."""
        report = self._begin(label, len(blocks))
        for index in range(len(blocks)):
            report(index)
            yield blocks[index]


def _joined(found: list[Column]) -> Column:
    """One column from what it is in every chunk."""
    kinds = {column.kind for column in found} - {"empty"}
    kind = kinds.pop() if len(kinds) == 1 else "text" if kinds else "empty"
    first = next((column for column in found if column.kind != "empty"), found[0])
    return Column(
        first.name,
        kind,
        first.dtype,
        sum(column.n_missing for column in found),
        sum(column.n_infinite for column in found),
        max(column.n_distinct for column in found),
    )


def _fitted_features(
    source: TableSource, blocks: Blocks, columns: tuple[Column, ...]
) -> ColumnTransformer:
    """The preprocessing of a linear model, fitted in two passes."""
    pandas, random, keys = require("pandas", extra="cli"), np.random.default_rng(0), np.empty(0)
    used = tuple(column for column in columns if column.kind != "empty")
    numbers = [column.name for column in used if column.is_numeric]
    levels: dict[str, Counter[Any]] = {c.name: Counter() for c in used if c.is_categorical}
    gaps, sample = set[str](), pandas.DataFrame(columns=numbers, dtype=np.float64)
    for frame, *_ in source.passed(blocks, "Learning"):
        for name, counter in levels.items():
            counter.update(frame[name].fillna(MISSING).value_counts().to_dict())
            if len(counter) > 2 * _COUNTED:
                levels[name] = Counter(dict(counter.most_common(_COUNTED)))
        gaps |= {name for name in numbers if frame[name].isna().any()}
        keys = np.concatenate([keys, random.random(len(frame))])
        sample = pandas.concat([sample, frame[numbers]]) if len(sample) else frame[numbers]
        if len(sample) > MEDIAN_ROWS:
            kept = np.sort(np.argpartition(keys, MEDIAN_ROWS)[:MEDIAN_ROWS])
            sample, keys = sample.iloc[kept], keys[kept]
    features = preprocessor(used).fit(_stand_in(used, levels, gaps))
    if numbers:
        steps = features.named_transformers_["numbers"].steps
        (_, fill), (word, scale) = steps
        fill.statistics_ = sample.median().fillna(0.0).to_numpy(dtype=np.float64)
        steps[1] = word, (scale := clone(scale))
        for frame, *_ in source.passed(blocks, "Scaling"):
            scale.partial_fit(fill.transform(frame[numbers]))
    return features


def _stand_in(used: Sequence[Column], levels: dict[str, Counter[Any]], gaps: set[str]) -> Any:
    """A small table of which the preprocessing learns the levels and the gaps of the whole.

    A frequent level has a row more than the next, and one rare level, in one row, stands for all.
    """
    made: dict[str, list[Any]] = {}
    for name, counter in levels.items():
        ranked = sorted(counter, key=lambda level: (-counter[level], str(level)))
        frequent = [level for level in ranked if counter[level] >= MIN_LEVEL_ROWS]
        if not MAX_LEVELS >= len(frequent) == len(ranked):
            frequent = frequent[: MAX_LEVELS - 1]
        rare = ranked[len(frequent) :]
        times = range(MIN_LEVEL_ROWS + len(frequent), MIN_LEVEL_ROWS, -1)
        made[name] = np.repeat(np.array(frequent, dtype=object), times).tolist() + rare[:1]
        made[name] = made[name] if frequent else rare
    n_rows = max([2, *map(len, made.values())])
    table = {column.name: np.zeros(n_rows) for column in used}
    for name in gaps:
        table[name][0] = np.nan
    for name, values in made.items():
        # More rows of the most frequent level; where all are rare, of each as many.
        more = values[:1] if values.count(values[0]) > 1 else values
        table[name] = np.array([*values, *np.resize(more, n_rows)][:n_rows], dtype=object)
    return require("pandas", extra="cli").DataFrame(table)


class SomeLeftOut(Blocks):
    """The same blocks, in which about a share of the rows weighs nothing, never all of a class."""

    def __init__(self, blocks: Blocks, share: float, seed: int) -> None:
        self._blocks, self._share, self._seed = blocks, share, seed

    def __len__(self) -> int:
        return len(self._blocks)

    def __getitem__(self, index: int) -> Block:
        X, y, _ = self._blocks[index]
        return Block(X, y, 1.0 - self._aside(index, y))

    def _aside(self, index: int, y: NDArray[Any]) -> NDArray[np.bool_]:
        aside = np.random.default_rng([self._seed, index]).random(len(y)) < self._share
        aside[np.unique(y, return_index=True)[1]] = False
        return np.asarray(aside)

    def predicted(self, model: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Labels of the held-out rows, and what a model predicts for them."""
        pairs = []
        for index, (X, y, _) in enumerate(map(self._blocks.__getitem__, range(len(self)))):
            aside = self._aside(index, y)
            if aside.any():
                pairs.append((y[aside], model.predict(X[aside])))
        if not pairs:
            return np.array([]), np.array([])
        true, predictions = zip(*pairs, strict=True)
        return np.concatenate(true), np.concatenate(predictions)
