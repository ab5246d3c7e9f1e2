"""Rademacher complexity of linear functions: its bound against all signs, and contractions."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.losses import hinge, margin_loss
from equipoise.theory import class_rademacher

few_rows = arrays(
    np.float64, st.tuples(st.integers(1, 7), st.integers(1, 4)), elements=st.integers(-3, 3)
)


def by_definition(X):
    signs = np.array(list(itertools.product([-1, 1], repeat=len(X))))
    return np.linalg.norm(signs @ X, axis=1).mean() / len(X)


def bound(X, radius=1.0):
    return class_rademacher(X, np.zeros(X.shape[0], int), radius)[0]


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_orthogonal_rows_attain_the_bound(kind):
    X = np.diag(np.arange(1.0, 8.0))
    assert bound(kind(X), 3) == pytest.approx(3 * by_definition(X))


@settings(max_examples=50)
@given(X=few_rows, radius=st.floats(0, 10))
def test_the_complexity_lies_between_the_bound_and_its_root(X, radius):
    exact, upper = radius * by_definition(X), bound(X, radius)
    assert upper / np.sqrt(2) <= exact * (1 + 1e-12) + 1e-300
    assert exact <= upper * (1 + 1e-12)


def test_classes_have_their_own_complexity():
    rng = np.random.default_rng()
    X, y = rng.normal(size=(14, 2)), np.array(["a", "b"])[[0, 1] * 7]
    by_class = class_rademacher(X, y, 2.0)
    assert list(by_class) == ["a", "b"]
    for name, complexity in by_class.items():
        assert complexity == pytest.approx(bound(X[y == name], 2.0))


@pytest.mark.parametrize("loss", [margin_loss, hinge])
def test_contraction_bounds_the_complexity_of_the_loss(loss):
    # The scores are those of all pairs of coefficient vectors from a finite set, so that the
    # supremum over classifiers is a maximum.
    rng = np.random.default_rng()
    n, k = 6, 2
    X, true = rng.normal(size=(n, 3)), rng.integers(0, k, size=n)
    vectors = rng.normal(size=(8, 3))
    scores = X @ vectors.T
    pairs = list(itertools.product(range(8), repeat=2))
    losses = np.array([loss(true, scores[:, list(pair)]) for pair in pairs])
    signs = np.array(list(itertools.product([-1, 1], repeat=n)))
    of_loss = (signs @ losses.T).max(axis=1).mean() / n
    of_scores = (signs @ scores).max(axis=1).mean() / n
    assert of_loss <= 2 * k * of_scores


def test_the_radius_is_checked():
    with pytest.raises(InvalidParameterError, match="radius must be a number in"):
        class_rademacher(np.ones((20, 1)), np.zeros(20, int), -1)


def test_labels_must_match_the_rows():
    with pytest.raises(InvalidInputError, match="each of the 3 rows of X"):
        class_rademacher(np.ones((3, 1)), [0, 1])
