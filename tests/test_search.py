"""The search for decision weights against all that a few rows allow, and what it costs."""

import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from equipoise import LabelCVaR, tune_weights
from equipoise.decisions import Predictions, tune
from equipoise.decisions.lines import CELLS, OpenDecisions
from equipoise.goals import as_goal

GOALS = ["worst-class", LabelCVaR(0.4), "macro_f1", "balanced_accuracy", "geometric_mean"]


def draw(rng, n_rows, k, *, coarse=False):
    """Rows of overlapping classes, every class with three at least; some without probability."""
    labels = np.concatenate([np.repeat(np.arange(k), 3), rng.integers(0, k, n_rows - 3 * k)])
    p = rng.dirichlet(np.ones(k), n_rows) + 0.7 * np.eye(k)[labels]
    if coarse:
        p = np.round(4 * p) + (p == p.max(axis=1, keepdims=True))
    return Predictions(p / p.sum(axis=1, keepdims=True), labels, rng.integers(1, 4, n_rows) * 1.0)


def decisions_of(predictions, thetas):
    """Right and all decisions by class for each of some log-weights."""
    with np.errstate(divide="ignore"):
        logs = np.log(predictions.probabilities)
    k, every = predictions.n_classes, np.arange(len(thetas))[:, None]
    decided = (logs + thetas[:, None]).argmax(axis=2)
    weight = np.broadcast_to(predictions.sample_weight, decided.shape)
    cells = (every * k + decided).ravel()
    right = (weight * (decided == predictions.labels)).ravel()
    hits, both = (np.bincount(cells, w, minlength=len(thetas) * k) for w in (right, weight.ravel()))
    return hits.reshape(-1, k), both.reshape(-1, k)


def values_at(predictions, criterion, thetas):
    return criterion.values(*decisions_of(predictions, thetas), predictions.totals)


def all_rules(predictions):
    """Log-weights of every way in which three classes can share the rows.

    Ties of two classes on a row are lines in the plane of log-weights; every cell between them has
    a corner where two lines meet, or reaches as far out as all of them.
    """
    logs = np.log(predictions.probabilities)
    first, second = logs[:, 0] - logs[:, 1], logs[:, 0] - logs[:, 2]
    both = logs[:, 1] - logs[:, 2]
    corners = [
        np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2),
        np.array([(x, x + b) for x in first for b in both]),
        np.array([(y - b, y) for y in second for b in both]),
    ]
    turn = np.linspace(0, 2 * np.pi, 12, endpoint=False) + 0.1
    around = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    near = (np.concatenate(corners)[:, None] + 1e-7 * around).reshape(-1, 2)
    points = np.concatenate([near, 50 * around])
    return np.column_stack([np.zeros(len(points)), points])


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_of_few_rows_of_three_classes_the_best_of_all_rules_is_found(goal):
    gaps = []
    for seed in range(20):
        predictions = draw(np.random.default_rng(seed), 24, 3)
        criterion = as_goal(goal).resolve(predictions.prior)
        best = values_at(predictions, criterion, all_rules(predictions)).min()
        found = values_at(predictions, criterion, np.log(tune(predictions, criterion))[None])[0]
        assert found >= best - 1e-9
        gaps.append(found - best)
    assert np.count_nonzero(np.array(gaps) > 1e-6) <= 2, gaps


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("goal", [*GOALS, "accuracy"], ids=str)
def test_a_shift_is_the_best_of_its_line_and_has_the_value_that_it_says(goal, coarse):
    rng = np.random.default_rng(3)
    parts = np.linspace(-1, 1, CELLS + 1)[1:-1]
    # Exactly, any shift; of several lines those of a grid, which is finest near 0.
    shifts = {True: np.linspace(-8, 8, 1001), False: parts / (1 - np.abs(parts))}
    for n_rows in (30, 200):
        predictions = draw(rng, n_rows, 5, coarse=coarse)
        criterion = as_goal(goal).resolve(predictions.prior)
        for groups in (np.eye(5, dtype=bool), np.array([[0, 1, 0, 0, 1], [1, 1, 0, 0, 1]]) > 0):
            theta = rng.normal(size=5)
            for exact, lines in ((False, groups), (True, groups[:1]), (True, groups[1:2])):
                state = OpenDecisions(predictions, theta)
                group, shift, lowest = state.best_shift(lines, criterion, exact=exact)
                state.move(group, shift)
                (value,) = values_at(predictions, criterion, state.theta[None])
                assert value == pytest.approx(lowest, abs=1e-6)
                tried = [theta + shifts[exact][:, None] * line for line in [*lines, 0 * lines[0]]]
                best = values_at(predictions, criterion, np.concatenate(tried)).min()
                assert value <= best + 1e-6, (n_rows, exact)


@pytest.mark.parametrize("goal", ["worst-class", "macro_f1"])
@pytest.mark.parametrize("n_rows", [200, 700])
def test_labels_of_a_fold_have_no_part_in_the_weights_that_judge_it(goal, n_rows):
    rng = np.random.default_rng(5)
    predictions, folds = draw(rng, n_rows, 4), np.arange(n_rows) % 5
    # On a wrong scale, so that weights are worth tuning.
    y, p = predictions.labels, predictions.probabilities * [1, 2, 4, 8]
    p /= p.sum(axis=1, keepdims=True)
    changed = y.copy()
    changed[folds == 2] = rng.permutation(y[folds == 2])
    before, after = (tune_weights(labels, p, goal, folds=folds) for labels in (y, changed))
    np.testing.assert_array_equal(before.fold_weights[2], after.fold_weights[2])
    assert np.all(np.any(before.fold_weights != after.fold_weights, axis=1) == (np.arange(5) != 2))


def of_a_logistic_regression(k):
    """Labels and probabilities of 3,000 rows that the model was not trained on."""
    rng = np.random.default_rng(0)
    share = np.geomspace(1, 0.1, k)
    y = rng.choice(k, 6000, p=share / share.sum())
    X = rng.normal(size=(k, 5))[y] * 1.2 + rng.normal(size=(6000, 5))
    model = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    return y[1::2], model.predict_proba(X[1::2])


@pytest.mark.parametrize("goal", [None, "worst-class", "macro_f1", "balanced_accuracy"])
def test_tuning_takes_a_fraction_of_a_second(goal):
    y, p = of_a_logistic_regression(7)
    times = []
    for _ in range(3):
        began = time.process_time()
        tune_weights(y, p, goal)
        times.append(time.process_time() - began)
    # A few tenths on an idle core; searching anew without every two folds took seconds.
    assert min(times) < 1
