"""Floors of precisions, recalls and false-positive rates: kept, at the least risk, as promised."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from equipoise import RobustClassifier, tune_weights
from equipoise.exceptions import InvalidInputError, InvalidParameterError, UnattainableError
from equipoise.goals import Floors, PrecisionFloors
from equipoise.goals.labelled_predictions import Predictions

PRIOR = np.array([0.6, 0.3, 0.1])


def rows(rng, n, prior=PRIOR, lead=1.2):
    """Labels and probabilities that are too even, of classes that differ in their own column."""
    y = rng.choice(len(prior), n, p=prior)
    logits = lead * (np.eye(len(prior))[y] + rng.normal(size=(n, len(prior))))
    table = np.exp(logits)
    return y, table / table.sum(axis=1, keepdims=True)


def precision(y, predicted, label):
    return np.mean(y[predicted == label] == label)


@pytest.mark.parametrize(
    "goal",
    [
        PrecisionFloors({2: 0.6}),
        Floors(recall={2: 0.8}),
        Floors(recall={0: 0.6}, precision={2: 0.4}),
        Floors(false_positive_rate={0: 0.1}),
    ],
    ids=str,
)
def test_floors_are_kept_on_the_tuning_rows(goal):
    y, table = rows(np.random.default_rng(0), 2000)
    predicted = tune_weights(y, table, goal).decide(table)
    if goal.get_params().get("floors"):
        assert precision(y, predicted, 2) >= 0.6
    elif goal.false_positive_rate:
        assert np.mean(predicted[y != 0] == 0) <= 0.1
    else:
        for label, floor in goal.recall.items():
            assert np.mean(predicted[y == label] == label) >= floor
        for label, floor in (goal.precision or {}).items():
            assert precision(y, predicted, label) >= floor


def test_two_classes_have_the_best_threshold_of_all():
    rng = np.random.default_rng(1)
    y, table = rows(rng, 500, np.array([0.8, 0.2]))
    criterion = Floors(recall={1: 0.3}, precision={1: 0.6}).resolve(np.bincount(y) / 500)
    part = Predictions(table, y, np.ones(500))
    weights = criterion.tune(part, [np.ones(500, dtype=bool)], pooling=0.0, seed=0)[0]
    thresholds = np.unique(table[:, 1])
    tables = [part.confusion(np.array([t, 1 - t])) for t in [0, *(thresholds[:-1] + 1e-9)]]
    least = min(criterion.value(each) for each in tables)
    assert criterion.value(part.confusion(weights)) == pytest.approx(least, abs=1e-9)


def test_what_is_attainable_is_named():
    y, table = rows(np.random.default_rng(0), 400, lead=0.2)
    with pytest.raises(
        UnattainableError, match=r"No decision weights were found that reach .*at best"
    ):
        tune_weights(y, table, Floors(recall={2: 0.9}, precision={2: 0.99}))


def test_a_confidence_holds_over_redraws():
    """Two classes with scores around 0 and 1.5: precisions are known exactly."""
    rng, prior, broken, found = np.random.default_rng(0), np.array([0.8, 0.2]), 0, 0
    for _ in range(200):
        y = rng.choice(2, 600, p=prior)
        scores = 1.5 * y + rng.normal(size=600)
        eta = 1 / (1 + np.exp(-1.5 * (scores - 0.75)))
        part = Predictions(np.column_stack([1 - eta, eta]), y, np.ones(600))
        criterion = PrecisionFloors({1: 0.6}, confidence=0.8).resolve(np.bincount(y) / 600)
        try:
            w = criterion.tune(part, [np.ones(600, dtype=bool)], pooling=0.0, seed=0)[0]
        except UnattainableError:
            continue
        found += 1
        at = 0.75 + np.log(w[0] / w[1]) / 1.5
        right, wrong = prior[1] * norm.sf(at - 1.5), prior[0] * norm.sf(at)
        broken += right / (right + wrong) < 0.6
    assert found > 100
    assert broken <= 200 * 0.2 + 3 * np.sqrt(200 * 0.16)


def test_an_estimator_keeps_a_promise_or_says_what_it_needs():
    rng = np.random.default_rng(0)
    y = rng.choice(2, 3000, p=[0.7, 0.3])
    X = np.column_stack([3 * y + rng.normal(size=3000), rng.normal(size=3000)])
    goal = PrecisionFloors({1: 0.9}, confidence=0.9)
    model = RobustClassifier(LogisticRegression(), goal, training="plain", cv=0.5).fit(X, y)
    new = rng.choice(2, 20_000, p=[0.7, 0.3])
    X_new = np.column_stack([3 * new + rng.normal(size=20_000), rng.normal(size=20_000)])
    assert precision(new, model.predict(X_new), 1) > 0.89
    with pytest.raises(UnattainableError, match="at least 44 are needed"):
        RobustClassifier(LogisticRegression(), PrecisionFloors({1: 0.9}, 0.99), cv=0.5).fit(
            X[:60], y[:60]
        )


@pytest.mark.parametrize(
    ("goal", "match"),
    [
        (Floors(), "needs recall, precision or false_positive_rate"),
        (Floors(recall=1.2), r"recall must be in \[0, 1\]"),
        (PrecisionFloors({0: 1.0}, confidence=0.9), "must leave room for errors"),
        (PrecisionFloors({7: 0.5}), "precision names"),
    ],
)
def test_errors_name_the_floor(goal, match):
    with pytest.raises((InvalidParameterError, InvalidInputError), match=match):
        goal.resolve(PRIOR)


def test_unequal_weights_have_no_confidence():
    y, table = rows(np.random.default_rng(0), 300)
    with pytest.raises(InvalidInputError, match="rows of equal weight"):
        tune_weights(y, table, PrecisionFloors({0: 0.5}, 0.9), class_prior=[0.2, 0.3, 0.5])
