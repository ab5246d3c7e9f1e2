"""RobustLogisticRegression as an estimator: what it promises, and scikit-learn's own checks."""

import os
import pickle
import subprocess
import sys
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise import (
    FixedWeights,
    LabelCVaR,
    PriorBall,
    RobustLogisticRegression,
    WeightBox,
    WorstClass,
    population_proba,
)
from equipoise.exceptions import UnidentifiableError
from equipoise.weights.by_class import ByClass
from logistic_cases import (
    NAMES,
    assert_same_bits,
    draw,
    each_set,
    few_rows_allowed,
)

CHECKED = [
    RobustLogisticRegression(),
    RobustLogisticRegression(WorstClass(), fit_intercept=False),
    RobustLogisticRegression(FixedWeights("standard"), solver="sqp-lbfgs"),
    RobustLogisticRegression(PriorBall(0.1), warm_start=True),
]


@few_rows_allowed
@parametrize_with_checks(CHECKED)
def test_every_check_of_scikit_learn_passes(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        # Only the run on the oldest versions turns the array API off.
        if os.environ["SCIPY_ARRAY_API"]:
            pytest.fail(f"skipped: {reason}")
        raise


@each_set
def test_two_classes_have_one_coefficient_vector(recipe):
    X, y = draw(k=2)
    clf = RobustLogisticRegression(recipe).fit(X, y)
    assert clf.coef_.shape == (1, 4) and clf.intercept_.shape == (1,)
    assert clf.decision_function(X).shape == (300,) and clf.predict_proba(X).shape == (300, 2)
    assert clf.status_ == "converged"


@few_rows_allowed
@each_set
def test_more_classes_have_one_each_that_sum_to_zero(recipe):
    X, y = draw(k=4)
    clf = RobustLogisticRegression(recipe).fit(X, y)
    assert clf.coef_.shape == (4, 4) and clf.intercept_.shape == (4,)
    assert clf.decision_function(X).shape == (300, 4)
    np.testing.assert_allclose(clf.coef_.sum(axis=0), 0, atol=1e-10)
    assert clf.intercept_.sum() == pytest.approx(0, abs=1e-10)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.InactiveCapsWarning")
def test_no_set_is_label_cvar_at_a_tenth():
    X, y = draw()
    assert_same_bits(
        RobustLogisticRegression().fit(X, y), RobustLogisticRegression(LabelCVaR(0.1)).fit(X, y)
    )


@pytest.mark.parametrize("name", ["standard", "balanced"])
def test_sets_can_be_named(name):
    X, y = draw()
    recipe = FixedWeights(name)
    assert_same_bits(
        RobustLogisticRegression(name).fit(X, y), RobustLogisticRegression(recipe).fit(X, y)
    )


@pytest.mark.parametrize("k", [2, 3])
def test_fitted_attributes(k):
    X, y = draw(k=k)
    clf = RobustLogisticRegression(LabelCVaR(0.5)).fit(X, NAMES[y])
    per_class = (
        clf.class_risks_,
        clf.worst_case_weights_,
        clf.worst_case_masses_,
        clf.class_prior_,
    )
    for values in per_class:
        assert isinstance(values, ByClass) and list(values) == NAMES[:k].tolist()
    assert clf.n_iter_ >= 1 and clf.n_evaluations_ >= clf.n_iter_
    assert clf.status_ == "converged" and clf.message_.endswith(".")
    assert {"iteration", "evaluations", "objective", "gap"} <= set(clf.history_)
    history = clf.history_
    assert len({len(column) for column in history.values()}) == 1
    assert history["objective"][-1] == clf.objective_
    assert history["gap"][-1] == pytest.approx(clf.duality_gap_, abs=clf.tol * clf.objective_)
    assert np.all(np.diff(history["objective"]) <= 0)
    assert np.all(np.diff(history["evaluations"]) >= 0)


@each_set
@pytest.mark.parametrize("k", [2, 3])
def test_probabilities_agree_with_predictions(recipe, k):
    X, y = draw(k=k)
    clf = RobustLogisticRegression(recipe).fit(X, NAMES[y])
    probabilities = clf.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(clf.classes_[probabilities.argmax(axis=1)], clf.predict(X))
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), probabilities, rtol=1e-10)
    scores = clf.decision_function(X)
    best = (scores > 0).astype(int) if k == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(clf.classes_[best], clf.predict(X))


def test_logarithms_survive_where_probabilities_do_not():
    X, y = draw(k=2)
    clf = RobustLogisticRegression().fit(X, y)
    far = 1e4 * np.sign(clf.coef_)
    assert clf.predict_proba(far)[0, 0] == 0
    assert np.all(np.isfinite(clf.predict_log_proba(far)))


# Probabilities on other scales


def gaussian(n=40_000, seed=0):
    """Two Gaussian classes: the logistic model is true, and P(Y = 1 | x) is known."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    X = rng.normal(size=(n, 2)) + np.outer(y, [1.0, -0.5])
    return X, y, 1 / (1 + 9 * np.exp(-(X @ [1.0, -0.5] - 0.625)))


@pytest.mark.parametrize(
    "recipe", [FixedWeights("balanced"), WorstClass(), LabelCVaR(0.5)], ids=str
)
def test_population_probabilities_are_those_of_the_population(recipe):
    X, y, truth = gaussian()
    clf = RobustLogisticRegression(recipe, C=1e3).fit(X, y)
    plain = RobustLogisticRegression("standard", C=1e3).fit(X, y)
    population = population_proba(clf, X)
    assert np.abs(population - plain.predict_proba(X)).max() < 0.06
    assert (
        np.abs(population[:, 1] - truth).mean()
        < 0.01
        < np.abs(clf.predict_proba(X)[:, 1] - truth).mean()
    )
    # The mean probability is the share of the class.
    assert population[:, 1].mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("k", [2, 3])
def test_population_probabilities_of_a_standard_fit_are_its_own(k):
    X, y = draw(k=k)
    clf = RobustLogisticRegression("standard").fit(X, y)
    np.testing.assert_allclose(population_proba(clf, X), clf.predict_proba(X), rtol=1e-12)


@each_set
@pytest.mark.parametrize("k", [2, 3])
def test_a_stated_prior_obeys_bayes_rule(recipe, k):
    X, y = draw(k=k)
    clf = RobustLogisticRegression(recipe).fit(X, NAMES[y])
    target = np.arange(1, k + 1) / np.arange(1, k + 1).sum()
    odds = clf.predict_proba(X) * target / np.asarray(clf.worst_case_masses_)
    expected = odds / odds.sum(axis=1, keepdims=True)
    by_name = dict(zip(NAMES[:k].tolist(), target, strict=True))
    for prior in (target, by_name):
        np.testing.assert_allclose(population_proba(clf, X, prior), expected, rtol=1e-9)
    own = population_proba(clf, X, class_prior=clf.worst_case_masses_)
    np.testing.assert_allclose(own, clf.predict_proba(X), rtol=1e-9)


def test_a_class_without_mass_has_no_population_probability():
    X, y = draw(k=3)
    clf = RobustLogisticRegression(WeightBox(upper={"common": 0.0})).fit(X, NAMES[y])
    with pytest.raises(UnidentifiableError, match="Class 'common' carries no mass"):
        population_proba(clf, X)
    probabilities = population_proba(clf, X, [0.0, 0.5, 0.5])
    assert np.all(probabilities[:, 0] == 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


# In the company of scikit-learn


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_to_sklearn_predicts_the_same(k, fit_intercept):
    X, y = draw(k=k)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = RobustLogisticRegression(C=np.inf, fit_intercept=fit_intercept).fit(frame, NAMES[y])
    twin = clf.to_sklearn()
    assert type(twin) is LogisticRegression and twin.feature_names_in_.tolist() == list(frame)
    np.testing.assert_array_equal(twin.predict(frame), clf.predict(frame))
    np.testing.assert_array_equal(twin.decision_function(frame), clf.decision_function(frame))
    for method in ("predict_proba", "predict_log_proba"):
        np.testing.assert_allclose(
            getattr(twin, method)(frame), getattr(clf, method)(frame), rtol=1e-9, atol=1e-15
        )
    assert clone(twin).fit(frame, y).coef_.shape == clf.coef_.shape
    twin.coef_[:] = 0
    assert np.any(clf.coef_)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    X, y = draw()
    clf = RobustLogisticRegression(LabelCVaR(0.4)).fit(X, NAMES[y])
    again = pickle.loads(pickle.dumps(clf, protocol))
    assert_same_bits(again, clf)
    np.testing.assert_array_equal(population_proba(again, X), population_proba(clf, X))
    assert again.class_risks_["rare"] == clf.class_risks_["rare"]


def test_clone_takes_the_settings_and_nothing_else():
    X, y = draw()
    clf = RobustLogisticRegression(LabelCVaR(0.4), C=3.0, class_prior=[0.5, 0.3, 0.2]).fit(X, y)
    fresh = clone(clf)
    assert not hasattr(fresh, "coef_") and fresh.C == 3.0 and fresh.goal.alpha == 0.4
    assert fresh.goal is not clf.goal
    assert repr(fresh) == repr(clf) and "LabelCVaR(alpha=0.4)" in repr(clf)
    assert_same_bits(fresh.fit(X, y), clf)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.InactiveCapsWarning")
def test_grid_search_over_the_set_and_the_penalty():
    X, y = draw(k=3)
    grid = {"goal__alpha": [0.9, 0.5, 0.2], "C": [0.01, 1.0]}
    search = GridSearchCV(RobustLogisticRegression(LabelCVaR(0.5)), grid, cv=3).fit(X, NAMES[y])
    assert search.best_params_["goal__alpha"] in grid["goal__alpha"]
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    other = {"goal": [None, "balanced", PriorBall(0.1)]}
    assert GridSearchCV(RobustLogisticRegression(), other, cv=3).fit(X, y).best_score_ > 0.3


def test_in_a_pipeline():
    X, y = draw(k=3)
    pipeline = make_pipeline(StandardScaler(), RobustLogisticRegression(LabelCVaR(0.4)))
    pipeline.set_params(robustlogisticregression__goal__alpha=0.3)
    pipeline.fit(X, NAMES[y], robustlogisticregression__sample_weight=np.ones(len(y)))
    assert pipeline[-1].goal.alpha == 0.3
    assert pipeline.predict_proba(X).shape == (300, 3)
    scores = cross_validate(pipeline, X, NAMES[y], cv=3, scoring="balanced_accuracy")
    assert np.all(scores["test_score"] > 0.3)


def test_sample_weights_are_routed():
    X, y = draw(k=3)
    weights = np.random.default_rng(0).uniform(0.1, 3, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = RobustLogisticRegression(LabelCVaR(0.4)).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(clf).fit(X, y, sample_weight=weights)
    direct = RobustLogisticRegression(LabelCVaR(0.4)).fit(X, y, weights)
    assert_same_bits(pipeline[-1], direct)


# Repeated fits


@few_rows_allowed
@each_set
@pytest.mark.parametrize("k", [2, 4])
def test_a_warm_start_from_the_solution_is_nearly_done(recipe, k):
    X, y = draw(k=k)
    clf = RobustLogisticRegression(recipe, warm_start=True).fit(X, y)
    first = clf.objective_
    assert clf.fit(X, y).n_iter_ <= 2
    assert clf.objective_ <= first * (1 + 1e-12) and clf.status_ == "converged"


def test_a_warm_start_follows_what_changes():
    X, y = draw(k=3)
    clf = RobustLogisticRegression(LabelCVaR(0.4), warm_start=True).fit(X, y)
    for change in ({"C": 1.1}, {"goal": LabelCVaR(0.38)}, {"fit_intercept": False}):
        clf.set_params(**change).fit(X, y)
        cold = clone(clf).fit(X, y)
        assert clf.objective_ == pytest.approx(cold.objective_, rel=2e-6)
    # Other classes or other features: nothing to start from, and no error.
    assert clf.fit(X[:, :2], y).coef_.shape == (3, 2)
    assert clf.fit(X[y < 2], y[y < 2]).coef_.shape == (1, 4)


def test_without_warm_start_the_past_does_not_matter():
    X, y = draw(k=3)
    used = RobustLogisticRegression(LabelCVaR(0.4)).fit(X[:100], y[:100])
    assert_same_bits(used.fit(X, y), RobustLogisticRegression(LabelCVaR(0.4)).fit(X, y))


@each_set
def test_the_same_input_gives_the_same_bits(recipe):
    X, y = draw(k=3, n=500)
    first = RobustLogisticRegression(recipe).fit(X, y)
    # Copies that start at another place in memory.
    shifted = np.empty(X.size + 3)[3:].reshape(X.shape)
    shifted[:] = X
    for given in (X, X.copy(), shifted):
        assert_same_bits(RobustLogisticRegression(recipe).fit(given, y), first)


PRINT_A_FIT = """
import hashlib, warnings
import numpy as np
from equipoise import LabelCVaR, PriorBall, RobustLogisticRegression
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
for n, recipe in ((400, PriorBall(0.1)), (30_000, LabelCVaR(0.3))):
    X, y = rng.normal(size=(n, 12)), rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    X += y[:, None] / 2
    for given in (X, X.astype(np.float32)):
        clf = RobustLogisticRegression(recipe).fit(given, y)
        parts = (clf.coef_, clf.intercept_, np.asarray(clf.class_risks_))
        bits = b"".join(part.tobytes() for part in parts)
        print(hashlib.sha256(bits).hexdigest(), clf.lower_bound_.hex(), clf.n_evaluations_)
"""


def test_other_processes_and_other_numbers_of_threads_give_the_same_bits():
    prints = []
    for threads in ("1", "2"):
        limits = {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", PRINT_A_FIT],
            env=os.environ | limits,
            capture_output=True,
            text=True,
            check=True,
        )
        prints.append(done.stdout.splitlines())
    assert prints[0] == prints[1] and len(prints[0]) == 4


def test_verbose_is_short(capsys):
    X, y = draw(k=3)
    RobustLogisticRegression(LabelCVaR(0.4), verbose=1).fit(X, y)
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) <= 3 and max(map(len, err.splitlines())) <= 100
    assert "gap" in err and "tolerance" in err
    RobustLogisticRegression(LabelCVaR(0.4)).fit(X, y)
    assert capsys.readouterr() == ("", "")
