"""weight_tradeoff: risks and regrets by hand, Bayes rules of the synthetic model, intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from equipoise import tune_weights
from equipoise.analysis import WeightTradeoff, weight_tradeoff
from equipoise.datasets import PowerImbalance, make_power_imbalance
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.risks import class_risks

NAMES = np.array(["ant", "bee", "cow"])
WORLDS = {"standard": "standard", "balanced": "balanced", "bees": {"ant": 1, "bee": 9, "cow": 1}}


def draw(n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 3)) - [0.0, 1.0, 1.5]
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    drawn = (rng.uniform(size=(n, 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
    return NAMES[np.minimum(drawn, 2)], probabilities


Y, P = draw()


def test_risks_and_regrets_by_hand():
    found = weight_tradeoff(Y, P, WORLDS)
    assert isinstance(found, WeightTradeoff)
    assert found.fitted_for == found.evaluated_under == tuple(WORLDS)
    prior = np.array([np.mean(name == Y) for name in NAMES])
    weights = {"standard": np.ones(3), "balanced": 1 / (3 * prior), "bees": np.array([1, 9, 1])}
    for row, q in enumerate(weights.values()):
        predicted = NAMES[np.argmax(P * q, axis=1)]
        risks = np.array([np.mean(predicted[name == Y] != name) for name in NAMES])
        np.testing.assert_allclose(found.class_risks[row], risks)
        for column, judge in enumerate(weights.values()):
            mass = prior * judge / (prior @ judge)
            assert found.risks[row, column] == pytest.approx(mass @ risks)
    np.testing.assert_allclose(found.regret, found.risks - np.diag(found.risks))
    np.testing.assert_array_equal(np.diag(found.regret), 0)
    np.testing.assert_allclose(found.masses.sum(axis=1), 1)


def test_true_probabilities_are_beaten_by_nobody():
    # With the true probabilities each classifier is the best possible under its own weighting.
    model = PowerImbalance(0.9)
    X, y = model.sample(200_000, random_state=0)
    worlds = {"standard": "standard", "balanced": "balanced", "rare": (1, 30)}
    found = weight_tradeoff(y, model.predict_proba(X), worlds, class_prior=model.prior)
    for row, fitted_for in enumerate(worlds):
        s = model.bayes_threshold_x(worlds[fitted_for])
        for column, evaluated_under in enumerate(worlds):
            exact = model.weighted_risk(s, worlds[evaluated_under])
            assert found.risks[row, column] == pytest.approx(exact, abs=0.01)
            regret = exact - model.bayes_risk(worlds[evaluated_under])
            assert found.regret[row, column] == pytest.approx(regret, abs=0.01)
            assert regret >= 0


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("n", [60, 300])
def test_intervals_cover(n, confidence):
    model = PowerImbalance(0.8)
    worlds = {"standard": "standard", "balanced": "balanced"}
    risks = {name: model.bayes_class_risks(name) for name in worlds}
    cuts = {name: model.bayes_threshold_x(name) for name in worlds}
    masses = {name: model.prior * model.weights(name) for name in worlds}
    pairs = [(made, judged) for made in worlds for judged in worlds]
    covered, n_draws = np.zeros((4, 2)), 300
    for seed in range(n_draws):
        X, y = model.sample(n, random_state=seed)
        made = {name: (X[:, 0] > cut).astype(int) for name, cut in cuts.items()}
        found = weight_tradeoff(y, made, worlds, class_prior=model.prior)
        for place, (made, judged) in enumerate(pairs):
            risk, best = masses[judged] @ risks[made], masses[judged] @ risks[judged]
            covered[place] += [
                risk in found.interval(made, judged, confidence=confidence),
                risk - best in found.interval(made, judged, confidence=confidence, regret=True),
            ]
    slack = 3 * np.sqrt(confidence * (1 - confidence) / n_draws)
    assert np.all(covered / n_draws >= confidence - slack)


def test_a_risk_that_is_one_class_has_the_exact_interval():
    y = np.repeat([0, 1], [30, 20])
    wrong = np.r_[np.repeat([1, 0], [4, 26]), np.ones(20, dtype=int)]
    found = weight_tradeoff(y, {"first": wrong}, {"first": (1, 0)})
    interval = found.interval("first", "first", confidence=0.9)
    exact = binomtest(4, 30).proportion_ci(confidence_level=0.9, method="exact")
    assert interval.estimate == pytest.approx(4 / 30) and interval.confidence == 0.9
    assert (interval.lower, interval.upper) == pytest.approx((exact.low, exact.high))


def test_intervals_shrink_with_rows_and_regret_is_paired():
    small, large = (weight_tradeoff(*draw(n), WORLDS) for n in (200, 20_000))
    narrow, wide = (
        (each.upper - each.lower)
        for each in (large.interval("bees", "standard"), small.interval("bees", "standard"))
    )
    assert narrow < wide / 5
    # A classifier against itself: no row tells them apart, and little uncertainty is left.
    itself = large.interval("bees", "bees", regret=True)
    assert itself.estimate == 0 and itself.upper < narrow


@pytest.mark.parametrize("weighted", [False, True])
def test_predictions_classifiers_and_probabilities_agree(weighted):
    X, y = make_power_imbalance(600, p=0.7, random_state=0)
    names = np.array(["no", "yes"])[y]
    w = np.random.default_rng(0).uniform(0.5, 2, 600) if weighted else None
    fit = LogisticRegression().fit(X, names)
    worlds = ["standard", "balanced"]
    by_fit = weight_tradeoff(names, fit, worlds, X=X, sample_weight=w)
    by_rows = weight_tradeoff(names, fit.predict_proba(X), worlds, sample_weight=w)
    np.testing.assert_array_equal(by_fit.risks, by_rows.risks)
    prior = np.average(names == "yes", weights=w)
    cut = {"standard": 0.5, "balanced": prior}
    made = {
        name: np.array(["no", "yes"])[(fit.predict_proba(X)[:, 1] > t).astype(int)]
        for name, t in cut.items()
    }
    by_hand = weight_tradeoff(names, made, worlds, sample_weight=w)
    np.testing.assert_allclose(by_hand.risks, by_rows.risks)
    other = LogisticRegression(class_weight="balanced").fit(X, names)
    fits = {"standard": fit, "balanced": other}
    by_fits = weight_tradeoff(names, fits, worlds, X=X, sample_weight=w)
    for row, each in enumerate(fits.values()):
        risks = class_risks(names, each.predict(X), sample_weight=w)
        assert by_fits.risks[row] == pytest.approx([risks.standard(), risks.balanced()])


def test_further_classifiers_are_judged_as_well():
    made = {"standard": Y, "balanced": Y, "all ants": np.full(len(Y), "ant")}
    found = weight_tradeoff(Y, made, ["standard", "balanced"])
    assert found.fitted_for == ("standard", "balanced", "all ants")
    assert found.risks.shape == found.regret.shape == (3, 2)
    assert found.regret[2].tolist() == found.risks[2].tolist()
    assert found.risks[2, 1] == pytest.approx(2 / 3)


def test_a_prior_given_is_the_prior_used():
    prior = {"cow": 0.2, "ant": 0.5, "bee": 0.3}
    found = weight_tradeoff(Y, P, ["standard", "balanced"], class_prior=prior)
    np.testing.assert_allclose(found.masses[0], [0.5, 0.3, 0.2])
    np.testing.assert_allclose(found.risks[:, 0], found.class_risks @ [0.5, 0.3, 0.2])
    np.testing.assert_allclose(found.masses[1], 1 / 3)


def test_weights_are_rows_and_scale_does_not_matter():
    counts = np.random.default_rng(1).integers(1, 4, len(Y))
    weighted = weight_tradeoff(Y, P, WORLDS, sample_weight=counts)
    repeated = weight_tradeoff(np.repeat(Y, counts), np.repeat(P, counts, axis=0), WORLDS)
    np.testing.assert_allclose(weighted.risks, repeated.risks)
    doubled = weight_tradeoff(Y, P, {"bees": {"ant": 2, "bee": 18, "cow": 2}})
    assert doubled.risks[0, 0] == pytest.approx(weight_tradeoff(Y, P, WORLDS).risks[2, 2])


def test_columns_frame_and_text():
    found = weight_tradeoff(Y, P, WORLDS)
    columns = found.to_dict()
    assert list(columns)[:2] == ["fitted_for", "evaluated_under"] and len(columns["risk"]) == 9
    frame = found.to_frame(confidence=0.9)
    assert isinstance(frame, pd.DataFrame) and list(frame) == list(columns)
    table = frame.pivot(index="fitted_for", columns="evaluated_under", values="risk")
    assert table.loc["bees", "standard"] == pytest.approx(found.risks[2, 0])
    assert np.all(frame.risk_lower <= frame.risk) and np.all(frame.risk <= frame.risk_upper)
    assert np.all(frame.regret_lower <= frame.regret)
    lines = repr(found).splitlines()
    assert lines[0] == "risk (regret)" and "under bees" in lines[1] and len(lines) == 5
    assert lines[2].startswith("standard") and "(+0)" in lines[2]


def test_a_list_is_named_by_what_it_holds():
    found = weight_tradeoff(Y, P, ["standard", (1, 2, 3), {"ant": 1, "bee": 1, "cow": 2}])
    assert found.evaluated_under == ("standard", "q2", "q3")


BAD = {
    "shape": (lambda: weight_tradeoff(Y, P[:, :2] / P[:, :2].sum(axis=1)[:, None]), "column for"),
    "rows": (lambda: weight_tradeoff(Y, P[:10]), r"got shape \(10, 3\)"),
    "sums": (lambda: weight_tradeoff(Y, 0.9 * P), "sum"),
    "nan": (lambda: weight_tradeoff(Y, np.full_like(P, np.nan)), "finite"),
    "no rows": (lambda: weight_tradeoff(Y, LogisticRegression()), "X must be given"),
    "missing": (lambda: weight_tradeoff(Y, {"standard": Y}), r"\['balanced'\] has none"),
    "none": (lambda: weight_tradeoff(Y, P, []), "at least one weighting"),
    "a number": (lambda: weight_tradeoff(Y, P, 3), "at least one weighting"),
    "twice": (lambda: weight_tradeoff(Y, P, ["standard", "standard"]), "distinct"),
    "word": (lambda: weight_tradeoff(Y, P, ["even"]), "even"),
    "class": (lambda: weight_tradeoff(Y, P, [{"ant": 1, "elk": 2}]), "'elk'"),
    "weights": (lambda: weight_tradeoff(Y, P, sample_weight=[1.0]), "one value for each"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence(case):
    call, match = BAD[case]
    with pytest.raises(InvalidInputError, match=match):
        call()


def test_a_class_without_rows_is_refused():
    kept = Y != "cow"
    with pytest.raises(ClassMismatchError, match=r"\['cow'\] has none"):
        weight_tradeoff(Y[kept], P[kept], classes=NAMES)


def test_unknown_names_are_refused():
    found = weight_tradeoff(Y, P, WORLDS)
    with pytest.raises(InvalidParameterError, match=r"fitted_for must be one of .* got 'robust'"):
        found.interval("robust", "standard")
    with pytest.raises(InvalidParameterError, match="evaluated_under must be one of"):
        found.interval("standard", "robust", regret=True)
    with pytest.raises(InvalidParameterError, match="confidence must be a number in"):
        found.interval("standard", "standard", confidence=1.5)


@pytest.mark.parametrize(("off", "accepted"), [(9e-5, True), (2e-4, False)])
def test_probabilities_are_read_as_tune_weights_reads_them(off, accepted):
    probabilities = P * (1 + off)
    for call in (lambda p: weight_tradeoff(Y, p), lambda p: tune_weights(Y, p, pooling=0)):
        if accepted:
            call(probabilities)
        else:
            with pytest.raises(InvalidInputError, match="probabilities must sum to 1 in every row"):
                call(probabilities)
