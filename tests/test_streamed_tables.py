"""Tables that are read in parts: the same features and the same model as of the whole table."""

import json
import tempfile

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow", exc_type=ImportError)

from equipoise import RobustLogisticRegression, WorstClass, load_model  # noqa: E402
from equipoise.exceptions import InvalidInputError  # noqa: E402
from equipoise.tables import preprocessor, read_labelled, streamed_table  # noqa: E402

N_ROWS = 6000


@pytest.fixture(autouse=True)
def own_temporary_files(monkeypatch, tmp_path):
    """Temporary files that are seen if they are left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    yield
    assert not list((tmp_path / "temporary").iterdir())


def mixed(n=N_ROWS, seed=0):
    """Numbers, texts, truth values, gaps, rare levels, an empty column."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.7, 0.25, 0.05])
    towns = np.array(["Ulm", "Bonn", "Kiel", "Jena"], dtype=object)
    town = towns[(y + rng.integers(0, 3, n)) % 4]
    town[rng.random(n) < 0.03] = None
    town[[5, 700, 3000]] = "Hamlet"
    age = 40 + 10 * y + 15 * rng.normal(size=n)
    age[rng.random(n) < 0.1] = np.nan
    late = np.where(np.arange(n) < n / 2, np.nan, rng.normal(size=n))
    return pandas.DataFrame(
        {
            "age": age,
            "town": town,
            "new": rng.random(n) < 0.3 + 0.2 * y,
            "late": late,
            "size": rng.normal(size=n) * 1e4 + y,
            "nothing": [None] * n,
            "many": [f"level {i}" for i in rng.geometric(0.03, n)],
            "kind": np.array(["ham", "spam", "scam"], dtype=object)[y],
        }
    )


def written(frame, folder, ending):
    path = folder / f"t.{ending}"
    if ending == "parquet":
        frame.to_parquet(path, row_group_size=1000, index=False)
    else:
        frame.to_csv(path, index=False)
    return path


each_file = pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])


@each_file
def test_features_and_model_are_those_of_the_whole_table(tmp_path, ending):
    path = written(mixed(), tmp_path, ending)
    whole = read_labelled(path, "kind")
    made = preprocessor(whole.X).fit(whole.X)
    here = RobustLogisticRegression(WorstClass()).fit(made.transform(whole.X), whole.y)
    with streamed_table(path, "kind", max_rows=500) as table:
        assert len(table.blocks) >= 6 and table.classes.tolist() == whole.classes.tolist()
        assert table.counts.tolist() == whole.counts.tolist()
        assert [(c.name, c.kind) for c in table.columns] == [
            (c.name, c.kind) for c in whole.columns
        ]
        names = made.get_feature_names_out().tolist()
        assert table.features.get_feature_names_out().tolist() == names
        one, other = (m.transform(whole.X) for m in (made, table.features))
        dense = [
            np.asarray(each.todense()) if hasattr(each, "todense") else each
            for each in (one, other)
        ]
        np.testing.assert_allclose(dense[1], dense[0], rtol=1e-9, atol=1e-9)
        there = RobustLogisticRegression(WorstClass()).fit(table.blocks)
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-6)


def test_numbers_in_one_chunk_and_texts_in_another_are_texts(tmp_path):
    frame = mixed()
    frame["code"] = ["17"] * 3000 + ["x17"] * 3000
    with streamed_table(written(frame, tmp_path, "csv"), "kind", max_rows=500) as table:
        kinds = {column.name: column.kind for column in table.columns}
    assert kinds["code"] == "text" and kinds["age"] == "number" and kinds["nothing"] == "empty"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "ham"}, "has only one class, 'ham', in all 6000 rows"),
        ({"kind": np.arange(N_ROWS)}, "has a different value in each of the 6000 rows"),
        ({"kind": np.arange(N_ROWS) % 7 + 0.5}, "holds numbers with fractions, such as 0.5"),
        ({"kind": ["a", "b", None] * 2000}, "The label 'kind' is missing in data row 3"),
    ],
)
def test_labels_that_are_none_are_refused(tmp_path, change, message):
    path = written(mixed().assign(**change), tmp_path, "csv")
    with (
        pytest.raises(InvalidInputError, match=message),
        streamed_table(path, "kind", max_rows=500),
    ):
        pass


def test_an_error_on_the_way_leaves_no_files(tmp_path):
    path = written(mixed(), tmp_path, "csv")

    def interrupted():
        with streamed_table(path, "kind", max_rows=500) as table:
            assert len(table.blocks)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


@each_file
def test_the_command_line_fits_in_parts(tmp_path, ending, monkeypatch):
    testing = pytest.importorskip("click.testing")
    from equipoise.cli.main import main

    frame = mixed()
    path, out = written(frame, tmp_path, ending), str(tmp_path / "m.equipoise")
    monkeypatch.setattr("equipoise.tables.size_in_memory", lambda path: 1 << 40)
    arguments = ["fit", str(path), "-t", "kind", "-o", out, "-g", "worst_class", "--json"]
    done = testing.CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["rows"] == N_ROWS and result["goal"] == "WorstClass()"
    assert 0 < sum(row["rows"] for row in result["held_out"]["classes"]) < 0.3 * N_ROWS
    saved = load_model(out)
    assert any("read in parts" in note for note in saved.facts.notes)
    truth = frame["kind"].to_numpy()
    assert np.mean(saved.predict(frame) == truth) > 0.5
    predicted = str(tmp_path / "p.csv")
    done = testing.CliRunner().invoke(main, ["predict", out, str(path), "-o", predicted])
    assert done.exit_code == 0 and len(pandas.read_csv(predicted)) == N_ROWS


@pytest.mark.parametrize(
    ("kind", "goal"), [("boosting", "worst_class"), ("linear", "f1_macro"), ("forest", "standard")]
)
def test_other_models_and_goals_are_fitted_to_a_sample(tmp_path, monkeypatch, kind, goal):
    testing = pytest.importorskip("click.testing")
    from equipoise.cli.main import main

    monkeypatch.setattr("equipoise.tables.size_in_memory", lambda path: 1 << 40)
    monkeypatch.setattr("equipoise.estimators.sampled_rows.MOST_ROWS", 1200)
    frame = mixed()
    ending = "csv" if kind == "linear" else "parquet"
    path, out = written(frame, tmp_path, ending), str(tmp_path / "m.equipoise")
    arguments = ["fit", str(path), "-t", "kind", "-o", out, "-g", goal, "--model", kind]
    arguments += ["--training", "plain"]
    done = testing.CliRunner().invoke(main, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    seen, rows = result["rows_seen"], [row["rows"] for row in result["held_out"]["classes"]]
    assert seen["trained"] + seen["tuned"] <= 1200 and seen["trained"] > 300
    assert sum(rows) == seen["evaluated"] == N_ROWS - seen["trained"]
    saved, truth = load_model(out), frame["kind"].to_numpy()
    assert any(f"all {seen['evaluated']:,} that it was not trained" in n for n in saved.facts.notes)
    decided = saved.predict(frame)
    # Of rows that were trained on, trees know too much.
    for row in result["held_out"]["classes"]:
        here = truth == row["class"]
        wrong = np.mean(decided[here] != truth[here])
        assert row["risk"] >= wrong - 0.05 and row["lower"] <= row["risk"] <= row["upper"]
    if kind != "forest":
        return
    said = testing.CliRunner().invoke(main, arguments)
    assert f"fitted to {seen['trained'] + seen['tuned']:,} of 6,000 rows." in said.output


def test_what_a_file_takes_in_memory_is_not_underestimated(tmp_path):
    from equipoise.tables import size_in_memory

    frame = mixed()
    for ending in ("csv", "csv.gz", "parquet"):
        path = written(frame, tmp_path, ending)
        assert size_in_memory(path) > path.stat().st_size
    assert size_in_memory(tmp_path / "none.csv") == 0
