"""The report: folds that leak nothing, numbers of the library, and pages that are only text."""

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
from sklearn.model_selection import StratifiedKFold  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import FunctionTransformer, StandardScaler  # noqa: E402
from sklearn.svm import LinearSVC  # noqa: E402

from equipoise import (  # noqa: E402
    CostMatrix,
    FixedWeights,
    LabelCVaR,
    RecallFloors,
    RobustClassifier,
    WorstClass,
    class_risks,
    tune_weights,
)
from equipoise.datasets import load_thyroid  # noqa: E402
from equipoise.decisions import Evaluated  # noqa: E402
from equipoise.decisions.alphas import alpha_grid, middle_alpha  # noqa: E402
from equipoise.decisions.summary import FEW_ROWS  # noqa: E402
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
from equipoise.report.design import (  # noqa: E402
    Design,
    make_candidates,
    named_goals,
    stratified_sample,
)
from equipoise.report.findings import held_out_risks  # noqa: E402
from equipoise.report.recommendation import Recommendation  # noqa: E402
from equipoise.report.refit import Refit  # noqa: E402
from equipoise.tables import labelled_table, learner_for, made_for  # noqa: E402
from equipoise.tables.labelled import _without_label  # noqa: E402
from equipoise.text import quoted  # noqa: E402
from report_tables import (  # noqa: E402
    HOSTILE,
    assert_no_robust_row_is_worse,
    hostile_table,
    mixed_table,
)

X, Y = mixed_table()


def parts_of(design):
    """Training and held-out rows of every fold."""
    return design.folds(sys.maxsize, 0).parts


def risks_of(design, predicted):
    """What the page says of predictions for all rows of a table."""
    table, rows = design.table, design.judged
    weights = np.ones(len(predicted)) if table.weights is None else table.weights
    return held_out_risks(
        design,
        Evaluated(
            table.labels[rows], predicted[rows], predicted[rows], design.fold[rows], weights[rows],
            ~design.estimable, table.prior, design.tested_per_trained,
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return compare(X, Y, models=["linear"], cv=3)


@pytest.fixture(scope="module")
def hostile():
    return compare(*hostile_table(), models=["linear"], cv=3)


# Folds


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cv", [2, 5])
def test_every_row_is_judged_once_by_fits_that_saw_neither_it_nor_its_twins(cv, seed):
    table = labelled_table(*mixed_table(seed=seed))
    design = Design.for_table(table, cv, seed)
    assert design.n_repeated == table.X.duplicated().sum() > 0
    seen = np.zeros(len(table.y), dtype=int)
    for train, test in parts_of(design):
        assert len(np.intersect1d(train, test)) == 0
        assert not set(table.groups[train]) & set(table.groups[test])
        assert set(table.labels[train]) == set(range(len(table.classes)))
        seen[test] += 1
    assert np.all(seen == 1) and np.array_equal(np.flatnonzero(seen), design.judged)


def test_classes_are_spread_evenly_over_the_folds():
    y = np.repeat([0, 1, 2], [61, 27, 12])
    table = labelled_table(np.arange(100.0)[:, None], y)
    design = Design.for_table(table, 5, 0)
    counts = np.array([np.bincount(y[test], minlength=3) for _, test in parts_of(design)])
    assert np.all(np.ptp(counts, axis=0) <= 1)
    reference = StratifiedKFold(5).split(y, y)
    sizes = np.array([np.bincount(y[test], minlength=3) for _, test in reference])
    np.testing.assert_array_equal(np.sort(counts, axis=0), np.sort(sizes, axis=0))


def test_a_class_of_fewer_distinct_rows_than_folds_only_trains():
    frame = pd.DataFrame({"x": [*range(20), *range(100, 110), 7.5, 7.5, 7.5, 7.5, 7.5, 8.5]})
    y = ["a"] * 20 + ["b"] * 10 + ["alike"] * 5 + ["single"]
    design = Design.for_table(labelled_table(frame, y), 3, 0)
    assert design.estimable.tolist() == [True, False, True, False]
    assert np.all(design.fold[30:] == -1) and np.all(design.fold[:30] >= 0)


def test_equal_rows_of_different_classes_stay_together():
    frame = pd.DataFrame({"x": [*range(12), *range(12)]})
    table = labelled_table(frame, ["a"] * 12 + ["b"] * 12)
    design = Design.for_table(table, 3, 0)
    np.testing.assert_array_equal(design.fold[:12], design.fold[12:])


def test_large_tables_have_one_part_held_out(monkeypatch):
    monkeypatch.setattr("equipoise.tables.features.FOLDED_ROWS", 100)
    monkeypatch.setattr("equipoise.tables.features.FOLDED_CELLS", 100)
    table = labelled_table(X, Y)
    design = Design.for_table(table, 5, 0)
    assert design.n_folds == 1
    ((train, judged),) = parts_of(design)
    assert sorted([*train, *judged]) == list(range(len(Y)))
    assert not set(table.groups[train]) & set(table.groups[judged])
    shares = np.bincount(table.labels[judged]) / table.counts
    assert np.all(shares > 0.1) and np.all(shares < 0.35)
    # Asked for, folds are made of any table, and a hold-out of any share.
    assert Design.for_table(table, 4, 0).n_folds == 4
    assert 0.4 < len(Design.for_table(table, 0.5, 0).judged) / len(Y) < 0.6


def test_a_class_of_few_rows_in_a_large_table_is_not_lost_to_training():
    y = np.repeat(["common", "less common", "rare", "twins"], [100, 50, 2, 5])
    frame = pd.DataFrame({"x": [*range(152), *[200] * 2, *[201] * 2, 202]})
    for seed in range(20):
        ((train, judged),) = parts_of(Design.for_table(labelled_table(frame, y), 0.25, seed))
        assert set(y[train]) == set(y) and set(y[judged]) >= {"common", "less common"}


def test_a_sample_takes_the_same_share_of_every_class():
    labels = np.repeat([0, 1, 2], [8000, 1999, 1])
    rows = np.flatnonzero(np.arange(10_000) % 2 == 1)
    sample = stratified_sample(labels, rows, 1000, 0)
    assert np.all(np.isin(sample, rows)) and len(np.unique(sample)) == len(sample)
    assert np.bincount(labels[sample]).tolist() == [800, 200, 1]
    assert stratified_sample(labels, rows, 10_000, 0) is rows


# Numbers


@pytest.mark.parametrize("cv", [3, 0.3])
def test_risks_are_those_of_fits_made_by_hand(cv):
    """Every choice is what the classifier of the code says of itself on the folds of the page."""
    table = labelled_table(X, Y)
    design = Design.for_table(table, cv, 0)
    goals = {"balanced": "balanced", "CVaR 0.2": LabelCVaR(0.2), "F": "f1_macro"}
    found = compare(X, Y, models=["linear"], cv=cv, goals=goals)
    frame = found.to_frame().set_index("made_for")
    learner = learner_for(X, "linear")
    for made_for_, goal in (("plain", "standard"), *goals.items()):
        model = made_for(learner, goal, cv=parts_of(design), random_state=0)
        lines = frame.loc[made_for_].set_index("class")["risk"]
        if made_for_ == "plain":
            predicted = np.empty(len(Y), dtype=object)
            for train, test in parts_of(design):
                fitted = model.fit(X.iloc[train], Y[train])
                predicted[test] = fitted.predict(X.iloc[test])
            risks = class_risks(Y[design.judged], predicted[design.judged]).risks
        else:
            risks = model.fit(X, Y).class_risks_
        for name in lines.index:
            assert lines[name] == pytest.approx(risks[name], abs=1e-12), (made_for_, name)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.usefixtures("few_stages")
@pytest.mark.parametrize("model", ["linear", "forest", "boosting"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_code_of_every_choice_is_the_rule_that_was_judged(model, weighted):
    """With the folds of the page: the same decisions for the rows judged, and so the same risks.

    With a tiny class, categories, missing values and, in turn, weights of the rows.
    """
    frame = pd.concat([X, X.iloc[:4].assign(age=np.arange(4.0))], ignore_index=True)
    y = np.append(Y, ["tiny"] * 4)
    weights = np.where(np.arange(len(y)) % 2, 1.0, 3.0) if weighted else None
    found = compare(frame, y, models=[model], cv=3, sample_weight=weights)
    table = labelled_table(frame, y, weights)
    design = Design.for_table(table, 3, 0)
    goals = named_goals(None, table.prior[design.deciding])
    learners = {model: learner_for(frame, model)}
    code = Refit(
        frame, y, learners, [model], cv=3, seed=0, sample_weight=weights,
        loading=["from equipoise.tables import learner_for"],
    )  # fmt: skip
    candidates = make_candidates(learners, goals)
    choices = found.to_dict()["choices"]
    assert [each.label for each in candidates] == [each["label"] for each in choices]
    for candidate, choice in zip(candidates, choices, strict=True):
        if candidate.goal is None:
            continue
        text = code.code(candidate).replace("cv=3", "cv=parts")
        names = run_code(text, X=frame, y=y, parts=parts_of(design), sample_weight=weights)
        own = names["model"].class_risks_
        for each in choice["classes"]:
            name = table.classes[each["class"]]
            if not np.isnan(own[name]):
                assert each["risk"] == pytest.approx(own[name], abs=1e-12)


def test_the_path_begins_at_standard_and_starts_at_what_is_recommended(found):
    summary = found.to_dict()
    path = summary["path"]
    assert path["alpha"][0] == 1.0 and sorted(path["alpha"], reverse=True) == path["alpha"]
    chosen = summary["choices"][summary["recommendation"]["choice"]]
    own = {each["class"]: each["risk"] for each in chosen["classes"]}
    deciding = [at for at, each in enumerate(summary["data"]["classes"]) if each["deciding"]]
    far = [
        max(abs(row[path["classes"].index(place)] - own[place]) for place in deciding)
        for row in path["risk"]
    ]
    assert path["start"] == int(np.argmin(far))
    for at, row in enumerate(path["risk"]):
        some = [row[path["classes"].index(place)] for place in deciding]
        assert path["worst"][at] == pytest.approx(max(some))


def test_the_recommended_choice_has_the_smallest_largest_regret(found):
    frame = found.to_frame(by="choice")
    risks = frame.filter(like="risk[").to_numpy()
    largest = (risks - risks.min(axis=0)).max(axis=1)
    np.testing.assert_allclose(frame["largest_regret"], largest)
    chosen = int(np.flatnonzero(frame["recommended"])[0])
    # By one standard error at most it is not.
    assert frame["recommended"].sum() == 1 and largest[chosen] <= largest.min() + 0.03
    assert set(found.to_dict()["recommendation"]) == {
        "choice", "plain", "best_plain", "failed", "reasons", "price", "sanity", "confidence"
    }  # fmt: skip


def simple(costs, without=None, allowed=None, plain=None):
    every = np.ones(len(costs), dtype=bool)
    return Recommendation.among(
        costs, costs[None] if without is None else without, costs[:, 0],
        allowed=every if allowed is None else allowed, plain=every if plain is None else plain,
    )  # fmt: skip


def test_recommendations_by_brute_force():
    rng = np.random.default_rng(0)
    costs = rng.random((6, 4))
    # So little noise that none is as good as another.
    noise = costs + 1e-6 * rng.normal(size=(20, 6, 4))
    found = simple(costs, noise)
    regret = [max(costs[i, j] - costs[:, j].min() for j in range(4)) for i in range(6)]
    np.testing.assert_allclose(found.largest_regrets, regret)
    assert found.place == int(np.argmin(regret)) and found.plain == int(costs[:, 0].argmin())
    assert found.rivals == ()
    # What is not allowed is not taken, and the best plain one is one of the plain ones.
    allowed = np.arange(6) != found.place
    others = simple(costs, noise, allowed, plain=np.arange(6) < 2)
    assert others.place == min(np.flatnonzero(allowed), key=lambda at: regret[at])
    assert others.best_plain == int(np.argmin(regret[:2]))


def test_of_those_within_one_standard_error_the_plainest_is_taken():
    costs = np.array([[0.40], [0.31], [0.30]])
    assert simple(costs).place == 2
    # Groups of rows move the difference of the last two by 0.02: a standard error of 0.014.
    without = np.array([[[0.40], [0.32], [0.29]], [[0.40], [0.30], [0.31]]])
    found = simple(costs, without)
    assert (found.place, found.rivals) == (1, (2,))
    assert simple(costs, without, allowed=np.array([True, False, True])).place == 2
    # Of equal ones the plainest.
    equal = np.array([[0.1, 0.3], [0.1, 0.3], [0.1, 0.3]])
    assert simple(equal).place == 0 and simple(equal).rivals == (1, 2)


def test_equal_weights_are_no_weights(found):
    plain = found.to_dict()
    weighted = compare(X, Y, models=["linear"], cv=3, sample_weight=np.ones(len(Y))).to_dict()
    assert weighted["data"]["weighted"] and not plain["data"]["weighted"]
    np.testing.assert_allclose(weighted["costs"]["risk"], plain["costs"]["risk"])
    assert weighted["choices"] == plain["choices"]


def test_weights_weigh_the_rows_that_are_judged():
    weights = np.where(np.arange(len(Y)) % 2, 1.0, 3.0)
    table = labelled_table(X, Y, weights)
    design = Design.for_table(table, 3, 0)
    predicted = np.where(np.arange(len(Y)) % 4 == 0, (table.labels + 1) % 3, table.labels)
    found = risks_of(design, predicted)
    expected = np.average(predicted != table.labels, weights=weights)
    assert found.risks.standard() == pytest.approx(expected)
    assert found.intervals.approximate


def test_the_same_seed_gives_the_same_numbers(found):
    again = compare(X, Y, models=["linear"], cv=3).to_dict()
    first = found.to_dict()
    for summary in (again, first):
        del summary["design"]["seconds"]
    assert again == first
    other = compare(X, Y, models=["linear"], cv=3, random_state=1).to_dict()
    assert other["costs"] != first["costs"]


def test_what_is_taken_for_what_is_the_largest_confusion():
    table = labelled_table(X, Y)
    design = Design.for_table(table, 3, 0)
    predicted = np.where(np.arange(len(Y)) % 3 == 0, 2, table.labels)
    found = risks_of(design, predicted)
    share = np.mean((np.arange(len(Y)) % 3 == 0)[table.labels == 0])
    assert found.taken_for[0] == (2, pytest.approx(share)) and 2 not in found.taken_for


def test_small_classes_are_shown_but_do_not_decide():
    frame, y = mixed_table()
    frame = pd.concat([frame, frame.iloc[:6].assign(age=np.arange(6.0))], ignore_index=True)
    found = compare(frame, np.append(y, ["tiny"] * 6), models=["linear"], cv=3)
    summary = found.to_dict()
    tiny = next(each for each in summary["data"]["classes"] if each["name"] == "tiny")
    assert tiny["estimable"] and not tiny["deciding"] and "does not decide" in tiny["note"]
    assert "tiny" in set(found.to_frame()["class"])
    worst = {one["worst_class"] for one in summary["choices"]}
    assert summary["data"]["classes"].index(tiny) not in worst
    assert any("“\u2068tiny\u2069”" in part["text"] for part in summary["trust"])


def test_levels_of_alpha_reach_from_standard_to_worst_class():
    for prior in ([0.5, 0.5], [0.76, 0.24], [0.9, 0.08, 0.02], [0.99, 0.0099, 0.0001]):
        grid, middle = alpha_grid(np.array(prior), 12), middle_alpha(np.array(prior))
        assert grid[0] == 1 and np.all(np.diff(grid) < 0) and middle in grid
        assert grid[-1] == pytest.approx(min(*prior, 0.5))
        # The caps of the level compared bind, unless there is nothing between the two ends.
        assert middle == 0.1 or middle > min(prior)
    assert middle_alpha(np.array([0.98, 0.02])) == 0.1


GOALS = {
    "worst_class": ["plain", "balanced", "worst class"],
    "f1_macro": ["plain", "balanced", "f1_macro"],
    "balanced": ["plain", "balanced"],
    "costs": ["plain", "balanced", "costs"],
    "floors": ["plain", "balanced", "floors"],
}
OWN = {
    "costs": {"costs": CostMatrix([[0, 1, 1], [2, 0, 2], [5, 5, 0]])},
    "floors": {"floors": RecallFloors({"less common": 0.3})},
}


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize("goal", GOALS)
def test_models_are_made_for_and_judged_by_any_goal(goal):
    rows, y = mixed_table(400, shares=(0.6, 0.25, 0.15))
    found = compare(rows, y, models="linear", cv=3, goals=OWN.get(goal, goal))
    frame = found.to_frame(by="choice")
    assert frame["made_for"].tolist() == GOALS[goal]
    values = frame.filter(like="risk[").to_numpy()
    assert values.shape[1] == 1
    best = values[:, 0].min()
    assert values[frame["recommended"], 0][0] <= best + 0.02
    if goal == "f1_macro":
        model = RobustClassifier(
            learner_for(rows, "linear"), "f1_macro", rare_classes="keep", min_rows=FEW_ROWS,
            random_state=0, cv=parts_of(Design.for_table(labelled_table(rows, y), 3, 0)),
        ).fit(rows, y)  # fmt: skip
        assert values[2, 0] == pytest.approx(1 - model.metric_value_)


def test_own_sets_of_weightings_are_compared():
    own = {"five times": FixedWeights({"common": 1, "less common": 1, "rare": 5})}
    found = compare(X, Y, models="linear", cv=3, goals=own)
    frame = found.to_frame(by="choice")
    assert frame["made_for"].tolist() == ["plain", "balanced", "five times"]
    assert "risk[five times]" in frame
    assert "FixedWeights" in found.to_dict()["choices"][2]["goal"]


def test_a_price_is_kept_on_the_rows_judged():
    rows, y = mixed_table(600, shares=(0.9, 0.07, 0.03))
    free = compare(rows, y, models="linear", cv=3, goals="worst_class").to_dict()
    dear = compare(rows, y, models="linear", cv=3, goals="worst_class", price=1).to_dict()
    errors = [each["standard"] for each in dear["choices"]]
    chosen = dear["recommendation"]["choice"]
    failed = [bool(each["failures"]) for each in dear["choices"]]
    assert errors[chosen] <= min(errors) + 0.01 + 1e-9 or all(
        bad or error > min(errors) + 0.01 for bad, error in zip(failed, errors, strict=True)
    )
    assert any(each["made_for"] == "a price of 1" for each in dear["choices"])
    paid = [each["standard"] for each in free["choices"]][free["recommendation"]["choice"]]
    assert errors[chosen] <= paid


# Models of the user's own, fitted ones, and predictions from anywhere


def test_own_models_are_compared_as_they_are_given(capsys):
    models = {
        "pipe, with a comma": make_pipeline(StandardScaler(), LogisticRegression()),
        "margin": LinearSVC(),
        "nothing": DummyClassifier(),
    }
    rows = np.nan_to_num(X[["size", "age"]].to_numpy())
    found = compare(rows, Y, models, goals="balanced_accuracy", cv=3)
    summary = found.to_dict()
    labels = [each["label"] for each in summary["choices"]]
    assert labels[:3] == [f"{name}, plain" for name in models]
    constant = summary["choices"][labels.index("nothing, plain")]
    assert "no better than always deciding" in constant["failures"][0]
    assert not summary["recommendation"]["failed"]
    assert summary["command"] is None
    model = run_code(found.code, X=rows, y=Y, models=models)["model"]
    np.testing.assert_array_equal(model.predict(rows), found.fit().predict(rows))
    assert not hasattr(models["margin"], "coef_"), "the user's own stays as it was"


def test_fitted_models_are_judged_on_all_rows_and_not_fitted_again():
    rows, y = mixed_table(900, shares=(0.6, 0.25, 0.15))
    numbers = rows[["size"]].to_numpy()
    forest = RandomForestClassifier(20, random_state=0).fit(numbers[:300], y[:300])
    models = {"mine": FrozenEstimator(forest)}
    found = compare(numbers[300:], y[300:], models, goals="worst_class")
    summary = found.to_dict()
    assert summary["design"]["judged"] == len(y) - 300
    plain = summary["choices"][0]
    risks = class_risks(y[300:], forest.predict(numbers[300:]))
    assert plain["standard"] == pytest.approx(risks.standard())
    model = run_code(found.code, X=numbers[300:], y=y[300:], models=models)["model"]
    assert model.predict(numbers[:5]).tolist() == found.fit().predict(numbers[:5]).tolist()


def test_predictions_from_anywhere_are_compared_and_decided():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [500, 120, 60])
    eta = rng.dirichlet(np.ones(3), len(y)) + 0.5 * (y[:, None] == np.array(["a", "b", "c"]))
    eta /= eta.sum(axis=1, keepdims=True)
    worse = np.full_like(eta, 1 / 3)
    worse[:, 0] += 0.1
    worse /= worse.sum(axis=1, keepdims=True)
    predictions = {"mine": eta, "constant": worse}
    found = compare_predictions(y, predictions, goals="worst_class")
    summary = found.to_dict()
    plain = summary["choices"][0]
    assert plain["standard"] == pytest.approx(
        np.mean(np.array(["a", "b", "c"])[eta.argmax(axis=1)] != y)
    )
    tuned = tune_weights(y, eta, "worst_class", rare_classes="keep", random_state=0)
    own = next(each for each in summary["choices"] if each["label"] == "mine, worst class")
    assert own["worst"] == pytest.approx(tuned.class_risks.max())
    names, model = run_code(found.code, y=y, predictions=predictions), found.fit()
    np.testing.assert_array_equal(names["model"].rule, model.rule)
    np.testing.assert_array_equal(names["decided"], model.decide(eta))
    assert found.recommended.startswith("mine")
    assert "Comparison" in repr(found) and "<html" in found.to_html()


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
        if what == "linear, balanced":
            raise KeyboardInterrupt

    found = compare(X, Y, models=["linear"], cv=3, progress=stop).to_dict()
    assert [each["label"] for each in found["choices"]] == ["linear, plain"]
    assert "linear, balanced" in found["design"]["unfinished"]
    assert any(part["heading"] == "Interrupted" for part in found["trust"])
    assert "</html>" in Comparison(found).to_html()

    def at_once(share, what):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(X, Y, models=["linear"], cv=3, progress=at_once)


def test_a_quick_page_trains_on_few_rows_and_says_so(monkeypatch):
    monkeypatch.setattr(sys.modules["equipoise.report.compare"], "QUICK_ROWS", 100)
    found = compare(X, Y, models=["linear"], quick=True).to_dict()
    assert found["design"]["kind"] == "hold-out" and found["design"]["sampled"]["linear"] <= 110
    assert any("at most 1" in part["text"] and "sample" in part["text"] for part in found["trust"])


def test_choices_that_decide_alike_and_those_that_fail_are_said_to():
    rng = np.random.default_rng(0)
    y = np.repeat(["often", "seldom"], [300, 40])
    noise = rng.normal(size=(340, 2))
    found = compare(noise, y, models=["linear"], cv=3).to_dict()
    plain = found["choices"][0]
    assert any("never decides for class 'seldom'" in text for text in plain["failures"])
    # Of nothing but noise there is no answer, and the page says so.
    assert all(each["failures"] for each in found["choices"]) and found["recommendation"]["failed"]
    apart = np.where(y == "often", 0.0, 9.0)[:, None] + noise
    same = compare(apart, y, models=["linear"], cv=3).to_dict()["choices"]
    assert same[0]["standard"] == 0 and any(each["same_as"] == 0 for each in same[1:])


def test_a_class_of_which_hardly_any_row_is_right_is_a_failure():
    labels = np.repeat([0, 1, 2], [200, 200, 40])
    table = labelled_table(np.arange(440.0)[:, None], labels)
    design = Design.for_predictions(table)
    decided = labels.copy()
    decided[400:] = 1
    decided[0] = 2  # it does decide for the class, and wrongly
    (text,) = risks_of(design, decided).failures
    assert text == "it gets hardly any row of class 2 right"
    decided[400] = 2  # one row of forty
    assert risks_of(design, decided).failures == (text,)
    decided[401] = 2  # one in twenty
    assert risks_of(design, decided).failures == ()


def test_the_best_choice_that_fails_a_class_is_no_answer_and_the_best_other_is_named():
    y = np.repeat(["a", "b", "c"], [200, 200, 40])
    good = np.repeat(np.eye(3), [200, 200, 40], axis=0)
    good[401:] = [0, 1, 0]  # one row of forty
    bad = np.repeat(np.full((3, 3), 0.2) + 0.4 * np.eye(3), [200, 200, 40], axis=0)
    bad[::2] = bad[::2, [1, 2, 0]]
    found = compare_predictions(y, {"good": good, "bad": bad}, goals="balanced_accuracy").to_dict()
    taken = found["choices"][found["recommendation"]["choice"]]
    assert taken["label"].startswith("good") and found["recommendation"]["failed"]
    (said,) = found["recommendation"]["reasons"]
    assert re.search(
        "no answer: .{2}good, .* hardly any row of class 'c' right. .{2}bad, .* has not", said
    )


def test_a_class_of_which_no_row_that_can_be_judged_is_right_is_a_failure():
    labels = np.repeat([0, 1], [200, 40])
    X = np.arange(240.0)[:, None]
    X[:10] = X[10:20] = X[230:]  # ten of its rows are among those of the other class
    X[200:230] = 500.0  # and thirty are identical, which only train
    design = Design.for_table(labelled_table(X, labels), 5, seed=0)
    assert design.tested[1] == 10
    decided = np.where(design.fold < 0, -1, labels)
    assert risks_of(design, decided).failures == ()
    decided[design.judged[labels[design.judged] == 1]] = 0
    decided[20] = 1
    assert any("hardly any row of class 1" in each for each in risks_of(design, decided).failures)


def test_a_class_of_a_handful_of_rows_does_not_decide_what_all_others_get():
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "tiny"], [300, 120, 8])
    # Rows of the tiny class lie among those of the first.
    rows = rng.normal(size=(428, 2)) + np.where(labels == "b", 1.5, 0.0)[:, None]
    for goal in ("worst_class", "f1_macro"):
        found = compare(rows, labels, models=["linear"], goals=goal, cv=4)
        assert f"min_rows={FEW_ROWS}" in found.code or "RobustClassifier" not in found.code
        summary = found.to_dict()
        assert [each["deciding"] for each in summary["data"]["classes"]] == [True, True, False]
        alone = compare(rows[:420], labels[:420], models=["linear"], goals=goal, cv=4).to_dict()
        for choice, other in zip(summary["choices"], alone["choices"], strict=True):
            assert choice["made_for"] == other["made_for"]
            if choice["made_for"] not in ("plain", "balanced"):
                assert abs(choice["worst"] - other["worst"]) < 0.1


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
        model = make_pipeline(FunctionTransformer(lambda rows: rows.reshape(len(rows), -1)), model)
    found = compare(X, y, {"mine": model}, goals="worst_class", cv=3)
    assert found.to_dict()["data"]["repeated"] >= 2
    assert "130 rows, 2 classes" in found.to_html()
    namespace = {"X": X, "y": y, "models": {"mine": model}}
    exec(found.code, namespace)
    assert np.array_equal(namespace["model"].predict(X), found.fit().predict(X))
    assert found.to_frame(by="choice")["worst"].min() < 0.5
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
    assert shown[-1] == "" and len(shown) > 5
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


def test_the_bound_for_every_weighting_is_that_of_hoeffding(found):
    summary = found.to_dict()
    chosen = summary["choices"][summary["recommendation"]["choice"]]
    rows = np.array([each["tested"] for each in summary["data"]["classes"]])
    risks = np.array([each["risk"] for each in chosen["classes"]])
    bound = (risks + np.sqrt(np.log(len(rows) / 0.05) / (2 * rows))).max()
    (text,) = [part["text"] for part in summary["trust"] if "bound for" in part["heading"]]
    assert f"a risk above {100 * min(bound, 1):.1f}%" in text


# What people judge by


@pytest.fixture(scope="module")
def bundled():
    rows, y = load_thyroid(return_X_y=True, as_frame=True)
    return rows, y, compare(rows, y, models=["linear"])


def test_no_robust_row_is_worse_for_its_own_purpose_than_balanced_weights(bundled):
    summary = bundled[2].to_dict()
    assert_no_robust_row_is_worse(summary)
    # At the end of the slider the worst class errs no more often than with balanced training.
    path, choices = summary["path"], {one["made_for"]: one for one in summary["choices"]}
    assert path["worst"][-1] <= choices["balanced"]["worst_upper"]
    # Until the last level, that of the smallest class, a cap limits which errors count.
    assert path["caps_bind"] == [True] * (len(path["alpha"]) - 1) + [False]


@pytest.mark.usefixtures("few_stages")
def test_all_models_are_compared_by_default_plain_weighted_and_for_every_goal():
    found = compare(X, Y, cv=3)
    frame = found.to_frame(by="choice")
    models = ["linear", "forest", "boosting"]
    assert frame["model"].tolist() == models * 4
    assert frame["made_for"].tolist()[::3][:2] == ["plain", "balanced"]
    assert frame[["standard", "balanced", "worst"]].stack().between(0, 1).all()


def test_decisions_of_a_fold_know_nothing_of_its_labels():
    """Other labels of some rows of a fold do not move what is decided for that fold."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [120, 60, 30])
    eta = rng.dirichlet(np.ones(3), len(y)) + 0.3 * (y[:, None] == np.array(["a", "b", "c"]))
    eta /= eta.sum(axis=1, keepdims=True)
    folds = rng.permutation(len(y)) % 3
    other, own = y.copy(), np.flatnonzero(folds == 0)
    other[own] = other[rng.permutation(own)]
    tuned = [
        tune_weights(labels, eta, WorstClass(), folds=folds, random_state=0)
        for labels in (y, other)
    ]
    first, second = (np.asarray(each.fold_weights) for each in tuned)
    np.testing.assert_allclose(first[0], second[0])
    assert not np.allclose(first, second), "labels of other folds do decide"


# Objects and pages


def test_a_comparison_is_plain_data(found):
    summary = found.to_dict()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    summary["choices"].clear()
    assert found.to_dict()["choices"], "a copy, not the thing itself"
    assert found.recommended in repr(found) and "largest regret" in repr(found)


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


def test_the_data_on_the_page_are_those_of_the_comparison(hostile):
    read = Reader(hostile.to_html())
    ((_, _, text),) = [part for part in read.scripts if part[1].get("type") == "application/json"]
    assert not set("<>&") & set(text)
    path, summary = json.loads(text)["path"], hostile.to_dict()
    names = [each["name"] for each in summary["data"]["classes"]]
    assert [bar["name"] for bar in path["bars"]] == [names[c] for c in summary["path"]["classes"]]
    assert [step["standard"] for step in path["steps"]] == [
        f"{100 * risk:.1f}%" for risk in summary["path"]["standard"]
    ]


@pytest.mark.parametrize("text", [*HOSTILE, "<!--", "]]>", "\u2028", "\ud800", "\x00"])
def test_json_stays_inside_its_element_and_comes_back_whole(found, text):
    summary = found.to_dict()
    summary["data"]["classes"][0]["name"] = text
    page = Comparison(summary).to_html()
    (written,) = re.findall('<script type="application/json" id="data">(.*?)</script>', page)
    written.encode("utf-8")
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written)["path"]["bars"][0]["name"] == text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_in_sentences_are_short_and_on_one_line(name):
    text = quoted(name)
    assert len(text) <= 64 and "\n" not in text
    assert text.count("\u2068") == text.count("\u2069") == 1


def test_a_class_that_cannot_be_judged_is_said_to_be_so(hostile):
    page = hostile.to_html()
    assert "not estimable" in page
    summary = hostile.to_dict()
    lost = [each["name"] for each in summary["data"]["classes"] if not each["estimable"]]
    assert lost == ["only <b>one</b>"]
    assert "only <b>one</b>" not in set(hostile.to_frame()["class"])


def test_many_classes_make_no_huge_page():
    names = [f"class {place} {'x' * 190}" for place in range(150)]
    rng = np.random.default_rng(0)
    y = np.repeat(names, 4)
    found = compare(
        rng.normal(size=(600, 2)) + np.repeat(np.arange(150), 4)[:, None],
        y,
        models=["linear"],
        cv=2,
        goals="balanced",
    )
    page = found.to_html()
    assert len(page.encode()) < 2_000_000 and "90 others" in page
    assert len(found.to_frame()) == 300


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


def run_code(code, **given):
    ast.parse(code)
    names = dict(given)
    exec(compile(code, "refit", "exec"), names)
    return names


@pytest.mark.parametrize("as_array", [False, True])
def test_the_code_refits_the_recommended_choice_from_python(as_array):
    rows = X[["size"]].to_numpy() if as_array else X
    found = compare(rows, Y, models=["linear"], cv=3)
    model = run_code(found.code, X=rows, y=Y)["model"]
    # Rows are given as they came.
    np.testing.assert_array_equal(model.predict(rows), found.fit().predict(rows))
    assert set(model.classes_) == set(Y)


@pytest.mark.usefixtures("few_stages")
@pytest.mark.parametrize("goal", [LabelCVaR(0.3), "f1_macro", "worst_class", "balanced", None])
def test_the_code_refits_any_choice_also_with_a_class_of_one_row(goal):
    frame = pd.concat([X, X.iloc[:1].assign(size=99.0)], ignore_index=True)
    y = np.append(Y, "single")
    learners = {"boosting": learner_for(frame, "boosting", random_state=7)}
    candidates = make_candidates(learners, named_goals(goal, np.array([0.7, 0.2, 0.1])))
    code = Refit(
        frame, y, learners, ["boosting"], cv=3, seed=7,
        loading=["from equipoise.tables import learner_for"],
    )  # fmt: skip
    model = run_code(code.code(candidates[-1]), X=frame, y=y)["model"]
    again = code.fit(candidates[-1])
    assert set(model.classes_) == set(y)
    np.testing.assert_array_equal(model.predict(frame), again.predict(frame))


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
    with pytest.raises(InvalidInputError, match="At least two classes need 5 different rows"):
        compare(X, np.where(np.arange(len(X)) < 3, "few", "many"))
    with pytest.raises(InvalidInputError, match="rows and columns"):
        compare(np.arange(4.0), [0, 1, 0, 1])
    with pytest.raises(InvalidInputError, match="no column 'b'; its columns are 'a'"):
        _without_label(pd.DataFrame({"a": [1]}), "a", ["b"])


def test_all_texts_are_free_of_leftovers(found):
    page = re.sub(r"<(script|style).*?</\1>", "", found.to_html(), flags=re.S)
    assert not re.search(r"\b(nan|None|undefined|inf)\b", page)
