"""TunedDecisionClassifier as an estimator: scikit-learn's own checks, and its company."""

import os
import pickle
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise import CostMatrix, FixedWeights, LabelCVaR, RecallFloors, RiskScorer, WorstClass
from equipoise.decisions import LabelledRows, Splitting, split
from equipoise.estimators import TunedDecisionClassifier, tune_weights
from equipoise.exceptions import EquipoiseWarning
from equipoise.theory import LocalPolynomialClassifier

BASE = LogisticRegression()
NAMES = np.array(["common", "middle", "rare"])

CHECKED = [
    TunedDecisionClassifier(LogisticRegression(C=1), cv=3),
    TunedDecisionClassifier(LogisticRegression(C=1), cv=3, pooling=0),
    TunedDecisionClassifier(LogisticRegression(C=1), goal="balanced"),
]


def expected_failures(estimator):
    """As of scikit-learn's TunedThresholdClassifierCV, whose place a test below takes; and pooling.

    Pooling goes by how many rows there are, which a row of weight two says less about than two.
    """
    expected = {}
    if estimator.goal is None:
        expected["check_classifiers_train"] = "the most probable class is not what is decided"
    if estimator.goal is None and estimator.pooling:
        for form in ("dense", "sparse"):
            name = f"check_sample_weight_equivalence_on_{form}_data"
            expected[name] = "two rows say more than one row of weight two"
    return expected


@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_every_check_of_scikit_learn_passes(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        # Only the run on the oldest versions turns the array API off.
        if os.environ["SCIPY_ARRAY_API"]:
            pytest.fail(f"skipped: {reason}")
        raise


@pytest.mark.parametrize("estimator", CHECKED, ids=["default", "not pooled", "balanced"])
@pytest.mark.parametrize("centers", [2, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_classifier_is_trained_as_scikit_learn_expects(estimator, centers, dtype):
    X, y = make_blobs(n_samples=300, centers=centers, random_state=0)
    X = StandardScaler().fit_transform(X).astype(dtype)
    X.setflags(write=False)
    y.setflags(write=False)
    clf = clone(estimator)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.fit(X, y[:-1])
    clf.fit(X, y)
    np.testing.assert_array_equal(clf.classes_, np.unique(y))
    predicted, table = clf.predict(X), clf.predict_proba(X)
    assert predicted.shape == (300,) and clf.score(X, y) > 0.83
    assert table.shape == (300, centers)
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-6)
    scores = clf.decision_function(X)
    assert scores.shape == ((300,) if centers == 2 else (300, centers))
    best = (scores > 0).astype(int) if centers == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(predicted, best)
    np.testing.assert_array_equal(predicted, (table * np.asarray(clf.weights_)).argmax(axis=1))
    for wrong in (X.T, X[:, :1]):
        with pytest.raises(ValueError, match="features"):
            clf.predict(wrong)


def draw(n=240, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [n * 3 // 5, n * 3 // 10, n // 10])
    X = rng.normal(size=(len(y), 3)) + np.eye(3)[y] * 1.5
    order = rng.permutation(len(y))
    return X[order], NAMES[y[order]]


def assert_same(one, two):
    np.testing.assert_array_equal(np.asarray(one.weights_), np.asarray(two.weights_))
    np.testing.assert_array_equal(one.fold_weights_, two.fold_weights_)


# Settings


def test_clone_takes_the_settings_and_nothing_else():
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal=LabelCVaR(0.4), pooling=0.5, cv=3).fit(X, y)
    fresh = clone(clf)
    assert not hasattr(fresh, "weights_") and fresh.goal.alpha == 0.4
    assert fresh.goal is not clf.goal and fresh.estimator is not clf.estimator
    assert repr(fresh) == repr(clf)
    assert_same(fresh.fit(X, y), clf)


def test_a_new_fit_forgets_the_last():
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal="accuracy", cv=3).fit(X, y)
    assert hasattr(clf, "metric_value_")
    clf.set_params(goal=CostMatrix([[0, 1, 2], [1, 0, 2], [5, 9, 0]])).fit(X, y)
    for gone in ("metric_value_", "class_risks_", "weights_", "fold_weights_"):
        assert not hasattr(clf, gone)
    clf.set_params(goal="balanced").fit(X[:, :2], y)
    assert clf.n_features_in_ == 2 and not hasattr(clf, "costs_")


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickles(protocol):
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal=WorstClass(), cv=3).fit(X, y)
    again = pickle.loads(pickle.dumps(clf, protocol))
    assert_same(again, clf)
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    assert again.class_risk_intervals_["rare"] == clf.class_risk_intervals_["rare"]


def test_grid_search_over_nested_settings():
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal=LabelCVaR(0.5), cv=3)
    grid = {"estimator__C": [0.01, 1.0], "goal__alpha": [0.8, 0.2]}
    search = GridSearchCV(clf, grid, cv=2, scoring=RiskScorer(WorstClass())).fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_params_["estimator__C"] == search.best_estimator_.estimator_.C
    recipes = {"goal": ["standard", FixedWeights("balanced")]}
    balanced = GridSearchCV(
        TunedDecisionClassifier(BASE), recipes, cv=3, scoring="balanced_accuracy"
    )
    assert balanced.fit(X, y).best_params_["goal"].weights == "balanced"


def test_several_folds_at_a_time_find_the_same():
    X, y = draw()
    one = TunedDecisionClassifier(BASE, goal="accuracy", cv=3).fit(X, y)
    with joblib.parallel_config("threading"):
        two = TunedDecisionClassifier(BASE, goal="accuracy", cv=3, n_jobs=2).fit(X, y)
    assert_same(one, two)


# Data


def test_frames_keep_their_names():
    X, y = draw()
    frame, series = pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y, name="kind")
    clf = TunedDecisionClassifier(BASE, goal="accuracy", cv=3).fit(frame, series)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"] and clf.n_features_in_ == 3
    plain = clone(clf).fit(X, y)
    assert_same(clf, plain)
    np.testing.assert_array_equal(clf.predict(frame), plain.predict(X))
    assert not hasattr(plain, "feature_names_in_")


def test_columns_of_text_reach_a_base_that_takes_them():
    X, y = draw()
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(X[:, 2] > 1, "high", "low"))})
    base = HistGradientBoostingClassifier(
        max_iter=5, min_samples_leaf=5, categorical_features="from_dtype"
    )
    clf = TunedDecisionClassifier(base, goal="accuracy", cv=3).fit(frame, y)
    assert clf.predict(frame).shape == y.shape


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
def test_sparse_rows_pass_through(container):
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal="accuracy", cv=3).fit(container(X), y)
    dense = clone(clf).fit(X, y)
    np.testing.assert_allclose(np.asarray(clf.weights_), np.asarray(dense.weights_), rtol=1e-4)
    assert clf.predict(container(X)).shape == y.shape


def test_missing_values_pass_through():
    X, y = draw()
    X[::7, 1] = np.nan
    base = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
    clf = TunedDecisionClassifier(base, goal="accuracy", cv=3).fit(X, y)
    assert clf.predict(X).shape == y.shape
    assert sklearn.utils.get_tags(clf).input_tags.allow_nan
    assert not sklearn.utils.get_tags(TunedDecisionClassifier(BASE)).input_tags.allow_nan


@pytest.mark.parametrize(
    "base",
    [
        RandomForestClassifier(10, random_state=0),
        GaussianNB(),
        KNeighborsClassifier(15),
        LocalPolynomialClassifier(),
    ],
    ids=lambda base: type(base).__name__,
)
def test_any_classifier_with_probabilities_will_do(base):
    X, y = draw()
    clf = TunedDecisionClassifier(base, goal=WorstClass(), cv=3).fit(X, y)
    assert 0 < clf.robust_risk_ < 0.6
    assert clf.robust_risk_ == pytest.approx(clf.class_risks_.max())


def test_in_a_pipeline_and_around_one():
    X, y = draw()
    clf = TunedDecisionClassifier(LogisticRegression(), goal="accuracy", cv=3)
    inside = make_pipeline(StandardScaler(), clf)
    inside.set_params(tuneddecisionclassifier__estimator__C=0.5).fit(X, y)
    around = TunedDecisionClassifier(make_pipeline(StandardScaler(), LogisticRegression(C=0.5)))
    around.set_params(goal="accuracy", cv=3).fit(X, y)
    assert inside[-1].estimator_.C == 0.5 and inside.predict_proba(X).shape == (len(y), 3)
    # The folds of one were scaled by all rows, those of the other by the rest of the folds.
    assert np.mean(inside.predict(X) == around.predict(X)) > 0.95
    scores = cross_validate(inside, X, y, cv=3, scoring="balanced_accuracy")
    assert np.all(scores["test_score"] > 0.5)


def test_the_page_of_a_notebook_shows_the_base():
    assert "LogisticRegression" in TunedDecisionClassifier(BASE)._repr_html_()


# Weights of rows, and other metadata


def test_sample_weights_reach_the_base_estimator():
    X, y = draw()
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    clf = TunedDecisionClassifier(BASE, goal="balanced").fit(X, y, sample_weight=weight)
    direct = clone(BASE).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(clf.estimator_.coef_, direct.coef_)
    masses = np.bincount(np.searchsorted(NAMES, y), weights=weight) / weight.sum()
    np.testing.assert_allclose(np.asarray(clf.weights_) * masses, 1 / 3, rtol=1e-12)


def test_a_base_that_takes_no_weights_is_announced():
    X, y = draw()
    weight = np.ones(len(y))
    clf = TunedDecisionClassifier(KNeighborsClassifier(), goal="accuracy", cv=3)
    with pytest.warns(EquipoiseWarning, match="KNeighborsClassifier does not take sample_weight"):
        clf.fit(X, y, sample_weight=weight)
    steps = make_pipeline(StandardScaler(), KNeighborsClassifier())
    with pytest.warns(EquipoiseWarning, match="STEP__sample_weight"):
        TunedDecisionClassifier(steps, goal="accuracy", cv=3).fit(X, y, sample_weight=weight)
    # The last step of a pipeline is given them, where it takes them.
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    clf = TunedDecisionClassifier(pipeline, goal="accuracy", cv=3).fit(X, y, sample_weight=weight)
    pipeline.fit(X, y, logisticregression__sample_weight=weight)
    np.testing.assert_array_equal(clf.estimator_[-1].coef_, pipeline[-1].coef_)
    frozen = FrozenEstimator(steps.fit(X, y))
    TunedDecisionClassifier(frozen, goal="accuracy").fit(X, y, sample_weight=weight)


def test_metadata_go_to_who_asked_for_them():
    X, y = draw()
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    groups = np.arange(len(y)) % 9
    settings = {"goal": "accuracy"}
    direct = TunedDecisionClassifier(BASE, cv=GroupKFold(3), **settings)
    direct.fit(X, y, sample_weight=weight, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        base = LogisticRegression().set_fit_request(sample_weight=True)
        clf = TunedDecisionClassifier(base, cv=GroupKFold(3), **settings)
        clf.set_fit_request(sample_weight=True)
        pipeline = make_pipeline(clf).fit(X, y, sample_weight=weight, groups=groups)
        assert_same(pipeline[-1], direct)
        unasked = TunedDecisionClassifier(
            LogisticRegression().set_fit_request(sample_weight=False), cv=3, **settings
        ).fit(X, y, sample_weight=weight)
        assert np.array_equal(unasked.estimator_.coef_, clone(BASE).fit(X, y).coef_)
        with pytest.raises(ValueError, match=r"sample_weight.* not explicitly set"):
            TunedDecisionClassifier(BASE, cv=3, **settings).fit(X, y, sample_weight=weight)


def test_other_arguments_of_fit_follow_the_rows():
    class Recorder(LogisticRegression):
        def fit(self, X, y, sample_weight=None, marks=None, note=None):
            assert np.array_equal(marks, X[:, 0]) and note == "kept"
            return super().fit(X, y, sample_weight=sample_weight)

    X, y = draw()
    clf = TunedDecisionClassifier(Recorder(), goal="accuracy", cv=3)
    clf.fit(X, y, marks=X[:, 0].tolist(), note="kept")
    assert len(clf.fold_weights_) == 3


@pytest.mark.parametrize("cv", [3, None])
def test_a_number_of_folds_stands_for_splits(cv):
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal="accuracy", cv=cv).fit(X, y)
    classes, labels = np.unique(y, return_inverse=True)
    rows = LabelledRows(X, y, labels, classes, np.ones(len(y)))
    folds = split(rows, Splitting(cv or 5)).parts
    assert len(folds) == (cv or 5)
    assert_same(clf, clone(clf).set_params(cv=folds).fit(X, y))


def test_a_splitter_is_taken_as_it_is():
    X, y = draw()
    clf = TunedDecisionClassifier(BASE, goal="accuracy", cv=StratifiedKFold(3)).fit(X, y)
    splits = list(StratifiedKFold(3).split(X, y))
    assert_same(clf, clone(clf).set_params(cv=splits).fit(X, y))


def test_rows_in_order_do_not_mislead():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, size=600))
    y = (np.sin(3 * x) + 0.3 * rng.normal(size=600) > 0).astype(int)
    settings = {"goal": "balanced_accuracy"}
    nearest = KNeighborsClassifier(5)
    clf = TunedDecisionClassifier(nearest, **settings).fit(x[:, None], y)
    neighbours = TunedDecisionClassifier(nearest, cv=StratifiedKFold(5), **settings).fit(
        x[:, None], y
    )
    # Folds of neighbours leave out whole regions, and judge the base by what it cannot know.
    assert clf.metric_value_ > neighbours.metric_value_ + 0.2


# Classes of few rows


def with_a_handful():
    """All rows, and only two of the last class."""
    X, y = draw()
    rare = np.flatnonzero(y == "rare")
    keep = np.setdiff1d(np.arange(len(y)), rare[2:])
    return X[keep], y[keep]


@pytest.mark.parametrize("cv", [5, 0.4, StratifiedKFold(5, shuffle=True, random_state=0)], ids=str)
@pytest.mark.parametrize(
    "case", [{}, {"goal": "f1_macro"}, {"goal": RecallFloors({"middle": 0.6})}]
)
def test_a_class_of_few_rows_can_be_kept(case, cv):
    X, y = with_a_handful()
    clf = TunedDecisionClassifier(GaussianNB(), **case, cv=cv, rare_classes="keep").fit(X, y)
    assert clf.classes_.tolist() == clf.estimator_.classes_.tolist() == NAMES.tolist()
    assert np.isnan(clf.class_risks_["rare"]) and clf.weights_["rare"] == 1
    interval = clf.class_risk_intervals_["rare"]
    assert (interval.lower, interval.upper) == (0, 1)
    assert all(0 <= clf.class_risks_[name] <= 1 for name in ("common", "middle"))
    assert np.mean([clf.weights_[label] for label in y]) == pytest.approx(1, rel=1e-12)
    weighted = clf.predict_proba(X) * np.asarray(clf.weights_)
    np.testing.assert_array_equal(clf.predict(X), NAMES[weighted.argmax(axis=1)])


@pytest.mark.parametrize("cv", [5, 0.4, StratifiedKFold(5, shuffle=True, random_state=0)], ids=str)
@pytest.mark.parametrize("goal", [None, "f1_macro", RecallFloors({"middle": 0.6})], ids=str)
def test_a_class_of_few_rows_can_be_dropped(goal, cv):
    X, y = with_a_handful()
    clf = TunedDecisionClassifier(GaussianNB(), goal, cv=cv, rare_classes="drop").fit(X, y)
    kept = y != "rare"
    # The model never saw the class; its name stays, its weight is nothing.
    direct = GaussianNB().fit(X[kept], y[kept])
    np.testing.assert_array_equal(clf.estimator_.theta_, direct.theta_)
    assert clf.classes_.tolist() == NAMES.tolist() and clf.weights_["rare"] == 0
    assert np.isnan(clf.class_risks_["rare"]) and clf.class_prior_["rare"] > 0
    assert np.all(clf.fold_weights_[:, 2] == 0)
    assert np.mean([clf.weights_[label] for label in y[kept]]) == pytest.approx(1, rel=1e-12)
    table = clf.predict_proba(X)
    np.testing.assert_array_equal(table[:, :2], direct.predict_proba(X))
    assert np.all(table[:, 2] == 0) and "rare" not in clf.predict(X)
    assert clf.decision_function(X).shape == (len(y), 3)


def test_dropping_without_rare_classes_changes_nothing():
    X, y = draw()
    settings = {"goal": "f1_macro"}
    dropped = TunedDecisionClassifier(BASE, rare_classes="drop", **settings).fit(X, y)
    assert_same(dropped, TunedDecisionClassifier(BASE, **settings).fit(X, y))


def test_a_class_that_the_tuning_rows_lack_can_be_dropped():
    X, y = draw()
    fitted = FrozenEstimator(clone(BASE).fit(X, y))
    some = y != "rare"
    clf = TunedDecisionClassifier(fitted, rare_classes="drop").fit(X[some], y[some])
    tuned = tune_weights(
        y[some],
        fitted.predict_proba(X[some]),
        classes=NAMES,
        rare_classes="drop",
        goal=LabelCVaR(0.1),
    )
    assert clf.weights_ == tuned.weights and clf.weights_["rare"] == 0
    assert "rare" not in clf.predict(X) and "rare" not in tuned.decide(fitted.predict_proba(X))


def test_a_class_that_the_tuning_rows_lack_can_be_kept():
    X, y = draw()
    fitted = FrozenEstimator(clone(BASE).fit(X, y))
    some = y != "rare"
    for case in ({}, {"goal": "balanced"}, {"goal": "standard"}):
        clf = TunedDecisionClassifier(fitted, **case, rare_classes="keep").fit(X[some], y[some])
        assert np.isnan(clf.class_risks_["rare"]) and clf.weights_["rare"] == 1


def test_a_row_that_only_a_rare_class_is_possible_for_is_an_error_of_its_class():
    y = np.repeat([0, 1, 2], [40, 20, 1])
    table = np.eye(3)[y] * 0.8 + 0.1 * np.array([1, 1, 0])
    table[0] = [0, 0, 1]
    table /= table.sum(axis=1, keepdims=True)
    tuned = tune_weights(y, table, goal="worst_class", rare_classes="keep")
    assert tuned.class_risks[0] == 1 / 40 and tuned.class_risks[1] == 0
    assert tuned.robust_risk == pytest.approx(1 / 40)
