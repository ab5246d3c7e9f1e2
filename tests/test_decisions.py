"""Decisions by weights: values as scikit-learn counts them, floors, ties and hard tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    fbeta_score,
    jaccard_score,
)

from equipoise import WorstClass
from equipoise.decisions import Predictions, decide
from equipoise.exceptions import InvalidParameterError, UnattainableError
from equipoise.goals import MetricGoal
from equipoise.goals.floors import FlooredRisk
from equipoise.goals.set_goal import RobustRisk
from set_examples import few_examples


def tuned_weights(predictions, criterion):
    """The weights for all rows, which are not pooled."""
    every = [np.ones(len(predictions.labels), dtype=bool)]
    return criterion.tune(predictions, every, pooling=0.0, seed=0)[0]


def risks_of(predictions, weights):
    return 1 - np.diag(predictions.confusion(weights)) / predictions.totals


def gaussian_predictions(rng, n_rows, n_classes, *, weighted=False, coarse=False):
    """Noisy probabilities of overlapping Gaussian classes with unequal shares."""
    share = rng.dirichlet(np.full(n_classes, 3.0))
    labels = np.concatenate([np.arange(n_classes), rng.choice(n_classes, n_rows, p=share)])
    centres = 1.2 * rng.normal(size=(n_classes, 2))
    X = centres[labels] + rng.normal(size=(len(labels), 2))
    scores = np.log(share) - ((X[:, None] - centres) ** 2).sum(axis=-1) / 2
    scores += 0.3 * rng.normal(size=scores.shape)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    if coarse:  # votes of ten trees: ties and zeros
        p = np.array([rng.multinomial(10, row) for row in p]) / 10
    weight = rng.integers(1, 4, len(labels)).astype(float) if weighted else np.ones(len(labels))
    return Predictions(p, labels, weight)


SETS = few_examples()
each_set = pytest.mark.parametrize("goal", SETS, ids=str)
AVERAGES = [MetricGoal(name) for name in ("f1_macro", "f2_macro", "geometric_mean", "accuracy")]


def goals(predictions):
    prior = predictions.prior
    yield from (RobustRisk(one.resolve(prior), prior) for one in SETS)
    yield from (one.resolve(prior) for one in AVERAGES)


def all_thresholds(predictions):
    """Decision weights for every rule that thresholds of two classes can make."""
    with np.errstate(divide="ignore"):
        odds = np.log(predictions.probabilities[:, 0]) - np.log(predictions.probabilities[:, 1])
    odds = np.unique(odds[np.isfinite(odds)])
    cuts = [odds[0] - 1, *(odds[:-1] + odds[1:]) / 2, odds[-1] + 1] if len(odds) else [0.0]
    return [np.array([1.0, np.exp(cut)]) for cut in cuts]


@each_set
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_reported_values_are_those_of_the_decisions(goal, n_classes):
    predictions = gaussian_predictions(np.random.default_rng(7), 200, n_classes)
    masses = goal.resolve(predictions.prior)
    criterion = RobustRisk(masses, predictions.prior)
    weights = tuned_weights(predictions, criterion)
    table = confusion_matrix(predictions.labels, decide(predictions.probabilities, weights))
    risks = 1 - np.diag(table) / table.sum(axis=1)
    np.testing.assert_allclose(risks_of(predictions, weights), risks)
    assert criterion.value(table) == pytest.approx(masses.support(risks))
    assert weights.sum() == pytest.approx(1) and np.all(weights > 0)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 8])
def test_tuning_is_not_worse_than_the_usual_weights(n_classes, coarse):
    rng = np.random.default_rng(11)
    predictions = gaussian_predictions(rng, 3000, n_classes, weighted=True, coarse=coarse)
    for goal in goals(predictions):
        tables = [
            predictions.confusion(weights)
            for weights in (
                tuned_weights(predictions, goal),
                np.ones(n_classes),
                1 / predictions.prior,
            )
        ]
        tuned, *usual = map(goal.value, tables)
        assert tuned <= min(usual) + 0.01, goal


def test_metrics_are_those_of_scikit_learn():
    predictions = gaussian_predictions(np.random.default_rng(5), 300, 4)
    y, decided = predictions.labels, decide(predictions.probabilities, np.ones(4))
    table = confusion_matrix(y, decided).astype(float)
    prior = predictions.prior
    expected = {
        "f1_macro": f1_score(y, decided, average="macro"),
        "f2_macro": fbeta_score(y, decided, beta=2, average="macro"),
        "balanced_accuracy": balanced_accuracy_score(y, decided),
        "accuracy": np.mean(y == decided),
        "geometric_mean": np.prod(np.diag(table) / table.sum(axis=1)) ** 0.25,
    }
    for name, value in expected.items():
        assert 1 - MetricGoal(name).resolve(prior).value(table) == pytest.approx(value), name


def test_metrics_of_two_classes_are_those_of_scikit_learn():
    predictions = gaussian_predictions(np.random.default_rng(6), 300, 2)
    y, decided = predictions.labels, decide(predictions.probabilities, np.ones(2))
    table = confusion_matrix(y, decided).astype(float)
    expected = {
        "f1": f1_score(y, decided),
        "f0.5": fbeta_score(y, decided, beta=0.5),
        "jaccard": jaccard_score(y, decided),
    }
    for name, value in expected.items():
        found = MetricGoal(name).resolve(predictions.prior).value(table)
        assert 1 - found == pytest.approx(value), name


@pytest.mark.parametrize("metric", ["recall at 5", "f0_macro", 3])
def test_unknown_metrics_are_refused(metric):
    with pytest.raises(InvalidParameterError):
        MetricGoal(metric).resolve([0.5, 0.3, 0.2])


def test_metrics_of_two_classes_are_refused_for_three():
    with pytest.raises(InvalidParameterError, match="two classes and there are 3"):
        MetricGoal("f1").resolve([0.5, 0.3, 0.2])


def test_floors_hold_with_the_best_risk_of_all_thresholds():
    predictions = gaussian_predictions(np.random.default_rng(9), 300, 2)
    floors, prior = np.array([0.0, 0.9]), predictions.prior
    criterion = FlooredRisk(floors, prior, np.arange(2))
    found = risks_of(predictions, tuned_weights(predictions, criterion))
    risks = [risks_of(predictions, w) for w in all_thresholds(predictions)]
    allowed = [prior @ r for r in risks if np.all(1 - r >= floors - 1e-12)]
    assert 1 - found[1] >= 0.9 - 1e-12
    assert prior @ found == pytest.approx(min(allowed))


def test_floors_of_several_classes_hold_together():
    predictions = gaussian_predictions(np.random.default_rng(12), 400, 4)
    prior = predictions.prior
    worst = RobustRisk(WorstClass().resolve(prior), prior)
    plain = risks_of(predictions, tuned_weights(predictions, worst))
    reachable = 1 - plain.max()
    floors = np.array([0.0, reachable, reachable, 0.0])
    criterion = FlooredRisk(floors, prior, np.arange(4))
    found = risks_of(predictions, tuned_weights(predictions, criterion))
    assert np.all(1 - found >= floors - 1e-9)
    assert prior @ found <= prior @ plain + 1e-9


def test_impossible_floors_are_refused_by_name():
    predictions = gaussian_predictions(np.random.default_rng(13), 300, 3)
    goal = FlooredRisk(np.full(3, 0.999), predictions.prior, np.array(["a", "b", "c"]))
    with pytest.raises(UnattainableError, match=r"0\.999 for class 'a'.*Lower a floor"):
        tuned_weights(predictions, goal)


def test_a_floor_that_so_few_rows_cannot_show_is_refused_with_the_number_needed():
    predictions = gaussian_predictions(np.random.default_rng(14), 40, 2)
    few = np.flatnonzero((predictions.labels == 0) | (np.cumsum(predictions.labels) <= 5))
    goal = FlooredRisk(np.array([0.0, 0.9]), predictions.prior, np.arange(2), 0.95)
    with pytest.raises(UnattainableError, match="at least 29 are needed"):
        tuned_weights(predictions.take(few), goal)


@given(count=st.integers(1, 400), floor=st.floats(0.5, 0.99), tail=st.floats(0.001, 0.5))
def test_allowed_errors_are_the_most_that_are_improbable(count, floor, tail):
    from scipy.stats import binom

    criterion = FlooredRisk(np.array([floor]), np.ones(1), np.array(["a"]), 1 - tail)
    if floor**count > (1 - criterion.confidence):
        with pytest.raises(UnattainableError, match="cannot show a recall"):
            criterion.allowed_errors(np.array([count]))
        return
    allowed = criterion.allowed_errors(np.array([count]))[0]
    assert binom.cdf(allowed, count, 1 - floor) <= (1 - criterion.confidence)
    assert binom.cdf(allowed + 1, count, 1 - floor) > (1 - criterion.confidence)


def test_a_floor_with_confidence_holds_on_new_data_as_often_as_promised():
    rng, held = np.random.default_rng(0), []
    floor, confidence = 0.8, 0.9

    def draw(n_rows):
        labels = (rng.random(n_rows) < 0.3).astype(int)
        x = rng.normal(size=n_rows) + 1.5 * labels
        p = expit(1.5 * x - 1.125 + logit(0.3))
        return Predictions(np.column_stack([1 - p, p]), labels, np.ones(n_rows))

    new = draw(20_000)
    for _ in range(200):
        goal = FlooredRisk(np.array([0.0, floor]), new.prior, np.arange(2), confidence)
        weights = tuned_weights(draw(400), goal)
        held.append(1 - risks_of(new, weights)[1] >= floor)
    # Three standard errors below the promise would be a broken one.
    assert np.mean(held) >= confidence - 3 * np.sqrt(confidence * (1 - confidence) / 200)
    assert np.mean(held) < 1


def test_probabilities_next_to_nothing_leave_all_weights_positive():
    p = np.array([[1, 1e-300, 0], [1, 1e-310, 1e-12], [1e-300, 1, 1e-290], [1e-200, 1e-100, 1.0]])
    predictions = Predictions(np.repeat(p, 5, axis=0), np.tile([0, 1, 2, 1], 5), np.ones(20))
    for goal in goals(predictions):
        weights = tuned_weights(predictions, goal)
        assert np.all(np.isfinite(weights)) and np.all(weights > 0), goal


def test_the_first_of_classes_wins_that_rounding_keeps_apart():
    third = 0.1 + 0.2  # one digit above 0.3
    table = np.array(
        [[0.3, third, 0.4 - 1e-16], [third, 0.3, 0.1], [0.2, 0.3, third], [0.3, 0.29, 0.1]]
    )
    np.testing.assert_array_equal(decide(table, np.array([1.0, 1.0, 0.75])), [0, 0, 1, 0])
    np.testing.assert_array_equal(decide(table[:, :2], np.ones(2)), [0, 0, 1, 0])
    # A difference that means something decides.
    np.testing.assert_array_equal(decide(np.array([[0.3, 0.3 + 1e-9]]), np.ones(2)), [1])
    # In whatever order weights are multiplied.
    rng = np.random.default_rng(0)
    votes, own = rng.integers(0, 4, (500, 3)) / 3.0, np.array([0.7, 1.3, 2.9])
    again = votes / own / (votes / own).sum(axis=1, keepdims=True).clip(1e-9)
    np.testing.assert_array_equal(decide(votes, np.ones(3)), decide(again, own))
