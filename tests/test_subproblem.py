"""The quadratic programme in the masses: every method, every set, against CVXPY."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from equipoise.sets import LabelCVaR, PriorBall, PriorBox, WorstClass
from equipoise.sets.mass_program import (
    ActiveSet,
    InEllipsoid,
    SimplicialDecomposition,
    mass_program,
)
from set_examples import every_example
from test_sets_laws import constraints, violation

# The one that is taken, which is an active-set method between floors and caps; and the other.
METHODS = [mass_program, SimplicialDecomposition]
CURVATURES = {
    "regular": lambda rng, k: _gram(rng.normal(size=(k, k + 2))),
    "singular": lambda rng, k: _gram(rng.normal(size=(k, 2))),
    "stiff": lambda rng, k: 1e4 * _gram(rng.normal(size=(k, k)) * 10.0 ** -np.arange(k)),
    "hardly any": lambda rng, k: _gram(rng.normal(size=(k, k)) * np.geomspace(1, 1e-8, k)),
    "none": lambda rng, k: np.zeros((k, k)),
}
TOL = 1e-9

every_set = pytest.mark.parametrize("recipe", every_example(), ids=repr)
every_method = pytest.mark.parametrize("method", METHODS)
every_curvature = pytest.mark.parametrize("curvature", CURVATURES)


def _gram(root):
    return root @ root.T


def random_program(curvature, k=5, seed=0):
    rng = np.random.default_rng(seed)
    return CURVATURES[curvature](rng, k), rng.normal(size=k)


def value(A, b, mass):
    return mass @ b - 0.5 * mass @ A @ mass


def optimality_gap(masses, A, b, mass):
    """How far a concave function can still rise, by its slope."""
    slope = b - A @ mass
    return slope @ (masses.maximize(slope) - mass)


def reference(recipe, prior, A, b):
    values, vectors = np.linalg.eigh(A)
    root = vectors * np.sqrt(np.maximum(values, 0))
    mass = cp.Variable(len(b))
    problem = cp.Problem(
        cp.Maximize(mass @ b - 0.5 * cp.sum_squares(root.T @ mass)),
        [mass >= 0, cp.sum(mass) == 1, *constraints(recipe, mass, prior)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # its own doubts; the tolerance covers them
        problem.solve(solver=cp.CLARABEL)
    return problem.value


PRIOR = np.array([0.35, 0.3, 0.2, 0.1, 0.05])


@every_set
@every_curvature
def test_every_method_agrees_with_an_independent_solver(recipe, curvature):
    A, b = random_program(curvature)
    masses = recipe.resolve(PRIOR)
    expected = reference(recipe, PRIOR, A, b)
    for method in METHODS:
        mass = method(masses, masses.project(PRIOR)).solve(A, b, TOL)
        assert violation(recipe, PRIOR, mass) <= 1e-11
        assert optimality_gap(masses, A, b, mass) <= 2 * TOL
        assert value(A, b, mass) == pytest.approx(expected, abs=2e-6)


@every_set
@every_method
def test_a_programme_started_from_the_last_is_solved_as_well(recipe, method):
    masses = recipe.resolve(PRIOR)
    program = method(masses, masses.project(PRIOR))
    for seed, curvature in enumerate(["regular", "none", "singular", "stiff", "regular"] * 2):
        A, b = random_program(curvature, seed=seed)
        mass = program.solve(A, b, TOL)
        assert violation(recipe, PRIOR, mass) <= 1e-11
        assert optimality_gap(masses, A, b, mass) <= 2 * TOL


@every_set
@every_method
def test_a_programme_is_solved_from_any_vertex(recipe, method):
    A, b = random_program("regular", seed=4)
    masses = recipe.resolve(PRIOR)
    results = [
        method(masses, masses.maximize(direction)).solve(A, b, 1e-12) for direction in np.eye(5)
    ]
    for mass in results:
        np.testing.assert_allclose(mass, results[0], atol=1e-5)  # the optimum is unique


@every_method
@pytest.mark.parametrize("curvature", ["regular", "singular", "none"])
@pytest.mark.parametrize(
    "recipe", [WorstClass(), LabelCVaR(0.3), PriorBall(0.1), PriorBall(0.1, "l2")], ids=repr
)
@pytest.mark.parametrize("k", [1, 2, 40, 150])
def test_any_number_of_classes(method, curvature, recipe, k):
    A, b = random_program(curvature, k, seed=1)
    prior = np.random.default_rng(0).dirichlet(np.ones(k))
    masses = recipe.resolve(prior)
    mass = method(masses, masses.project(prior)).solve(A / max(1, np.trace(A) / k), b, 1e-6)
    assert optimality_gap(masses, A / max(1, np.trace(A) / k), b, mass) <= 2e-6


@every_method
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6])
def test_the_size_of_the_numbers_does_not_matter(method, scale):
    A, b = random_program("regular", seed=2)
    masses = LabelCVaR(0.5).resolve(PRIOR)
    expected = method(masses, PRIOR).solve(A, b, 1e-10)
    mass = method(masses, PRIOR).solve(scale * A, scale * b, scale * 1e-10)
    np.testing.assert_allclose(mass, expected, atol=1e-4)


@every_method
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e5])
def test_without_curvature_the_worst_vertex_is_found(method, size):
    masses = WorstClass().resolve(PRIOR)
    b = size * np.array([0.1, 0.4, 0.3, 0.2, 0.1])
    mass = method(masses, PRIOR).solve(np.zeros((5, 5)), b, 1e-12 * size)
    np.testing.assert_allclose(mass, np.eye(5)[1], atol=1e-9)


@every_method
def test_equal_rows_share_the_mass_in_some_way(method):
    # Two classes with the same risks and gradients: infinitely many optima, any will do.
    A, b = np.ones((4, 4)), np.array([1.0, 1.0, 0.5, 0.5])
    masses = WorstClass().resolve(np.ones(4) / 4)
    mass = method(masses, np.ones(4) / 4).solve(A, b, TOL)
    assert value(A, b, mass) == pytest.approx(0.5, abs=1e-8)
    assert mass[2:].max() <= 1e-6


@every_set
@pytest.mark.parametrize("curvature", ["regular", "hardly any"])
def test_many_classes_agree_with_an_independent_solver(recipe, curvature):
    prior = np.random.default_rng(0).dirichlet(np.ones(40))
    masses = recipe.resolve(prior)
    program = mass_program(masses, masses.project(prior))
    for seed in range(3):
        A, b = random_program(curvature, 40, seed)
        mass = program.solve(A, b, TOL)
        assert violation(recipe, prior, mass) <= 1e-11
        assert optimality_gap(masses, A, b, mass) <= 2 * TOL
        # The reference may leave a ball of a small radius by a little.
        assert value(A, b, mass) == pytest.approx(reference(recipe, prior, A, b), abs=1e-5)


@pytest.mark.parametrize("curvature", ["stiff", "hardly any", "singular"])
@pytest.mark.parametrize("radius", [3.0, 10.0])
def test_a_programme_of_very_many_vertices_leaves_the_next_as_easy_as_it_is(radius, curvature):
    prior = np.random.default_rng(0).dirichlet(np.ones(40))
    masses = PriorBall(radius, "chi2").resolve(prior)
    program = mass_program(masses, prior)
    for seed in range(3):
        for kind in ("regular", curvature):
            A, b = random_program(kind, 40, seed)
            mass = program.solve(A, b, TOL)
            # Of stiff programmes, slopes are known to rounding alone.
            assert optimality_gap(masses, A, b, mass) <= 2 * TOL + 1e-14 * np.abs(A).max()


@pytest.mark.parametrize("recipe", [WorstClass(), LabelCVaR(0.1), PriorBox(0.001, 0.1)], ids=repr)
@pytest.mark.parametrize("k", [30, 100])
def test_between_floors_and_caps_few_linear_systems_are_enough(monkeypatch, recipe, k):
    # However ill-conditioned; and none for the same programme again.
    systems, solve = [], np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda *some: systems.append(1) or solve(*some))
    prior = np.random.default_rng(0).dirichlet(np.full(k, 5.0))
    masses = recipe.resolve(prior)
    program = mass_program(masses, prior)
    for seed in range(5):
        A, b = random_program("hardly any", k, seed)
        systems.clear()
        mass = program.solve(A, b, TOL)
        assert optimality_gap(masses, A, b, mass) <= 2 * TOL
        assert 0 < len(systems) <= 5 * k
        systems.clear()
        np.testing.assert_array_equal(program.solve(A, b, TOL), mass)
        assert not systems


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("recipe", [PriorBall(0.2, "l2"), PriorBall(3.0, "chi2")], ids=repr)
def test_in_ellipsoids_few_linear_systems_are_enough(monkeypatch, recipe, curvature):
    systems, solve = [], np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda *some: systems.append(1) or solve(*some))
    prior = np.random.default_rng(0).dirichlet(np.ones(30))
    masses = recipe.resolve(prior)
    program = mass_program(masses, prior)
    for seed in range(5):
        A, b = random_program(curvature, 30, seed)
        systems.clear()
        mass = program.solve(A, b, TOL)
        assert optimality_gap(masses, A, b, mass) <= 2 * TOL + 1e-14 * np.abs(A).max()
        assert len(systems) <= 10 * 30


@pytest.mark.parametrize("prior", [PRIOR, np.array([0.5, 0.0, 0.3, 0.2, 0.0])], ids=["all", "some"])
@pytest.mark.parametrize("recipe", [each for each in every_example() if type(each) is PriorBall])
def test_ellipsoids_end_where_the_set_ends(recipe, prior):
    masses = recipe.resolve(prior)
    if masses.ellipsoid is None:
        assert masses.box is not None or recipe.divergence not in ("l2", "chi2")
        return
    center, weights = masses.ellipsoid
    for seed in range(20):
        mass = masses.project(prior + 10 * np.random.default_rng(seed).normal(size=5))
        inside = np.isfinite(weights)
        assert not mass[~inside].any()
        square = weights[inside] @ (mass - center)[inside] ** 2
        assert square <= 1 + 1e-9
        if square < 1 - 1e-6:  # the ball does not hold it back, but the simplex
            assert np.any(mass[inside] == 0)


def test_the_method_suits_the_set():
    assert type(mass_program(LabelCVaR(0.1).resolve(PRIOR), PRIOR)) is ActiveSet
    assert type(mass_program(PriorBall(0.1, "l2").resolve(PRIOR), PRIOR)) is InEllipsoid
    assert type(mass_program(PriorBall(0.1).resolve(PRIOR), PRIOR)) is SimplicialDecomposition
