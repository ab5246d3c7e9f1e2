"""Rademacher complexity of linear functions: by enumeration, by closed forms, by its bounds."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.losses import hinge, margin_loss
from equipoise.theory import class_rademacher, linear_rademacher
from equipoise.theory import rademacher as module

NORMS = ["l2", "l1", "linf"]

each_norm = pytest.mark.parametrize("norm", NORMS)
few_rows = arrays(
    np.float64, st.tuples(st.integers(1, 7), st.integers(1, 4)), elements=st.integers(-3, 3)
)


def largest(total, norm):
    """The largest inner product with coefficients of norm at most one, by optimisation."""
    d = len(total)
    if norm == "l2":
        return np.sqrt(total @ total)
    if norm == "linf":
        return -linprog(-total, bounds=[(-1, 1)] * d).fun
    split = np.concatenate([-total, total])
    return -linprog(split, A_ub=np.ones((1, 2 * d)), b_ub=[1], bounds=[(0, None)] * 2 * d).fun


def by_definition(X, norm):
    signs = itertools.product([-1, 1], repeat=len(X))
    return np.mean([largest(np.array(s) @ X, norm) for s in signs]) / len(X)


@each_norm
def test_few_rows_agree_with_the_definition(norm):
    X = np.random.default_rng().normal(size=(5, 3))
    complexity = linear_rademacher(X, norm=norm)
    assert complexity.exact and complexity.standard_error == 0
    assert complexity.value == pytest.approx(by_definition(X, norm))
    assert complexity.lower == complexity.value == complexity.upper == float(complexity)


def test_equal_rows_are_a_random_walk():
    # E|S_n| of n fair steps is n C(n - 1, floor((n - 1) / 2)) / 2^(n - 1).
    for n in (1, 2, 5, 12):
        expected = comb(n - 1, (n - 1) // 2) / 2 ** (n - 1)
        for norm in NORMS:
            assert linear_rademacher(np.ones((n, 1)), norm=norm).value == pytest.approx(expected)


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_orthogonal_rows_have_a_closed_form(n, kind):
    lengths = np.arange(1.0, n + 1)
    X = np.zeros((n, n + 2))
    X[:, :n] = np.diag(lengths)
    complexity = linear_rademacher(kind(X), radius=3)
    assert complexity.method == "exact (orthogonal rows)"
    assert complexity.value == pytest.approx(3 * np.sqrt((lengths**2).sum()) / n)


@settings(max_examples=50)
@given(X=few_rows, radius=st.floats(0, 10))
def test_the_proven_bounds_hold_and_scale(X, radius):
    for norm in NORMS:
        lower, upper = module._bounds(X, norm)
        exact = linear_rademacher(X, norm=norm).value * len(X)
        assert lower <= exact * (1 + 1e-12) and exact <= upper * (1 + 1e-12)
        scaled = linear_rademacher(X, radius, norm=norm)
        assert scaled.value == pytest.approx(radius * exact / len(X))


@each_norm
@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_drawn_signs_agree_with_all_signs(norm, kind, monkeypatch):
    X = np.random.default_rng().normal(size=(12, 3))
    exact = linear_rademacher(X, norm=norm).value
    monkeypatch.setattr(module, "_ENUMERATED", 0)
    drawn = linear_rademacher(kind(X), norm=norm, n_draws=4000)
    assert drawn.method == "Monte Carlo (4000 draws)" and not drawn.exact
    assert abs(drawn.value - exact) < 6 * drawn.standard_error
    assert drawn.lower <= exact <= drawn.upper == float(drawn)


def test_the_standard_error_is_that_of_repeated_draws():
    X = np.random.default_rng().normal(size=(50, 3))
    runs = [linear_rademacher(X, n_draws=50, random_state=seed) for seed in range(200)]
    spread = np.std([run.value for run in runs])
    assert spread == pytest.approx(np.mean([run.standard_error for run in runs]), rel=0.3)


def test_blocks_of_rows_are_one_sum(monkeypatch):
    X = np.random.default_rng().normal(size=(100, 4))
    whole = linear_rademacher(X, n_draws=3000)
    monkeypatch.setattr(module, "_BLOCK", 3000 * 7)
    parts = linear_rademacher(X, n_draws=3000)
    assert abs(whole.value - parts.value) < 6 * np.hypot(whole.standard_error, parts.standard_error)


def test_a_seed_repeats_the_draws():
    X = np.random.default_rng().normal(size=(30, 4))
    first, second = (linear_rademacher(X, random_state=7) for _ in range(2))
    assert first == second


def test_classes_have_their_own_complexity():
    rng = np.random.default_rng()
    X, y = rng.normal(size=(14, 2)), np.array(["a", "b"])[[0, 1] * 7]
    by_class = class_rademacher(X, y, 2.0, norm="l1")
    assert list(by_class) == ["a", "b"]
    for name, complexity in by_class.items():
        assert complexity == linear_rademacher(X[y == name], 2.0, norm="l1")


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": -1}, "radius must be a number in"),
        ({"norm": "l3"}, "norm must be one of 'l2', 'l1', 'linf', got 'l3'"),
        ({"n_draws": 1}, "n_draws must be an integer of at least 2"),
    ],
)
def test_parameters_are_checked(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        linear_rademacher(np.ones((20, 1)), **options)


def test_labels_must_match_the_rows():
    with pytest.raises(InvalidInputError, match="each of the 3 rows of X"):
        class_rademacher(np.ones((3, 1)), [0, 1])
