"""Decision weights: optimal by brute force, whatever they are for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    fbeta_score,
    jaccard_score,
    precision_recall_curve,
    roc_curve,
)

from equipoise import WeightHull, WorstClass
from equipoise.decisions import Predictions, decide, search, tune
from equipoise.decisions.search import shrunk, tune_resampled
from equipoise.exceptions import InvalidParameterError, UnattainableError
from equipoise.goals import MetricGoal
from equipoise.goals.floors import FlooredRisk
from equipoise.goals.set_goal import RobustRisk
from equipoise.metrics import METRICS, fbeta
from set_examples import few_examples


def value_of(criterion, table):
    """The value of a table of weights by true class (first) and decision (second)."""
    hits, decided = np.diag(table)[None], table.sum(axis=0)[None]
    return float(criterion.values(hits, decided, table.sum(axis=1))[0])


def risks_of(predictions, weights):
    return 1 - np.diag(predictions.confusion(weights)) / predictions.totals


def tuned_value(criterion, predictions):
    return value_of(criterion, predictions.confusion(tune(predictions, criterion)))


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
each_set = pytest.mark.parametrize("uncertainty", SETS, ids=str)
AVERAGES = [MetricGoal(name) for name in ("macro_f1", "macro_f2", "geometric_mean", "accuracy")]


def goals(predictions):
    yield from (RobustRisk(one.resolve(predictions.prior)) for one in SETS)
    yield from (one.resolve(predictions.prior) for one in AVERAGES)


def all_thresholds(predictions):
    """Decision weights for every rule that thresholds of two classes can make."""
    with np.errstate(divide="ignore"):
        odds = np.log(predictions.probabilities[:, 0]) - np.log(predictions.probabilities[:, 1])
    odds = np.unique(odds[np.isfinite(odds)])
    cuts = [odds[0] - 1, *(odds[:-1] + odds[1:]) / 2, odds[-1] + 1] if len(odds) else [0.0]
    return [np.array([1.0, np.exp(cut)]) for cut in cuts]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_two_classes_are_cut_at_the_best_of_all_thresholds(seed, coarse, weighted):
    rng = np.random.default_rng(seed)
    predictions = gaussian_predictions(rng, 80, 2, weighted=weighted, coarse=coarse)
    metrics = [
        MetricGoal(metric).resolve(predictions.prior)
        for metric in ("f1", "f0.5", METRICS["jaccard"])
    ]
    for goal in [*goals(predictions), *metrics]:
        best = min(value_of(goal, predictions.confusion(w)) for w in all_thresholds(predictions))
        assert tuned_value(goal, predictions) == pytest.approx(best, abs=2e-7), goal


def test_two_classes_of_very_many_rows_are_cut_exactly_too():
    predictions = gaussian_predictions(np.random.default_rng(4), 20_000, 2)
    scores, y = predictions.probabilities[:, 1], predictions.labels
    false_rate, true_rate, _ = roc_curve(y, scores, drop_intermediate=False)
    worst = tuned_value(RobustRisk(WorstClass().resolve(predictions.prior)), predictions)
    assert worst == pytest.approx(np.maximum(false_rate, 1 - true_rate).min())


def grid_values(goal, predictions, reach=5.0, size=81):
    """Values on a fine grid of the decision weights of three classes."""
    steps = np.linspace(-reach, reach, size)
    with np.errstate(divide="ignore"):
        logs = np.log(predictions.probabilities) - np.log(predictions.prior)
    tables = set()
    for first in steps:
        theta = np.stack([np.zeros(size), np.full(size, first), steps], axis=1)
        decided = (logs[None] + theta[:, None]).argmax(axis=2)
        for row in decided:
            cells = np.bincount(
                predictions.labels * 3 + row, predictions.sample_weight, minlength=9
            )
            tables.add(tuple(cells))
    return [value_of(goal, np.reshape(cells, (3, 3))) for cells in tables]


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_three_classes_are_within_one_row_of_a_fine_grid(seed, coarse):
    rng = np.random.default_rng(100 + seed)
    predictions = gaussian_predictions(rng, int(rng.integers(60, 300)), 3, coarse=coarse)
    one_row = 1 / predictions.totals.min()
    for goal in goals(predictions):
        best = min(grid_values(goal, predictions))
        assert tuned_value(goal, predictions) <= best + one_row, goal


@each_set
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_reported_values_are_those_of_the_decisions(uncertainty, n_classes):
    predictions = gaussian_predictions(np.random.default_rng(7), 200, n_classes)
    masses = uncertainty.resolve(predictions.prior)
    weights = tune(predictions, RobustRisk(masses))
    table = confusion_matrix(predictions.labels, decide(predictions.probabilities, weights))
    risks = 1 - np.diag(table) / table.sum(axis=1)
    np.testing.assert_allclose(risks_of(predictions, weights), risks)
    assert value_of(RobustRisk(masses), table) == pytest.approx(masses.support(risks))
    assert weights.sum() == pytest.approx(1) and np.all(weights > 0)


@pytest.mark.parametrize("n_classes", [3, 8])
def test_tuning_is_never_worse_than_the_usual_weights(n_classes):
    predictions = gaussian_predictions(np.random.default_rng(11), 1500, n_classes)
    for goal in goals(predictions):
        tuned = tuned_value(goal, predictions)
        for weights in (np.ones(n_classes), 1 / predictions.prior):
            assert tuned <= value_of(goal, predictions.confusion(weights)) + 1e-9, goal


def test_metrics_are_those_of_scikit_learn():
    predictions = gaussian_predictions(np.random.default_rng(5), 300, 4)
    y, decided = predictions.labels, decide(predictions.probabilities, np.ones(4))
    table = confusion_matrix(y, decided).astype(float)
    prior = predictions.prior
    expected = {
        "macro_f1": f1_score(y, decided, average="macro"),
        "macro_f2": fbeta_score(y, decided, beta=2, average="macro"),
        "balanced_accuracy": balanced_accuracy_score(y, decided),
        "accuracy": np.mean(y == decided),
        "geometric_mean": np.prod(np.diag(table) / table.sum(axis=1)) ** 0.25,
    }
    for name, value in expected.items():
        assert 1 - value_of(MetricGoal(name).resolve(prior), table) == pytest.approx(value), name


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
        assert 1 - value_of(MetricGoal(name).resolve(predictions.prior), table) == pytest.approx(
            value
        ), name


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_f_beta_is_as_good_as_the_exact_search_over_the_precision_recall_curve(beta):
    predictions = gaussian_predictions(np.random.default_rng(8), 500, 2)
    precision, recall, _ = precision_recall_curve(
        predictions.labels, predictions.probabilities[:, 1]
    )
    square = beta**2
    scores = (1 + square) * precision * recall / np.maximum(square * precision + recall, 1e-12)
    criterion = MetricGoal(fbeta(beta)).resolve(predictions.prior)
    assert 1 - tuned_value(criterion, predictions) == pytest.approx(scores.max())


@pytest.mark.parametrize("metric", ["recall at 5", "macro_f0", 3])
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
    found = risks_of(predictions, tune(predictions, criterion))
    risks = [risks_of(predictions, w) for w in all_thresholds(predictions)]
    allowed = [prior @ r for r in risks if np.all(1 - r >= floors - 1e-12)]
    assert 1 - found[1] >= 0.9 - 1e-12
    assert prior @ found == pytest.approx(min(allowed))


def test_floors_of_several_classes_hold_together():
    predictions = gaussian_predictions(np.random.default_rng(12), 400, 4)
    worst, prior = RobustRisk(WorstClass().resolve(predictions.prior)), predictions.prior
    plain = risks_of(predictions, tune(predictions, worst))
    reachable = 1 - plain.max()
    floors = np.array([0.0, reachable, reachable, 0.0])
    criterion = FlooredRisk(floors, prior, np.arange(4))
    found = risks_of(predictions, tune(predictions, criterion))
    assert np.all(1 - found >= floors - 1e-9)
    assert prior @ found <= prior @ plain + 1e-9


def test_impossible_floors_are_refused_with_what_is_attainable():
    predictions = gaussian_predictions(np.random.default_rng(13), 300, 3)
    goal = FlooredRisk(np.full(3, 0.999), predictions.prior, np.array(["a", "b", "c"]))
    with pytest.raises(UnattainableError, match=r"0\.999 for class 'a'.*nearest found are"):
        tune(predictions, goal)


def test_a_floor_that_so_few_rows_cannot_show_is_refused_with_the_number_needed():
    predictions = gaussian_predictions(np.random.default_rng(14), 40, 2)
    few = np.flatnonzero((predictions.labels == 0) | (np.cumsum(predictions.labels) <= 5))
    goal = FlooredRisk(np.array([0.0, 0.9]), predictions.prior, np.arange(2), 0.95)
    with pytest.raises(UnattainableError, match="at least 29 are needed"):
        tune(predictions.take(few), goal)


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
        p = 1 / (1 + np.exp(-x))
        return Predictions(np.column_stack([1 - p, p]), labels, np.ones(n_rows))

    new = draw(20_000)
    for _ in range(200):
        goal = FlooredRisk(np.array([0.0, floor]), new.prior, np.arange(2), confidence)
        weights = tune(draw(400), goal)
        held.append(1 - risks_of(new, weights)[1] >= floor)
    # Three standard errors below the promise would be a broken one.
    assert np.mean(held) >= confidence - 3 * np.sqrt(confidence * (1 - confidence) / 200)
    assert np.mean(held) < 1


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), amount=st.floats(0, 1))
def test_shrinking_stays_between(seed, amount):
    rng = np.random.default_rng(seed)
    weights, reference = rng.dirichlet(np.ones(4), size=2) + 1e-3
    mixed = np.log(shrunk(weights, reference, amount))
    mixed -= mixed.mean()
    ends = [np.log(end) - np.log(end).mean() for end in (weights, reference)]
    assert np.all(mixed >= np.minimum(*ends) - 1e-9)
    assert np.all(mixed <= np.maximum(*ends) + 1e-9)


def test_resampling_gives_the_mean_of_resamples_and_is_repeated_exactly():
    predictions = gaussian_predictions(np.random.default_rng(15), 500, 4)
    goal = RobustRisk(WorstClass().resolve(predictions.prior))
    rng, logs = np.random.default_rng(0), []
    start, radii = -np.log(predictions.prior), search.ROUGH
    for _ in range(search.RESAMPLES):
        rows = np.concatenate([rng.choice(own, len(own)) for own in predictions.by_class])
        point = search.equalized(predictions.take(rows), goal, start, radii)
        logs.append(point - point.mean())
        start, radii = np.mean(logs, axis=0), search.ROUGH_NEARBY
    found = np.log(tune_resampled(predictions, goal))
    np.testing.assert_allclose(found - found.mean(), np.mean(logs, axis=0))
    assert np.all(np.std(logs, axis=0) > 0)
    again = tune_resampled(predictions, goal)
    np.testing.assert_array_equal(found, np.log(again))


@pytest.mark.parametrize("goal_of", [lambda p: RobustRisk(WorstClass().resolve(p)),
                                     lambda p: MetricGoal("macro_f1").resolve(p)])  # fmt: skip
def test_samples_of_many_rows_lead_where_all_rows_do(goal_of, monkeypatch):
    predictions = gaussian_predictions(np.random.default_rng(16), 12_000, 4)
    whole = tuned_value(goal_of(predictions.prior), predictions)
    monkeypatch.setattr(search, "SIZES", (1_000, 3_000))
    monkeypatch.setattr(search, "LARGE", 8_000)
    assert tuned_value(goal_of(predictions.prior), predictions) <= whole + 0.005


def test_rows_that_cannot_turn_are_settled_rightly():
    predictions = gaussian_predictions(np.random.default_rng(17), 3_000, 5)
    rng = np.random.default_rng(0)
    theta = rng.normal(size=5)
    rows, (hits, decided, totals) = search._open_rows(predictions, theta)
    shut = np.setdiff1d(np.arange(len(predictions.labels)), rows)
    assert 0 < len(shut) < len(predictions.labels)
    for _ in range(20):
        weights = np.exp(theta + rng.uniform(-search.REACH, search.REACH, 5))
        table = predictions.take(shut).confusion(weights)
        np.testing.assert_allclose(np.diag(table), hits)
        np.testing.assert_allclose(table.sum(axis=0), decided)
        np.testing.assert_allclose(table.sum(axis=1), totals)


def test_a_hull_of_weightings_is_a_set_like_any_other():
    predictions = gaussian_predictions(np.random.default_rng(18), 200, 3)
    hull = WeightHull([[1, 1, 1], [1, 5, 1]])
    goal = RobustRisk(hull.resolve(predictions.prior))
    assert (
        tuned_value(goal, predictions)
        <= min(grid_values(goal, predictions)) + 1 / predictions.totals.min()
    )


def test_probabilities_next_to_nothing_leave_all_weights_positive():
    p = np.array([[1, 1e-300, 0], [1, 1e-310, 1e-12], [1e-300, 1, 1e-290], [1e-200, 1e-100, 1.0]])
    predictions = Predictions(np.repeat(p, 5, axis=0), np.tile([0, 1, 2, 1], 5), np.ones(20))
    for goal in goals(predictions):
        weights = tune(predictions, goal)
        assert np.all(np.isfinite(weights)) and np.all(weights > 0), goal
        if goal.masses is not None:
            averaged = tune_resampled(predictions, goal)
            assert np.all(np.isfinite(averaged)) and np.all(averaged > 0), goal


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
