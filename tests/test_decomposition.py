"""Excess risk in two parts: the identity, the bounds of the paper, and the theory seen."""

import numpy as np
import pytest
from scipy.stats import linregress
from sklearn.linear_model import LogisticRegression

from equipoise.datasets import PowerImbalance
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.risks import ClassRisks, class_risks
from equipoise.theory import (
    ExcessRisk,
    LocalPolynomialClassifier,
    excess_risk,
    excess_risk_in_class,
)

PAIRS = {
    "the same": ("balanced", "balanced"),
    "too plain": ("standard", "balanced"),
    "too bold": ("balanced", "standard"),
    "numbers": ((1.0, 2.0), (1.0, 30.0)),
    "one class": ((0.0, 1.0), "standard"),
}
each_pair = pytest.mark.parametrize(("q", "evaluated"), PAIRS.values(), ids=PAIRS)


def draw(n, k, seed):
    """True probabilities, distorted ones, and weights of the points."""
    rng = np.random.default_rng(seed)
    scores = 1.5 * rng.normal(size=(n, k)) - np.arange(k)
    both = [np.exp(scores), np.exp(scores + 0.7 * rng.normal(size=(n, k)))]
    eta, estimate = (each / each.sum(axis=1, keepdims=True) for each in both)
    return eta, estimate, rng.uniform(0.5, 2, size=n)


def of_model(model, estimate, q, evaluated):
    """The excess risk under a known model, by quadrature."""
    X, w = model.quadrature(20_000)
    return excess_risk(model.predict_proba(X), estimate(X), q, evaluated, sample_weight=w)


def weighted_risk(eta, decided, q, w):
    """The risk from its definition: the weight of every class but the one decided."""
    cost = (eta * q).sum(axis=1) - (eta * q)[np.arange(len(eta)), decided]
    return w @ cost / w.sum()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_the_parts_are_differences_of_risks(k, seed):
    eta, estimate, w = draw(300, k, seed)
    rng = np.random.default_rng(seed)
    q, evaluated = rng.uniform(0.2, 3, size=(2, k))
    found = excess_risk(eta, estimate, q, evaluated, sample_weight=w)
    prior = w @ eta / w.sum()
    evaluated = evaluated / (prior @ evaluated)
    risks = [
        weighted_risk(eta, np.argmax(p * v, axis=1), evaluated, w)
        for p, v in ((estimate, q), (eta, q), (eta, evaluated))
    ]
    assert found.estimation == pytest.approx(risks[0] - risks[1], abs=1e-12)
    assert found.irreducible == pytest.approx(risks[1] - risks[2], abs=1e-12)
    assert found.excess == pytest.approx(found.estimation + found.irreducible, abs=1e-12)
    assert found.irreducible >= -1e-12 and found.excess >= -1e-12
    np.testing.assert_allclose(found.evaluated_under, evaluated)
    assert found.l1 == pytest.approx(w @ np.abs(eta - estimate).sum(axis=1) / 2 / w.sum())


@each_pair
@pytest.mark.parametrize("seed", range(20))
def test_two_classes_meet_the_bounds_whatever_the_estimate(q, evaluated, seed):
    eta, estimate, w = draw(60, 2, seed)
    found = excess_risk(eta, estimate, q, evaluated, sample_weight=w)
    assert abs(found.estimation) <= found.estimation_bound + 1e-12
    assert found.irreducible <= found.irreducible_bound + 1e-12
    assert found.excess <= found.estimation_bound + found.irreducible_bound + 1e-12
    q, evaluated = found.fitted_for, found.evaluated_under
    shift = abs(q[0] / q.sum() - evaluated[0] / evaluated.sum())
    expected = evaluated.sum() * (found.l1 + shift * found.disagreement)
    assert found.estimation_bound == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
@pytest.mark.parametrize("seed", range(30))
def test_any_number_of_classes_meets_the_bounds(k, seed):
    eta, estimate, w = draw(40, k, seed)
    rng = np.random.default_rng(seed)
    q, evaluated = rng.gamma(0.5, size=(2, k))
    if seed % 3 == 0:  # classes that do not count under one weighting or the other
        q[0], evaluated[1] = 0.0, 0.0
    found = excess_risk(eta, estimate, q, evaluated, sample_weight=w)
    assert abs(found.estimation) <= found.estimation_bound + 1e-12
    assert found.irreducible <= found.irreducible_bound + 1e-12
    assert found.excess <= found.estimation_bound + found.irreducible_bound + 1e-12
    matched = excess_risk(eta, estimate, evaluated, evaluated, sample_weight=w)
    largest = np.sort(matched.evaluated_under)[-2:].sum()
    assert 0 <= matched.excess <= largest * matched.l1 + 1e-12
    assert matched.estimation_bound == pytest.approx(largest * matched.l1)
    assert matched.irreducible_bound == 0


def test_a_third_class_that_never_occurs_near_the_others_changes_no_bound():
    rng = np.random.default_rng(0)
    eta, estimate = (np.column_stack([1 - p, p]) for p in rng.uniform(0.05, 0.95, size=(2, 50)))
    two = excess_risk(eta, estimate, (1, 1), (1, 4))
    apart = np.array([[0.0, 0.0, 1.0]])
    three = excess_risk(
        *(np.vstack([np.column_stack([each, np.zeros(50)]), apart]) for each in (eta, estimate)),
        (1, 1, 1), (1, 4, 1),
    )  # fmt: skip
    scale = three.evaluated_under[0] / two.evaluated_under[0] * 50 / 51
    assert three.irreducible_bound == pytest.approx(two.irreducible_bound * scale)
    assert three.estimation_bound == pytest.approx(two.estimation_bound * scale)


def test_the_bounds_of_three_classes_can_be_attained():
    # All points where the first class and the second tie under q, decided for the first.
    found = excess_risk([[0.4, 0.4, 0.2]] * 2, [[0.4, 0.4, 0.2]] * 2, (1, 1, 1), (1, 3, 1))
    assert found.irreducible == pytest.approx(found.irreducible_bound) and found.irreducible > 0.3


@pytest.mark.parametrize("seed", range(20))
def test_with_one_weighting_nothing_is_irreducible(seed):
    eta, estimate, _ = draw(60, 2, seed)
    found = excess_risk(eta, estimate, (1, 3), (2, 6))
    assert found.irreducible == pytest.approx(0, abs=1e-14)
    assert found.irreducible_bound == pytest.approx(0, abs=1e-14)
    assert 0 <= found.excess <= found.evaluated_under.sum() * found.l1 + 1e-12


def test_the_bounds_can_be_attained():
    # All mass at one end of the gap between the thresholds 0.5 and 0.2, where the sum of the
    # weights is 2: Proposition 2 is an equality, 2 * 0.3.
    found = excess_risk([0.5, 0.5], [0.5, 0.5], (1, 1), (1, 4))
    assert found.irreducible == pytest.approx(0.6) == found.irreducible_bound
    # All estimates at the threshold, on the wrong side of it: so is Proposition 1.
    found = excess_risk([0.9, 0.1], [0.5, 0.5 + 1e-12], (1, 1), (1, 1))
    assert found.estimation == pytest.approx(0.8) == found.estimation_bound


@each_pair
@pytest.mark.parametrize("p", [0.3, 0.5, 0.8, 0.95])
def test_the_synthetic_model_in_closed_form(p, q, evaluated):
    model = PowerImbalance(p)
    found = of_model(model, model.predict_proba, q, evaluated)
    s = model.bayes_threshold_x(q)
    irreducible = model.weighted_risk(s, evaluated) - model.bayes_risk(evaluated)
    # A jump of the rule is off by at most one of the 20,000 points.
    rough = model.weights(evaluated).sum() / 20_000
    assert found.irreducible == pytest.approx(irreducible, abs=rough)
    assert found.estimation == 0 and found.l1 == 0 and found.disagreement == 0
    # Proposition 2 with the measure of the region between the thresholds, in closed form.
    ends = sorted([s, model.bayes_threshold_x(evaluated)])
    shift = abs(model.threshold(q) - model.threshold(evaluated))
    bound = model.weights(evaluated).sum() * shift * (ends[1] - ends[0])
    assert found.irreducible_bound == pytest.approx(bound, abs=rough)
    assert irreducible <= bound + 1e-12


@each_pair
@pytest.mark.parametrize("power", [1.0, 3.0, 6.0])
def test_a_wrong_power_in_closed_form(power, q, evaluated):
    # An estimate x^b decides at t^(1/b), where the truth would decide at t^(1/a).
    model = PowerImbalance(0.8)
    found = of_model(model, lambda X: X[:, 0] ** power, q, evaluated)
    t = model.threshold(q)
    risks = [model.weighted_risk(t ** (1 / b), evaluated) for b in (power, model.exponent)]
    rough = 2 * model.weights(evaluated).sum() / 20_000
    assert found.estimation == pytest.approx(risks[0] - risks[1], abs=rough)
    assert found.excess == pytest.approx(risks[0] - model.bayes_risk(evaluated), abs=rough)
    assert found.l1 == pytest.approx(abs(1 / (power + 1) - 1 / (model.exponent + 1)), abs=1e-6)


# The theory, seen: local polynomials on the synthetic model.

MODEL = PowerImbalance(0.8)


def replications(n, n_replications, *, degree=1, model=MODEL, n_points=2000):
    X, w = model.quadrature(n_points)
    eta = model.predict_proba(X)
    for seed in range(n_replications):
        fit = LocalPolynomialClassifier(degree).fit(*model.sample(n, random_state=seed))
        found = fit.predict_proba(X)
        yield {
            name: excess_risk(eta, found, *pair, sample_weight=w) for name, pair in PAIRS.items()
        }


def check_bounds(n, n_replications, **settings):
    seen = 0
    for found in replications(n, n_replications, **settings):
        for each in found.values():
            assert abs(each.estimation) <= each.estimation_bound + 1e-12
            assert each.irreducible <= each.irreducible_bound + 1e-12
            seen += 1
    assert seen == n_replications * len(PAIRS)


def test_errors_lie_below_their_bounds_in_200_replications():
    check_bounds(300, 200)


@pytest.mark.slow
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("p", [0.6, 0.9, 0.98])
@pytest.mark.parametrize("n", [500, 5000])
def test_errors_lie_below_their_bounds_for_every_degree_and_prior(degree, p, n):
    check_bounds(n, 200, degree=degree, model=PowerImbalance(p))


def mean_errors(sizes, n_replications, **settings):
    """Mean excess and irreducible error for each number of rows and pair of weightings."""
    tables = []
    for n in sizes:
        found = list(replications(n, n_replications, **settings))
        tables.append(
            {
                name: np.mean(
                    [[each[name].excess, each[name].irreducible] for each in found], axis=0
                )
                for name in found[0]
            }
        )
    return tables


def check_rates(sizes, n_replications, *, degree, smoothness, n_points=2000):
    tables = mean_errors(sizes, n_replications, degree=degree, n_points=n_points)
    allowed = -smoothness / (2 * smoothness + 1)
    excess = [table["the same"][0] for table in tables]
    fit = linregress(np.log(sizes), np.log(excess))
    # The excess risk falls at least as fast as the rate, beyond the doubt of the fitted line.
    assert fit.slope + 2 * fit.stderr <= allowed
    for name in ("too plain", "too bold"):
        measured = np.array([table[name] for table in tables])
        # The irreducible error is the same for every n, and the excess risk tends to it.
        assert np.ptp(measured[:, 1]) <= 1e-12 and measured[0, 1] > 0.01
        assert measured[-1, 0] == pytest.approx(measured[-1, 1], rel=0.2)
        assert measured[-1, 0] > 10 * excess[-1]


def test_excess_risk_decays_at_the_rate_and_irreducible_error_does_not():
    check_rates([300, 1000, 3000, 10_000], 20, degree=1, smoothness=2)


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "smoothness"), [(0, 1), (1, 2), (2, 3)])
def test_rates_of_every_degree(degree, smoothness):
    # More rows, smaller errors: finer points to see them with.
    sizes = [300, 1000, 3000, 10_000, 30_000, 100_000]
    check_rates(sizes, 60, degree=degree, smoothness=smoothness, n_points=20_000)


# Estimates from a sample.


def test_all_rows_of_a_sample_are_an_estimate_of_the_model():
    X, y = MODEL.sample(100_000, random_state=0)
    eta = MODEL.predict_proba(X)
    estimate = X[:, 0] ** 2
    exact = of_model(MODEL, lambda X: X[:, 0] ** 2, "standard", "balanced")
    for labels in (None, y):
        found = excess_risk(
            eta,
            estimate,
            "standard",
            "balanced",
            y=labels,
            n_resamples=50,
            random_state=0,
        )
        assert isinstance(found, ExcessRisk)
        for part in ("excess", "estimation", "irreducible"):
            assert getattr(found, part) == pytest.approx(getattr(exact, part), abs=0.01)
            lower, upper = found.intervals[part]
            assert lower < getattr(found, part) < upper and upper - lower < 0.05
        assert found.excess == pytest.approx(found.estimation + found.irreducible)


def check_coverage(n, n_draws, *, labelled):
    exact = of_model(MODEL, lambda X: X[:, 0] ** 2, (1, 1), (1, 4))
    parts = ("excess", "estimation", "irreducible")
    covered = np.zeros(3)
    for seed in range(n_draws):
        X, y = MODEL.sample(n, random_state=seed)
        found = excess_risk(
            MODEL.predict_proba(X),
            X[:, 0] ** 2,
            (1, 1),
            (1, 4),
            y=y if labelled else None,
            n_resamples=200,
            random_state=seed,
        )
        ends = [found.intervals[part] for part in parts]
        values = [getattr(exact, part) for part in parts]
        covered += [low <= value <= high for (low, high), value in zip(ends, values, strict=True)]
    return covered / n_draws


@pytest.mark.parametrize("labelled", [False, True])
def test_bootstrap_intervals_cover(labelled):
    # Percentile intervals are approximate: two points for that, and three standard errors.
    n_draws = 200
    slack = 0.02 + 3 * np.sqrt(0.05 * 0.95 / n_draws)
    assert np.all(check_coverage(500, n_draws, labelled=labelled) >= 0.95 - slack)


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [False, True])
def test_bootstrap_intervals_cover_in_many_draws(labelled):
    assert np.all(check_coverage(2000, 2000, labelled=labelled) >= 0.945)


def test_labels_make_up_for_a_poor_reference():
    # The reference is off by a factor; its rules are evaluated by what really happened.
    X, y = MODEL.sample(200_000, random_state=1)
    reference, estimate = 0.5 * MODEL.eta(X[:, 0]), X[:, 0] ** 2
    found = excess_risk(reference, estimate, (1, 1), (1, 4), y=y, n_resamples=20, random_state=0)
    x = X[:, 0]
    # Half of eta above t is eta above 2 t; above one half none is.
    rules = [x**2 > 0.5, np.zeros(len(x), dtype=bool), MODEL.eta(x) > 0.4]
    mass = np.bincount(y) * [1, 4] / (np.bincount(y) @ [1, 4])
    risks = [mass @ [np.mean(rule[y == 0]), np.mean(~rule[y == 1])] for rule in rules]
    assert found.excess == pytest.approx(risks[0] - risks[2], abs=1e-9)
    assert found.irreducible == pytest.approx(risks[1] - risks[2], abs=1e-9)


def test_columns_by_name():
    eta, estimate, _ = draw(50, 2, 0)
    plain = excess_risk(eta, estimate, "standard", "balanced")
    assert plain.intervals is None and set(plain.to_dict()) >= {"excess", "l1", "estimation_bound"}
    found = excess_risk(eta, estimate, "standard", "balanced", n_resamples=500)
    assert found.to_dict()["excess_lower"] == found.intervals["excess"][0]
    assert repr(plain).startswith("excess risk ") and "estimation" in repr(plain)
    assert len(repr(found).splitlines()) == 4 and "irreducible" in repr(found).splitlines()[-1]
    again = excess_risk(
        eta, estimate, "standard", "balanced", n_resamples=30, confidence=0.5, random_state=3
    )
    same = excess_risk(
        eta, estimate, "standard", "balanced", n_resamples=30, confidence=0.5, random_state=3
    )
    assert again.intervals == same.intervals


# Inside a class of functions.


def test_the_identity_inside_a_class():
    fitted, made, evaluated = [0.3, 0.2], [0.25, 0.15], [0.1, 0.35]
    found = excess_risk_in_class(fitted, made, evaluated, (1, 2), class_prior=[0.75, 0.25])
    mass = np.array([0.75, 0.5]) / 1.25
    assert found.estimation == pytest.approx(mass @ np.subtract(fitted, made))
    assert found.irreducible == pytest.approx(mass @ np.subtract(made, evaluated))
    assert found.excess == pytest.approx(found.estimation + found.irreducible)


def test_convergence_under_one_weighting_says_nothing_about_another():
    # Class risks (0, 1) and (1, 0) tie under equal masses, and differ by 0.8 under (0.9, 0.1):
    # a fit that is optimal under q need not come near the best q'-risk plus the irreducible part.
    found = excess_risk_in_class([1, 0], [0, 1], [0, 1], (1.8, 0.2), class_prior=[0.5, 0.5])
    assert found.estimation == pytest.approx(0.8) and found.irreducible == 0


def test_linear_models_on_the_synthetic_model():
    rows, labels = MODEL.sample(2000, random_state=0)
    many, truth = MODEL.sample(100_000, random_state=1)
    plain, balanced = LogisticRegression(), LogisticRegression(class_weight="balanced")
    fits = (
        plain.fit(rows, labels).predict(many),
        *(each.fit(many, truth).predict(many) for each in (LogisticRegression(), balanced)),
    )
    risks = [class_risks(truth, each) for each in fits]
    found = excess_risk_in_class(*risks, "balanced")
    assert found.irreducible > 0.05 > abs(found.estimation)
    assert found.excess == pytest.approx(risks[0].balanced() - risks[2].balanced())


def test_class_risks_are_matched_by_name():
    first = ClassRisks({"a": 0.1, "b": 0.4}, {"a": 0.6, "b": 0.4})
    turned = ClassRisks({"b": 0.2, "a": 0.3}, {"b": 0.4, "a": 0.6})
    found = excess_risk_in_class(first, turned, turned, "standard")
    assert found.estimation == pytest.approx(0.6 * (0.1 - 0.3) + 0.4 * (0.4 - 0.2))
    assert found.irreducible == 0
    other = excess_risk_in_class(
        first, turned, turned, "standard", class_prior={"a": 0.5, "b": 0.5}
    )
    assert other.estimation == pytest.approx(0.0)


ETA = [0.2, 0.4, 0.9]
BAD = {
    "a classifier": (
        lambda: excess_risk(ETA, LogisticRegression(), (1, 1), (1, 2)),
        "predict_proba",
    ),
    "shape": (lambda: excess_risk(ETA, ETA[:2], "standard", "balanced"), "shape of the true"),
    "sums": (lambda: excess_risk([[0.5, 0.4]], [[0.5, 0.5]], "standard", "balanced"), "sum"),
    "word": (lambda: excess_risk(ETA, ETA, "even", "balanced"), "fitted_for must be"),
    "weights": (lambda: excess_risk(ETA, ETA, (1, 1), (1, 1, 1)), "evaluated_under must be"),
    "labels": (lambda: excess_risk(ETA, ETA, (1, 1), (1, 2), y=[0, 1, 2]), "0 to 1"),
    "text": (lambda: excess_risk(ETA, ETA, (1, 1), (1, 2), y=["a"] * 3), "position"),
    "one class": (lambda: excess_risk(ETA, ETA, (1, 1), (1, 2), y=[0] * 3), "occur"),
    "no probability": (lambda: excess_risk([0, 0], [0.2, 0.6], "standard", (1, 2)), "occur"),
    "resamples of another population": (
        lambda: excess_risk(ETA, ETA, (1, 1), (1, 2), n_resamples=9, class_prior=[0.5, 0.5]),
        "n_resamples must be 0 where class_prior",
    ),
    "resamples": (
        lambda: excess_risk(ETA, ETA, (1, 1), (1, 2), n_resamples=-1),
        "n_resamples must be",
    ),
    "confidence": (
        lambda: excess_risk(ETA, ETA, (1, 1), (1, 2), confidence=2),
        "confidence must be",
    ),
    "no prior": (lambda: excess_risk_in_class([0, 1], [0, 1], [0, 1], (1, 1)), "prior must be"),
    "risks": (
        lambda: excess_risk_in_class([0, 1], [0, 1, 1], [0, 1], (1, 1), class_prior=[0.5, 0.5]),
        "one value for each of the 2 classes",
    ),
    "names": (
        lambda: excess_risk_in_class(
            ClassRisks([0.1, 0.2], [0.5, 0.5]), ClassRisks({"a": 1.0}, {"a": 1.0}), [0, 1], (1, 1)
        ),
        "names 'a', not among the classes",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence(case):
    call, match = BAD[case]
    with pytest.raises((InvalidInputError, InvalidParameterError), match=match):
        call()
