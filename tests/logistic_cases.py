"""Data, sets and comparisons that the tests of RobustLogisticRegression share."""

import numpy as np
import pytest

from equipoise import (
    RobustLogisticRegression,
)
from set_examples import few_examples

SETS = few_examples()
each_set = pytest.mark.parametrize("recipe", SETS, ids=str)
few_rows_allowed = pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
NAMES = np.array(["common", "less common", "rare", "scarce"])


def draw(k=3, n=300, d=4, seed=0):
    """Overlapping classes, the first the most common, the last the rarest."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, size=n, p=0.35 ** np.arange(k) / (0.35 ** np.arange(k)).sum())
    return rng.normal(size=(k, d))[y] + 1.5 * rng.normal(size=(n, d)), y


def tight(recipe="worst_class", **settings):
    return RobustLogisticRegression(recipe, tol=1e-10, **settings)


def assert_same_fit(one, other, atol=1e-5):
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=atol)
    np.testing.assert_allclose(one.worst_case_masses_, other.worst_case_masses_, atol=atol)


def assert_same_bits(one, other):
    for name in ("coef_", "intercept_", "class_risks_", "worst_case_weights_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.lower_bound_ == other.lower_bound_ and one.robust_risk_ == other.robust_risk_
