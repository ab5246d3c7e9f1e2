"""The shifted margin condition: known exponents and constants, and honest intervals."""

import numpy as np
import pytest

from equipoise.datasets import PowerImbalance
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.theory import margin_condition


def power_law(n, exponent, constant, threshold, rng):
    """Probabilities at distances with P(D <= t) = C t^alpha, on either side of the threshold."""
    distances = (rng.uniform(size=n) / constant) ** (1 / exponent)
    return threshold + distances * rng.choice([-1, 1], size=n)


# Exponent, constant, threshold; distances are at most C^(-1/alpha) and stay within [0, 1].
LAWS = [(0.5, 2.0, 0.4), (1.0, 3.0, 0.5), (2.0, 9.0, 0.4), (4.0, 100.0, 0.6)]


@pytest.mark.parametrize(("exponent", "constant", "threshold"), LAWS)
def test_intervals_cover_the_power_law(exponent, constant, threshold):
    rng = np.random.default_rng(0)
    weights = (threshold, 1 - threshold)
    covered = np.zeros(2)
    n_draws = 400
    for _ in range(n_draws):
        eta = power_law(300, exponent, constant, threshold, rng)
        found = margin_condition(eta, weights)
        covered += [
            found.exponent_interval[0] <= exponent <= found.exponent_interval[1],
            found.constant_interval[0] <= constant <= found.constant_interval[1],
        ]
        assert found.threshold == pytest.approx(threshold)
    # Three standard errors below the nominal level.
    assert np.all(covered / n_draws >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / n_draws))


@pytest.mark.parametrize(("exponent", "constant", "threshold"), LAWS)
def test_many_rows_tell_exponent_and_constant(exponent, constant, threshold):
    eta = power_law(200_000, exponent, constant, threshold, np.random.default_rng(1))
    found = margin_condition(eta, (threshold, 1 - threshold), n_tail=3_000)
    assert found.exponent == pytest.approx(exponent, rel=0.1)
    assert np.log(found.constant) == pytest.approx(np.log(constant), abs=1)
    # The law holds everywhere with the true numbers, so the smallest constant is about that one.
    assert found.global_constant >= found.constant * (1 - 1e-3)


def test_the_constant_makes_the_condition_hold():
    rng = np.random.default_rng(2)
    eta = rng.beta(2, 5, size=5000)
    found = margin_condition(eta, (0.3, 0.7))
    distances = np.abs(eta - 0.3)
    for t in np.linspace(found.distance, 0.7, 200):
        assert np.mean(distances <= t) <= found.global_constant * t**found.exponent * (1 + 1e-9)


@pytest.mark.parametrize("p", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("weights", ["standard", "balanced"])
def test_the_synthetic_model_has_exponent_one(p, weights):
    model = PowerImbalance(p)
    X, _ = model.sample(200_000, random_state=0)
    found = margin_condition(model.eta(X[:, 0]), model.weights(weights), n_tail=3_000)
    assert found.exponent == pytest.approx(1, abs=0.1)
    # Eta has density t^(1/a - 1) / a at t, on both sides of the threshold.
    a, t = model.exponent, model.threshold(weights)
    assert np.log(found.constant) == pytest.approx(np.log(2 * t ** (1 / a - 1) / a), abs=0.5)


@pytest.mark.parametrize(("p", "n_rows"), [(0.8, 500), (0.9, 500), (0.98, 5_000)])
@pytest.mark.parametrize("weights", ["standard", "balanced"])
def test_intervals_cover_where_the_power_law_holds_only_near_the_threshold(p, n_rows, weights):
    model, rng = PowerImbalance(p), np.random.default_rng(0)
    a, t = model.exponent, model.threshold(weights)
    constant = 2 * t ** (1 / a - 1) / a
    covered = np.zeros(2)
    n_draws = 300
    for _ in range(n_draws):
        found = margin_condition(model.eta(rng.random(n_rows)), model.weights(weights))
        covered += [
            found.exponent_interval[0] <= 1 <= found.exponent_interval[1],
            found.constant_interval[0] <= constant <= found.constant_interval[1],
        ]
    assert np.all(covered / n_draws >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / n_draws))


@pytest.mark.parametrize("p", [0.6, 0.8, 0.9])
def test_at_the_end_of_the_interval_the_exponent_is_that_of_eta(p):
    # With all weight on class 1 the threshold is 0, and P(x^a <= t) = t^(1/a).
    model = PowerImbalance(p)
    X, _ = model.sample(100_000, random_state=1)
    found = margin_condition(model.eta(X[:, 0]), (0, 1), n_tail=2_000)
    assert found.threshold == 0
    assert found.exponent == pytest.approx((1 - p) / p, rel=0.1)


def test_rows_at_the_threshold_have_exponent_zero():
    rng = np.random.default_rng(3)
    eta = np.where(rng.uniform(size=1000) < 0.3, 0.5, rng.uniform(size=1000))
    found = margin_condition(eta, "standard")
    assert found.exponent == 0 and found.at_threshold == pytest.approx(np.mean(eta == 0.5))
    assert found.constant == 1 and found.rates(1, 1)["mismatched"] == 0
    assert found.rates(1, 1)["matched"] == pytest.approx(1 / 3)


def test_separated_rows_have_any_exponent():
    found = margin_condition(np.repeat([0.1, 0.9], 50), "standard")
    assert found.exponent == np.inf and found.at_threshold == 0
    near = 0.5 + np.repeat([-1, 1], 500) * (0.4 + 1e-4 * np.arange(1000) / 1000)
    found = margin_condition(near, "standard")
    assert found.exponent > 100 and found.constant > 1


def test_weights_of_the_rows_count():
    rng = np.random.default_rng(4)
    eta = power_law(4000, 1.0, 3.0, 0.5, rng)
    # Rows drawn with twice the chance near the threshold, undone by half the weight.
    chance = np.where(np.abs(eta - 0.5) < 0.05, 1.0, 0.5)
    kept = rng.uniform(size=4000) < chance
    plain = margin_condition(eta)
    undone = margin_condition(eta[kept], sample_weight=1 / chance[kept])
    assert undone.constant_interval[0] <= plain.constant <= undone.constant_interval[1]
    same = margin_condition(eta, sample_weight=np.full(4000, 7.0))
    assert same.exponent == pytest.approx(plain.exponent)
    assert same.constant_interval == pytest.approx(plain.constant_interval)
    padded, weights = np.r_[eta, np.full(500, 0.5)], np.repeat([1.0, 0.0], [4000, 500])
    dropped = margin_condition(padded, sample_weight=weights)
    assert dropped.exponent == pytest.approx(plain.exponent)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_rates_are_those_of_the_appendix(beta, d):
    eta = power_law(5000, 0.5, 2.0, 0.4, np.random.default_rng(5))
    found = margin_condition(eta, (0.4, 0.6))
    rates = found.rates(beta, d)
    base = beta / (2 * beta + d)
    assert rates["matched"] == pytest.approx(base + rates["mismatched"])
    assert rates["mismatched"] == pytest.approx(found.exponent * base)
    assert rates["printed"] == pytest.approx(min(1, found.exponent) * base)


BAD = {
    "three classes": ([[0.2, 0.3, 0.5]] * 30, {}, "two classes, got 3"),
    "few rows": ([0.1, 0.9], {}, "more rows than n_tail = 10, got 2"),
    "short tail": ([0.5] * 50, {"n_tail": 3}, "n_tail must be an integer of at least 10, got 3"),
    "confidence": ([0.5] * 50, {"confidence": 1.0}, r"confidence must be a number in \(0, 1\)"),
    "weights": ([0.5] * 50, {"weights": "even"}, "even"),
    "probabilities": ([1.5] * 50, {}, "probabilities"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence(case):
    eta, arguments, match = BAD[case]
    with pytest.raises((InvalidInputError, InvalidParameterError), match=match):
        margin_condition(eta, **arguments)


def test_bad_smoothness_gets_a_sentence():
    found = margin_condition(np.linspace(0.01, 0.99, 100))
    with pytest.raises(InvalidParameterError, match="smoothness must be a number in"):
        found.rates(0, 1)
