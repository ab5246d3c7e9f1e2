"""Rows that stand for others: how many, which, and that they do so in the mean."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from equipoise import RobustLogisticRegression, WorstClass
from equipoise.blocks import from_blocks
from equipoise.objectives.thinning import drawn

SIZES = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=60).filter(any)


@given(sizes=SIZES, count=st.integers(1, 70), offset=st.floats(0.01, 0.99))
def test_as_many_rows_as_are_asked_for_or_all(sizes, count, offset):
    sizes = np.array(sizes)
    places, chances = drawn(sizes, count, offset)
    assert len(places) == min(count, np.count_nonzero(sizes))
    assert np.all(sizes[places] > 0) and np.all(np.diff(places) > 0)
    assert np.all((chances > 0) & (chances <= 1))


@given(sizes=SIZES, count=st.integers(1, 70))
def test_larger_rows_are_taken_more_surely(sizes, count):
    sizes = np.array(sizes)
    places, chances = drawn(sizes, count)
    order = np.argsort(sizes[places], kind="stable")
    assert np.all(np.diff(chances[order]) >= -1e-9)


@pytest.mark.parametrize("count", [1, 7, 25])
def test_rows_are_drawn_as_often_as_their_chances_say(count):
    sizes = np.random.default_rng(0).exponential(size=40)
    often, said = np.zeros(40), np.zeros(40)
    for offset in (np.arange(2000) + 0.5) / 2000:
        places, chances = drawn(sizes, count, offset)
        often[places] += 1 / 2000
        said[places] = chances
    np.testing.assert_allclose(often, said, atol=1e-3)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["array", "sparse", "blocks", "tensors"])
@pytest.mark.parametrize("case", ["a class", "all", "as good as zero"])
def test_rows_of_zeros_stand_for_each_other(case, kind):
    """Without intercept nothing can be told of them: all class risks are those of no model."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=7000, p=[0.8, 0.15, 0.05])
    X = rng.normal(size=(7000, 5))
    X[(y == 2) | (case == "all")] = 1e-170 if case == "as good as zero" else 0.0
    clf = RobustLogisticRegression(WorstClass(), fit_intercept=False)
    if kind == "blocks":
        clf.fit(from_blocks([(X[:3000], y[:3000]), (X[3000:], y[3000:])]))
    elif kind == "tensors":
        torch = pytest.importorskip("torch")
        clf.fit(torch.as_tensor(X), torch.as_tensor(y))
    else:
        clf.fit(sp.csr_matrix(X) if kind == "sparse" else X, y)
    assert clf.status_ == "converged"
    assert clf.objective_ == pytest.approx(np.log(3), rel=1e-9)
