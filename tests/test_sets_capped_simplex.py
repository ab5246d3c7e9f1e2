"""Numbers for the capped simplex: water-filling, its dual, projections, degenerate caps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from equipoise.exceptions import ClassMismatchError, EmptySetError, InvalidParameterError
from equipoise.sets import CappedSimplex, Hull, LabelCVaR, LabelHCVaR, WorstClass

MODEST = settings(max_examples=60, derandomize=True)


@st.composite
def boxes(draw):
    """Floors below one, caps above, some of them exactly 0 or 1, and risks with ties."""
    size = draw(st.integers(1, 12))
    numbers = st.lists(
        st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)), min_size=size, max_size=size
    ).map(np.array)
    lower, upper = draw(numbers), draw(numbers)
    lower = lower / max(lower.sum(), 1) * draw(st.sampled_from([0.0, 0.5, 0.9, 1.0]))
    upper = np.maximum(lower, upper)
    upper = np.minimum(upper / min(upper.sum(), 1), 1) if upper.sum() > 0 else np.ones(size)
    risks = st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0, -2.0]), min_size=size, max_size=size)
    return np.minimum(lower, upper), upper, np.array(draw(risks))


def test_the_example_of_the_notes():
    # p = (.9, .1), R = (.2, .6), alpha = .5: LCVaR is .28 at lambda = .2.
    mass_set = LabelCVaR(0.5).resolve([0.9, 0.1])
    np.testing.assert_allclose(mass_set.maximize([0.2, 0.6]), [0.8, 0.2], atol=1e-15)
    assert mass_set.support([0.2, 0.6]) == pytest.approx(0.28, abs=1e-15)
    assert mass_set.dual([0.2, 0.6]) == pytest.approx((0.2, 0.28), abs=1e-15)


@MODEST
@given(boxes())
def test_filling_is_optimal(box):
    lower, upper, risks = box
    found = linprog(
        -risks, A_eq=np.ones((1, len(risks))), b_eq=[1], bounds=np.column_stack(box[:2])
    )
    assert CappedSimplex(lower, upper).support(risks) == pytest.approx(-found.fun, abs=1e-9)


@MODEST
@given(boxes())
def test_the_dual_value_is_the_support_value(box):
    lower, upper, risks = box
    mass_set = CappedSimplex(lower, upper)
    level, value = mass_set.dual(risks)
    assert value == pytest.approx(mass_set.support(risks), abs=1e-13)
    # No other level does better: the dual is convex, with kinks at the risks.
    for other in {level - 0.1, level + 0.1, *risks}:
        excess = np.maximum(risks - other, 0) @ (upper - lower)
        assert other * (1 - lower.sum()) + excess + lower @ risks >= value - 1e-12


@MODEST
@given(boxes())
def test_the_projection_clips_one_shift(box):
    lower, upper, risks = box
    mass = CappedSimplex(lower, upper).project(risks)
    inside = (mass > lower + 1e-12) & (mass < upper - 1e-12)
    shifts = (risks - mass)[inside]
    assert np.ptp(shifts) <= 1e-12 if len(shifts) else True
    if len(shifts):
        np.testing.assert_allclose(mass, np.clip(risks - shifts[0], lower, upper), atol=1e-12)


def test_the_level_is_the_first_class_that_reaches_one():
    assert CappedSimplex(np.zeros(3), [0.5, 0.6, 0.9]).dual([3.0, 2.0, 1.0])[0] == 2
    # Ten times 0.1 falls short of 1 in floating point, and counts as 1.
    caps, risks = np.append(np.full(10, 0.1), 0.5), np.arange(11.0, 0.0, -1.0)
    assert np.cumsum(caps)[9] < 1
    assert CappedSimplex(np.zeros(11), caps).dual(risks)[0] == 2


def test_ties_share_in_proportion_to_their_room():
    mass_set = CappedSimplex([0, 0, 0.1], [0.5, 0.4, 0.3])
    np.testing.assert_allclose(
        mass_set.maximize([2.0, 1.0, 1.0]), [0.5, 4 / 15, 0.1 + 2 / 15], atol=1e-15
    )
    np.testing.assert_array_equal(
        WorstClass().resolve(np.full(4, 0.25)).maximize([1.0, 3.0, 3.0, 2.0]), [0, 0.5, 0.5, 0]
    )


@pytest.mark.parametrize(
    ("recipe", "whole"),
    [
        (WorstClass(), True),
        (LabelCVaR(0.05), True),
        (LabelCVaR(0.1), True),
        (LabelCVaR(0.1 + 1e-9), False),
        (LabelHCVaR(c=1), True),
        (LabelHCVaR(c=0.3), True),
        (LabelHCVaR(kappa=1), True),
        (LabelHCVaR(kappa=1.001), False),
        (LabelHCVaR(kappa=0.9), False),
    ],
)
def test_caps_that_bind_nowhere_leave_the_simplex(recipe, whole):
    assert recipe.resolve([0.55, 0.35, 0.1]).is_simplex == whole


@pytest.mark.parametrize("seed", range(20))
def test_rounding_does_not_hide_the_simplex(seed):
    prior = np.random.default_rng(seed).dirichlet(np.ones(7))
    assert LabelHCVaR(c=1, kappa=1).resolve(prior).is_simplex
    assert LabelCVaR(prior.min()).resolve(prior).is_simplex


@pytest.mark.parametrize("size", [1e4, 1e8, 1e12])
def test_far_points_lose_no_digits_of_the_sum(size):
    rng = np.random.default_rng(0)
    mass_set = CappedSimplex(np.full(9, 0.02), np.full(9, 0.3))
    for _ in range(50):
        point = rng.normal(size=9) * rng.choice([1.0, size], 9)
        assert abs(mass_set.project(point).sum() - 1) <= 1e-14
        assert abs(WorstClass().resolve(np.ones(9) / 9).project(point).sum() - 1) <= 1e-14


def test_one_mass_is_left_where_the_bounds_sum_to_one():
    prior = np.array([0.7, 0.2, 0.1])
    for mass_set in (CappedSimplex(np.zeros(3), prior), CappedSimplex(prior, np.ones(3))):
        np.testing.assert_allclose(mass_set.maximize([1.0, 5.0, 2.0]), prior, atol=1e-15)
        np.testing.assert_allclose(mass_set.project([1.0, -5.0, 2.0]), prior, atol=1e-15)


def test_a_class_of_prior_zero_has_no_mass_under_any_weight():
    mass_set = LabelCVaR(0.5).resolve([0.5, 0.5, 0.0])
    assert mass_set.maximize([0.0, 0.0, 9.0])[2] == mass_set.project([0.0, 0.0, 9.0])[2] == 0


def test_a_million_classes():
    rng = np.random.default_rng(0)
    prior, risks = rng.dirichlet(np.ones(1_000_000)), rng.random(1_000_000)
    mass_set = LabelCVaR(0.25).resolve(prior)
    for mass in (mass_set.maximize(risks), mass_set.project(risks)):
        assert abs(mass.sum() - 1) <= 1e-12 and mass.min() >= 0 and np.all(mass <= mass_set.upper)
    assert mass_set.dual(risks)[1] == pytest.approx(mass_set.support(risks), abs=1e-12)


def test_the_bounds_cannot_be_changed():
    mass_set = CappedSimplex([0.0, 0.0], [0.5, 0.9])
    with pytest.raises(AttributeError):
        mass_set.upper = np.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        mass_set.upper[0] = 1


@pytest.mark.parametrize(
    ("lower", "upper", "error", "message"),
    [
        (
            [0.6, 0.6],
            [1, 1],
            EmptySetError,
            "is at most 1, got a sum of 1.2.",
        ),
        (
            [0, 0],
            [0.4, 0.5],
            EmptySetError,
            "is at least 1, got a sum of 0.9.",
        ),
        ([0, 0.5], [1, 0.4], InvalidParameterError, "lower = 0.5 and upper = 0.4 for class number"),
        ([0, -0.5], [1, 0.4], InvalidParameterError, "0 <= lower <= upper, got lower = -0.5"),
        ([0, 0], [1, np.nan], InvalidParameterError, "upper = nan for class number 1"),
        ([0, 0], [1], ClassMismatchError, "one value per class, got shapes"),
    ],
)
def test_impossible_bounds_are_refused(lower, upper, error, message):
    with pytest.raises(error, match=message):
        CappedSimplex(lower, upper)


def test_a_point_is_a_probability_vector():
    with pytest.raises(InvalidParameterError, match=r"vertices\[0\] must sum to 1, got a sum of"):
        Hull([[0.5, 0.4]])
