"""Tables that would fill the memory or take for ever: rows without an end, and very wide ones."""

import gzip
import io
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.exceptions import InvalidInputError

pd = pytest.importorskip("pandas", minversion="2.1")

from equipoise.tables import read as reading  # noqa: E402
from equipoise.tables import read_chunks, read_table  # noqa: E402
from equipoise.tables.columns import check_names  # noqa: E402

MEGABYTE = 1 << 20
# What the tables would take at least, and what reading them may take, in megabytes.
SIZE, ROOM = 1024, 200

PEAK = textwrap.dedent("""
    import resource, sys
    from equipoise.exceptions import EquipoiseError
    from equipoise.extras import require
    from equipoise.tables import read_chunks, read_table
    require("pandas", extra="cli")

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    ways = {"whole": read_table, "chunks": lambda path: print(sum(map(len, read_chunks(path))))}
    before = peak()
    for path in sys.argv[2:]:
        for way in sys.argv[1].split():
            try:
                ways[way](path)
            except EquipoiseError as error:
                print(error)
    print(peak() - before)
""")


def peak_of_reading(ways, *paths):
    """What came of reading each file in each way, and the megabytes that it took."""
    pytest.importorskip("resource")
    command = [sys.executable, "-c", PEAK, ways, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *said, peak = done.stdout.splitlines()
    return said, float(peak)


def packed(start, part):
    """A file of a gigabyte, made of one part again and again, in little room."""
    return gzip.compress(start, mtime=0) + gzip.compress(part, 1, mtime=0) * SIZE


ENDLESS = {
    "header": (b"", b"x" * MEGABYTE),
    "number": (b"a,b\n1,", b"2" * MEGABYTE),
    "columns": (b"a,b\n1,", b"2,3," * (MEGABYTE // 4)),
    "quoted": (b'a,b\n1,"', b"text\n" * (MEGABYTE // 5)),
    "doubled": (b'a,b\n1,"x"" ', b'text\n,""\n' * (MEGABYTE // 9)),
    # A mark in the middle of a text opens nothing: that at the start of the next one does.
    "stray": (b'a,b\n1,5" wide\n2,"', b"text\n" * (MEGABYTE // 5)),
}


def test_a_row_without_an_end_is_refused_in_little_memory(tmp_path):
    paths = [tmp_path / f"{name}.csv.gz" for name in ENDLESS]
    for path, (start, part) in zip(paths, ENDLESS.values(), strict=True):
        path.write_bytes(packed(start, part))
    said, peak = peak_of_reading("whole chunks", *paths)
    assert peak < ROOM
    rows = ["the header", "data row 1", "data row 1", "data row 1", "data row 1", "data row 2"]
    for path, row, pair in zip(paths, rows, zip(said[::2], said[1::2], strict=True), strict=True):
        assert (
            pair[0]
            == pair[1]
            == (
                f"{path} cannot be read as a table: {row} is longer than 16 MB; a line end or a "
                "closing quotation mark is missing."
            )
        )


def test_long_rows_are_read_a_few_at_a_time(tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(packed(b"a,b\n", b'1,"' + b"long\n" * (MEGABYTE // 5) + b'"\n'))
    said, peak = peak_of_reading("chunks", path)
    assert said == [str(SIZE)] and peak < ROOM


def test_a_row_may_be_long_and_its_end_is_looked_for_no_further(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"a,b\n1,{'x' * (15 * MEGABYTE)}\n2,y\n")
    assert read_table(path)["b"].str.len().tolist() == [15 * MEGABYTE, 1]
    assert sum(len(chunk) for chunk in read_chunks(path)) == 2
    path.write_text(f"a,b\n1,x\n2,{'y' * (18 * MEGABYTE)}\n")
    for read in (read_table, lambda place: list(read_chunks(place))):
        with pytest.raises(InvalidInputError, match="data row 2"):
            read(path)


@given(
    text=st.lists(st.sampled_from([*'ab1"",,;\n \t', "\r\n"]), max_size=60).map("".join),
    block=st.one_of(st.integers(1, 20), st.just(1 << 10)),
    delimiter=st.sampled_from(",;"),
    blank_rows=st.booleans(),
)
def test_rows_are_counted_as_pandas_parts_them(text, block, delimiter, blank_rows):
    """However the bytes are cut: never more than there are, and all but those at a cut."""
    data = f"h{delimiter}i\n{text}".encode()
    names = [str(place) for place in range(70)]
    try:
        whole = pd.read_csv(
            io.BytesIO(data),
            sep=delimiter,
            names=names,
            header=None,
            dtype=str,
            na_filter=False,
            skip_blank_lines=not blank_rows,
        )
    except pd.errors.ParserError:
        whole = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_BLOCK", block)
        rows = reading.BoundedRows(io.BytesIO(data), delimiter, blank_rows=blank_rows)
        while rows.read_ahead(1 << 10) is not None:
            pass
        assert b"".join(iter(rows.read, b"")) == data
    if whole is not None:
        assert rows.n_ahead <= len(whole)
        # The last row may have no line end.
        if block >= len(data):
            assert rows.n_ahead >= len(whole) - 1


@given(
    cells=st.lists(st.text(alphabet='ab1",;\n ', min_size=1, max_size=8), min_size=1, max_size=40),
    size=st.integers(8, 64),
)
def test_chunks_of_few_bytes_are_the_table_too(tmp_path_factory, cells, size):
    frame = pd.DataFrame({"a": [f"x{cell}" for cell in cells], "b": range(len(cells))})
    path = tmp_path_factory.mktemp("rows") / "table.csv"
    frame.to_csv(path, index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_BLOCK", size)
        patch.setattr(reading, "_CHUNK_BYTES", size)
        chunks = list(read_chunks(path))
    pd.testing.assert_frame_equal(pd.concat(chunks), read_table(path))
    assert pd.concat(chunks)["a"].tolist() == frame["a"].tolist()


@given(
    cells=st.lists(st.sampled_from(["", "7", "-1.5", "NA"]), min_size=1, max_size=40),
    before=st.sampled_from(["", "\n", "\r\n \r\n", "\ufeff", "\ufeff\n\n"]),
    end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(3, 64),  # pandas knows the mark at the beginning, of three bytes, in one piece
)
def test_lines_of_one_column_are_as_many_rows(tmp_path_factory, cells, before, end, size):
    path = tmp_path_factory.mktemp("lines") / "table.csv"
    path.write_text(before + end.join(["x", *cells, ""]), encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_BLOCK", size)
        patch.setattr(reading, "_CHUNK_BYTES", size)
        chunks = list(read_chunks(path, copied=["x"]))
    assert pd.concat(chunks)["x"].tolist() == cells
    assert len(read_table(path)) == len(cells)


# Wide tables


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_a_header_may_be_long(tmp_path, mark):
    names = [f"the name of column {place}, which is long" for place in range(9000)]
    values = [str(place) for place in range(9000)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([mark.join(f'"{name}"' for name in names), mark.join(values)]) + "\n")
    assert read_table(path).columns.tolist() == names
    assert [chunk.shape for chunk in read_chunks(path)] == [(1, 9000)]


def test_names_are_not_compared_with_each_other():
    """A hundred thousand of them, of which the last is the first again."""
    names = [f"the name of column {place}" for place in range(100_000)]
    start = time.process_time()
    with pytest.raises(InvalidInputError, match="'the name of column 0' more than once"):
        check_names([*names, names[0]])
    # All pairs would take a minute and more.
    assert time.process_time() - start < 2


@pytest.mark.parametrize("n_columns", [6_500, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_wide_table_is_fitted_and_predicted_in_good_time(tmp_path, n_columns):
    """Work that grows with the square of the columns would take minutes."""
    main = pytest.importorskip("equipoise.cli.main").main
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, n_columns)).round(2))
    frame = frame.add_prefix("the name of column ").assign(label=["a", "b"] * 10)
    frame.to_csv(tmp_path / "t.csv", index=False)
    start = time.process_time()
    for words in (
        "fit t.csv -t label -o m.equipoise --hold-out 0 -q",
        "predict m.equipoise t.csv -o p.csv",
    ):
        files = [str(tmp_path / word) if "." in word else word for word in words.split()]
        main(files, standalone_mode=False)
    # It takes one or two milliseconds for each column.
    assert time.process_time() - start < 0.005 * n_columns
    assert len(pd.read_csv(tmp_path / "p.csv")) == 20
