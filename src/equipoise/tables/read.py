"""CSV, gzipped CSV and Parquet files as pandas DataFrames, at once or in chunks.

What a file is, its first bytes say, not its name. A value that is empty or one of ``NA``, ``N/A``,
``null``, ``None``, ``NaN`` and ``?`` is missing.
"""

import csv
import gzip
import warnings
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

from equipoise.exceptions import EquipoiseError, InvalidInputError
from equipoise.extras import require
from equipoise.tables.columns import Column, check_names

# Values in a chunk, whatever the number of columns: 8 MB of float64, and more as one-hot columns.
_CHUNK_VALUES = 1 << 20
_MIN_CHUNK_ROWS = 1 << 10
_MAX_CHUNK_ROWS = 1 << 16

_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"%PDF": "a PDF document",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ": "compressed with xz",
}
_DELIMITERS = (",", ";", "\t", "|")

# What readers raise on damaged files has no end; these can be told apart.
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
    r"""The whole table in a file, as a pandas DataFrame with distinct column names and rows.

    The file is a CSV file (columns set apart by commas, semicolons, tabs or bars; UTF-8; a header
    line), gzipped or not, or a Parquet file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "towns.csv")
    ...     _ = path.write_text("town;size\nUlm;126\nBonn;?\n")
    ...     read_table(path)["size"].tolist()
    [126.0, nan]
    """
    with _sentences(path), _opened(path) as (stream, is_parquet):
        if is_parquet:
            table = _parquet_file(stream).read().to_pandas()
        else:
            with _strict():
                table = _csv(stream)
        check_names(table.columns)
    if len(table) == 0:
        raise InvalidInputError(f"{path} has a header but no rows.")
    return table.reset_index(drop=True)


def read_chunks(
    path: str | Path,
    columns: Sequence[Column] | None = None,
    *,
    texts: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Generator[Any, None, None]:
    r"""The table in a file, a chunk of rows at a time, in a memory that does not grow with it.

    Row numbers run on from chunk to chunk. With ``columns`` as they were in training, texts are
    read as texts in every chunk, whatever a chunk by itself looks like; ``texts`` are further
    columns to read as texts. ``progress`` is called with the number of bytes of the file read so
    far.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "towns.csv")
    ...     _ = path.write_text("town,size\nUlm,126\nBonn,331\n")
    ...     [len(chunk) for chunk in read_chunks(path)]
    [2]
    """
    as_text = {*texts, *(column.name for column in columns or () if column.kind == "text")}
    empty = True
    with _sentences(path), _opened(path) as (stream, is_parquet):
        parts = _parquet_chunks(stream) if is_parquet else _csv_chunks(stream, as_text)
        # A reader that is given up on must end before its file is closed.
        with closing(parts) as chunks:
            for chunk in chunks:
                if empty:
                    check_names(chunk.columns)
                empty = empty and len(chunk) == 0
                if progress is not None:
                    progress(_position(stream))
                if len(chunk):
                    yield chunk
    if empty:
        raise InvalidInputError(f"{path} has a header but no rows.")


def _chunk_rows(n_columns: int) -> int:
    return min(_MAX_CHUNK_ROWS, max(_MIN_CHUNK_ROWS, _CHUNK_VALUES // max(1, n_columns)))


def _position(stream: Any) -> int:
    raw: Any = stream.fileobj if isinstance(stream, gzip.GzipFile) else stream
    return 0 if raw is None or raw.closed else int(raw.tell())


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[Any, bool]]:
    """The bytes of a table, unpacked, and whether they are Parquet's."""
    place = Path(path)
    if place.is_dir():
        raise InvalidInputError(f"{str(path)!r} is a folder; give the path of a table inside it.")
    if not place.exists():
        raise InvalidInputError(f"There is no file {path}.")
    with place.open("rb") as stream:
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
        is_clear = isinstance(error, EquipoiseError)
        if is_clear or (isinstance(error, OSError) and error.errno is not None):
            raise
        if _HIDES_INTERRUPT in str(error):
            raise KeyboardInterrupt from error
        problem = next(text for kinds, text in _PROBLEMS.items() if isinstance(error, kinds))
        raise InvalidInputError(f"{path} {problem.format(_short(error))}.") from error


def _short(error: Exception) -> str:
    """The first line of a message, without the reader's own preface."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].removeprefix("Error tokenizing data. C error: ").rstrip(".")[:200]


# CSV


def _csv_chunks(stream: BinaryIO, texts: set[str]) -> Generator[Any, None, None]:
    with _csv(stream, texts, in_chunks=True) as chunks:
        while True:
            # The filters of warnings are the caller's again while it has the chunk.
            with _strict():
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk


@contextmanager
def _strict() -> Iterator[None]:
    """Rows longer than the header, whose ends pandas would drop with a warning, are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", require("pandas", extra="cli").errors.ParserWarning)
        yield


def _csv(stream: BinaryIO, texts: Iterable[str] = (), *, in_chunks: bool = False) -> Any:
    names, delimiter = _header(stream)
    check_names(names)
    return require("pandas", extra="cli").read_csv(
        stream,
        sep=delimiter,
        dtype={name: str for name in texts if name in names} or None,
        index_col=False,
        low_memory=False,
        na_values=["?"],
        encoding="utf-8-sig",
        chunksize=_chunk_rows(len(names)) if in_chunks else None,
    )


def _header(stream: BinaryIO) -> tuple[list[str], str]:
    """Column names and delimiter; the stream is left where it began."""
    text = TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        found = []
        for mark in _DELIMITERS:
            text.seek(0)
            first = next((row for row in csv.reader(text, delimiter=mark) if row), [])
            found.append((first, mark))
    finally:
        text.detach()
        stream.seek(0)
    # The first of the longest: a comma inside a name outweighs no row of semicolons.
    names, delimiter = max(found, key=lambda candidate: len(candidate[0]))
    if any("\x00" in name for name in names):
        raise ValueError("it is not a text: its first line holds a zero byte")
    if not any(name.strip() for name in names):
        raise ValueError("it is empty; a table has a header line and at least one row")
    return names, delimiter


# Parquet


def _parquet_file(stream: BinaryIO) -> Any:
    return require("pyarrow.parquet", extra="cli").ParquetFile(stream)


def _parquet_chunks(stream: BinaryIO) -> Generator[Any, None, None]:
    file = _parquet_file(stream)
    begin = 0
    for batch in file.iter_batches(batch_size=_chunk_rows(len(file.schema_arrow.names))):
        chunk = batch.to_pandas().reset_index(drop=True)
        chunk.index += begin
        begin += len(chunk)
        yield chunk
