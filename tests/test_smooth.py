"""The smooth tuner: its gradients, how near it comes to the best weights, pooling, and its cost."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from equipoise import LabelCVaR, WorstClass, tune_weights
from equipoise.decisions import HeldOut, Predictions, Task, decide, tune
from equipoise.goals import GOALS, MetricGoal, SmoothCriterion, as_goal, smooth
from equipoise.goals.base import log_ratio
from equipoise.metrics import METRICS, best_threshold, fbeta
from equipoise.objectives.sampling import evenly, rows_of_classes

EXAMPLES = [recipe for kind in GOALS.values() for recipe in kind.examples() if not recipe.is_known]
SMOOTH = [each for each in EXAMPLES if isinstance(each.resolve([0.6, 0.4]), SmoothCriterion)]
PAIRS = [MetricGoal(name) for name in ("f1", "f0.5", "f2", *sorted(METRICS))]


def drawn(seed, n_rows, k, *, sharp=1.3):
    """Rows of unequally frequent Gaussian classes, with their true probabilities."""
    rng = np.random.default_rng(seed)
    share = np.sort(rng.dirichlet(np.full(k, 2.0)) * 0.8 + 0.2 / k)[::-1]
    labels = np.concatenate([np.repeat(np.arange(k), 3), rng.choice(k, n_rows - 3 * k, p=share)])
    centres = sharp * rng.normal(size=(k, 2))
    X = centres[labels] + rng.normal(size=(n_rows, 2))
    logs = np.log(share) - ((X[:, None] - centres) ** 2).sum(axis=2) / 2
    table = np.exp(logs - logs.max(axis=1, keepdims=True))
    return Predictions(table / table.sum(axis=1, keepdims=True), labels, np.ones(n_rows))


def tuned(rows, goal, pooling=2.0):
    """The weights for all rows, and the value of the goal by them."""
    criterion = as_goal(goal).resolve(rows.prior)
    every = [np.ones(len(rows.labels), dtype=bool)]
    (weights,) = criterion.tune(rows, every, pooling=pooling, seed=0)
    return weights, criterion.value(rows.confusion(weights))


def centred(weights):
    logs = np.log(weights)
    return logs - logs.mean()


# Gradients


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("recipe", [*SMOOTH, *PAIRS], ids=repr)
def test_derivatives_of_goals_are_finite_differences(recipe, seed):
    rng = np.random.default_rng(seed)
    k = 2 if recipe in PAIRS else int(rng.integers(2, 7))
    criterion = recipe.resolve(rng.dirichlet(np.full(k, 3.0)))
    recalls = rng.uniform(0.1, 0.9, k)
    shares = criterion.prior * recalls + rng.uniform(0.05, 0.2, k)
    if k == 2:
        wrong = criterion.prior * (1 - recalls)
        shares = criterion.prior * recalls + wrong[::-1]
    point = np.concatenate([recalls, shares])
    value, by_recall, by_share = criterion.smooth(recalls, shares)
    expected = approx_fprime(point, lambda p: criterion.smooth(*np.split(p, 2))[0], 1e-7)
    np.testing.assert_allclose(np.concatenate([by_recall, by_share]), expected, atol=2e-5)
    # The smooth value is near the one that it stands for.
    assert value == pytest.approx(criterion.of_rates(recalls, shares), abs=0.1)


def objectives(rows, criterion, pooling, monkeypatch):
    """The functions that L-BFGS is given, one for each temperature."""
    found = []

    def only_look(function, start, **options):
        found.append(function)
        return SimpleNamespace(x=start)

    monkeypatch.setattr(smooth, "minimize", only_look)
    every = [np.ones(len(rows.labels), dtype=bool)]
    criterion.tune(rows, every, pooling=pooling, seed=0)
    return found


@pytest.mark.parametrize("goal", ["worst_class", LabelCVaR(0.3), "f1_macro", "geometric_mean"])
def test_gradients_of_the_objective_are_finite_differences(goal, monkeypatch):
    rng, rows = np.random.default_rng(0), drawn(0, 300, 4)
    rows = Predictions(rows.probabilities, rows.labels, rng.uniform(0.2, 3.0, 300))
    criterion = as_goal(goal).resolve(rows.prior)
    functions = objectives(rows, criterion, 3.0, monkeypatch)
    assert len(functions) == len(smooth.TEMPERATURES)
    for function in functions:
        point = rng.normal(size=4)
        expected = approx_fprime(point, lambda p, f=function: f(p)[0], 1e-7)
        np.testing.assert_allclose(function(point)[1], expected, atol=1e-5)


# Values


def best_by_search(rows, criterion, weights):
    """The least value that Nelder and Mead find, from several points and these weights."""

    def value(free):
        return criterion.value(rows.confusion(np.exp(np.append(free, 0.0))))

    k = len(weights)
    known = [np.log(weights), np.zeros(k), -np.log(rows.prior) / 2, -np.log(rows.prior)]
    best = np.inf
    for logs in known:
        start = logs[:-1] - logs[-1]
        simplex = np.vstack([start, start + 0.2 * np.eye(k - 1)])
        options = {"maxfev": 150 * k, "initial_simplex": simplex}
        best = min(best, minimize(value, start, method="Nelder-Mead", options=options).fun)
    return best


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize(
    "goal",
    ["worst_class", LabelCVaR(0.3), "balanced_accuracy", "f1_macro", "f2_macro", "geometric_mean"],
    ids=str,
)
def test_tuned_weights_come_within_a_point_of_the_best(goal, k):
    behind = []
    for seed in range(4):
        rows = drawn(seed, 6_000, k)
        weights, value = tuned(rows, goal)
        best = best_by_search(rows, as_goal(goal).resolve(rows.prior), weights)
        behind.append(value - best)
    # The search fits the noise of these very rows, which the soft predictions smooth out.
    assert np.mean(behind) <= 0.01
    assert max(behind) <= 0.025


@pytest.mark.parametrize("metric", ["f1", "f2", "f0.5", "jaccard", "arithmetic_mean"])
def test_two_classes_come_within_a_point_of_the_best_threshold(metric):
    for seed in range(4):
        rows = drawn(seed, 8_000, 2)
        goal = fbeta(float(metric[1:])) if metric[0] == "f" else METRICS[metric]
        best = best_threshold(rows.probabilities[:, 1], rows.labels == 1, metric=goal)
        assert 1 - tuned(rows, goal)[1] >= best.value - 0.01


def test_a_class_that_is_never_the_likeliest_is_found():
    # True probabilities of a class of one row in a hundred stay far below those of the others.
    rng = np.random.default_rng(1)
    y = (rng.random(20_000) < 0.01).astype(int)
    odds = 0.01 / 0.99 * np.exp(rng.normal(size=len(y)) + y - 0.5)
    eta = odds / (1 + odds)
    found = tune_weights(y, eta, "worst_class")
    assert eta.max() < 0.5
    assert max(found.class_risks.values()) < 0.36


# Pooling


def test_weights_of_small_classes_go_to_the_centre_as_pooling_grows():
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], [2_000, 1_000, 8])
    logs = rng.normal(size=(len(labels), 3)) + 2.0 * np.eye(3)[labels] + [0.0, -1.0, -3.0]
    table = np.exp(logs)
    rows = Predictions(table / table.sum(axis=1, keepdims=True), labels, np.ones(len(labels)))
    for goal in ("worst_class", "f1_macro", "geometric_mean"):
        centre = as_goal(goal).resolve(rows.prior).centre
        centre = centre - centre.mean()
        off = [
            np.abs(centred(tuned(rows, goal, pooling)[0]) - centre)
            for pooling in (0.0, 0.5, 5.0, 50.0, 1e7)
        ]
        assert off[0].max() > 0.3
        assert np.all(np.diff([each.max() for each in off]) < 0.02)
        assert off[-1].max() < 0.01
        # Eight rows are held before a thousand are.
        free = centred(tuned(rows, goal, 0.0)[0])
        moved = np.abs(centred(tuned(rows, goal, 50.0)[0]) - free)
        assert moved[2] > moved[:2].max() / 2


def test_repeated_rows_with_as_much_more_pooling_give_the_same():
    rows = drawn(5, 400, 3)
    times = 3
    copies = Predictions(
        np.repeat(rows.probabilities, times, axis=0),
        np.repeat(rows.labels, times),
        np.ones(times * len(rows.labels)),
    )
    weighted = Predictions(rows.probabilities, rows.labels, times * rows.sample_weight)
    for goal in ("worst_class", "f1_macro"):
        first, again = tuned(rows, goal, 2.0)[0], tuned(copies, goal, 2.0 * times)[0]
        np.testing.assert_allclose(centred(again), centred(first), atol=1e-3)
        # Equal weights are no more rows.
        np.testing.assert_allclose(centred(tuned(weighted, goal, 2.0)[0]), centred(first))


@pytest.mark.parametrize("goal", ["worst_class", "f1_macro", "geometric_mean"])
def test_whole_weights_are_repeated_rows_without_pooling(goal):
    rows = drawn(6, 500, 3)
    times = np.random.default_rng(0).integers(1, 5, 500)
    weighted = Predictions(rows.probabilities, rows.labels, times.astype(float))
    copies = Predictions(
        np.repeat(rows.probabilities, times, axis=0),
        np.repeat(rows.labels, times),
        np.ones(times.sum()),
    )
    first, again = (tuned(each, goal, 0.0)[0] for each in (weighted, copies))
    np.testing.assert_allclose(centred(first), centred(again), atol=1e-3)


@pytest.mark.parametrize("goal", ["worst_class", LabelCVaR(0.3), "f1_macro"], ids=str)
def test_the_scale_of_row_weights_does_not_count(goal):
    rows, rng = drawn(7, 500, 3), np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, 500)
    arguments = rows.labels, rows.probabilities, goal
    first = tune_weights(*arguments, sample_weight=weights)
    again = tune_weights(*arguments, sample_weight=4096 * weights)
    np.testing.assert_array_equal(first.rule, again.rule)
    np.testing.assert_array_equal(first.fold_weights, again.fold_weights)


@pytest.mark.parametrize("goal", ["worst_class", LabelCVaR(0.3), "f1_macro", "geometric_mean"])
def test_the_order_of_the_classes_does_not_count(goal):
    rows, folds = drawn(8, 800, 4), np.arange(800) % 5
    order = np.array([2, 0, 3, 1])
    first = tune_weights(rows.labels, rows.probabilities, goal, folds=folds)
    again = tune_weights(
        np.argsort(order)[rows.labels], rows.probabilities[:, order], goal, folds=folds
    )
    np.testing.assert_allclose(again.rule, first.rule[order], rtol=5e-3)


# Cost, and probabilities that are hard


def evaluations(rows, goal, monkeypatch):
    """How often the objective is evaluated."""
    counted = []

    def counting(*arguments, **options):
        found = minimize(*arguments, **options)
        counted.append(found.nfev)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(smooth, "minimize", counting)
        tuned(rows, goal)
    return sum(counted)


@pytest.mark.parametrize("goal", ["worst_class", "balanced_accuracy", "f1_macro"])
def test_more_classes_take_no_more_evaluations(goal, monkeypatch):
    # Bounded by two temperatures of sixty iterations, most of one evaluation, in any case.
    ten, hundred = (
        np.mean(
            [
                evaluations(drawn(seed, 60 * k, k, sharp=0.4 * k**0.5), goal, monkeypatch)
                for seed in range(3)
            ]
        )
        for k in (10, 100)
    )
    assert hundred <= 2 * ten


def test_many_rows_are_tuned_on_a_sample_of_every_class():
    rows, most = drawn(9, 150_000, 4), smooth.MOST_ROWS
    every = np.bincount(rows.labels, minlength=4)
    kept = rows_of_classes(rows.labels, evenly(every, most))
    counts = np.bincount(rows.labels[kept], minlength=4)
    assert 0.9 * most < counts.sum() <= most and len(set(kept.tolist())) == len(kept)
    assert np.all(counts == np.minimum(every, counts.max()))
    parts = [slice(start, None, 2) for start in (0, 1)]  # few enough to be used whole
    halves = [tuned(rows.take(np.arange(len(rows.labels))[part]), "worst_class") for part in parts]
    assert tuned(rows, "worst_class")[1] <= max(value for _, value in halves) + 0.005


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    k=st.integers(2, 5),
    pooling=st.sampled_from([0.0, 0.5, 2.0]),
    goal=st.sampled_from(["worst_class", "f1_macro", "geometric_mean", LabelCVaR(0.2)]),
    power=st.sampled_from([0.1, 1.0, 30.0, 3000.0]),
)
def test_any_probabilities_give_finite_weights(seed, k, pooling, goal, power):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(k), np.arange(k), rng.integers(k, size=20)])
    logs = power * (rng.normal(size=(len(labels), k)) + np.eye(k)[labels])
    table = np.exp(logs - logs.max(axis=1, keepdims=True))
    rows = Predictions(table / table.sum(axis=1, keepdims=True), labels, np.ones(len(labels)))
    weights, value = tuned(rows, goal, pooling)
    assert np.all(np.isfinite(weights)) and np.all(weights > 0) and np.isfinite(value)


@pytest.mark.parametrize("recipe", EXAMPLES, ids=repr)
def test_probabilities_that_are_all_equal_do_no_harm(recipe):
    y = np.repeat([0, 1, 2], [60, 30, 10])
    if recipe.confidence is not None or not isinstance(
        recipe.resolve([1 / 3] * 3), SmoothCriterion
    ):
        recipe = as_goal("worst_class")
    found = tune_weights(y, np.full((100, 3), 1 / 3), recipe)
    assert np.all(np.isfinite(found.rule)) and np.all(np.isfinite(found.fold_weights))
    assert np.all(np.isfinite(np.asarray(found.class_risks)))


def test_a_class_that_the_population_lacks_has_a_finite_weight():
    rows = drawn(10, 300, 3)
    prior = np.array([0.7, 0.3, 0.0])
    assert np.all(np.isfinite(log_ratio(np.full(3, 1 / 3), prior)))
    held_out = HeldOut(rows, np.arange(300) % 5)
    nothing = np.zeros(3, dtype=bool)
    found = tune(held_out, Task(as_goal("worst_class"), np.arange(3), prior, nothing))
    assert np.all(np.isfinite(found.rule))
    assert set(decide(rows.probabilities, found.rule)) <= {0, 1, 2}
    assert isinstance(as_goal("worst_class").uncertainty, WorstClass)
