"""``equipoise predict --adapt``: predictions for the class frequencies of the table itself."""

import json

import numpy as np
import pytest

pytest.importorskip("click")
pd = pytest.importorskip("pandas")

from click.testing import CliRunner  # noqa: E402

from equipoise.cli.main import main  # noqa: E402

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])


def write(path, counts, seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), counts)
    X = MEANS[labels] + rng.normal(size=(len(labels), 2))
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "kind": np.array(["a", "b", "c"])[labels]})
    frame.sample(frac=1, random_state=seed).to_csv(path, index=False)


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("adapt")
    for name, counts, seed in (
        ("old", [400, 300, 200], 0),
        ("labelled", [400, 300, 200], 1),
        ("new", [50, 20, 300], 2),
    ):
        write(place / f"{name}.csv", counts, seed)
    words = ["-t", "kind", "-g", "standard", "--model", "linear", "-o", place / "m.equipoise"]
    fitted = run("fit", place / "old.csv", *words)
    assert fitted.exit_code == 0, fitted.output
    return place


def test_predictions_are_for_the_frequencies_of_the_table(folder):
    table, labelled, out = folder / "new.csv", folder / "labelled.csv", folder / "p.csv"
    plain = run("predict", folder / "m.equipoise", table, "-o", out)
    assert plain.exit_code == 0, plain.output
    truth, before = pd.read_csv(table)["kind"], pd.read_csv(out)["prediction"]
    words = ["--adapt", labelled, "--proba", "--json"]
    result = run("predict", folder / "m.equipoise", table, "-o", out, *words)
    assert result.exit_code == 0, result.output
    after = pd.read_csv(out)
    assert (after["prediction"] == truth).mean() > (before == truth).mean()
    assert abs(after["probability[c]"].mean() - 300 / 370) < 0.06
    shares = json.loads(result.stdout.splitlines()[-1])["class_frequencies"]
    assert abs(shares[2] - 300 / 370) < 0.06


def test_a_table_without_labels_is_refused_in_a_sentence(folder):
    bare = folder / "bare.csv"
    pd.read_csv(folder / "labelled.csv").drop(columns="kind").to_csv(bare, index=False)
    words = ["-o", folder / "p.csv", "--adapt", bare]
    result = run("predict", folder / "m.equipoise", folder / "new.csv", *words)
    assert result.exit_code == 1 and "kind" in result.output


def test_floors_with_a_confidence_are_shown_by_half_of_the_labelled_rows(folder):
    words = ["-t", "kind", "-g", "RecallFloors({'a': 0.5}, confidence=0.9)", "--model", "linear"]
    fitted = run("fit", folder / "old.csv", *words, "-o", folder / "f.equipoise")
    assert fitted.exit_code == 0, fitted.output
    words = ["-o", folder / "p.csv", "--adapt", folder / "labelled.csv", "--json"]
    result = run("predict", folder / "f.equipoise", folder / "new.csv", *words)
    assert result.exit_code == 0, result.output
    assert "hold under any class frequencies" in result.output
