"""``equipoise report``: a page, a table, an object for scripts, or one sentence."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("jinja2")
pytest.importorskip("click")

from click.testing import CliRunner

from equipoise.cli.main import main
from report_tables import hostile_table, mixed_table


@pytest.fixture
def table(tmp_path):
    frame, y = mixed_table()
    place = tmp_path / "table.csv"
    frame.assign(kind=y, row=np.arange(len(y))).to_csv(place, index=False)
    return place


def run(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def linear(table, out, *more):
    return run(table, "--target", "kind", "--out", out, "--model", "linear", *more)


def test_a_page_is_written_and_the_table_is_told(table, tmp_path):
    out = tmp_path / "page.html"
    done = linear(table, out, "--drop", "row")
    assert done.exit_code == 0, done.output
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "Which class weights for table.csv?" in page
    assert "Recommended: " in done.stdout and f"Wrote {out}." in done.stdout
    assert "largest regret" in done.stdout and "\u2068" not in done.output
    assert not done.stderr


def test_what_looks_like_an_identifier_is_warned_of(table, tmp_path):
    done = linear(table, tmp_path / "page.html")
    assert "Warning: " in done.stderr and "'row'" in done.stderr


def test_scripts_get_one_object_and_the_quiet_get_nothing(table, tmp_path):
    out = tmp_path / "page.html"
    result = json.loads(linear(table, out, "--json", "--drop", "row").stdout)
    assert result["page"] == str(out) and result["recommended"] in {
        one["label"] for one in result["choices"]
    }
    again = json.loads(linear(table, out, "--json", "--drop", "row", "--seed", "0").stdout)
    other = json.loads(linear(table, out, "--json", "--drop", "row", "--seed", "3").stdout)
    assert again["costs"] == result["costs"] != other["costs"]
    quiet = linear(table, out, "--quiet")
    assert quiet.exit_code == 0 and not quiet.output


def test_hostile_names_reach_neither_terminal_nor_page_as_anything_but_text(tmp_path):
    frame, y = hostile_table()
    target = "la\x1b[31mbel\n<b>"
    place, out = tmp_path / "odd.csv", tmp_path / "page.html"
    frame.assign(**{target: y}).to_csv(place, index=False)
    done = run(place, "-t", target, "-o", out, "--model", "linear")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output and "<script>alert(1)" not in out.read_text(encoding="utf-8")


def test_the_sets_to_compare_can_be_named(table, tmp_path):
    kinds = sorted(set(mixed_table()[1]))
    box = f"PriorBox(upper={{{str(kinds[0])!r}: 0.9}})"
    goals = ("-g", "balanced", "--goal", "LabelCVaR(alpha=0.4)", "-u", box)
    done = linear(table, tmp_path / "page.html", "--json", "--drop", "row", *goals)
    assert done.exit_code == 0, done.output
    made_for = {one["uncertainty"] for one in json.loads(done.stdout)["choices"]}
    words = ("standard", "balanced")
    assert made_for == {*(f"FixedWeights(weights={word!r})" for word in words), goals[3], box}


def test_both_models_are_compared_by_default(table, tmp_path):
    done = run(table, "-t", "kind", "-o", tmp_path / "page.html", "--json", "--drop", "row")
    assert {one["model"] for one in json.loads(done.stdout)["choices"]} == {"linear", "boosting"}


BAD = {
    "no file": (["none.csv", "-t", "kind", "-o", "page.html"], 1, "There is no file"),
    "no column": (["{table}", "-t", "nothing", "-o", "page.html"], 1, "no column 'nothing'"),
    "unknown column to drop": (
        ["{table}", "-t", "kind", "-o", "page.html", "--drop", "nothing"],
        1,
        "no column 'nothing'; its columns are",
    ),
    "label dropped": (
        ["{table}", "-t", "kind", "-o", "page.html", "--drop", "kind"],
        1,
        "label 'kind' cannot be dropped",
    ),
    "quantity": (["{table}", "-t", "size", "-o", "page.html"], 1, "is a quantity"),
    "no folder": (["{table}", "-t", "kind", "-o", "nowhere/page.html"], 1, "There is no folder"),
    "input as output": (["{table}", "-t", "kind", "-o", "{table}"], 1, "is an input"),
    "no target": (["{table}", "-o", "page.html"], 2, "--target"),
    "unknown model": (["{table}", "-t", "kind", "-o", "p.html", "--model", "forest"], 2, "forest"),
    "no set": (["{table}", "-t", "kind", "-o", "p.html", "-g", "macro_f1"], 2, "macro_f1 is none"),
    "no goal": (["{table}", "-t", "kind", "-o", "p.html", "-g", "robust"], 2, "is no goal"),
    "no class": (
        ["{table}", "-t", "kind", "-o", "page.html", "-g", "PriorBox({{'eggs': 0.1}})"],
        1,
        "names class 'eggs'",
    ),
    "bad seed": (["{table}", "-t", "kind", "-o", "p.html", "--seed", "-1"], 2, "seed"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_ends_in_a_sentence_and_an_exit_code(case, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, code, text = BAD[case]
    before = sorted(each.name for each in tmp_path.iterdir())
    done = run(*[each.format(table=table) for each in arguments])
    assert done.exit_code == code and text in done.stderr and "Traceback" not in done.output
    assert not done.stdout
    assert sorted(each.name for each in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a,kind\n", "no rows"),
        ("a,kind\n1,x\n2,x\n3,x\n", "only one class"),
        ("kind\nx\ny\nx\ny\n", "no column with any value"),
        ("a,kind\n,x\n,y\n,x\n,y\n,x\n,y\n", "no column with any value"),
        ("a,kind\n1,x\n2,y\n3,x\n4,y\n", "At least two classes need 5 different rows"),
        ("a,a,kind\n1,1,x\n2,2,y\n", "more than once"),
    ],
)
def test_tables_that_cannot_be_compared_end_in_a_sentence(content, text, tmp_path):
    place = tmp_path / "bad.csv"
    place.write_text(content)
    done = linear(place, tmp_path / "page.html")
    assert done.exit_code == 1 and text in done.stderr, done.output
    assert not (tmp_path / "page.html").exists()
