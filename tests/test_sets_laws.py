"""Laws that every uncertainty set obeys, over the examples of every registered one.

``set_constraints`` states each set a second time, in the words of CVXPY, so that feasibility and
optimality are evaluated by something else than the code under test.
"""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from equipoise.exceptions import EmptySetError, InvalidInputError
from equipoise.sets import (
    CappedSimplex,
    FixedWeights,
    LabelCVaR,
    MassSet,
    PriorBall,
    PriorBox,
    WeightHull,
    WorstClass,
)
from set_constraints import constraints
from set_examples import every_example

LAWS = settings(max_examples=25, derandomize=True)
FEW = settings(max_examples=12, derandomize=True)


HALVES = np.array([0.5, 0.5])
every_set = pytest.mark.parametrize("recipe", every_example(), ids=repr)


@every_set
def test_every_set_states_its_constraints(recipe):
    m = cp.Variable(2)
    assert all(isinstance(rule, cp.Constraint) for rule in constraints(recipe, m, HALVES))


@st.composite
def problems(draw, rarest=-9.0, size=1e3):
    """A prior whose classes may differ by many powers of ten, risks with ties, and a point."""
    logs = draw(st.lists(st.floats(rarest, 0), min_size=2, max_size=12))
    entries = st.one_of(st.sampled_from([0.0, 0.25, 1.0, -1.0]), st.floats(-size, size))
    vectors = st.lists(entries, min_size=len(logs), max_size=len(logs)).map(np.array)
    prior = 10.0 ** np.array(logs)
    return prior / prior.sum(), draw(vectors), draw(vectors)


def violation(recipe, prior, mass):
    m = cp.Variable(len(prior))
    m.value = mass
    rules = [*constraints(recipe, m, prior), m >= 0, cp.sum(m) == 1]
    return max(float(np.max(rule.violation())) for rule in rules)


def reference(recipe, prior, objective):
    m = cp.Variable(len(prior), nonneg=True)
    problem = cp.Problem(objective(m), [cp.sum(m) == 1, *constraints(recipe, m, prior)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        linear = problem.is_qp() and problem.objective.expr.is_pwl()
        problem.solve(solver=cp.SCIPY if linear else cp.CLARABEL)
    assume(problem.status == "optimal")  # what the reference itself calls inaccurate proves nothing
    return problem.value


def optimality_gap(mass_set, point, others):
    """Largest <v - Pv, z - Pv> over masses z of the set: not positive at the projection."""
    nearest = mass_set.project(point)
    farthest = max((point - nearest) @ (other - nearest) for other in others)
    return farthest / max(1.0, np.abs(point - nearest).max())


@every_set
@LAWS
@given(problems())
def test_masses_are_feasible(recipe, problem):
    prior, risks, point = problem
    mass_set = recipe.resolve(prior)
    for mass in (mass_set.maximize(risks), mass_set.project(point)):
        assert mass.shape == prior.shape and mass.min() >= 0
        assert abs(mass.sum() - 1) <= 1e-13
        assert violation(recipe, prior, mass) <= 1e-12


@every_set
@LAWS
@given(problems())
def test_projection_satisfies_its_variational_inequality(recipe, problem):
    prior, risks, point = problem
    mass_set = recipe.resolve(prior)
    nearest = mass_set.project(point)
    others = [mass_set.maximize(point - nearest), mass_set.maximize(risks), mass_set.project(risks)]
    assert optimality_gap(mass_set, point, others) <= 1e-12


@every_set
@LAWS
@given(problems())
def test_maximizer_is_the_limit_of_projections(recipe, problem):
    # t <r, z - P> <= <P, z - P> <= 1 for the projection P of t r and every mass z.
    prior, risks, _ = problem
    mass_set = recipe.resolve(prior)
    far = 1e7 * risks
    gap = mass_set.support(risks) - mass_set.project(far) @ risks
    assert -1e-12 * max(1, np.abs(risks).max()) <= gap <= 2e-7


@every_set
@LAWS
@given(problems())
def test_projections_are_idempotent_and_do_not_expand(recipe, problem):
    prior, risks, point = problem
    mass_set = recipe.resolve(prior)
    first, second = mass_set.project(risks), mass_set.project(point)
    np.testing.assert_allclose(mass_set.project(first), first, rtol=0, atol=1e-12)
    assert np.linalg.norm(first - second) <= np.linalg.norm(risks - point) + 1e-11


@every_set
@LAWS
@given(problems())
def test_shifting_and_scaling_the_risks_changes_nothing(recipe, problem):
    prior, risks, _ = problem
    mass_set = recipe.resolve(prior)
    value = mass_set.support(risks)
    size = max(1.0, np.abs(risks).max())
    assert mass_set.support(risks * 4) == pytest.approx(4 * value, abs=1e-12 * size)
    assert mass_set.support(risks + 8) == pytest.approx(value + 8, abs=1e-12 * size)


@every_set
@FEW
@given(problems(rarest=-2.0, size=2.0))
def test_maximizer_matches_an_independent_solver(recipe, problem):
    prior, risks, _ = problem
    expected = reference(recipe, prior, lambda m: cp.Maximize(m @ risks))
    assert recipe.resolve(prior).support(risks) == pytest.approx(expected, abs=1e-5)


@every_set
@FEW
@given(problems(rarest=-2.0, size=2.0))
def test_projection_matches_an_independent_solver(recipe, problem):
    prior, _, point = problem
    expected = reference(recipe, prior, lambda m: cp.Minimize(cp.sum_squares(m - point)))
    way = recipe.resolve(prior).project(point) - point
    assert way @ way == pytest.approx(expected, abs=1e-5)


@every_set
def test_classes_in_another_order_give_masses_in_that_order(recipe):
    rng = np.random.default_rng(0)
    prior, risks, order = rng.dirichlet(np.ones(6)), rng.random(6), rng.permutation(6)
    risks[2] = risks[4] = risks[1]
    one, other = recipe.resolve(prior), recipe.resolve(prior[order])
    np.testing.assert_allclose(one.maximize(risks)[order], other.maximize(risks[order]), atol=1e-12)
    np.testing.assert_allclose(one.project(risks)[order], other.project(risks[order]), atol=1e-12)


@every_set
def test_equal_risks_are_worth_themselves(recipe):
    mass_set = recipe.resolve([0.6, 0.3, 0.1])
    assert mass_set.support(np.full(3, 0.7)) == pytest.approx(0.7, abs=1e-15)


@every_set
def test_a_single_class_has_all_the_mass(recipe):
    if isinstance(recipe, PriorBox):
        pytest.skip("a cap below one leaves nothing for one class")
    mass_set = recipe.resolve([1.0])
    assert mass_set.is_simplex and mass_set.n_classes == 1
    assert mass_set.maximize([3.0]) == mass_set.project([-7.0]) == 1


@every_set
def test_masses_are_the_callers_to_change(recipe):
    mass_set = recipe.resolve([0.6, 0.3, 0.1])
    for method in (mass_set.maximize, mass_set.project):
        for values in ([0.1, 0.3, 0.2], [1.0, 1.0, 1.0]):
            mass = method(values)
            expected = mass.copy()
            mass += 1
            np.testing.assert_array_equal(method(values), expected)


@every_set
def test_infinite_risk_is_infinite_where_mass_can_go(recipe):
    mass_set = recipe.resolve([0.6, 0.3, 0.1])
    assert mass_set.support([0.1, np.inf, 0.2]) == np.inf


@st.composite
def infinite_problems(draw):
    """Priors, some of them zero, risks, and which of the classes are infinitely bad instead."""
    prior, risks, _ = draw(problems())
    flags = st.lists(st.booleans(), min_size=len(prior), max_size=len(prior)).map(np.array)
    absent, infinite = draw(flags), draw(flags)
    assume(not absent.all() and infinite.any())
    prior = np.where(absent, 0.0, prior)
    return prior / prior.sum(), risks, infinite


@every_set
@FEW
@given(infinite_problems())
def test_infinite_risks_count_where_they_have_mass(recipe, problem):
    prior, risks, infinite = problem
    try:
        mass_set = recipe.resolve(prior)
    except EmptySetError:
        assume(False)
    reached = bool(np.any(mass_set.bounds[1][infinite] > 0))
    # Where no mass can go, any other risk is worth the same.
    expected = np.inf if reached else mass_set.support(np.where(infinite, -1e3, risks))
    risks = np.where(infinite, np.inf, risks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mass, value = mass_set.maximize(risks), mass_set.support(risks)
        duals = [mass_set.dual(risks)[1]] if isinstance(mass_set, CappedSimplex) else []
    assert mass.min() >= 0 and abs(mass.sum() - 1) <= 1e-13
    for found in (value, *duals):
        assert found == pytest.approx(
            expected, abs=1e-12 * max(1, np.abs(risks[~infinite]).max(initial=0))
        )


@every_set
def test_broken_input_is_refused(recipe):
    mass_set = recipe.resolve([0.6, 0.3, 0.1])
    with pytest.raises(InvalidInputError, match="risks must not be NaN"):
        mass_set.maximize([0.1, np.nan, 0.2])
    with pytest.raises(InvalidInputError, match="risks must be above -inf"):
        mass_set.maximize([0.1, -np.inf, 0.2])
    with pytest.raises(InvalidInputError, match="point must hold finite values"):
        mass_set.project([0.1, np.inf, -np.inf])
    with pytest.raises(InvalidInputError, match=r"each of the 3 classes, got shape \(2,\)"):
        mass_set.maximize([0.1, 0.2])


@every_set
@pytest.mark.parametrize("size", [1e10, 1e20, 1e100])
def test_points_may_lie_anywhere(recipe, size):
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    mass_set = recipe.resolve(prior)
    for point in ([1.0, -0.5, 0.999, 0.2], [-1.0, -1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]):
        mass = mass_set.project(size * np.array(point))
        assert violation(recipe, prior, mass) <= 1e-11
        # So far out the nearest mass is a maximiser.
        assert mass @ point == pytest.approx(mass_set.support(point), abs=2 / size + 1e-12)


@every_set
def test_huge_and_tiny_risks_keep_their_order(recipe):
    mass_set = recipe.resolve([0.6, 0.3, 0.1])
    base = mass_set.maximize([0.0, 1.0, 2.0])
    for scale in (1e-300, 1e-12, 1e12, 1e300):
        np.testing.assert_allclose(
            mass_set.maximize(scale * np.array([0.0, 1.0, 2.0])), base, atol=1e-12
        )


@every_set
@FEW
@given(problems(rarest=-3.0))
def test_bounds_are_the_ends_of_each_mass(recipe, problem):
    prior, risks, _ = problem
    masses = recipe.resolve(prior)
    least, largest = masses.bounds
    # What every set could answer by its maximiser alone.
    slow = MassSet.bounds.func(masses)
    np.testing.assert_allclose([least, largest], slow, atol=1e-9)
    mass = masses.maximize(risks)
    assert np.all(least <= mass + 1e-9) and np.all(mass <= largest + 1e-9)
    assert masses.is_point == bool(np.all(largest - least <= 1e-12))


def test_only_some_sets_are_points():
    prior = [0.5, 0.3, 0.2]
    points = [
        FixedWeights("standard"),
        LabelCVaR(1.0),
        WeightHull(["balanced"]),
        PriorBall(0.0),
        PriorBox([0.2, 0.3, 0.5], 1.0),
    ]
    assert all(recipe.resolve(prior).is_point for recipe in points)
    others = [WorstClass(), LabelCVaR(0.99), WeightHull(["balanced", "standard"]), PriorBall(1e-3)]
    assert not any(recipe.resolve(prior).is_point for recipe in others)
