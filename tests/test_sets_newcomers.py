"""Prediction sets in the hands of newcomers: labels in columns, abstention, wrong arguments."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import PredictionSets, PriorBox, RobustClassifier, load_model, save_model
from equipoise.estimators import GivenProbabilities
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(["common", "middle", "rare"], [400, 120, 60])
    means = {"common": 0.0, "middle": 1.5, "rare": 3.0}
    X = np.array([means[each] for each in y])[:, None] + rng.normal(size=(len(y), 2))
    return X, y


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"abstain": np.array([1, 2])}, r"abstain must be None, .*, got array\(\[1, 2\]\)"),
        ({"cv": 1}, r"cv must be a share of the rows in \(0, 1\), a number of folds .*, got 1"),
        ({"goal": [0.9, 0.8, 0.9]}, r"or \{class: level\}, got \[0.9, 0.8, 0.9\]"),
    ],
)
def test_errors_say_what_is_possible(data, options, match):
    with pytest.raises(InvalidParameterError, match=match):
        PredictionSets(LogisticRegression(), **options).fit(*data)


@pytest.mark.parametrize("abstain", ["several", 1])
def test_abstaining_models_are_scored_and_saved(data, abstain, tmp_path):
    X, y = data
    sets = PredictionSets(LogisticRegression(), 0.95, "worst_class", abstain=abstain).fit(X, y)
    predicted = sets.predict(X)
    assert any(each is None for each in predicted)
    right = np.array([own == label for own, label in zip(predicted, y, strict=True)])
    assert sets.score(X, y) == right.mean()
    weights = np.arange(len(y)) % 3
    assert sets.score(X, y, weights) == pytest.approx(right @ weights / weights.sum())
    save_model(sets, tmp_path / "sets.equipoise")
    again = load_model(tmp_path / "sets.equipoise")
    np.testing.assert_array_equal(again.predict(X), predicted)


def test_labels_may_be_a_column_and_must_be_as_many_as_rows(data):
    X, y = data
    sets = PredictionSets(LogisticRegression(), random_state=0).fit(X, y)
    assert sets.evaluate(X, y[:, None]).coverage == sets.evaluate(X, y).coverage
    for method in (sets.evaluate, sets.coverage_path, sets.score):
        with pytest.raises(InvalidInputError, match="one entry for each of the 580 rows of X"):
            method(X, y[:-1])


def test_a_goal_without_a_weighting_has_no_masses(data):
    sets = PredictionSets(LogisticRegression(), goal={"rare": 0.9}).fit(*data)
    assert not hasattr(sets, "masses_")


def test_notes_of_a_box_do_not_deny_that_it_speaks_of_frequencies(data):
    X, y = np.round(data[0] / 2), data[1]
    sets = PredictionSets(LogisticRegression(), goal=PriorBox(upper=0.8), random_state=0)
    # So few different rows that the thresholds stay the same.
    moved = sets.fit(X, y).adapt(X[::2], held_out=(X, y), random_state=0)
    np.testing.assert_array_equal(moved.thresholds_, sets.thresholds_)
    assert "intersected" in moved.notes_[0] and "were recomputed" in moved.notes_[1]
    by_class = PredictionSets(LogisticRegression(), goal={}, random_state=0).fit(X, y)
    (note,) = by_class.adapt(X[::2], held_out=(X, y), random_state=0).notes_
    assert "do not depend on class frequencies" in note


def test_sets_that_are_not_fitted_cannot_be_adapted(data):
    with pytest.raises(NotFittedError):
        PredictionSets(LogisticRegression()).adapt(data[0])


def test_probabilities_in_sparse_rows_or_of_equal_names_are_refused():
    sparse, y = csr_array(np.eye(3)), np.arange(3)
    with pytest.raises(InvalidInputError, match="must be a dense array here, got a csr_array"):
        PredictionSets(FrozenEstimator(GivenProbabilities(y))).fit(sparse, y)
    with pytest.raises(ClassMismatchError, match="classes must be distinct"):
        PredictionSets(FrozenEstimator(GivenProbabilities([0, 1, 1]))).fit(np.eye(3), [0, 1, 1])


def test_a_row_of_each_class_leaves_none_to_calibrate_on(data):
    X, y = data
    with pytest.raises(InvalidInputError, match="one to train and one to calibrate on"):
        PredictionSets(LogisticRegression()).fit(X[[0, 500]], y[[0, 500]])


def test_folds_of_few_rows_are_not_said_to_be_for_weights(data):
    with pytest.raises(InvalidInputError, match="folds need at least 600 rows of every class"):
        PredictionSets(LogisticRegression(), cv=600).fit(*data)


def test_levels_of_a_path_are_numbers(data):
    sets = PredictionSets(LogisticRegression(), random_state=0).fit(*data)
    with pytest.raises(InvalidParameterError, match=r"alphas must be a list .*, got \['all'\]"):
        sets.coverage_path(*data, ["all"])


def test_the_path_of_a_pipeline_is_refused_with_the_way_out(data):
    CoveragePathDisplay = pytest.importorskip("equipoise.display").CoveragePathDisplay
    pipeline = make_pipeline(StandardScaler(), PredictionSets(LogisticRegression())).fit(*data)
    with pytest.raises(InvalidInputError, match=r"got Pipeline: of a pipeline give pipeline\[-1\]"):
        CoveragePathDisplay.from_estimator(pipeline, *data)


def test_wrong_goals_of_decisions_are_told_of_floors_and_functions(data):
    with pytest.raises(InvalidParameterError, match=r"or Floors\(...\), a function of the"):
        RobustClassifier(LogisticRegression(), "precision at 80%").fit(*data)
