"""Intercepts that make all class risks equal: brute force, and the optimum of other solvers."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from equipoise import RobustLogisticRegression, WorstClass
from equipoise.objectives import moves_probabilities, open_objective
from equipoise.sets import FixedWeights, LabelCVaR
from equipoise.solvers import Problem, choose
from equipoise.solvers.level import Leveling, MeanProbabilities
from equipoise.solvers.systems import gmres, refined
from linear_models import small_data


def opened(n_classes, seed=0, *, fit_intercept=True):
    X, labels, weights = small_data(n_classes, n_rows=40 * n_classes, seed=seed)
    given = {"n_classes": n_classes, "fit_intercept": fit_intercept}
    return (X, labels, weights), open_objective(X, labels, weights, **given)


def class_means(values, labels, weights):
    k = labels.max() + 1
    return np.array(
        [np.average(values[labels == i], axis=0, weights=weights[labels == i]) for i in range(k)]
    )


def risks_at(data, coef, intercept):
    X, labels, weights = data
    scores = X @ coef.T + intercept
    losses = logsumexp(scores, axis=1) - scores[np.arange(len(labels)), labels]
    return class_means(losses, labels, weights), softmax(scores, axis=1)


@pytest.mark.parametrize("n_classes", [3, 5, 12])
@pytest.mark.parametrize("seed", range(3))
def test_risks_are_equal_and_the_masses_stationary(n_classes, seed):
    data, opening = opened(n_classes, seed)
    with opening as objective:
        theta = 0.3 * np.random.default_rng(seed).normal(size=objective.size)
        masses = WorstClass().resolve(np.ones(n_classes) / n_classes)
        state, mass = Leveling().at(Problem(objective, masses, 0.1), objective.evaluate(theta))
        coef, intercept = objective.unpack(state.theta)
        before, _ = objective.unpack(theta)
        np.testing.assert_allclose(coef, before)  # the intercepts alone have changed
        again = objective.evaluate(state.theta).risks
    risks, chances = risks_at(data, coef, intercept)
    np.testing.assert_allclose(risks, risks[0], rtol=1e-8)
    np.testing.assert_allclose(state.risks, risks, rtol=1e-10)
    np.testing.assert_allclose(again, risks, rtol=1e-10)
    # The stationary distribution, by walking.
    walk, place = class_means(chances, data[1], data[2]), np.full(n_classes, 1 / n_classes)
    for _ in range(5_000):
        place = place @ walk
    np.testing.assert_allclose(mass, place, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [0.01, 0.2, 2.0])
def test_what_one_point_taught_makes_risks_of_the_next_as_equal(seed, size):
    _, opening = opened(12, seed)
    rng, leveling = np.random.default_rng(seed), Leveling()
    with opening as objective:
        problem = Problem(objective, WorstClass().resolve(np.ones(12) / 12), 0.1)
        theta = 0.3 * rng.normal(size=objective.size)
        for _ in range(5):
            kept, kept_mass = leveling.at(problem, objective.evaluate(theta))
            fresh, mass = Leveling().at(problem, objective.evaluate(theta))
            assert np.ptp(objective.evaluate(kept.theta).risks) <= 1e-11
            np.testing.assert_allclose(kept.theta, fresh.theta, atol=1e-8)
            np.testing.assert_allclose(kept_mass, mass, atol=1e-6)
            theta = kept.theta + size * rng.normal(size=objective.size) / objective.size**0.5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rougher", [False, True])
def test_risks_of_any_size_are_made_equal(seed, rougher):
    """From 1e-12, which single precision rounds to none at all, to 40."""
    rng, k = np.random.default_rng(seed), 12
    labels = np.repeat(np.arange(k), 5)
    # The last four classes look alike.
    X = np.eye(k)[np.minimum(labels, 8)] + 0.02 * rng.normal(size=(len(labels), k))
    with open_objective(
        X, labels, np.ones(len(labels)), n_classes=k, fit_intercept=True
    ) as objective:
        problem = Problem(objective, WorstClass().resolve(np.ones(k) / k), 0.1)
        intercepts = np.where(np.arange(k) < 3, -40.0, rng.normal(size=k))
        theta = objective.pack(28.0 * np.eye(k), intercepts)
        if rougher:
            problem = problem.rougher()
        state = problem.objective.evaluate(theta)
        assert state.risks.min() < 1e-6 and state.risks.max() > 8
        leveled = Leveling().at(problem, state)
        assert leveled is not None
        risks = objective.evaluate(leveled[0].theta).risks
    np.testing.assert_allclose(risks, risks.mean(), rtol=1e-3 if rougher else 1e-8)


@pytest.mark.parametrize("times", [1, 2])
def test_risks_that_are_equal_are_left_as_they_are(times):
    _, opening = opened(5)
    with opening as objective:
        problem = Problem(objective, WorstClass().resolve(np.ones(5) / 5), 0.1)
        leveling, state = Leveling(), objective.evaluate(np.zeros(objective.size))
        for _ in range(times):
            found, mass = leveling.at(problem, state)
        np.testing.assert_allclose(found.risks, np.log(5), rtol=1e-12)
        np.testing.assert_allclose(mass, 0.2, rtol=1e-9)


@pytest.mark.parametrize("size", [1, 3, 40])
@pytest.mark.parametrize("singular", [False, True])
def test_systems_are_solved_by_products(size, singular):
    rng = np.random.default_rng(size)
    matrix = rng.dirichlet(np.ones(size), size) - (1.0 if singular else 2.0) * np.eye(size)
    right_side = matrix @ rng.normal(size=size)
    solution, left = gmres(matrix.__matmul__, right_side, 1e-12, 100)
    np.testing.assert_allclose(matrix @ solution, right_side, atol=1e-11)
    assert left <= 1e-11


@pytest.mark.parametrize("size", [3, 40])
@pytest.mark.parametrize("wrong", [0.0, 1e-4, 0.2])
def test_systems_are_solved_by_a_matrix_that_is_nearly_the_inverse(size, wrong):
    rng = np.random.default_rng(size)
    chain = rng.dirichlet(np.ones(size), size) - np.eye(size)
    exact = np.linalg.inv(chain - 1 / size)
    inverse, mass = (
        exact * (1 + wrong * rng.uniform(-1, 1, (size, size)) / size),
        -exact.mean(axis=0),
    )
    np.testing.assert_allclose(mass @ chain, 0, atol=1e-14)
    risks = np.linspace(1, 2, size)
    step = MeanProbabilities(chain, inverse, mass).step(risks)
    margins = np.log(np.expm1(risks)) + chain @ step / -np.expm1(-risks)
    assert np.ptp(margins) <= 1e-6
    right_side = chain @ rng.normal(size=size)
    solution, left = refined(chain, inverse, right_side, 1e-13)
    np.testing.assert_allclose(chain @ solution, right_side, atol=1e-12)
    assert left <= 1e-11
    assert refined(chain, -inverse, right_side, 1e-13)[1] > 1
    assert np.isnan(refined(chain, np.full_like(chain, np.nan), right_side, 1e-13)[1])


@pytest.mark.parametrize("device", ["cuda"])
def test_an_inverse_on_a_device_is_one(device):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    rng, last = np.random.default_rng(0), None
    chain = rng.dirichlet(np.ones(50), 50)
    for noise in (0.0, 1e-3, 1e-2, 0.5):
        moved = chain + noise * rng.random((50, 50)) / 50
        moved /= moved.sum(axis=1, keepdims=True)
        gradients = torch.tensor(moved - np.eye(50), device=device)
        last = MeanProbabilities.at(gradients, last)
        assert last.inverse.shape == (50, 50)
        np.testing.assert_allclose(last.mass @ moved, last.mass, atol=1e-14)
        step = last.step(np.linspace(1, 2, 50))
        left = np.linspace(1, 2, 50) + (moved - np.eye(50)) @ step
        assert np.ptp(left) <= 1e-7


def test_systems_without_a_solution_say_what_is_left():
    assert gmres(np.zeros((3, 3)).__matmul__, np.ones(3), 1e-8, 9)[1] == pytest.approx(1.0)
    assert gmres(np.full((3, 3), np.nan).__matmul__, np.ones(3), 1e-8, 9)[1] == np.inf
    assert gmres(np.eye(3).__matmul__, np.full(3, np.inf), 1e-8, 9)[1] == np.inf
    few = gmres(np.diag(np.arange(1.0, 90)).__matmul__, np.ones(89), 1e-12, 5)[1]
    assert 1e-6 < few < 1


def test_no_intercepts_have_a_smaller_largest_risk():
    data, opening = opened(3)
    with opening as objective:
        theta = 0.5 * np.random.default_rng(1).normal(size=objective.size)
        masses = WorstClass().resolve(np.ones(3) / 3)
        state, _ = Leveling().at(Problem(objective, masses, 0.1), objective.evaluate(theta))
        coef, _ = objective.unpack(theta)

    def largest(free):
        return risks_at(data, coef, np.append(free, 0.0))[0].max()

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5_000}
    best = minimize(largest, np.zeros(2), method="Nelder-Mead", options=options)
    assert state.risks.max() == pytest.approx(best.fun, rel=1e-7)


def test_slopes_of_all_risks_are_differences_of_risks():
    _, opening = opened(4)
    with opening as objective:
        state = objective.evaluate(np.random.default_rng(0).normal(size=objective.size))
        shift, h = np.array([0.3, -0.2, 0.1, 0.0]), 1e-6
        growths, slopes = objective.risk_gradients(state, shift)
        np.testing.assert_allclose(growths, objective.growths(state, shift), atol=1e-12)
        for score, unit in enumerate(np.eye(4)):
            above, below = (objective.growths(state, shift + h * s * unit) for s in (1, -1))
            np.testing.assert_allclose(slopes[:, score], (above - below) / (2 * h), atol=1e-8)


def test_masses_outside_the_set_are_none():
    prior = np.array([0.5, 0.3, 0.2])
    _, opening = opened(3)
    with opening as objective:
        state = objective.evaluate(np.zeros(objective.size))
        for recipe in (FixedWeights([1.0, 1.0, 1.0]), LabelCVaR(0.95)):
            assert Leveling().at(Problem(objective, recipe.resolve(prior), 0.1), state) is None


@pytest.mark.parametrize(("n_classes", "fit_intercept"), [(2, True), (3, False)])
def test_there_must_be_an_intercept_for_every_class(n_classes, fit_intercept):
    _, opening = opened(n_classes, fit_intercept=fit_intercept)
    with opening as objective:
        masses = WorstClass().resolve(np.ones(n_classes) / n_classes)
        problem = Problem(objective, masses, 0.1)
        assert not moves_probabilities(objective)
        assert Leveling().at(problem, objective.evaluate(np.zeros(objective.size))) is None


def many_classes(n_classes=120, n_features=30, rows=12):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), rows)
    centers = rng.normal(size=(n_classes, n_features))
    return centers[y] + rng.normal(size=(len(y), n_features)), y


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize("goal", ["worst_class", LabelCVaR(0.05), LabelCVaR(0.9)])
def test_the_optimum_is_that_of_another_solver(goal):
    X, y = many_classes()
    ours = RobustLogisticRegression(goal, solver="multipliers").fit(X, y)
    other = RobustLogisticRegression(goal, solver="sqp-lbfgs").fit(X, y)
    assert ours.status_ == other.status_ == "converged"
    assert ours.objective_ == pytest.approx(other.objective_, rel=2e-6)
    assert ours.lower_bound_ <= other.objective_ and other.lower_bound_ <= ours.objective_


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
def test_many_classes_take_no_more_evaluations_than_a_plain_fit():
    X, y = many_classes()
    plain = RobustLogisticRegression("standard", solver="multipliers").fit(X, y)
    robust = RobustLogisticRegression("worst_class", solver="multipliers").fit(X, y)
    assert robust.n_evaluations_ <= 1.5 * plain.n_evaluations_


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        (WorstClass(), "multipliers"),
        (LabelCVaR(0.4), "multipliers"),
        (LabelCVaR(0.6), "sqp-lbfgs"),
    ],
)
def test_sets_with_uniform_masses_have_their_risks_made_equal(recipe, name):
    X, y = many_classes(rows=6)
    with open_objective(X, y, np.ones(len(y)), n_classes=120, fit_intercept=True) as objective:
        prior = np.tile([0.5, 1.5], 60) / 120
        assert choose(Problem(objective, recipe.resolve(prior), 0.1))[0] == name
