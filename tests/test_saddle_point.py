"""theory.descent_ascent: the bound it reports holds, and so do the constants behind it."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, softmax

from equipoise import LabelCVaR, PriorBox, RobustLogisticRegression, WorstClass
from equipoise.exceptions import InvalidParameterError
from equipoise.theory import StepConstants, descent_ascent

NAMES = np.array(["a", "b", "c"])


def draw(n_classes, n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % (2 * n_classes)) % n_classes
    return rng.normal(size=(n_classes, 2))[y] + rng.normal(size=(n, 2)), NAMES[y]


CASES = {
    "two classes, worst": (2, WorstClass(), 1.0),
    "three classes, worst": (3, WorstClass(), 1.0),
    "three classes, caps": (3, LabelCVaR(0.5), 0.1),
    "three classes, a box of priors": (3, PriorBox([0.1, 0.1, 0.1], [0.6, 0.5, 0.9]), 1.0),
}
each_case = pytest.mark.parametrize("case", CASES)


@each_case
@pytest.mark.parametrize("rounds", [10, 300])
def test_the_averages_are_within_the_bound_of_the_certified_optimum(case, rounds):
    k, goal, C = CASES[case]
    X, y = draw(k)
    exact = RobustLogisticRegression(goal, C=C, tol=1e-9).fit(X, y)
    length = np.hypot(np.linalg.norm(exact.coef_), np.linalg.norm(exact.intercept_))
    found = descent_ascent(X, y, goal, radius=2 * length, rounds=rounds, C=C)
    assert abs(found.value - exact.objective_) <= found.bound
    assert found.lower_bound <= exact.objective_ + 1e-9
    assert exact.lower_bound_ <= found.objective <= exact.objective_ + found.bound
    assert found.rounds == rounds and list(found.masses) == NAMES[:k].tolist()
    assert found.coef.shape == exact.coef_.shape


def test_with_many_rounds_the_averages_come_near():
    X, y = draw(2)
    exact = RobustLogisticRegression("worst_class").fit(X, y)
    few, many = (descent_ascent(X, y, "worst_class", radius=4, rounds=n) for n in (30, 3_000))
    assert many.bound == pytest.approx(few.bound / 10)
    assert many.objective - exact.objective_ < 0.1 * (few.objective - exact.objective_)
    assert many.objective == pytest.approx(exact.objective_, rel=0.02)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constants_are_true_ones(n_classes, fit_intercept):
    X, y = draw(n_classes)
    weights = np.random.default_rng(1).integers(1, 4, len(y))
    radius, C = 3.0, 0.05
    found = descent_ascent(
        X,
        y,
        WorstClass(),
        radius=radius,
        rounds=1,
        C=C,
        fit_intercept=fit_intercept,
        sample_weight=weights,
    )
    rows = np.column_stack([X, np.ones(len(y))]) if fit_intercept else X
    one_hot = (y[:, None] == NAMES[:n_classes]).astype(float)
    shares = one_hot * weights[:, None] / (one_hot * weights[:, None]).sum(axis=0)
    penalised = np.arange(rows.shape[1]) < X.shape[1]
    rng, ridge = np.random.default_rng(0), 1 / (C * weights.sum())
    for _ in range(300):
        theta = rng.normal(size=(1 if n_classes == 2 else n_classes, rows.shape[1]))
        theta *= radius / np.linalg.norm(theta)
        full = np.vstack([np.zeros_like(theta), theta]) if n_classes == 2 else theta
        losses = -np.sum(one_hot * log_softmax(rows @ full.T, axis=1), axis=1)
        assert np.linalg.norm(shares.T @ losses) <= found.constants.mass_slope
        mass = rng.dirichlet(np.full(n_classes, 0.3))
        residuals = (softmax(rows @ full.T, axis=1) - one_hot) * (shares @ mass)[:, None]
        gradient = (residuals.T @ rows)[1 if n_classes == 2 else 0 :]
        slope = np.linalg.norm(gradient + ridge * penalised * theta)
        assert slope <= found.constants.theta_slope
    assert found.constants.theta_diameter == 2 * radius
    assert found.constants.mass_diameter == pytest.approx(np.sqrt(2))


def test_the_ball_is_in_the_units_of_the_columns():
    # Columns that a fit would standardise: the ball does not move with them.
    X, y = draw(2)
    far = X * [1e-3, 1e3] + [0.0, 1e4]
    found = descent_ascent(far, y, "worst_class", radius=0.5, rounds=50)
    assert np.hypot(np.linalg.norm(found.coef), np.linalg.norm(found.intercept)) <= 0.5 + 1e-12


def test_sparse_rows_and_repeated_rows_give_the_same():
    X, y = draw(3)
    counts = np.random.default_rng(0).integers(1, 3, len(y))
    dense = descent_ascent(X, y, LabelCVaR(0.5), radius=3, rounds=40, sample_weight=counts)
    again = [
        descent_ascent(
            sp.csr_matrix(X), y, LabelCVaR(0.5), radius=3, rounds=40, sample_weight=counts
        ),
        descent_ascent(
            np.repeat(X, counts, axis=0), np.repeat(y, counts), LabelCVaR(0.5), radius=3, rounds=40
        ),
    ]
    for found in again:
        np.testing.assert_allclose(found.coef, dense.coef, rtol=1e-8)
        assert found.bound == pytest.approx(dense.bound)


def test_a_user_may_give_the_constants():
    X, y = draw(2)
    constants = StepConstants(4.0, 2.0, 1.0, 3.0)
    found = descent_ascent(X, y, "worst_class", constants=constants, rounds=9)
    assert found.constants == constants
    assert found.bound == pytest.approx(1.5 * (4 * 2 + 1 * 3) / 3)
    assert np.hypot(np.linalg.norm(found.coef), np.linalg.norm(found.intercept)) <= 2 + 1e-12


def test_a_single_weighting_leaves_the_masses_where_they_are():
    X, y = draw(2)
    found = descent_ascent(X, y, "balanced", radius=3, rounds=20)
    assert found.constants.mass_diameter == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(np.asarray(found.masses), 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either radius or constants, got radius=None and constants=None"),
        ({"radius": 1.0, "constants": StepConstants(1, 1, 1, 1)}, "either radius or constants"),
        ({"radius": 0.0}, r"radius must be a number in \(0, inf\), got 0"),
        ({"radius": np.inf}, "radius must be a number"),
        ({"radius": 1.0, "rounds": 0}, "rounds must be"),
        ({"radius": 1.0, "C": 0.0}, "C must be"),
    ],
)
def test_bad_settings_get_a_sentence(options, words):
    with pytest.raises(InvalidParameterError, match=words):
        descent_ascent(*draw(2), **options)
