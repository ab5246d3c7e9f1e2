"""Sets follow the array namespace, dtype and device of their input."""

import numpy as np
import pytest

from equipoise.arrays import as_vector, concat, cumulative_sum, like, namespace, to_numpy
from equipoise.exceptions import ClassMismatchError
from equipoise.sets import (
    CappedSimplex,
    LabelCVaR,
)
from set_examples import few_examples

PRIOR = np.array([0.5, 0.3, 0.15, 0.05])
VALUES = np.array([0.2, 0.7, 0.7, 0.1])

RECIPES = few_examples()


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-14), ("float32", 1e-6)])
def test_strict_arrays_take_the_same_path(recipe, dtype, tolerance):
    xp = pytest.importorskip("array_api_strict")
    mass_set = recipe.resolve(PRIOR)
    values = xp.asarray(VALUES, dtype=getattr(xp, dtype))
    for method in (mass_set.maximize, mass_set.project):
        found = method(values)
        assert namespace(found) is xp and found.dtype == values.dtype
        np.testing.assert_allclose(to_numpy(found), method(VALUES), rtol=0, atol=tolerance)
    assert float(mass_set.support(values)) == pytest.approx(mass_set.support(VALUES), abs=tolerance)


def test_the_dual_of_strict_arrays():
    xp = pytest.importorskip("array_api_strict")
    mass_set = CappedSimplex(PRIOR / 2, PRIOR * 2)
    assert mass_set.dual(xp.asarray(VALUES)) == pytest.approx(mass_set.dual(VALUES), abs=1e-15)


def test_strict_helpers():
    xp = pytest.importorskip("array_api_strict")
    whole = xp.asarray([1, 2, 3])
    vector, found = as_vector(whole, 3, name="risks")
    assert found is xp and vector.dtype == xp.float64
    np.testing.assert_array_equal(to_numpy(cumulative_sum(vector, xp)), [1, 3, 6])
    np.testing.assert_array_equal(to_numpy(concat((vector, vector), xp)), [1, 2, 3, 1, 2, 3])
    assert namespace(like(PRIOR, vector, xp)) is xp


@pytest.mark.parametrize("values", [[1, 2], (1.0, 2.0), np.array([1, 2]), np.float32([1, 2])])
def test_what_is_no_array_is_read_as_numpy(values):
    vector, xp = as_vector(values, 2, name="risks")
    assert xp is np and vector.dtype == np.float64 and vector.tolist() == [1, 2]


def test_series_are_read_as_numpy():
    pd = pytest.importorskip("pandas")
    series = pd.Series(VALUES, index=list("abcd"))
    np.testing.assert_array_equal(
        LabelCVaR(0.5).resolve(PRIOR).maximize(series),
        LabelCVaR(0.5).resolve(PRIOR).maximize(VALUES),
    )


def test_a_vector_of_another_length_is_refused():
    with pytest.raises(ClassMismatchError, match=r"point must .* 3 classes, got shape \(2, 1\)"):
        as_vector(np.ones((2, 1)), 3, name="point")


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 1e-6)])
def test_torch_tensors_take_the_same_path(recipe, device, dtype, tolerance):
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU here")
    mass_set = recipe.resolve(PRIOR)
    values = torch.tensor(VALUES, dtype=getattr(torch, dtype), device=device)
    for method in (mass_set.maximize, mass_set.project):
        found = method(values)
        assert isinstance(found, torch.Tensor) and found.dtype == values.dtype
        assert found.device == values.device
        np.testing.assert_allclose(to_numpy(found), method(VALUES), rtol=0, atol=tolerance)
    assert float(mass_set.support(values)) == pytest.approx(mass_set.support(VALUES), abs=tolerance)


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
def test_cupy_arrays_take_the_same_path(recipe):
    cupy = pytest.importorskip("cupy")
    mass_set = recipe.resolve(PRIOR)
    values = cupy.asarray(VALUES)
    for method in (mass_set.maximize, mass_set.project):
        found = method(values)
        assert isinstance(found, cupy.ndarray) and found.dtype == values.dtype
        np.testing.assert_allclose(to_numpy(found), method(VALUES), rtol=0, atol=1e-13)
