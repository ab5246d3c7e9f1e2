"""Probabilities that hold only the most probable of many classes: as dense ones, for less."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.metrics import f1_score

from equipoise import CostMatrix, LabelCVaR, RecallFloors, class_risks, tune_weights
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.goals import PrecisionFloors, as_goal, decide
from equipoise.goals.labelled_predictions import Predictions, confusion_table
from equipoise.sets import as_uncertainty

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
    by_row = np.random.default_rng(2).random((200, 3))
    found = sparse.decide(csr_array(table), costs=by_row)
    assert (found == np.argmax(table * by_row, axis=1)).all()


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
        (
            lambda t: t[:, :4],
            r"one column for each of the 5 classes, got a sparse array of shape \(60, 4\)",
        ),
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


def reversed_and_split(table):
    """The same probabilities, each in two entries, the classes of a row from the last one down."""
    n, k = table.shape
    values = np.repeat(table[:, ::-1].ravel(), 2) / 2
    classes = np.repeat(np.tile(np.arange(k)[::-1], n), 2)
    return csr_array((values, classes, np.arange(0, 2 * n * k + 1, 2 * k)), shape=(n, k))


def test_duplicates_add_up_and_the_users_array_stays_as_it_is():
    y, table = all_probabilities(200, 5)
    rows = reversed_and_split(table)
    parts = rows.data, rows.indices, rows.indptr
    before = [part.copy() for part in parts]
    for part in parts:
        part.flags.writeable = False
    found, expected = (tune_weights(y, each, "f1_macro") for each in (rows, csr_array(table)))
    np.testing.assert_allclose(found.rule, expected.rule)
    assert (found.decide(rows) == expected.decide(table)).all()
    for part, old in zip((rows.data, rows.indices, rows.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


@pytest.mark.parametrize("goal", ["worst_class", "f1_macro", LabelCVaR(0.3)], ids=str)
def test_the_largest_of_each_row_as_dense_rows_of_zeros(goal):
    y, table = all_probabilities(600, 8)
    smallest_kept = np.sort(table, axis=1)[:, -2][:, None]
    zeros = np.where(table >= smallest_kept, table, 0.0)
    zeros[:, 7] = 0.0  # a class that no row holds
    assert np.sum(zeros[np.arange(600), y] == 0) > 30  # rows whose own class is not held
    tuned = tune_weights(y, csr_array(zeros), goal)
    predicted = np.argmax(zeros * tuned.rule, axis=1)
    assert (tuned.decide(csr_array(zeros)) == predicted).all()
    # Risks of the held-out rows, decided in the folds by the rules of the other folds.
    by_fold = tuned.fold_weights[tuned.folds]
    wrong = np.argmax(zeros * by_fold, axis=1) != y
    expected = np.bincount(y, wrong, minlength=8) / np.bincount(y, minlength=8)
    np.testing.assert_allclose(np.asarray(tuned.class_risks), expected)
    assert tuned.class_risks[7] == 1
    assert (np.asarray(tuned.class_risk_intervals.upper) >= expected).all()
    if goal == "f1_macro":
        f1 = f1_score(y, np.argmax(zeros * by_fold, axis=1), average="macro")
        assert tuned.metric_value == pytest.approx(f1)
    else:
        masses = as_uncertainty(goal).resolve(np.bincount(y, minlength=8) / 600)
        assert tuned.robust_risk == pytest.approx(masses.support(expected))


def test_goals_that_need_all_probabilities_refuse_more_than_memory_holds():
    k = 6_700
    y = np.repeat(np.arange(k), 3)
    rows, other = np.arange(3 * k), (y + 1) % k
    table = csr_array((np.full(3 * k, 0.9), (rows, other)), shape=(3 * k, k))
    expected = r"all probabilities of 20,100 rows and 6,700 classes at once, 1 GiB"
    with pytest.raises(InvalidInputError, match=expected):
        tune_weights(y, table, PrecisionFloors({0: 0.2}))


def test_costs_decide_for_sparse_probabilities_as_for_all():
    y, table = all_probabilities(200, 4)
    costs = CostMatrix(1 - np.eye(4))
    expected = tune_weights(y, table, costs).decide(table)
    assert (tune_weights(y, csr_array(table), costs).decide(csr_array(table)) == expected).all()


def test_messages_name_a_few_of_very_many_classes():
    k = 50_000
    y, rows = (
        np.arange(k),
        csr_array((np.ones(k), (np.arange(k), (np.arange(k) + 1) % k)), shape=(k, k)),
    )
    with pytest.raises(
        InvalidInputError, match=r"class 0 \(1 row\), .* and 49995 more: "
    ) as caught:
        tune_weights(y, rows, "f1_macro", classes=y)
    assert len(str(caught.value)) < 500
    with pytest.raises(ClassMismatchError, match=r"those of classes, \[0, 1, .*\(50000 in all\)\]"):
        tune_weights(y + 1, rows, "f1_macro", classes=y)
    with pytest.raises(InvalidInputError, match=r"got a sparse array of shape \(50000, 50000\)"):
        class_risks(y, rows, loss="cross_entropy")


def test_a_sparse_array_of_one_dimension_is_refused():
    row = coo_array(np.full(5, 0.2))
    if row.ndim != 1:
        pytest.skip("SciPy has sparse arrays of one dimension from 1.13 on")
    with pytest.raises(InvalidInputError, match=r"got a sparse array of shape \(5,\)"):
        tune_weights(np.arange(5), row, "f1_macro", classes=np.arange(5))
