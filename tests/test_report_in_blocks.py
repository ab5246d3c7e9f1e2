"""Pages about rows in blocks: models of a sample, judged on all rows that it leaves."""

import json
import shlex
import sys

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402

from equipoise import load_model  # noqa: E402
from equipoise.blocks import from_blocks  # noqa: E402
from equipoise.estimators import sampled_rows  # noqa: E402
from equipoise.exceptions import InvalidInputError, InvalidParameterError  # noqa: E402
from equipoise.report import compare, compare_file  # noqa: E402
from equipoise.risks import class_risks  # noqa: E402
from logistic_cases import draw  # noqa: E402

N_ROWS = 6000
X, Y = draw(k=3, n=N_ROWS, d=4)
y = np.array(["common", "less", "rare"])[Y]


def in_blocks(X=X, y=y, *weights, size=700):
    starts = range(0, len(y), size)
    return from_blocks([tuple(a[s : s + size] for a in (X, y, *weights)) for s in starts])


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Printed code saves a model where it runs."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(sampled_rows, "MOST_ROWS", 1500)


@pytest.fixture
def large_files(monkeypatch):
    for module in ("equipoise.report.compare", "equipoise.tables"):
        monkeypatch.setattr(sys.modules[module], "size_in_memory", lambda path: 1 << 40)


MODELS = {"bayes": GaussianNB()}


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampled_rows, "MOST_ROWS", 1500)
        yield compare(in_blocks(), models=MODELS)


def by_class(summary, place):
    return [each["risk"] for each in summary["candidates"][place]["classes"]]


def test_the_numbers_are_those_of_all_rows(found):
    summary = found.to_dict()
    seen, of_class = summary["design"]["rows_seen"], np.bincount(Y)
    assert (seen["trained"], seen["evaluated"]) == (750, N_ROWS - 750) and 747 < seen[
        "tuned"
    ] <= 750
    assert summary["data"]["rows"] == N_ROWS and summary["design"]["evaluated"] == N_ROWS - 750
    assert [each["rows"] for each in summary["data"]["classes"]] == of_class.tolist()
    assert [each["share"] for each in summary["data"]["classes"]] == (of_class / N_ROWS).tolist()
    assert sum(each["tested"] for each in summary["data"]["classes"]) == N_ROWS - 750
    text = " ".join(part["text"] for part in summary["trust"])
    assert "a sample of 750 rows" in text and "All 5,250 rows that no" in text
    assert f"tuned on {seen['tuned']} others." in text
    page = found.to_html()
    assert "a sample of 750 rows" in page and "All 5,250 rows" in page


def test_what_is_printed_and_fitted_is_what_was_judged(found, small_samples):
    summary, chosen = found.to_dict(), found.to_dict()["recommendation"]["candidate"]
    model = found.fit()
    np.testing.assert_allclose(model.class_risks_, by_class(summary, chosen), rtol=1e-12)
    names = {"blocks": in_blocks(), "models": MODELS}
    exec(found.code, names)
    np.testing.assert_array_equal(names["model"].predict(X), model.predict(X))
    np.testing.assert_array_equal(names["model"].class_risks_, model.class_risks_)
    seen = {name: int(each.to_numpy().sum()) for name, each in model.rows_seen_.items()}
    assert seen == summary["design"]["rows_seen"]


def test_every_choice_is_counted_alike(small_samples):
    found = compare(in_blocks(), models=MODELS, goals="f1_macro", price=1)
    summary = found.to_dict()
    labels = [each["label"] for each in summary["candidates"]]
    assert labels[:2] == ["bayes, plain", "bayes, balanced_accuracy"] and len(labels) == 4
    plain = compare(in_blocks(), models=MODELS, goals="standard").fit()
    np.testing.assert_allclose(plain.class_risks_, by_class(summary, 0), rtol=1e-12)
    # A third of the table was not seen by any choice: a plain fit to a tenth of it does as well.
    expected = class_risks(y, GaussianNB().fit(X[:600], y[:600]).predict(X))
    np.testing.assert_allclose(by_class(summary, 0), np.asarray(expected), atol=0.08)
    narrow = summary["candidates"][0]["classes"][0]
    half = 1.96 * np.sqrt(narrow["risk"] * (1 - narrow["risk"]) / np.bincount(Y)[0])
    assert narrow["upper"] - narrow["lower"] == pytest.approx(2 * half, rel=0.25)


def test_ours_take_gaps_in_blocks(small_samples):
    gaps = X.copy()
    gaps[::9, 1] = np.nan
    found = compare(in_blocks(gaps), models="linear", goals="standard")
    assert found.to_dict()["data"]["missing"] == 0  # of which the page does not speak
    names = {"blocks": in_blocks(gaps)}
    exec(found.code, names)
    place = found.to_dict()["recommendation"]["candidate"]
    risks = names["model"].class_risks_
    np.testing.assert_allclose(risks, by_class(found.to_dict(), place), rtol=1e-12)


def test_few_rows_in_blocks_are_compared_as_in_memory():
    rows = slice(0, 600)
    here = compare(X[rows], y[rows], MODELS, goals="standard").to_dict()
    there = compare(in_blocks(X[rows], y[rows]), models=MODELS, goals="standard")
    assert there.to_dict()["candidates"] == here["candidates"]
    assert there.to_dict()["design"]["rows_seen"] is None
    assert "model.fit(blocks)" in there.code


def test_what_blocks_cannot_do_is_said(small_samples):
    with pytest.raises(InvalidParameterError, match="models must take sample_weight where rows"):
        compare(in_blocks(), models={"near": KNeighborsClassifier()})
    weights = np.linspace(1, 2, N_ROWS)
    with pytest.raises(InvalidInputError, match="compared without weights"):
        compare(in_blocks(X, y, weights), models=MODELS)
    with pytest.raises(InvalidInputError, match="There are no rows"):
        compare(from_blocks([]), models=MODELS)
    gaps = X.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(InvalidInputError, match="Block 0: row 3 has nan in column 1"):
        compare(in_blocks(gaps), models=MODELS)


# --- files ----------------------------------------------------------------------------------------


def table():
    frame = pandas.DataFrame(X, columns=list("abcd")).assign(kind=y)
    frame["town"] = np.array(["Ulm", "Bonn", None], dtype=object)[(Y + np.arange(N_ROWS)) % 3]
    frame.loc[::9, "a"] = np.nan
    return frame


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_read_in_parts(tmp_path, small_samples, large_files, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow", exc_type=ImportError)
    testing = pytest.importorskip("click.testing")
    from equipoise.cli.main import main

    path, out, model = (str(tmp_path / name) for name in (f"t.{ending}", "p.html", "m.equipoise"))
    if ending == "csv":
        table().to_csv(path, index=False)
    else:
        table().to_parquet(path, index=False)
    arguments = ["report", path, "-t", "kind", "-o", out, "--model", "forest", "--goal"]
    arguments += ["balanced_accuracy", "--memory", "1 GiB", "--save", model, "--json"]
    done = testing.CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["data"]["rows"] == N_ROWS and result["design"]["evaluated"] == N_ROWS - 750
    chosen = result["recommendation"]["candidate"]
    saved = load_model(model)
    assert saved.facts.counts == tuple(np.bincount(Y).tolist())
    risks = by_class(result, chosen)
    np.testing.assert_allclose(saved.model.class_risks_, risks, rtol=1e-12)
    names: dict = {}
    exec(result["code"], names)
    np.testing.assert_allclose(names["model"].class_risks_, risks, rtol=1e-12)
    again = shlex.split(result["command"])[1:]
    again[-1] = str(tmp_path / "again.equipoise")
    done = testing.CliRunner().invoke(main, again)
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(load_model(again[-1]).predict(table()), saved.predict(table()))


def test_a_linear_model_for_a_set_has_no_command(tmp_path, small_samples, large_files):
    table().to_csv(tmp_path / "t.csv", index=False)
    found = compare_file(tmp_path / "t.csv", "kind", ["linear"], goals="worst_class")
    assert found.to_dict()["command"] is None and "streamed_table" in found.code
