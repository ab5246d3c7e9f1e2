"""Inverse curvature: the compact form against the recursion it stands for, written out densely."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from equipoise.objectives import open_objective
from equipoise.sets import WorstClass
from equipoise.solvers import Problem
from equipoise.solvers.curvature import PIECES, SHORT, InverseCurvature, NewtonInverse
from linear_models import small_data

SIZE, MEMORY = 7, 3


class Fixed:
    """A base that is simply a matrix."""

    def __init__(self, matrix):
        self.matrix = matrix

    def apply(self, rows):
        return rows @ self.matrix


def positive_definite(seed, size=SIZE):
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T + 0.1 * np.eye(size)


BASES = {"identity": lambda: None, "matrix": lambda: Fixed(positive_definite(1))}
every_base = pytest.mark.parametrize("base", BASES)


def pairs(count, seed=0):
    """Steps with the changes of the gradient of one quadratic, and a little noise."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(count, SIZE))
    changes = steps @ positive_definite(seed + 2) + 0.01 * rng.normal(size=(count, SIZE))
    assert np.all(np.sum(steps * changes, axis=1) > 0)
    return list(zip(steps, changes, strict=True))


def recursion(base, seen):
    """The BFGS inverse, one pair after the other (Nocedal and Wright, equation 6.17)."""
    matrix = np.eye(SIZE) if base is None else base.apply(np.eye(SIZE))
    if seen and base is None:
        step, change = seen[-1]
        matrix = step @ change / (change @ change) * matrix
    for step, change in seen:
        rho = 1 / (step @ change)
        left = np.eye(SIZE) - rho * np.outer(step, change)
        matrix = left @ matrix @ left.T + rho * np.outer(step, step)
    return matrix


def learned(base, seen):
    curvature = InverseCurvature(BASES[base](), np.zeros(SIZE), MEMORY)
    for step, change in seen:
        curvature.update(step, change)
    return curvature


def as_matrix(curvature):
    return np.array([curvature.apply(row) for row in np.eye(SIZE)])


@every_base
@pytest.mark.parametrize("count", range(9))
def test_products_are_those_of_the_recursion(base, count):
    seen, rng = pairs(count), np.random.default_rng(3)
    curvature = learned(base, seen)
    expected = recursion(BASES[base](), seen[-MEMORY:])
    assert curvature.n_pairs == min(count, MEMORY)
    np.testing.assert_allclose(as_matrix(curvature), expected, atol=1e-9 * np.abs(expected).max())
    rows, vector = rng.normal(size=(4, SIZE)), rng.normal(size=SIZE)
    A, c = curvature.gram(rows, vector)
    np.testing.assert_allclose(A, rows @ expected @ rows.T, atol=1e-8 * np.abs(A).max())
    np.testing.assert_allclose(c, rows @ expected @ vector, atol=1e-8 * np.abs(A).max())
    np.testing.assert_array_equal(A, A.T)


@every_base
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_it_is_positive_definite_and_maps_the_last_change_to_its_step(base, count):
    seen = pairs(count)
    curvature = learned(base, seen)
    step, change = seen[-1]
    np.testing.assert_allclose(curvature.apply(change), step, atol=1e-9)
    matrix = as_matrix(curvature)
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] > 0


@every_base
@pytest.mark.parametrize("factor", [0.0, -1.0, 1e-12])
def test_a_step_without_curvature_teaches_nothing(base, factor):
    curvature = learned(base, pairs(2))
    before = as_matrix(curvature)
    step = np.eye(SIZE)[0]
    curvature.update(step, factor * step + np.eye(SIZE)[1])
    curvature.update(0 * step, 0 * step)
    curvature.update(step, np.full(SIZE, np.nan))
    curvature.update(1e20 * step, 1e-170 * step)  # its square is zero
    assert curvature.n_pairs == 2
    np.testing.assert_array_equal(as_matrix(curvature), before)


@every_base
def test_what_is_learned_does_not_depend_on_memory_of_the_caller(base):
    seen = [(step.copy(), change.copy()) for step, change in pairs(2)]
    curvature = learned(base, seen)
    before = as_matrix(curvature)
    for pair in seen:
        pair[0][:] = pair[1][:] = 1
    np.testing.assert_array_equal(as_matrix(curvature), before)


@every_base
def test_clearing_forgets_pairs_and_scale(base):
    curvature = learned(base, pairs(5))
    curvature.clear()
    assert curvature.n_pairs == 0
    np.testing.assert_allclose(as_matrix(curvature), recursion(BASES[base](), []))
    for step, change in pairs(4, seed=9):
        curvature.update(step, change)
    expected = recursion(BASES[base](), pairs(4, seed=9)[-MEMORY:])
    np.testing.assert_allclose(as_matrix(curvature), expected, atol=1e-9 * np.abs(expected).max())


def test_a_new_base_takes_the_place_of_the_old():
    curvature = learned("matrix", pairs(2))
    other = Fixed(positive_definite(8))
    curvature.clear(other)
    curvature.update(*pairs(1)[0])
    expected = recursion(other, pairs(1))
    np.testing.assert_allclose(as_matrix(curvature), expected, atol=1e-9 * np.abs(expected).max())


def hessian_of(problem, theta, mass, step=1e-5):
    """Of the Lagrangian: differences of the risks' gradient, and the penalty as it is."""
    objective = problem.objective
    columns = [
        objective.gradient(objective.evaluate(theta + step * e), mass)
        - objective.gradient(objective.evaluate(theta - step * e), mass)
        for e in np.eye(len(theta))
    ]
    return np.array(columns) / (2 * step) + problem.ridge * np.diag(objective.squares)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ridge", [1e-7, 1e-2])  # the larger one allows single precision
@pytest.mark.parametrize("units", [1.0, np.array([1e6, 1.0, 1e-6]), np.array([1, 1, 1e-20])])
def test_newton_solves_with_the_hessian_of_the_lagrangian(n_classes, ridge, units):
    X, labels, weights = small_data(n_classes)
    mass = np.random.default_rng(0).dirichlet(np.ones(n_classes))
    with open_objective(
        X * units, labels, weights, n_classes=n_classes, fit_intercept=True
    ) as objective:
        problem = Problem(objective, WorstClass().resolve(np.ones(n_classes) / n_classes), ridge)
        theta = 0.1 * np.random.default_rng(1).normal(size=objective.size)
        # A change of the gradient lies in the range of the Hessian: the gauge is no part of it.
        step = 1e-4 * np.random.default_rng(2).normal(size=objective.size)
        if n_classes > 2:
            unfolded = objective.features.unfold(step)
            step = objective.features.fold(unfolded - unfolded.mean(axis=0))
        change = hessian_of(problem, theta, mass) @ step
        solved = NewtonInverse(problem, theta, mass).apply(change[None])[0]
    np.testing.assert_allclose(solved, step, atol=2e-3 * np.abs(step).max())


def test_newton_survives_columns_without_any_curvature():
    X, labels, weights = small_data(3)
    X = np.column_stack([X, np.zeros(len(X)), X[:, 0], np.ones(len(X))])
    mass = np.ones(3) / 3
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        problem = Problem(objective, WorstClass().resolve(mass), 0.0)
        state = objective.evaluate(np.zeros(objective.size))
        gradient = problem.gradient(state, mass)
        direction = -NewtonInverse(problem, state.theta, mass).apply(gradient[None])[0]
        assert np.all(np.isfinite(direction))
        better = objective.evaluate(state.theta + direction)
        predicted = 0.5 * gradient @ direction
    assert mass @ (better.risks - state.risks) == pytest.approx(predicted, rel=0.3)


class Indefinite:
    """An objective whose Hessian rounding has made indefinite."""

    squares = np.zeros(2)

    def hessian(self, theta, mass, *, single=False):
        return np.array([[1.0, 2.0], [2.0, 1.0]])


def test_an_indefinite_hessian_is_damped_until_it_has_an_inverse():
    problem = Problem(Indefinite(), WorstClass().resolve(np.ones(2) / 2), 0.0)
    inverse = NewtonInverse(problem, np.zeros(2), np.ones(2) / 2).apply(np.eye(2))
    assert np.linalg.eigvalsh(inverse)[0] > 0


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_of_scores_approximate_the_hessian_and_are_inverted(sparse):
    X, labels, weights = small_data(4, n_rows=2000)
    mass, width = np.array([0.1, 0.2, 0.3, 0.4]), X.shape[1] + 1
    given = sp.csr_matrix(X) if sparse else X
    with open_objective(given, labels, weights, n_classes=4, fit_intercept=True) as objective:
        problem = Problem(objective, WorstClass().resolve(np.ones(4) / 4), 1e-2)
        theta = 0.3 * np.random.default_rng(1).normal(size=objective.size)
        features, exact = objective.features, hessian_of(problem, theta, mass)
        inverse = objective.score_inverse(objective.evaluate(theta), mass, problem.ridges)
        inverse = inverse.apply(np.eye(objective.size))
    order = features.unfold(np.arange(objective.size)).ravel()
    inverse, exact = inverse[np.ix_(order, order)], exact[np.ix_(order, order)]
    for score in range(4):
        own = slice(score * width, (score + 1) * width)
        # The sample of rows is finite: as curvature, one is the other within a factor of two.
        ratios = np.linalg.eigvals(inverse[own, own] @ exact[own, own]).real
        assert ratios.min() > 0.5 and ratios.max() < 2
        inverse[own, own] = 0
    assert not inverse.any()


def test_blocks_are_not_offered_where_they_cost_many_passes():
    X, labels, weights = small_data(3, n_rows=60, n_features=5)
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        state = objective.evaluate(np.zeros(objective.size))
        ridges = np.full(objective.size, 0.1)
        assert objective.score_inverse(state, np.ones(3) / 3, ridges) is None


def test_products_of_long_vectors_are_the_same_however_many_threads_share_them():
    size = 3 * SHORT * PIECES + 17
    rng = np.random.default_rng(0)
    rows, vector = rng.normal(size=(4, size)), rng.normal(size=size)
    steps, noise = rng.normal(size=(2, 3, size))
    found = []
    with ThreadPoolExecutor(3) as pool:
        for share in (pool.map, map):
            curvature = InverseCurvature(None, np.zeros(size), 3, share)
            for step, change in zip(steps, 2 * steps + 0.1 * noise, strict=True):
                curvature.update(step, change)
            found.append((*curvature.gram(rows, vector), curvature.apply(vector)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    A, c, applied = found[0]
    np.testing.assert_allclose(A, [rows @ curvature.apply(row) for row in rows], rtol=1e-9)
    np.testing.assert_allclose(c, rows @ applied, rtol=1e-9)
