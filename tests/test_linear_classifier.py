"""Linear classifiers of other losses: optimal by CVXPY, certified, and at home in scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise import (
    FixedWeights,
    LabelCVaR,
    PriorBall,
    PriorBox,
    RobustLinearClassifier,
    RobustLogisticRegression,
    WeightBox,
    WorstClass,
    class_risks,
)
from equipoise.exceptions import (
    EquipoiseWarning,
    FewRowsWarning,
    InactiveCapsWarning,
    InvalidParameterError,
    NotConvergedWarning,
)
from equipoise.losses import LOSSES, as_trained
from equipoise.objectives import open_objective
from equipoise.objectives.centering import MANY_INTERCEPTS
from equipoise.solvers import SOLVERS
from linear_models import optimum, small_data
from logistic_cases import NAMES, assert_same_bits, assert_same_fit, draw, few_rows_allowed

HINGES = ["squared_hinge", "smoothed_hinge"]
each_hinge = pytest.mark.parametrize("loss", HINGES)
# The error that the reference may have itself.
REFERENCE = 1e-6
CASES = {
    "worst class": (WorstClass(), lambda p: lambda m: []),
    "lcvar": (LabelCVaR(0.5), lambda p: lambda m: [m <= p / 0.5]),
    "standard": (FixedWeights("standard"), lambda p: lambda m: [m == p]),
    "prior box": (PriorBox(0.05, 0.6), lambda p: lambda m: [m >= 0.05, m <= 0.6]),
}
CHECKED = [
    RobustLinearClassifier(tol=1e-11),
    RobustLinearClassifier(WorstClass(), "smoothed_hinge", tol=1e-11),
    RobustLinearClassifier(loss="cross_entropy", tol=1e-11),
]


@few_rows_allowed
@parametrize_with_checks(CHECKED)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


# Optimal


@each_hinge
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("fit_intercept", [True, False])
@few_rows_allowed
def test_fits_reach_the_optimum_of_an_independent_solver(loss, name, k, fit_intercept):
    X, labels, weights = data = small_data(k)
    recipe, constraints = CASES[name]
    prior = np.bincount(labels, weights) / weights.sum()
    best = optimum(
        data, constraints(prior), 1 / weights.sum(), fit_intercept=fit_intercept, loss=loss
    )
    for store in (np.asarray, sp.csr_matrix):
        clf = RobustLinearClassifier(recipe, loss, fit_intercept=fit_intercept)
        clf.fit(store(X), labels, sample_weight=weights)
        assert clf.status_ == "converged"
        assert clf.duality_gap_ <= 1e-6 * max(1e-3, clf.objective_)
        assert clf.objective_ == pytest.approx(best, rel=1e-6 + REFERENCE, abs=1e-8)
        assert clf.lower_bound_ <= best * (1 + REFERENCE) + 1e-8


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_one_point_and_two_classes_are_a_support_vector_machine(C):
    X, labels, weights = small_data(2, n_rows=200)
    ours = RobustLinearClassifier("standard", C=C, fit_intercept=False, tol=1e-12)
    theirs = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-10, max_iter=100_000)
    for given in (None, weights):
        ours.fit(X, NAMES[labels], sample_weight=given)
        theirs.fit(X, NAMES[labels], sample_weight=given)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_an_intercept_is_one_of_a_support_vector_machine_without_penalty():
    X, labels, _ = small_data(2, n_rows=200)
    ours = RobustLinearClassifier("standard", tol=1e-12).fit(X, labels)
    theirs = LinearSVC(dual=False, tol=1e-10, max_iter=100_000, intercept_scaling=1e3)
    theirs.fit(X, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-3, atol=1e-4)


def test_the_cross_entropy_is_logistic_regression():
    X, y = draw(k=3)
    for loss in ("cross_entropy", "cross_entropy_from_scores"):
        other = RobustLinearClassifier(LabelCVaR(0.6), loss).fit(X, y)
        assert_same_bits(other, RobustLogisticRegression(LabelCVaR(0.6)).fit(X, y))


def random_problem(seed):
    """Data, a set and settings of all kinds: separable, overlapping, rare classes, bad scales."""
    rng = np.random.default_rng(seed)
    k, d, n = rng.choice([2, 2, 3, 4, 8]), rng.integers(1, 12), rng.integers(60, 400)
    drawn = rng.choice(k, n, p=rng.dirichlet(np.ones(k)))
    labels = np.concatenate([np.repeat(np.arange(k), 3), drawn])
    X = rng.choice([0.2, 1.0, 4.0]) * rng.normal(size=(k, d))[labels]
    X = (X + rng.normal(size=(len(labels), d))) * 10.0 ** rng.choice([0, 0, 1, -2], size=d)
    recipe = [
        WorstClass(),
        LabelCVaR(rng.choice([0.1, 0.5, 0.9])),
        PriorBall(0.1),
        "balanced",
        WeightBox(0.5, 3.0),
        PriorBox(0.0, 0.95),
    ][rng.integers(6)]
    settings = {
        "C": 10.0 ** rng.integers(-2, 3),
        "fit_intercept": bool(rng.random() < 0.8),
        "loss": HINGES[seed % 2],
    }
    return X, labels, rng.uniform(0.2, 2, len(labels)), RobustLinearClassifier(recipe, **settings)


@pytest.mark.parametrize("block", range(8))
@few_rows_allowed
@pytest.mark.filterwarnings("ignore::equipoise.exceptions.InactiveCapsWarning")
def test_random_problems_are_certified(block):
    """Jumps of the curvature do not keep Newton's steps from the optimum."""
    for seed in range(20 * block, 20 * block + 20):
        X, labels, weights, clf = random_problem(seed)
        clf.fit(X, labels, sample_weight=weights)  # a warning is an error
        assert clf.status_ == "converged", seed
        assert clf.duality_gap_ <= 1e-6 * max(1e-3, clf.objective_), seed


@each_hinge
@pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "descent-ascent"])
def test_every_solver_ends_at_the_same_optimum(loss, solver):
    X, y = draw(k=4)
    clf = RobustLinearClassifier(LabelCVaR(0.7), loss, solver=solver, tol=1e-9).fit(X, y)
    assert_same_fit(clf, RobustLinearClassifier(LabelCVaR(0.7), loss, tol=1e-11).fit(X, y), 1e-3)


@each_hinge
def test_descent_ascent_comes_near(loss):
    X, y = draw(k=3)
    best = RobustLinearClassifier(LabelCVaR(0.7), loss).fit(X, y)
    clf = RobustLinearClassifier(LabelCVaR(0.7), loss, solver="descent-ascent", tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        clf.fit(X, y)
    assert clf.objective_ == pytest.approx(best.objective_, rel=0.1)
    assert clf.lower_bound_ <= best.objective_ * (1 + 1e-6)


@each_hinge
@pytest.mark.parametrize("k", [2, 3])
def test_a_few_steps_are_not_silent(loss, k):
    X, y = draw(k=k)
    with pytest.warns(NotConvergedWarning):
        clf = RobustLinearClassifier("standard", loss, max_iter=1, tol=1e-14).fit(X, y)
    assert clf.lower_bound_ <= clf.objective_ and clf.status_ == "max_iter"


# What a fit says of itself


@each_hinge
@pytest.mark.parametrize("k", [2, 3])
def test_the_risks_are_those_of_the_loss_of_that_name(loss, k):
    X, y = draw(k=k)
    clf = RobustLinearClassifier(LabelCVaR(0.6), loss, class_prior=np.ones(k) / k).fit(X, NAMES[y])
    scores = clf.decision_function(X)
    assert scores.shape == ((300,) if k == 2 else (300, k))
    risks = class_risks(NAMES[y], scores, loss=loss)
    np.testing.assert_allclose(list(risks.values()), clf.class_risks_, rtol=1e-9)
    penalty = np.sum(clf.coef_**2) / (2 * len(y))
    assert clf.objective_ == pytest.approx(clf.robust_risk_ + penalty)
    best = scores > 0 if k == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[best.astype(int)])
    np.testing.assert_allclose(clf.class_prior_, 1 / k)
    assert clf.coef_.shape == ((1, 4) if k == 2 else (k, 4))
    if k > 2:
        assert clf.intercept_.sum() == pytest.approx(0, abs=1e-12)
        assert np.abs(clf.coef_.sum(axis=0)).max() <= 1e-10
    assert not hasattr(clf, "predict_proba")


@each_hinge
def test_weights_of_rows_are_rows_that_occur_often(loss):
    X, y = draw(k=3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    one = RobustLinearClassifier(LabelCVaR(0.6), loss, tol=1e-10).fit(X, y, sample_weight=times)
    other = clone(one).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_same_fit(one, other, 1e-4)


@each_hinge
def test_sparse_rows_and_single_precision_fit_the_same(loss):
    X, y = draw(k=3)
    X[::2, 1] = 0
    clf = RobustLinearClassifier(LabelCVaR(0.6), loss, tol=1e-10).fit(X.astype(np.float32), y)
    for store in (sp.csr_matrix, sp.csr_array, np.asfortranarray):
        assert_same_fit(clf, clone(clf).fit(store(X.astype(np.float32).astype(float)), y), 1e-4)


@each_hinge
def test_a_class_that_may_carry_no_mass_is_left_to_itself(loss):
    X, y = draw(k=3)
    clf = RobustLinearClassifier(FixedWeights({0: 1.0, 1: 2.0, 2: 0.0}), loss).fit(X, y)
    assert clf.status_ == "converged" and clf.worst_case_masses_[2] == 0
    assert np.all(np.isfinite(clf.intercept_))


@each_hinge
def test_separable_data_have_an_optimum_without_penalty(loss):
    X, y = draw(k=3)
    X = X + 60 * np.eye(4)[y]
    clf = RobustLinearClassifier(WorstClass(), loss, C=np.inf).fit(X, y)  # a warning is an error
    assert clf.objective_ <= 1e-8 and clf.lower_bound_ == -np.inf
    assert np.all(clf.predict(X) == y)


def test_a_warm_start_is_a_short_way():
    X, y = draw(k=3, n=2000)
    clf = RobustLinearClassifier(LabelCVaR(0.6), warm_start=True).fit(X, y)
    cold = clf.n_evaluations_
    assert clf.fit(X, y).n_evaluations_ < cold


def test_many_classes_are_centered_by_the_diagonal():
    k, rng = MANY_INTERCEPTS + 1, np.random.default_rng(0)
    y = np.sort(np.concatenate([np.arange(k), rng.integers(k, size=4 * k)]))
    X, mass = rng.normal(size=(len(y), 3)) + rng.normal(size=(k, 3))[y], rng.dirichlet(np.ones(k))
    loss, ones = as_trained("squared_hinge"), np.ones(len(y))
    with open_objective(X, y, ones, n_classes=k, fit_intercept=True, loss=loss) as objective:
        start = objective.evaluate(rng.normal(size=objective.size))
        centered = objective.center(start, mass)
        slopes = [
            objective.features.unfold(objective.gradient(state, mass))[:, -1]
            for state in (start, centered)
        ]
    assert mass @ centered.risks < mass @ start.risks
    assert np.abs(slopes[1]).max() < 1e-8 * np.abs(slopes[0]).max()


# Used


@pytest.mark.parametrize("bad", ["zero_one", "hinge"])
def test_a_loss_that_cannot_be_trained_is_refused_with_those_that_can(bad):
    X, y = draw(k=3)
    with pytest.raises(InvalidParameterError, match=rf"'squared_hinge', 'smoothed.*got '{bad}'"):
        RobustLinearClassifier(loss=bad).fit(X, y)
    with pytest.raises(InvalidParameterError, match=r"loss must be one of 'zero_one'.*got 'log'"):
        RobustLinearClassifier(loss="log").fit(X, y)


def test_a_loss_itself_will_do():
    X, y = draw(k=3)
    clf = RobustLinearClassifier(loss=LOSSES["squared_hinge"]).fit(X, y)
    assert_same_bits(clf, RobustLinearClassifier().fit(X, y))
    assert_same_bits(pickle.loads(pickle.dumps(clf)), clf)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.EquipoiseWarning")
def test_grid_search_over_the_loss():
    X, y = draw(k=3)
    grid = {"loss": HINGES, "goal__alpha": [0.3, 0.9], "C": [0.01, 1.0]}
    search = GridSearchCV(RobustLinearClassifier(LabelCVaR(0.5)), grid, cv=3).fit(X, NAMES[y])
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


# Warnings point at the line of the user


def few_rows_of_one_class():
    X, y = draw(k=3)
    return X, np.where(np.arange(len(y)) < 5, 3, y)


@pytest.mark.parametrize("kind", [RobustLinearClassifier, RobustLogisticRegression])
@pytest.mark.parametrize(
    ("recipe", "settings", "category"),
    [
        (WorstClass(), {}, FewRowsWarning),
        ("standard", {"max_iter": 1, "tol": 1e-14}, NotConvergedWarning),
        (LabelCVaR(1e-4), {}, InactiveCapsWarning),
    ],
)
def test_warnings_name_the_line_that_called_fit(kind, recipe, settings, category):
    X, y = few_rows_of_one_class()
    model = kind(recipe, **settings)
    pipeline = make_pipeline(StandardScaler(), model)
    search = GridSearchCV(make_pipeline(pipeline), {"pipeline__steps": [pipeline.steps]}, cv=2)
    for fitted in (model, pipeline, search):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted.fit(X, y)
        ours = [warning for warning in caught if issubclass(warning.category, EquipoiseWarning)]
        assert category in {warning.category for warning in ours}
        assert {warning.filename for warning in ours} == {__file__}
