"""Columns far from zero: the same fit as to centred columns, wherever the rows are."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from equipoise import LabelCVaR, RobustLinearClassifier, RobustLogisticRegression
from equipoise.arrays import to_numpy
from equipoise.blocks import from_blocks
from equipoise.blocks.base import Stream
from equipoise.exceptions import NotConvergedWarning
from equipoise.objectives import open_objective
from equipoise.objectives.matrices import DenseFeatures
from equipoise.objectives.sparse_matrix import SparseFeatures
from equipoise.objectives.survey import survey
from equipoise.sets import as_uncertainty
from hostile_problems import exact_scores
from linear_models import class_risks, small_data


def dask_arrays(X, y):
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    return da.from_array(X, chunks=(60, -1)), da.from_array(y, chunks=60)


def tensors(X, y):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    return torch.tensor(X), torch.tensor(y)


def blocks(X, y):
    return from_blocks([(X[part], y[part]) for part in (slice(0, 70), slice(70, None))]), None


PLACES = {
    "memory": lambda X, y: (X, y),
    "sparse": lambda X, y: (sp.csr_matrix(X), y),
    "blocks": blocks,
    "sparse blocks": lambda X, y: blocks(sp.csr_matrix(X), y),
    "Dask": dask_arrays,
    "tensors": tensors,
}
HALVES = slice(0, 4), slice(4, 8)
each_place = pytest.mark.parametrize("place", PLACES)


def far_data(offset, n_classes=3, dtype=np.float64):
    """Rows far from zero, and the same rows near it: their difference is exact."""
    X, y, _ = small_data(n_classes, n_rows=150)
    far = (X + np.array([offset, -3 * offset, 0.0])).astype(dtype)
    origin = np.array([offset, -3 * offset, 0.0]).astype(dtype)
    near = far - origin
    np.testing.assert_array_equal(near + origin, far)
    return far, near.astype(np.float64), origin.astype(np.float64), y


def fitted(place, X, y, **settings):
    settings = {"goal": LabelCVaR(0.5), "C": 10.0} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return RobustLogisticRegression(**settings).fit(*PLACES[place](X, y))


def recomputed(model, near, origin, y, loss="cross_entropy"):
    """The objective of the coefficients and intercepts as they were returned."""
    coef, intercept = to_numpy(model.coef_), to_numpy(model.intercept_)
    moved = exact_scores(coef, intercept, origin)
    risks = class_risks(near, y, np.ones(len(y)), coef, moved, loss)
    masses = as_uncertainty(model.goal).resolve(np.bincount(y) / len(y), model.classes_)
    return masses.support(risks) + float((coef**2).sum()) / (2 * model.C * len(y))


@each_place
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offset", [1e5, 1e9, 1e10, 1e12])
def test_the_objective_is_that_of_the_model_and_the_bound_below_the_optimum(
    place, n_classes, offset
):
    far, near, origin, y = far_data(offset, n_classes)
    best = fitted("memory", near, y, tol=1e-10)
    found = fitted(place, far, y)
    assert found.objective_ == pytest.approx(recomputed(found, near, origin, y), rel=1e-9)
    assert found.lower_bound_ <= best.objective_ <= found.objective_ * (1 + 1e-9)
    assert found.duality_gap_ == pytest.approx(found.objective_ - found.lower_bound_)
    reached = found.duality_gap_ <= found.tol * found.objective_
    assert found.status_ == ("converged" if reached else "stalled")
    assert found.objective_ - best.objective_ < 1e-6 + 1e-15 * offset
    assert found.n_evaluations_ <= 60


@each_place
def test_offsets_that_numbers_can_still_hold_cost_nothing(place):
    far, near, _, y = far_data(1e8)
    there, here = fitted(place, far, y), fitted(place, near, y)
    assert there.status_ == here.status_ == "converged"
    assert there.n_evaluations_ <= here.n_evaluations_ + 5


def test_coefficients_of_float32_tensors_are_those_of_the_objective():
    for offset in (0.0, 100.0, 2.0**20):
        far, near, origin, y = far_data(offset, dtype=np.float32)
        found = fitted("tensors", far, y)
        assert found.objective_ == pytest.approx(recomputed(found, near, origin, y), rel=2e-7)
        reached = found.duality_gap_ <= found.tol * found.objective_
        assert found.status_ == ("converged" if reached else "stalled")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_moments_of_columns_far_from_zero_are_exact(kind):
    far, near, origin, _ = far_data(1e12)
    mean, spread, _ = (DenseFeatures if kind is np.asarray else SparseFeatures).column_moments(
        kind(far)
    )
    np.testing.assert_allclose(mean - origin, near.mean(axis=0), atol=1e-15 * 3e12)
    np.testing.assert_allclose(spread, near.std(axis=0), rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_scores_of_columns_far_from_zero_are_exact(kind):
    far, near, _, y = far_data(1e11)
    coef = np.array([[1.0, 0.5, -1.0], [0.0, 1.0, 0.0], [-1.0, -1.5, 1.0]])
    settings = {"n_classes": 3, "fit_intercept": True}
    with open_objective(kind(far), y, np.ones(len(y)), **settings) as objective:
        # One, at the origin that was taken off.
        theta = objective.pack(coef, 1.0 - coef @ np.array([1e11, -3e11, 0.0]))
        risks = objective.evaluate(theta).risks
    np.testing.assert_allclose(risks, class_risks(near, y, np.ones(len(y)), coef, 1.0), rtol=1e-12)


def test_a_sparse_column_with_two_entries_in_a_place_is_their_sum():
    far, _, _, y = far_data(1e10)
    halves = sp.csr_matrix(
        (
            np.repeat(far.ravel() / 2, 2),
            np.repeat(np.tile(np.arange(3), len(far)), 2),
            np.arange(0, 6 * len(far) + 1, 6),
        ),
        shape=far.shape,
    )
    assert fitted("memory", halves, y).objective_ == pytest.approx(
        fitted("memory", far, y).objective_, rel=1e-6
    )


@pytest.mark.parametrize("loss", ["squared_hinge", "smoothed_hinge"])
def test_other_losses_too(loss):
    far, near, origin, y = far_data(1e10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        found = RobustLinearClassifier(LabelCVaR(0.5), loss=loss, C=10.0).fit(far, y)
        best = RobustLinearClassifier(LabelCVaR(0.5), loss=loss, C=10.0, tol=1e-10).fit(near, y)
    assert found.objective_ == pytest.approx(recomputed(found, near, origin, y, loss), rel=1e-9)
    assert found.lower_bound_ <= best.objective_ <= found.objective_ * (1 + 1e-9)


@each_place
@pytest.mark.parametrize("values", [(1.0,), (-110.2, -17630.6), (6e-6, 3e9)])
@pytest.mark.parametrize("C", [np.inf, 1.0])
def test_columns_of_one_value_belong_to_the_intercept(place, values, C):
    X, y, _ = small_data(3, n_rows=150)
    wide = np.hstack([X, np.tile(values, (len(X), 1))])
    found, best = fitted(place, wide, y, C=C), fitted(place, X, y, C=C)
    coef, intercept = to_numpy(found.coef_), to_numpy(found.intercept_)
    assert found.status_ == best.status_ == ("converged" if C == 1.0 else "stationary")
    np.testing.assert_array_equal(coef[:, X.shape[1] :], 0.0)
    np.testing.assert_allclose(coef[:, : X.shape[1]], to_numpy(best.coef_), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(intercept, to_numpy(best.intercept_), rtol=1e-3, atol=1e-3)
    assert found.objective_ == pytest.approx(best.objective_, rel=1e-6)


@pytest.mark.parametrize("place", ["memory", "sparse", "blocks", "sparse blocks", "tensors"])
def test_a_column_with_another_value_in_one_late_row_is_not_constant(place):
    rng = np.random.default_rng(0)
    y = np.arange(6_000) % 2
    X = np.column_stack([rng.normal(size=6_000) + y, np.full(6_000, 50.0)])
    X[4_999, 1] = 90.0  # a row that no sample of every second one has
    found = fitted(place, X, y, goal="worst_class")
    assert np.all(to_numpy(found.coef_)[:, 1] != 0.0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_blocks_of_one_value_each_are_merged_to_their_moments(kind):
    X = np.column_stack([np.repeat([3.0, 5.0], 4), np.full(8, 7.0), np.arange(8.0)])
    blocks = from_blocks([(kind(X[part]), [0, 1, 0, 1]) for part in HALVES])
    moments = survey(Stream(blocks)).moments
    np.testing.assert_allclose(moments.mean, X.mean(axis=0))
    np.testing.assert_allclose(moments.spread, X.std(axis=0))
    np.testing.assert_array_equal(moments.one_value, [False, True, False])
