"""The section 'On your new rows' of the page, and ``equipoise report --new``."""

import json

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

pytest.importorskip("jinja2")
pytest.importorskip("click")
pd = pytest.importorskip("pandas")

from click.testing import CliRunner  # noqa: E402

from equipoise.blocks import from_blocks  # noqa: E402
from equipoise.cli.main import main  # noqa: E402
from equipoise.exceptions import InvalidInputError, InvalidParameterError  # noqa: E402
from equipoise.report import compare  # noqa: E402

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
NAMES = np.array(["a", "b", "c"])
TRUE = np.array([0.1, 0.05, 0.85])
MODELS = {"logistic": LogisticRegression()}


def rows(counts, seed):
    """Rows of Gaussian classes, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(counts)), counts)
    order = rng.permutation(len(labels))
    X = MEANS[labels] + rng.normal(size=(len(labels), 2))
    return X[order], NAMES[labels][order]


TABLE, NEW = rows([500, 300, 200], 0), rows([40, 20, 340], 2)


@pytest.fixture(scope="module")
def comparison():
    return compare(*TABLE, MODELS, X_new=NEW[0], cv=3)


def test_frequencies_and_errors_are_those_of_the_new_population(comparison):
    found, summary = comparison.to_dict()["new_rows"], comparison.to_dict()
    assert found["rows"] == 400 and not found["refused"] and found["is_mixture"]
    for truth, each in zip(TRUE, found["classes"], strict=True):
        assert each["lower"] <= truth <= each["upper"]
    model = LogisticRegression().fit(*TABLE)
    error = 1 - model.score(*rows([4_000, 2_000, 34_000], 3))
    plain = found["candidates"][0]
    assert summary["candidates"][0]["tuned_for"] == "plain"
    assert plain["lower"] < error < plain["upper"]
    assert found["adapted"]["upper"] < plain["lower"]
    json.dumps(found, allow_nan=False)


def test_page_table_and_frame_have_them(comparison):
    html, found = comparison.to_html(), comparison.to_dict()["new_rows"]
    assert "On your new rows" in html and found["verdict"] in html
    assert "on new rows" in repr(comparison)
    frame = comparison.to_frame(by="candidate")
    assert frame["new_overall"][0] == found["candidates"][0]["value"]


def test_without_new_rows_nothing_is_said(comparison):
    plain = compare(*TABLE, MODELS, cv=3)
    assert plain.to_dict()["new_rows"] is None
    assert "On your new rows" not in plain.to_html() and "on new rows" not in repr(plain)
    assert "new_overall" not in plain.to_frame(by="candidate")
    # The candidates are the same.
    assert plain.to_dict()["candidates"] == comparison.to_dict()["candidates"]


def test_new_rows_come_in_chunks_and_models_may_be_fitted():
    model = {"mine": FrozenEstimator(LogisticRegression().fit(*TABLE))}
    labelled = rows([500, 300, 200], 1)
    whole = compare(*labelled, model, X_new=NEW[0]).to_dict()["new_rows"]
    chunks = from_blocks([(NEW[0][:100],), (NEW[0][100:],)])
    parts = compare(*labelled, model, X_new=chunks).to_dict()["new_rows"]
    assert parts == whole and whole["classes"][2]["lower"] > 0.7


def test_a_table_in_chunks_is_compared_on_new_rows():
    blocks = from_blocks([(TABLE[0][i::4], TABLE[1][i::4]) for i in range(4)])
    found = compare(blocks, models=MODELS, X_new=NEW[0]).to_dict()["new_rows"]
    for truth, each in zip(TRUE, found["classes"], strict=True):
        assert each["lower"] <= truth <= each["upper"]


def test_what_cannot_be_estimated_is_said_on_the_page():
    X, y = rows([500, 300, 1], 0)
    found = compare(X, y, MODELS, X_new=NEW[0], cv=3)
    assert "Too few rows of" in found.to_dict()["new_rows"]["refused"]
    assert "Nothing can be said of the new rows" in found.to_html()
    rng = np.random.default_rng(0)
    alike = compare(rng.normal(size=(300, 2)), rng.choice(NAMES, 300), MODELS, X_new=NEW[0])
    assert "apart" in alike.to_dict()["new_rows"]["refused"]


def test_too_few_new_rows_are_refused_on_the_page():
    found = compare(*TABLE, MODELS, X_new=NEW[0][:1], cv=3).to_dict()["new_rows"]
    assert "at least 2 rows, got 1" in found["refused"]


def test_row_weights_are_refused():
    with pytest.raises(InvalidParameterError, match="rows of equal weight, got sample_weight"):
        compare(*TABLE, MODELS, X_new=NEW[0], sample_weight=np.ones(1000))


def test_new_rows_with_other_columns_are_named():
    frame = pd.DataFrame(TABLE[0], columns=["u", "v"])
    new = pd.DataFrame(NEW[0], columns=["u", "w"])
    with pytest.raises(InvalidInputError, match="no column 'v'"):
        compare(frame, TABLE[1], ["linear"], X_new=new, cv=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("new")
    for name, (X, y) in {"old": TABLE, "new": NEW}.items():
        pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "kind": y}).to_csv(place / f"{name}.csv")
    pd.DataFrame({"u": NEW[0][:, 0]}).to_csv(place / "bare.csv")
    return place


def run(folder, new, *words):
    arguments = ["report", folder / "old.csv", "-t", "kind", "-o", folder / "p.html", "--quick"]
    arguments += ["--model", "linear", "--new", folder / new, *words]
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_the_command_line_takes_a_file_of_new_rows(folder):
    result = run(folder, "new.csv", "--drop", "Unnamed: 0")
    assert result.exit_code == 0, result.output
    assert "Class frequencies of the new rows: a " in result.output
    assert "On your new rows" in (folder / "p.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("new", "text"), [("bare.csv", "no column 'v'"), ("no.csv", "no.csv")])
def test_a_file_that_does_not_fit_is_named(folder, new, text):
    result = run(folder, new, "--drop", "Unnamed: 0")
    assert result.exit_code == 1 and text in result.output
