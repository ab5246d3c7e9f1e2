"""Fits on torch tensors: the optimum of the same fit in memory, in the input's library.

The objective is compared with the one in memory, number by number; fits with those of NumPy arrays
over every kind of set. CUDA runs the same tests where there is a device.
"""

import subprocess
import sys
import types
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

from equipoise import (
    LabelCVaR,
    RobustLinearClassifier,
    RobustLogisticRegression,
    class_risks,
    population_proba,
    tune_weights,
)
from equipoise.arrays import rounding, to_numpy
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.losses import as_trained
from equipoise.objectives import Evaluation, LinearObjective, fused_pass
from equipoise.objectives import torch_rows as opening
from equipoise.objectives.matrices import DenseFeatures
from equipoise.objectives.torch_objective import TensorCut
from equipoise.persistence import load_model, save_model
from equipoise.sets import WorstClass
from equipoise.solvers import Limits, Problem, Progress, run
from equipoise.solvers.systems import gmres
from equipoise.threads import Workers
from linear_models import small_data
from logistic_cases import NAMES, each_set, few_rows_allowed

torch = pytest.importorskip("torch")

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
    ),
]
each_device = pytest.mark.parametrize("device", DEVICES)
SAME = 2e-6


def tensors(device, X, y):
    return torch.tensor(X, device=device), torch.tensor(y, device=device)


def pair(n_classes, device="cpu", *, fit_intercept=True, n_rows=200, cut=None):
    """The objective on tensors, and one in memory over the same view of the same rows."""
    X, labels, weights = small_data(n_classes, n_rows=n_rows)
    X = X * [1.0, 100.0, 0.01] + [0.0, 500.0, 0.0] * np.array(fit_intercept)
    ours = opening.torch_objective(
        *tensors(device, X, labels),
        weights,
        n_classes=n_classes,
        fit_intercept=fit_intercept,
        ridge=1e-3,
        cut=cut,
    )
    order = np.argsort(labels, kind="stable")
    kernel = as_trained("cross_entropy").kernel(n_classes)
    rows = DenseFeatures(X[order], kernel.n_scores, fit_intercept)
    rows = rows.standardized(ours.features.moments, ours.features.unit)
    totals = np.bincount(labels, weights)
    shares = weights[order] / totals[labels[order]]
    bounds = np.searchsorted(labels[order], np.arange(n_classes + 1))
    return ours, LinearObjective(rows, kernel, bounds, shares, Workers(1))


def solved(device, X, y, cut, *, C=1.0, tol=1e-6, solver="auto"):
    """The worst class's problem on tensors, whose work is cut otherwise than users'."""
    shares = np.bincount(y) / len(y)
    settings = {"n_classes": len(shares), "fit_intercept": True, "ridge": 1 / (C * len(y))}
    objective = opening.torch_objective(*tensors(device, X, y), None, cut=cut, **settings)
    problem = Problem(objective, WorstClass().resolve(shares), settings["ridge"])
    start = objective.vector(np.zeros(objective.size)), shares
    return run(problem, solver, start, Limits(tol, 1000), Progress())


@each_device
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("few_classes", [64, 1])
def test_the_objective_answers_as_the_one_in_memory(
    device, n_classes, fit_intercept, long, few_classes
):
    cut = TensorCut(few_classes=few_classes, long=0 if long else 1500)
    ours, memory = pair(n_classes, device, fit_intercept=fit_intercept, cut=cut)
    rng = np.random.default_rng(3)
    theta, direction = 0.5 * rng.normal(size=(2, memory.size))
    mass = rng.dirichlet(np.ones(n_classes))
    here, there = ours.evaluate(ours.vector(theta)), memory.evaluate(theta)

    def same(found, wanted):
        np.testing.assert_allclose(to_numpy(found), wanted, rtol=1e-9, atol=1e-11)

    same(here.risks, there.risks)
    same(ours.class_gradients(here), memory.class_gradients(there))
    same(ours.gradient(here, mass), memory.gradient(there, mass))
    same(
        ours.hessian_product(here, mass, ours.vector(direction)),
        memory.hessian_product(there, mass, direction),
    )
    same(ours.hessian(here.theta, mass), memory.hessian(there.theta, mass))
    same(ours.squares, memory.squares)
    shift = rng.normal(size=memory.features.n_scores)
    if memory.has_every_intercept:
        for found, wanted in zip(
            ours.risk_gradients(here, shift), memory.risk_gradients(there, shift), strict=True
        ):
            same(found, wanted)
    same(ours.growths(here, shift), memory.growths(there, shift))
    centred, wanted = ours.center(here, mass), memory.center(there, mass)
    same(centred.theta, wanted.theta)
    same(centred.risks, wanted.risks)
    same(ours.gradient(centred, mass), memory.gradient(wanted, mass))


@each_device
@pytest.mark.parametrize("short", [0, 256])
def test_sums_by_class_do_not_depend_on_blocks(device, short):
    # Classes begin and end within blocks, and go on in the next.
    cut = TensorCut(few_classes=1, short_sum=short, long=0, block_rows=23)
    ours, memory = pair(7, device, cut=cut)
    theta, shift = np.full(memory.size, 0.1), np.linspace(-1, 1, 7)
    here, there = ours.evaluate(ours.vector(theta)), memory.evaluate(theta)
    np.testing.assert_allclose(here.risks, there.risks, rtol=1e-9)
    (growths, slopes), wanted = (
        ours.risk_gradients(here, shift),
        memory.risk_gradients(there, shift),
    )
    np.testing.assert_allclose(growths, wanted[0], rtol=1e-9)
    np.testing.assert_allclose(to_numpy(slopes), wanted[1], atol=1e-12)


@each_device
@few_rows_allowed
@pytest.mark.parametrize("recipe", ["worst_class", LabelCVaR(0.05)])
def test_risks_of_many_classes_are_kept_equal_as_in_memory(device, recipe):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(120), 12)
    X = rng.normal(size=(120, 30))[y] + rng.normal(size=(len(y), 30))
    memory = RobustLogisticRegression(recipe, solver="multipliers").fit(X, y)
    model = RobustLogisticRegression(recipe).fit(*tensors(device, X, y))
    assert model.status_ == "converged"
    assert model.objective_ == pytest.approx(memory.objective_, rel=SAME)
    assert model.lower_bound_ <= memory.objective_ * (1 + 1e-12)
    assert model.n_evaluations_ <= 1.2 * memory.n_evaluations_


@each_device
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systems_of_tensors_are_solved_by_products(device, dtype):
    rng = np.random.default_rng(0)
    matrix = torch.tensor(np.eye(30) + 0.1 * rng.normal(size=(30, 30)), device=device)
    matrix = matrix.to(getattr(torch, dtype))
    right_side = torch.ones(30, device=device, dtype=matrix.dtype)
    solution, left = gmres(matrix.__matmul__, right_side, 1e-12, 40)
    assert solution.dtype == matrix.dtype and solution.device == matrix.device
    np.testing.assert_allclose(to_numpy(matrix @ solution), 1.0, atol=30 * rounding(matrix))
    assert left <= 1e-12 or dtype == "float32"


@each_device
def test_fewer_digits_are_those_of_the_same_problem(device):
    ours, _ = pair(6, device)
    rough, theta = ours.rougher(), np.full(ours.size, 0.2)
    assert rough.sharper() is ours and rough.rougher() is None
    mass, shift = np.full(6, 1 / 6), np.linspace(-1, 1, 6)
    here, there = rough.evaluate(rough.vector(theta)), ours.evaluate(ours.vector(theta))
    for found, wanted in [
        (here.risks, there.risks),
        (rough.gradient(here, mass), ours.gradient(there, mass)),
        (rough.growths(here, shift), ours.growths(there, shift)),
        (rough.risk_gradients(here, shift)[1], ours.risk_gradients(there, shift)[1]),
        (rough.hessian_diagonal(here, mass), ours.hessian_diagonal(there, mass)),
    ]:
        np.testing.assert_allclose(to_numpy(found), to_numpy(wanted), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_class_without_mass_leaves_the_model(n_classes):
    ours, memory = pair(n_classes)
    mass = np.zeros(n_classes)
    mass[1:] = 1 / (n_classes - 1)
    theta = np.full(memory.size, 0.1)
    found = ours.center(ours.evaluate(theta), mass)
    wanted = memory.center(memory.evaluate(theta), mass)
    np.testing.assert_allclose(found.risks, wanted.risks, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("count", [1, 5, 20])
def test_fewer_rows_are_those_of_every_class(count):
    ours, _ = pair(3)
    few = ours.thin(count)
    assert np.all(np.abs(np.diff(few.rows.bounds) - count) <= 1)
    sums = np.bincount(few.rows.labels.numpy(), few.rows.shares.numpy())
    assert sums == pytest.approx(np.ones(3))


def test_rows_stand_for_others_as_they_do_in_memory():
    ours, memory = pair(3)
    found, sizes = ours._sizes.numpy(), memory._sizes
    np.testing.assert_allclose(found, sizes / 2, rtol=1e-4)


@each_device
@each_set
@few_rows_allowed
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["binary", "multinomial", "weights", "prior"])
def test_the_optimum_is_that_in_memory(device, recipe, dtype, kind):
    k = 2 if kind == "binary" else 4
    X, y, weights = small_data(k, n_rows=150)
    X = X.astype(dtype)
    settings = {"class_prior": np.arange(1.0, k + 1) / (k * (k + 1) / 2)} if kind == "prior" else {}
    given = weights if kind == "weights" else None
    memory = RobustLogisticRegression(recipe, **settings).fit(X, y, sample_weight=given)
    model = RobustLogisticRegression(recipe, **settings)
    model.fit(*tensors(device, X, y), sample_weight=given)
    assert model.status_ == "converged" and model.duality_gap_ <= 1e-6 * model.objective_
    assert model.objective_ == pytest.approx(memory.objective_, rel=SAME)
    assert model.lower_bound_ <= memory.objective_ * (1 + 1e-12)
    assert model.coef_.device.type == device and str(model.coef_.dtype) == f"torch.{dtype}"


@each_device
@pytest.mark.parametrize("solver", ["sqp-newton", "sqp-lbfgs", "multipliers", "descent-ascent"])
def test_long_parameters_stay_on_the_device(device, solver):
    X, y, _ = small_data(5, n_rows=200)
    settings = {"solver": solver, "C": 0.01, "tol": 1e-2 if solver == "descent-ascent" else 1e-6}
    memory = RobustLogisticRegression("worst_class", **settings).fit(X, y)
    found = solved(device, X, y, TensorCut(long=0), **settings)
    assert found.status.converged and found.theta.device.type == device
    assert found.objective == pytest.approx(memory.objective_, rel=2 * settings["tol"])


def test_without_a_penalty_the_conditions_are_checked_on_tensors_too():
    X, y, _ = small_data(3, n_rows=200)
    memory = RobustLogisticRegression("worst_class", C=np.inf).fit(X, y)
    model = RobustLogisticRegression("worst_class", C=np.inf).fit(*tensors("cpu", X, y))
    assert model.status_ == "stationary"
    assert model.objective_ == pytest.approx(memory.objective_, rel=SAME)


class RoundedPass:
    """A pass that is off by a share of every number, as one in single precision is."""

    error = 1e-4

    def __init__(self, rows, bounds, weights):
        self.weights, self.bounds = weights, bounds
        self.rows = rows

    def __call__(self, unfolded):
        width = unfolded.shape[1]
        scores = self.rows.numpy()[:, :width] @ unfolded.T
        labels = np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))
        shifted = scores - scores.max(axis=1, keepdims=True)
        total = np.exp(shifted).sum(axis=1)
        own = np.arange(len(labels)), labels
        residual = np.exp(shifted) / total[:, None]
        losses = np.log(total) - shifted[own]
        residual[own] -= 1
        means = [slice(a, b) for a, b in zip(self.bounds, self.bounds[1:], strict=False)]
        risks = np.array([losses[part].mean() for part in means])
        pulled = [residual[p].T @ self.rows.numpy()[p, :width] / (p.stop - p.start) for p in means]
        gradients = np.array(pulled).reshape(len(means), -1)
        wrong = 1 + self.error * np.sin(1e3 * np.arange(gradients.size)).reshape(gradients.shape)
        return risks * (1 - self.error), gradients * wrong


def test_what_few_digits_leave_is_finished_in_float64(monkeypatch):
    monkeypatch.setattr(fused_pass, "fits", lambda *_: True)
    monkeypatch.setattr(fused_pass, "FusedPass", RoundedPass)
    X, y, _ = small_data(3, n_rows=300)
    memory = RobustLogisticRegression("worst_class", C=100.0).fit(X, y)
    found = solved("cpu", X, y, TensorCut(fused_rows=1), C=100.0)
    assert found.status.converged
    assert found.objective == pytest.approx(memory.objective_, rel=SAME)
    assert found.lower_bound <= memory.objective_ * (1 + 1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("n_classes", [2, 7, 12])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fused_pass_has_six_digits(n_classes, weighted):
    if not fused_pass.triton:
        pytest.skip("torch has no Triton")
    X, y, weights = small_data(n_classes, n_rows=100_000, n_features=20)
    X = X.astype(np.float32)
    objective = opening.torch_objective(
        *tensors("cuda", X, y),
        weights if weighted else None,
        n_classes=n_classes,
        fit_intercept=True,
        ridge=1e-5,
    )
    theta = 0.3 * np.random.default_rng(0).normal(size=objective.size)
    state, gradients = objective.evaluate_with_gradients(theta)
    assert state.kept is None
    exact = objective.exactly(Evaluation(theta, state.risks, None))
    wanted = objective.class_gradients(exact)
    np.testing.assert_allclose(state.risks, exact.risks, rtol=1e-6)
    assert np.linalg.norm(gradients - wanted) <= 1e-6 * np.linalg.norm(wanted)


@each_device
@pytest.mark.parametrize("k", [2, 3])
def test_predictions_are_those_of_arrays_in_the_library_of_the_rows(device, k):
    X, y, _ = small_data(k, n_rows=150)
    model = RobustLogisticRegression("worst_class").fit(*tensors(device, X, y))
    rows = torch.tensor(X, device=device)
    names = ("decision_function", "predict_proba", "predict_log_proba", "predict")
    methods = [getattr(model, name) for name in names]
    for method in (*methods, partial(population_proba, model)):
        found, wanted = method(rows), method(X)
        assert isinstance(found, torch.Tensor) and found.device.type == device
        np.testing.assert_allclose(to_numpy(found), wanted, atol=1e-12)
    twin = model.to_sklearn()
    np.testing.assert_allclose(twin.predict_proba(X), to_numpy(model.predict_proba(rows)))


def test_names_that_are_text_come_back_as_text():
    X, labels, _ = small_data(4, n_rows=150)
    model = RobustLogisticRegression("worst_class").fit(torch.tensor(X), NAMES[labels])
    assert model.classes_.tolist() == sorted(NAMES)
    assert set(model.predict(torch.tensor(X)).tolist()) <= set(NAMES)


@pytest.mark.parametrize("kind", ["int8", "int64", "bool", "float64", "far apart"])
def test_labels_of_every_type(kind):
    X, labels, _ = small_data(2, n_rows=100)
    y = torch.tensor(labels * (10**9 if kind == "far apart" else 1) + (kind != "bool"))
    y = y if kind == "far apart" else y.to(getattr(torch, kind))
    model = RobustLogisticRegression("worst_class").fit(torch.tensor(X), y)
    assert model.classes_.tolist() == sorted(set(y.tolist()))
    assert model.predict(torch.tensor(X)).dtype == y.dtype


def test_weights_may_be_tensors_and_zero():
    X, y, weights = small_data(3, n_rows=150)
    weights[::7] = 0
    memory = RobustLogisticRegression("worst_class").fit(X, y, sample_weight=weights)
    for given in (weights, torch.tensor(weights)):
        model = RobustLogisticRegression("worst_class")
        model.fit(*tensors("cpu", X, y), sample_weight=given)
        assert model.objective_ == pytest.approx(memory.objective_, rel=SAME)


def test_gradients_integers_and_half_precision_are_read():
    X, y, _ = small_data(3, n_rows=150)
    rows = torch.tensor(X)
    wanted = RobustLogisticRegression("worst_class").fit(rows, y)
    found = RobustLogisticRegression("worst_class").fit(rows.clone().requires_grad_(), y)
    assert torch.equal(found.coef_, wanted.coef_) and not found.coef_.requires_grad
    whole = (10 * rows).round()
    memory = RobustLogisticRegression("worst_class").fit(whole.numpy(), y)
    for dtype in (torch.int32, torch.bfloat16, torch.float16):
        model = RobustLogisticRegression("worst_class").fit(whole.to(dtype), y)
        assert model.coef_.dtype == torch.float32
        assert model.objective_ == pytest.approx(memory.objective_, rel=1e-3)


def test_a_warm_start_begins_where_the_last_fit_ended():
    X, y, _ = small_data(3, n_rows=150)
    model = RobustLogisticRegression("worst_class", warm_start=True).fit(*tensors("cpu", X, y))
    cold = model.n_evaluations_
    assert model.fit(*tensors("cpu", X, y)).n_evaluations_ < cold
    assert clone(model).fit(X, y).coef_.shape == model.coef_.shape


def test_bad_tensors_are_refused_in_a_sentence():
    X, y, weights = small_data(3)
    rows, labels = tensors("cpu", X, y)
    model = RobustLogisticRegression()
    holed = rows.clone()
    holed[7, 2] = float("nan")
    cases = [
        ((holed, labels), r"got nan in row 7, column 2"),
        ((rows / 0, labels), r"X must hold finite numbers, got -?inf in row 0"),
        ((rows, labels.to("meta")), r"one device, got X on cpu and y on meta"),
        ((rows[:, 0], labels), r"two dimensions.*\(60,\)"),
        ((rows[:0], labels[:0]), r"two dimensions, at least one row"),
        ((rows.to(torch.complex64), labels), r"real numbers, got torch.complex64"),
        ((rows.to_sparse(), labels), r"dense tensor"),
        ((rows, labels[:-1]), r"one label for each of the 60 rows of X, got 59"),
        ((rows, labels * 0), r"at least 2 classes"),
        ((rows, rows[:, 0]), r"[Uu]nknown label type|continuous"),
        ((rows, labels, -torch.tensor(weights)), r"sample_weight must not be negative"),
        ((rows, labels, weights[:-1]), r"one value for each of the 60 rows"),
    ]
    for given, words in cases:
        with pytest.raises(ValueError, match=words):
            model.fit(*given)
    assert not hasattr(model, "coef_")
    model.fit(rows, labels)
    with pytest.raises(ValueError, match=r"2 features, but .* expecting 3"):
        model.predict(rows[:, :2])


def test_other_losses_are_refused_on_tensors():
    X, y, _ = small_data(3)
    RobustLinearClassifier(loss="cross_entropy").fit(*tensors("cpu", X, y))
    with pytest.raises(InvalidParameterError, match="loss='cross_entropy' is the only one"):
        RobustLinearClassifier(loss="squared_hinge").fit(*tensors("cpu", X, y))


def test_a_device_that_is_full_says_what_would_fit():
    rows = torch.zeros((1000, 1))
    with pytest.raises(InvalidInputError, match=r"1\.00 GiB on cpu.*0\.50 GiB are free.*500 rows"):
        opening.check_room(rows, 2**30, 2**29)
    opening.check_room(rows, 2**29, 2**29)


class SinglePass(RoundedPass):
    """A pass in single precision."""

    error = 0.0

    def __call__(self, unfolded):
        risks, gradients = super().__call__(unfolded.astype(np.float32))
        return risks.astype(np.float64), gradients.astype(np.float64)


@pytest.mark.parametrize("seed", range(10))
def test_what_few_digits_have_begun_is_ended_in_doubles(seed, monkeypatch):
    # The second fit begins where the first could go no further: masses of its first step must be as
    # exact as the little that is left.
    monkeypatch.setattr(fused_pass, "fits", lambda *_: True)
    monkeypatch.setattr(fused_pass, "FusedPass", SinglePass)
    X, y, _ = small_data(3, n_rows=300)
    X = (X + 1e-3 * np.random.default_rng(seed).normal(size=X.shape)).astype(np.float32)
    found = solved("cpu", X, y, TensorCut(fused_rows=1), C=10, tol=5e-9)
    memory = RobustLogisticRegression("worst_class", C=10, tol=1e-8).fit(X, y)
    assert found.lower_bound >= memory.objective_ * (1 - 3e-8)


class CupyLike:
    """An array of a library that torch reads through DLPack alone."""

    __module__ = "cupy"

    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, **options):
        return self._tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()

    def get(self):
        return self._tensor.numpy()


def test_arrays_of_cupy_go_through_torch(monkeypatch):
    library = types.ModuleType("cupy")
    library.from_dlpack = CupyLike
    monkeypatch.setitem(sys.modules, "cupy", library)
    X, y, _ = small_data(3, n_rows=150)
    rows, labels = (CupyLike(tensor) for tensor in tensors("cpu", X, y))
    model = RobustLogisticRegression("worst_class").fit(rows, labels)
    memory = RobustLogisticRegression("worst_class").fit(X, y)
    assert isinstance(model.coef_, CupyLike) and isinstance(model.predict(rows), CupyLike)
    assert model.objective_ == pytest.approx(memory.objective_, rel=SAME)
    np.testing.assert_allclose(model.predict_proba(rows).get(), memory.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("device", [*DEVICES, "cupy"])
def test_probabilities_on_a_device_are_judged_and_tuned(device):
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300)
    weights = rng.uniform(0.5, 1, 300)
    if device == "cupy":  # NumPy cannot read these by itself, as it cannot read those on a device
        on_device = [CupyLike(torch.tensor(x)) for x in (y, P, weights)]
    else:
        on_device = [torch.tensor(x, device=device) for x in (y, P, weights)]
    for loss in ("cross_entropy", "margin"):
        found = class_risks(*on_device[:2], loss=loss, sample_weight=on_device[2])
        wanted = class_risks(y, P, loss=loss, sample_weight=weights)
        assert found.risks.to_dict() == wanted.risks.to_dict()
    labels = class_risks(on_device[0], on_device[0])
    assert labels.risks.to_dict() == dict.fromkeys(range(3), 0.0)
    found = tune_weights(*on_device[:2], sample_weight=on_device[2])
    wanted = tune_weights(y, P, sample_weight=weights)
    assert np.array_equal(np.asarray(found.weights), np.asarray(wanted.weights))


def test_a_device_that_runs_out_of_memory_says_so(monkeypatch):
    def full(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 186.27 GiB. GPU 0")

    monkeypatch.setattr(opening, "torch_objective", full)
    monkeypatch.setattr(opening, "free_memory", lambda device: 1200)
    X, y, _ = small_data(3, n_rows=100)
    words = r"cpu ran out of memory: 186\.27 GiB was asked for.*about 25 would fit"
    with pytest.raises(InvalidInputError, match=words):
        RobustLogisticRegression().fit(*tensors("cpu", X, y))


def test_a_level_can_be_chosen_for_tensors():
    X, y, _ = small_data(3, n_rows=150)
    model = RobustLogisticRegression(LabelCVaR("auto")).fit(*tensors("cpu", X, y))
    assert isinstance(model.coef_, torch.Tensor)
    assert model.alpha_ == RobustLogisticRegression(LabelCVaR("auto")).fit(X, y).alpha_


@each_device
def test_a_model_of_tensors_is_saved_as_one_of_arrays(device, tmp_path):
    X, y, _ = small_data(3, n_rows=150)
    model = RobustLogisticRegression("worst_class").fit(*tensors(device, X, y))
    save_model(model, tmp_path / "m.equipoise")
    loaded = load_model(tmp_path / "m.equipoise")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_triton_is_loaded_where_it_is_used():
    code = "import sys, equipoise; print('equipoise.objectives.fused_pass' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
