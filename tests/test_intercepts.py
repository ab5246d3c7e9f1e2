"""Intercepts that are best against smoothed masses: independent minimisers, and the optimum."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from equipoise import RobustLogisticRegression
from equipoise.objectives import open_objective
from equipoise.sets import LabelCVaR, PriorBox, WorstClass
from equipoise.solvers import Limits, Problem, Progress, Status, choose, run
from equipoise.solvers.intercepts import (
    InterceptModel,
    balanced,
    can_balance,
    smoothed_masses,
)
from linear_models import small_data

RECIPES = [LabelCVaR(0.5), LabelCVaR(0.2), PriorBox(lower=0.05, upper=0.6), WorstClass()]


def opened(n_classes, *, fit_intercept=True):
    X, labels, weights = small_data(n_classes, n_rows=40 * n_classes)
    return open_objective(X, labels, weights, n_classes=n_classes, fit_intercept=fit_intercept)


def smoothed(box, anchor, mu, risks):
    found = smoothed_masses(box, anchor, mu, 1e-9, risks)
    return float(found.mass @ risks) - found.cost


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@pytest.mark.parametrize("mu", [0.5, 5.0, 200.0])
def test_masses_lie_in_the_set_and_are_the_slopes_of_the_smoothed_risk(recipe, mu):
    rng, prior = np.random.default_rng(0), np.array([0.4, 0.3, 0.2, 0.1])
    masses, risks = recipe.resolve(prior), rng.uniform(0.2, 2.0, 4)
    anchor = masses.project(prior)
    found = smoothed_masses(masses.box, anchor, mu, 1e-9, risks)
    np.testing.assert_allclose(masses.project(found.mass), found.mass, atol=1e-12)
    ends = [
        smoothed(masses.box, anchor, mu, risks + sign * 1e-6 * unit)
        for unit in np.eye(4)
        for sign in (1, -1)
    ]
    slopes = np.subtract(ends[::2], ends[1::2]) / 2e-6
    np.testing.assert_allclose(found.mass, slopes, atol=1e-6)
    assert found.cost >= 0
    assert float(found.mass @ risks) - found.cost <= masses.support(risks) + 1e-12


@pytest.mark.parametrize("room", [1.0, 1.0 + 1e-15, 1.5])
@pytest.mark.parametrize("largest", [1.0, 1e3, 1e6])
def test_masses_sum_to_one_for_risks_of_any_size_and_caps_without_room(room, largest):
    caps, risks = room * np.array([0.4, 0.3, 0.2, 0.1]), largest * np.array([1.0, 0.5, 1e-9, 0.0])
    found = smoothed_masses((np.zeros(4), caps), np.full(4, 0.25), 5.0, 1e-9, risks)
    assert found.mass.sum() == pytest.approx(1.0, abs=1e-8)
    assert np.all(found.mass <= caps * (1 + 1e-12)) and np.isfinite(found.cost)


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
def test_the_intercepts_are_the_best_ones(recipe):
    with opened(4) as objective:
        masses = recipe.resolve(np.ones(4) / 4)
        problem, mu = Problem(objective, masses, 0.1), 5.0
        theta = 0.3 * np.random.default_rng(1).normal(size=objective.size)
        state, anchor = objective.evaluate(theta), masses.project(np.ones(4) / 4)

        def value(shift):
            return smoothed(masses.box, anchor, mu, state.risks + objective.growths(state, shift))

        best = minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-8}).fun
        moved, found = balanced(problem, state, anchor, mu, 1e-9, 1e-12)
        assert float(found.mass @ moved.risks) - found.cost == pytest.approx(best, abs=1e-9)
        before, after = objective.unpack(theta)[0], objective.unpack(moved.theta)[0]
        np.testing.assert_allclose(after, before)  # the intercepts alone have changed
        np.testing.assert_allclose(objective.evaluate(moved.theta).risks, moved.risks, rtol=1e-10)


def test_products_agree_with_the_diagonal():
    with opened(5) as objective:
        masses = LabelCVaR(0.5).resolve(np.ones(5) / 5)
        state = objective.evaluate(np.random.default_rng(0).normal(size=objective.size))
        here = smoothed_masses(masses.box, np.ones(5) / 5, 3.0, 1e-9, state.risks)
        model = InterceptModel(objective.risk_gradients(state, np.zeros(5))[1], here)
        products = np.array([model._product(unit) for unit in np.eye(5)])
        np.testing.assert_allclose(products, products.T, atol=1e-14)
        assert np.linalg.eigvalsh(products).min() > -1e-12
        # The diagonal leaves out that masses sum to one.
        grown = np.array([model._times(unit) for unit in np.eye(5)])
        lost = (grown @ here.gradients) ** 2 / here.gradients.sum()
        np.testing.assert_allclose(np.diag(products) + lost, model._diagonal, rtol=1e-10)


def test_where_intercepts_can_be_balanced():
    prior = np.ones(3) / 3
    for fit_intercept in (True, False):
        with opened(3, fit_intercept=fit_intercept) as objective:
            problem = Problem(objective, LabelCVaR(0.5).resolve(prior), 0.1)
            assert can_balance(problem) is fit_intercept


def test_binding_caps_of_many_classes_are_solved_without_class_gradients():
    rng, k, n = np.random.default_rng(0), 60, 240
    labels = np.append(np.repeat(np.arange(k), 2), rng.choice(k, n - 2 * k))
    X = rng.normal(size=(k, 30))[labels] + rng.normal(size=(n, 30))
    with open_objective(
        X, labels, np.ones(n), n_classes=k, fit_intercept=True, ridge=1 / n
    ) as objective:
        masses = LabelCVaR(0.5).resolve(np.bincount(labels) / n)
        problem = Problem(objective, masses, 1 / n)
        start = np.zeros(objective.size), masses.project(np.ones(k) / k)
        found = run(problem, "multipliers", start, Limits(1e-5, 300), Progress())
        other = run(problem, "sqp-lbfgs", start, Limits(1e-6, 300), Progress())
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(other.objective, rel=2e-5)
    assert np.any(found.mass >= 0.999 * masses.box[1])  # caps bind


@pytest.mark.parametrize(("n_classes", "first"), [(480, "sqp-lbfgs"), (600, "multipliers")])
def test_many_classes_under_caps_are_balanced(n_classes, first):
    X, labels = np.zeros((n_classes, 3)), np.arange(n_classes)
    given = {"n_classes": n_classes, "fit_intercept": True}
    with open_objective(X, labels, np.ones(n_classes), **given) as objective:
        # Half of the classes have caps below the uniform masses.
        prior = np.tile([0.4, 1.6], n_classes // 2) / n_classes
        masses = LabelCVaR(0.5).resolve(prior)
        assert choose(Problem(objective, masses, 0.1))[0] == first


@pytest.mark.parametrize("goal", [WorstClass(), LabelCVaR(0.5), LabelCVaR(0.2)], ids=repr)
@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_fewer_digits_first_end_at_the_same_certified_optimum(goal, tol):
    rng, k, n = np.random.default_rng(1), 60, 240
    labels = np.append(np.repeat(np.arange(k), 2), rng.choice(k, n - 2 * k))
    X = rng.normal(size=(k, 30))[labels] + rng.normal(size=(n, 30))
    with open_objective(
        X, labels, np.ones(n), n_classes=k, fit_intercept=True, ridge=1 / n
    ) as objective:
        masses = goal.resolve(np.bincount(labels) / n)
        problem = Problem(objective, masses, 1 / n)
        start = np.zeros(objective.size), masses.project(np.ones(k) / k)
        for first in (problem, problem.rougher()):
            found = run(first, "multipliers", start, Limits(tol, 300), Progress())
            assert found.status is Status.CONVERGED and found.theta.dtype == np.float64
            # What is claimed is what float64 says.
            state = objective.evaluate(found.theta)
            assert problem.value(state) == pytest.approx(found.objective, rel=1e-12)
            best = run(problem, "sqp-lbfgs", start, Limits(1e-8, 400), Progress())
            assert found.lower_bound <= best.objective * (1 + 1e-12)
            assert found.objective <= best.objective * (1 + tol)


def rows_of_words(seed, k=60, d=300, n=900):
    """Classes of a power law, each with six words of its own."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, k + 1)
    drawn = rng.choice(k, n - 3 * k, p=share / share.sum())
    labels = np.append(np.repeat(np.arange(k), 3), drawn)
    words, typical = rng.integers(0, d, (k, 6)), rng.random((n, 4)) < 0.9
    of_class = words[labels][np.arange(n)[:, None], rng.integers(0, 6, (n, 4))]
    columns = np.where(typical, of_class, (d * rng.random((n, 4)) ** 3).astype(int))
    return csr_array((np.full(4 * n, 0.5), (np.repeat(np.arange(n), 4), columns.ravel()))), labels


def test_a_round_keeps_its_smooth_objective():
    """Hardly any penalty: most masses are near zero, and what counts as near changed under a step.

    The four fits took 324 evaluations then, and take 182.
    """
    evaluations = 0
    for seed in (0, 4, 7, 10):
        model = RobustLogisticRegression(
            WorstClass(), C=1000.0, solver="multipliers", tol=1e-3, max_iter=300
        ).fit(*rows_of_words(seed))
        assert model.status_ == "converged"
        evaluations += model.n_evaluations_
    assert evaluations < 250


@pytest.mark.parametrize(
    ("place", "goal"),
    [("arrays", WorstClass()), ("arrays", LabelCVaR(0.5)), ("tensors", WorstClass())],
)
def test_scores_take_no_more_than_the_memory(place, goal):
    """Scores that are computed again lead to the same optimum, with far less memory."""
    rng, k, n = np.random.default_rng(0), 100, 60_000
    labels = np.append(np.arange(k), rng.choice(k, n - k))
    X = rng.normal(size=(k, 5))[labels] + rng.normal(size=(n, 5))
    if place == "tensors":
        X = pytest.importorskip("torch").from_numpy(X)
    fitted, peaks = [], []
    for memory in ("1 GiB", "16 MiB"):
        model = RobustLogisticRegression(goal, solver="multipliers", tol=1e-3, memory=memory)
        tracemalloc.start()
        fitted.append(model.fit(X, labels))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert fitted[1].objective_ == pytest.approx(fitted[0].objective_, rel=2e-3)
    if place == "arrays":  # those of torch are not traced
        scores = 8 * n * k  # those of certificates: the others are in single precision
        assert peaks[1] < peaks[0] - scores
