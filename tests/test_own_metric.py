"""Goals of one's own: functions of the confusion matrix, and scorers of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, log_loss, make_scorer, matthews_corrcoef

from equipoise import RobustClassifier, tune_weights
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.goals import MetricGoal, as_goal

RNG = np.random.default_rng(0)
PRIOR = np.array([0.75, 0.2, 0.05])


def kappa(shares):
    """Cohen's kappa."""
    expected = shares.sum(axis=0) @ shares.sum(axis=1)
    return (np.trace(shares) - expected) / (1 - expected)


def kappa_gradient(shares):
    by_true, by_decision = shares.sum(axis=1), shares.sum(axis=0)
    expected, right = by_true @ by_decision, np.trace(shares)
    of_expected = by_decision[:, None] + by_true[None, :]
    return np.eye(len(shares)) / (1 - expected) - of_expected * (1 - right) / (1 - expected) ** 2


def accuracy(shares):
    return np.trace(shares)


@pytest.fixture(scope="module")
def rows():
    y = RNG.choice(3, 1200, p=PRIOR)
    logits = np.eye(3)[y] * 1.5 + np.log(PRIOR) + RNG.normal(size=(1200, 3))
    table = np.exp(logits)
    return y, table / table.sum(axis=1, keepdims=True)


def test_the_gradient_of_soft_predictions_is_that_of_their_value(rows):
    from scipy.optimize import check_grad

    from equipoise.goals.labelled_predictions import Predictions
    from equipoise.goals.smooth import counted_rows

    y, table = rows
    criterion = MetricGoal(kappa, kappa_gradient).resolve(PRIOR)
    own = counted_rows(Predictions(table, y, np.ones(len(y))), np.ones(len(y), bool), PRIOR)
    soft = criterion.soft(table, own)
    error = check_grad(lambda t: soft(np.exp(t))[0], lambda t: soft(np.exp(t))[1], np.zeros(3))
    assert error < 1e-6
    by_differences = MetricGoal(kappa).resolve(PRIOR).soft(table, own)
    factors = np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(by_differences(factors)[1], soft(factors)[1], rtol=1e-6, atol=1e-9)


def test_a_function_of_labels_is_refused_with_the_way_out():
    with pytest.raises(InvalidParameterError, match=r"confusion matrix alone.*make_scorer"):
        MetricGoal(matthews_corrcoef).resolve(PRIOR)
    assert as_goal(make_scorer(matthews_corrcoef)).resolve(PRIOR).value(np.eye(3)) == 0


def test_a_scorer_without_weights_is_refused_with_the_way_out():
    def share_right(y_true, y_pred):
        return np.mean(y_true == y_pred)

    with pytest.raises(InvalidParameterError, match="must take sample_weight"):
        MetricGoal(make_scorer(share_right)).resolve(PRIOR)


def test_a_function_sees_confusion_matrices_alone(rows):
    y, table = rows
    seen = []

    def function(shares):
        seen.append(shares.copy())
        return kappa(shares)

    tune_weights(y, table, MetricGoal(function))
    shares = np.bincount(y) / len(y)
    for each in seen:
        assert np.all(each >= 0)
        np.testing.assert_allclose(each.sum(axis=1), shares, rtol=1e-9)


def test_a_function_is_tuned_as_the_metric_that_it_is(rows):
    y, table = rows
    own, known = (tune_weights(y, table, goal) for goal in (MetricGoal(accuracy), "accuracy"))
    assert own.metric_value == pytest.approx(known.metric_value, abs=0.01)


def test_tuning_raises_the_function_above_default_predictions(rows):
    y, table = rows
    shifted = table * np.array([3.0, 1.0, 0.3])
    shifted /= shifted.sum(axis=1, keepdims=True)
    found = tune_weights(y, shifted, MetricGoal(kappa, kappa_gradient))
    default = cohen_kappa_score(y, shifted.argmax(axis=1))
    assert found.metric_value > default + 0.02
    assert cohen_kappa_score(y, found.decide(shifted)) > default + 0.02


def test_scorers_are_functions_of_the_confusion_matrix(rows):
    y, table = rows
    for scorer in ("matthews_corrcoef", make_scorer(cohen_kappa_score)):
        goal = as_goal(scorer)
        assert isinstance(goal, MetricGoal) and isinstance(clone(goal), MetricGoal)
        criterion = goal.resolve(np.bincount(y) / len(y))
        predicted = table.argmax(axis=1)
        counts = np.zeros((3, 3))
        np.add.at(counts, (y, predicted), 1.0)
        metric = matthews_corrcoef if isinstance(scorer, str) else cohen_kappa_score
        assert 1 - criterion.value(counts) == pytest.approx(metric(y, predicted))


def test_an_estimator_takes_a_function():
    X = RNG.normal(size=(200, 2))
    y = (X[:, 0] + RNG.normal(size=200) > 0.8).astype(int)
    model = RobustClassifier(LogisticRegression(), MetricGoal(kappa), cv=3, training="plain")
    assert 0 < model.fit(X, y).metric_value_ < 1


@pytest.mark.parametrize("scorer", ["roc_auc", "neg_log_loss", "r2", make_scorer(log_loss)])
def test_a_scorer_of_something_else_is_refused(scorer):
    message = r"determined by the confusion matrix|which decision weights do not improve"
    with pytest.raises(InvalidParameterError, match=message):
        MetricGoal(scorer).resolve(PRIOR, ["a", "b", "c"])


def test_a_function_must_return_a_number():
    with pytest.raises(InvalidInputError, match="must return a finite number, got"):
        MetricGoal(lambda shares: shares[0]).resolve(PRIOR).value(np.eye(3))


def test_a_scorer_of_very_many_classes_is_refused_with_what_to_do():
    with pytest.raises(
        InvalidParameterError,
        match=r"more than 200 classes, got the scorer 'f1_weighted' for 201: ",
    ):
        MetricGoal("f1_weighted").resolve(np.full(201, 1 / 201))


def test_a_scorer_of_the_order_of_rows_is_refused():
    def of_first_row(y_true, y_pred, sample_weight=None):
        return float(y_true[0] == y_pred[0])

    with pytest.raises(InvalidParameterError, match="rows of the same confusion matrix"):
        MetricGoal(make_scorer(of_first_row)).resolve(PRIOR)


@pytest.mark.parametrize(
    "gradient",
    [
        lambda shares: np.ones(3),
        lambda shares: 1.0,
        lambda shares: shares * np.nan,
        lambda shares: "steep",
    ],
)
def test_a_gradient_must_have_the_shape_of_the_matrix_and_be_finite(rows, gradient):
    with pytest.raises(InvalidInputError, match=r"gradient must return .* the \(3, 3\) cells"):
        tune_weights(*rows, MetricGoal(accuracy, gradient))


@pytest.mark.parametrize(
    ("metric", "gradient"), [(accuracy, 3.0), ("f1_macro", kappa_gradient), ("r2", kappa_gradient)]
)
def test_a_gradient_stands_beside_a_function_alone(metric, gradient):
    with pytest.raises(InvalidParameterError, match="gradient must be a function of the confusion"):
        MetricGoal(metric, gradient).resolve(PRIOR)


def test_a_function_that_returns_text_is_refused():
    with pytest.raises(InvalidInputError, match="must return a finite number, got 'high'"):
        MetricGoal(lambda shares: "high").resolve(PRIOR).value(np.eye(3))
