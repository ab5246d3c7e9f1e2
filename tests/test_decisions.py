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
from equipoise.decisions import (
    Evidence,
    FloorGoal,
    GeometricMean,
    MacroFBeta,
    MetricGoal,
    RobustGoal,
    WeightedRecall,
    bagged,
    decide,
    search,
    shrunk,
)
from equipoise.decisions.floors import _allowed_errors
from equipoise.exceptions import InvalidParameterError, UnattainableError
from equipoise.metrics.named import fbeta, jaccard
from set_examples import few_examples


def gaussian_evidence(rng, n_rows, n_classes, *, weighted=False, coarse=False):
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
    return Evidence(p, labels, weight)


SETS = few_examples()
each_set = pytest.mark.parametrize("uncertainty", SETS, ids=str)
AVERAGES = [MacroFBeta(), MacroFBeta(2.0), GeometricMean()]


def goals(evidence):
    yield from (RobustGoal(one.resolve(evidence.prior)) for one in SETS)
    yield from AVERAGES
    yield WeightedRecall(evidence.prior)


def all_thresholds(evidence):
    """Decision weights for every rule that thresholds of two classes can make."""
    with np.errstate(divide="ignore"):
        odds = np.log(evidence.probabilities[:, 0]) - np.log(evidence.probabilities[:, 1])
    odds = np.unique(odds[np.isfinite(odds)])
    cuts = [odds[0] - 1, *(odds[:-1] + odds[1:]) / 2, odds[-1] + 1] if len(odds) else [0.0]
    return [np.array([1.0, np.exp(cut)]) for cut in cuts]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_two_classes_are_cut_at_the_best_of_all_thresholds(seed, coarse, weighted):
    rng = np.random.default_rng(seed)
    evidence = gaussian_evidence(rng, 80, 2, weighted=weighted, coarse=coarse)
    metrics = [MetricGoal(metric, evidence.prior) for metric in ("f1", "f0.5", jaccard())]
    for goal in [*goals(evidence), *metrics]:
        best = min(goal.value(evidence.confusion(w)) for w in all_thresholds(evidence))
        assert goal.tune(evidence).value == pytest.approx(best, abs=2e-7), goal


def test_two_classes_of_very_many_rows_are_cut_exactly_too():
    evidence = gaussian_evidence(np.random.default_rng(4), 20_000, 2)
    scores, y = evidence.probabilities[:, 1], evidence.labels
    false_rate, true_rate, _ = roc_curve(y, scores, drop_intermediate=False)
    worst = RobustGoal(WorstClass().resolve(evidence.prior)).tune(evidence)
    assert worst.value == pytest.approx(np.maximum(false_rate, 1 - true_rate).min())


def grid_values(goal, evidence, reach=5.0, size=81):
    """Values on a fine grid of the decision weights of three classes."""
    steps = np.linspace(-reach, reach, size)
    with np.errstate(divide="ignore"):
        logs = np.log(evidence.probabilities) - np.log(evidence.prior)
    tables = set()
    for first in steps:
        theta = np.stack([np.zeros(size), np.full(size, first), steps], axis=1)
        decided = (logs[None] + theta[:, None]).argmax(axis=2)
        for row in decided:
            cells = np.bincount(evidence.labels * 3 + row, evidence.sample_weight, minlength=9)
            tables.add(tuple(cells))
    return [goal.value(np.reshape(cells, (3, 3))) for cells in tables]


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_three_classes_are_within_one_row_of_a_fine_grid(seed, coarse):
    rng = np.random.default_rng(100 + seed)
    evidence = gaussian_evidence(rng, int(rng.integers(60, 300)), 3, coarse=coarse)
    one_row = 1 / evidence.totals.min()
    for goal in goals(evidence):
        best = min(grid_values(goal, evidence))
        assert goal.tune(evidence).value <= best + one_row, goal


@each_set
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_reported_values_are_those_of_the_decisions(uncertainty, n_classes):
    evidence = gaussian_evidence(np.random.default_rng(7), 200, n_classes)
    masses = uncertainty.resolve(evidence.prior)
    tuned = RobustGoal(masses).tune(evidence)
    table = confusion_matrix(evidence.labels, decide(evidence.probabilities, tuned.weights))
    risks = 1 - np.diag(table) / table.sum(axis=1)
    np.testing.assert_allclose(tuned.class_risks, risks)
    assert tuned.value == pytest.approx(masses.support(risks))
    assert tuned.weights.sum() == pytest.approx(1) and np.all(tuned.weights > 0)


@pytest.mark.parametrize("n_classes", [3, 8])
def test_tuning_is_never_worse_than_the_usual_weights(n_classes):
    evidence = gaussian_evidence(np.random.default_rng(11), 1500, n_classes)
    for goal in goals(evidence):
        tuned = goal.tune(evidence).value
        for weights in (np.ones(n_classes), 1 / evidence.prior):
            assert tuned <= goal.value(evidence.confusion(weights)) + 1e-9, goal


def test_metrics_are_those_of_scikit_learn():
    evidence = gaussian_evidence(np.random.default_rng(5), 300, 4)
    y, decided = evidence.labels, decide(evidence.probabilities, np.ones(4))
    table = confusion_matrix(y, decided).astype(float)
    prior = evidence.prior
    expected = {
        "macro_f1": f1_score(y, decided, average="macro"),
        "macro_f2": fbeta_score(y, decided, beta=2, average="macro"),
        "balanced_accuracy": balanced_accuracy_score(y, decided),
        "accuracy": np.mean(y == decided),
        "geometric_mean": np.prod(np.diag(table) / table.sum(axis=1)) ** 0.25,
    }
    for name, value in expected.items():
        assert 1 - MetricGoal(name, prior).value(table) == pytest.approx(value), name


def test_metrics_of_two_classes_are_those_of_scikit_learn():
    evidence = gaussian_evidence(np.random.default_rng(6), 300, 2)
    y, decided = evidence.labels, decide(evidence.probabilities, np.ones(2))
    table = confusion_matrix(y, decided).astype(float)
    expected = {
        "f1": f1_score(y, decided),
        "f0.5": fbeta_score(y, decided, beta=0.5),
        "jaccard": jaccard_score(y, decided),
    }
    for name, value in expected.items():
        assert 1 - MetricGoal(name, evidence.prior).value(table) == pytest.approx(value), name


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_f_beta_is_as_good_as_the_exact_search_over_the_precision_recall_curve(beta):
    evidence = gaussian_evidence(np.random.default_rng(8), 500, 2)
    precision, recall, _ = precision_recall_curve(evidence.labels, evidence.probabilities[:, 1])
    square = beta**2
    scores = (1 + square) * precision * recall / np.maximum(square * precision + recall, 1e-12)
    tuned = MetricGoal(fbeta(beta), evidence.prior).tune(evidence)
    assert 1 - tuned.value == pytest.approx(scores.max())


@pytest.mark.parametrize("metric", ["recall at 5", "macro_f0", 3])
def test_unknown_metrics_are_refused(metric):
    with pytest.raises(InvalidParameterError):
        _ = MetricGoal(metric, np.array([0.5, 0.3, 0.2])).goal


def test_metrics_of_two_classes_are_refused_for_three():
    with pytest.raises(InvalidParameterError, match="two classes and there are 3"):
        _ = MetricGoal("f1", np.array([0.5, 0.3, 0.2])).goal


def test_floors_hold_with_the_best_risk_of_all_thresholds():
    evidence = gaussian_evidence(np.random.default_rng(9), 300, 2)
    floors, prior = np.array([0.0, 0.9]), evidence.prior
    tuned = FloorGoal(floors, prior).tune(evidence)
    risks = [evidence.class_risks(w) for w in all_thresholds(evidence)]
    allowed = [prior @ r for r in risks if np.all(1 - r >= floors - 1e-12)]
    assert 1 - tuned.class_risks[1] >= 0.9 - 1e-12
    assert tuned.value == pytest.approx(min(allowed))


def test_floors_of_several_classes_hold_together():
    evidence = gaussian_evidence(np.random.default_rng(12), 400, 4)
    reachable = 1 - RobustGoal(WorstClass().resolve(evidence.prior)).tune(evidence).value
    floors = np.array([0.0, reachable, reachable, 0.0])
    tuned = FloorGoal(floors, evidence.prior).tune(evidence)
    assert np.all(1 - tuned.class_risks >= floors - 1e-9)
    plain = RobustGoal(WorstClass().resolve(evidence.prior)).tune(evidence)
    assert tuned.value <= evidence.prior @ plain.class_risks + 1e-9


def test_impossible_floors_are_refused_with_what_is_attainable():
    evidence = gaussian_evidence(np.random.default_rng(13), 300, 3)
    goal = FloorGoal(np.full(3, 0.999), evidence.prior, classes=np.array(["a", "b", "c"]))
    with pytest.raises(UnattainableError, match=r"0\.999 for class 'a'.*nearest found are"):
        goal.tune(evidence)


def test_a_floor_that_so_few_rows_cannot_show_is_refused_with_the_number_needed():
    evidence = gaussian_evidence(np.random.default_rng(14), 40, 2)
    few = np.flatnonzero((evidence.labels == 0) | (np.cumsum(evidence.labels) <= 5))
    goal = FloorGoal(np.array([0.0, 0.9]), evidence.prior, confidence=0.95)
    with pytest.raises(UnattainableError, match="at least 29 are needed"):
        goal.tune(evidence.take(few))


@given(count=st.integers(1, 400), floor=st.floats(0.5, 0.99), tail=st.floats(0.001, 0.5))
def test_allowed_errors_are_the_most_that_are_improbable(count, floor, tail):
    from scipy.stats import binom

    allowed = _allowed_errors(count, floor, tail)
    assert allowed < 0 or binom.cdf(allowed, count, 1 - floor) <= tail
    assert binom.cdf(allowed + 1, count, 1 - floor) > tail


def test_a_floor_with_confidence_holds_on_new_data_as_often_as_promised():
    rng, held = np.random.default_rng(0), []
    floor, confidence = 0.8, 0.9

    def draw(n_rows):
        labels = (rng.random(n_rows) < 0.3).astype(int)
        x = rng.normal(size=n_rows) + 1.5 * labels
        p = 1 / (1 + np.exp(-x))
        return Evidence(np.column_stack([1 - p, p]), labels, np.ones(n_rows))

    new = draw(20_000)
    for _ in range(200):
        goal = FloorGoal(np.array([0.0, floor]), new.prior, confidence=confidence)
        weights = goal.tune(draw(400)).weights
        held.append(1 - new.class_risks(weights)[1] >= floor)
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


def test_bagging_gives_the_mean_of_resamples_and_their_spread():
    evidence = gaussian_evidence(np.random.default_rng(15), 500, 4)
    goal = RobustGoal(WorstClass().resolve(evidence.prior))
    found = bagged(evidence, goal, 10)
    assert found.resampled.shape == (10, 4)
    logs = np.log(found.tuned.weights)
    np.testing.assert_allclose(logs - logs.mean(), found.resampled.mean(axis=0))
    assert np.all(found.resampled.std(axis=0) > 0)
    again = bagged(evidence, goal, 10)
    np.testing.assert_array_equal(found.tuned.weights, again.tuned.weights)


@pytest.mark.parametrize("goal_of", [lambda p: RobustGoal(WorstClass().resolve(p)),
                                     lambda p: MacroFBeta()])  # fmt: skip
def test_samples_of_many_rows_lead_where_all_rows_do(goal_of, monkeypatch):
    evidence = gaussian_evidence(np.random.default_rng(16), 12_000, 4)
    whole = goal_of(evidence.prior).tune(evidence).value
    monkeypatch.setattr(search, "SIZES", (1_000, 3_000))
    monkeypatch.setattr(search, "LARGE", 8_000)
    assert goal_of(evidence.prior).tune(evidence).value <= whole + 0.005


def test_rows_that_cannot_turn_are_settled_rightly():
    evidence = gaussian_evidence(np.random.default_rng(17), 3_000, 5)
    rng = np.random.default_rng(0)
    theta = rng.normal(size=5)
    rows, (hits, decided, totals) = search._open_rows(evidence, theta)
    shut = np.setdiff1d(np.arange(len(evidence.labels)), rows)
    assert 0 < len(shut) < len(evidence.labels)
    for _ in range(20):
        weights = np.exp(theta + rng.uniform(-search.REACH, search.REACH, 5))
        table = evidence.take(shut).confusion(weights)
        np.testing.assert_allclose(np.diag(table), hits)
        np.testing.assert_allclose(table.sum(axis=0), decided)
        np.testing.assert_allclose(table.sum(axis=1), totals)


def test_a_hull_of_weightings_is_a_set_like_any_other():
    evidence = gaussian_evidence(np.random.default_rng(18), 200, 3)
    hull = WeightHull([[1, 1, 1], [1, 5, 1]])
    goal = RobustGoal(hull.resolve(evidence.prior))
    assert goal.tune(evidence).value <= min(grid_values(goal, evidence)) + 1 / evidence.totals.min()


def test_probabilities_next_to_nothing_leave_all_weights_positive():
    p = np.array([[1, 1e-300, 0], [1, 1e-310, 1e-12], [1e-300, 1, 1e-290], [1e-200, 1e-100, 1.0]])
    evidence = Evidence(np.repeat(p, 5, axis=0), np.tile([0, 1, 2, 1], 5), np.ones(20))
    for goal in goals(evidence):
        weights = goal.tune(evidence).weights
        assert np.all(np.isfinite(weights)) and np.all(weights > 0), goal
        assert np.all(np.isfinite(bagged(evidence, goal, 3).tuned.weights)), goal
