"""Costs by row: the least expected cost, in decisions, predictions and metadata routing."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import (
    CostMatrix,
    LabelCVaR,
    PredictionSets,
    RobustClassifier,
    RobustLogisticRegression,
    RobustnessCV,
    population_proba,
    tune_weights,
)
from equipoise.blocks import from_blocks
from equipoise.exceptions import InvalidInputError
from equipoise.goals import decide_by_costs

RNG = np.random.default_rng(0)
TABLE, COSTS = RNG.dirichlet(np.ones(3), 50), RNG.random((50, 3, 3))


def test_the_expected_cost_of_every_row_is_the_least():
    found = decide_by_costs(TABLE, COSTS)
    for row, (eta, cost) in enumerate(zip(TABLE, COSTS, strict=True)):
        assert found[row] == np.argmin(eta @ cost)


def test_costs_of_missing_a_class_are_a_table_with_equal_rows():
    missing = COSTS[:, :, 0]
    full = missing[:, :, None] * (1 - np.eye(3))
    np.testing.assert_array_equal(decide_by_costs(TABLE, missing), decide_by_costs(TABLE, full))


@pytest.fixture(scope="module")
def data():
    X = RNG.normal(size=(150, 3))
    return X, np.array(["a", "b", "c"])[np.argmax(X + RNG.normal(size=(150, 3)), axis=1)]


def test_equal_costs_of_rows_are_those_of_a_matrix(data):
    X, y = data
    matrix = 1 - np.eye(3) + np.diag([2.0, 1.0], 1)
    model = RobustClassifier(LogisticRegression(), CostMatrix(matrix)).fit(X, y)
    costs = np.tile(matrix, (len(X), 1, 1))
    np.testing.assert_array_equal(model.predict(X, costs=costs), model.predict(X))


def test_probabilities_take_costs_as_well(data):
    X, y = data
    table = LogisticRegression().fit(X, y).predict_proba(X)
    tuned = tune_weights(y, table, "balanced")
    costs = RNG.random((len(X), 3))
    expected = np.array(["a", "b", "c"])[np.argmax(table * costs, axis=1)]
    np.testing.assert_array_equal(tuned.decide(table, costs=costs), expected)


def test_costs_are_routed_through_a_pipeline(data):
    X, y = data
    costs = RNG.random((len(X), 3))
    with sklearn.config_context(enable_metadata_routing=True):
        model = RobustClassifier(LogisticRegression(), "balanced", training="plain", cv=3)
        pipe = make_pipeline(StandardScaler(), model.set_predict_request(costs=True)).fit(X, y)
        found = pipe.predict(X, costs=costs)
    inner = pipe[-1].predict(pipe[:-1].transform(X), costs=costs)
    np.testing.assert_array_equal(found, inner)


@pytest.mark.parametrize(
    ("costs", "match"),
    [
        (np.ones((50, 2)), r"shape \(50, 3, 3\), .*, got \(50, 2\)"),
        (np.full((50, 3), np.nan), "costs must be finite"),
        (-np.ones((50, 3)), "at least 0, got -1"),
        ([["x"] * 3] * 50, "costs must hold numbers"),
    ],
)
def test_errors_name_the_costs(costs, match):
    with pytest.raises(InvalidInputError, match=match):
        decide_by_costs(TABLE, costs)


@pytest.mark.parametrize(
    "model",
    [
        PredictionSets(LogisticRegression(), random_state=0),
        RobustLogisticRegression(LabelCVaR(0.5)),
        RobustnessCV(RobustLogisticRegression(), alphas=[0.5, 1.0]),
        RobustnessCV(RobustClassifier(LogisticRegression(), cv=3), alphas=[0.5, 1.0]),
    ],
    ids=lambda model: f"{type(model).__name__}",
)
def test_every_classifier_with_probabilities_takes_costs_of_rows(data, model):
    X, y = data
    costs = RNG.random((len(X), 3, 3))
    fitted = model.fit(X, y)
    wanted = np.array(["a", "b", "c"])[decide_by_costs(population_proba(fitted, X), costs)]
    np.testing.assert_array_equal(fitted.predict(X, costs=costs), wanted)


def test_costs_are_for_the_new_frequencies_of_an_adapted_classifier(data):
    X, y = data
    model = RobustClassifier(LogisticRegression(), "balanced", training="plain", cv=3).fit(X, y)
    adapted = model.adapt(X[:80], held_out=(X, y), random_state=0)
    costs = RNG.random((len(X), 3))
    wanted = np.array(["a", "b", "c"])[np.argmax(adapted.predict_proba(X) * costs, axis=1)]
    np.testing.assert_array_equal(adapted.predict(X, costs=costs), wanted)


def test_costs_are_cut_with_blocks_of_rows(data):
    X, y = data
    model = RobustClassifier(LogisticRegression(), "balanced", training="plain", cv=3).fit(X, y)
    costs = RNG.random((len(X), 3))
    blocks = from_blocks([(X[:70], None), (X[70:], None)])
    found = model.predict(blocks, costs=costs)
    np.testing.assert_array_equal(found, model.predict(X, costs=costs))
    for n in (len(X) - 1, len(X) + 1):
        with pytest.raises(InvalidInputError, match=f"150 rows of X, got {n}"):
            model.predict(blocks, costs=np.ones((n, 3)))


def test_costs_beside_a_dask_collection_are_refused_with_the_way_out(data):
    X, y = data
    rows = pytest.importorskip("dask.array").from_array(X, chunks=(70, 3))
    model = RobustClassifier(LogisticRegression(), "balanced", training="plain", cv=3).fit(X, y)
    with pytest.raises(InvalidInputError, match="predict its partitions one by one"):
        model.predict(rows, costs=np.ones((len(X), 3)))
