"""RobustLogisticRegressionCV: the regularisation is chosen on held-out rows, for the goal."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import confusion_matrix, f1_score
from sklearn.model_selection import PredefinedSplit, StratifiedKFold, cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise import (
    CostMatrix,
    LabelCVaR,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    WorstClass,
    population_proba,
)
from equipoise.exceptions import InvalidInputError, InvalidParameterError

NAMES = np.array(["common", "middle", "rare"])


def draw(n=300, d=12, seed=0):
    """Three unequal classes and mostly columns of noise, so that the penalty matters."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), np.round(np.array([0.6, 0.3, 0.1]) * n).astype(int))
    X = rng.normal(size=(len(y), d))
    X[:, :3] += 1.2 * np.eye(3)[y]
    order = rng.permutation(len(y))
    return X[order], NAMES[y[order]]


def expected_failures(estimator):
    # A row of weight two is in one fold, two rows are in two; a test below fixes the folds.
    reason = "folds of repeated rows are others than those of weighted rows"
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


@parametrize_with_checks(
    [RobustLogisticRegressionCV(Cs=[0.1, 1.0], cv=3)], expected_failed_checks=expected_failures
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize("goal", [None, "worst_class", "f1_macro", "balanced"])
def test_values_are_those_of_plain_cross_validation(goal):
    X, y = draw()
    folds = StratifiedKFold(4)
    grid = [0.003, 0.1, 3.0]
    clf = RobustLogisticRegressionCV(
        LabelCVaR(0.3), Cs=grid, cv=folds, selection_goal=goal, tol=1e-9
    )
    clf.fit(X, y)
    expected = []
    for C in grid:
        plain = RobustLogisticRegression(LabelCVaR(0.3), C=C, tol=1e-9)
        predicted = cross_val_predict(plain, X, y, cv=folds)
        table = confusion_matrix(y, predicted, normalize="true")
        risks, prior = 1 - np.diag(table), np.array([np.mean(y == name) for name in NAMES])
        if goal is None:
            order = np.argsort(-risks)
            left = 1 - np.concatenate([[0], np.cumsum(prior[order] / 0.3)[:-1]])
            mass = np.clip(left, 0, prior[order] / 0.3)
            expected.append(mass @ risks[order])
        elif goal == "worst_class":
            expected.append(risks.max())
        elif goal == "balanced":
            expected.append(risks.mean())
        else:
            expected.append(1 - f1_score(y, predicted, average="macro"))
    np.testing.assert_allclose(clf.goal_values_, expected, atol=1e-12)
    close = clf.goal_values_ - clf.goal_values_.min() <= clf.goal_value_errors_ + 1e-12
    assert clf.goal_value_errors_[np.argmin(expected)] == 0
    assert grid[int(np.argmax(close))] == clf.C_
    assert clf.Cs_.tolist() == grid


@pytest.mark.parametrize("seed", range(4))
def test_the_strongest_penalty_within_one_standard_error_is_taken(seed):
    X, y = draw(seed=seed)
    folds, grid = StratifiedKFold(4), [0.001, 0.01, 0.1, 1.0, 100.0]
    clf = RobustLogisticRegressionCV("worst_class", Cs=grid, cv=folds, tol=1e-9).fit(X, y)
    models = [RobustLogisticRegression("worst_class", C=C, tol=1e-9) for C in grid]
    wrong = np.array([cross_val_predict(model, X, y, cv=folds) != y for model in models])

    def worst(rows):
        return np.max([wrong[:, rows[y[rows] == name]].mean(axis=1) for name in NAMES], axis=0)

    # The jackknife: without each of twenty groups of rows, dealt out class by class.
    tested = np.concatenate([test for _, test in folds.split(X, y)])
    dealt = tested[np.argsort(y[tested], kind="stable")]
    without = np.array([worst(np.delete(dealt, np.s_[group::20])) for group in range(20)])
    values = worst(dealt)
    errors = np.std(without - without[:, [np.argmin(values)]], axis=0) * np.sqrt(19)
    np.testing.assert_allclose(clf.goal_value_errors_, errors, atol=1e-12)
    within = np.flatnonzero(values <= values.min() + errors + 1e-12)
    assert grid[within[0]] == clf.C_


def test_the_final_fit_is_that_of_the_chosen_penalty():
    X, y = draw()
    clf = RobustLogisticRegressionCV(WorstClass(), Cs=[0.01, 1.0], cv=3).fit(X, y)
    plain = RobustLogisticRegression(WorstClass(), C=clf.C_).fit(X, y)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)
    np.testing.assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(population_proba(clf, X), population_proba(plain, X))
    np.testing.assert_array_equal(clf.to_sklearn().predict(X), plain.predict(X))
    assert clf.duality_gap_ == plain.duality_gap_ and clf.to_sklearn().C == clf.C_
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    assert repr(clone(clf)) == repr(clf) and not hasattr(clone(clf), "C_")


def test_a_number_of_values_is_spread_as_in_scikit_learn():
    X, y = draw(120)
    clf = RobustLogisticRegressionCV("balanced", Cs=3, cv=3, tol=1e-3).fit(X, y)
    np.testing.assert_allclose(clf.Cs_, [1e-4, 1, 1e4])


def test_of_equal_values_the_strongest_penalty_is_taken():
    X, y = np.array([[0.0], [0.1], [5.0], [5.1]] * 10), np.array([0, 0, 1, 1] * 10)
    clf = RobustLogisticRegressionCV("worst_class", Cs=[10.0, 1.0, 100.0], cv=4).fit(X, y)
    assert np.all(clf.goal_values_ == 0) and clf.C_ == 1.0 and clf.Cs_.tolist() == [1, 10, 100]


def test_weights_of_rows_and_rows_without_weight():
    X, y = draw(600)
    times = np.random.default_rng(1).integers(0, 3, len(y))
    times[[int(np.argmax(y == name)) for name in NAMES]] = 1
    fold = np.arange(len(y)) % 3
    settings = {"goal": WorstClass(), "Cs": [0.01, 0.1, 1.0], "tol": 1e-9}
    one = RobustLogisticRegressionCV(cv=PredefinedSplit(fold), **settings).fit(X, y, times)
    repeated = PredefinedSplit(np.repeat(fold, times))
    two = RobustLogisticRegressionCV(cv=repeated, **settings)
    two.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(one.goal_values_, two.goal_values_, atol=1e-12)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-3)


def test_the_same_for_any_number_of_jobs():
    X, y = draw()
    one = RobustLogisticRegressionCV(Cs=[0.01, 1.0], cv=3).fit(X, y)
    two = RobustLogisticRegressionCV(Cs=[0.01, 1.0], cv=3, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.goal_values_, two.goal_values_)


@pytest.mark.parametrize("bad", [0, [], [[1.0]], [0.0], [-1.0, 1], "many", [np.nan], None])
def test_values_that_are_none_are_refused(bad):
    with pytest.raises(InvalidParameterError, match="Cs"):
        RobustLogisticRegressionCV(Cs=bad).fit(*draw())


def test_what_cannot_be_judged_is_refused():
    X, y = draw()
    with pytest.raises(InvalidParameterError, match="got a CostMatrix"):
        RobustLogisticRegressionCV(selection_goal=CostMatrix(1.0)).fit(X, y)
    y[:2] = "tiny"
    with pytest.raises(InvalidInputError, match="Too few rows of class 'tiny'"):
        RobustLogisticRegressionCV(cv=3).fit(X, y)
