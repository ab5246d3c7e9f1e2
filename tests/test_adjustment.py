"""Risks of small classes that count for more than the training rows show."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from equipoise import LabelCVaR, RobustLogisticRegression, RobustnessCV, WorstClass
from equipoise.blocks import from_blocks
from equipoise.estimators.linear_paths import ADJUSTMENT
from equipoise.exceptions import FewRowsWarning, InvalidParameterError, SeparableDataWarning
from linear_models import optimum, small_data
from test_sets_laws import constraints

REFERENCE = 5e-6
SETS = {"worst class": WorstClass(), "label cvar": LabelCVaR(0.5)}


def data(n_classes):
    X, labels, weights = small_data(n_classes, n_rows=120)
    keep = (labels > 0) | (np.arange(len(labels)) % 4 == 0)
    return X[keep], labels[keep], weights[keep]


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize("adjustment", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("recipe", SETS.values(), ids=SETS)
def test_the_optimum_is_that_of_adjusted_risks(recipe, n_classes, adjustment):
    X, labels, weights = data(n_classes)
    offsets = adjustment / np.sqrt(np.bincount(labels))
    prior = np.bincount(labels, weights) / weights.sum()
    fit = RobustLogisticRegression(recipe, C=0.1, adjustment=adjustment).fit(X, labels, weights)
    ridge = 1 / (0.1 * weights.sum())
    best = optimum(
        (X, labels, weights), lambda m: constraints(recipe, m, prior), ridge, offsets=offsets
    )
    assert fit.objective_ == pytest.approx(best, rel=REFERENCE)
    assert fit.lower_bound_ <= best * (1 + REFERENCE)
    # Class risks are those of the rows, and what is robust is what was adjusted.
    losses = -fit.predict_log_proba(X)[np.arange(len(X)), labels]
    shares = weights / np.bincount(labels, weights)[labels]
    risks = np.bincount(labels, losses * shares)
    np.testing.assert_allclose(np.asarray(fit.class_risks_), risks, rtol=1e-9)
    robust = recipe.resolve(prior).support(risks + offsets)
    assert fit.robust_risk_ == pytest.approx(float(robust), rel=1e-9)


def test_without_features_the_odds_are_the_difference_of_what_is_added():
    y = np.repeat([0, 1], [400, 100])
    fit = RobustLogisticRegression(WorstClass(), tol=1e-9, adjustment=4.0).fit(
        np.zeros((500, 1)), y
    )
    # -log(1 - p) + 4/20 = -log(p) + 4/10
    assert fit.intercept_[0] == pytest.approx(0.2, abs=1e-4)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
def test_rows_in_blocks_sparse_rows_and_many_rows_count_alike():
    X, labels, weights = data(3)
    clf = RobustLogisticRegression(WorstClass(), adjustment=2.0)
    here = clone(clf).fit(X, labels, weights)
    plain = clone(clf).set_params(adjustment=None).fit(X, labels, weights)
    assert here.objective_ > plain.objective_ + 0.1
    cuts = np.array_split(np.arange(len(X)), 4)
    blocks = from_blocks([(X[rows], labels[rows], weights[rows]) for rows in cuts])
    for other in (clone(clf).fit(blocks), clone(clf).fit(sp.csr_matrix(X), labels, weights)):
        assert other.objective_ == pytest.approx(here.objective_, rel=2e-6)
        np.testing.assert_allclose(
            np.asarray(other.class_risks_), np.asarray(here.class_risks_), atol=1e-3
        )


def test_a_fit_that_is_warmed_on_fewer_rows_ends_at_the_same_optimum():
    rng = np.random.default_rng(0)
    y = rng.choice(3, size=20_000, p=[0.9, 0.08, 0.02])
    X = rng.normal(size=(20_000, 5)) + 0.5 * np.eye(3, 5)[y]
    fits = [
        RobustLogisticRegression(WorstClass(), solver=solver, adjustment=5.0).fit(X, y)
        for solver in ("sqp-newton", "sqp-lbfgs", "multipliers")
    ]
    assert all(fit.status_ == "converged" for fit in fits)
    for other in fits[1:]:
        assert other.objective_ == pytest.approx(fits[0].objective_, rel=2e-6)


def test_tensors_count_alike():
    torch = pytest.importorskip("torch")
    X, labels, _ = data(3)
    clf = RobustLogisticRegression(WorstClass(), adjustment=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewRowsWarning)
        here, there = (
            clone(clf).fit(X, labels),
            clone(clf).fit(torch.as_tensor(X), torch.as_tensor(labels)),
        )
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-6)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.EquipoiseWarning")
@pytest.mark.parametrize("given", [None, 0.0, 2.0])
def test_where_the_level_is_chosen_it_is_a_half_unless_given(given):
    X, labels, _ = data(2)
    short = RobustLogisticRegression(LabelCVaR("auto"), adjustment=given).fit(X, labels)
    used = ADJUSTMENT if given is None else given
    same = RobustLogisticRegression(LabelCVaR(short.alpha_), adjustment=used).fit(X, labels)
    np.testing.assert_array_equal(short.coef_, same.coef_)
    assert short.adjustment is given
    path = RobustnessCV(RobustLogisticRegression(adjustment=given)).fit(X, labels)
    assert path.estimator_.adjustment == used
    np.testing.assert_array_equal(path.estimator_.coef_, same.coef_)


@pytest.mark.parametrize("adjustment", [-1.0, np.inf, "much", np.nan])
def test_what_is_no_amount_is_refused(adjustment):
    X, labels, _ = data(2)
    with pytest.raises((InvalidParameterError, TypeError, ValueError), match="adjustment"):
        RobustLogisticRegression(adjustment=adjustment).fit(X, labels)


@pytest.mark.parametrize("adjustment", [None, 0.5, 1, 3])
def test_classes_that_can_be_separated_are_told_whatever_is_added(adjustment):
    y = np.repeat([0, 1, 2], [300, 80, 20])
    X = 0.3 * np.random.default_rng(0).normal(size=(400, 3)) + 4 * np.eye(3)[y]
    clf = RobustLogisticRegression(WorstClass(), C=np.inf, adjustment=adjustment)
    with pytest.warns(SeparableDataWarning, match="can be separated"):
        clf.fit(X, y)
