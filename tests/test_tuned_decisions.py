"""TunedDecisionClassifier and tune_weights: decisions, goals and reports."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    GroupKFold,
    PredefinedSplit,
    cross_val_predict,
)

from equipoise import (
    CostMatrix,
    FixedWeights,
    LabelCVaR,
    PriorBall,
    PriorBox,
    RecallFloors,
    WorstClass,
    class_risk_intervals,
)
from equipoise.decisions import LabelledRows, Splitting, split
from equipoise.estimators import TunedDecisionClassifier, TunedWeights, tune_weights
from equipoise.exceptions import SeenRowsWarning
from equipoise.goals import SetGoal
from equipoise.weights.by_class import ByClass

NAMES = np.array(["common", "middle", "rare"])
BASE = LogisticRegression()


def draw(k=3, n=400, seed=0):
    """Overlapping Gaussian classes of unequal size, by name."""
    rng = np.random.default_rng(seed)
    prior = np.array([0.7, 0.2, 0.1])[:k] / np.array([0.7, 0.2, 0.1])[:k].sum()
    y = np.repeat(np.arange(k), np.round(n * prior).astype(int))
    X = rng.normal(size=(len(y), 3)) + np.eye(3)[y] * 1.3
    order = rng.permutation(len(y))
    return X[order], NAMES[y[order]]


def recalls(y, predicted):
    return np.array([np.mean(predicted[y == name] == name) for name in np.unique(y)])


GOALS = {
    "default": {},
    "weights": {"goal": FixedWeights({"common": 1, "middle": 3, "rare": 9})},
    "worst class": {"goal": WorstClass(), "pooling": 0.5},
    "metric": {"goal": "f1_macro"},
    "floors": {"goal": RecallFloors({"rare": 0.5})},
    "hold-out": {"goal": LabelCVaR(0.5), "cv": 0.4},
}
BY_NAME = ("weights", "floors")
each_goal = pytest.mark.parametrize("case", GOALS)


@cache
def fitted(case, k=3):
    """A fit for a goal; with two classes, what was asked of the last is asked of the second."""
    settings = clone(GOALS[case], safe=False)
    for name, value in settings["goal"].get_params().items() if case in BY_NAME else ():
        if k == 2 and isinstance(value, dict):
            kept = {NAMES[max(0, i - 1)]: v for i, v in enumerate(value.values(), 3 - len(value))}
            settings["goal"].set_params(**{name: kept})
    X, y = draw(k)
    return TunedDecisionClassifier(BASE, **settings).fit(X, y), X, y


# Decisions


@each_goal
@pytest.mark.parametrize("k", [2, 3])
def test_the_largest_weighted_probability_decides(case, k):
    clf, X, _ = fitted(case, k)
    weighted = clf.predict_proba(X) * np.asarray(clf.weights_)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[weighted.argmax(axis=1)])
    scores = clf.decision_function(X)
    best = (scores > 0).astype(int) if k == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[best])


@each_goal
def test_two_classes_have_a_threshold(case):
    clf, X, _ = fitted(case, 2)
    eta = clf.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(clf.predict(X) == "middle", eta > clf.threshold_)
    w0, w1 = np.asarray(clf.weights_)
    assert clf.threshold_ == pytest.approx(w0 / (w0 + w1), rel=1e-12)
    assert not hasattr(fitted(case, 3)[0], "threshold_")


@each_goal
def test_weights_average_to_one_over_the_rows(case):
    clf, _, y = fitted(case)
    assert np.mean([clf.weights_[label] for label in y]) == pytest.approx(1, rel=1e-12)
    assert isinstance(clf.weights_, ByClass) and list(clf.weights_) == NAMES.tolist()


@each_goal
def test_probabilities_are_those_of_the_base_estimator(case):
    clf, X, y = fitted(case)
    np.testing.assert_array_equal(clf.predict_proba(X), clone(BASE).fit(X, y).predict_proba(X))


@each_goal
def test_the_same_input_gives_the_same_bits(case):
    clf, X, y = fitted(case)
    again = clone(clf).fit(X.copy(), y)
    assert clf.weights_ == again.weights_
    if case != "weights":
        np.testing.assert_array_equal(clf.fold_weights_, again.fold_weights_)
        assert clf.class_risks_ == again.class_risks_


@pytest.mark.parametrize("recipe", [PriorBall(0.1), PriorBox(0.05, 0.9), LabelCVaR(1.0)], ids=str)
def test_any_set_of_weightings_will_do(recipe):
    X, y = draw(2)
    clf = TunedDecisionClassifier(BASE, goal=recipe).fit(X, y)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    masses = recipe.resolve(shares)
    assert clf.robust_risk_ == pytest.approx(masses.support(np.asarray(clf.class_risks_)))


# Known weights and costs


def test_standard_weights_are_the_plain_classifier():
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal="standard").fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), clone(BASE).fit(X, y).predict(X))


@pytest.mark.parametrize(
    "goal",
    [
        FixedWeights({"rare": 8, "common": 2, "middle": 4}),
        FixedWeights([1, 2, 4]),
        FixedWeights(np.array([3.0, 6.0, 12.0])),
        SetGoal(FixedWeights({"common": 1, "middle": 2, "rare": 4})),
        CostMatrix([[0, 1, 1], [2, 0, 2], [4, 4, 0]]),
        CostMatrix(
            {
                "common": {"middle": 1, "rare": 1},
                "middle": {"common": 2, "rare": 2},
                "rare": {"common": 4, "middle": 4, "rare": 0},
            }
        ),
    ],
    ids=["dict", "list", "array", "recipe", "costs", "costs by name"],
)
def test_known_weights_can_be_given_in_many_ways(goal):
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal).fit(X, y)
    ratios = np.asarray(clf.weights_) / clf.weights_["common"]
    np.testing.assert_allclose(ratios, [1, 2, 4], rtol=1e-12)
    assert not hasattr(clf, "class_risks_") and not hasattr(clf, "costs_")


def test_balanced_weights_give_every_class_the_same_mass():
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal="balanced").fit(X, y)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    np.testing.assert_allclose(np.asarray(clf.weights_) * shares, 1 / 3, rtol=1e-12)


def test_costs_are_decided_by_the_least_expected_cost():
    X, y = draw()
    costs = np.array([[-1.0, 2, 3], [1, 0, 7], [9, 4, -2]])
    clf = TunedDecisionClassifier(BASE, CostMatrix(costs)).fit(X, y)
    expected = [
        [sum(eta[i] * costs[i, j] for i in range(3)) for j in range(3)]
        for eta in clone(BASE).fit(X, y).predict_proba(X)
    ]
    np.testing.assert_array_equal(clf.predict(X), NAMES[np.argmin(expected, axis=1)])
    best = clf.decision_function(X).argmax(axis=1)
    np.testing.assert_array_equal(clf.predict(X), NAMES[best])
    assert not hasattr(clf, "weights_") and clf.costs_.shape == (3, 3)
    # What is paid whatever is decided does not count.
    shifted = TunedDecisionClassifier(
        BASE, CostMatrix(costs + np.array([[5.0], [-3.0], [0.0]]))
    ).fit(X, y)
    np.testing.assert_allclose(shifted.costs_, clf.costs_, atol=1e-12)


def test_costs_of_two_classes_are_a_threshold():
    X, y = draw(2)
    clf = TunedDecisionClassifier(BASE, CostMatrix([[-1, 4], [10, 2]])).fit(X, y)
    assert clf.threshold_ == pytest.approx(5 / (5 + 8), rel=1e-12)


def test_a_class_prior_puts_the_probabilities_on_another_scale():
    X, y = draw()
    prior = {"common": 0.2, "middle": 0.2, "rare": 0.6}
    clf = TunedDecisionClassifier(BASE, goal="standard", class_prior=prior).fit(X, y)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    odds = clone(BASE).fit(X, y).predict_proba(X) * [0.2, 0.2, 0.6] / shares
    odds /= odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), odds, rtol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), NAMES[odds.argmax(axis=1)])
    goal = CostMatrix([[0, 1, 2], [1, 0, 2], [9, 3, 0]])
    costs = TunedDecisionClassifier(BASE, goal, class_prior=prior)
    expected = odds @ np.array(goal.costs)
    np.testing.assert_array_equal(costs.fit(X, y).predict(X), NAMES[expected.argmin(axis=1)])


# Tuned weights


def folds(X, y, count=5):
    """The folds that a number of them stands for; tests/test_folds.py says which they are."""
    classes, labels = np.unique(y, return_inverse=True)
    return split(LabelledRows(X, y, labels, classes, np.ones(len(y))), Splitting(count)).parts


def out_of_fold(X, y):
    return cross_val_predict(BASE, X, y, cv=folds(X, y), method="predict_proba")


def thresholds(eta):
    """A threshold between any two values, and one on either side."""
    values = np.unique(eta)
    return np.concatenate([[values[0] / 2], (values[1:] + values[:-1]) / 2, [values[-1] / 2 + 0.5]])


@pytest.mark.parametrize("goal", ["worst_class", "f1"])
def test_the_value_is_about_as_good_as_any_threshold_allows(goal):
    """On the rows tuned on, and on new ones compared with the threshold that is the best there."""
    X, y = draw(2, n=4000)
    clf = TunedDecisionClassifier(BASE, goal, pooling=0).fit(X, y)
    fresh, labels = draw(2, n=20_000, seed=1)
    known, new = y == "middle", labels == "middle"
    given = (out_of_fold(X, y)[:, 1], known, 0.03), (clf.predict_proba(fresh)[:, 1], new, 0.02)
    for eta, positive, loss in given:
        score = f1_score if goal == "f1" else lambda y, predicted: recalls(y, predicted).min()
        values = [
            score(positive, eta > t) for t in np.quantile(eta, np.linspace(0.005, 0.995, 200))
        ]
        assert score(positive, eta > clf.threshold_) > max(values) - loss


def test_floors_are_kept_by_the_threshold_nearest_to_a_half():
    X, y = draw(2)
    clf = TunedDecisionClassifier(BASE, RecallFloors({"middle": 0.85})).fit(X, y)
    eta, positive = out_of_fold(X, y)[:, 1], y == "middle"
    assert recalls(positive, eta > clf.threshold_)[1] >= 0.85
    nearer = [t for t in thresholds(eta) if clf.threshold_ < t < 0.5]
    found = [recalls(positive, eta > t)[1] for t in nearer]
    assert len(nearer) > 20 and max(found) < 0.85


def test_without_a_goal_it_is_label_cvar_at_a_tenth():
    default, X, y = fitted("default")
    explicit = TunedDecisionClassifier(BASE, goal=LabelCVaR(0.1)).fit(X, y)
    np.testing.assert_array_equal(default.fold_weights_, explicit.fold_weights_)
    assert default.weights_ == explicit.weights_


def test_a_held_out_share_is_trained_on_only_by_the_last_fit():
    X, y = draw()
    kept = TunedDecisionClassifier(BASE, goal="accuracy", cv=0.5, refit=False).fit(X, y)
    refitted = TunedDecisionClassifier(BASE, goal="accuracy", cv=0.5).fit(X, y)
    full = clone(BASE).fit(X, y)
    np.testing.assert_array_equal(refitted.estimator_.coef_, full.coef_)
    assert not np.allclose(kept.estimator_.coef_, full.coef_)
    # Both were tuned alike, with the model that has not seen the held-out rows.
    assert kept.weights_ == refitted.weights_ and kept.class_risks_ == refitted.class_risks_
    other = TunedDecisionClassifier(BASE, goal="accuracy", cv=0.5, random_state=1).fit(X, y)
    assert other.class_risks_ != refitted.class_risks_


def test_a_fitted_estimator_is_used_as_it_is():
    X, y = draw()
    fresh, labels = draw(seed=1)
    fitted = clone(BASE).fit(X, y)
    before = fitted.coef_.copy()
    prefit = TunedDecisionClassifier(fitted, goal="f1_macro", cv="prefit").fit(fresh, labels)
    frozen = TunedDecisionClassifier(FrozenEstimator(fitted), goal="f1_macro").fit(fresh, labels)
    tuned = tune_weights(labels, fitted.predict_proba(fresh), goal="f1_macro")
    np.testing.assert_array_equal(fitted.coef_, before)
    for found in (frozen.weights_, tuned.weights):
        assert found == prefit.weights_
    assert frozen.class_risks_ == prefit.class_risks_ == tuned.class_risks
    assert frozen.metric_value_ == tuned.metric_value
    np.testing.assert_array_equal(tuned.decide(fitted.predict_proba(X)), prefit.predict(X))


def test_known_weights_of_a_fitted_estimator_are_judged():
    X, y = draw()
    fresh, labels = draw(seed=1)
    fitted = FrozenEstimator(clone(BASE).fit(X, y))
    for goal in ("balanced", CostMatrix([[0, 1, 2], [1, 0, 2], [9, 3, 0]])):
        clf = TunedDecisionClassifier(fitted, goal).fit(fresh, labels)
        expected = class_risk_intervals(labels, clf.predict(fresh))
        assert repr(clf.class_risk_intervals_) == repr(expected)


# What is reported


def test_risks_come_from_weights_that_were_tuned_without_the_rows():
    X, y = draw(2)
    clf = TunedDecisionClassifier(BASE, goal="worst_class").fit(X, y)
    eta, decided = out_of_fold(X, y)[:, 1], np.empty(len(y), dtype=bool)
    for fold, (_, test) in enumerate(folds(X, y)):
        w0, w1 = clf.fold_weights_[fold]
        own = w0 / (w0 + w1)
        decided[test] = eta[test] > own
    expected = class_risk_intervals(y, np.where(decided, "middle", "common"))
    found = clf.class_risk_intervals_
    assert found.approximate and all(found.lower[c] <= expected.lower[c] for c in expected)
    assert all(found.upper[c] >= expected.upper[c] for c in expected)
    assert clf.class_risks_ == expected.risks
    assert clf.robust_risk_ == pytest.approx(expected.risks.max(), rel=1e-12)


@pytest.mark.parametrize("pooling", [0, 2.0])
def test_no_weights_help_against_noise_and_the_report_says_so(pooling):
    # Probabilities that know nothing: whatever the threshold, recalls sum to one on new rows.
    sums, flattering = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y, eta = np.repeat([0, 1], [80, 20]), rng.random(100)
        tuned = tune_weights(y, eta, goal="balanced_accuracy", pooling=pooling)
        sums.append(sum(tuned.class_risks.values()))
        flattering.append(2 - recalls(y, tuned.decide(eta)).sum())
    error = np.std(sums, ddof=1) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - 1) < 4 * error
    # On the tuning rows themselves the best weights seem to know something.
    assert pooling or np.mean(flattering) < 1 - 4 * error


def test_the_metric_is_that_of_the_cross_fitted_decisions():
    X, y = draw(2)
    clf = TunedDecisionClassifier(BASE, goal="f1").fit(X, y)
    eta, decided = out_of_fold(X, y), np.empty(len(y), dtype=bool)
    for fold, (_, test) in enumerate(folds(X, y)):
        weighted = eta[test] * clf.fold_weights_[fold]
        decided[test] = weighted[:, 1] > weighted[:, 0]
    assert clf.metric_value_ == pytest.approx(f1_score(y == "middle", decided), rel=1e-12)
    assert not hasattr(clf, "robust_risk_")


def test_floors_with_confidence_hold_on_new_data():
    # Two normal scores with known recall: it falls short in at most one fit of ten.
    short = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], [150, 60])
        eta = norm.cdf(rng.normal(2.0 * y - 1))
        tuned = tune_weights(y, eta, RecallFloors({1: 0.8}, confidence=0.9))
        short.append(norm.cdf(norm.ppf(tuned.threshold) - 1) > 0.2)
    assert np.mean(short) < 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)
    # Kept on the tuning rows alone, the floor fails about every other time.
    plain = tune_weights(y, eta, RecallFloors({1: 0.8}))
    assert plain.threshold > tuned.threshold


# Pooling


def test_pooling_leads_from_tuned_to_balanced_weights():
    X, y = draw()
    shares = np.unique(y, return_counts=True)[1] / len(y)
    away = []
    for amount in (0, 10, 100, 1e9):
        clf = TunedDecisionClassifier(BASE, goal="worst_class", pooling=amount).fit(X, y)
        away.append(np.ptp(np.log(np.asarray(clf.weights_) * shares)))
        assert clf.pooling_ == amount
    assert away[0] > away[1] > away[2] > away[3] and away[3] < 1e-6


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.SeenRowsWarning")
def test_where_all_weights_are_as_good_they_are_balanced():
    y = np.repeat([0, 1, 2], [60, 30, 10])
    tuned = tune_weights(y, np.eye(3)[y], goal="worst_class")
    assert max(tuned.class_risks.values()) == 0
    np.testing.assert_allclose(np.asarray(tuned.weights) * [0.6, 0.3, 0.1], 1 / 3, rtol=1e-6)


def test_with_many_rows_a_wrong_scale_is_corrected_in_full():
    # Probabilities whose odds are a hundred times too small: balanced weights are far off.
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 5000)
    odds = np.exp(2 * rng.normal(2.0 * y - 1)) / 100
    tuned = tune_weights(y, odds / (1 + odds), goal="worst_class")
    assert np.log(tuned.threshold / (1 - tuned.threshold)) == pytest.approx(-np.log(100), abs=0.3)


def test_few_rows_are_better_off_with_pooling():
    # The true threshold for equal risks is one half, where balanced weights put it.
    errors = {0: [], 2.0: []}
    for seed in range(80):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], [60, 12])
        score = rng.normal(2.0 * y - 1)
        eta = 1 / (1 + 5 * np.exp(-2 * score))
        for pooling, found in errors.items():
            t = tune_weights(y, eta, goal="worst_class", pooling=pooling).threshold
            cut = np.log(5 * t / (1 - t)) / 2
            found.append(max(norm.cdf(-1 - cut), norm.cdf(cut - 1)))
    gain = np.array(errors[0]) - np.array(errors[2.0])
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


# Rows that count differently


def test_integer_weights_are_repeated_rows():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 30, 15])
    table = rng.dirichlet([1, 1, 1], len(y)) + np.eye(3)[y] / 2
    table /= table.sum(axis=1, keepdims=True)
    times = rng.integers(0, 4, len(y))
    for goal in ("worst_class", "f1_macro"):
        # Pooling goes by how many rows there are, and weights do not say that.
        weighted = tune_weights(y, table, goal, sample_weight=times, pooling=0)
        repeated = tune_weights(y.repeat(times), table.repeat(times, axis=0), goal, pooling=0)
        np.testing.assert_allclose(weighted.weights, repeated.weights, rtol=1e-3)
        # Nor does their scale.
        one, thousandth = (
            tune_weights(y, table, goal, sample_weight=times * scale) for scale in (1, 1e-3)
        )
        np.testing.assert_allclose(thousandth.weights, one.weights, rtol=1e-9)


def test_rows_without_weight_do_not_matter():
    X, y = draw()
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, len(y)).astype(float)
    kept = weight > 0
    for case in ({"goal": "f1_macro"}, {"goal": "balanced"}, {"cv": 0.5}):
        clf = TunedDecisionClassifier(BASE, **case).fit(X, y, sample_weight=weight)
        alone = TunedDecisionClassifier(BASE, **case).fit(X[kept], y[kept], weight[kept])
        assert clf.weights_ == alone.weights_
        np.testing.assert_array_equal(clf.predict(X), alone.predict(X))


def test_groups_stay_together():
    X, y = draw()
    groups = np.arange(len(y)) % 7
    clf = TunedDecisionClassifier(BASE, goal="f1_macro", cv=GroupKFold(4)).fit(X, y, groups=groups)
    test_fold = np.empty(len(y), dtype=int)
    for fold, (_, test) in enumerate(GroupKFold(4).split(X, y, groups)):
        test_fold[test] = fold
    given = TunedDecisionClassifier(BASE, goal="f1_macro", cv=PredefinedSplit(test_fold)).fit(X, y)
    assert clf.weights_ == given.weights_ and len(clf.fold_weights_) == 4


def test_splits_are_about_all_rows_also_where_some_have_no_weight():
    X, y = draw()
    weight = (np.arange(len(y)) % 5 > 0).astype(float)
    test_fold = np.arange(len(y)) % 3
    clf = TunedDecisionClassifier(BASE, goal="f1_macro", cv=PredefinedSplit(test_fold))
    clf.fit(X, y, sample_weight=weight)
    kept = weight > 0
    alone = TunedDecisionClassifier(BASE, goal="f1_macro", cv=PredefinedSplit(test_fold[kept]))
    assert clf.weights_ == alone.fit(X[kept], y[kept], weight[kept]).weights_


# The value object


def test_what_was_tuned_reads_well():
    X, y = draw()
    tuned = tune_weights(y, clone(BASE).fit(X, y).predict_proba(X), goal="worst_class")
    assert isinstance(tuned, TunedWeights)
    header, *lines = repr(tuned).splitlines()
    assert header.split() == ["class", "weight", "risk", "lower", "upper"]
    assert [line.split()[0] for line in lines] == NAMES.tolist()
    assert tuned.fold_weights.shape == (5, 3) and tuned.threshold is None


def test_columns_can_be_named():
    X, y = draw()
    table = clone(BASE).fit(X, y).predict_proba(X)
    order = [2, 0, 1]
    tuned = tune_weights(y, table[:, order], goal="f1_macro", classes=NAMES[order])
    assert list(tuned.weights) == NAMES[order].tolist()
    assert tuned.decide(table[:, order])[0] in NAMES
    sorted_ = tune_weights(y, table, goal="f1_macro")
    np.testing.assert_allclose([tuned.weights[name] for name in NAMES], sorted_.weights, rtol=1e-3)
    assert tuned.metric_value == pytest.approx(sorted_.metric_value, abs=0.02)


def test_folds_can_be_given():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [120, 60, 30])
    eta = rng.dirichlet(np.ones(3), len(y)) + 0.3 * np.eye(3)[y]
    eta /= eta.sum(axis=1, keepdims=True)
    dealt = tune_weights(y, eta, "worst_class", random_state=3)
    given = tune_weights(y, eta, "worst_class", folds=dealt.folds)
    assert given.weights == dealt.weights
    np.testing.assert_array_equal(given.fold_weights, dealt.fold_weights)
    # What decides a fold knows nothing of its labels.
    own, other = np.flatnonzero(dealt.folds == 0), y.copy()
    other[own] = y[rng.permutation(own)]
    changed = tune_weights(other, eta, "worst_class", folds=dealt.folds)
    np.testing.assert_array_equal(changed.fold_weights[0], dealt.fold_weights[0])
    assert not np.allclose(changed.fold_weights[1], dealt.fold_weights[1])


def test_a_class_in_fewer_than_three_folds_is_too_rare():
    y, eta = np.repeat([0, 1, 2], [30, 30, 6]), np.full((66, 3), 1 / 3)
    folds = np.arange(66) % 3
    folds[60:] = [0, 1, 0, 1, 0, 1]
    with pytest.raises(ValueError, match="Too few rows of class 2"):
        tune_weights(y, eta, "worst_class", folds=folds)
    kept = tune_weights(y, eta, "worst_class", folds=folds, rare_classes="keep")
    assert np.isnan(kept.class_risks[2])


@pytest.mark.parametrize(
    "folds", [[0, 1, 2], np.zeros(60), np.arange(60) % 2, np.arange(60) % 4 + 1]
)
def test_folds_that_are_no_folds_are_refused(folds):
    with pytest.raises(ValueError, match="folds must"):
        tune_weights(np.arange(60) % 2, np.full(60, 0.5), "worst_class", folds=folds)


def test_rows_that_the_model_was_trained_on_are_suspected():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 1).astype(int)
    forest = RandomForestClassifier(50, random_state=0).fit(X[:200], y[:200])
    plug_in = TunedDecisionClassifier(FrozenEstimator(forest), "worst_class")
    with pytest.warns(SeenRowsWarning, match="in all 200 rows, which is too good"):
        plug_in.fit(X[:200], y[:200])
    with pytest.warns(SeenRowsWarning):
        tune_weights(y[:200], forest.predict_proba(X[:200]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plug_in.fit(X[200:], y[200:])
