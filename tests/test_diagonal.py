"""The diagonal of the Hessian against products with unit vectors, and what it is for."""

import numpy as np
import pytest
import scipy.sparse as sp

from equipoise.losses import as_trained
from equipoise.objectives import Diagonals, open_objective
from equipoise.sets import FixedWeights
from equipoise.solvers import Limits, Problem, Progress, Status, run
from equipoise.solvers.curvature import DiagonalInverse, InverseCurvature


def rows(n_rows=300, n_features=7):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features)) * np.arange(1, n_features + 1)
    return X * (rng.random(X.shape) < 0.5)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", ["dense", "sparse", "far", "tensor"])
def test_the_diagonal_is_that_of_the_hessian(kind, n_classes, fit_intercept):
    X, labels = rows(), np.arange(300) % n_classes
    rng, mass = np.random.default_rng(1), np.arange(1, n_classes + 1) / n_classes
    if kind == "tensor":
        torch = pytest.importorskip("torch")
        from equipoise.objectives.torch_rows import RowsOnDevice

        opened = RowsOnDevice(torch.from_numpy(X), torch.from_numpy(labels), None, 1 << 30).open(
            fit_intercept=fit_intercept, ridge=1e-2, loss=as_trained("cross_entropy")
        )
    else:
        store = {"dense": np.asarray, "sparse": sp.csr_matrix, "far": lambda X: X + 100}[kind]
        settings = {"n_classes": n_classes, "fit_intercept": fit_intercept, "ridge": 1e-2}
        opened = open_objective(store(X), labels, np.ones(300), **settings)
    with opened as objective:
        assert isinstance(objective, Diagonals)
        state = objective.evaluate(0.2 * rng.normal(size=objective.size))
        units = np.eye(objective.size)
        products = [objective.hessian_product(state, mass, unit) for unit in units]
        found = objective.hessian_diagonal(state, mass)
        np.testing.assert_allclose(found, np.diag(np.array(products)), rtol=1e-9, atol=1e-11)


def test_a_loss_without_probabilities_has_none():
    loss = as_trained("squared_hinge")
    with open_objective(
        rows(), np.arange(300) % 3, np.ones(300), n_classes=3, fit_intercept=True, loss=loss
    ) as objective:
        state = objective.evaluate(np.zeros(objective.size))
        assert objective.hessian_diagonal(state, np.ones(3) / 3) is None


def test_pairs_are_kept_on_another_base():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    hessian, steps = root @ root.T + np.eye(6), rng.normal(size=(3, 6))
    known = InverseCurvature(None, np.zeros(6), 4, scaled=True)
    for step in steps:
        known.update(step, hessian @ step)
    known.rebase(DiagonalInverse(np.diag(hessian), np.zeros(6)))
    # The last step is known exactly, on any base.
    np.testing.assert_allclose(known.apply(hessian @ steps[-1]), steps[-1], rtol=1e-10)
    assert known.n_pairs == 3


def test_a_power_law_takes_fewer_passes_than_without(monkeypatch):
    rng, k = np.random.default_rng(0), 60
    shares = 1 / np.arange(1, k + 1)
    labels = np.append(np.arange(k), rng.choice(k, 2940, p=shares / shares.sum()))
    X = 0.8 * rng.normal(size=(k, 20))[labels] + rng.normal(size=(3000, 20))
    passes = []
    for _ in range(2):
        with open_objective(
            X, labels, np.ones(3000), n_classes=k, fit_intercept=True, ridge=1 / 3000
        ) as objective:
            masses = FixedWeights("standard").resolve(np.bincount(labels) / 3000)
            problem = Problem(objective, masses, 1 / 3000)
            start = np.zeros(objective.size), masses.project(np.ones(k) / k)
            found = run(problem, "multipliers", start, Limits(1e-4, 300), Progress())
            assert found.status is Status.CONVERGED
            passes.append(found.n_evaluations)
        monkeypatch.setattr(type(objective), "hessian_diagonal", lambda *_: None)
    assert passes[0] < 0.8 * passes[1]
