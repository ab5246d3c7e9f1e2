"""Probabilities that hold only the most probable of many classes: as dense ones, for less."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from equipoise import CostMatrix, LabelCVaR, RecallFloors, tune_weights
from equipoise.exceptions import InvalidInputError
from equipoise.goals import as_goal, decide
from equipoise.goals.labelled_predictions import Predictions, confusion_table

GOALS = [
    "worst_class",
    LabelCVaR(0.3),
    "f1_macro",
    "balanced_accuracy",
    "geometric_mean",
    RecallFloors(0.4),
    RecallFloors({0: 0.3}, confidence=0.8),
]


def rows_of_power_law(n, k, m, seed=0):
    """Labels and the probabilities of m candidate classes a row; class sizes follow a power law."""
    rng = np.random.default_rng(seed)
    prior = 1 / np.arange(1, k + 1)
    y = rng.choice(k, n, p=prior / prior.sum())
    candidates = rng.choice(k, (n, m), p=prior / prior.sum())
    known = rng.random(n) < 0.9
    candidates[known, 0] = y[known]
    scores = rng.normal(size=(n, m)) + 0.5 * np.log(prior[candidates])
    scores[known, 0] += 1.5
    parts = np.exp(scores)
    parts *= 0.95 / parts.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(n), m)
    return y, csr_array((parts.ravel(), (rows, candidates.ravel())), shape=(n, k))


def all_probabilities(n, k, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    table = rng.dirichlet(np.ones(k), n)
    table[np.arange(n), y] += 0.3
    return y, table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_sparse_rows_that_hold_all_are_tuned_as_dense_ones(goal):
    y, table = all_probabilities(400, 6)
    weights = np.random.default_rng(1).integers(1, 4, 400)
    if getattr(goal, "confidence", None):
        weights = np.ones(400)
    options = {"sample_weight": weights, "class_prior": [0.3, 0.2, 0.2, 0.1, 0.1, 0.1]}
    dense, sparse = (tune_weights(y, each, goal, **options) for each in (table, csr_array(table)))
    np.testing.assert_allclose(sparse.rule, dense.rule, rtol=1e-4)
    np.testing.assert_allclose(sparse.held_out, dense.held_out, atol=1e-9)
    np.testing.assert_allclose(sparse.shares, dense.shares, atol=1e-9)
    assert (sparse.decide(csr_array(table)) == dense.decide(table)).all()


def test_costs_and_sparse_rows():
    y, table = all_probabilities(200, 3)
    costs = CostMatrix([[0, 1, 2], [3, 0, 1], [1, 5, 0]])
    dense, sparse = (tune_weights(y, each, costs) for each in (table, csr_array(table)))
    assert (sparse.decide(csr_array(table)) == dense.decide(table)).all()
    np.testing.assert_allclose(sparse.held_out, dense.held_out)


def test_a_class_that_a_row_does_not_hold_is_not_predicted_for_it():
    table = csr_array(np.array([[0.0, 0.6, 0.3], [0.5, 0.0, 0.5], [0.2, 0.2, 0.0]]))
    assert decide(table, np.array([100.0, 1.0, 2.5])).tolist() == [2, 0, 0]
    # Ties by rounding go to the first class, as in dense rows.
    assert decide(table, np.ones(3)).tolist() == decide(table.toarray(), np.ones(3)).tolist()


def test_classes_of_few_rows_are_kept_or_dropped():
    y, table = rows_of_power_law(3_000, 400, 5)
    kept = tune_weights(y, table, "f1_macro", classes=np.arange(400), rare_classes="keep")
    few = np.bincount(y, minlength=400) < 3
    assert few.any()
    assert np.isnan(np.asarray(kept.class_risks)[few]).all()
    dropped = tune_weights(y, table, "f1_macro", classes=np.arange(400), rare_classes="drop")
    assert not np.asarray(dropped.weights)[few].any()
    alone = np.flatnonzero(~few[dropped.decide(table)])
    held_by_a_tuned_class = np.asarray((table @ ~few) > 0)
    assert held_by_a_tuned_class[alone].all() and len(alone) == held_by_a_tuned_class.sum()


def test_tuning_gains_on_new_rows_of_many_classes():
    y, table = rows_of_power_law(30_000, 500, 8)
    options = {"classes": np.arange(500), "rare_classes": "keep"}
    tuned = tune_weights(y[:20_000], table[:20_000], "f1_macro", **options)
    present = np.bincount(y[20_000:], minlength=500) > 0

    def macro_f1(rule):
        rows = Predictions(table[20_000:], y[20_000:], np.ones(10_000))
        counts = rows.confusion(rule)
        right, predicted = counts.diagonal(), counts.sum(axis=0)
        return np.mean((2 * right / (predicted + counts.sum(axis=1)).clip(1))[present])

    assert macro_f1(np.asarray(tuned.rule)) > macro_f1(np.ones(500)) + 0.05


def test_confusion_of_very_many_classes_is_sparse_and_the_same():
    rng, k = np.random.default_rng(0), 5_000
    labels, predicted = np.repeat(np.arange(k), 2), rng.integers(0, k, 2 * k)
    predicted[::3] = labels[::3]
    weights = rng.integers(1, 5, 2 * k).astype(float)
    table = confusion_table(labels, predicted, weights, k)
    assert isinstance(table, csr_array) and table.sum() == weights.sum()
    right = np.bincount(labels, weights * (labels == predicted)) / np.bincount(labels, weights)
    shares = np.bincount(predicted, (weights / np.bincount(labels, weights)[labels]), minlength=k)
    f1 = np.mean(2 * right / (1 + shares))
    found = as_goal("f1_macro").resolve(np.full(k, 1 / k)).value(table)
    assert found == pytest.approx(1 - f1)
    assert as_goal("worst_class").resolve(np.full(k, 1 / k)).value(table) == pytest.approx(
        1 - right.min()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:, :4], r"one column for each of the 5 classes, got shape \(60, 4\)"),
        (lambda t: 2 * t, "at most 1 in every row, got 2 in row 0"),
        (lambda t: -t, "finite and at least 0, got -0.* in row 0"),
        (lambda t: t * np.nan, "finite and at least 0, got nan in row 0"),
        (lambda t: t * (np.arange(60) != 7)[:, None], "more than 0 and at most 1 .*got 0 in row 7"),
        (lambda t: t[:50], "one row for each of the 60 labels, got 50"),
    ],
)
def test_what_is_wrong_with_sparse_probabilities_is_said(change, message):
    y, table = all_probabilities(60, 5)
    with pytest.raises(InvalidInputError, match=message):
        tune_weights(y, csr_array(change(table)), "f1_macro", classes=range(5))


def test_the_order_of_what_a_row_holds_does_not_matter():
    y, table = all_probabilities(300, 7)
    backwards = np.tile(np.arange(7)[::-1], 300)
    values, ends = table[:, ::-1].ravel(), np.arange(0, 2_101, 7)
    reversed_rows = csr_array((values, backwards, ends), shape=(300, 7))
    one, other = (tune_weights(y, each, "f1_macro") for each in (csr_array(table), reversed_rows))
    np.testing.assert_array_equal(one.rule, other.rule)
