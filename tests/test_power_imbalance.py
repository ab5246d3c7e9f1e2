"""The paper's synthetic model: closed forms against quadrature, brute force and draws."""

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier

from equipoise.datasets import PowerImbalance, make_power_imbalance
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError

PRIORS = [0.02, 0.3, 0.5, 0.8, 0.9, 0.98]
WEIGHTINGS = {
    "standard": "standard",
    "balanced": "balanced",
    "a pair": (0.3, 4.0),
    "by class": {1: 0.2, 0: 3.0},
    "only class 0": (1.0, 0.0),
    "only class 1": (0.0, 1.0),
}
each_prior = pytest.mark.parametrize("p", PRIORS)
each_weighting = pytest.mark.parametrize("weights", WEIGHTINGS.values(), ids=WEIGHTINGS)


def integral(function, lower, upper):
    return quad(function, lower, upper, epsabs=1e-12, limit=200)[0]


@each_prior
def test_the_regression_function_has_the_stated_prior(p):
    model = PowerImbalance(p)
    assert integral(model.eta, 0, 1) == pytest.approx(1 - p, abs=1e-9)
    assert model.prior.tolist() == [p, 1 - p]
    X = np.column_stack([np.linspace(0, 1, 7), np.full(7, 9.0)])
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], model.eta(X[:, 0]))
    np.testing.assert_array_equal(model.predict_proba(X).sum(axis=1), 1)


@each_prior
@pytest.mark.parametrize("s", [0.0, 0.2, 0.77, 0.999, 1.0])
def test_class_risks_are_the_integrals(p, s):
    model = PowerImbalance(p)
    false_alarms = integral(lambda x: 1 - model.eta(x), s, 1) / p
    missed = integral(model.eta, 0, s) / (1 - p)
    np.testing.assert_allclose(model.class_risks_at(s), [false_alarms, missed], atol=1e-9)


@each_prior
@each_weighting
def test_the_bayes_rule_beats_every_threshold(p, weights):
    model = PowerImbalance(p)
    grid = np.linspace(0, 1, 20_001)
    risks = model.weighted_risk(grid, weights)
    best = model.bayes_risk(weights)
    assert risks.min() >= best - 1e-15
    # A threshold of the grid lies within 1 / 40,000 of the optimum, where the risk is flat.
    assert risks.min() == pytest.approx(best, abs=1e-4)
    assert model.weighted_risk(model.bayes_threshold_x(weights), weights) == best


@each_prior
@each_weighting
def test_the_bayes_risk_is_the_expected_smaller_cost(p, weights):
    model = PowerImbalance(p)
    q = model.weights(weights)
    smaller = integral(lambda x: min(q[0] * (1 - model.eta(x)), q[1] * model.eta(x)), 0, 1)
    assert model.bayes_risk(weights) == pytest.approx(smaller, abs=1e-8)
    assert model.eta(model.bayes_threshold_x(weights)) == pytest.approx(model.threshold(weights))


@each_prior
@each_weighting
def test_weights_have_mean_one_and_scale_does_not_matter(p, weights):
    model = PowerImbalance(p)
    q = model.weights(weights)
    assert model.prior @ q == pytest.approx(1)
    np.testing.assert_allclose(model.weights(7.5 * q), q)
    assert model.threshold(weights) == pytest.approx(q[0] / (q[0] + q[1]))


@each_prior
def test_the_standard_rule_has_the_corrected_risks(p):
    s = 2 ** (-(1 - p) / p)
    corrected = [1 - (1 + p) / p * 2 ** (-1 / p), 2 ** (-1 / p)]
    np.testing.assert_allclose(PowerImbalance(p).bayes_class_risks(), corrected, atol=1e-12)
    assert PowerImbalance(p).bayes_threshold_x() == pytest.approx(s)


def test_equal_classes_have_risk_one_quarter():
    model = PowerImbalance(0.5)
    for weights in ("standard", "balanced", (3, 3)):
        assert model.bayes_class_risks(weights).tolist() == [0.25, 0.25]
    # Here 1 - (1 + p) 2^(-1/p), as printed, would say 0.625.


def test_weight_on_one_class_predicts_that_class():
    model = PowerImbalance(0.9)
    assert model.bayes_class_risks((1, 0)).tolist() == [0, 1]
    assert model.bayes_class_risks((0, 1)).tolist() == [1, 0]


@each_prior
@pytest.mark.parametrize("seed", range(3))
def test_draws_follow_the_model(p, seed):
    n = 40_000
    X, y, model = make_power_imbalance(n, p=p, random_state=seed, return_model=True)
    assert X.shape == (n, 1) and set(np.unique(y)) == {0, 1} and model == PowerImbalance(p)
    # Five standard errors of a share; the bins see the shape of eta and the uniform x.
    bins = np.minimum((X[:, 0] * 8).astype(int), 7)
    counts = np.bincount(bins, minlength=8)
    assert np.all(np.abs(counts / n - 1 / 8) <= 5 * np.sqrt(1 / 8 / n))
    positive = np.bincount(bins, weights=y, minlength=8) / n
    edges = (np.arange(9) / 8) ** (1 / (1 - p)) * (1 - p)
    expected = np.diff(edges)
    assert np.all(np.abs(positive - expected) <= 5 * np.sqrt((expected + 1 / n) / n))
    predicted = X[:, 0] > model.bayes_threshold_x("balanced")
    shares = [np.mean(predicted[y == 0]), np.mean(~predicted[y == 1])]
    spread = 5 * np.sqrt(0.25 / np.bincount(y))
    assert np.all(np.abs(shares - model.bayes_class_risks("balanced")) <= spread)


def test_noise_changes_neither_x_nor_y():
    X, y = make_power_imbalance(200, random_state=3)
    noisy, labels = make_power_imbalance(200, n_noise_features=9, random_state=3)
    assert noisy.shape == (200, 10) and noisy.min() >= 0 and noisy.max() <= 1
    np.testing.assert_array_equal(noisy[:, :1], X)
    np.testing.assert_array_equal(labels, y)
    assert len(np.unique(noisy)) == noisy.size


def test_seeds_repeat_and_states_go_on():
    first, again = (make_power_imbalance(50, random_state=7)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    rng = np.random.RandomState(7)
    np.testing.assert_array_equal(PowerImbalance(0.9).sample(50, rng)[0], first)
    assert not np.array_equal(PowerImbalance(0.9).sample(50, rng)[0], first)


def test_the_draws_train_a_classifier():
    X, y = make_power_imbalance(300, p=0.7, n_noise_features=2, random_state=0)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    assert clone(tree).fit(X, y).score(X, y) > 0.6


def test_thresholds_come_in_any_shape():
    model = PowerImbalance(0.8)
    grid = np.linspace(0, 1, 6).reshape(2, 3)
    assert model.class_risks_at(grid).shape == (2, 3, 2)
    risks = model.weighted_risk(grid, (1, 3))
    assert risks.shape == (2, 3) and isinstance(model.weighted_risk(0.5), float)
    assert risks[1, 2] == model.weighted_risk(1.0, (1, 3))


@each_prior
def test_the_quadrature_stands_for_the_distribution(p):
    model = PowerImbalance(p)
    X, w = model.quadrature(5000)
    assert X.shape == (5000, 1) and w.sum() == pytest.approx(1)
    eta, s = model.eta(X[:, 0]), model.bayes_threshold_x("balanced")
    predicted = X[:, 0] > s
    found = [w @ ((1 - eta) * predicted) / p, w @ (eta * ~predicted) / (1 - p)]
    rough = 1 / 5000 / min(p, 1 - p)
    np.testing.assert_allclose(found, model.class_risks_at(s), atol=rough)


def test_extreme_priors_stay_finite():
    for p in (1e-12, 1 - 1e-12):
        model = PowerImbalance(p)
        for weights in ("standard", "balanced", (1, 1e6)):
            risks = model.bayes_class_risks(weights)
            assert np.all((risks >= 0) & (risks <= 1))


def test_the_model_does_not_change():
    with pytest.raises(AttributeError):
        PowerImbalance(0.9).p = 0.5


BAD = {
    "p": (lambda: PowerImbalance(1.0), r"p must be a number in \(0, 1\), got 1.0"),
    "p as text": (lambda: make_power_imbalance(p="high"), r"p must be .*'high'"),
    "nan": (lambda: PowerImbalance(np.nan), "p must be .*nan"),
    "rows": (lambda: make_power_imbalance(0), "n_samples must be an integer of at least 1, got 0"),
    "noise": (lambda: make_power_imbalance(n_noise_features=-1), "n_noise_features must be"),
    "weighting": (
        lambda: PowerImbalance(0.9).threshold("even"),
        'weights must be "standard".*even',
    ),
    "negative": (lambda: PowerImbalance(0.9).threshold((1, -1)), "at least 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_parameters_get_a_sentence(case):
    call, match = BAD[case]
    with pytest.raises(InvalidParameterError, match=match):
        call()


def test_bad_points_get_a_sentence():
    model = PowerImbalance(0.9)
    with pytest.raises(InvalidInputError, match=r"x must lie in \[0, 1\], got 1.5"):
        model.eta([0.5, 1.5])
    with pytest.raises(InvalidInputError, match=r"x_threshold must lie .* nan"):
        model.class_risks_at(np.nan)
    with pytest.raises(InvalidInputError, match="positive for at least one class"):
        model.bayes_risk((0, 0))
    with pytest.raises(InvalidInputError, match="first column"):
        model.predict_proba([0.5])
    with pytest.raises(ClassMismatchError, match="2 classes"):
        model.threshold((1, 1, 1))
