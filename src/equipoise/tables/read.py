"""CSV, gzipped CSV and Parquet files as pandas DataFrames, at once or in chunks.

What a file is, its first bytes say, not its name. A value that is empty or one of ``NA``, ``N/A``,
``null``, ``None``, ``NaN``, ``?`` and their like is missing. So is the value of a blank line in a
table of one column; in others blank lines are not rows.
"""

import gzip
import re
import warnings
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from equipoise.exceptions import EquipoiseError, InvalidInputError
from equipoise.extras import require
from equipoise.tables.columns import Column, check_names

# Values in a chunk, whatever the number of columns: 8 MB of float64, and more as one-hot columns.
_CHUNK_VALUES = 1 << 20
# Rows of a chunk, at least and at most.
_MIN_CHUNK_ROWS, MAX_CHUNK_ROWS = 1 << 10, 1 << 16

# The mark alone could be the name of a column; in a Parquet file a number follows it.
_PARQUET, _GZIP = b"PAR1\x15", b"\x1f\x8b"
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"%PDF": "a PDF document",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ": "compressed with xz",
}
# Texts that are missing values: those of pandas, and one that is common beside them.
_MISSING = (
    "",
    "?",
    "NA",
    "N/A",
    "n/a",
    "<NA>",
    "#NA",
    "#N/A",
    "#N/A N/A",
    "NULL",
    "null",
    "None",
    "NaN",
    "nan",
    "-NaN",
    "-nan",
    "1.#IND",
    "-1.#IND",
    "1.#QNAN",
    "-1.#QNAN",
)
_DELIMITERS = (",", ";", "\t", "|")
# Lines before the header, after the mark that some texts begin with.
_BLANK_LINES = re.compile(rb"(?:\xef\xbb\xbf)?((?:[ \t]*(?:\r\n|\n|\r))*)")
_LINE_END = re.compile(rb"\r\n|\n|\r")

# Errors of readers on damaged files that have a sentence of their own.
_PROBLEMS: dict[Any, str] = {
    MemoryError: "does not fit into memory",
    UnicodeError: "is not a text in UTF-8 ({}); save it as a CSV file in UTF-8",
    (EOFError, zlib.error, gzip.BadGzipFile): "is damaged: it cannot be unpacked ({})",
    Exception: "cannot be read as a table: {}",
}
# An interrupt that reaches pandas while it waits for bytes has no text, and is lost: what is left
# is this sentence, which no other error comes out as.
_HIDES_INTERRUPT = "Calling read(nbytes) on source failed"


def read_table(path: str | Path) -> Any:
    """The whole table in a file, as a pandas DataFrame with distinct column names and rows.

    The file is a CSV file (columns set apart by commas, semicolons, tabs or bars; UTF-8; a header
    line), gzipped or not, or a Parquet file.

    Examples
    --------
    >>> from importlib.resources import files
    >>> read_table(files("equipoise.datasets") / "data" / "thyroid.csv.gz").shape
    (7200, 22)
    """
    (table,) = _chunks(path)
    return table.reset_index(drop=True)


def read_chunks(
    path: str | Path,
    columns: Sequence[Column] | None = None,
    *,
    texts: Sequence[str] = (),
    copied: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
    max_rows: int = MAX_CHUNK_ROWS,
) -> Generator[Any, None, None]:
    """The table in a file, a chunk of rows at a time, in a memory that does not grow with it.

    A chunk has at most ``max_rows`` rows, and fewer where the table has many columns. Row numbers
    run on from chunk to chunk. With ``columns`` as they were in training, texts are read as texts
    in every chunk, whatever a chunk by itself looks like; ``texts`` are further columns to read as
    texts. Those that are ``copied`` are read as they are written, ``NA`` as a text and a whole
    number beside gaps as one; ``as_read`` makes ordinary columns of them. ``progress`` is called
    with the number of bytes of the file read so far.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("equipoise.datasets") / "data" / "thyroid.csv.gz"
    >>> [chunk.shape for chunk in read_chunks(path)]
    [(7200, 22)]
    """
    as_text = {*texts, *(column.name for column in columns or () if column.kind == "text")}
    return _chunks(path, as_text, copied, progress, max_rows)


def as_read(series: Any) -> Any:
    """A column that was read to be copied, as any other is: with missing values."""
    return series.mask(series.isin(_MISSING)) if series.dtype.kind == "O" else series


def _chunks(
    path: str | Path,
    texts: Iterable[str] = (),
    copied: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
    max_rows: int | None = None,
) -> Generator[Any, None, None]:
    """Chunks of at least one row, or without ``max_rows`` the whole table as one."""
    empty = True
    with _sentences(path), _opened(path) as (stream, is_parquet):
        if is_parquet:
            parts = _parquet(stream, copied, max_rows)
        else:
            parts = _csv(stream, texts, copied, max_rows)
        # A reader that is given up on must end before its file is closed.
        with closing(parts) as chunks:
            for chunk in chunks:
                if progress is not None:
                    progress(getattr(stream, "fileobj", stream).tell())
                if len(chunk):
                    empty = False
                    yield chunk
    if empty:
        raise InvalidInputError(f"{path} has a header but no rows.")


def _chunk_rows(n_columns: int, max_rows: int) -> int:
    return min(max_rows, max(_MIN_CHUNK_ROWS, _CHUNK_VALUES // max(1, n_columns)))


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[Any, bool]]:
    """The bytes of a table, unpacked, and whether they are Parquet's."""
    file = Path(path)
    if file.is_dir():
        raise InvalidInputError(f"{str(path)!r} is a folder; give the path of a table inside it.")
    if not file.exists():
        raise InvalidInputError(f"There is no file {path}.")
    with file.open("rb") as stream:
        first = stream.read(8)
        stream.seek(0)
        for start, what in _FOREIGN.items():
            if first.startswith(start):
                raise InvalidInputError(
                    f"{path} is {what}; give a CSV file (gzipped or not) or a Parquet file."
                )
        if first.startswith(_GZIP):
            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield unpacked, False
        else:
            yield stream, first.startswith(_PARQUET)


@contextmanager
def _sentences(path: str | Path) -> Iterator[None]:
    """Errors of the readers as sentences that name the file."""
    try:
        yield
    except Exception as error:
        # An error of the system has a number.
        if isinstance(error, EquipoiseError) or getattr(error, "errno", None) is not None:
            raise
        if _HIDES_INTERRUPT in str(error):
            raise KeyboardInterrupt from error
        problem = next(text for kinds, text in _PROBLEMS.items() if isinstance(error, kinds))
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        detail = first.removeprefix("Error tokenizing data. C error: ").rstrip(".")[:200]
        raise InvalidInputError(f"{path} {problem.format(detail)}.") from error


# CSV


def _csv(
    stream: BinaryIO, texts: Iterable[str], copied: Sequence[str], max_rows: int | None
) -> Generator[Any, None, None]:
    names, delimiter, n_blank = _header(stream)
    check_names(names)
    pandas = require("pandas", extra="cli")
    # In one column a blank line is how a missing value is written.
    blank_rows = len(names) == 1
    with pandas.read_csv(
        stream,
        sep=delimiter,
        header=n_blank if blank_rows else 0,
        skip_blank_lines=not blank_rows,
        dtype=dict.fromkeys({*texts, *copied}.intersection(names), str) or None,
        index_col=False,
        low_memory=False,
        na_values=_missing_by_name(names, copied) if copied else _MISSING,
        keep_default_na=False,
        iterator=True,
        chunksize=None if max_rows is None else _chunk_rows(len(names), max_rows),
    ) as reader:
        while True:
            # The filters of warnings are the caller's again while it has the chunk.
            # Of rows longer than the header pandas would drop the ends with a warning.
            with warnings.catch_warnings(action="error", category=pandas.errors.ParserWarning):
                chunk = next(reader, None)
            if chunk is None:
                return
            yield chunk


def _missing_by_name(names: list[str], copied: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Which texts are missing values, by the names that pandas gives to columns."""
    pandas_names = (name or f"Unnamed: {position}" for position, name in enumerate(names))
    return {name: () if name in copied else _MISSING for name in pandas_names}


def _header(stream: BinaryIO) -> tuple[list[str], str, int]:
    """Column names, delimiter and blank lines before them; the stream is left where it began."""
    pandas, candidates = require("pandas", extra="cli"), []
    options = {"header": None, "nrows": 1, "dtype": str, "na_filter": False}
    for mark in _DELIMITERS:
        # An empty file has no first row.
        with suppress(pandas.errors.EmptyDataError):
            row = pandas.read_csv(stream, sep=mark, **options)
            candidates.append(([str(name) for name in row.iloc[0]], mark))
        stream.seek(0)
    # The first of the longest: a comma inside a name outweighs no row of semicolons, and where
    # quotation marks are left in the names, fields were parted elsewhere.
    names, delimiter = max(
        candidates or [([], ",")], key=lambda each: ('"' not in "".join(each[0]), len(each[0]))
    )
    # Some pandas end a name at a zero byte.
    start = stream.read(1 << 16)
    stream.seek(0)
    if b"\x00" in start.partition(b"\n")[0] or any("\x00" in name for name in names):
        raise ValueError("it is not a text: its first line holds a zero byte")
    if not any(name.strip() for name in names):
        raise ValueError("it is empty; a table has a header line and at least one row")
    blank = _BLANK_LINES.match(start)
    return names, delimiter, len(_LINE_END.findall(blank[1])) if blank else 0


def _parquet(
    stream: BinaryIO, copied: Sequence[str], max_rows: int | None
) -> Generator[Any, None, None]:
    file = require("pyarrow.parquet", extra="cli").ParquetFile(stream)
    names, begin = file.schema_arrow.names, 0
    check_names(names)
    if max_rows is None:
        batches = iter([file.read()])
    else:
        batches = file.iter_batches(_chunk_rows(len(names), max_rows))
    for batch in batches:
        chunk = batch.to_pandas().reset_index(drop=True)
        for name in filter(lambda name: str(name) in copied, chunk.columns):
            chunk[name] = batch[str(name)].to_pandas(integer_object_nulls=True)
        chunk.index += begin
        begin += len(chunk)
        yield chunk
