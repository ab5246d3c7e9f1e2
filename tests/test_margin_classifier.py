"""Linear models of the bounded margin loss: laws of the loss, descent, and what a fit says."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import equipoise
from equipoise import LabelCVaR, RobustLinearClassifier, RobustLogisticRegression, WorstClass
from equipoise.exceptions import InvalidParameterError, NotConvergedWarning
from equipoise.losses import Loss, TrainedLoss, margin_loss, margins, zero_one
from equipoise.losses.cross_entropy import CrossEntropy
from equipoise.losses.smooth_margin import SmoothMargin
from equipoise.sets import as_uncertainty
from equipoise.solvers import SOLVERS
from linear_models import class_risks, row_losses, small_data
from logistic_cases import (
    NAMES,
    assert_same_bits,
    assert_same_fit,
    draw,
    each_set,
    few_rows_allowed,
)
from test_linear_classifier import random_problem

CHECKED = [
    RobustLinearClassifier(loss="margin", tol=1e-9),
    RobustLinearClassifier(WorstClass(), "margin", tol=1e-9),
]
class_counts = pytest.mark.parametrize("k", [2, 3, 5])
few_classes = pytest.mark.parametrize("k", [2, 3])


@few_rows_allowed
@parametrize_with_checks(CHECKED)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


# The loss


def drawn_scores(k, n=200):
    """Rows of scores around zero, and the position of each row's class."""
    rng = np.random.default_rng(k)
    return rng.normal(size=(n, k)), rng.integers(0, k, n)


@settings(max_examples=50)
@given(st.integers(2, 6), st.floats(0.1, 10), st.floats(0.05, 2), st.floats(0.01, 1e3))
def test_it_lies_in_the_unit_interval_and_near_the_ramp(k, width, relative, spread):
    scores, labels = drawn_scores(k)
    scores *= spread
    values = SmoothMargin(width, relative).values(scores.T, labels)
    assert np.all((values >= 0) & (values <= 1))
    ramp = np.clip(1 - margins(labels, scores) / width, 0, 1)
    assert np.all(np.abs(values - ramp) <= relative * np.log(k) + 1e-12)


@class_counts
def test_its_limits_are_the_loss_of_the_paper_the_softmax_and_the_zero_one_loss(k):
    scores, labels = drawn_scores(k)
    sharp = SmoothMargin(smoothing=0.002).values(scores.T, labels)
    np.testing.assert_allclose(sharp, margin_loss(labels, scores), atol=0.002 * np.log(k))
    narrow = SmoothMargin(width=1e-6, smoothing=5e5).values(scores.T, labels)
    chances = softmax(2 * scores, axis=1)[np.arange(len(labels)), labels]
    np.testing.assert_allclose(narrow, 1 - chances, atol=1e-5)
    both = SmoothMargin(width=1e-6).values(scores.T, labels)
    assert np.abs(margins(labels, scores)).min() > 1e-4  # no ties
    np.testing.assert_allclose(both, zero_one(labels, scores.argmax(axis=1)), atol=1e-12)


@class_counts
@pytest.mark.parametrize("smoothing", [0.05, 0.25, 1.0])
@pytest.mark.parametrize("width", [0.7, (1.0, 2.0, 1.5, 3.0, 0.5)])
def test_what_is_left_of_the_curvature_is_the_part_that_is_not_negative(k, smoothing, width):
    scores, labels = drawn_scores(k)
    loss, step, f = SmoothMargin(width, smoothing), 1e-5, scores.T
    unit = step * np.eye(k)[:, :, None]
    true = np.array([loss.gradients(f + e, labels) - loss.gradients(f - e, labels) for e in unit])
    true = (true / (2 * step)).transpose(2, 0, 1)
    left = loss.curvature(f, labels).transpose(2, 0, 1)
    convex = np.linalg.eigvalsh(true)[:, 0] > -1e-6
    assert np.any(convex) and not np.all(convex)
    np.testing.assert_allclose(left[convex], true[convex], atol=1e-5)
    taken = np.linalg.eigvalsh((left - true)[~convex])
    assert taken[:, 0].min() > -1e-5 and np.all(taken[:, -1] > 0)  # nothing but one direction
    np.testing.assert_allclose(taken[:, :-1], 0, atol=1e-5)


@class_counts
def test_widths_by_class_are_scores_in_other_units(k):
    scores, labels = drawn_scores(k)
    loss = SmoothMargin().for_classes(16.0 ** np.arange(k)[::-1])
    assert loss.width == tuple(2.0 ** np.arange(k))
    assert loss.for_classes(np.ones(k)) is loss
    f, step = scores.T, 1e-6
    np.testing.assert_allclose(
        loss.values(f, labels), SmoothMargin().values(f / 2.0**labels, labels), rtol=1e-12
    )
    for a, e in enumerate(step * np.eye(k)[:, :, None]):
        difference = (loss.values(f + e, labels) - loss.values(f - e, labels)) / (2 * step)
        np.testing.assert_allclose(loss.gradients(f, labels)[a], difference, atol=1e-7)


# Descent


def objective(data, recipe, coef, intercept, C=1.0):
    """The robust objective by formulas of its own."""
    X, labels, weights = data
    prior = np.bincount(labels, weights) / weights.sum()
    risks = class_risks(X, labels, weights, coef, intercept, "margin")
    masses = as_uncertainty(recipe).resolve(prior, np.arange(len(prior)))
    return masses.support(risks) + np.sum(coef**2) / (2 * C * weights.sum())


@each_set
@class_counts
@few_rows_allowed
@pytest.mark.filterwarnings("ignore::equipoise.exceptions.InactiveCapsWarning")
def test_a_fit_ends_no_higher_than_the_convex_optimum_and_stationary(recipe, k):
    data = X, labels, weights = small_data(k, n_rows=120)
    convex = RobustLogisticRegression(recipe, tol=1e-9).fit(X, labels, sample_weight=weights)
    clf = RobustLinearClassifier(recipe, "margin", tol=1e-9).fit(X, labels, sample_weight=weights)
    start = objective(data, recipe, convex.coef_, convex.intercept_)
    end = objective(data, recipe, clf.coef_, clf.intercept_)
    assert end == pytest.approx(clf.objective_, rel=1e-9)
    assert clf.history_["objective"][0] <= start * (1 + 1e-6)
    assert end <= clf.history_["objective"][0]
    assert np.all(np.diff(clf.history_["objective"]) <= 0)
    assert clf.status_ == "stationary"
    assert_stationary(data, clf)


def assert_stationary(data, clf, step=1e-5):
    """Under the worst case's masses nothing slopes, and no other masses of the set weigh more."""
    X, labels, weights = data
    mass, theta = (
        np.asarray(clf.worst_case_masses_),
        np.hstack([clf.coef_, clf.intercept_[:, None]]),
    )

    def weighted(parameters):
        coef, intercept = parameters[:, :-1], parameters[:, -1]
        risks = class_risks(X, labels, weights, coef, intercept, "margin")
        return mass @ risks + np.sum(coef**2) / (2 * weights.sum())

    for place in np.ndindex(theta.shape):
        move = np.zeros_like(theta)
        move[place] = step
        slope = (weighted(theta + move) - weighted(theta - move)) / (2 * step)
        assert abs(slope) <= 1e-4
    risks = np.asarray(clf.class_risks_)
    assert clf.robust_risk_ <= mass @ risks + 1e-6


def brute_force(data, directions, sizes, shifts):
    """The least worst-class objective of two classes over a grid of coefficients and intercepts."""
    X, labels, _ = data
    counts, least = np.bincount(labels), np.inf
    widths = (counts.max() / counts) ** 0.25
    for direction, size in itertools.product(directions, sizes):
        scores = size * ((X @ direction)[None, :] + shifts[:, None]) / widths[labels]
        pairs, repeated = np.stack([0 * scores, scores], axis=-1), np.tile(labels, len(shifts))
        risks = row_losses(pairs.reshape(-1, 2), repeated, "margin").reshape(scores.shape)
        worst = np.maximum(risks[:, labels == 0].mean(axis=1), risks[:, labels == 1].mean(axis=1))
        least = min(least, worst.min() + size**2 * direction @ direction / (2 * len(labels)))
    return least


@few_rows_allowed
def test_one_feature_by_brute_force():
    """Classes that overlap once: one threshold is best, and the fit is at it."""
    x = np.array([-3, -2.5, -2, -1, 0.4, -0.5, 0.8, 1, 1.5, 2, 2.2, 3.0])
    data = x[:, None], np.repeat([0, 1], [5, 7]), np.ones(12)
    clf = RobustLinearClassifier("worst_class", "margin", tol=1e-8).fit(*data[:2])
    grid = brute_force(data, np.ones((1, 1)), np.geomspace(0.05, 5, 150), np.linspace(-3, 3, 241))
    assert clf.objective_ <= grid + 1e-6
    assert clf.objective_ >= grid - 1e-3  # the grid is that fine


@few_rows_allowed
def test_two_features_by_brute_force():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [12, 6])
    X = rng.normal(size=(18, 2)) + np.array([[0, 0], [2.0, 1.0]])[labels]
    data = X, labels, np.ones(18)
    clf = RobustLinearClassifier("worst_class", "margin", tol=1e-8).fit(X, labels)
    angles = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    grid = brute_force(data, directions, np.geomspace(0.2, 4, 16), np.linspace(-4, 4, 41))
    convex = RobustLogisticRegression("worst_class").fit(X, labels)
    assert clf.objective_ <= objective(data, "worst_class", convex.coef_, convex.intercept_)
    assert clf.objective_ <= grid + 1e-6
    assert clf.objective_ >= grid - 0.02


def test_rows_far_on_the_wrong_side_do_not_decide():
    """A heavy tail draws the cross-entropy away from a threshold that separates all other rows."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [400, 100])
    x = np.where(y == 0, -1.0, 1.0) + 0.3 * rng.normal(size=500)
    x[-3:] = -60.0
    X, errors = x[:, None], {}
    for name, clf in {
        "cross_entropy": RobustLogisticRegression("worst_class"),
        "margin": RobustLinearClassifier("worst_class", "margin", C=100.0),
    }.items():
        wrong = clf.fit(X, y).predict(X) != y
        errors[name] = max(wrong[y == 0].mean(), wrong[y == 1].mean())
    assert errors["margin"] <= 0.04
    assert errors["cross_entropy"] >= 0.3


@few_classes
def test_a_wider_margin_is_another_penalty(k):
    X, y = draw(k=k)
    wide = Loss.of_scores("wide", SmoothMargin(width=2.0))
    one = RobustLinearClassifier(LabelCVaR(0.6), "margin", C=0.5, tol=1e-10).fit(X, y)
    other = RobustLinearClassifier(LabelCVaR(0.6), wide, C=2.0, tol=1e-10).fit(X, y)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-4)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_solver_ends_above_the_convex_optimum(solver):
    X, y = draw(k=3)
    data = X, y, np.ones(len(y))
    convex = RobustLogisticRegression("worst_class").fit(X, y)
    settings = {"tol": 1e-2, "max_iter": 3000} if solver == "descent-ascent" else {}
    clf = RobustLinearClassifier("worst_class", "margin", solver=solver, **settings)
    if solver == "descent-ascent":
        with pytest.warns(NotConvergedWarning):
            clf.fit(X, y)
    else:
        clf.fit(X, y)  # a warning is an error
    assert clf.objective_ <= objective(data, "worst_class", convex.coef_, convex.intercept_)


@pytest.mark.parametrize("block", range(2))
@few_rows_allowed
@pytest.mark.filterwarnings("ignore::equipoise.exceptions.InactiveCapsWarning")
def test_random_problems_end_at_stationary_points(block):
    for seed in range(20 * block, 20 * block + 20):
        X, labels, weights, clf = random_problem(seed)
        clf.set_params(loss="margin").fit(X, labels, sample_weight=weights)  # a warning is an error
        assert clf.status_ == "stationary", seed
        assert np.all(np.diff(clf.history_["objective"]) <= 0), seed


class ChanceOfError(TrainedLoss):
    """One minus the softmax of the true class, as a third party would write it."""

    way = (CrossEntropy(),)

    def values(self, scores, labels):
        return 1 - softmax(scores, axis=0)[labels, np.arange(len(labels))]

    def gradients(self, scores, labels):
        return (1 - self.values(scores, labels)) * CrossEntropy().gradients(scores, labels)

    def curvature(self, scores, labels):
        return (1 - self.values(scores, labels)) * CrossEntropy().curvature(scores, labels)


@few_classes
def test_another_loss_that_is_not_convex_descends_from_the_optimum_on_its_way(k):
    X, y = draw(k=k)
    loss = Loss.of_scores("chance_of_error", ChanceOfError())
    convex = RobustLogisticRegression("worst_class").fit(X, y)
    clf = RobustLinearClassifier("worst_class", loss).fit(X, y)
    start = 1 - convex.predict_proba(X)[np.arange(len(y)), y]
    worst = max(start[y == i].mean() for i in range(k))
    assert clf.status_ == "stationary" and clf.lower_bound_ == -np.inf
    assert clf.objective_ < worst + np.sum(convex.coef_**2) / (2 * len(y))


# What a fit says of itself


@few_classes
def test_no_bound_is_claimed(k):
    X, y = draw(k=k)
    clf = RobustLinearClassifier(loss="margin").fit(X, y)
    assert clf.lower_bound_ == -np.inf and clf.duality_gap_ == np.inf
    assert np.all(np.isinf(clf.history_["gap"]))
    assert clf.status_ == "stationary" and "no bound" in clf.message_
    assert clf.n_evaluations_ > clf.n_iter_ >= 1
    assert np.all((np.asarray(clf.class_risks_) >= 0) & (np.asarray(clf.class_risks_) <= 1))


@few_classes
def test_a_fit_that_runs_out_of_steps_says_so(k):
    X, y = draw(k=k)
    clf = RobustLinearClassifier("worst_class", "margin", max_iter=1, tol=1e-12)
    with pytest.warns(NotConvergedWarning, match="ran out .* It stopped after 1 iterations"):
        clf.fit(X, y)
    assert clf.status_ == "max_iter" and clf.lower_bound_ == -np.inf


def test_a_penalty_is_needed():
    with pytest.raises(InvalidParameterError, match=r"SmoothMargin.*needs a finite C, got inf"):
        RobustLinearClassifier(loss="margin", C=np.inf).fit(*draw())


def test_the_risks_are_near_those_of_the_paper_where_classes_are_alike():
    X, y = draw(k=3)
    X = np.vstack([X[y == i][:30] for i in range(3)])
    y = np.repeat(np.arange(3), 30)
    clf = RobustLinearClassifier(loss="margin").fit(X, NAMES[y])
    risks = equipoise.class_risks(NAMES[y], clf.decision_function(X), loss="margin")
    np.testing.assert_allclose(list(risks.values()), clf.class_risks_, atol=0.25 * np.log(3))


# Used


@few_classes
def test_text_labels_and_their_order_change_nothing(k):
    X, y = draw(k=k)
    clf = RobustLinearClassifier("worst_class", "margin", tol=1e-9)
    ahead, names = clone(clf).fit(X, y), np.array(["c", "b", "a"])
    backwards = clone(clf).fit(X, names[y])
    assert backwards.objective_ == pytest.approx(ahead.objective_, rel=1e-6)
    np.testing.assert_array_equal(names[ahead.predict(X)], backwards.predict(X))


def test_weights_of_rows_are_rows_that_occur_often():
    X, y = draw(k=3)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    one = RobustLinearClassifier(LabelCVaR(0.6), "margin", tol=1e-10)
    one.fit(X, y, sample_weight=times)
    other = clone(one).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_same_fit(one, other, 1e-3)


def test_sparse_rows_and_single_precision_fit_the_same():
    X, y = draw(k=3)
    X[::2, 1] = 0
    clf = RobustLinearClassifier(LabelCVaR(0.6), "margin", tol=1e-10).fit(X.astype(np.float32), y)
    for store in (sp.csr_matrix, sp.csr_array, np.asfortranarray):
        assert_same_fit(clf, clone(clf).fit(store(X.astype(np.float32).astype(float)), y), 1e-3)


def test_a_warm_start_is_never_left_for_a_worse_one():
    X, y = draw(k=3, n=2000)
    clf = RobustLinearClassifier(LabelCVaR(0.6), "margin", warm_start=True).fit(X, y)
    cold, found = clf.n_iter_, clf.objective_
    assert clf.fit(X, y).objective_ <= found
    assert clf.n_iter_ <= cold / 2


def test_a_warm_start_where_the_loss_is_flat_is_left():
    """All rows far on one side of every score: nothing slopes there."""
    X, y = draw(k=3)
    best = RobustLinearClassifier("worst_class", "margin").fit(X, y)
    warm = clone(best).set_params(warm_start=True).fit(X, y)
    warm.intercept_ = np.array([1e3, 0.0, 0.0])
    assert warm.fit(X, y).objective_ == pytest.approx(best.objective_, rel=0.02)


def test_clones_pickles_and_files_predict_the_same(tmp_path):
    X, y = draw(k=3)
    clf = RobustLinearClassifier(LabelCVaR(0.6), "margin").fit(X, NAMES[y])
    assert_same_bits(clone(clf).fit(X, NAMES[y]), clf)
    assert_same_bits(pickle.loads(pickle.dumps(clf)), clf)
    equipoise.save_model(clf, tmp_path / "margin.equipoise")
    again = equipoise.load_model(tmp_path / "margin.equipoise").model
    assert again.duality_gap_ == np.inf and again.lower_bound_ == -np.inf
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.EquipoiseWarning")
def test_grid_search_over_the_penalty():
    X, y = draw(k=3)
    search = GridSearchCV(RobustLinearClassifier(loss="margin"), {"C": [0.01, 1.0]}, cv=3)
    assert np.all(np.isfinite(search.fit(X, NAMES[y]).cv_results_["mean_test_score"]))
