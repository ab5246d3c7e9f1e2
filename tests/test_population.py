"""Probabilities put back to the population: Bayes' rule, round trips, extremes and refusals."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression

from equipoise import FixedWeights, RobustLogisticRegression, population_proba
from equipoise.exceptions import (
    ClassMismatchError,
    InvalidInputError,
    InvalidParameterError,
    UnidentifiableError,
)
from equipoise.risks import rescale_proba

TINY = np.finfo(np.float64).tiny
# Below the smallest normal number a result has fewer digits: a few of its steps.
STEPS = 1e-322
EXTREMES = [0.0, 1e-300, 1e-20, 1e-3, 0.5, 1.0]


@st.composite
def worlds(draw):
    """Rows of probabilities, many of them extreme, and two priors."""
    n, k = draw(st.integers(1, 5)), draw(st.integers(2, 5))
    raw = draw(arrays(np.float64, (n, k), elements=st.sampled_from(EXTREMES)))
    assume(raw.sum(axis=1).min() > 0)
    shares = arrays(np.float64, k, elements=st.floats(1e-6, 1))
    first, second = draw(shares), draw(shares)
    return raw / raw.sum(axis=1, keepdims=True), first / first.sum(), second / second.sum()


def exactly(row, factors):
    """Bayes' rule in rational numbers."""
    odds = [Fraction(float(p)) * f for p, f in zip(row, factors, strict=True)]
    return [float(part / sum(odds)) for part in odds]


@given(world=worlds())
def test_bayes_rule_holds_to_the_last_digits(world):
    probabilities, masses, prior = world
    factors = [Fraction(float(p)) / Fraction(float(m)) for p, m in zip(prior, masses, strict=True)]
    expected = [exactly(row, factors) for row in probabilities]
    result = rescale_proba(probabilities, masses=masses, class_prior=prior)
    np.testing.assert_allclose(result, expected, rtol=1e-14, atol=STEPS)


@given(world=worlds())
def test_there_and_back_is_where_it_was(world):
    probabilities, masses, prior = world
    there = rescale_proba(probabilities, masses=prior, target_prior=masses)
    # Digits that are lost on the way there do not come back.
    assume(there[probabilities > 0].min() >= TINY)
    back = rescale_proba(there, masses=masses, class_prior=prior)
    np.testing.assert_allclose(back, probabilities, rtol=1e-14, atol=STEPS)


@given(world=worlds())
def test_weights_are_masses_over_priors(world):
    probabilities, masses, prior = world
    by_masses = rescale_proba(probabilities, masses=masses, class_prior=prior)
    for scale in (1.0, 7e5):
        by_weights = rescale_proba(probabilities, weights=scale * masses / prior, class_prior=prior)
        np.testing.assert_allclose(by_weights, by_masses, rtol=1e-13, atol=STEPS)
        alone = rescale_proba(probabilities, weights=scale * masses / prior)
        np.testing.assert_allclose(alone, by_masses, rtol=1e-13, atol=STEPS)


@given(world=worlds())
def test_one_step_is_as_good_as_two(world):
    probabilities, masses, prior = world
    k = len(prior)
    even = np.full(k, 1 / k)
    middle = rescale_proba(probabilities, masses=masses, class_prior=even)
    assume(middle[probabilities > 0].min() >= TINY)
    two = rescale_proba(middle, masses=even, class_prior=prior)
    one = rescale_proba(probabilities, weights=masses, class_prior=even, target_prior=prior)
    np.testing.assert_allclose(two, one, rtol=1e-13, atol=STEPS)


@given(world=worlds())
def test_rows_sum_to_one_and_zeros_stay_zeros(world):
    probabilities, masses, prior = world
    result = rescale_proba(probabilities, masses=masses, class_prior=prior)
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-14)
    assert np.all(result[probabilities == 0] == 0)


def test_equal_weights_change_nothing():
    probabilities = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(rescale_proba(probabilities, weights=[3, 3, 3]), probabilities)


def test_products_neither_overflow_nor_vanish():
    row = np.array([[1.0, 1e-300]])
    result = rescale_proba(row, weights=[1e300, 1e-5])
    np.testing.assert_allclose(result, [[1e-5 / (1e-5 + 1), 1 / (1e-5 + 1)]], rtol=1e-12)


def test_the_short_form_is_the_second_class():
    short = rescale_proba([0.5, 0.9], weights=[1, 9])
    np.testing.assert_allclose(short, rescale_proba([[0.5, 0.5], [0.1, 0.9]], weights=[1, 9]))
    np.testing.assert_allclose(short, [[0.9, 0.1], [0.5, 0.5]])


def test_values_by_class_are_matched_by_name():
    rows = pd.DataFrame({"spam": [0.5], "ham": [0.5]})
    result = rescale_proba(rows, weights={"ham": 1, "spam": 9}, classes=rows.columns)
    np.testing.assert_allclose(result, [[0.1, 0.9]])
    by_masses = rescale_proba(
        rows,
        masses={"ham": 0.5, "spam": 0.5},
        class_prior={"ham": 0.9, "spam": 0.1},
        classes=["spam", "ham"],
    )
    np.testing.assert_allclose(by_masses, result)


def test_balanced_weights_are_known_by_name():
    prior = np.array([0.7, 0.2, 0.1])
    rows = [[0.2, 0.3, 0.5]]
    expected = rescale_proba(rows, masses=[1 / 3] * 3, class_prior=prior)
    np.testing.assert_allclose(rescale_proba(rows, weights="balanced", class_prior=prior), expected)


def test_a_class_of_prior_zero_has_probability_zero():
    result = rescale_proba([[0.2, 0.3, 0.5]], masses=[0.5, 0.5, 0], class_prior=[0.25, 0.75, 0])
    np.testing.assert_allclose(result, [[0.1 / 0.55, 0.45 / 0.55, 0]])


def draw(n, seed=None):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    return rng.normal(size=(n, 1)) + 1.5 * y[:, None], y


def test_a_weighted_fit_comes_back_to_the_plain_one():
    # The logistic model is true here, so that both fits estimate the same function.
    X, y = draw(20_000)
    plain = LogisticRegression(C=np.inf).fit(X, y)
    weights = {0: 1.0, 1: 8.0}
    weighted = LogisticRegression(C=np.inf, class_weight=weights).fit(X, y)
    back = rescale_proba(weighted.predict_proba(X), weights=weights)
    off = np.abs(weighted.predict_proba(X) - plain.predict_proba(X)).mean()
    assert np.abs(back - plain.predict_proba(X)).mean() < 0.1 * off


@pytest.mark.parametrize("target", [None, [0.3, 0.7]])
def test_the_estimators_own_method_agrees(target):
    X, y = draw(500)
    clf = RobustLogisticRegression(FixedWeights([1.0, 5.0])).fit(X, y)
    expected = rescale_proba(
        clf.predict_proba(X),
        weights=clf.worst_case_weights_,
        class_prior=clf.class_prior_,
        target_prior=target,
        classes=clf.classes_,
    )
    np.testing.assert_allclose(population_proba(clf, X, target), expected, rtol=1e-12)


# Refusals


ROWS = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]
THIRDS = [1 / 3] * 3

REFUSED = {
    "neither": ({}, InvalidInputError, "either the weights or the masses.* got neither"),
    "both": ({"weights": THIRDS, "masses": THIRDS}, InvalidInputError, "got both"),
    "no prior": ({"masses": THIRDS}, InvalidInputError, "prior is needed, the class frequencies"),
    "no first prior": (
        {"weights": THIRDS, "target_prior": THIRDS},
        InvalidInputError,
        "prior is needed, the class frequencies",
    ),
    "balanced": ({"weights": "balanced"}, InvalidInputError, "prior is needed"),
    "word": ({"weights": "heavy", "class_prior": THIRDS}, InvalidParameterError, "got 'heavy'"),
    "negative": ({"weights": [1, -1, 1]}, InvalidParameterError, "weights must hold finite"),
    "sum": (
        {"masses": [1, 2, 3], "class_prior": THIRDS},
        InvalidParameterError,
        "masses must sum",
    ),
    "no mass": ({"weights": [1, 0, 1]}, UnidentifiableError, "Class 1 carries no mass"),
    "no mass named": (
        {"masses": [0.5, 0, 0.5], "class_prior": THIRDS, "classes": ["a", "b", "c"]},
        UnidentifiableError,
        "Class 'b' carries no mass",
    ),
    "length": ({"weights": [1, 2]}, ClassMismatchError, "each of the 3 classes"),
    "names": ({"weights": {"a": 1, "b": 2, "c": 3}}, ClassMismatchError, "classes= must name"),
    "missing": ({"weights": {0: 1, 1: 2}}, ClassMismatchError, "2 is missing"),
    "columns": ({"weights": THIRDS, "classes": ["a"]}, ClassMismatchError, "each of the 3 classes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_in_a_sentence(case):
    options, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        rescale_proba(ROWS, **options)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([[0.5, 0.6]], "sum to 1"), ([[np.nan, 1]], "finite"), ([[-0.5, 1.5]], "at least 0")],
)
def test_rows_must_be_probabilities(rows, message):
    with pytest.raises(InvalidInputError, match=message):
        rescale_proba(rows, weights=[1, 2])


def test_a_row_without_any_possible_class_is_named():
    rows = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    with pytest.raises(UnidentifiableError, match="Row 1 has probability 0"):
        rescale_proba(rows, masses=THIRDS, class_prior=[0.5, 0.5, 0])
