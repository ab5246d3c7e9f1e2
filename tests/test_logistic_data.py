"""What RobustLogisticRegression may be given: formats, precision, weights, priors, corner cases."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from equipoise import (
    FixedWeights,
    LabelCVaR,
    PriorBox,
    RobustLogisticRegression,
    TunedDecisionClassifier,
    WeightBox,
    WorstClass,
    population_proba,
)
from equipoise.blocks import from_blocks
from equipoise.exceptions import FewRowsWarning, InactiveCapsWarning, NotConvergedWarning
from logistic_cases import (
    NAMES,
    assert_same_bits,
    assert_same_fit,
    draw,
    each_set,
    few_rows_allowed,
    tight,
)

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
    if "pyarrow" in str(dtype):
        pytest.importorskip("pyarrow", reason="pyarrow for this NumPy", exc_type=ImportError)
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
    assert peak_bytes(lambda: clf.fit(given, y)) < 2.8 * size
    assert peak_bytes(lambda: clf.predict(given)) < 0.9 * size


def test_rows_that_come_sorted_are_not_copied_at_all():
    X, y = draw(k=3, n=24_000, d=60)
    given, labels = X[np.argsort(y, kind="stable")].astype(np.float32), np.sort(y)
    clf = RobustLogisticRegression(LabelCVaR(0.4), tol=1e-2)
    # Its probabilities and the sample of its Hessians are smaller than the data; a copy of these
    # would be one size more.
    assert peak_bytes(lambda: clf.fit(given, labels)) < 1.8 * given.nbytes


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


@pytest.mark.parametrize(
    "store",
    [list, pd.Series, lambda weights: pl.Series("w", weights), lambda weights: weights[::-1][::-1]],
    ids=["list", "pandas", "polars", "strided"],
)
def test_weights_come_in_many_forms(store):
    X, y = draw()
    weights = np.random.default_rng(1).integers(1, 4, len(y))
    expected = RobustLogisticRegression().fit(X, y, sample_weight=weights)
    assert_same_bits(RobustLogisticRegression().fit(X, y, sample_weight=store(weights)), expected)
    single = RobustLogisticRegression().fit(X, y, sample_weight=weights.astype(np.float32))
    assert_same_bits(single, expected)


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
    assert_same_fit(again.fit(X, NAMES[y]), by_name)


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
    assert clf.worst_case_weights_[2] == np.inf
    assert 0.2 - 1e-12 <= clf.worst_case_masses_[2] <= 0.6 + 1e-12
    assert clf.fit(X, y).n_iter_ <= 2
    probabilities = population_proba(clf, X)
    assert np.all(probabilities[:, 2] == 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_caps_that_do_not_bind_are_said():
    X, y = draw(k=3)
    with pytest.warns(
        InactiveCapsWarning, match=r"LabelCVaR\(alpha=0.001\).*worst-class"
    ) as caught:
        loose = RobustLogisticRegression(LabelCVaR(0.001)).fit(X, y)
    assert caught[0].filename == __file__
    assert not loose.caps_active_ and "worst-class problem" in loose.message_
    worst = RobustLogisticRegression(WorstClass()).fit(X, y)
    assert_same_bits(loose, worst)
    assert not worst.caps_active_


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@few_rows_allowed
def test_caps_bind_where_the_worst_class_problem_has_another_optimum(k, fit_intercept):
    X, y = draw(k=k)
    worst = tight(WorstClass(), fit_intercept=fit_intercept).fit(X, y)
    seen = set()
    for alpha in (0.05, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0):
        for classifier in (tight, RobustLogisticRegression):
            fit = classifier(LabelCVaR(alpha), fit_intercept=fit_intercept)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InactiveCapsWarning)
                fit.fit(X, y)
            assert fit.caps_active_ == (fit.objective_ < worst.objective_ * (1 - 1e-5)), alpha
            seen.add(fit.caps_active_)
    assert seen == {False, True}
    box = RobustLogisticRegression(PriorBox(upper=1 - 1e-6), fit_intercept=fit_intercept).fit(X, y)
    assert not box.caps_active_ and RobustLogisticRegression("standard").fit(X, y).caps_active_


@pytest.mark.parametrize(
    "names", [[3, 7], [np.int64(3), 7], [np.int32(3), np.uint8(7)], [3.0, np.float64(7)]]
)
@pytest.mark.parametrize("kind", ["linear", "plug-in"])
def test_numbers_that_came_as_objects_are_numbers(names, kind):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.resize(np.array(names, dtype=object), 60)
    model = RobustLogisticRegression("balanced")
    if kind == "plug-in":
        model = TunedDecisionClassifier(LogisticRegression(), "balanced")
    found, expected = model.fit(X, y).predict(X), clone(model).fit(X, y.astype(int)).predict(X)
    assert found.dtype.kind in "if" and found.tolist() == expected.tolist()


@pytest.mark.parametrize("value", [1e8, 1e10, 1.7e12, 1.7e15])
def test_a_large_constant_column_is_left_to_the_intercept(value):
    """As a column of a moment in milliseconds is, where all rows are of one."""
    X, y = draw(k=3, n=2000)
    best = RobustLogisticRegression(WorstClass(), tol=1e-8).fit(X, y)
    wide = np.column_stack([X, np.full(len(y), value)])
    clf = RobustLogisticRegression(WorstClass()).fit(wide, y)
    assert clf.status_ == "converged" and np.all(clf.coef_[:, -1] == 0)
    assert clf.lower_bound_ <= best.objective_ * (1 + 1e-9) <= clf.objective_ * (1 + 2e-9)
    # Warmed by a model that balances the column with its intercept.
    clf.set_params(warm_start=True).coef_[:, -1] = 1e-3
    clf.intercept_ -= 1e-3 * value
    np.testing.assert_allclose(clf.fit(wide, y).coef_[:, :-1], best.coef_, rtol=1e-3, atol=1e-3)
    assert np.all(clf.coef_[:, -1] == 0)
    # In blocks nobody has looked at all of it before: no bound is claimed that rounding makes.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        clf.fit(from_blocks([(wide[:900], y[:900]), (wide[900:], y[900:])]))
    assert clf.lower_bound_ <= best.objective_ * (1 + 1e-9) and clf.n_passes_ > 0
    assert not hasattr(clf.fit(wide, y), "n_passes_")
