"""Goals: recipes like sets, and laws that every registered one obeys."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from equipoise import (
    CostMatrix,
    FixedWeights,
    LabelCVaR,
    RecallFloors,
    TunedDecisionClassifier,
    WorstClass,
    tune_weights,
)
from equipoise.decisions import Predictions
from equipoise.decisions.tune import Task, known_rule
from equipoise.exceptions import InvalidParameterError
from equipoise.goals import (
    GOALS,
    Criterion,
    Goal,
    MetricGoal,
    SetGoal,
    SmoothCriterion,
    as_goal,
)
from equipoise.metrics import arithmetic_mean, fbeta
from equipoise.sets import Uncertainty

EXAMPLES = [recipe for kind in GOALS.values() for recipe in kind.examples()]
TUNED = [recipe for recipe in EXAMPLES if not recipe.is_known]
KNOWN = [recipe for recipe in EXAMPLES if recipe.is_known]
each_goal = pytest.mark.parametrize("recipe", EXAMPLES, ids=repr)
each_tuned = pytest.mark.parametrize("recipe", TUNED, ids=repr)
each_known = pytest.mark.parametrize("recipe", KNOWN, ids=repr)
PRIORS = [np.array([0.5, 0.5]), np.array([0.9, 0.1]), np.array([0.7, 0.2, 0.1]), np.full(6, 1 / 6)]


def predictions(k, seed=0, times=1):
    """Rows of every class with probabilities that know something."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(k), times * np.linspace(60, 20, k).astype(int))
    table = rng.dirichlet(np.ones(k), len(labels)) + 0.6 * np.eye(k)[labels]
    return Predictions(table / table.sum(axis=1, keepdims=True), labels, np.ones(len(labels)))


# Recipes


@each_goal
def test_a_recipe_is_cloned_printed_and_compared_by_its_settings(recipe):
    copy = clone(recipe)
    assert copy is not recipe and repr(copy) == repr(recipe)
    assert set(copy.get_params(deep=False)) == set(recipe.get_params(deep=False))
    assert repr(recipe).startswith(f"{type(recipe).__name__}(")


@each_goal
@pytest.mark.parametrize("prior", PRIORS, ids=len)
def test_a_recipe_resolves_for_any_classes(recipe, prior):
    names = np.array([f"class {i}" for i in range(len(prior))])
    for criterion in (recipe.resolve(prior), recipe.resolve(prior, names)):
        assert isinstance(criterion, Criterion)
    few = np.zeros(len(prior), dtype=bool)
    assert type(recipe.resolve_some(prior, names, few)) is type(criterion)


def test_settings_are_reached_through_the_plug_in():
    clf = TunedDecisionClassifier(LogisticRegression(), LabelCVaR(0.5)).set_params(goal__alpha=0.2)
    assert clf.goal.alpha == 0.2
    clf = TunedDecisionClassifier(LogisticRegression(), SetGoal(LabelCVaR(0.5)))
    assert clf.set_params(goal__uncertainty__alpha=0.3).goal.uncertainty.alpha == 0.3
    floors = TunedDecisionClassifier(LogisticRegression(), RecallFloors({"b": 0.5}))
    assert floors.set_params(goal__confidence=0.9).goal.confidence == 0.9


# Criteria


def tables(k, seed=0):
    """Weights of rows by true and predicted class, of which some share is right."""
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(k), k) + rng.uniform(0, 3) * np.eye(k) for _ in range(20)]


@each_goal
@pytest.mark.parametrize("k", [2, 5])
def test_the_scale_of_a_table_does_not_count(recipe, k):
    criterion = recipe.resolve(np.full(k, 1 / k))
    for table in tables(k):
        assert criterion.value(7 * table) == pytest.approx(criterion.value(table))
        # Rows that are predicted as a class that is not evaluated are errors.
        others = np.column_stack([table, np.ones(k)])
        assert criterion.value(others) >= criterion.value(table) - 1e-12


@each_goal
def test_more_right_decisions_are_never_worse(recipe):
    totals = np.array([50.0, 30, 20])
    criterion = recipe.resolve(totals / totals.sum())
    for table in tables(3):
        rates = totals[:, None] * table / table.sum(axis=1, keepdims=True)
        better = 0.9 * rates + 0.1 * np.diag(totals)
        assert criterion.value(better) <= criterion.value(rates) + 1e-12
    assert criterion.value(np.diag(totals)) == pytest.approx(0)


@each_tuned
@pytest.mark.parametrize("k", [2, 4])
def test_decisions_on_new_rows_are_as_good_as_the_usual_ones(recipe, k):
    rows, new = predictions(k, times=20), predictions(k, seed=1, times=20)
    criterion = recipe.resolve(rows.prior)
    (weights,) = criterion.tune(rows, [np.ones(len(rows.labels), bool)], pooling=2.0, seed=0)
    usual = [criterion.value(new.confusion(each)) for each in (np.ones(k), 1 / rows.prior)]
    assert criterion.value(new.confusion(weights)) <= min(usual) + 0.01


@each_goal
def test_every_goal_serves_the_plug_in(recipe):
    rows = predictions(3)
    names = np.array(["a", "b", "c"])
    tuned = tune_weights(names[rows.labels], rows.probabilities, recipe)
    assert set(tuned.decide(rows.probabilities)) <= set(names)
    assert (tuned.fold_weights is None) == recipe.is_known
    measures = recipe.resolve(rows.prior).measures
    assert (tuned.metric_value is None) == (measures != "metric" or recipe.is_known)
    assert (tuned.robust_risk is None) == (measures != "risk" or recipe.is_known)


@each_known
def test_known_decisions_are_on_the_scale_of_the_probabilities(recipe):
    prior, shares = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    own = recipe.resolve(prior).known(prior)
    other = recipe.resolve(prior).known(shares)
    odds = own * prior / shares
    np.testing.assert_allclose(other / other[0], odds / odds[0], rtol=1e-12)
    assert shares @ other == pytest.approx(1)


@each_tuned
def test_what_must_be_tuned_is_not_known(recipe):
    with pytest.raises(TypeError, match="weights must be tuned"):
        known_rule(Task(recipe, np.arange(3), np.array([0.5, 0.3, 0.2]), np.zeros(3, dtype=bool)))


# What is taken for a goal


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "SetGoal(uncertainty=LabelCVaR(alpha=0.1))"),
        ("worst_class", "SetGoal(uncertainty=WorstClass())"),
        ("balanced", "SetGoal(uncertainty=FixedWeights(weights='balanced'))"),
        ("standard", "SetGoal(uncertainty=FixedWeights(weights='standard'))"),
        (LabelCVaR(0.2), "SetGoal(uncertainty=LabelCVaR(alpha=0.2))"),
        ("f1_macro", "MetricGoal(metric='f1_macro')"),
        ("f0.5", "MetricGoal(metric='f0.5')"),
        (CostMatrix(2.0), "CostMatrix(costs=2.0)"),
        (RecallFloors(0.5), "RecallFloors(floors=0.5)"),
    ],
    ids=str,
)
def test_a_goal_can_be_given_in_many_ways(value, expected):
    assert repr(as_goal(value)) == expected


@pytest.mark.parametrize("metric", [fbeta(2), arithmetic_mean])
def test_a_metric_can_be_an_object(metric):
    assert as_goal(metric).metric is metric
    assert 0 <= as_goal(metric).resolve([0.8, 0.2]).value(np.array([[3.0, 1], [1, 0]])) <= 1


@pytest.mark.parametrize(
    "value", ["balance", "macro_f", 0.1, [1, 2], {"a": 1}, np.eye(3), WorstClass, {}], ids=str
)
def test_what_is_no_goal_gets_a_sentence_with_all_that_are(value):
    with pytest.raises(InvalidParameterError) as caught:
        as_goal(value)
    message = str(caught.value)
    for word in ("LabelCVaR(0.1)", "FixedWeights(...)", "CostMatrix(...)", "RecallFloors(...)"):
        assert word in message
    assert "'worst_class'" in message and "'f1_macro'" in message and "\n" not in message


@pytest.mark.parametrize("value", ["balanced", "standard", FixedWeights([1, 2]), CostMatrix(1.0)])
def test_known_weights_are_never_tuned(value):
    assert as_goal(value).is_known
    assert not as_goal("balanced_accuracy").is_known


# A goal of one's own


@dataclass(frozen=True)
class SecondRisk(SmoothCriterion):
    """The risk of the second worst class."""

    prior: np.ndarray
    measures: ClassVar = "risk"

    def of_rates(self, recalls, shares):
        return float(np.sort(1 - recalls)[-2])


class SecondWorst(Goal):
    def resolve(self, prior, classes=None):
        return SecondRisk(np.asarray(prior))

    @classmethod
    def examples(cls):
        return [cls()]


def test_a_goal_of_ones_own_is_one_class_and_one_line():
    GOALS.register(SecondWorst)
    try:
        assert GOALS["SecondWorst"] is SecondWorst and isinstance(SecondWorst(), Goal)
        rows = predictions(3)
        clf = TunedDecisionClassifier(LogisticRegression(), SecondWorst(), pooling=0)
        clf.fit(rows.probabilities[:, :2], rows.labels)
        risks = sorted(clf.class_risks_.values())
        assert clf.robust_risk_ == pytest.approx(risks[-2])
        assert repr(clone(clf).goal) == "SecondWorst()"
    finally:
        GOALS.remove("SecondWorst")
    assert "SecondWorst" not in GOALS


def test_a_set_of_ones_own_is_a_goal_at_once():
    class Anything(Uncertainty):
        def resolve(self, prior, classes=None):
            return WorstClass().resolve(prior, classes)

    rows = predictions(3)
    mine = tune_weights(rows.labels, rows.probabilities, Anything())
    assert mine.weights == tune_weights(rows.labels, rows.probabilities, "worst_class").weights


def test_metrics_by_name_resolve_to_what_they_say():
    table = np.array([[6.0, 1], [1, 2]])
    expected = {"f2_macro": 1 - (6 / 7 + 2 / 3) / 2, "accuracy": 0.2}
    for name, value in expected.items():
        assert MetricGoal(name).resolve([0.7, 0.3]).value(table) == pytest.approx(value)
