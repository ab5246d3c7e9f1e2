"""Scorers inside scikit-learn's model selection."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.losses import LOSSES
from equipoise.risks import (
    RiskScorer,
    class_risks,
    classifier_risks,
)
from equipoise.sets import FixedWeights, LabelCVaR, WorstClass

SCORERS = [
    RiskScorer(WorstClass()),
    RiskScorer(LabelCVaR(0.3), loss="cross_entropy"),
    RiskScorer(LabelCVaR(0.3), loss="margin", class_prior=[0.2, 0.3, 0.5]),
    RiskScorer("balanced", loss="hinge"),
    RiskScorer(FixedWeights({"a": 1, "b": 2, "c": 3})),
]


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=3, weights=[0.7, 0.2, 0.1], random_state=0
    )
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module")
def fitted(data):
    return LogisticRegression().fit(*data)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_chooses_what_is_asked_of_the_estimator(loss, data, fitted):
    X, y = data
    response = getattr(fitted, LOSSES[loss].response_method)(X)
    expected = class_risks(y, response, loss=loss)
    assert classifier_risks(fitted, X, y, loss=loss) == expected
    assert RiskScorer(WorstClass(), loss=loss)(fitted, X, y) == -expected.worst()
    assert RiskScorer("balanced", loss=loss)(fitted, X, y) == pytest.approx(-expected.balanced())
    recipe = LabelCVaR(0.4)
    assert RiskScorer(recipe, loss=loss)(fitted, X, y) == -expected.robust(recipe)


def test_cross_entropy_of_both_kinds_agree(data, fitted):
    scores = [
        RiskScorer(WorstClass(), loss=loss)(fitted, *data)
        for loss in ("cross_entropy", "cross_entropy_from_scores")
    ]
    assert scores[0] == pytest.approx(scores[1])


@pytest.mark.parametrize("loss", LOSSES)
def test_two_classes_with_a_one_column_decision(loss, data):
    X, y = data[0][data[1] != "c"], data[1][data[1] != "c"]
    model = LogisticRegression().fit(X, y)
    f = model.decision_function(X)
    kinds = {
        "labels": model.predict(X),
        "probabilities": model.predict_proba(X),
        "scores": np.column_stack([-f / 2, f / 2]),
    }
    expected = class_risks(y, kinds[LOSSES[loss].reads], loss=loss).worst()
    assert RiskScorer(WorstClass(), loss=loss)(model, X, y) == pytest.approx(-expected)


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_scorers_are_cloned_and_pickled(scorer, data, fitted):
    expected = scorer(fitted, *data)
    for twin in (clone(scorer), pickle.loads(pickle.dumps(scorer))):
        assert twin is not scorer
        assert twin(fitted, *data) == expected


@pytest.mark.parametrize("scorer", SCORERS, ids=repr)
def test_cross_validation_gives_the_score_of_each_fold(scorer, data):
    X, y = data
    folds = KFold(3, shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    found = cross_val_score(model, X, y, scoring=scorer, cv=folds, error_score="raise")
    expected = [
        scorer(clone(model).fit(X[train], y[train]), X[test], y[test])
        for train, test in folds.split(X)
    ]
    assert found.tolist() == expected
    assert (found < 0).all()


def test_grid_search_takes_the_smallest_risk(data):
    grid = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=RiskScorer(WorstClass()))
    assert clone(grid).fit(*data).best_params_ == {"C": 1.0}


def test_several_scorers_at_once_take_sample_weights(data, fitted):
    scorer, weights = RiskScorer(WorstClass(), loss="margin"), np.linspace(1, 2, len(data[1]))
    both = check_scoring(scoring={"mine": scorer, "accuracy": "accuracy"})
    found = both(fitted, *data, sample_weight=weights)
    assert found["mine"] == scorer(fitted, *data, sample_weight=weights)
    assert found["mine"] != scorer(fitted, *data)


def test_several_scorers_in_cross_validation(data):
    scoring = {"worst": RiskScorer(WorstClass()), "entropy": RiskScorer(loss="cross_entropy")}
    found = cross_validate(LogisticRegression(), *data, scoring=scoring, error_score="raise")
    assert (found["test_worst"] < 0).all()
    assert (found["test_entropy"] < 0).all()


def test_sample_weights_are_routed(data):
    X, y = data
    weights, folds = np.random.default_rng(0).random(len(y)), KFold(3, shuffle=True, random_state=0)
    with config_context(enable_metadata_routing=True):
        scorer = RiskScorer(WorstClass(), loss="margin").set_score_request(sample_weight=True)
        found = cross_val_score(
            LogisticRegression().set_fit_request(sample_weight=False),
            X,
            y,
            scoring=scorer,
            cv=folds,
            params={"sample_weight": weights},
            error_score="raise",
        )
    expected = [
        scorer(LogisticRegression().fit(X[train], y[train]), X[test], y[test], weights[test])
        for train, test in folds.split(X)
    ]
    assert found.tolist() == expected
    plain = cross_val_score(
        LogisticRegression(), X, y, scoring=RiskScorer(WorstClass(), loss="margin")
    )
    assert not np.array_equal(found, plain)


def test_only_sample_weights_can_be_requested():
    with config_context(enable_metadata_routing=True), pytest.raises(TypeError, match="estimator"):
        RiskScorer(WorstClass()).set_score_request(estimator=True)


def test_the_set_is_tuned_by_name():
    scorer = RiskScorer(LabelCVaR(0.5))
    assert scorer.set_params(goal__alpha=0.25).goal.alpha == 0.25
    assert list(RiskScorer().get_params()) == ["class_prior", "goal", "loss"]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_missing_from_the_fold_is_left_out(loss, data, fitted):
    X, y = data
    here = y != "c"
    found = classifier_risks(fitted, X[here], y[here], loss=loss)
    everything = classifier_risks(fitted, X, y, loss=loss)
    assert found == {name: everything[name] for name in "ab"}
    assert sum(found.prior.values()) == pytest.approx(1)


def test_a_given_prior_is_restricted_to_the_classes_present(data, fitted):
    X, y = data
    here = y != "c"
    risks = classifier_risks(fitted, X[here], y[here])
    for prior in ({"a": 0.2, "b": 0.3, "c": 0.5}, [0.2, 0.3, 0.5]):
        scorer = RiskScorer("standard", class_prior=prior)
        expected = 0.4 * risks["a"] + 0.6 * risks["b"]
        assert scorer(fitted, X[here], y[here]) == pytest.approx(-expected)


def test_weights_that_name_a_missing_class_are_an_error(data, fitted):
    X, y = data
    with pytest.raises(ClassMismatchError, match="'c'"):
        RiskScorer(FixedWeights({"a": 1, "b": 2, "c": 3}))(fitted, X[y != "c"], y[y != "c"])


def test_a_class_that_the_estimator_never_saw(data):
    X, y = data
    model = LogisticRegression().fit(X[y != "c"], y[y != "c"])
    assert RiskScorer(WorstClass())(model, X, y) == -1.0
    with pytest.raises(ClassMismatchError, match="got 'c'"):
        RiskScorer(WorstClass(), loss="cross_entropy")(model, X, y)


def test_an_estimator_without_the_method_is_refused(data):
    with pytest.raises(InvalidInputError, match="'hinge' needs an estimator with"):
        RiskScorer(WorstClass(), loss="hinge")(GaussianNB().fit(*data), *data)


def test_metrics_work_with_make_scorer_and_threshold_tuning(data, fitted):
    def worst_class_risk(y_true, y_pred):
        return class_risks(y_true, y_pred).worst()

    X, y = data[0], data[1] == "a"
    scorer = make_scorer(worst_class_risk, greater_is_better=False)
    plain = LogisticRegression().fit(X, y)
    assert scorer(plain, X, y) == RiskScorer(WorstClass())(plain, X, y)
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer).fit(X, y)
    assert scorer(tuned, X, y) > scorer(plain, X, y)


def test_the_default_set_is_that_of_the_library(data, fitted):
    assert RiskScorer()(fitted, *data) == RiskScorer(LabelCVaR(0.1))(fitted, *data)
    assert RiskScorer("worst_class")(fitted, *data) == RiskScorer(WorstClass())(fitted, *data)
