"""What the commands leave behind, whatever ends them, and what they never write over."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

pd = pytest.importorskip("pandas", minversion="2.1")
pytest.importorskip("click")

from click.testing import CliRunner  # noqa: E402

from equipoise.cli.main import main  # noqa: E402
from interrupts import heed_interrupts  # noqa: E402

COMMAND = [sys.executable, "-m", "equipoise.cli"]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def written(folder, names=("neg", "pos")):
    """A table of two classes and a model fitted to it."""
    rng = np.random.default_rng(0)
    label = np.resize(np.array(names, dtype=object), 60)
    size = rng.normal(size=60).round(3) + (label == names[1])
    frame = pd.DataFrame({"size": size, "probability[pos]": "kept", "label": label})
    frame.to_csv(folder / "t.csv", index=False)
    fitted = run(
        "fit", folder / "t.csv", "-t", "label", "-o", folder / "m.equipoise", "-g", "balanced"
    )
    assert fitted.exit_code == 0, fitted.output
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return written(tmp_path_factory.mktemp("outputs"))


def refused(result, *words):
    assert result.exit_code == 1 and result.stdout == "", result.output
    assert result.stderr.startswith("Error: ") and result.stderr.count("\n") == 1, result.stderr
    assert "this is a bug" not in result.stderr
    for word in words:
        assert word in result.stderr


# Ends


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends processes in another way")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_leaves_no_file_behind(place, tmp_path, name):
    table = tmp_path / "many.csv"
    table.write_text("size,probability[pos],label\n" + "0.5,kept,pos\n" * 2_000_000)
    command = [
        *COMMAND,
        "predict",
        str(place / "m.equipoise"),
        str(table),
        "-o",
        str(tmp_path / "p"),
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, preexec_fn=heed_interrupts, **pipes)  # noqa: PLW1509
    # Once rows are written all is imported: Python may lose an interrupt inside of an import.
    while process.poll() is None:
        with suppress(FileNotFoundError):
            if any(path.stat().st_size for path in tmp_path.glob(".equipoise-*.tmp")):
                break
        time.sleep(0.02)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + getattr(signal, name), err
    assert out == "" and err == "Interrupted.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["many.csv"]


def test_only_a_command_that_keeps_its_work_says_so(place, tmp_path, monkeypatch):
    def interrupted(*given, **more):
        raise KeyboardInterrupt

    # The report takes what is read from tables when it is imported, and so comes first.
    monkeypatch.setattr("equipoise.report.compare_file", interrupted)
    monkeypatch.setattr("equipoise.tables.read_labelled", interrupted)
    monkeypatch.setattr("equipoise.persistence.load_model", interrupted)
    monkeypatch.setattr("equipoise.paper.reproduce", interrupted)
    table, model, out = place / "t.csv", place / "m.equipoise", tmp_path / "out.equipoise"
    for words in (
        ("fit", table, "-t", "label", "-o", out),
        ("report", table, "-t", "label", "-o", tmp_path / "out.html"),
        ("predict", model, table, "-o", out),
        ("evaluate", model, table),
    ):
        result = run(*words)
        assert (result.exit_code, result.stderr) == (130, "Interrupted.\n"), words
        assert not out.exists()
    kept = "Interrupted. What was finished is kept.\n"
    assert run("reproduce", "rates", "--out", out).stderr == kept


# Inputs


def commands(folder, out):
    table, model = folder / "t.csv", folder / "m.equipoise"
    yield ("fit", table, "-t", "label", "-o", out), (table,)
    yield ("report", table, "-t", "label", "-o", out), (table,)
    yield ("predict", model, table, "-o", out), (table, model)


@pytest.mark.parametrize("link", ["itself", "symlink", "links", "hard link", "other spelling"])
def test_no_command_writes_over_what_it_reads(tmp_path, link):
    folder = written(tmp_path)
    for place in (folder / "t.csv", folder / "m.equipoise"):
        out = folder / "out"
        out.unlink(missing_ok=True)
        if link == "symlink":
            out.symlink_to(place)
        elif link == "links":
            (folder / "between").unlink(missing_ok=True)
            (folder / "between").symlink_to(place.name)
            out.symlink_to("between")
        elif link == "hard link":
            out.hardlink_to(place)
        elif link == "itself":
            out = place
        else:
            out = f"{folder}/../{folder.name}/./{place.name}"
        before = place.read_bytes()
        for words, inputs in commands(folder, out):
            if place in inputs:
                refused(run(*words), "is an input: writing would destroy it")
        assert place.read_bytes() == before


def test_a_goal_is_no_file_that_could_be_written_over(place, tmp_path):
    goal = tmp_path / "u.json"
    goal.write_text('{"set": "LabelCVaR", "alpha": 0.5}')
    result = run("fit", place / "t.csv", "-t", "label", "-g", goal, "-o", goal)
    assert result.exit_code == 2 and "is no goal" in result.stderr
    assert goal.read_text() == '{"set": "LabelCVaR", "alpha": 0.5}'


def test_a_link_that_leads_nowhere_is_said(place, tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(tmp_path / "pool")
    (tmp_path / "pool").symlink_to(loop)
    for words, _ in commands(place, loop):
        refused(run(*words), "loop", "is a link to itself")
    refused(run("evaluate", loop, place / "t.csv"), "loop")
    refused(run("evaluate", place / "m.equipoise", loop), "loop")
    assert loop.is_symlink()
    # A link to a place that is not there yet is a place to write to.
    (tmp_path / "new").symlink_to(tmp_path / "p.csv")
    assert (
        run("predict", place / "m.equipoise", place / "t.csv", "-o", tmp_path / "new").exit_code
        == 0
    )
    assert (tmp_path / "new").is_symlink() and (tmp_path / "p.csv").is_file()


# Columns


def test_a_kept_column_is_not_written_over(place, tmp_path):
    out = tmp_path / "p.csv"
    words = [
        "predict",
        place / "m.equipoise",
        place / "t.csv",
        "-o",
        out,
        "--keep",
        "probability[pos]",
    ]
    refused(run(*words, "--proba"), "'probability[pos]' cannot be kept", "rename it")
    assert not out.exists()
    assert run(*words).exit_code == 0
    assert set(pd.read_csv(out)["probability[pos]"]) == {"kept"}


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+x", "-2+3+cmd", "\tx"])
def test_what_a_spreadsheet_would_run_is_said(tmp_path, name):
    folder = written(tmp_path, ("neg", name))
    words = ["predict", folder / "m.equipoise", folder / "t.csv", "-o", folder / "p.csv"]
    result = run(*words)
    assert result.exit_code == 0
    assert "formula" in result.stderr and "as text" in result.stderr
    assert set(pd.read_csv(folder / "p.csv")["prediction"]) == {"neg", name}
    assert "formula" in json.loads(run(*words, "--json").stdout)["warnings"][0]
    assert "formula" in run("predict", "--help").stdout


def test_kept_columns_may_hold_formulas_too_and_numbers_are_none(place, tmp_path):
    rows = pd.read_csv(place / "t.csv").head(3)
    table, out = tmp_path / "t.csv", tmp_path / "p.csv"
    words = ["predict", place / "m.equipoise", table, "-o", out, "--keep", "note"]
    rows.assign(note=["x", "-1.5", "+3"]).to_csv(table, index=False)
    assert run(*words).stderr == ""
    rows.assign(note=["x", "-1.5", "=HYPERLINK(1)"]).to_csv(table, index=False)
    assert "'=HYPERLINK(1)'" in run(*words).stderr


@pytest.mark.parametrize("length", [1 << 15, 1 << 18])
def test_names_of_any_length_make_sentences_of_some_length(tmp_path, length):
    """On the terminal, in the facts of a model, on errors and on warnings."""
    long = "x" * (1 << 18)
    rng = np.random.default_rng(0)
    label = np.resize(np.array(["a", "b", long], dtype=object), 60)
    frame = pd.DataFrame({"size": rng.normal(size=60), "y" * length: "z", "label": label})
    frame.loc[60] = [0.0, "z", "w" * (1 << 18)]
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.assign(label="v" * (1 << 18)).to_csv(tmp_path / "other.csv", index=False)
    frame[["size", "label"]].to_csv(tmp_path / "fewer.csv", index=False)
    model, out = tmp_path / "m.equipoise", tmp_path / "out.equipoise"
    table = tmp_path / "t.csv"
    for words in (
        ("fit", table, "-t", "label", "-o", model),
        ("fit", table, "-t", "label", "-o", out, "-g", "RecallFloors({'c': 0.5})"),
        ("fit", table, "-t", "nothing", "-o", out),
        ("report", table, "-t", "label", "-o", tmp_path / "out.html", "--model", "linear"),
        ("predict", model, table, "-o", out, "--keep", "nothing"),
        ("predict", model, tmp_path / "fewer.csv", "-o", out),
        ("evaluate", model, table),
        ("evaluate", model, tmp_path / "other.csv"),
    ):
        result = run(*words)
        assert result.exit_code in (0, 1), (words, result.output[-2000:])
        assert "Error" in result.stderr or result.exit_code == 0
        assert len(result.output) < 10_000, (words, len(result.output))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with a name")
def test_a_pipe_is_written_to_and_not_replaced(place, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    assert run("predict", place / "m.equipoise", place / "t.csv", "-o", pipe).exit_code == 0
    assert reader.communicate(timeout=60)[0].startswith("prediction\n") and pipe.is_fifo()
