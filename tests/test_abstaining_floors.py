"""Floors with rows that no class may claim: kept, at the least risk, wherever the rule goes."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.exceptions import UnattainableError
from equipoise.goals import Floors, PrecisionFloors
from equipoise.goals.labelled_predictions import Predictions, decide


def value_of(y, decisions, weights, floors):
    """The risk, with 1000 for a rate that is short by one, from the definitions of the rates."""
    cost = 1 - weights[decisions == y].sum() / weights.sum()
    for name, by_class in floors.items():
        for label, floor in by_class.items():
            mine, named = y == label, decisions == label
            of = {"recall": mine, "precision": named, "false_positive_rate": ~mine}[name]
            hits = {"recall": named, "precision": mine, "false_positive_rate": named}[name]
            if weights[of].sum() > 0:
                rate = weights[of & hits].sum() / weights[of].sum()
                short = rate - floor if name == "false_positive_rate" else floor - rate
                cost += 1e3 * max(short, 0)
    return cost


def tuned(table, y, weights, goal, k):
    """Decisions of the tuned rule on the rows that it was tuned on."""
    rows = Predictions(table, y, weights)
    criterion = goal.resolve(rows.prior, np.arange(k))
    every = [np.ones(len(y), dtype=bool)]
    (rule,) = criterion.tune(rows, every, pooling=0.0, seed=0)
    return decide(table, rule)


def by_cuts(p):
    """Decisions of all rules for two classes: the first below a cut, the second from another on."""
    for low, high in combinations_with_replacement([*np.unique(p), np.inf], 2):
        decisions = np.where(p < low, 0, np.where(p >= high, 1, 2))
        # No weight makes an impossible class be predicted.
        if not np.any((p == 1) & (decisions == 0) | (p == 0) & (decisions == 1)):
            yield decisions


levels = st.none() | st.sampled_from([0.3, 0.5, 0.7, 0.8, 0.9, 1.0])
some_rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 30), st.sampled_from([1.0, 2.0, 3.0])),
    min_size=2,
    max_size=9,
).filter(lambda rows: len({label for label, *_ in rows}) == 2)


@settings(max_examples=300, deadline=None)
@given(rows=some_rows, precision=st.tuples(levels, levels), recall=levels, alarms=levels)
def test_two_classes_have_the_best_rule_of_all(rows, precision, recall, alarms):
    y, p, weights = (np.array(each) for each in zip(*rows, strict=True))
    p = p / 30
    table = np.column_stack([1 - p, p])
    floors = {
        "recall": {} if recall is None else {1: recall},
        "precision": {i: each for i, each in enumerate(precision) if each is not None},
        "false_positive_rate": {} if alarms is None else {0: 1 - alarms},
    }
    least = min(value_of(y, each, weights, floors) for each in by_cuts(p))
    goal = Floors(**floors, abstain=True)
    if least > 2:
        with pytest.raises(UnattainableError, match="No decision weights"):
            tuned(table, y, weights, goal, 2)
        return
    decisions = tuned(table, y, weights, goal, 2)
    assert value_of(y, decisions, weights, floors) == pytest.approx(least, abs=1e-9)


def claimed(rng, n, k, lead=1.5):
    """Labels and probabilities of classes that differ in their own column."""
    y = rng.choice(k, n, p=np.arange(k, 0, -1) / np.arange(k + 1).sum())
    logits = np.log(np.arange(k, 0, -1)) + lead * (np.eye(k)[y] + rng.normal(size=(n, k)))
    table = np.exp(logits)
    return y, table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("floor", [0.6, 0.95, 1.0])
def test_precisions_of_all_classes_are_always_kept(k, floor):
    y, table = claimed(np.random.default_rng(k), 600, k)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 600)
    decisions = tuned(table, y, weights, PrecisionFloors(floor, abstain=True), k)
    for label in range(k):
        named = decisions == label
        assert weights[named] @ (y[named] == label) >= (floor - 1e-9) * weights[named].sum()
    assert np.any(decisions < k)


@pytest.mark.parametrize("k", [3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_more_classes_are_no_worse_than_one_threshold_for_all(seed, k):
    y, table = claimed(np.random.default_rng(seed), 500, k)
    weights, floors = np.ones(500), {"precision": dict.fromkeys(range(k), 0.8)}
    best, largest = table.argmax(axis=1), table.max(axis=1)
    common = (np.where(largest >= cut, best, k) for cut in [0.0, *largest])
    least = min(value_of(y, each, weights, floors) for each in common)
    decisions = tuned(table, y, weights, Floors(**floors, abstain=True), k)
    assert value_of(y, decisions, weights, floors) <= least + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_abstaining_is_never_worse_and_only_where_it_helps(seed):
    rng = np.random.default_rng(seed)
    y, table = claimed(rng, 300, 3)
    weights, floors = np.ones(300), {"recall": {2: 0.3}, "precision": {0: 0.5, 2: 0.3}}
    without = tuned(table, y, weights, Floors(**floors), 3)
    abstaining = tuned(table, y, weights, Floors(**floors, abstain=True), 3)
    least = value_of(y, without, weights, floors)
    assert value_of(y, abstaining, weights, floors) <= least + 1e-9
    # A row without a class is right for no recall.
    free = tuned(table, y, weights, Floors(recall={2: 0.6}, abstain=True), 3)
    assert not np.any(free == 3)
