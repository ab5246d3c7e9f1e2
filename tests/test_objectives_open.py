"""From data to an objective: sorted at most once, in its own precision, never dense, and tamed."""

import json
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from equipoise.losses import as_trained
from equipoise.objectives import LinearObjective, open_objective
from equipoise.objectives.matrices import LARGE, DenseFeatures
from equipoise.objectives.row_order import RowCut, by_class
from equipoise.objectives.sparse_matrix import SparseFeatures
from equipoise.objectives.units import standard_or_raw
from equipoise.threads import Workers
from linear_models import class_risks, small_data

STORAGES = {
    "dense": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "csr matrix": sp.csr_matrix,
    "csr array": sp.csr_array,
}

every_storage = pytest.mark.parametrize("storage", STORAGES)


def opened(X, labels, weights, *, fit_intercept=True):
    return open_objective(
        X, labels, weights, n_classes=labels.max() + 1, fit_intercept=fit_intercept
    )


def matrix_of(features):
    """The matrix behind features or their standardised view."""
    return getattr(features, "_features", features)._X


def bytes_of(X):
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return sum(part.nbytes for part in parts)


def equal(X, other):
    return (other != X).nnz == 0 if sp.issparse(X) else np.array_equal(X, other)


@every_storage
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_in_any_order_give_the_same_risks(storage, n_classes, dtype):
    X, labels, weights = small_data(n_classes)
    X = X.astype(dtype)
    rng = np.random.default_rng(0)
    coef = rng.normal(size=(1 if n_classes == 2 else n_classes, X.shape[1]))
    intercept = rng.normal(size=len(coef))
    with opened(STORAGES[storage](X), labels, weights) as objective:
        risks = objective.evaluate(objective.pack(coef, intercept)).risks
        assert matrix_of(objective.features).dtype == dtype
    expected = class_risks(X.astype(np.float64), labels, weights, coef, intercept)
    np.testing.assert_allclose(risks, expected, rtol=1e-12)


@every_storage
@pytest.mark.parametrize("wild", [1.0, 1e5])
def test_input_is_not_modified(storage, wild):
    X, labels, weights = small_data(3)
    X = STORAGES[storage](wild * X)
    before = X.copy(), labels.copy(), weights.copy()
    with opened(X, labels, weights) as objective:
        state = objective.evaluate(np.ones(objective.size) / 10)
        objective.center(state, np.array([0.2, 0.3, 0.5]))
        objective.hessian(state.theta, np.array([0.2, 0.3, 0.5]))
        objective.class_gradients(state)
    assert equal(X, before[0])
    np.testing.assert_array_equal(labels, before[1])
    np.testing.assert_array_equal(weights, before[2])


def peak_of(X, labels):
    """Most memory held while an objective opens and takes its first gradients, in bytes."""
    weights = np.ones(len(labels))
    tracemalloc.start()
    try:
        with opened(X, labels, weights) as objective:
            objective.class_gradients(objective.evaluate(np.zeros(objective.size)))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Labels, weights, probabilities and the like: numbers in double for every row.
PER_ROW = 12 * 8


@pytest.mark.parametrize("wild", [1.0, 1e5])
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_single_precision_is_copied_once_and_never_in_double(wild, order):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(40_000, 80)), rng.integers(0, 2, 40_000)
    X = np.asarray(wild * X, dtype=np.float32, order=order)
    # One copy to sort the rows; NumPy makes another on the way from columns to rows.
    copies = {"C": 1.2, "F": 2.1}[order]
    assert peak_of(X, labels) < copies * X.nbytes + PER_ROW * len(labels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dense_rows_in_order_are_used_in_place(dtype):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60_000, 40)).astype(dtype), np.repeat([0, 1], 30_000)
    sample = 10_000 * 40 * 8 * 2
    assert peak_of(X, labels) < 1.1 * sample + PER_ROW * len(labels) + RowCut().block_bytes
    with opened(X, labels, np.ones(60_000), fit_intercept=False) as objective:
        assert np.shares_memory(objective.features._X, X)


@pytest.mark.parametrize("layout", ["C", "F", "view"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wild", [1.0, 1e5])
def test_gathered_rows_answer_as_sorted_ones(layout, dtype, wild):
    X, labels, weights = small_data(4, n_rows=700)
    X = (wild * X).astype(dtype)
    stored = np.repeat(X, 2, axis=1)[:, ::2] if layout == "view" else X.copy(layout)
    order, bounds, shares = by_class(labels, weights, np.bincount(labels, weights))
    kernel, answers = as_trained("cross_entropy").kernel(4), []
    for copied in (True, False):
        rows = DenseFeatures.in_order(stored, order, kernel.n_scores, True, copied=copied)
        rows = standard_or_raw(rows, DenseFeatures.column_moments(stored), 0.0)
        objective = LinearObjective(rows, kernel, bounds, shares, Workers())
        assert matrix_of(objective.features).dtype == dtype
        theta, mass = np.linspace(-1, 1, objective.size), np.array([0.1, 0.2, 0.3, 0.4])
        state, gradients = objective.evaluate_with_gradients(theta)
        thin = objective.thin(20)
        answers.append(
            (
                state.risks,
                state.kept[:, :],
                gradients,
                objective.gradient(state, mass),
                objective.hessian(state.theta, mass),
                thin.class_gradients(thin.evaluate(theta)),
            )
        )
    for copied, gathered in zip(*answers, strict=True):
        np.testing.assert_array_equal(copied, gathered)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_arrays_are_not_copied(dtype, order):
    rng = np.random.default_rng(0)
    n_rows = 2 * LARGE // (80 * np.dtype(dtype).itemsize)
    X, labels = rng.random((n_rows, 80), dtype=dtype), rng.integers(0, 2, n_rows)
    X = np.asarray(X, order=order)
    sample = 4_000 * 80 * 8 * 2
    assert (
        peak_of(X, labels) < sample + PER_ROW * n_rows + 4 * RowCut().block_bytes < 0.5 * X.nbytes
    )


def sparse_data(dtype, n_rows=3000, n_columns=20_000, per_row=20):
    rng = np.random.default_rng(0)
    stored = rng.normal(size=n_rows * per_row).astype(dtype)
    columns = np.sort(rng.integers(0, n_columns, (n_rows, per_row)), axis=1).ravel()
    starts = np.arange(n_rows + 1) * per_row
    X = sp.csr_matrix((stored, columns, starts), shape=(n_rows, n_columns))
    X.sum_duplicates()
    return X, rng.integers(0, 3, n_rows)


@pytest.mark.parametrize("wild", [1.0, 1e5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_rows_are_never_made_dense(monkeypatch, wild, dtype):
    monkeypatch.setattr(SparseFeatures, "dense", lambda self, loaded: pytest.fail("made dense"))
    X, labels = sparse_data(dtype)
    X.data *= np.asarray(wild, dtype)
    parameters = 3 * X.shape[1] * 8
    allowed = 2 * bytes_of(X) + 12 * parameters + PER_ROW * len(labels)
    assert allowed < 0.05 * X.shape[0] * X.shape[1] * X.dtype.itemsize
    assert peak_of(X, labels) < allowed


def test_sparse_blocks_are_dense_for_hessians_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(
        SparseFeatures,
        "dense",
        lambda self, loaded: asked.append(loaded.shape) or np.ones((60, 4)),
    )
    X, labels, weights = small_data(3)
    with opened(sp.csr_matrix(X), labels, weights) as objective:
        state = objective.evaluate(np.zeros(objective.size))
        objective.gradient(state, np.ones(3) / 3)
        objective.class_gradients(state)
        objective.center(state, np.ones(3) / 3)
        assert not asked
        objective.hessian(state.theta, np.ones(3) / 3)
        assert asked == [(60, 4)]


def wild_data(dtype=np.longdouble):
    """Columns of sizes 1e8, 1 and 1e-8, constants small and large, and a mean of a million."""
    Z, labels, weights = small_data(3, n_features=6)
    scale = np.array([1e8, 1.0, 1e-8, 0.0, 0.0, 1.0], dtype)
    shift = np.array([0.0, 0.0, 0.0, 7.0, -1e8, 1e6], dtype)
    return Z * scale + shift, labels, weights


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_wild_features_have_the_risks_of_longer_arithmetic(store, fit_intercept):
    X, labels, weights = wild_data()
    X = X.astype(np.float64)
    with opened(store(X), labels, weights, fit_intercept=fit_intercept) as objective:
        assert objective.features.moments is not None
        theta = 0.3 * np.random.default_rng(0).normal(size=objective.size)
        risks = objective.evaluate(theta).risks
        coef, intercept = objective.unpack(theta)
    scores = X.astype(np.longdouble) @ coef.T.astype(np.longdouble) + intercept
    top = scores.max(axis=1, keepdims=True)
    losses = np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0]
    losses = losses - scores[np.arange(len(labels)), labels]
    expected = [np.average(losses[labels == i], weights=weights[labels == i]) for i in range(3)]
    np.testing.assert_allclose(risks, np.array(expected, float), rtol=1e-8)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_solvers_see_wild_features_tame(store, fit_intercept):
    X, labels, weights = wild_data(np.float64)
    if not fit_intercept:
        X = X[:, :3]  # a shift cannot be absorbed, and columns with one are alike
    with opened(store(X), labels, weights, fit_intercept=fit_intercept) as objective:
        hessian = objective.hessian(np.zeros(objective.size), np.ones(3) / 3)
        diagonal = objective.features.unfold(np.diag(hessian))
    moving = [0, 1, 2, 5] if fit_intercept else [0, 1, 2]
    assert np.all(diagonal[:, moving] < 5) and np.all(diagonal[:, moving] > 0.01)
    assert np.all(diagonal < 50)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_units_of_the_features_change_no_gradient_that_solvers_see(dtype):
    X, labels, weights = small_data(3)
    seen = []
    for unit in (1e3, 1e6):
        with opened((unit * X).astype(dtype), labels, weights) as objective:
            theta = np.random.default_rng(0).normal(size=objective.size)
            seen.append(objective.class_gradients(objective.evaluate(theta)))
    np.testing.assert_allclose(*seen, atol=1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
def test_tame_features_are_taken_as_they_are(store):
    X, labels, weights = small_data(3)
    with opened(store(X), labels, weights) as objective:
        assert objective.features.moments is None and objective.features.unit == 1.0


class TroubleError(Exception):
    pass


def test_threads_end_with_the_block_whatever_happens():
    closed = []

    def use(trouble):
        with opened(*small_data(3)) as objective:
            objective.workers.close = lambda: closed.append(trouble)
            if trouble:
                raise TroubleError

    use(trouble=False)
    with pytest.raises(TroubleError):
        use(trouble=True)
    assert closed == [False, True]


def threads_now(user_api="blas"):
    """Threads of every library of a kind, sorted."""
    return sorted(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == user_api)


@pytest.fixture
def free():
    """What BLAS libraries have where nothing limits them; an old one may not take more than one."""
    with threadpool_limits(2):
        yield threads_now()


def stepwise(block):
    """Enter a block in a thread of its own; what is returned leaves it and waits for the end."""
    inside, leave = Event(), Event()

    def stay():
        with block:
            inside.set()
            leave.wait(10)

    thread = Thread(target=stay)
    thread.start()
    assert inside.wait(10)
    return lambda: (leave.set(), thread.join(10))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_blas_has_one_thread_from_the_first_block_to_the_last(free, order):
    assert max(free) == 2
    leave = [stepwise(opened(*small_data(3))) for _ in order]
    assert max(threads_now()) == 1
    leave[order[0]]()
    assert max(threads_now()) == 1
    leave[order[1]]()
    assert threads_now() == free


def test_many_blocks_at_once_some_in_others_some_broken_leave_blas_as_it_was(free):
    def use(number):
        seen, openmp = [], threads_now("openmp")
        with suppress(TroubleError), opened(*small_data(2)):
            seen.append(max(threads_now()))
            with opened(*small_data(3)):
                seen.append(max(threads_now()))
            seen.append(max(threads_now()))
            if number % 3 == 0:
                raise TroubleError
        # OpenMP counts in every thread by itself.
        return seen == [1, 1, 1] and threads_now("openmp") == openmp

    for _ in range(2):
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(use, range(24)))
        assert threads_now() == free


OWN_THREADS = """
import numpy as np
from threading import Barrier
from threadpoolctl import ThreadpoolController
from sklearn.ensemble import HistGradientBoostingClassifier
from equipoise.threads import Workers
met = Barrier(2)
def counts(_):
    met.wait(10)
    return [lib["num_threads"] for lib in ThreadpoolController().select(user_api="openmp").info()]
print(counts.__name__, *Workers(2).map(counts, range(2)))
"""


def test_our_own_threads_have_one_openmp_thread_each():
    # What a new thread begins with is settled when OpenMP is loaded.
    both = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    command = [sys.executable, "-c", OWN_THREADS]
    found = subprocess.run(command, env=both, capture_output=True, text=True, check=True).stdout
    assert found == "counts [1] [1]\n"


def in_child(function):
    """What a function returns in a forked process."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.write(writing, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.wait()
    return json.loads(os.read(reading, 4096))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_keeps_the_limit_of_its_own_blocks_alone(free):
    one = [1] * len(free)

    def block():
        with opened(*small_data(3)):
            inside = threads_now()
        return [inside, threads_now()]

    leave = stepwise(opened(*small_data(3)))
    assert in_child(threads_now) == free
    assert in_child(block) == [one, free]
    with opened(*small_data(3)):
        assert in_child(threads_now) == one
        assert in_child(block) == [one, one]
    leave()
    assert threads_now() == free


@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_thinned_rows_stand_for_all_of_them(store, n_classes):
    """Curvature of a tenth of the rows is that of all, along columns that are rare as well."""
    rng = np.random.default_rng(5)
    n, chances = 20_000, np.array([0.5, 0.1, 0.01, 0.002])
    X = np.column_stack([rng.normal(size=(n, 2)), rng.random((n, 4)) < chances]).astype(float)
    labels, weights = rng.choice(n_classes, size=n), rng.exponential(size=n)
    with open_objective(store(X), labels, weights, n_classes=n_classes, fit_intercept=True) as all_:
        few = all_.thin(n // (10 * n_classes))
        theta, mass = 0.3 * rng.normal(size=all_.size), np.ones(n_classes) / n_classes
        state, thin = all_.evaluate(theta), few.evaluate(theta)
        np.testing.assert_allclose(thin.risks, state.risks, rtol=0.1)
        ours, wanted = few.hessian(theta, mass), all_.hessian(theta, mass)
    np.testing.assert_allclose(np.diag(ours), np.diag(wanted), rtol=0.3)
    # Of rows taken at random, the rarest column would be known from four.
    rare = matrix_of(few.features)[:, 5]
    assert np.asarray(rare.sum()) >= 10
