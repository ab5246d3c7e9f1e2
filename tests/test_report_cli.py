"""``equipoise report``: a page, a table, an object for scripts, or one sentence."""

import json
import shlex

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
pytest.importorskip("click")

from click.testing import CliRunner  # noqa: E402

from equipoise import load_model  # noqa: E402
from equipoise.cli.main import main  # noqa: E402
from report_tables import hostile_table, mixed_table  # noqa: E402


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
    assert page.startswith("<!DOCTYPE html>") and "Report on table.csv" in page
    assert "Recommended: " in done.stdout and f"Wrote {out}." in done.stdout
    assert "mean class error" in done.stdout and "\u2068" not in done.output
    assert not done.stderr


def test_what_looks_like_an_identifier_is_warned_of(table, tmp_path):
    done = linear(table, tmp_path / "page.html", "-g", "standard")
    assert "Warning: " in done.stderr and "'row'" in done.stderr


def test_scripts_get_one_object_and_the_quiet_get_nothing(table, tmp_path):
    out = tmp_path / "page.html"
    words = ("--json", "--drop", "row", "-g", "worst_class")
    result = json.loads(linear(table, out, *words).stdout)
    assert result["page"] == str(out) and result["recommended"] in {
        one["label"] for one in result["candidates"]
    }
    again = json.loads(linear(table, out, *words, "--seed", "0").stdout)
    other = json.loads(linear(table, out, *words, "--seed", "3").stdout)
    assert again["candidates"] == result["candidates"] != other["candidates"]
    quiet = linear(table, out, "--quiet", "-g", "standard")
    assert quiet.exit_code == 0 and not quiet.output


def test_hostile_names_reach_neither_terminal_nor_page_as_anything_but_text(tmp_path):
    frame, y = hostile_table()
    target = "la\x1b[31mbel\n<b>"
    place, out = tmp_path / "odd.csv", tmp_path / "page.html"
    frame.assign(**{target: y}).to_csv(place, index=False)
    done = run(place, "-t", target, "-o", out, "--model", "linear")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output and "<script>alert(1)" not in out.read_text(encoding="utf-8")


def test_the_goals_to_compare_can_be_named(table, tmp_path):
    kinds = sorted(set(mixed_table()[1]))
    box = f"PriorBox(upper={{{str(kinds[0])!r}: 0.9}})"
    goals = ("-g", "f1_macro", "--goal", "LabelCVaR(alpha=0.4)", "-g", box)
    done = linear(table, tmp_path / "page.html", "--json", "--drop", "row", *goals)
    assert done.exit_code == 0, done.output
    advised_goals = {one["goal"] for one in json.loads(done.stdout)["candidates"]}
    assert advised_goals == {None, "balanced_accuracy", "worst_class", goals[1], goals[3], box}


@pytest.mark.usefixtures("few_stages")
def test_all_models_are_compared_by_default(table, tmp_path):
    done = run(table, "-t", "kind", "-o", tmp_path / "page.html", "--json", "--drop", "row")
    found = {one["model"] for one in json.loads(done.stdout)["candidates"]}
    assert found == {"linear", "forest", "boosting"}


def test_the_recommended_model_is_saved_and_predicts(table, tmp_path):
    saved = tmp_path / "model.equipoise"
    done = linear(table, tmp_path / "page.html", "--drop", "row", "--save", saved, "--price", "2")
    assert done.exit_code == 0, done.output
    assert f"Saved {saved}" in done.stdout
    out = tmp_path / "decided.csv"
    again = CliRunner().invoke(main, ["predict", str(saved), str(table), "--out", str(out)])
    assert again.exit_code == 0, again.output
    assert len(out.read_text().splitlines()) == len(mixed_table()[1]) + 1


def test_the_recommended_model_is_saved_for_skops(table, tmp_path):
    skops = pytest.importorskip("skops.io")
    saved = tmp_path / "model.skops"
    done = linear(table, tmp_path / "page.html", "--drop", "row", "--save", saved)
    assert done.exit_code == 0, done.output
    types = skops.get_untrusted_types(file=saved)
    model = skops.load(saved, trusted=types)
    assert set(model.predict(mixed_table()[0])) <= set(mixed_table()[1])


def test_the_line_for_the_shell_fits_the_same_model(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = json.loads(linear(table, tmp_path / "p.html", "--json", "--drop", "row").stdout)
    words = shlex.split(found["command"])
    assert words[:2] == ["equipoise", "fit"]
    done = CliRunner().invoke(main, words[1:])
    assert done.exit_code == 0, done.output
    frame, _ = mixed_table()
    names = {}
    exec(found["code"], names)
    model = load_model(tmp_path / "model.equipoise")
    np.testing.assert_array_equal(model.predict(frame), names["model"].predict(names["X"]))


def test_groups_and_time_are_columns(table, tmp_path):
    saved = tmp_path / "model.equipoise"
    for option, kind in (("--group", "groups"), ("--time", "time")):
        words = (option, "row", "--json", "--goal", "worst_class", "--save", saved)
        done = linear(table, tmp_path / "page.html", *words)
        assert done.exit_code == 0, done.output
        result = json.loads(done.stdout)
        assert result["design"]["kind"] == kind and result["data"]["columns"] == 3
        assert result["command"] is None and saved.exists()
    done = linear(table, tmp_path / "page.html", "--group", "row", "--time", "age")
    assert done.exit_code == 1 and "not both" in done.stderr
    done = linear(table, tmp_path / "page.html", "--group", "nothing")
    assert done.exit_code == 1 and "no column 'nothing'" in done.stderr


def test_models_of_the_users_own_are_imported(table, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from sklearn.ensemble import HistGradientBoostingClassifier\n"
        "from sklearn.pipeline import make_pipeline\n"
        "from equipoise.tables import preprocessor\n"
        "def model():\n"
        "    import pandas as pd\n"
        "    from equipoise.tables import learner_for\n"
        "    frame = pd.DataFrame({'size': [1.0], 'age': [1.0], 'town': ['Ulm']})\n"
        "    return learner_for(frame, 'boosting').set_params(model__max_iter=5)\n"
    )
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "page.html"
    options = ("--json", "--drop", "row", "-g", "f1_macro")
    done = run(table, "-t", "kind", "-o", out, "--model", "mine:model", *options)
    assert done.exit_code == 0, done.output
    assert {one["model"] for one in json.loads(done.stdout)["candidates"]} == {"mine:model"}


def test_probabilities_in_columns_are_compared(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [200, 60, 40])
    eta = rng.dirichlet(np.ones(3), 300) + 0.4 * (y[:, None] == np.array(["a", "b", "c"]))
    eta /= eta.sum(axis=1, keepdims=True)
    frame = pd.DataFrame(eta, columns=["p_a", "p_b", "p_c"]).assign(y=y)
    place, out = tmp_path / "scores.csv", tmp_path / "page.html"
    frame.to_csv(place, index=False)
    options = ["-t", "y", "-o", out, "-g", "worst_class", "--probabilities", "mine=p_a,p_b,p_c"]
    done = run(place, *options, "--json")
    assert done.exit_code == 0, done.output
    assert out.exists() and json.loads(done.stdout)["recommended"].startswith("mine, ")
    bad = run(place, "-t", "y", "-o", out, "--probabilities", "p_a")
    assert bad.exit_code == 2 and "NAME=COLUMN" in bad.stderr
    bad = run(place, "-t", "y", "-o", out, "--probabilities", "mine=p_a,p_b,none")
    assert bad.exit_code == 1 and "no column 'none'" in bad.stderr
    bad = run(place, *options, "--model", "linear")
    assert bad.exit_code == 2 and "leave out" in bad.stderr


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
    "unknown model": (["{table}", "-t", "kind", "-o", "p.html", "--model", "trees"], 2, "trees"),
    "no module": (["{table}", "-t", "kind", "-o", "p.html", "--model", "no_such:x"], 2, "no_such"),
    "no price": (["{table}", "-t", "kind", "-o", "p.html", "--price", "-1"], 2, "price"),
    "no model file": (
        ["{table}", "-t", "kind", "-o", "p.html", "--save", "m.txt"],
        1,
        ".equipoise",
    ),
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
        ("a,kind\n1,x\n2,y\n3,x\n4,y\n", "Fewer than two classes"),
        ("a,a,kind\n1,1,x\n2,2,y\n", "more than once"),
    ],
)
def test_tables_that_cannot_be_compared_end_in_a_sentence(content, text, tmp_path):
    place = tmp_path / "bad.csv"
    place.write_text(content)
    done = linear(place, tmp_path / "page.html")
    assert done.exit_code == 1 and text in done.stderr, done.output
    assert not (tmp_path / "page.html").exists()
