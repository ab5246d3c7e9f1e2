"""robust_risk_interval: its definition, that it covers, and what it is for known sets."""

import numpy as np
import pytest
from scipy import stats

from equipoise import LabelCVaR, PriorBox, class_risk_intervals, class_risks, robust_risk_interval
from equipoise.exceptions import ClassMismatchError, InvalidParameterError
from set_examples import every_example, few_examples

each_set = pytest.mark.parametrize("recipe", few_examples(), ids=repr)


def rows_with(errors, counts):
    """Labels and predictions with so many errors in each class."""
    truth = np.repeat(np.arange(len(counts)), counts)
    wrong = np.concatenate([np.arange(n) < e for e, n in zip(errors, counts, strict=True)])
    return truth, np.where(wrong, -1, truth)


@each_set
def test_the_ends_are_robust_risks_of_simultaneous_bounds(recipe):
    errors, counts, prior = [3, 9, 1], [60, 40, 9], [0.6, 0.3, 0.1]
    found = robust_risk_interval(
        *rows_with(errors, counts), recipe, class_prior=prior, confidence=0.9
    )
    masses = recipe.resolve(np.array(prior))
    tail = 1 - 0.95 ** (1 / 3)
    pairs = list(zip(errors, counts, strict=True))
    lower = [stats.beta.ppf(tail, e, n - e + 1) for e, n in pairs]
    # On the whole simplex the worst class decides alone, and its bound need hold alone.
    tail = 0.05 if masses.is_simplex else tail
    upper = [stats.beta.ppf(1 - tail, e + 1, n - e) for e, n in pairs]
    assert found.lower == pytest.approx(masses.support(np.array(lower)))
    assert found.upper == pytest.approx(masses.support(np.array(upper)))
    assert found.estimate == pytest.approx(masses.support(np.divide(errors, counts)))
    assert found.lower < found.estimate < found.upper
    assert found.method == "exact (Clopper-Pearson)" and not found.approximate


def test_of_the_worst_class_it_is_the_interval_that_was_there():
    rows = rows_with([2, 30, 1], [40, 100, 4])
    found = robust_risk_interval(*rows, "worst_class")
    worst = class_risk_intervals(*rows).worst()
    assert (found.lower, found.upper) == pytest.approx((worst.lower, worst.upper))
    # So it is of a set that comes to the same.
    assert robust_risk_interval(*rows, LabelCVaR(0.02)) == found


def test_a_larger_set_has_larger_ends():
    rows = rows_with([2, 30, 1], [40, 100, 4])
    small, large = (robust_risk_interval(*rows, LabelCVaR(alpha)) for alpha in (0.9, 0.3))
    assert small.lower < large.lower and small.upper < large.upper


@pytest.mark.parametrize("recipe", every_example(), ids=repr)
def test_without_a_prior_the_set_is_at_the_shares_of_the_rows(recipe):
    rows = rows_with([3, 9, 1], [60, 40, 20])
    found = robust_risk_interval(*rows, recipe)
    told = robust_risk_interval(*rows, recipe, class_prior=np.array([60, 40, 20]) / 120)
    ends = found.estimate, found.lower, found.upper
    assert ends == pytest.approx((told.estimate, told.lower, told.upper))
    assert found.estimate == pytest.approx(class_risks(*rows).robust(recipe))


# Coverage by simulation, given the labels: guaranteed, so never below the confidence.

REPEATS = 400
WORLDS = {
    "few rows": ([20, 12, 7], [0.05, 0.3, 0.34], [0.5, 0.3, 0.2]),
    "one rare class": ([400, 300, 8], [0.02, 0.1, 0.2], [0.9, 0.08, 0.02]),
    "many classes": ([15] * 8, [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0], [0.3] + [0.1] * 7),
}


@each_set
@pytest.mark.parametrize("world", WORLDS)
def test_it_covers_the_robust_risk_of_the_population(recipe, world):
    counts, risks, prior = (np.array(each) for each in WORLDS[world])
    truth = recipe.resolve(prior).support(risks.astype(float))
    tables = np.random.default_rng(0).binomial(counts, risks, size=(REPEATS, len(counts)))
    hits = below = 0
    for errors, times in zip(*np.unique(tables, axis=0, return_counts=True), strict=True):
        found = robust_risk_interval(
            *rows_with(errors, counts), recipe, class_prior=prior, confidence=0.8
        )
        hits += times * (truth in found)
        below += times * (truth > found.upper)
    # Where coverage is 0.8, and each end is missed with 0.1, worse has a probability of 1e-4.
    assert hits >= stats.binom.ppf(1e-4, REPEATS, 0.8)
    assert below <= stats.binom.ppf(1 - 1e-4, REPEATS, 0.1)


def test_with_each_class_alone_it_would_not_cover():
    # The simulation can tell: bounds that hold one by one do not hold together.
    counts, risks = np.full(30, 40), np.full(30, 0.2)
    tables = np.random.default_rng(0).binomial(counts, risks, size=(200, 30))
    alone = together = 0
    for errors in tables:
        rows = rows_with(errors, counts)
        together += 0.2 in robust_risk_interval(*rows, LabelCVaR(0.1), confidence=0.8)
        lower = np.asarray(class_risk_intervals(*rows, confidence=0.8).lower)
        alone += np.sort(lower)[-3:].mean() <= 0.2
    assert together >= 160 and alone < 160


def test_margin_losses_are_covered_in_their_worst_case():
    # Coins of 0 and 1 are the least favourable losses with values between.
    rng, hits, repeats = np.random.default_rng(3), 0, 400
    truth, recipe = np.repeat([0, 1], 30), LabelCVaR(0.7)
    robust = recipe.resolve(np.array([0.5, 0.5])).support(np.array([0.1, 0.1]))
    for _ in range(repeats):
        decision = np.where(rng.random(60) < 0.1, -2.0, 2.0) * np.where(truth == 1, 1, -1)
        hits += robust in robust_risk_interval(
            truth, decision, recipe, loss="margin", confidence=0.8
        )
    assert hits >= stats.binom.ppf(1e-4, repeats, 0.8)


# Row weights, names, and what cannot be


def test_uneven_weights_are_approximate_and_even_ones_are_not():
    truth, guess = rows_with([2, 5], [30, 20])
    weights = np.random.default_rng(0).uniform(0.5, 2, 50)
    uneven = robust_risk_interval(truth, guess, LabelCVaR(0.6), sample_weight=weights)
    assert uneven.approximate and "effective counts" in uneven.method
    risks = class_risks(truth, guess, sample_weight=weights)
    assert uneven.estimate == pytest.approx(risks.robust(LabelCVaR(0.6)))
    # Weights that are constant within each class move its share alone.
    even = robust_risk_interval(
        truth, guess, LabelCVaR(0.6), sample_weight=np.where(truth == 0, 1.0, 6.0)
    )
    told = robust_risk_interval(truth, guess, LabelCVaR(0.6), class_prior=[0.2, 0.8])
    assert not even.approximate
    assert (even.lower, even.upper) == pytest.approx((told.lower, told.upper))


def test_names_of_classes_are_read_by_sets_and_priors():
    truth, guess = ["ill"] * 20 + ["well"] * 80, ["ill"] * 15 + ["well"] * 85
    found = robust_risk_interval(
        truth,
        guess,
        PriorBox({"ill": 0.01, "well": 0.5}, {"ill": 0.1, "well": 0.99}),
        class_prior={"ill": 0.05, "well": 0.95},
    )
    assert found.estimate == pytest.approx(0.1 * 0.25)


def test_probabilities_are_read_by_losses_that_read_them():
    rng = np.random.default_rng(0)
    truth, proba = np.repeat([0, 1], 40), rng.uniform(0.05, 0.95, 80)
    found = robust_risk_interval(truth, proba, "worst_class", loss="cross_entropy")
    assert found.approximate
    expected = class_risks(truth, proba, loss="cross_entropy").worst()
    assert found.estimate == pytest.approx(expected)


def test_a_class_without_rows_and_a_bad_confidence_are_refused():
    with pytest.raises(ClassMismatchError, match=r"\[2\] has none"):
        robust_risk_interval([0, 1], [0, 1], "worst_class", classes=[0, 1, 2])
    with pytest.raises(InvalidParameterError, match=r"must be a number in \(0, 1\), got 95"):
        robust_risk_interval([0, 1], [0, 1], "worst_class", confidence=95)
