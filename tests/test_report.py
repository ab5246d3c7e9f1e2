"""The report: folds that leak nothing, numbers of the library, and pages that are only text."""

import ast
import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

from sklearn.model_selection import StratifiedKFold  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

import equipoise.report.design as design_module  # noqa: E402
from equipoise import (  # noqa: E402
    FixedWeights,
    LabelCVaR,
    RobustLogisticRegression,
    WorstClass,
    class_risks,
    tune_weights,
)
from equipoise.datasets import load_thyroid  # noqa: E402
from equipoise.exceptions import (  # noqa: E402
    InvalidInputError,
    InvalidParameterError,
    MissingExtraError,
)
from equipoise.goals import as_goal  # noqa: E402
from equipoise.report import Comparison, compare, compare_file  # noqa: E402
from equipoise.report.design import Candidate, Design, make_weightings  # noqa: E402
from equipoise.report.findings import (  # noqa: E402  # noqa: E402
    SAME,
    decisions,
    held_out_risks,
    recommend,
    regrets_of,
    resampled_costs,
    stratified_sample,
)
from equipoise.report.summarize import refit_code  # noqa: E402
from equipoise.risks.intervals import counted_intervals  # noqa: E402
from equipoise.sets import alpha_grid, as_uncertainty, middle_alpha  # noqa: E402
from equipoise.tables import labelled_table, preprocessor  # noqa: E402
from equipoise.tables.labelled import _without_label  # noqa: E402
from equipoise.text import quoted  # noqa: E402
from report_tables import (  # noqa: E402
    HOSTILE,
    assert_no_robust_row_is_worse,
    hostile_table,
    mixed_table,
)

X, Y = mixed_table()


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
    for _, train, test in design.parts():
        assert len(np.intersect1d(train, test)) == 0
        assert not set(table.groups[train]) & set(table.groups[test])
        assert set(table.labels[train]) == set(range(len(table.classes)))
        seen[test] += 1
    assert np.all(seen == 1) and np.array_equal(np.flatnonzero(seen), design.judged)


def test_classes_are_spread_evenly_over_the_folds():
    y = np.repeat([0, 1, 2], [61, 27, 12])
    table = labelled_table(np.arange(100.0)[:, None], y)
    design = Design.for_table(table, 5, 0)
    counts = np.array([np.bincount(y[test], minlength=3) for _, _, test in design.parts()])
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
    monkeypatch.setattr(design_module, "MANY_ROWS", 200)
    table = labelled_table(X, Y)
    design = Design.for_table(table, 5, 0)
    assert design.n_folds == 1
    ((_, train, predicted),) = design.parts()
    assert sorted([*train, *predicted]) == list(range(len(Y)))
    assert sorted([*design.judged, *design.tuned_on]) == predicted.tolist()
    sides = [set(table.groups[rows]) for rows in (train, design.judged, design.tuned_on)]
    assert sum(map(len, sides)) == len(set.union(*sides)), "repeated rows are on one side"
    for rows in (design.judged, design.tuned_on):
        shares = np.bincount(table.labels[rows]) / table.counts
        assert np.all(shares > 0.1) and np.all(shares < 0.3)


def test_a_class_of_few_rows_in_a_large_table_is_not_lost_to_training(monkeypatch):
    monkeypatch.setattr(design_module, "MANY_ROWS", 50)
    y = np.repeat(["common", "less common", "rare", "twins"], [100, 50, 2, 5])
    frame = pd.DataFrame({"x": [*range(152), *[200] * 2, *[201] * 2, 202]})
    for seed in range(20):
        design = Design.for_table(labelled_table(frame, y), 5, seed)
        ((_, train, _),) = design.parts()
        assert set(y[train]) == set(y)
        assert set(y[design.judged]) >= {"common", "less common"} <= set(y[design.tuned_on])


@pytest.mark.parametrize("models", ["linear", "boosting"])
def test_rows_of_a_large_table_that_decisions_are_tuned_on_neither_train_nor_are_judged(
    models, monkeypatch
):
    monkeypatch.setattr(design_module, "MANY_ROWS", 200)
    table = labelled_table(X, Y)
    design = Design.for_table(table, 5, 0)
    first = compare(X, Y, models=models).to_dict()
    assert first["design"]["kind"] == "hold-out"
    # Another label of a row that is tuned on moves tuned decisions, and no others.
    own = design.tuned_on[table.labels[design.tuned_on] == 0]
    other = np.array(Y)
    other[own[::2]] = table.classes[1]
    # Which rows are held out depends on the labels.
    monkeypatch.setattr(design_module, "_held_out", lambda table, seed: design.fold)
    second = compare(X, other, models=models).to_dict()
    for one, two in zip(first["choices"], second["choices"], strict=True):
        is_known = one["weighting"] in ("standard", "balanced")
        if is_known and models == "linear":
            assert one["classes"] == two["classes"]
    assert first["choices"] != second["choices"], "decisions are tuned on these rows"


def test_a_sample_takes_the_same_share_of_every_class():
    labels = np.repeat([0, 1, 2], [8000, 1999, 1])
    rows = np.flatnonzero(np.arange(10_000) % 2 == 1)
    sample = stratified_sample(labels, rows, 1000, 0)
    assert np.all(np.isin(sample, rows)) and len(np.unique(sample)) == len(sample)
    assert np.bincount(labels[sample]).tolist() == [800, 200, 1]
    assert stratified_sample(labels, rows, 10_000, 0) is rows


# Numbers


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
def test_risks_are_those_of_fits_made_by_hand():
    table = labelled_table(X, Y)
    design = Design.for_table(table, 3, 0)
    # A level that is none of the path's, whose fits begin at those of the level before.
    sets = {"balanced": "balanced", "CVaR 0.2": LabelCVaR(0.2)}
    found = compare(X, Y, models=["linear"], cv=3, uncertainties=sets)
    for weighting, uncertainty in sets.items():
        predicted = np.empty(len(Y), dtype=object)
        probabilities = np.empty((len(Y), 3))
        for _, train, test in design.parts():
            model = make_pipeline(
                preprocessor(table.X), RobustLogisticRegression(uncertainty, tol=1e-4)
            ).fit(table.X.iloc[train], Y[train])
            predicted[test] = model.predict(table.X.iloc[test])
            probabilities[test] = model.predict_proba(table.X.iloc[test])
        if weighting != "balanced":
            tuned = tune_weights(Y, probabilities, uncertainty, folds=design.fold, random_state=0)
            weights = np.asarray(tuned.fold_weights)[tuned.folds]
            predicted = table.classes[np.argmax(probabilities * weights, axis=1)]
        # Rows count as fewer: a row that is judged for every two of the training, times three.
        sums = design.error_sums(table.classes.searchsorted(predicted.astype(str)))
        expected = counted_intervals(sums, table.classes, refit=3 / 2)
        assert expected.approximate and expected.risks == class_risks(Y, predicted).risks
        frame = found.to_frame().set_index("weighting").loc[weighting].set_index("class")
        for name, interval in expected.items():
            line = frame.loc[name]
            assert line["risk"] == pytest.approx(interval.estimate)
            assert (line["lower"], line["upper"]) == pytest.approx((interval.lower, interval.upper))
            assert line["rows"] == np.count_nonzero(name == Y)
        risks = class_risks(Y, predicted)
        summary = found.to_frame(by="choice").set_index("weighting").loc[weighting]
        assert summary["standard"] == pytest.approx(risks.standard())
        assert summary["balanced"] == pytest.approx(risks.balanced())
        assert summary["worst"] == pytest.approx(risks.worst())
        assert summary["risk[CVaR 0.2]"] == pytest.approx(risks.robust(LabelCVaR(0.2)))


def test_the_path_begins_at_standard_and_passes_through_the_level_compared(found):
    summary = found.to_dict()
    path, choices = summary["path"], {one["weighting"]: one for one in summary["choices"]}
    assert path["alpha"][0] == 1.0 and sorted(path["alpha"], reverse=True) == path["alpha"]
    for weighting, alpha in (("standard", 1.0), ("CVaR 0.1", 0.1)):
        at = path["alpha"].index(alpha)
        expected = [each["risk"] for each in choices[weighting]["classes"]]
        # Two solves to the same tolerance may decide a row on the border differently.
        np.testing.assert_allclose(path["risk"][at], expected, atol=0.05)
        assert path["standard"][at] == pytest.approx(choices[weighting]["standard"], abs=0.02)
    for at, row in enumerate(path["risk"]):
        assert path["worst"][at] == max(row)
        assert row[path["worst_class"][at]] == max(row)
    weights = np.array(path["weight"]) @ [each["share"] for each in summary["data"]["classes"]]
    np.testing.assert_allclose(weights, 1, atol=0.02)


def test_the_recommended_choice_has_the_smallest_largest_regret(found):
    frame = found.to_frame(by="choice")
    risks = frame.filter(like="risk[").to_numpy()
    largest = (risks - risks.min(axis=0)).max(axis=1)
    np.testing.assert_allclose(frame["largest_regret"], largest)
    good = np.flatnonzero(largest <= largest.min() + SAME)
    assert frame["recommended"].tolist() == [place == good[0] for place in range(len(frame))]


def test_recommendations_by_brute_force():
    rng = np.random.default_rng(0)
    costs = rng.random((6, 4))
    noise = costs + 0.2 * rng.normal(size=(50, 6, 4))
    found = recommend(costs, noise)
    regret = [max(costs[i, j] - costs[:, j].min() for j in range(4)) for i in range(6)]
    np.testing.assert_allclose(found.largest_regrets, regret)
    assert found.place == int(np.argmin(regret)) and found.plain == int(costs[:, 0].argmin())
    again = [recommend(each, each[None]).place for each in noise]
    assert found.stability == pytest.approx(np.mean(np.array(again) == found.place))
    assert set(found.rivals) == set(again) - {found.place}
    certain = recommend(costs, costs[None])
    assert certain.stability == 1 and certain.rivals == ()


def test_the_plainest_of_equally_good_choices_is_taken():
    costs = np.array([[0.1, 0.303], [0.1, 0.3], [0.1, 0.3]])
    assert recommend(costs, costs[None]).place == 0
    costs[0, 1] = 0.31
    assert recommend(costs, costs[None]).place == 1


def test_resampled_costs_are_spread_around_the_costs():
    table = labelled_table(X, Y)
    design = Design.for_table(table, 3, 0)
    rng = np.random.default_rng(0)
    wrong = [rng.random(len(Y)) < rate for rate in (0.1, 0.4)]
    predicted = [np.where(bad, (table.labels + 1) % 3, table.labels) for bad in wrong]
    weightings = make_weightings(None, table.prior)
    judged = [held_out_risks(design, each).risks for each in predicted]
    costs = np.array([[risks.robust(q) for q in weightings.values()] for risks in judged])
    draws = resampled_costs(design, predicted, weightings, times=400)
    assert draws.shape == (400, 2, 4)
    # Standard and balanced risks are linear in the class risks: the mean is exact.
    error = draws[:, :, :2].std(axis=0) / np.sqrt(400)
    np.testing.assert_array_less(np.abs(draws[:, :, :2].mean(axis=0) - costs[:, :2]), 5 * error)
    np.testing.assert_allclose(regrets_of(draws).min(axis=1), 0)
    n = table.counts
    risks = np.array([np.bincount(table.labels, weights=bad) / n for bad in wrong])
    expected = np.sqrt((risks * (1 - risks) / n) @ table.prior**2)
    np.testing.assert_allclose(draws[:, :, 0].std(axis=0), expected, rtol=0.2)


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
    found = held_out_risks(design, predicted)
    expected = np.average(predicted != table.labels, weights=weights)
    assert found.risks.standard() == pytest.approx(expected)
    assert found.intervals.approximate
    draws = resampled_costs(design, [predicted], make_weightings(None, table.prior), times=400)
    error = draws[:, 0, 0].std() / 20
    assert abs(draws[:, 0, 0].mean() - expected) < 5 * error


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
    found = held_out_risks(design, predicted)
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
        assert grid[-1] == pytest.approx(np.clip(min(prior), 0.01, 0.5))
        # The caps of the level compared bind, unless there is nothing between the two ends.
        assert middle == 0.1 or middle > min(prior)
    assert middle_alpha(np.array([0.98, 0.02])) == 0.1


def test_own_sets_of_weightings_are_compared_beside_standard():
    own = {"five times": FixedWeights({"common": 1, "less common": 1, "rare": 5})}
    found = compare(X, Y, models="linear", cv=3, uncertainties=own)
    frame = found.to_frame(by="choice")
    assert frame["weighting"].tolist() == ["standard", "five times"]
    assert "risk[five times]" in frame
    assert "FixedWeights" in found.to_dict()["choices"][1]["uncertainty"]


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
    # The slider, too: at the level of a row it says what the row says, and at its end the worst
    # class errs no more often than under balanced weights.
    path, choices = summary["path"], {one["weighting"]: one for one in summary["choices"]}
    assert path["tuned"]
    at = path["alpha"].index(0.1)
    assert path["risk"][at] == [each["risk"] for each in choices["CVaR 0.1"]["classes"]]
    assert path["worst"][-1] <= choices["balanced"]["worst_upper"]
    # Until the last level, that of the smallest class, a cap limits which errors count.
    assert path["caps_bind"] == [True] * (len(path["alpha"]) - 1) + [False]


def test_a_page_of_many_classes_says_that_its_slider_is_not_tuned(found):
    y = np.repeat([f"class {place}" for place in range(11)], 6)
    rows = np.random.default_rng(0).normal(size=(66, 2)) + np.repeat(np.arange(11), 6)[:, None]
    many = compare(rows, y, models="linear", cv=3, uncertainties={"balanced": "balanced"})
    assert not many.to_dict()["path"]["tuned"] and "the largest probability decides" in (
        many.to_html()
    )
    assert found.to_dict()["path"]["tuned"] and "its decisions tuned" in found.to_html()


def test_rows_too_few_to_tune_on_are_decided_as_they_are():
    rows, y = np.arange(4.0)[:, None], ["a", "a", "b", "b"]
    found = compare(rows, y, cv=2, uncertainties={"any": WorstClass()}).to_dict()
    (text,) = [part["text"] for part in found["trust"] if part["heading"] == "The decisions"]
    assert "too few to tune" in text and not found["path"]["tuned"]


# Boosting


def test_boosting_is_judged_with_decisions_tuned_on_other_folds():
    pytest.importorskip("equipoise.estimators.plug_in")
    found = compare(X, Y, cv=3)
    frame = found.to_frame(by="choice")
    assert frame["model"].tolist() == ["linear"] * 4 + ["boosting"] * 4
    assert frame[["standard", "balanced", "worst"]].stack().between(0, 1).all()


@pytest.mark.parametrize("uncertainty", [WorstClass(), FixedWeights("balanced")])
def test_decisions_of_a_fold_know_nothing_of_its_labels(uncertainty):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], [120, 60, 30])
    folds = rng.permutation(len(y)) % 3
    other = y.copy()
    own = np.flatnonzero(folds == 0)
    other[own] = other[rng.permutation(own)]
    eta = rng.dirichlet(np.ones(3), len(y)) + 0.3 * (y[:, None] == np.array(["a", "b", "c"]))
    eta /= eta.sum(axis=1, keepdims=True)
    before, after = (
        decisions(Design(labelled_table(eta, labels), folds, 3), uncertainty, eta)
        for labels in (y, other)
    )
    np.testing.assert_array_equal(before[own], after[own])
    if isinstance(uncertainty, WorstClass):
        assert np.any(before != after), "labels of other folds do decide"


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
        uncertainties={"balanced": "balanced"},
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
    names = run_code(found.code, X=rows, y=Y)
    model = names["model"]
    assert set(model.classes_) == set(Y) and len(model.predict(names["X"])) == len(Y)
    chosen = found.to_dict()["choices"][found.to_dict()["recommendation"]["choice"]]
    wanted = chosen["uncertainty"], repr(chosen["weighting"])
    if chosen["weighting"] in ("standard", "balanced"):
        assert repr(model[-1].uncertainty) in wanted
    else:
        assert repr(model[-1].goal) in wanted and repr(model[-1].estimator.uncertainty) in wanted


@pytest.mark.parametrize("seed", [0, 3])
def test_the_code_gives_the_rule_of_every_linear_choice(bundled, seed):
    rows, y, found = bundled
    loading = ["from equipoise.tables import columns_of, conform, model_for"]
    loading += ["X = conform(X, columns_of(X))"]
    weightings = make_weightings(None, labelled_table(rows, y).prior)
    for choice in found.to_dict()["choices"]:
        uncertainty = weightings[choice["weighting"]]
        candidate = Candidate("linear", choice["weighting"], uncertainty)
        model = run_code(refit_code(candidate, loading, 100, seed), X=rows, y=y)["model"][-1]
        if candidate.is_known:
            assert repr(as_uncertainty(model.uncertainty)) == repr(uncertainty)
            continue
        assert repr(model.goal) == repr(model.estimator.uncertainty) == repr(uncertainty)
        assert model.random_state == seed
        # What the model knows of its errors is what the page says of them, up to noise.
        for label, interval in enumerate(model.class_risk_intervals_.values()):
            own = choice["classes"][label]
            assert own["lower"] <= interval.upper and interval.lower <= own["upper"]


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


@pytest.mark.parametrize(
    ("uncertainty", "weighting"),
    [(FixedWeights("balanced"), "balanced"), (LabelCVaR(alpha=0.5), "CVaR 0.5")],
)
def test_the_code_refits_boosting_also_with_a_class_of_one_row(uncertainty, weighting):
    frame = pd.concat([X, X.iloc[:1].assign(size=99.0)], ignore_index=True)
    y = np.append(Y, "single")
    loading = ["from equipoise.tables import columns_of, conform, model_for"]
    loading += ["X = conform(X, columns_of(X))"]
    code = refit_code(Candidate("boosting", weighting, uncertainty), loading, 1, 7)
    fitted = run_code(code, X=frame, y=y)["model"][-1]
    assert set(fitted.classes_) == set(y) and fitted.estimator_.random_state == 7
    assert repr(as_goal(fitted.goal)) == repr(as_goal(uncertainty))
    assert fitted.estimator_.early_stopping is False


BAD = {
    "no folds": ({"cv": 1}, "cv must be an integer of at least 2"),
    "no models": ({"models": []}, "models must be some of"),
    "unknown model": ({"models": ["forest"]}, r"models must be some of .*\['forest'\]"),
    "no sets": ({"uncertainties": {}}, "at least one uncertainty set"),
    "not a set": ({"uncertainties": {"a": 3}}, "uncertainty must be"),
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
