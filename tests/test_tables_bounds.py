"""Tables that would fill the memory or take for ever: rows without an end, and very wide ones."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.exceptions import InvalidInputError

pd = pytest.importorskip("pandas", minversion="2.1")

from equipoise.tables import read_chunks, read_table  # noqa: E402
from equipoise.tables.columns import check_names  # noqa: E402


@given(
    cells=st.lists(st.text(alphabet='ab1",;\n ', min_size=1, max_size=8), min_size=1, max_size=40),
    size=st.integers(1, 20),
)
def test_chunks_of_few_rows_are_the_table_too(tmp_path_factory, cells, size):
    frame = pd.DataFrame({"a": [f"x{cell}" for cell in cells], "b": range(len(cells))})
    path = tmp_path_factory.mktemp("rows") / "table.csv"
    frame.to_csv(path, index=False)
    chunks = list(read_chunks(path, max_rows=size))
    pd.testing.assert_frame_equal(pd.concat(chunks), read_table(path))
    assert pd.concat(chunks)["a"].tolist() == frame["a"].tolist()


@given(
    cells=st.lists(st.sampled_from(["", "7", "-1.5", "NA"]), min_size=1, max_size=40),
    before=st.sampled_from(["", "\n", "\r\n \r\n", "\ufeff", "\ufeff\n\n"]),
    end=st.sampled_from(["\n", "\r\n"]),
    size=st.integers(1, 20),
)
def test_lines_of_one_column_are_as_many_rows(tmp_path_factory, cells, before, end, size):
    path = tmp_path_factory.mktemp("lines") / "table.csv"
    path.write_text(before + end.join(["x", *cells, ""]), encoding="utf-8", newline="")
    chunks = list(read_chunks(path, copied=["x"], max_rows=size))
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
