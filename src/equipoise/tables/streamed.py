"""Tables that do not fit in memory: read in chunks, fitted in passes, stored as blocks.

What the preprocessing of :mod:`equipoise.tables.features` needs of a whole table is computed in
passes over chunks: levels of texts and their rows, medians (of a sample of rows), means and
deviations. Then the features are stored once, as blocks in a temporary folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp
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

# Passes over a file that are not yet fits; ``progress`` counts to 100 in each.
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


def _frame(path: Path) -> Any:
    return require("pandas", extra="cli").read_pickle(path, compression=None)


_READ: dict[str, Callable[[Path], Any]] = {".npy": np.load, ".npz": sp.load_npz, ".frame": _frame}


class StoredBlocks(Blocks):
    """Blocks in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._labels = folder, sorted(folder.glob("y*.npy"))

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> Block:
        y = np.load(self._labels[index])
        path = next(self._folder.glob(f"X{index:08}.*"))
        return Block(_READ[path.suffix](path), y)

    def add(self, X: Any, y: NDArray[Any]) -> None:
        """Store one more block."""
        index = len(self._labels)
        if hasattr(X, "iloc"):
            X.to_pickle(self._folder / f"X{index:08}.frame", compression=None)
        elif sp.issparse(X):
            sp.save_npz(self._folder / f"X{index:08}.npz", sp.csr_matrix(X), compressed=False)
        else:
            np.save(self._folder / f"X{index:08}.npy", X)
        self._labels.append(self._folder / f"y{index:08}.npy")
        np.save(self._labels[-1], y)


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
    with TemporaryDirectory(prefix="equipoise-") as folder:
        source = TableSource(path, target, tuple(drop), progress, max_rows)
        columns, names = source.look()
        labels = labels_by_text(names, target, text_labels=text_labels)
        features = None
        if encoded:
            source.convert(Path(folder), columns)
            used = tuple(column for column in columns if column.kind != "empty")
            features = _fitted_features(source, columns, used)
        classes = np.unique(np.array(list(labels.values())))
        stored, counts = StoredBlocks(Path(folder)), Counter[Any]()
        for frame, texts in source.frames(columns, "Encoding" if encoded else "Storing"):
            y = np.array([labels[name] for name in texts], dtype=classes.dtype)
            stored.add(frame if features is None else features.transform(frame), y)
            counts.update(y.tolist())
        source.forget()
        rows = np.array([counts[name] for name in classes.tolist()], dtype=np.intp)
        yield StreamedTable(stored, features, classes, rows, columns)


class TableSource:
    """Chunks of a file; those of a CSV file are converted once to a temporary Parquet file."""

    def __init__(
        self, path: str | Path, target: str, drop: tuple[str, ...], progress: Reach, max_rows: int
    ) -> None:
        self._path, self._target, self._drop, self._progress = Path(path), target, drop, progress
        self._max_rows, self._converted = max_rows, None  # type: tuple[int, Path | None]
        self._stage = -1
        self._state: tuple[int, ...] | None = None  # of the file, when it was first read

    def _chunks(self, label: str, columns: tuple[Column, ...] | None = None) -> Iterator[Any]:
        file = self._converted or self._path
        self._stage += 1
        begin = 100 * self._stage

        def report(done: int) -> None:
            self._progress(begin + int(100 * done / max(1, file.stat().st_size)), label)

        texts, max_rows = [self._target], self._max_rows
        for chunk in read_chunks(file, columns, texts=texts, progress=report, max_rows=max_rows):
            if file == self._path:
                self._refuse_change()
            yield chunk

    def _refuse_change(self) -> None:
        """The file is read several times, and must be the same file every time."""
        now = self._path.stat()
        state = now.st_ino, now.st_size, now.st_mtime_ns
        self._state = self._state or state
        if state != self._state:
            raise InvalidInputError(
                f"{self._path} changed while it was read: give a copy that nobody writes to."
            )

    def look(self) -> tuple[tuple[Column, ...], Counter[str]]:
        """The kinds of all columns, and how many rows every label has."""
        kinds: dict[str, list[Column]] = {}
        labels: Counter[str] = Counter()
        for chunk in self._chunks("Reading"):
            label, others = label_and_dropped(chunk, self._target, self._drop)
            missing = chunk[label].isna().to_numpy()
            if missing.any():
                row = chunk.index[int(np.argmax(missing))] + 1
                raise InvalidInputError(
                    f"The label {self._target!r} is missing in data row {row}: remove such rows or "
                    "fill them in (values such as NA, None and ? are read as missing)."
                )
            labels.update(map(text_of, chunk[label].tolist()))
            for column in columns_of(chunk.drop(columns=[label, *others])):
                kinds.setdefault(column.name, []).append(column)
        columns = tuple(_joined(by_chunk) for by_chunk in kinds.values())
        refuse_empty(columns)
        return columns, labels

    def frames(self, columns: tuple[Column, ...], label: str) -> Iterator[tuple[Any, list[str]]]:
        """Features as models read them, and labels as texts, a chunk at a time."""
        for chunk in self._chunks(label, columns):
            target = find_column(chunk, self._target)
            yield conform(chunk, columns), [text_of(name) for name in chunk[target].tolist()]

    def convert(self, folder: Path, columns: tuple[Column, ...]) -> None:
        """A CSV file as a Parquet file in the folder."""
        with self._path.open("rb") as stream:
            if stream.read(4) == b"PAR1":
                return
        arrow, parquet = (require(f"pyarrow{part}", extra="cli") for part in ("", ".parquet"))
        file, writer = folder / "table.parquet", None
        try:
            for frame, names in self.frames(columns, "Converting"):
                table = arrow.Table.from_pandas(
                    frame.assign(**{self._target: names}), preserve_index=False
                )
                schema = _schema(arrow, columns, self._target)
                writer = writer or parquet.ParquetWriter(file, schema)
                writer.write_table(table.cast(schema))
        finally:
            if writer is not None:
                writer.close()
        self._converted = file

    def forget(self) -> None:
        """Remove the converted file, which is not needed any more."""
        if self._converted is not None:
            self._converted.unlink()


def _schema(arrow: Any, columns: tuple[Column, ...], target: str) -> Any:
    kinds = [
        (c.name, arrow.float64() if c.is_numeric else arrow.string())
        for c in columns
        if c.kind != "empty"
    ]
    return arrow.schema([*kinds, (target, arrow.string())])


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
    source: TableSource, columns: tuple[Column, ...], used: tuple[Column, ...]
) -> ColumnTransformer:
    """The preprocessing of a linear model, fitted in two passes."""
    pandas = require("pandas", extra="cli")
    random, keys = np.random.default_rng(0), np.empty(0)
    levels: dict[str, Counter[Any]] = {c.name: Counter() for c in used if c.is_categorical}
    gaps: set[str] = set()
    sample: Any = None
    for frame, _ in source.frames(columns, "Learning"):
        for name, counter in levels.items():
            counter.update(frame[name].fillna(MISSING).value_counts().to_dict())
            if len(counter) > 2 * _COUNTED:
                levels[name] = Counter(dict(counter.most_common(_COUNTED)))
        gaps |= {c.name for c in used if c.is_numeric and frame[c.name].isna().any()}
        keys = np.concatenate([keys, random.random(len(frame))])
        sample = frame if sample is None else pandas.concat([sample, frame])
        if len(sample) > MEDIAN_ROWS:
            kept = np.sort(np.argpartition(keys, MEDIAN_ROWS)[:MEDIAN_ROWS])
            sample, keys = sample.iloc[kept], keys[kept]
    features = preprocessor(used).fit(_stand_in(pandas, sample, levels, gaps))
    numbers = [column.name for column in used if column.is_numeric]
    if numbers:
        steps = features.named_transformers_["numbers"].steps
        (_, fill), (word, scale) = steps
        fill.statistics_ = sample[numbers].median().fillna(0.0).to_numpy(dtype=np.float64)
        steps[1] = word, (scale := clone(scale))
        for frame, _ in source.frames(columns, "Scaling"):
            scale.partial_fit(fill.transform(frame[numbers]))
    return features


def _stand_in(pandas: Any, sample: Any, levels: dict[str, Counter[Any]], gaps: set[str]) -> Any:
    """A table of which the preprocessing learns the levels and the gaps of the whole.

    Frequent levels appear as often as keeps their order, one of the rare ones once: it stands for
    all of them.
    """
    made = {}
    for name, counter in levels.items():
        ranked = sorted(counter.items(), key=lambda item: (-item[1], str(item[0])))
        frequent = [level for level, rows in ranked if rows >= MIN_LEVEL_ROWS]
        if len(frequent) > MAX_LEVELS or len(frequent) < len(ranked):
            frequent = frequent[: MAX_LEVELS - 1]
        times = [MIN_LEVEL_ROWS + len(frequent) - position for position in range(len(frequent))]
        values = [level for level, n in zip(frequent, times, strict=True) for _ in range(n)]
        rare = [level for level, _ in ranked if level not in set(frequent)]
        made[name] = values + rare[:1] if values else rare
    n_rows = max([len(values) for values in made.values()] + [len(sample)])
    frame = pandas.DataFrame(index=range(n_rows))
    for name in sample.columns:
        if name in made:
            values = made[name]
            more = n_rows - len(values)
            # The most frequent level once more; where all are rare, each as often as others.
            once = values[:1] if values.count(values[0]) > 1 else values
            frame[name] = np.array(values + (once * more)[:more], dtype=object)
        else:
            numbers = np.resize(sample[name].to_numpy(dtype=np.float64), n_rows)
            if name in gaps:
                numbers[0] = np.nan
            frame[name] = numbers
    return frame


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
