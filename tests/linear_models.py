"""Linear models a second time, by formulas that share nothing with the code under test."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import log_softmax


def small_data(n_classes, n_rows=60, n_features=3, seed=0):
    """Overlapping classes of unequal size, rows in random order, and positive row weights."""
    rng = np.random.default_rng(seed)
    shares = np.arange(n_classes, 0, -1.0)
    labels = rng.choice(n_classes, n_rows, p=shares / shares.sum())
    labels[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    centers = rng.normal(size=(n_classes, n_features))
    labels = rng.permutation(labels)
    X = rng.normal(size=(n_rows, n_features)) + 0.8 * centers[labels]
    return X, labels, rng.uniform(0.2, 2.0, n_rows)


def class_scores(X, coef, intercept):
    """One score per class; two classes have the scores 0 and s."""
    scores = X @ coef.T + intercept
    return np.column_stack([np.zeros(len(X)), scores]) if len(coef) == 1 else scores


def class_risks(X, labels, weights, coef, intercept):
    """Weighted mean cross-entropy of each class."""
    losses = -log_softmax(class_scores(X, coef, intercept), axis=1)
    own = losses[np.arange(len(labels)), labels]
    return np.array([np.average(own[labels == i], weights=weights[labels == i])
                     for i in range(labels.max() + 1)])  # fmt: skip


def _cvxpy_risks(X, labels, weights, fit_intercept):
    k, (n, d) = labels.max() + 1, X.shape
    coef = cp.Variable((d, 1 if k == 2 else k))
    scores = X @ coef
    if fit_intercept:
        scores = scores + np.ones((n, 1)) @ cp.Variable((1, coef.shape[1]))
    risks = []
    for i in range(k):
        mine, share = scores[labels == i], weights[labels == i] / weights[labels == i].sum()
        if k == 2:
            losses = cp.logistic((-1 if i else 1) * mine[:, 0])
        else:
            losses = cp.log_sum_exp(mine, axis=1) - mine[:, i]
        risks.append(share @ losses)
    return coef, cp.hstack(risks)


def optimum(data, constraints, ridge, *, fit_intercept=True):
    """min over models of max <m, R> + ridge/2 |w|^2 over masses m that meet the constraints.

    Masses are not negative, so the risks may be replaced by anything above them.
    """
    coef, risks = _cvxpy_risks(*data, fit_intercept)
    mass, above = cp.Variable(risks.shape[0]), cp.Variable(risks.shape[0])
    support = cp.suppfunc(mass, [mass >= 0, cp.sum(mass) == 1, *constraints(mass)])
    problem = cp.Problem(
        cp.Minimize(support(above) + ridge / 2 * cp.sum_squares(coef)), [risks <= above]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # its own doubts are asked for below
        for tol in (1e-10, 1e-9, 1e-8):
            problem.solve(solver=cp.CLARABEL, tol_gap_rel=tol, tol_gap_abs=tol, tol_feas=tol)
            if problem.status == "optimal":
                return problem.value
    pytest.skip("the reference doubts its own result")
