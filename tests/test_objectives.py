"""Objectives: laws over one registry of storages, precisions, models and views.

Risks are compared with a formula in plain NumPy, derivatives with differences of the risks.
"""

import gc
import pickle
from itertools import product
from typing import NamedTuple
from weakref import ref

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax

from equipoise.losses import as_trained
from equipoise.objectives import LinearObjective, open_objective
from equipoise.objectives.matrices import DenseFeatures
from equipoise.objectives.row_order import RowCut
from equipoise.objectives.sparse_matrix import SparseFeatures
from equipoise.threads import Workers
from linear_models import class_risks, row_losses, small_data

STORAGES = {"dense": (np.asarray, DenseFeatures), "sparse": (sp.csr_matrix, SparseFeatures)}
VIEWS = ["raw", "standard", "long"]
N_FEATURES = 3
# Features may be stored in single precision; all arithmetic is in double.
RTOL = 1e-11


class ObjectiveCase(NamedTuple):
    n_classes: int
    storage: str
    dtype: str
    fit_intercept: bool
    view: str
    loss: str = "cross_entropy"

    @property
    def n_scores(self):
        return 1 if self.n_classes == 2 else self.n_classes

    def __str__(self):
        model = f"{self.n_classes} classes{' + intercept' if self.fit_intercept else ''}"
        return f"{model}, {self.storage} {self.dtype}, {self.view}, {self.loss}"

    def features(self, X):
        store, kind = STORAGES[self.storage]
        stored = store(X.astype(self.dtype))
        rows = kind.in_order(stored, None, self.n_scores, self.fit_intercept)
        rng = np.random.default_rng(5)
        shift, scale = rng.normal(size=X.shape[1]), rng.uniform(0.1, 9, X.shape[1])
        views = {
            "raw": rows,
            "standard": rows.standardized((shift * self.fit_intercept, scale), 1.0),
            "long": rows.standardized(None, 2.5),
        }
        return views[self.view]

    def data(self, **options):
        X, labels, weights = small_data(self.n_classes, n_features=N_FEATURES, **options)
        order = np.argsort(labels, kind="stable")
        X = X[order].astype(self.dtype)
        X[::3, 1] = 0  # so that sparse storage has holes
        return X.astype(np.float64), labels[order], weights[order]

    def objective(self, data=None, *, workers=None, cut=None):
        X, labels, weights = data or self.data()
        bounds = np.searchsorted(labels, np.arange(self.n_classes + 1))
        totals = np.bincount(labels, weights)
        kernel = as_trained(self.loss).kernel(self.n_classes)
        shares = weights / totals[labels]
        workers, cut = workers or Workers(1), cut or RowCut()
        return LinearObjective(self.features(X), kernel, bounds, shares, workers, cut)

    def model(self, size=0.5, seed=3):
        rng = np.random.default_rng(seed)
        intercept = size * rng.normal(size=self.n_scores) * self.fit_intercept
        return size * rng.normal(size=(self.n_scores, N_FEATURES)), intercept

    def mass(self):
        return np.random.default_rng(7).dirichlet(np.ones(self.n_classes))


OBJECTIVE_CASES = [
    ObjectiveCase(*choice)
    for choice in product([2, 4], STORAGES, ["float64", "float32"], [True, False], VIEWS)
]
# Of the other losses, the cases in which they can differ from the first.
OTHER_LOSSES = [
    ObjectiveCase(k, storage, "float64", fit_intercept, view, loss)
    for loss in ("squared_hinge", "smoothed_hinge")
    for k, storage, view in product([2, 4], STORAGES, ["raw", "standard"])
    for fit_intercept in (True, False)
]
OBJECTIVE_CASES += OTHER_LOSSES
EXACT = [case for case in OBJECTIVE_CASES if case.dtype == "float64"]
CENTERED = [case for case in OBJECTIVE_CASES if case.fit_intercept]

every_objective = pytest.mark.parametrize("case", OBJECTIVE_CASES, ids=str)
every_exact_objective = pytest.mark.parametrize("case", EXACT, ids=str)
every_objective_with_intercept = pytest.mark.parametrize("case", CENTERED, ids=str)


def differences(function, theta, step=1e-5):
    """Central differences along each parameter, one row each."""
    return np.array(
        [
            (function(theta + step * e) - function(theta - step * e)) / (2 * step)
            for e in np.eye(len(theta))
        ]
    )


def assert_close(actual, expected, rtol):
    """Close relative to the largest entry."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * np.abs(expected).max())


@every_objective
def test_risks_are_weighted_means_of_the_loss(case):
    data, (coef, intercept) = case.data(), case.model()
    objective = case.objective(data)
    state = objective.evaluate(objective.pack(coef, intercept))
    assert state.risks.dtype == np.float64
    assert_close(state.risks, class_risks(*data, coef, intercept, case.loss), RTOL)
    assert objective.n_evaluations == 1


@every_objective
def test_scores_of_any_size_have_finite_risks(case):
    data, (coef, intercept) = case.data(), case.model(size=200)
    objective = case.objective(data)
    risks = objective.evaluate(objective.pack(coef, intercept)).risks
    assert_close(risks, class_risks(*data, coef, intercept, case.loss), 10 * RTOL)


@every_objective
def test_parameters_are_coefficients_and_intercepts_in_a_layout_of_the_objectives_own(case):
    objective, (coef, intercept) = case.objective(), case.model()
    theta = objective.pack(coef, intercept)
    assert theta.shape == (objective.size,) and theta.dtype == np.float64
    there, back = objective.unpack(theta)
    assert there.shape == coef.shape and back.shape == intercept.shape
    np.testing.assert_allclose(there, coef, rtol=1e-13)
    np.testing.assert_allclose(back, intercept, rtol=1e-13, atol=1e-13)
    theta = np.random.default_rng(0).normal(size=objective.size)
    np.testing.assert_allclose(objective.pack(*objective.unpack(theta)), theta, atol=1e-13)


@every_objective
def test_squares_weigh_the_coefficients_alone(case):
    objective, (coef, intercept) = case.objective(), case.model()
    theta = objective.pack(coef, intercept)
    assert objective.squares @ theta**2 == pytest.approx(np.sum(coef**2), rel=1e-12)


@every_exact_objective
def test_gradients_match_differences_of_the_risks(case):
    objective = case.objective()
    theta = objective.pack(*case.model())
    state = objective.evaluate(theta)
    slopes = differences(lambda point: objective.evaluate(point).risks, theta)
    assert_close(objective.class_gradients(state), slopes.T, 1e-8)
    assert_close(objective.gradient(state, case.mass()), slopes @ case.mass(), 1e-8)


@every_objective
def test_the_gradient_is_the_mean_of_the_class_gradients(case):
    objective = case.objective()
    state = objective.evaluate(objective.pack(*case.model()))
    gradients = objective.class_gradients(state)
    assert gradients.shape == (case.n_classes, objective.size)
    assert_close(objective.gradient(state, case.mass()), case.mass() @ gradients, RTOL)
    for owner, mass in enumerate(np.eye(case.n_classes)):
        assert_close(objective.gradient(state, mass), gradients[owner], RTOL)


@every_objective
def test_one_pass_finds_what_two_find(case):
    objective = case.objective(case.data(n_rows=700))
    theta = objective.pack(*case.model())
    state = objective.evaluate(theta)
    both, gradients = objective.evaluate_with_gradients(theta)
    assert objective.n_evaluations == 2
    assert_close(both.risks, state.risks, RTOL)
    assert_close(both.kept[:, :], state.kept[:, :], RTOL)
    assert_close(gradients, objective.class_gradients(state), RTOL)


@pytest.mark.parametrize("case", [c for c in OBJECTIVE_CASES if c.dtype == "float32"], ids=str)
def test_single_precision_answers_as_double_on_the_same_numbers(case):
    data, double = case.data(), case._replace(dtype="float64")
    one, other = case.objective(data), double.objective(data)
    theta = one.pack(*case.model())
    states = one.evaluate(theta), other.evaluate(theta)
    assert_close(one.class_gradients(states[0]), other.class_gradients(states[1]), RTOL)
    hessians = [o.hessian(s.theta, case.mass()) for o, s in zip((one, other), states, strict=True)]
    assert_close(*hessians, RTOL)


def model_directions(objective, case):
    """Directions of the parameter that no equal shift of all scores is part of."""
    directions = np.random.default_rng(2).normal(size=(4, objective.size))
    if case.n_scores == 1:
        return directions
    unfolded = objective.features.unfold(directions)
    return objective.features.fold(unfolded - unfolded.mean(axis=1, keepdims=True))


@every_exact_objective
def test_hessian_matches_differences_of_the_gradient(case):
    objective, mass = case.objective(), case.mass()
    theta = objective.pack(*case.model())
    hessian = objective.hessian(theta, mass)
    change = differences(lambda point: objective.gradient(objective.evaluate(point), mass), theta)
    for direction in model_directions(objective, case):
        assert_close(hessian @ direction, change @ direction, 1e-8)
        assert_close(
            objective.hessian_product(objective.evaluate(theta), mass, direction),
            change @ direction,
            1e-8,
        )


@every_objective
def test_hessian_is_symmetric_and_regular_in_every_direction(case):
    objective, mass = case.objective(), case.mass()
    hessian = objective.hessian(objective.pack(*case.model()), mass)
    assert hessian.dtype == np.float64
    assert_close(hessian, hessian.T, 1e-6)
    values = np.linalg.eigvalsh(hessian)
    assert values[0] > 1e-5 * values[-1]


@every_objective
def test_single_precision_products_are_close(case):
    objective, mass = case.objective(), case.mass()
    theta = objective.pack(*case.model())
    assert_close(objective.hessian(theta, mass, single=True), objective.hessian(theta, mass), 1e-5)


def intercept_gradient(objective, state, mass):
    return objective.features.unfold(objective.gradient(state, mass))[:, -1]


@every_objective_with_intercept
@pytest.mark.parametrize("offset", [0.0, 3.0, 10.0, 20.0])
def test_center_leaves_no_slope_in_the_intercepts(case, offset):
    # A shift of the probabilities costs digits: those of 1 - p, where p was close to 1.
    lost = np.exp(offset) * np.finfo(np.float64).eps
    objective, mass, (coef, intercept) = case.objective(), case.mass(), case.model()
    intercept[0] += offset
    state = objective.center(objective.evaluate(objective.pack(coef, intercept)), mass)
    assert np.abs(intercept_gradient(objective, state, mass)).max() <= 1e-12
    np.testing.assert_allclose(objective.unpack(state.theta)[0], coef, rtol=1e-12)
    assert_close(state.risks, objective.evaluate(state.theta).risks, 10 * (RTOL + lost))


@pytest.mark.parametrize("case", [c for c in OBJECTIVE_CASES if not c.fit_intercept], ids=str)
def test_center_without_intercepts_changes_nothing(case):
    objective = case.objective()
    state = objective.evaluate(objective.pack(*case.model()))
    assert objective.center(state, case.mass()) is state


LEAVING = [c for c in CENTERED if c.n_classes == 4 and c not in OTHER_LOSSES]


@pytest.mark.parametrize("case", LEAVING, ids=str)
@pytest.mark.parametrize("gone", [[0], [2], [1, 3]], ids=str)
def test_a_class_without_mass_leaves_the_model(case, gone):
    (X, labels, weights), (coef, intercept) = data, _ = case.data(), case.model()
    live = np.setdiff1d(np.arange(4), gone)
    mass = np.zeros(4)
    mass[live] = np.random.default_rng(1).dirichlet(np.ones(len(live)))
    objective = case.objective(data)
    state = objective.center(objective.evaluate(objective.pack(coef, intercept)), mass)
    intercept = objective.unpack(state.theta)[1]
    # The smaller model: the other classes' rows and scores, and nothing else.
    kept = np.isin(labels, live)
    scores = X[kept] @ coef[live].T + intercept[live]
    own = np.searchsorted(live, labels[kept])
    logs = log_softmax(scores, axis=1)
    losses = -logs[np.arange(len(own)), own]
    for place, owner in enumerate(live):
        mine = own == place
        expected = np.average(losses[mine], weights=weights[kept][mine])
        assert state.risks[owner] == pytest.approx(expected, rel=10 * RTOL)
    scale = weights[kept] / np.bincount(labels, weights)[labels[kept]] * mass[labels[kept]]
    residual = (np.exp(logs) - np.eye(len(live))[own]) * scale[:, None]
    assert np.abs(residual.sum(axis=0)).max() <= 1e-12
    gradient = objective.features.unfold(
        objective.features.standard(objective.gradient(state, mass))
    )
    assert np.abs(gradient[gone]).max() == 0
    # Parameters in raw units have gradients scaled the other way: compare along a direction.
    direction = np.random.default_rng(0).normal(size=(4, N_FEATURES))
    slope = objective.gradient(state, mass) @ objective.pack(direction, np.zeros(4))
    assert slope == pytest.approx(np.sum((residual.T @ X[kept]) * direction[live]), abs=RTOL)


@pytest.mark.parametrize("case", [c for c in CENTERED if c.n_classes == 2], ids=str)
@pytest.mark.parametrize("size", [0.5, 300.0])
@pytest.mark.parametrize("winner", [0, 1])
def test_the_only_class_with_mass_has_no_risk(case, winner, size):
    objective, mass = case.objective(), np.eye(2)[winner]
    state = objective.center(objective.evaluate(objective.pack(*case.model(size))), mass)
    assert state.risks[winner] == pytest.approx(0, abs=10 * RTOL)
    assert mass @ state.risks == pytest.approx(0, abs=10 * RTOL)
    assert np.abs(objective.gradient(state, mass)).max() <= (1e-12 if case in OTHER_LOSSES else 0)


def test_center_of_very_many_classes_that_are_confused_in_pairs():
    # Two classes at each place: steps class by class overshoot by a factor of two.
    labels = np.repeat(np.arange(130), 4)
    X = 1.0 * (labels[:, None] // 2 == np.arange(65))
    objective = ObjectiveCase(130, "dense", "float64", True, "raw").objective(
        (X, labels, np.ones(520))
    )
    rng = np.random.default_rng(0)
    coef, mass = 8.0 * (np.arange(130)[:, None] // 2 == np.arange(65)), rng.dirichlet(np.ones(130))
    state = objective.center(
        objective.evaluate(objective.pack(coef, 0.3 * rng.normal(size=130))), mass
    )
    assert np.abs(intercept_gradient(objective, state, mass)).sum() <= 1e-9


@every_objective
@pytest.mark.parametrize("count", [1, 4, 1000])
def test_thinning_keeps_a_few_rows_and_whole_classes(case, count):
    X, labels, _ = data = case.data()
    objective = case.objective(data)
    thin = objective.thin(count)
    sizes, kept = np.diff(thin.bounds), np.minimum(np.bincount(labels), count)
    np.testing.assert_array_equal(sizes, kept)
    assert thin.n_rows == kept.sum() and thin.size == objective.size
    np.testing.assert_allclose(np.bincount(thin.labels, thin.shares), 1, rtol=1e-6)
    theta = objective.pack(*case.model())
    np.testing.assert_array_equal(thin.unpack(theta)[0], objective.unpack(theta)[0])
    risks, everything = thin.evaluate(theta).risks, objective.evaluate(theta).risks
    assert objective.n_evaluations == thin.n_evaluations == 1
    np.testing.assert_array_equal(risks, objective.thin(count).evaluate(theta).risks)
    if count == 1000:
        assert_close(risks, everything, RTOL)
    if count == 1:  # each class is then one of its own rows
        scores = X @ objective.unpack(theta)[0].T + objective.unpack(theta)[1]
        scores = np.column_stack([0 * scores, scores]) if case.n_classes == 2 else scores
        losses = row_losses(scores, labels, case.loss)
        for owner, risk in enumerate(risks):
            assert np.abs(losses[labels == owner] - risk).min() <= 10 * RTOL


def test_thinning_survives_rows_that_weigh_nothing():
    case = ObjectiveCase(4, "dense", "float64", True, "raw")
    X, labels, weights = case.data()
    weights[labels == 2] = 0
    weights[np.flatnonzero(labels == 2)[-1]] = 1
    risks = case.objective((X, labels, weights)).thin(1).evaluate(np.zeros(16)).risks
    np.testing.assert_allclose(risks, np.log(4))


def answers(objective, case):
    """Everything that an objective can be asked, at one point."""
    mass = case.mass()
    state = objective.evaluate(objective.pack(*case.model()))
    centered = objective.center(state, mass)
    both, gradients = objective.evaluate_with_gradients(state.theta)
    return [
        state.risks,
        state.kept[:, :],
        objective.class_gradients(state, np.full_like(gradients, np.nan)),
        objective.gradient(state, mass),
        objective.hessian(state.theta, mass),
        objective.hessian(state.theta, mass, single=True),
        centered.risks,
        centered.theta,
        both.risks,
        gradients,
    ]


@every_objective
def test_threads_change_no_bit(case):
    data, two, cut = case.data(n_rows=2000), Workers(2), RowCut(block_bytes=1, pieces=5)
    try:
        alone, shared = (case.objective(data, workers=own, cut=cut) for own in (None, two))
        for one, other in zip(answers(alone, case), answers(shared, case), strict=True):
            np.testing.assert_array_equal(one, other)
    finally:
        two.close()


@every_objective
def test_blocks_change_nothing_but_rounding(case):
    data = case.data(n_rows=700)
    whole = answers(case.objective(data), case)
    for pieces in (1, 3, 100):
        objective = case.objective(data, cut=RowCut(block_bytes=1, pieces=pieces))
        for name, one, other in zip(range(10), answers(objective, case), whole, strict=True):
            tolerance = 1e-5 if name == 5 else RTOL  # products in single precision
            assert_close(one, other, tolerance)


def test_wide_sums_are_formed_in_fewer_pieces_with_the_same_answer():
    case = ObjectiveCase(4, "dense", "float64", True, "raw")
    data = case.data(n_rows=700)
    narrow, wide = (
        answers(case.objective(data, cut=RowCut(block_bytes=1, wide=wide)), case)
        for wide in (1 << 18, 1)
    )
    for one, other in zip(narrow, wide, strict=True):
        assert_close(one, other, 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("view", VIEWS)
def test_gradients_of_wide_sparse_rows_are_those_found_by_blocks(dtype, view):
    X, labels, weights = small_data(5, n_rows=80, n_features=30)
    X = X * (np.random.default_rng(0).uniform(size=X.shape) < 0.2)
    objective = ObjectiveCase(5, "sparse", dtype, True, view).objective((X, labels, weights))
    assert objective.n_rows < objective.n_classes * objective.features.width
    theta = np.random.default_rng(1).normal(size=objective.size)
    state, by_blocks = objective.evaluate_with_gradients(theta)
    spent = None
    for _ in range(2):
        found = objective.class_gradients(state, spent)
        np.testing.assert_allclose(found, by_blocks, rtol=1e-12, atol=1e-13)
        assert spent is None or np.shares_memory(found, spent)
        spent = found


def test_an_objective_that_has_been_evaluated_can_be_sent_elsewhere():
    X, labels = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 3
    with open_objective(X, labels, np.ones(12), n_classes=3, fit_intercept=True) as objective:
        theta = np.linspace(0, 1, objective.size)
        state = objective.evaluate(theta)
        sent = pickle.loads(pickle.dumps(objective))
        np.testing.assert_array_equal(sent.evaluate(theta).risks, state.risks)


def test_memory_is_freed_without_the_garbage_collector():
    X, labels = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 3
    gc.disable()
    try:
        with open_objective(X, labels, np.ones(12), n_classes=3, fit_intercept=True) as objective:
            objective.evaluate(np.zeros(objective.size))
            alive = ref(objective)
        del objective
        assert alive() is None
    finally:
        gc.enable()
