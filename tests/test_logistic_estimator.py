"""RobustLogisticRegression as an estimator: scikit-learn's own checks, data formats, invariances."""

import os
import pickle
import subprocess
import sys
import tracemalloc
import warnings
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
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
    LabelHCVaR,
    PriorBall,
    PriorBox,
    RobustLogisticRegression,
    WeightBox,
    WeightHull,
    WorstClass,
)
from equipoise.by_class import ByClass
from equipoise.exceptions import FewRowsWarning, InactiveCapsWarning, UnidentifiableError

SETS = [
    FixedWeights("standard"),
    FixedWeights("balanced"),
    WorstClass(),
    LabelCVaR(0.4),
    LabelHCVaR(c=0.8, kappa=3),
    WeightBox(0.5, 2.0),
    PriorBox(0.05, 0.9),
    PriorBall(0.1, "kl"),
    PriorBall(0.2, "chi2"),
    PriorBall(0.1, "tv"),
    PriorBall(0.2, "l2"),
    WeightHull(["standard", "balanced"]),
]
each_set = pytest.mark.parametrize("recipe", SETS, ids=str)
few_rows_allowed = pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
NAMES = np.array(["common", "less common", "rare", "scarce"])


def draw(k=3, n=300, d=4, seed=0):
    """Overlapping classes, the first the most common, the last the rarest."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, size=n, p=0.35 ** np.arange(k) / (0.35 ** np.arange(k)).sum())
    return rng.normal(size=(k, d))[y] + 1.5 * rng.normal(size=(n, d)), y


def tight(recipe="worst-class", **settings):
    return RobustLogisticRegression(recipe, tol=1e-10, **settings)


def assert_same_fit(one, other, atol=1e-5):
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=atol)
    np.testing.assert_allclose(one.worst_case_masses_, other.worst_case_masses_, atol=atol)


def assert_same_bits(one, other):
    for name in ("coef_", "intercept_", "class_risks_", "worst_case_weights_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.lower_bound_ == other.lower_bound_ and one.robust_risk_ == other.robust_risk_


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
        clf.class_risks_, clf.worst_case_weights_, clf.worst_case_masses_, clf.class_prior_,
    )  # fmt: skip
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


# Data formats


STORES = {
    "csr_matrix": sp.csr_matrix,
    "csc_matrix": sp.csc_matrix,
    "coo_matrix": sp.coo_matrix,
    "csr_array": sp.csr_array,
    "csc_array": sp.csc_array,
    "fortran": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcd")),
    "pandas nullable": lambda X: pd.DataFrame(X, columns=list("abcd")).convert_dtypes(),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcd")),
    "big-endian": lambda X: X.astype(">f8"),
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("store", STORES)
def test_the_storage_does_not_matter(store, k):
    X, y = draw(k=k)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    expected = tight(LabelCVaR(0.4)).fit(X, y)
    given = STORES[store](X)
    clf = tight(LabelCVaR(0.4)).fit(given, y)
    assert_same_fit(clf, expected)
    np.testing.assert_allclose(clf.predict_proba(given), expected.predict_proba(X), atol=1e-5)


def test_sparse_indices_may_be_of_64_bits():
    X, y = draw()
    X = sp.csr_matrix(X)
    expected = RobustLogisticRegression().fit(X, y)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    clf = RobustLogisticRegression().fit(X, y)
    assert_same_bits(clf, expected)
    np.testing.assert_array_equal(clf.predict(X), expected.predict(X))


def test_the_data_are_not_changed():
    X, y = draw()
    weights = np.ones(len(y))
    for given in (X.copy(), X.astype(np.float32), sp.csr_matrix(X), sp.csc_matrix(X)):
        before = given.copy()
        RobustLogisticRegression().fit(given, y, sample_weight=weights).predict(given)
        assert abs(given - before).max() == 0


LABELS = {
    "strings": lambda names: names,
    "objects": lambda names: names.astype(object),
    "list": lambda names: names.tolist(),
    "pandas": pd.Series,
    "pandas string": lambda names: pd.Series(names, dtype="string"),
    "pandas category": lambda names: pd.Series(pd.Categorical(names, categories=NAMES[::-1])),
    "pandas index": lambda names: pd.Series(names, index=np.arange(len(names))[::-1]),
    "polars": lambda names: pl.Series("label", names.tolist()),
    "polars category": lambda names: pl.Series("label", names.tolist(), dtype=pl.Categorical),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_may_be_names(kind):
    X, y = draw()
    expected = RobustLogisticRegression().fit(X, y)
    clf = RobustLogisticRegression().fit(X, LABELS[kind](NAMES[y]))
    assert_same_bits(clf, expected)
    assert clf.classes_.tolist() == NAMES[:3].tolist()
    np.testing.assert_array_equal(clf.predict(X), NAMES[expected.predict(X)])
    assert clf.score(X, NAMES[y]) == expected.score(X, y)


@pytest.mark.parametrize(
    "labels",
    [lambda y: y == 1, lambda y: y * 2.0, lambda y: y.astype(np.uint8), lambda y: 5 - 10 * y],
    ids=["bool", "float", "uint8", "negative"],
)
def test_labels_may_be_numbers(labels):
    X, y = draw(k=2)
    clf = RobustLogisticRegression().fit(X, labels(y))
    assert clf.classes_.dtype == labels(y).dtype
    assert set(clf.predict(X)) == set(labels(y))


@pytest.mark.parametrize("dtype", ["Int64", "category", object, "int64[pyarrow]"])
def test_integer_labels_in_a_frame(dtype):
    X, y = draw()
    clf = RobustLogisticRegression().fit(X, pd.Series(y, dtype=dtype))
    assert_same_bits(clf, RobustLogisticRegression().fit(X, y))
    np.testing.assert_array_equal(clf.classes_, [0, 1, 2])


def test_feature_names_are_kept_and_checked():
    X, y = draw()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    clf = RobustLogisticRegression().fit(frame, y)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame[["b", "a", "c", "d"]])


# Single precision


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("k", [2, 3])
def test_single_precision_agrees(k, store):
    X, y = draw(k=k)
    double = RobustLogisticRegression(LabelCVaR(0.4)).fit(store(X), y)
    single = RobustLogisticRegression(LabelCVaR(0.4)).fit(store(X.astype(np.float32)), y)
    assert single.status_ == "converged"
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-5)
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-3)
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-3)


def peak_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_single_precision_data_are_never_copied_to_double(store):
    # Wide rows, so that nothing else of their number counts.
    X, y = draw(k=3, n=24_000, d=60)
    given = store(X.astype(np.float32))
    size = X.size * 4 * (1 if store is np.asarray else 2)
    clf = RobustLogisticRegression(LabelCVaR(0.4), tol=1e-2)
    # One copy to sort the rows by class; a second in float64 would be two sizes more.
    assert peak_bytes(lambda: clf.fit(given, y)) < 2.5 * size
    assert peak_bytes(lambda: clf.predict(given)) < 1.9 * X.size * 4
    # Rows that come sorted need no copy at all.
    order = np.argsort(y, kind="stable")
    ordered, labels = given[order], y[order]
    assert peak_bytes(lambda: clf.fit(ordered, labels)) < 1.5 * size


def test_sparse_data_stay_sparse():
    rng = np.random.default_rng(0)
    X = sp.random(3000, 20_000, density=5e-4, format="csr", random_state=rng)
    y = rng.integers(0, 2, 3000)
    clf = RobustLogisticRegression()
    peak = peak_bytes(lambda: clf.fit(X, y).predict(X))
    assert peak < 0.1 * X.shape[0] * X.shape[1] * 8
    assert clf.status_ == "converged"


# Weights, priors and invariances


@each_set
def test_integer_weights_repeat_rows(recipe):
    X, y = draw(k=3)
    counts = np.random.default_rng(1).integers(1, 4, len(y))
    weighted = tight(recipe).fit(X, y, sample_weight=counts)
    repeated = tight(recipe).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert_same_fit(weighted, repeated)
    np.testing.assert_allclose(weighted.class_prior_, repeated.class_prior_, rtol=1e-12)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_rows_without_weight_are_not_there(store):
    X, y = draw(k=3)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    weights[::3] = 0
    X[::3] *= 1e9
    used = weights > 0
    one = RobustLogisticRegression().fit(store(X), y, sample_weight=weights)
    other = RobustLogisticRegression().fit(store(X[used]), y[used], sample_weight=weights[used])
    assert_same_bits(one, other)


def test_rows_without_weight_do_not_count_as_rows():
    X, y = draw(k=2)
    rare = np.flatnonzero(y == 1)
    weights = np.ones(len(y))
    weights[rare[6:]] = 0
    with pytest.warns(FewRowsWarning, match="Class 1 has 6 rows"):
        RobustLogisticRegression(WorstClass()).fit(X, y, sample_weight=weights)


def test_weights_scale_with_the_penalty():
    # C n counts: twice the weights at half the C is the same problem.
    X, y = draw()
    one = tight(LabelCVaR(0.4)).fit(X, y)
    other = tight(LabelCVaR(0.4), C=0.5).fit(X, y, sample_weight=np.full(len(y), 2.0))
    assert_same_fit(one, other)


@each_set
def test_the_order_of_the_rows_does_not_matter(recipe):
    X, y = draw(k=3)
    order = np.random.default_rng(2).permutation(len(y))
    assert_same_fit(tight(recipe).fit(X, y), tight(recipe).fit(X[order], y[order]))


@each_set
def test_names_of_the_classes_do_not_matter(recipe):
    X, y = draw(k=3)
    new = np.array([2, 0, 1])  # class i is called new[i]
    one, other = tight(recipe).fit(X, y), tight(recipe).fit(X, new[y])
    np.testing.assert_allclose(other.coef_[new], one.coef_, atol=1e-5)
    np.testing.assert_allclose(
        np.asarray(other.worst_case_weights_)[new], one.worst_case_weights_, atol=1e-4
    )


def test_exchanging_two_classes_turns_the_sign():
    X, y = draw(k=2)
    one, other = tight(LabelCVaR(0.4)).fit(X, y), tight(LabelCVaR(0.4)).fit(X, 1 - y)
    np.testing.assert_allclose(other.coef_, -one.coef_, atol=1e-6)
    np.testing.assert_allclose(other.intercept_, -one.intercept_, atol=1e-6)


def test_a_shift_of_the_features_goes_into_the_intercepts():
    X, y = draw(k=3)
    one, other = tight(LabelCVaR(0.4)).fit(X, y), tight(LabelCVaR(0.4)).fit(X + 50.0, y)
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-5)
    np.testing.assert_allclose(other.predict_proba(X + 50.0), one.predict_proba(X), atol=1e-5)


def test_class_prior_by_name_and_by_position():
    X, y = draw(k=3)
    prior = {"rare": 0.1, "common": 0.6, "less common": 0.3}
    by_name = RobustLogisticRegression(LabelCVaR(0.4), class_prior=prior).fit(X, NAMES[y])
    by_place = RobustLogisticRegression(LabelCVaR(0.4), class_prior=[0.6, 0.3, 0.1]).fit(X, y)
    assert_same_bits(by_name, by_place)
    assert by_name.class_prior_.to_dict() == pytest.approx(prior)
    again = RobustLogisticRegression(LabelCVaR(0.4), class_prior=by_name.class_prior_)
    assert_same_bits(again.fit(X, NAMES[y]), by_name)


def test_class_prior_of_the_sample_is_the_default():
    X, y = draw(k=3)
    prior = np.bincount(y) / len(y)
    one = tight(LabelCVaR(0.4)).fit(X, y)
    assert_same_fit(one, tight(LabelCVaR(0.4), class_prior=prior).fit(X, y))
    np.testing.assert_allclose(one.class_prior_, prior, rtol=1e-15)


def test_class_prior_undoes_a_biased_sample():
    # Rows of class 0 drawn half as often: the prior tells, and weights of two repair the same.
    X, y = draw(k=3, n=1000)
    weights = np.where(y == 0, 2.0, 1.0)
    prior = np.bincount(y, weights=weights) / weights.sum()
    told = tight("standard", class_prior=prior, C=np.inf).fit(X, y)
    weighted = tight("standard", C=np.inf).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(told.coef_, weighted.coef_, atol=1e-5)


def test_weights_refer_to_the_class_prior():
    X, y = draw(k=2)
    clf = RobustLogisticRegression(LabelCVaR(0.5), class_prior=[0.95, 0.05]).fit(X, y)
    # The cap on a class of prior 0.05 is 0.1, whatever its share of the rows.
    assert clf.worst_case_weights_[1] == pytest.approx(2.0)
    assert clf.worst_case_masses_[1] == pytest.approx(0.1)


# Corners of the problem


def test_forty_classes():
    rng = np.random.default_rng(0)
    X, B = rng.normal(size=(2000, 6)), rng.normal(size=(6, 40))
    y = (X @ B + rng.gumbel(size=(2000, 40))).argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRowsWarning)
        worst = RobustLogisticRegression(WorstClass()).fit(X, y)
    plain = RobustLogisticRegression("standard").fit(X, y)
    assert worst.status_ == plain.status_ == "converged"
    assert worst.class_risks_.max() < plain.class_risks_.max()


def test_five_rows_in_five_thousand():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 5)), np.zeros(5000, dtype=int)
    y[:5], X[:5] = 1, X[:5] + 1
    with pytest.warns(FewRowsWarning, match="Class 1 has 5 rows but carries") as caught:
        worst = RobustLogisticRegression(WorstClass()).fit(X, y)
    assert caught[0].filename == __file__
    capped = RobustLogisticRegression(LabelCVaR(0.1)).fit(X, y)
    assert capped.worst_case_weights_[1] == pytest.approx(10.0)
    assert worst.class_risks_[1] < capped.class_risks_[1]


def test_few_rows_at_a_weighting_of_the_users_own_are_no_surprise():
    X, y = draw(k=2)
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:5]]
    RobustLogisticRegression(FixedWeights("balanced")).fit(X[rows], y[rows])


@few_rows_allowed
@each_set
def test_more_features_than_rows(recipe):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 90)), np.repeat([0, 1, 2], [20, 12, 8])
    clf = RobustLogisticRegression(recipe).fit(X, y)
    assert clf.status_ == "converged" and clf.score(X, y) == 1


def test_a_class_without_mass_leaves_the_model():
    X, y = draw(k=3)
    clf = RobustLogisticRegression(WeightBox(upper={0: 0.0})).fit(X, y)
    assert clf.status_ == "converged" and clf.worst_case_weights_[0] == 0
    assert np.all(np.isfinite(clf.coef_)) and np.all(np.isfinite(clf.intercept_))
    # The fit without its rows: fewer of them in the penalty, and one vector w instead of w/2, -w/2.
    kept = y > 0
    alone = RobustLogisticRegression(WorstClass(), C=2 / np.mean(kept)).fit(X[kept], y[kept])
    assert clf.objective_ == pytest.approx(alone.objective_, rel=2e-6)
    np.testing.assert_array_equal(clf.predict(X[kept]), alone.predict(X[kept]))


def test_a_prior_of_zero_may_still_carry_mass():
    # A set of priors can reach a class that the training prior has not.
    X, y = draw(k=3)
    clf = RobustLogisticRegression(PriorBox(0.2, 0.6), class_prior=[0.5, 0.5, 0.0], warm_start=True)
    clf.fit(X, y)
    assert clf.worst_case_weights_[2] == np.inf and 0.2 <= clf.worst_case_masses_[2] <= 0.6
    assert clf.fit(X, y).n_iter_ <= 2
    probabilities = clf.predict_population_proba(X)
    assert np.all(probabilities[:, 2] == 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_caps_that_do_not_bind_are_said():
    X, y = draw(k=3)
    with pytest.warns(
        InactiveCapsWarning, match=r"LabelCVaR\(alpha=0.001\).*worst-class"
    ) as caught:
        loose = RobustLogisticRegression(LabelCVaR(0.001)).fit(X, y)
    assert caught[0].filename == __file__
    assert not loose.caps_bind_ and "worst-class problem" in loose.message_
    worst = RobustLogisticRegression(WorstClass()).fit(X, y)
    assert_same_bits(loose, worst)
    assert not worst.caps_bind_ and RobustLogisticRegression(LabelCVaR(0.4)).fit(X, y).caps_bind_


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
    population = clf.predict_population_proba(X)
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
    np.testing.assert_allclose(clf.predict_population_proba(X), clf.predict_proba(X), rtol=1e-12)


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
        np.testing.assert_allclose(clf.predict_population_proba(X, prior), expected, rtol=1e-9)
    own = clf.predict_population_proba(X, prior=clf.worst_case_masses_)
    np.testing.assert_allclose(own, clf.predict_proba(X), rtol=1e-9)


def test_a_class_without_mass_has_no_population_probability():
    X, y = draw(k=3)
    clf = RobustLogisticRegression(WeightBox(upper={"common": 0.0})).fit(X, NAMES[y])
    with pytest.raises(UnidentifiableError, match="Class 'common' carries no mass"):
        clf.predict_population_proba(X)
    probabilities = clf.predict_population_proba(X, [0.0, 0.5, 0.5])
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
    np.testing.assert_array_equal(
        again.predict_population_proba(X), clf.predict_population_proba(X)
    )
    assert again.class_risks_["rare"] == clf.class_risks_["rare"]


def test_clone_takes_the_settings_and_nothing_else():
    X, y = draw()
    clf = RobustLogisticRegression(LabelCVaR(0.4), C=3.0, class_prior=[0.5, 0.3, 0.2]).fit(X, y)
    fresh = clone(clf)
    assert not hasattr(fresh, "coef_") and fresh.C == 3.0 and fresh.uncertainty.alpha == 0.4
    assert fresh.uncertainty is not clf.uncertainty
    assert repr(fresh) == repr(clf) and "LabelCVaR(alpha=0.4)" in repr(clf)
    assert_same_bits(fresh.fit(X, y), clf)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.InactiveCapsWarning")
def test_grid_search_over_the_set_and_the_penalty():
    X, y = draw(k=3)
    grid = {"uncertainty__alpha": [0.9, 0.5, 0.2], "C": [0.01, 1.0]}
    search = GridSearchCV(RobustLogisticRegression(LabelCVaR(0.5)), grid, cv=3).fit(X, NAMES[y])
    assert search.best_params_["uncertainty__alpha"] in grid["uncertainty__alpha"]
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    other = {"uncertainty": [None, "balanced", PriorBall(0.1)]}
    assert GridSearchCV(RobustLogisticRegression(), other, cv=3).fit(X, y).best_score_ > 0.3


def test_in_a_pipeline():
    X, y = draw(k=3)
    pipeline = make_pipeline(StandardScaler(), RobustLogisticRegression(LabelCVaR(0.4)))
    pipeline.set_params(robustlogisticregression__uncertainty__alpha=0.3)
    pipeline.fit(X, NAMES[y], robustlogisticregression__sample_weight=np.ones(len(y)))
    assert pipeline[-1].uncertainty.alpha == 0.3
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
    for change in ({"C": 1.1}, {"uncertainty": LabelCVaR(0.38)}, {"fit_intercept": False}):
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
        bits = clf.coef_.tobytes() + clf.intercept_.tobytes() + np.asarray(clf.class_risks_).tobytes()
        print(hashlib.sha256(bits).hexdigest(), clf.lower_bound_.hex(), clf.n_evaluations_)
"""


def test_other_processes_give_the_same_bits():
    command = [sys.executable, "-c", PRINT_A_FIT]
    prints = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert prints[0] == prints[1] and len(prints[0].splitlines()) == 4


def test_verbose_is_short(capsys):
    X, y = draw(k=3)
    RobustLogisticRegression(LabelCVaR(0.4), verbose=1).fit(X, y)
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) <= 3 and max(map(len, err.splitlines())) <= 100
    assert "gap" in err and "tolerance" in err
    RobustLogisticRegression(LabelCVaR(0.4)).fit(X, y)
    assert capsys.readouterr() == ("", "")
