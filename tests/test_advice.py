"""The printed code of a page, run, and the model judged on rows that the page did not see."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import balanced_accuracy_score, f1_score, recall_score

from equipoise.datasets import load_thyroid

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import advice
import advice_show
import advice_tables

TABLES = {
    "thyroid": lambda: _table(load_thyroid(as_frame=True).frame),
    "breast cancer": lambda: _table(load_breast_cancer(as_frame=True).frame),
    "generated": lambda: _table(advice_tables.generate(3_000, 12, 5, seed=0)),
}


def _table(frame):
    label = frame.columns[-1]
    return advice_tables.Table(frame.drop(columns=label), frame[label].to_numpy())


def _sides(table):
    learn, rest = advice_tables.split(table)
    assert not set(learn) & set(rest) and len(learn) + len(rest) == len(table.y)
    return advice_tables.take(table, learn), advice_tables.take(table, rest)


def test_splits_keep_identical_rows_together_and_classes_apart():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(200, size=400), "b": rng.choice(["x", None], size=400)})
    y = rng.choice(["often", "seldom"], p=[0.9, 0.1], size=400).astype(object)
    X.loc[:1, "a"], y[:2] = [200, 201], "tiny"
    learn, rest = _sides(advice_tables.Table(X, y))
    rows = [set(map(tuple, side.X.fillna("").to_numpy().tolist())) for side in (learn, rest)]
    assert not rows[0] & rows[1]
    assert set(learn.y) == set(rest.y) == {"often", "seldom", "tiny"}
    assert 0.35 < len(rest.y) / 400 < 0.45


def test_rows_of_few_kinds_are_dealt_one_by_one():
    rng = np.random.default_rng(0)
    y = np.repeat(["often", "seldom"], [300, 100])
    X = pd.DataFrame({"a": np.where(y == "often", 0, 1), "b": rng.integers(4, size=400)})
    _, rest = _sides(advice_tables.Table(X, y))
    assert pd.Series(rest.y).value_counts().to_dict() == {"often": 120, "seldom": 40}


def test_tiny_classes_are_cut_out_of_the_largest():
    table = TABLES["generated"]()
    cut = advice_tables.with_tiny_classes(table, seed=0)
    changed = cut.y != table.y
    assert pd.Series(cut.y[changed]).value_counts().to_dict() == {"rare 3": 3, "rare 8": 8}
    assert set(table.y[changed]) == {pd.Series(table.y).value_counts().index[0]}


def test_values_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [200, 60, 30])
    decided = np.where(rng.random(290) < 0.7, truth, rng.integers(3, size=290))
    models = {"advised": decided, "other": rng.permutation(decided)}
    known = {
        "worst_class": recall_score(truth, decided, average=None).min(),
        "balanced_accuracy": balanced_accuracy_score(truth, decided),
        "f1_macro": f1_score(truth, decided, average="macro"),
    }
    for goal, value in known.items():
        assert advice_show.judge(goal, truth, models, 3).own == pytest.approx(value)


def test_rows_of_classes_with_few_rows_left_out_do_not_count():
    truth = np.repeat([0, 1, 2], [20, 20, 9])
    decided = np.where(truth == 2, 0, truth)
    for goal in advice_show.GOALS[:3]:
        models = {"advised": decided, "other": decided}
        assert advice_show.judge(goal, truth, models, 3).own == 1


@pytest.mark.slow
@pytest.mark.parametrize("goal", advice_show.GOALS)
@pytest.mark.parametrize("name", TABLES)
def test_the_advised_model_is_not_far_below_ordinary_ones(name, goal):
    pytest.importorskip("jinja2")
    learn, rest = _sides(TABLES[name]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = {"advised": advice.advised(learn, goal)[0]}
        for other, (make, weights) in advice.MODELS.items():
            if not other.startswith("LightGBM"):
                models[other] = make(learn.X, weights).fit(learn.X, learn.y)
    names = advice.class_names(learn, rest)
    decided = {key: advice.places(model.predict(rest.X), names) for key, model in models.items()}
    judged = advice_show.judge(goal, advice.places(rest.y, names), decided, len(names))
    best, value, gap, error = judged.against()
    assert gap >= -max(0.03, 3 * error), f"{best} has {value}"
