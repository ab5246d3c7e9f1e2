"""Sets read what other libraries call a vector, and return NumPy arrays of float64."""

import numpy as np
import pytest

from equipoise.exceptions import ClassMismatchError
from equipoise.sets import LabelCVaR
from set_examples import few_examples

PRIOR = np.array([0.5, 0.3, 0.15, 0.05])
VALUES = np.array([0.2, 0.7, 0.7, 0.1])


def of_pandas(values):
    return pytest.importorskip("pandas").Series(values, index=list("abcd"))


def of_torch(values):
    torch = pytest.importorskip("torch")
    return torch.tensor(values, requires_grad=True)


@pytest.mark.parametrize("recipe", few_examples(), ids=repr)
@pytest.mark.parametrize("read", [list, tuple, of_pandas, of_torch])
def test_vectors_of_other_types_are_read(recipe, read):
    mass_set = recipe.resolve(PRIOR)
    for method in (mass_set.maximize, mass_set.project):
        mass = method(read(VALUES))
        assert type(mass) is np.ndarray and mass.dtype == np.float64
        np.testing.assert_array_equal(mass, method(VALUES))
    assert mass_set.support(read(VALUES)) == mass_set.support(VALUES)


def test_a_vector_of_another_length_is_refused():
    with pytest.raises(ClassMismatchError, match=r"point must .* 4 classes, got shape \(2, 1\)"):
        LabelCVaR(0.5).resolve(PRIOR).project(np.ones((2, 1)))
