"""LocalPolynomialClassifier: against least squares done row by row, neighbours, and theory."""

import os
import pickle
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise.datasets import PowerImbalance, make_power_imbalance
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.theory import LocalPolynomialClassifier
from equipoise.theory.local_moments import Smoother, monomials

NAMES = np.array(["ash", "birch", "cedar"])

CHECKED = [
    LocalPolynomialClassifier(),
    LocalPolynomialClassifier(0),
    LocalPolynomialClassifier(2, bandwidth=1.0),
]


@parametrize_with_checks(CHECKED)
def test_every_check_of_scikit_learn_passes(estimator, check):
    try:
        check(estimator)
    except SkipTest as reason:
        # Only the run on the oldest versions turns the array API off.
        if os.environ["SCIPY_ARRAY_API"]:
            pytest.fail(f"skipped: {reason}")
        raise


def by_hand(smoother, query):
    """Penalised weighted least squares at one point, by an orthogonal factorisation."""
    u = smoother.points - query
    squares = (u**2).sum(axis=1)
    weights = smoother.weights * np.maximum(1 - squares, 0.0)
    if weights.sum() <= 0:
        nearest = squares <= squares.min() * (1 + 1e-8)
        return np.average(smoother.targets[nearest], axis=0, weights=smoother.weights[nearest])
    phi = np.ones((len(u), 1))
    if smoother.degree >= 1:
        phi = np.hstack([phi, u])
    if smoother.degree == 2:
        pairs = [(i, j) for i in range(u.shape[1]) for j in range(i, u.shape[1])]
        phi = np.hstack([phi, *((u[:, i] * u[:, j])[:, None] for i, j in pairs)])
    held = np.sqrt(smoother.ridge) * np.eye(phi.shape[1])[1:]
    root = np.sqrt(weights)[:, None]
    left, right = np.vstack([root * phi, held]), root * smoother.targets
    right = np.vstack([right, np.zeros((len(held), right.shape[1]))])
    return np.linalg.lstsq(left, right, rcond=None)[0][0]


# Scales at which blocks of queries are narrower than a window, about as wide, and much wider.
SCALES = [0.5, 3, 20, 200, 3000]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_fitted_values_are_those_of_least_squares(scale, degree, d):
    rng = np.random.default_rng([d, degree])
    points, queries = scale * rng.uniform(size=(150, d)), rng.uniform(-0.1, 1.1, size=(120, d))
    weights, targets = rng.uniform(0.5, 2, size=150), rng.normal(size=(150, 2))
    smoother = Smoother(points, weights, targets, degree=degree, ridge=0.5)
    expected = np.array([by_hand(smoother, query) for query in scale * queries])
    np.testing.assert_allclose(smoother(scale * queries), expected, atol=2e-8)


@pytest.mark.parametrize("scale", [1, 30])
def test_many_monomials_are_no_exception(scale):
    rng = np.random.default_rng(scale)
    points, queries = scale * rng.uniform(size=(300, 8)), scale * rng.uniform(size=(20, 8))
    smoother = Smoother(points, np.ones(300), rng.normal(size=(300, 1)), 2, 0.5)
    expected = np.array([by_hand(smoother, query) for query in queries])
    np.testing.assert_allclose(smoother(queries), expected, atol=2e-8)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_polynomials_of_the_degree_are_reproduced(degree, d):
    rng = np.random.default_rng(d)
    points, queries = rng.uniform(size=(2000, d)), rng.uniform(size=(50, d))
    theta = rng.normal(size=(monomials(points, degree).shape[1], 1))
    targets = monomials(points, degree) @ theta
    h = 0.8
    smoother = Smoother(points / h, rng.uniform(1, 2, 2000), targets, degree, 0.0)
    expected = monomials(queries, degree) @ theta
    np.testing.assert_allclose(smoother(queries / h), expected, atol=1e-6)


def test_far_from_the_origin_no_digits_are_lost():
    rng = np.random.default_rng(1)
    X, y = rng.uniform(size=(500, 1)), rng.integers(2, size=500)
    queries = rng.uniform(size=(300, 1))
    near = LocalPolynomialClassifier(2).fit(X, y).predict_proba(queries)
    far = LocalPolynomialClassifier(2).fit(X + 1e6, y).predict_proba(queries + 1e6)
    np.testing.assert_allclose(far, near, atol=1e-6)


def draw(n=400, d=2, k=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(k, size=n)
    return rng.normal(size=(k, d))[y] + rng.normal(size=(n, d)), y


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 2])
def test_where_no_row_is_near_the_nearest_decides(degree, d):
    X, y = draw(d=d)
    queries = 100 + 10 * np.random.default_rng(2).normal(size=(60, d))
    clf = LocalPolynomialClassifier(degree, bandwidth=1e-3).fit(X, NAMES[y])
    nearest = KNeighborsClassifier(1).fit(X, NAMES[y])
    np.testing.assert_array_equal(clf.predict(queries), nearest.predict(queries))
    np.testing.assert_allclose(clf.predict_proba(queries).max(axis=1), 1)


def test_nearest_rows_that_tie_decide_together():
    X, y = [[0.0], [0.0], [0.0], [9.0]], [0, 0, 1, 1]
    clf = LocalPolynomialClassifier(1, bandwidth=0.5).fit(X, y, sample_weight=[1, 1, 2, 1])
    np.testing.assert_allclose(clf.predict_proba([[-3.0], [3.0]]), [[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 2])
def test_bandwidths_follow_the_rate_and_the_spread(degree, d):
    X, y = draw(d=d)
    clf = LocalPolynomialClassifier(degree).fit(X, y)
    exponent = -1 / (2 * (degree + 1) + d)
    expected = np.sqrt(d + 4) * X.std(axis=0) * len(X) ** exponent
    np.testing.assert_allclose(clf.bandwidth_, expected)
    rough = LocalPolynomialClassifier(degree, smoothness=0.5).fit(X, y)
    expected = np.sqrt(d + 4) * X.std(axis=0) * len(X) ** (-1 / (1 + d))
    np.testing.assert_allclose(rough.bandwidth_, expected)
    counted = LocalPolynomialClassifier(degree).fit(X, y, sample_weight=np.full(len(X), 5.0))
    np.testing.assert_allclose(counted.bandwidth_, clf.bandwidth_ * 5**exponent)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_kernel_has_deviation_one_in_the_unit_of_the_rate(d):
    # The window of a kernel with variance v along each axis is 1 / sqrt(v) wide.
    u = np.random.default_rng(0).uniform(-1, 1, size=(400_000, d))
    weights = np.clip(1 - (u**2).sum(axis=1), 0, None)
    variance = np.average(u[:, 0] ** 2, weights=weights)
    X, y = draw(d=d)
    unit = X.std(axis=0) * len(X) ** (-1 / (4 + d))
    clf = LocalPolynomialClassifier().fit(X, y)
    np.testing.assert_allclose(clf.bandwidth_ / unit, variance**-0.5, rtol=0.01)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_units_of_the_features_do_not_matter(degree):
    X, y = draw()
    scale, shift = np.array([1e-3, 40.0]), np.array([5.0, -700.0])
    plain = LocalPolynomialClassifier(degree).fit(X, y).predict_proba(X)
    scaled = LocalPolynomialClassifier(degree).fit(X * scale + shift, y)
    np.testing.assert_allclose(scaled.predict_proba(X * scale + shift), plain, atol=1e-8)


def test_a_constant_feature_changes_no_prediction():
    X, y = draw(d=1)
    wide = np.hstack([X, np.full_like(X, 3.0)])
    narrow = LocalPolynomialClassifier(1, bandwidth=0.7).fit(X, y).predict_proba(X)
    both = LocalPolynomialClassifier(1, bandwidth=0.7).fit(wide, y).predict_proba(wide)
    np.testing.assert_allclose(both, narrow, atol=1e-8)
    assert np.isfinite(LocalPolynomialClassifier(2).fit(wide, y).predict_proba(wide)).all()


def test_a_bandwidth_for_each_feature():
    X, y = draw()
    queries = X[:50] + 0.01
    stretched = LocalPolynomialClassifier(bandwidth=1.0).fit(X / [0.5, 2.0], y)
    clf = LocalPolynomialClassifier(bandwidth=[0.5, 2.0]).fit(X, y)
    expected = stretched.predict_proba(queries / [0.5, 2.0])
    np.testing.assert_allclose(clf.predict_proba(queries), expected, atol=1e-9)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_probabilities_are_probabilities(degree, k):
    X, y = draw(k=k, n=150)
    clf = LocalPolynomialClassifier(degree).fit(X, y)
    found = clf.predict_proba(np.vstack([X, 3 * X]))
    assert found.shape == (300, k) and found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[found[:150].argmax(axis=1)])


def test_the_order_of_the_classes_does_not_matter():
    X, y = draw()
    plain = LocalPolynomialClassifier(2).fit(X, y).predict_proba(X)
    turned = LocalPolynomialClassifier(2).fit(X, 2 - y).predict_proba(X)
    np.testing.assert_allclose(turned[:, ::-1], plain, atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 2])
def test_a_weight_is_a_number_of_rows(degree, d):
    X, y = draw(d=d)
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LocalPolynomialClassifier(degree).fit(X, y, sample_weight=counts)
    repeated = LocalPolynomialClassifier(degree).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.bandwidth_, repeated.bandwidth_)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_more_rows_come_closer_to_the_truth(degree):
    grid = np.linspace(0, 1, 501)[:, None]
    truth = PowerImbalance(0.8).eta(grid[:, 0])
    errors = []
    for n in (200, 20_000):
        found = []
        for seed in range(5):
            X, y = make_power_imbalance(n, p=0.8, random_state=seed)
            clf = LocalPolynomialClassifier(degree).fit(X, y)
            found.append(np.abs(clf.predict_proba(grid)[:, 1] - truth).mean())
        errors.append(np.mean(found))
    # Hundred times the rows: by the slowest of the rates, 100^(-1/3), the error falls to a fifth.
    assert errors[1] < 0.35 * errors[0] and errors[1] < 0.02


def test_text_labels_frames_and_pipelines():
    X, y = draw()
    plain = LocalPolynomialClassifier().fit(X, y).predict(X)
    named = LocalPolynomialClassifier().fit(pd.DataFrame(X, columns=["u", "v"]), NAMES[y])
    assert named.feature_names_in_.tolist() == ["u", "v"] and named.classes_.tolist() == [*NAMES]
    np.testing.assert_array_equal(named.predict(pd.DataFrame(X, columns=["u", "v"])), NAMES[plain])
    series = LocalPolynomialClassifier().fit(X, pd.Series(NAMES[y], dtype="category"))
    np.testing.assert_array_equal(series.predict(X), NAMES[plain])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LocalPolynomialClassifier()),
        {"localpolynomialclassifier__degree": [0, 1]},
        cv=3,
    )
    assert search.fit(X, NAMES[y]).best_score_ > 0.4
    assert (
        cross_val_predict(LocalPolynomialClassifier(), X, y, method="predict_proba").shape[1] == 3
    )


def test_fits_are_pickled_and_cloned():
    X, y = draw()
    clf = LocalPolynomialClassifier(2, smoothness=2).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert clone(clf).get_params() == clf.get_params() and not hasattr(clone(clf), "bandwidth_")


def test_a_failed_fit_leaves_the_last_one():
    X, y = draw()
    clf = LocalPolynomialClassifier().fit(X, y)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match="NaN"):
        clf.fit(np.where(X > 0, np.nan, X), y)
    np.testing.assert_array_equal(clf.predict_proba(X), before)


BAD = {
    "degree": ({"degree": 3}, "degree must be 0, 1 or 2, got 3"),
    "a flag": ({"degree": True}, "degree must be 0, 1 or 2, got True"),
    "word": ({"bandwidth": "silverman"}, 'bandwidth must be "rate", .*silverman'),
    "zero": ({"bandwidth": 0.0}, r"bandwidth must be .* a positive finite number.*, got 0\.0"),
    "nan": ({"bandwidth": np.nan}, "bandwidth must be .* a positive finite number.*, got nan"),
    "three": ({"bandwidth": [1.0, 1.0, 1.0]}, r"each of the 2 features, got \[1.0, 1.0, 1.0\]"),
    "object": ({"bandwidth": {"a": 1}}, "bandwidth must be"),
    "too smooth": (
        {"smoothness": 2.5},
        r"smoothness at degree 1 must be .* in \(0, 2\], got 2.5",
    ),
    "not smooth": (
        {"smoothness": 0},
        r"smoothness at degree 1 must be .* in \(0, 2\], got 0",
    ),
    "ridge": ({"ridge": -1.0}, r"ridge must be a number in \[0, inf\), got -1.0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_parameters_get_a_sentence(case):
    parameters, match = BAD[case]
    X, y = draw()
    with pytest.raises(InvalidParameterError, match=match):
        LocalPolynomialClassifier(**parameters).fit(X, y)


def test_bad_data_get_a_sentence():
    X, y = draw()
    with pytest.raises(InvalidInputError, match="at least 2 classes"):
        LocalPolynomialClassifier().fit(X, np.zeros(len(y)))
    wide = np.random.default_rng(0).normal(size=(40, 40))
    with pytest.raises(InvalidInputError, match=r"40 features has 861 terms.* lower degree"):
        LocalPolynomialClassifier(2).fit(wide, np.arange(40) % 2)
