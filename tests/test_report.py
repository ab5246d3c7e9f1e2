"""The report: rows held out, candidates, cards and advice; the page is only text; the code runs."""

import ast
import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

from sklearn.base import BaseEstimator, ClassifierMixin  # noqa: E402
from sklearn.dummy import DummyClassifier  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.feature_extraction.text import CountVectorizer  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import StratifiedGroupKFold, TimeSeriesSplit  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

from equipoise import (  # noqa: E402
    CostMatrix,
    FixedWeights,
    LabelCVaR,
    RecallFloors,
    RobustClassifier,
    class_risks,
    load_model,
    tune_weights,
)
from equipoise.exceptions import (  # noqa: E402
    InvalidInputError,
    InvalidParameterError,
    MissingExtraError,
)
from equipoise.report import (  # noqa: E402
    Comparison,
    compare,
    compare_file,
    compare_predictions,
)
from equipoise.report.compare import QUICK_ROWS  # noqa: E402
from equipoise.tables import learner_for  # noqa: E402
from equipoise.tables.features import FOLDED_CELLS, FOLDED_ROWS  # noqa: E402
from equipoise.text import points, quoted, share_text  # noqa: E402
from report_tables import HOSTILE, hostile_table, mixed_table  # noqa: E402

X, Y = mixed_table()
CARDS = ["Fewest errors overall", "Every class counts the same", "No class left behind"]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Printed code saves a model where it runs."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def found():
    return compare(X, Y, models=["linear"], cv=3)


@pytest.fixture(scope="module")
def hostile():
    return compare(*hostile_table(), models=["linear"], cv=3)


def advised(summary):
    return summary["candidates"][summary["recommendation"]["candidate"]]


def labels_of(summary):
    return [each["label"] for each in summary["candidates"]]


def run_code(code, **given):
    ast.parse(code)
    names = dict(given)
    exec(compile(code, "refit", "exec"), names)
    return names


def probabilities(y, classes, *, good=0.5, seed=0, **of_class):
    """Random ones in which the true class has an advantage, by class."""
    rng = np.random.default_rng(seed)
    truth = y[:, None] == np.array(classes)
    eta = rng.dirichlet(np.ones(len(classes)), len(y))
    eta += np.array([of_class.get(each, good) for each in y])[:, None] * truth
    return eta / eta.sum(axis=1, keepdims=True)


# Numbers


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.usefixtures("few_stages")
@pytest.mark.parametrize("model", ["linear", "forest", "boosting"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_code_of_every_card_gives_the_rule_that_was_evaluated(model, weighted):
    """Run as it stands, with a tiny class, categories, gaps and, in turn, weights of the rows.

    What the model says of itself on the same folds are the numbers of the page.
    """
    frame = pd.concat([X, X.iloc[:8].assign(age=np.arange(8.0))], ignore_index=True)
    y = np.append(Y, ["tiny"] * 8)
    weights = np.where(np.arange(len(y)) % 2, 1.0, 3.0) if weighted else None
    found = compare(
        frame, y, models=[model], cv=3, sample_weight=weights, goals=["f1_macro", LabelCVaR(0.3)]
    )
    summary = found.to_dict()
    assert [card["name"] for card in summary["cards"]][:3] == CARDS
    assert summary["cards"][3]["name"] == "Your goal: macro F1"
    for card in summary["cards"]:
        own = summary["candidates"][card["candidate"]]
        text = card["code"]
        assert "learner_for" not in text and "make_pipeline" in text and card["line"]
        names = run_code(text, X=frame, y=y, sample_weight=weights)
        assert set(names["model"].classes_) == set(y) and len(names["predicted"]) == len(y)
        loaded = load_model("model.equipoise")
        np.testing.assert_array_equal(loaded.predict(frame), names["predicted"])
        if own["goal"] is None:
            continue
        risks = names["model"].class_risks_
        classes = summary["data"]["classes"]
        for each in own["classes"]:
            name = classes[each["class"]]["name"]
            if classes[each["class"]]["counts"]:
                assert each["risk"] == pytest.approx(risks[name], abs=1e-12)


def test_plain_candidates_are_those_of_fits_made_by_hand(found):
    learner = learner_for(X, "linear")
    settings = {"training": "plain", "cv": 3, "random_state": 0}
    design = RobustClassifier(learner, "standard", **settings).fit(X, Y)
    for each in found.to_dict()["candidates"][0]["classes"]:
        name = found.to_dict()["data"]["classes"][each["class"]]["name"]
        assert each["risk"] == pytest.approx(design.class_risks_[name], abs=1e-12)


def test_recall_precision_and_errors_are_those_of_the_confusion_matrix(found):
    summary = found.to_dict()
    counts, own = np.array(summary["confusion"]), advised(summary)
    assert counts.sum() == summary["design"]["evaluated"] == len(Y)
    for each in own["classes"]:
        i = each["class"]
        assert each["risk"] == pytest.approx(1 - counts[i, i] / counts[i].sum())
        assert each["precision"] == pytest.approx(counts[i, i] / counts[:, i].sum())
        assert each["lower"] <= each["risk"] <= each["upper"]
    assert own["overall"] == pytest.approx(1 - np.trace(counts) / counts.sum())
    assert own["balanced"] == pytest.approx(np.mean([each["risk"] for each in own["classes"]]))
    worst = max(own["classes"], key=lambda each: each["risk"])
    assert (own["worst"], own["worst_class"]) == (worst["risk"], worst["class"])
    assert own["overall_lower"] < own["overall"] < own["overall_upper"]
    assert own["balanced_lower"] < own["balanced"] < own["balanced_upper"]


def test_candidates_are_models_times_goals(found):
    tuned = ["plain", "balanced_accuracy", "worst_class"]
    assert labels_of(found.to_dict()) == [f"linear, {each}" for each in tuned]
    more = compare(X, Y, models=["linear", "forest"], cv=3, goals=["f1_macro", "standard"])
    assert labels_of(more.to_dict()) == [
        f"{model}, {goal}" for goal in (*tuned, "f1_macro") for model in ("linear", "forest")
    ]


def test_the_frontier_holds_what_nothing_dominates(found):
    for summary in (found.to_dict(), compare(X, Y, models=["linear", "forest"], cv=3).to_dict()):
        at = [(each["overall"], each["worst"]) for each in summary["candidates"]]
        for each, own in zip(summary["candidates"], at, strict=True):
            better = [o for o in at if o[0] <= own[0] and o[1] <= own[1] and o != own]
            assert each["frontier"] == (not better) or (each["frontier"] is False and own in at)
        assert any(each["frontier"] for each in summary["candidates"])


def test_equal_weights_are_no_weights(found):
    plain = found.to_dict()
    weighted = compare(X, Y, models=["linear"], cv=3, sample_weight=np.ones(len(Y))).to_dict()
    assert weighted["data"]["weighted"] and not plain["data"]["weighted"]
    assert weighted["candidates"] == plain["candidates"]


def test_the_same_seed_gives_the_same_numbers(found):
    again = compare(X, Y, models=["linear"], cv=3).to_dict()
    first = found.to_dict()
    for summary in (again, first):
        del summary["design"]["seconds"]
    assert again == first
    other = compare(X, Y, models=["linear"], cv=3, random_state=1).to_dict()
    assert other["candidates"] != first["candidates"]


def test_probabilities_are_held_against_what_happened():
    y = np.repeat(["a", "b"], [600, 200])
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 800)
    y = np.where(rng.random(800) < p, "b", "a")
    curve = compare_predictions(y, {"mine": p}).to_dict()["reliability"]
    assert sum(curve["rows"]) == 800 and len(curve["rows"]) == 10
    inside = [
        low <= own <= high
        for low, own, high in zip(curve["lower"], curve["predicted"], curve["upper"], strict=True)
    ]
    assert np.mean(inside) >= 0.8
    wrong = compare_predictions(y, {"mine": p**3}).to_dict()["reliability"]
    assert wrong["predicted"][-1] < wrong["lower"][-1]


# The advice


def test_without_a_goal_the_middle_card_is_advised_where_rows_show_a_gain():
    y = np.repeat(["a", "b", "c"], [700, 200, 100])
    eta = probabilities(y, ["a", "b", "c"], a=0.6, b=0.4, c=0.35)
    eta *= [6.0, 1.5, 1.0]  # as a model of the frequent class would have it
    summary = compare_predictions(y, {"mine": eta / eta.sum(axis=1, keepdims=True)}).to_dict()
    assert summary["recommendation"]["card"] == 1 and summary["recommendation"]["shows_gain"]
    plain, own = summary["candidates"][0], advised(summary)
    assert own["balanced"] < plain["balanced"] - (own["overall"] - plain["overall"])
    gain, cost = (each["text"] for each in summary["recommendation"]["reasons"])
    said = gain + cost
    assert f"({points(own['overall'], plain['overall'])} points)" in said
    assert share_text(own["balanced"]) in said and share_text(plain["balanced"]) in said


def test_where_rows_cannot_show_a_gain_the_plain_model_is_kept():
    y = np.repeat(["a", "b", "c"], [100, 90, 80])
    summary = compare_predictions(
        y, {"mine": probabilities(y, ["a", "b", "c"], good=1.5)}
    ).to_dict()
    assert summary["recommendation"]["card"] == 0 and not summary["recommendation"]["shows_gain"]
    assert advised(summary)["label"] == "mine, plain"
    (said,) = summary["recommendation"]["reasons"]
    assert said == {"heading": "Why", "text": "no held-out row is misclassified."}
    overlapping = {"mine": probabilities(y, ["a", "b", "c"], good=0.7)}
    summary = compare_predictions(y, overlapping).to_dict()
    assert summary["recommendation"]["card"] == 0
    assert "no gain from tuning" in summary["recommendation"]["reasons"][0]["text"]


def test_what_costs_more_than_it_gains_is_not_advised_unasked():
    """One class of twenty gains, and all others pay for it."""
    rng = np.random.default_rng(0)
    y = np.repeat(["common", "rare"], [3800, 200])
    p = np.where(y == "rare", rng.beta(3, 7, 4000), rng.beta(2.4, 8, 4000))
    eta = np.column_stack([1 - 0.35 * p, 0.35 * p])
    summary = compare_predictions(y, {"mine": eta}).to_dict()
    plain, tuned = (summary["candidates"][i] for i in (0, 1))
    cost = tuned["overall"] - plain["overall"]
    gain = plain["balanced"] - tuned["balanced"]
    assert cost > gain > 0 and summary["recommendation"]["card"] == 0
    assert "overall error" in summary["recommendation"]["reasons"][0]["text"]


@pytest.mark.parametrize("goal", [None, "worst_class", "f1_macro", "balanced_accuracy"])
def test_predictions_for_a_class_of_eleven_rows_do_not_move_the_advice(goal):
    y = np.repeat(["a", "b", "c", "few"], [600, 200, 100, 11])
    classes = ["a", "b", "c", "few"]
    eta = probabilities(y, classes, a=0.6, b=0.4, c=0.35) * [6.0, 1.5, 1.0, 1.0]
    other = probabilities(y, classes, seed=1, good=0.5)
    models = {"one": eta / eta.sum(axis=1, keepdims=True), "two": other}
    before = compare_predictions(y, models, goals=goal).to_dict()
    few = before["data"]["classes"][3]
    assert few["evaluated"] and not few["counts"] and "no influence" in few["note"]
    assert "“\u2068few\u2069” (11 held-out rows)" in before["recommendation"]["few"]
    assert "CostMatrix" in before["recommendation"]["few"]
    for right in (0.0, 1.0):
        changed = {name: table.copy() for name, table in models.items()}
        for name in models if goal is None else ["one"]:
            changed[name][900:] = [1 - right, 0.0, 0.0, right]
        after = compare_predictions(y, changed, goals=goal).to_dict()
        assert after["recommendation"]["card"] == before["recommendation"]["card"]
        assert advised(after)["label"] == advised(before)["label"]
        assert [c["candidate"] for c in after["cards"]] == [c["candidate"] for c in before["cards"]]
        assert all(each["worst_class"] != 3 for each in after["candidates"])
        for new, old in zip(after["candidates"], before["candidates"], strict=True):
            assert new["balanced"] == pytest.approx(old["balanced"], abs=0.02)


def test_a_goal_adds_a_card_and_is_advised():
    summary = compare(X, Y, models="linear", cv=3, goals=["f1_macro", "worst_class"]).to_dict()
    assert [card["name"] for card in summary["cards"]] == [*CARDS, "Your goal: macro F1"]
    assert summary["recommendation"]["card"] == 3
    own = advised(summary)
    assert own["goals"][0] == pytest.approx(own["macro_f1"])
    assert summary["cards"][3]["value"] == share_text(own["macro_f1"])
    # Goals of the first three cards need no further one.
    worst = compare(X, Y, models="linear", cv=3, goals="worst_class").to_dict()
    assert len(worst["cards"]) == 3 and worst["recommendation"]["card"] == 2


OWN = {
    "costs": CostMatrix([[0, 1, 1], [2, 0, 2], [5, 5, 0]]),
    "floors": RecallFloors({"less common": 0.3}),
    "five times": FixedWeights({"common": 1, "less common": 1, "rare": 5}),
}


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize("goal", OWN)
def test_models_are_tuned_for_and_evaluated_by_any_goal(goal):
    found = compare(X, Y, models="linear", cv=3, goals={goal: OWN[goal]})
    frame = found.to_frame(by="candidate")
    assert frame["tuned_for"].tolist()[-1] == goal
    values = frame[f"goal[{goal}]"]
    assert values[frame["recommended"]].item() <= values.min() + 0.1
    assert type(OWN[goal]).__name__ in found.code or found.recommended != f"linear, {goal}"


def test_the_cards_hold_the_best_of_those_tuned_for_their_goal():
    rows, y = mixed_table(600, shares=(0.9, 0.07, 0.03))
    summary = compare(rows, y, models=["linear", "forest"], cv=3, goals="f1_macro").to_dict()
    candidates = summary["candidates"]
    words = ("plain", "balanced_accuracy", "worst_class", "f1_macro")
    for at, (card, word) in enumerate(zip(summary["cards"], words, strict=True)):
        own = [each for each in candidates if each["tuned_for"] == word]
        risks = [
            (each["overall"], each["balanced"], each["worst"], 1 - each["macro_f1"])[at]
            for each in own
        ]
        assert candidates[card["candidate"]] is own[int(np.argmin(risks))]


def test_a_card_that_nobody_asked_for_keeps_the_plain_model_where_no_class_gains():
    y = np.repeat(["a", "b", "c"], [100, 90, 80])
    eta = {"mine": probabilities(y, ["a", "b", "c"], good=1.5)}
    unasked = compare_predictions(y, eta).to_dict()
    assert [card["candidate"] for card in unasked["cards"]] == [0, 0, 0]
    asked = compare_predictions(y, eta, goals="worst_class").to_dict()
    assert advised(asked)["tuned_for"] == "worst_class"


def test_a_price_is_kept_on_the_held_out_rows():
    rows, y = mixed_table(600, shares=(0.9, 0.07, 0.03))
    free = compare(rows, y, models="linear", cv=3, goals="worst_class").to_dict()
    dear = compare(rows, y, models="linear", cv=3, goals="worst_class", price=1).to_dict()
    lowest = min(each["overall"] for each in dear["candidates"])
    assert advised(dear)["overall"] <= lowest + 0.01 + 1e-9
    assert advised(dear)["overall"] <= advised(free)["overall"]
    assert any("1 points" in each["text"] for each in dear["recommendation"]["reasons"])


def test_equal_predictions_and_models_that_fail_are_said_to_be_so():
    rng = np.random.default_rng(0)
    y = np.repeat(["often", "seldom"], [300, 40])
    noise = rng.normal(size=(340, 2))
    found = compare(noise, y, models=["linear"], cv=3)
    summary = found.to_dict()
    assert summary["candidates"][0]["constant"] and summary["candidates"][0]["never_right"] == [1]
    assert "always predicting" in summary["recommendation"]["failed"]
    assert "No model tried is an answer" in found.to_html()
    apart = np.where(y == "often", 0.0, 9.0)[:, None] + noise
    same = compare(apart, y, models=["linear"], cv=3).to_dict()
    assert same["candidates"][0]["overall"] == 0
    assert any(each["same_as"] == 0 for each in same["candidates"][1:])
    assert same["recommendation"]["card"] == 0


def test_a_class_that_is_never_right_is_said_first():
    y = np.repeat(["a", "b", "c"], [200, 200, 40])
    eta = np.repeat(np.eye(3), [200, 200, 40], axis=0)
    eta[400:] = [0, 1, 0]
    found = compare_predictions(y, {"blind": eta})
    assert "No row of “\u2068c\u2069” is predicted right." in found.to_html()


# Rows held out


def test_classes_of_few_rows_are_held_out_and_named(hostile):
    summary = hostile.to_dict()
    lost = [each["name"] for each in summary["data"]["classes"] if not each["evaluated"]]
    assert lost == ["only <b>one</b>"]
    assert "only <b>one</b>" not in set(hostile.to_frame()["class"])
    assert "too few rows to be held out" in hostile.to_html()


def many_rows(n, k):
    """A table of numbers alone."""
    rng = np.random.default_rng(0)
    labels = rng.choice(k, n)
    return labels[:, None] + rng.normal(size=(n, 2)), np.array(list("abcdef"))[labels]


def test_large_tables_have_one_part_held_out():
    table = many_rows(FOLDED_ROWS + 1, 1 + FOLDED_CELLS // FOLDED_ROWS)
    found = compare(*table, models=["linear"])
    design = found.to_dict()["design"]
    assert design["kind"] == "hold-out" and 0.15 < design["evaluated"] / len(table[1]) < 0.35
    assert "cv=0.25" in found.code or "RobustClassifier" not in found.code
    assert compare(*table, models=["linear"], cv=4).to_dict()["design"]["splits"] == 4


def test_a_quick_page_trains_on_few_rows_and_says_so():
    found = compare(*many_rows(3 * QUICK_ROWS // 2, 2), models=["linear"], quick=True).to_dict()
    sampled = found["design"]["sampled"]
    assert found["design"]["kind"] == "hold-out" and 0 < sampled <= 1.1 * QUICK_ROWS
    assert any("stratified sample" in part["text"] for part in found["trust"])


class Remembers(ClassifierMixin, BaseEstimator):
    """Right where it has seen the group of a row, in the first column; otherwise "no"."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = dict(zip(np.asarray(X)[:, 0], y, strict=True))
        return self

    def predict_proba(self, X):
        found = [self.known_.get(group, "no") for group in np.asarray(X)[:, 0]]
        return 0.9 * (np.array(found)[:, None] == self.classes_) + 0.05


def test_groups_stay_together_and_widen_intervals(tmp_path):
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(120), 5)
    ill = rng.random(120) < 0.4
    y = np.where(ill, "yes", "no")[patient]
    rows = np.column_stack([patient, rng.normal(size=600)])
    model = {"remembers": Remembers()}
    apart = compare(rows, y, model, groups=patient).to_dict()
    mixed = compare(rows, y, model).to_dict()
    assert mixed["candidates"][0]["overall"] < 0.05
    assert apart["candidates"][0]["overall"] > 0.3
    assert apart["design"]["kind"] == "groups" and apart["design"]["clusters"] == 120
    assert "120 groups" in " ".join(part["text"] for part in apart["trust"])
    # Rows of a patient are alike: an interval is that of 120 patients, not of 600 rows.
    own = apart["candidates"][0]
    few = compare(rows[::5], y[::5], model, groups=patient[::5]).to_dict()["candidates"][0]
    width, patients = (each["overall_upper"] - each["overall_lower"] for each in (own, few))
    assert width == pytest.approx(patients, rel=0.2)
    # The code splits as the page did.
    frame = pd.DataFrame(rows, columns=["patient", "size"]).assign(ill=y)
    frame.to_csv(tmp_path / "visits.csv", index=False)
    found = compare_file(
        tmp_path / "visits.csv", "ill", ["linear"], group="patient", goals="worst_class"
    )
    code = found.to_dict()["cards"][2]["code"]
    assert 'groups = table.pop("patient")' in code
    model = run_code(found.code)["model"]
    assert "patient" not in getattr(model, "feature_names_in_", ["patient"])[1:]
    if "StratifiedGroupKFold" in found.code:
        folds = StratifiedGroupKFold(5, shuffle=True, random_state=0)
        assert repr(model.cv) == repr(folds)


def test_rows_in_time_order_are_predicted_from_earlier_ones(tmp_path):
    rng = np.random.default_rng(0)
    day = rng.permutation(600)
    # What a column means changes half way: earlier rows mislead.
    size = rng.normal(size=600)
    y = np.where((size > 0.8) ^ (day >= 300), "yes", "no")
    frame = pd.DataFrame({"day": day, "size": size, "age": rng.normal(size=600), "label": y})
    frame.to_csv(tmp_path / "days.csv", index=False)
    found = compare_file(tmp_path / "days.csv", "label", ["forest"], time="day")
    mixed = compare_file(tmp_path / "days.csv", "label", ["forest"], drop=["day"])
    assert found.to_dict()["design"]["kind"] == "time"
    assert found.to_dict()["design"]["evaluated"] == 500
    last = found.to_dict()["candidates"][0]["overall"], mixed.to_dict()["candidates"][0]["overall"]
    assert last[0] != last[1]
    code = found.to_dict()["cards"][2]["code"]
    assert 'sort_values("day"' in code
    names = run_code(code)
    assert names["table"]["label"].tolist() == frame.sort_values("day")["label"].tolist()
    if "RobustClassifier" in code:
        assert repr(names["model"].cv) == repr(TimeSeriesSplit(5))
    here = compare(frame[["size", "age"]], y, ["forest"], time=day)
    assert here.to_dict()["candidates"] == found.to_dict()["candidates"]
    names = run_code(here.code, X=frame[["size", "age"]], y=y, time=day)
    assert len(names["predicted"]) == 600


# Models of the user's own, fitted ones, and predictions from anywhere


def test_own_models_are_compared_as_they_are_given():
    models = {
        "pipe, with a comma": make_pipeline(StandardScaler(), LogisticRegression()),
        "margin": LinearSVC(),
        "nothing": DummyClassifier(),
    }
    rows = np.nan_to_num(X[["size", "age"]].to_numpy())
    found = compare(rows, Y, models, goals="balanced_accuracy", cv=3)
    summary = found.to_dict()
    assert labels_of(summary)[:3] == [f"{name}, plain" for name in models]
    assert summary["candidates"][2]["constant"] and not summary["recommendation"]["no_answer"]
    assert summary["command"] is None
    model = run_code(found.code, X=rows, y=Y, models=models)["model"]
    np.testing.assert_array_equal(model.predict(rows), found.fit().predict(rows))
    assert not hasattr(models["margin"], "coef_"), "the user's own stays as it was"


def test_fitted_models_are_evaluated_on_all_rows_and_not_fitted_again():
    rows, y = mixed_table(900, shares=(0.6, 0.25, 0.15))
    numbers = rows[["size"]].to_numpy()
    forest = RandomForestClassifier(20, random_state=0).fit(numbers[:300], y[:300])
    models = {"mine": FrozenEstimator(forest)}
    found = compare(numbers[300:], y[300:], models, goals="worst_class")
    summary = found.to_dict()
    assert summary["design"]["evaluated"] == len(y) - 300
    risks = class_risks(y[300:], forest.predict(numbers[300:]))
    assert summary["candidates"][0]["overall"] == pytest.approx(risks.standard())
    model = run_code(found.code, X=numbers[300:], y=y[300:], models=models)["model"]
    assert model.predict(numbers[:5]).tolist() == found.fit().predict(numbers[:5]).tolist()
    # Beside models that are fitted here, on the same rows in the same order.
    both = compare(numbers[300:], y[300:], models | {"again": clone_of(forest)}, cv=3).to_dict()
    assert both["candidates"][0]["overall"] == pytest.approx(risks.standard())


def clone_of(forest):
    return RandomForestClassifier(**forest.get_params())


def test_predictions_from_anywhere_are_compared_and_tuned():
    y = np.repeat(["a", "b", "c"], [500, 120, 60])
    eta = probabilities(y, ["a", "b", "c"])
    worse = np.tile([0.1 + 1 / 3, 1 / 3, 1 / 3], (len(y), 1))
    predictions = {"mine": eta, "constant": worse / worse.sum(axis=1, keepdims=True)}
    found = compare_predictions(y, predictions, goals="worst_class")
    summary = found.to_dict()
    assert summary["candidates"][0]["overall"] == pytest.approx(
        np.mean(np.array(["a", "b", "c"])[eta.argmax(axis=1)] != y)
    )
    tuned = tune_weights(y, eta, "worst_class", rare_classes="keep", random_state=0)
    own = summary["candidates"][labels_of(summary).index("mine, worst_class")]
    assert own["worst"] == pytest.approx(tuned.class_risks.max())
    names, model = run_code(found.code, y=y, predictions=predictions), found.fit()
    np.testing.assert_array_equal(names["model"].rule, model.rule)
    np.testing.assert_array_equal(names["predicted"], model.decide(eta))
    assert found.recommended.startswith("mine") and "<html" in found.to_html()


def test_predictions_of_rows_without_weight_do_not_count():
    y, weights = np.repeat(["a", "b"], [500, 100]), np.ones(600)
    weights[::7] = 0
    eta, used = probabilities(y, ["a", "b"]), weights > 0
    found = compare_predictions(y, {"mine": eta}, sample_weight=weights).to_dict()
    wrong = np.array(["a", "b"])[eta.argmax(axis=1)] != y
    assert found["candidates"][0]["overall"] == pytest.approx(np.mean(wrong[used]))


def test_bad_predictions_get_a_sentence():
    y, eta = ["a", "b"] * 20, np.full((40, 2), 0.5)
    for given, match in (
        ([eta], "predictions must be a dict"),
        ({}, "predictions must be a dict"),
        ({"mine": eta[:3]}, r"predictions\['mine'\] must have one row for each of the 40"),
        ({"mine": 2 * eta}, "mine"),
    ):
        with pytest.raises((InvalidInputError, InvalidParameterError), match=match):
            compare_predictions(y, given)


def test_an_interrupt_keeps_the_finished_candidates():
    told = []

    def stop(share, what):
        told.append(what)
        if what == "linear, balanced_accuracy":
            raise KeyboardInterrupt

    found = compare(X, Y, models=["linear"], cv=3, progress=stop)
    assert labels_of(found.to_dict()) == ["linear, plain"]
    assert "linear, balanced_accuracy" in found.to_dict()["design"]["unfinished"]
    assert "Interrupted" in found.to_html()

    def at_once(share, what):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(X, Y, models=["linear"], cv=3, progress=at_once)


def flat(rows):
    return rows.reshape(len(rows), -1)


@pytest.mark.parametrize("kind", ["texts", "series", "sparse", "images"])
def test_models_of_ones_own_read_what_no_table_is(kind):
    rng = np.random.default_rng(0)
    y = np.repeat(["calm", "storm"], [90, 40])
    words = {"calm": ["sun", "still", "blue"], "storm": ["wind", "rain", "blue"]}
    texts = [
        " ".join(rng.choice(words[each], 4)) + f" {place % 50}" for place, each in enumerate(y)
    ]
    texts[1], texts[100] = texts[0], texts[99]  # equal rows stay together
    model = LogisticRegression()
    X = CountVectorizer().fit_transform(texts)
    if kind in ("texts", "series"):
        X, model = (
            texts if kind == "texts" else pd.Series(texts),
            make_pipeline(CountVectorizer(), model),
        )
    if kind == "images":
        X = X.toarray()[:, -12:].reshape(-1, 3, 4)
        model = make_pipeline(FunctionTransformer(flat), model)
    found = compare(X, y, {"mine": model}, goals="worst_class", cv=3)
    assert found.to_dict()["data"]["repeated"] >= 2
    assert "130 rows, 2 classes" in found.to_html()
    namespace = {"X": X, "y": y, "models": {"mine": model}}
    exec(found.code, namespace)
    assert np.array_equal(namespace["model"].predict(X), found.fit().predict(X))
    assert found.to_frame(by="candidate")["worst"].min() < 0.5
    with pytest.raises(InvalidInputError, match="130"):
        compare(X, y[:-1], {"mine": model})


def test_a_notebook_has_a_bar(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda html, display_id: handle)
    shell = SimpleNamespace(kernel=None)
    notebook = SimpleNamespace(get_ipython=lambda: shell, display=display)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    one = {"models": ["linear"], "goals": "standard", "cv": 2}
    compare(X, Y, models=["linear"], cv=2)
    assert shown[0].startswith('<progress value="0.000"') and "linear" in shown[1]
    assert shown[-1] == "" and len(shown) > 3
    # In a terminal, or with a progress of one's own, there is none.
    told = []
    compare(X, Y, **one, progress=lambda *each: told.append(each))
    del shell.kernel
    compare(X, Y, **one)
    assert told and shown[-1] == "" and shown.count("") == 1


def test_progress_rises_to_one():
    told = []
    compare(X, Y, models=["linear"], cv=2, progress=lambda share, what: told.append((share, what)))
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1
    assert all(0 <= share <= 1 for share in shares) and all(what for _, what in told)


def test_warnings_of_fits_and_table_are_told():
    frame, y = mixed_table()
    frame["id"] = [f"row {place}" for place in range(len(frame))]
    found = compare(frame, y, models=["linear"], cv=2)
    texts = " ".join(part["text"] for part in found.to_dict()["trust"])
    assert "'id'" in texts and "identifier" in texts


# Objects and pages


def test_a_comparison_is_plain_data(found):
    summary = found.to_dict()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    summary["candidates"].clear()
    assert found.to_dict()["candidates"], "a copy, not the thing itself"
    assert found.recommended in repr(found) and "mean class error" in repr(found)


def test_frames_hold_the_numbers_of_the_page(found):
    frame, summary = found.to_frame(), found.to_dict()
    assert len(frame) == 9 and set(frame["class"]) == set(Y)
    assert frame["precision"].tolist()[0] == summary["candidates"][0]["classes"][0]["precision"]
    by_candidate = found.to_frame(by="candidate")
    assert by_candidate["recommended"].sum() == 1 and "macro_f1" in by_candidate


def test_one_number_is_rounded_one_way_everywhere(found):
    """Every share in a card is in the table of candidates, and differences are of these."""
    page, summary = Reader(found.to_html()), found.to_dict()
    texts = [text.strip() for text in page.texts]
    first = summary["candidates"][summary["cards"][0]["candidate"]]
    for card in summary["cards"]:
        each = summary["candidates"][card["candidate"]]
        for name in ("overall", "balanced", "worst"):
            shown = f"{100 * each[name]:.1f}%"
            assert texts.count(shown) >= 2
            own, old = (float(f"{100 * one[name]:.1f}") for one in (each, first))
            assert abs(own - old) < 0.05 or any(
                re.match(rf"{re.escape(f'{own - old:+.1f}')}\b", text) for text in texts
            )


class Reader(HTMLParser):
    """Texts, tags and attributes of a page; scripts apart."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.scripts, self._inside = [], [], [], None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = [tag, dict(attrs), ""]

    def handle_endtag(self, tag):
        if self._inside and tag == self._inside[0]:
            self.scripts.append(self._inside)
            self._inside = None

    def handle_data(self, data):
        if self._inside:
            self._inside[2] += data
        else:
            self.texts.append(data)


def test_names_are_text_on_the_page(hostile):
    read = Reader(hostile.to_html())
    tags = {tag for tag, _ in read.tags}
    assert not tags & {"img", "b ", "iframe", "object", "embed", "form"}
    assert [kind for kind, *_ in read.scripts] == ["style", "script", "script"]
    assert all(not name.startswith("on") for _, attrs in read.tags for name in attrs)
    flat = [" ".join(text.split()) for text in read.texts]
    for name in [*HOSTILE, "only <b>one</b>"]:
        assert " ".join(name.split()) in flat, name
    assert "{{ 7 * 7 }} ${1+1} %s" in flat and "49" not in " ".join(
        text for text in flat if "7 * 7" in text
    )


def test_the_page_asks_nothing_of_a_network(hostile):
    read = Reader(hostile.to_html())
    links = [
        value
        for _, attrs in read.tags
        for name, value in attrs.items()
        if name in ("src", "href", "action", "data", "poster", "srcset")
    ]
    assert links and all(link.startswith(("#", "data:")) for link in links)
    style = read.scripts[0][2]
    assert "url(" not in style and "@import" not in style
    assert not any(attrs.get("style") for _, attrs in read.tags)


def test_the_policy_of_the_page_knows_its_own_style_and_script_and_no_other(hostile):
    read = Reader(hostile.to_html())
    policy = next(
        attrs["content"]
        for tag, attrs in read.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy and "unsafe-inline" not in policy
    for kind, attrs, text in read.scripts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        if attrs.get("type") != "application/json":
            assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_data_behind_the_chart_are_on_the_page(hostile):
    read = Reader(hostile.to_html())
    ((_, _, text),) = [part for part in read.scripts if part[1].get("type") == "application/json"]
    assert not set("<>&") & set(text)
    assert json.loads(text)["candidates"] == hostile.to_dict()["candidates"]


@pytest.mark.parametrize("text", [*HOSTILE, "<!--", "]]>", "\u2028", "\ud800", "\x00"])
def test_json_stays_inside_its_element_and_comes_back_whole(found, text):
    summary = found.to_dict()
    summary["data"]["classes"][0]["name"] = text
    page = Comparison(summary).to_html()
    (written,) = re.findall('<script type="application/json" id="data">(.*?)</script>', page)
    written.encode("utf-8")
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written)["classes"][0]["name"] == text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_sentences_are_short_and_on_one_line(name):
    text = quoted(name)
    assert len(text) <= 64 and "\n" not in text
    assert text.count("\u2068") == text.count("\u2069") == 1


def test_many_classes_make_no_huge_page():
    names = [f"class {place} {'x' * 190}" for place in range(150)]
    rng = np.random.default_rng(0)
    y = np.repeat(names, 4)
    found = compare(
        rng.normal(size=(600, 2)) + np.repeat(np.arange(150), 4)[:, None],
        y,
        models=["linear"],
        cv=2,
        goals="balanced_accuracy",
    )
    page = found.to_html()
    assert len(page.encode()) < 2_000_000 and "90 others" in page
    assert len(found.to_frame()) == 450


def test_saving_leaves_no_half_page(found, tmp_path, monkeypatch):
    place = tmp_path / "page.html"
    assert found.save(place) == place
    whole = place.read_text(encoding="utf-8")
    assert whole == found.to_html() and whole.rstrip().endswith("</html>")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(OSError, match="No space"):
        Comparison(found.to_dict() | {"title": "other"}).save(place)
    assert place.read_text(encoding="utf-8") == whole
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(hostile):
    view = hostile._repr_html_()
    ((tag, attrs),) = Reader(view).tags
    assert tag == "iframe" and attrs["srcdoc"] == hostile.to_html()
    assert attrs["sandbox"] == "allow-scripts" and attrs["title"]


def test_without_jinja2_the_error_holds_the_command_that_installs_it(found, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'equipoise\[report\]'"):
        found.to_html()


# The lines that refit


@pytest.mark.parametrize("as_array", [False, True])
def test_the_code_refits_the_advised_candidate_from_python(as_array):
    rows = X[["size"]].to_numpy() if as_array else X
    found = compare(rows, Y, models=["linear"], cv=3)
    model = run_code(found.code, X=rows, y=Y)["model"]
    # Rows are given as they came.
    np.testing.assert_array_equal(model.predict(rows), found.fit().predict(rows))
    assert set(model.classes_) == set(Y)


def test_the_code_refits_from_a_file_whatever_its_names(tmp_path, monkeypatch):
    frame, y = hostile_table()
    target = "la'bel\n\"<b>"
    frame = frame.assign(**{target: y, "drop 'me'": np.arange(len(y))})
    place = tmp_path / "odd 'name' \".csv"
    frame.to_csv(place, index=False)
    told = []
    found = compare_file(
        place,
        target,
        models=["linear"],
        drop=["drop 'me'"],
        progress=lambda *say: told.append(say),
    )
    names = run_code(found.code)
    assert list(names["X"].columns) == list(frame.columns[:3])
    assert set(names["model"].classes_) == set(y)
    assert told[0] == (0.0, "reading") and place.name in found.to_html().replace(
        "&#39;", "'"
    ).replace("&#34;", '"')


class DecidesAlone(ClassifierMixin, BaseEstimator):
    """A classifier that only decides."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


BAD = {
    "no folds": ({"cv": 1}, "cv must be an integer of at least 2"),
    "no models": ({"models": []}, "models must be some of"),
    "unknown model": ({"models": ["trees"]}, r"models must be some of .*\['trees'\]"),
    "no chances": ({"models": {"mine": DecidesAlone()}}, "predict_proba or decision_function"),
    "no classifier": ({"models": {"mine": 3}}, "models must hold classifiers by name, got 3"),
    "no goals": ({"goals": {}}, "goals must be a goal"),
    "no goal": ({"goals": {"a": 3}}, "goal must be"),
    "confidence": ({"goals": RecallFloors(0.5, confidence=0.9)}, "confidence is about one model"),
    "price": ({"price": -1}, "price must be"),
    "weights": ({"sample_weight": [1.0]}, "sample_weight must have one value for each"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_wishes_get_a_sentence(case):
    options, match = BAD[case]
    with pytest.raises((InvalidInputError, InvalidParameterError), match=match):
        compare(X, Y, **options)


def test_bad_tables_get_a_sentence():
    with pytest.raises(InvalidInputError, match="at least 2 classes"):
        compare(X, ["a"] * len(X))
    with pytest.raises(InvalidInputError, match="one entry for each"):
        compare(X, Y[:-1])
    with pytest.raises(InvalidInputError, match="Fewer than two classes"):
        compare(X, np.where(np.arange(len(X)) < 3, "few", "many"))
    with pytest.raises(InvalidInputError, match="rows and columns"):
        compare(np.arange(4.0), [0, 1, 0, 1])


def test_all_texts_are_free_of_leftovers(found):
    page = re.sub(r"<(script|style).*?</\1>", "", found.to_html(), flags=re.S)
    assert not re.search(r"\b(nan|None|undefined|inf)\b", page)
