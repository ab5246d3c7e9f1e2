"""Classifiers for the class frequencies of unlabelled rows: every one of ours, and any goal."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import (
    CostMatrix,
    LabelCVaR,
    PredictionSets,
    PriorBall,
    PriorBox,
    RecallFloors,
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    TunedDecisionClassifier,
)
from equipoise.blocks import from_blocks
from equipoise.exceptions import InvalidInputError
from equipoise.goals import Floors, PrecisionFloors
from equipoise.shift import calibrate, estimate_prior

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
NAMES = np.array(["a", "b", "c"])


def rows(counts, seed):
    """Rows of Gaussian classes, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(counts)), counts)
    return MEANS[labels] + rng.normal(size=(len(labels), 2)), NAMES[labels]


TRAINING, HELD_OUT = rows([500, 300, 200], 0), rows([500, 300, 200], 1)
NEW = rows([40, 20, 340], 2)
TRUE = np.array([0.1, 0.05, 0.85])
PLAIN = LogisticRegression()
MODEL = LogisticRegression().fit(*TRAINING)

OURS = [
    RobustClassifier(PLAIN, "worst_class"),
    RobustClassifier(PLAIN, LabelCVaR(0.3)),
    RobustClassifier(PLAIN, LabelCVaR("auto")),
    TunedDecisionClassifier(PLAIN, "accuracy"),
    TunedDecisionClassifier(PLAIN, "f1_macro"),
    TunedDecisionClassifier(PLAIN, RecallFloors({"b": 0.8})),
    TunedDecisionClassifier(PLAIN, CostMatrix([[0, 1, 1], [5, 0, 1], [1, 1, 0]])),
    TunedDecisionClassifier(PLAIN, PriorBox({"c": 0.5})),
    TunedDecisionClassifier(PLAIN, PriorBall(0.9, divergence="tv")),
    TunedDecisionClassifier(FrozenEstimator(MODEL), "balanced_accuracy"),
    RobustLogisticRegression("worst_class"),
    RobustLogisticRegression("standard"),
    RobustLogisticRegressionCV("balanced", Cs=[1.0]),
    RobustLinearClassifier("worst_class"),
    RobustnessCV(RobustLogisticRegression(), alphas=[1, 0.5]),
    RobustnessCV(RobustClassifier(PLAIN), alphas=[1, 0.5]),
]


@pytest.mark.parametrize("model", OURS, ids=lambda model: " ".join(repr(model).split()))
def test_every_classifier_adapts_and_is_unchanged(model):
    model = clone(model).fit(*TRAINING)
    before = vars(model).copy()
    adapted = model.adapt(NEW[0], held_out=HELD_OUT)
    assert all(vars(model)[name] is value for name, value in before.items())
    table = adapted.predict_proba(NEW[0])
    # Rows of the new population: mean probabilities are its frequencies.
    np.testing.assert_allclose(table.mean(axis=0), TRUE, atol=0.08)
    assert set(adapted.predict(NEW[0])) <= set(NAMES)
    assert 0 <= adapted.overall_error().estimate <= 1


def test_the_goal_is_that_of_the_classifier():
    model = TunedDecisionClassifier(PLAIN, RecallFloors({"b": 0.95})).fit(*TRAINING)
    X, y = rows([0, 4000, 0], 7)
    assert model.adapt(NEW[0], held_out=HELD_OUT).score(X, y) > 0.9
    # For the overall error class b is nearly never worth it, at a frequency of 5%.
    assert model.adapt(NEW[0], held_out=HELD_OUT, goal="accuracy").score(X, y) < 0.8


@pytest.mark.parametrize("model", [MODEL, make_pipeline(StandardScaler(), PLAIN).fit(*TRAINING)])
def test_an_estimate_adapts_models_of_other_packages(model):
    adapted = estimate_prior(model, NEW[0], held_out=HELD_OUT).adapt()
    assert adapted.score(*NEW) > model.score(*NEW) + 0.03
    assert adapted.estimate.update(rows([20, 10, 170], 3)[0]).adapt().estimate.n_rows == 600


def test_the_method_is_the_estimate_adapted():
    model = RobustLogisticRegression("worst_class").fit(*TRAINING)
    known = calibrate(HELD_OUT[1], model.predict_proba(HELD_OUT[0]))
    one = model.adapt(NEW[0], calibration=known)
    other = estimate_prior(model, NEW[0], calibration=known).adapt("worst_class")
    np.testing.assert_array_equal(one.predict_proba(NEW[0]), other.predict_proba(NEW[0]))
    np.testing.assert_array_equal(one.predict(NEW[0]), other.predict(NEW[0]))


def test_rows_in_chunks_are_predicted_alike():
    adapted = RobustLogisticRegression().fit(*TRAINING).adapt(NEW[0], held_out=HELD_OUT)
    X = NEW[0]
    np.testing.assert_array_equal(
        adapted.predict(from_blocks([(X[:150],), (X[150:],)])), adapted.predict(X)
    )


@pytest.mark.parametrize(
    "goal", [RecallFloors({"b": 0.8}, 0.9), Floors({"b": 0.8}, None, None, 0.9)]
)
def test_floors_of_recalls_hold_under_any_frequencies(goal):
    model = TunedDecisionClassifier(PLAIN, goal).fit(*TRAINING)
    adapted = model.adapt(NEW[0], held_out=HELD_OUT)
    assert "hold under any class frequencies" in adapted.notes[0]
    X, y = rows([0, 4000, 0], 7)
    assert adapted.score(X, y) > 0.8


def test_floors_of_precisions_are_recomputed():
    # At a fifth of the old frequency a class needs a higher threshold for the same precision.
    goal = PrecisionFloors({"b": 0.8})
    model = TunedDecisionClassifier(PLAIN, goal).fit(*TRAINING)
    new, held_out = rows([400, 200, 3_400], 12), rows([5_000, 3_000, 2_000], 11)
    adapted = model.adapt(new[0], held_out=held_out)
    assert "at the estimated ones alone" in adapted.notes[0]
    X, y = rows([4_000, 2_000, 34_000], 8)
    precision = [np.mean(y[clf.predict(X) == "b"] == "b") for clf in (model, adapted)]
    assert precision[1] > 0.75 and precision[1] > precision[0] + 0.05


def test_a_confidence_of_precisions_is_refused():
    model = TunedDecisionClassifier(PLAIN, "accuracy").fit(*TRAINING)
    goal = PrecisionFloors({"a": 0.5}, confidence=0.9)
    with pytest.raises(InvalidInputError, match=r"cannot have a confidence.*confidence=0\.9"):
        model.adapt(NEW[0], held_out=HELD_OUT, goal=goal)


def test_a_box_that_rules_out_the_estimate_says_so():
    model = TunedDecisionClassifier(PLAIN, PriorBox(upper={"c": 0.2})).fit(*TRAINING)
    assert "nothing in common" in model.adapt(NEW[0], held_out=HELD_OUT).notes[0]


SETS = ["standard", "balanced", "worst_class", {"a": 0.8}, PriorBox({"c": 0.5}), LabelCVaR(0.5)]


@pytest.mark.parametrize("goal", SETS, ids=str)
def test_sets_are_recomputed_or_say_that_they_hold(goal):
    sets = PredictionSets(PLAIN, 0.9, goal, random_state=0).fit(*TRAINING)
    before = sets.predict_set(NEW[0])
    adapted = sets.adapt(NEW[0], held_out=HELD_OUT)
    np.testing.assert_array_equal(sets.predict_set(NEW[0]), before)
    np.testing.assert_allclose(adapted.predict_proba(NEW[0]).mean(axis=0), TRUE, atol=0.08)
    assert np.asarray(adapted.estimate_.mean)[2] > 0.7
    relative = goal in ("standard", SETS[4], SETS[5])
    assert ("recomputed" in adapted.notes_[-1]) == relative
    assert np.array_equal(adapted.thresholds_, sets.thresholds_) != relative


def test_marginal_coverage_is_that_of_the_new_population():
    covered = []
    for seed in range(40):
        X, y = rows([100, 60, 200], (seed, 9))
        sets = PredictionSets(FrozenEstimator(MODEL), 0.8, "standard").fit(X, y)
        adapted = sets.adapt(NEW[0], held_out=HELD_OUT)
        X, y = rows([400, 200, 3400], (seed, 10))
        labels = np.searchsorted(NAMES, y)
        covered.append(
            [each.predict_set(X)[np.arange(4000), labels].mean() for each in (sets, adapted)]
        )
    # The sets before are not for these rows.
    assert abs(np.mean(covered, axis=0)[1] - 0.8) < 0.02 < abs(np.mean(covered, axis=0)[0] - 0.8)


def test_an_adapted_classifier_is_its_own_clone():
    adapted = RobustLogisticRegression().fit(*TRAINING).adapt(NEW[0], held_out=HELD_OUT)
    np.testing.assert_array_equal(clone(adapted).predict(NEW[0]), adapted.predict(NEW[0]))


def test_costs_of_rows_are_at_the_new_frequencies():
    adapted = (
        RobustLogisticRegression("worst_class").fit(*TRAINING).adapt(NEW[0], held_out=HELD_OUT)
    )
    likeliest = NAMES[adapted.predict_proba(NEW[0]).argmax(axis=1)]
    np.testing.assert_array_equal(adapted.predict(NEW[0], costs=np.ones((400, 3))), likeliest)
    dear = np.tile([1.0, 1e9, 1.0], (400, 1))
    assert set(adapted.predict(NEW[0], costs=dear)) == {"b"}


def test_the_summary_is_of_the_new_population():
    adapted = RobustLogisticRegression().fit(*TRAINING).adapt(NEW[0], held_out=HELD_OUT)
    np.testing.assert_allclose(adapted.summary().class_prior, np.asarray(adapted.estimate.mean))


def test_what_is_missing_is_named():
    model = RobustLogisticRegression().fit(*TRAINING)
    with pytest.raises(InvalidInputError, match="held_out must be a tuple"):
        model.adapt(NEW[0])
    estimate = estimate_prior(model, NEW[0], held_out=HELD_OUT)
    with pytest.raises(InvalidInputError, match="held_out must be given where a goal has a conf"):
        estimate.adapt(RecallFloors({"b": 0.8}, 0.9))
    table = model.predict_proba(NEW[0])
    with pytest.raises(InvalidInputError, match="made with a model, got one from probabilities"):
        estimate_prior(table, calibration=estimate.calibration).adapt()
