"""Linear models a second time, by formulas that share nothing with the code under test."""

import warnings

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp

try:
    import cvxpy as cp
except ImportError:  # studies take only what needs no more than SciPy
    cp = None


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


def row_losses(scores, labels, loss):
    """The loss of every row of class scores."""
    mine = np.arange(len(labels)), labels
    if loss == "cross_entropy":
        return -log_softmax(scores, axis=1)[mine]
    if loss == "margin":
        leads = 4 * (scores - scores[mine][:, None])
        higher = leads + 4.0
        higher[mine] = 0.0
        return (logsumexp(higher, axis=1) - logsumexp(leads, axis=1)) / 4
    excesses = np.maximum(1 - scores[mine][:, None] + scores, 0)
    excesses[mine] = 0
    if loss == "squared_hinge":
        return np.sum(excesses**2, axis=1)
    # Each rival's share is its excess above a level; it is zero, or the shares sum to one.
    low, high = np.zeros((len(labels), 1)), excesses.max(axis=1, keepdims=True)
    for _ in range(80):
        level = (low + high) / 2
        over = np.maximum(excesses - level, 0).sum(axis=1, keepdims=True) > 1
        low, high = np.where(over, level, low), np.where(over, high, level)
    shares = np.maximum(excesses - low, 0)
    return np.sum(shares * excesses - shares**2 / 2, axis=1)


def class_risks(X, labels, weights, coef, intercept, loss="cross_entropy"):
    """Weighted mean loss of each class."""
    scores = class_scores(X, coef, intercept)
    if loss == "margin":
        totals = np.bincount(labels, weights)
        scores = scores / ((totals.max() / totals) ** 0.25)[labels, None]
    own = row_losses(scores, labels, loss)
    return np.array(
        [
            np.average(own[labels == i], weights=weights[labels == i])
            for i in range(labels.max() + 1)
        ]
    )


def _cross_entropies(scores, own):
    return cp.log_sum_exp(scores, axis=1) - scores[:, own]


def _excesses(scores, own):
    """One minus the lead of the true class over each rival, a column each."""
    rivals = [j for j in range(scores.shape[1]) if j != own]
    return cp.vstack([1 - scores[:, own] + scores[:, j] for j in rivals]).T


def _squared_hinges(scores, own):
    return cp.sum(cp.square(cp.pos(_excesses(scores, own))), axis=1)


def _smoothed_hinges(scores, own):
    """The hinge loss of the best other scores, and half the squared way to them."""
    excesses = _excesses(scores, own)
    others = cp.Variable(excesses.shape)
    way = cp.sum(cp.square(excesses - others), axis=1) / 2
    return way + cp.pos(cp.max(others, axis=1))


LOSSES = {
    "cross_entropy": _cross_entropies,
    "squared_hinge": _squared_hinges,
    "smoothed_hinge": _smoothed_hinges,
}


def _cvxpy_risks(X, labels, weights, fit_intercept, loss):
    k, (n, d) = labels.max() + 1, X.shape
    coef = cp.Variable((d, 1 if k == 2 else k))
    intercept = cp.Variable((1, coef.shape[1]))
    if not fit_intercept:
        intercept = cp.Constant(np.zeros(intercept.shape))
    scores = X @ coef + np.ones((n, 1)) @ intercept
    risks = []
    for i in range(k):
        mine, share = scores[labels == i], weights[labels == i] / weights[labels == i].sum()
        if k == 2 and loss == "cross_entropy":
            losses = cp.logistic((-1 if i else 1) * mine[:, 0])
        elif k == 2:
            losses = LOSSES[loss](cp.hstack([-mine / 2, mine / 2]), i)
        else:
            losses = LOSSES[loss](mine, i)
        risks.append(share @ losses)
    return coef, intercept, cp.hstack(risks)


def optimal_model(
    data, constraints, ridge, *, fit_intercept=True, loss="cross_entropy", offsets=0.0, sure=True
):
    """The value, coefficients and intercepts at the optimum, None where CVXPY is not sure of it.

    If not ``sure``, they may be those at the best point that it has.

    min over models of max <m, R> + 1/2 sum_j ridge_j |w_j|^2 over masses m that meet the
    constraints, with one ridge for all columns or one each. Masses are not negative, so the risks
    may be replaced by anything above them. Offsets are added to the risks.
    """
    coef, intercept, risks = _cvxpy_risks(*data, fit_intercept, loss)
    roots = np.sqrt(np.broadcast_to(ridge, coef.shape[0]))[:, None]
    penalty = cp.sum_squares(cp.multiply(roots @ np.ones((1, coef.shape[1])), coef)) / 2
    mass, above = cp.Variable(risks.shape[0]), cp.Variable(risks.shape[0])
    support = cp.suppfunc(mass, [mass >= 0, cp.sum(mass) == 1, *constraints(mass)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # its own doubts are asked for below
        problem = cp.Problem(cp.Minimize(support(above) + penalty), [risks + offsets <= above])
        for tol in (1e-10, 1e-9, 1e-8):
            try:
                problem.solve(solver=cp.CLARABEL, tol_gap_rel=tol, tol_gap_abs=tol, tol_feas=tol)
            except cp.SolverError:
                continue
            if problem.status == "optimal":
                break
        else:
            if sure or coef.value is None:
                return None
    return problem.value, coef.value.T, intercept.value[0]


def optimum(*given, **settings):
    """The value of :func:`optimal_model`."""
    found = optimal_model(*given, **settings)
    if found is None:
        pytest.skip("the reference doubts its own result")
    return found[0]
