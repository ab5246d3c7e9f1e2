"""Odd names of files, odd lines and odd values on the command line: nothing is silently wrong."""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

pd = pytest.importorskip("pandas", minversion="2.1")
pytest.importorskip("click")

from click.testing import CliRunner  # noqa: E402

from equipoise import files  # noqa: E402
from equipoise.cli.main import main  # noqa: E402
from equipoise.tables import streamed  # noqa: E402

KEPT = "x,id\n1,NA\n2,007\n3,null\n4,1e5\n5, a \n6,\n7,nan\n8,2.50\n"


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(result, *words, code=1):
    assert result.exit_code == code and result.stdout == "", result.output
    assert "this is a bug" not in result.stderr and "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


def fitted(folder, feature, name):
    label = np.resize(np.array(["ham", "ham", "spam"]), 60)
    frame = pd.DataFrame({name: feature(np.random.default_rng(0), label), "label": label})
    frame.to_csv(folder / "t.csv", index=False)
    result = run("fit", folder / "t.csv", "-t", "label", "-o", folder / "m.equipoise", "-q")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table with one feature, which is a number, and its model."""
    folder = tmp_path_factory.mktemp("number")
    return fitted(
        folder, lambda rng, label: (rng.normal(size=60) + (label == "spam")).round(3), "x"
    )


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A table with one feature, which is a text, and its model."""
    folder = tmp_path_factory.mktemp("text")
    return fitted(folder, lambda rng, _: rng.choice(["a", "b"], 60), "word")


def predicted(model, path, *options):
    """Predictions as a table of texts, nothing of which is missing."""
    result = run("predict", model, path, "-o", "-", *options)
    assert result.exit_code == 0, result.output
    return pd.read_csv(io.StringIO(result.stdout), dtype=str, keep_default_na=False)


# Outputs


def test_two_outputs_are_not_one_file_nor_an_input(place, tmp_path):
    words = ("report", place / "t.csv", "-t", "label", "--quick", "--model", "linear")
    for name, text in (("out.equipoise", "a page must end in .html"), ("out.html", ".equipoise")):
        out = tmp_path / name
        assert text in run(*words, "-o", out, "--save", out).stderr
    assert list(tmp_path.iterdir()) == []
    refused(run(*words, "-o", out, "--save", place / "t.csv"), "is an input")


def test_a_name_that_ends_as_those_of_folders_is_none_of_a_file(place, tmp_path):
    words = ("-o", f"{tmp_path}/pages/")
    refused(run("report", place / "t.csv", "-t", "label", *words), "is a folder")
    refused(run("predict", place / "m.equipoise", place / "t.csv", *words), "is a folder")
    assert not list(tmp_path.iterdir())


def test_a_page_does_not_go_to_a_file_called_dash(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("report", place / "t.csv", "-t", "label", "-o", "-")
    refused(result, "a page is written to a file", code=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_read_only_is_not_replaced(place, tmp_path, monkeypatch, what):
    """The permissions of a file do not keep anybody from replacing it in its folder."""
    out = tmp_path / "old.equipoise"
    out.write_text("old")
    guarded = out if what == "file" else tmp_path
    access = os.access

    def guarding(each, mode):
        """The user who runs the tests may be allowed everything."""
        return access(each, mode) and not (str(each) == str(guarded) and mode == os.W_OK)

    monkeypatch.setattr(files.os, "access", guarding)
    for words in (
        ("fit", place / "t.csv", "-t", "label", "-o", out),
        ("report", place / "t.csv", "-t", "label", "-o", out),
        ("predict", place / "m.equipoise", place / "t.csv", "-o", out),
    ):
        refused(run(*words), f"because {guarded} is read-only")
    assert out.read_text() == "old"


def test_an_ending_in_capitals_is_gzipped_too(place, tmp_path):
    out = tmp_path / "P.CSV.GZ"
    assert run("predict", place / "m.equipoise", place / "t.csv", "-o", out).exit_code == 0
    assert len(pd.read_csv(out, compression="gzip")) == 60


# Names of files


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are texts there")
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_names_of_files_need_not_be_texts(place, tmp_path, encoding):
    table = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")
    Path(table).write_bytes((place / "t.csv").read_bytes())
    model, out = f"{table}.equipoise", f"{table}.out"
    for words, written in (
        (["fit", table, "-t", "label", "-o", model], model),
        (["predict", model, table, "-o", out], out),
    ):
        result = CliRunner(charset=encoding).invoke(main, words)
        assert (result.exit_code, result.stderr) == (0, ""), (words, result.output)
        assert Path(written).exists() and r"caf\udce9.csv" in result.stdout
    assert run("evaluate", model, table).exit_code == 0
    assert run("report", table, "-t", "label", "-o", tmp_path / "p.html").exit_code == 0
    assert r"caf\udce9.csv" in (tmp_path / "p.html").read_text("utf-8")


# Lines and values


@pytest.mark.parametrize(
    "lines",
    [
        "{}\n1\n\n2\n",
        "{}\n\n1\n2\n",
        "{}\n1\n2\n\n",
        "\n\n{}\n1\n\n2",
        "{}\r\n1\r\n\r\n2\r\n",
        "{}\r1\r\r2\r",
        "\ufeff{}\n1\n\n2\n",
        "\ufeff\n \n{}\n1\n\n2\n",
        '"{}"\n1\n""\n2\n',
    ],
)
@pytest.mark.parametrize("keeps", [False, True])
def test_a_blank_line_in_a_table_of_one_column_is_a_row(place, texts, tmp_path, lines, keeps):
    path = tmp_path / "new.csv"
    for folder, name, values in ((place, "x", "12"), (texts, "word", "ab")):
        text = lines.format(name).replace("1", values[0]).replace("2", values[1])
        path.write_text(text, encoding="utf-8", newline="")
        found = predicted(folder / "m.equipoise", path, *(["--keep", name] if keeps else []))
        assert len(found) == 3, text
        if keeps:
            assert sorted(found[name]) == ["", *values]


def test_blank_lines_between_rows_of_several_columns_are_none(place, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("x,y\n1,2\n\n3,4\n\n")
    assert len(predicted(place / "m.equipoise", path)) == 2


def test_a_line_of_blanks_is_refused_where_a_number_is_expected(place, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("x\n1\n  \n2\n")
    result = run("predict", place / "m.equipoise", path, "-o", "-")
    refused(result, "'x' must hold numbers", "data row 2")


def test_many_blank_lines_are_as_many_predictions(place, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("x\n" + "1\n\n\n" * 50_000)
    result = run("predict", place / "m.equipoise", path, "-o", tmp_path / "p.csv", "--json")
    assert json.loads(result.stdout)["rows"] == 150_000


def test_kept_columns_are_copied_as_they_are_written(place, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text(KEPT)
    expected = pd.read_csv(path, dtype=str, keep_default_na=False)
    found = predicted(place / "m.equipoise", path, "--keep", "id", "--keep", "x")
    assert found["id"].tolist() == expected["id"].tolist()
    assert found["x"].tolist() == expected["x"].tolist()


def test_a_feature_that_is_kept_is_predicted_as_if_it_were_not(place, texts, tmp_path):
    path = tmp_path / "new.csv"
    for folder, name, values in ((place, "x", "1.50,NA,?,-3"), (texts, "word", "a,NA,?,b,other")):
        path.write_text("\n".join([f"{name},more", *(f"{v},z" for v in values.split(","))]) + "\n")
        plain, kept = (
            predicted(folder / "m.equipoise", path, "--proba", *options)
            for options in ((), ("--keep", name))
        )
        assert kept.pop(name).tolist() == values.split(",")
        pd.testing.assert_frame_equal(kept, plain)


def test_whole_numbers_of_parquet_files_are_copied_beside_gaps(place, tmp_path):
    pyarrow = pytest.importorskip("pyarrow", exc_type=ImportError)
    parquet = pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    path, wide = tmp_path / "new.parquet", 2**53 + 1
    columns = {"x": [1, None, 3], "id": [wide, None, 3], "tags": [[1], [2, 3], None]}
    parquet.write_table(pyarrow.table(columns), path)
    found = predicted(place / "m.equipoise", path, "--keep", "id", "--keep", "x")
    assert found["id"].tolist() == [str(wide), "", "3"] and found["x"].tolist() == ["1", "", "3"]
    out = tmp_path / "p.csv"
    refused(
        run("predict", place / "m.equipoise", path, "-o", out, "--keep", "tags"),
        "column 'tags' cannot be copied",
    )
    assert not out.exists()


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "@SUM(A1)", "+x", "-2+3"])
def test_a_header_that_a_spreadsheet_would_run_is_said(place, tmp_path, name):
    path, out = tmp_path / "new.csv", tmp_path / "p.csv"
    pd.DataFrame({"x": [1.0, 2.0], name: [3, 4]}).to_csv(path, index=False)
    words = ("predict", place / "m.equipoise", path, "-o", out)
    assert run(*words).stderr == ""
    result = run(*words, "--keep", name)
    assert result.exit_code == 0 and name in result.stderr and "as a formula" in result.stderr
    assert pd.read_csv(out).columns[0] == name


def test_texts_that_are_missing_values_are_those_of_pandas(tmp_path):
    from equipoise.tables.read import _MISSING, read_table

    cells = [*_MISSING, "na", "Na", "none", "-", "NONE", "nil"]
    path = tmp_path / "t.csv"
    path.write_text("row,cell\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells)))
    expected = pd.read_csv(path, na_values=["?"])
    pd.testing.assert_frame_equal(read_table(path), expected)
    assert expected["cell"].isna().sum() == len(_MISSING)


# Files that change


@pytest.mark.parametrize("labels", [["ham", "spam"], ["ham", "eggs"]])
def test_a_table_that_changes_between_passes_over_it_is_noticed(tmp_path, monkeypatch, labels):
    pytest.importorskip("pyarrow", exc_type=ImportError)
    path, rng = tmp_path / "t.csv", np.random.default_rng(0)

    def write(names, n):
        frame = pd.DataFrame({"x": rng.normal(size=n), "label": rng.choice(names, n)})
        frame.to_csv(path, index=False)

    frames = streamed.TableSource.frames

    def changing(*given):
        write(labels, 300)
        return frames(*given)

    write(["ham", "spam"], 500)
    monkeypatch.setattr(streamed.TableSource, "frames", changing)
    monkeypatch.setattr("equipoise.tables.size_in_memory", lambda _: 1 << 60)
    out = tmp_path / "m.equipoise"
    refused(run("fit", path, "-t", "label", "-o", out), "changed while it was read")
    assert not out.exists()
