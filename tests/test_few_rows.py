"""Classes of a handful of rows: they do not decide what all others pay, and not in silence."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from equipoise import LabelCVaR, RobustLogisticRegression, TunedDecisionClassifier, tune_weights
from equipoise.exceptions import CostlyDecisionsWarning, InvalidInputError, InvalidParameterError

COUNTS = (600, 300, 6)
NAMES = np.array(["common", "other", "rare"])


def rows(seed, counts=COUNTS, rare_classes=(0.0, 0.0)):
    """Three Gaussian classes in the plane; the rare one around the centre of the first."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), counts)
    means = np.array([[0.0, 0.0], [2.0, 0.0], rare_classes])
    return means[labels] + rng.normal(size=(len(labels), 2)), NAMES[labels]


@pytest.mark.parametrize("goal", ["worst_class", "f1_macro"])
def test_what_six_rows_happen_to_be_counts_less_when_pooled(goal):
    def spread(**options):
        """How far the log-weight of the rare class varies from draw to draw."""
        logs = []
        for seed in range(8):
            X, y = rows(seed)
            eta = LogisticRegression().fit(*rows(100)).predict_proba(X)
            found = tune_weights(y, eta, goal, **options).rule
            logs.append(np.log(found[2]) - np.log(found[:2]).mean())
        return np.std(logs)

    by_pooling = [spread(pooling=0.0), spread(), spread(pooling=50.0)]
    assert by_pooling[1] < 1.1 * by_pooling[0]
    assert by_pooling[2] < by_pooling[0] / 2


@pytest.mark.parametrize("goal", ["worst_class", LabelCVaR(0.05)])
def test_six_rows_that_can_be_told_apart_are_found(goal):
    X, y = rows(0, rare_classes=(4.0, 4.0))
    clf = TunedDecisionClassifier(LogisticRegression(), goal).fit(X, y)
    new, true = rows(1, (0, 0, 1000), rare_classes=(4.0, 4.0))
    assert np.mean(clf.predict(new) != true) < 0.15


def two_classes(n_rare, seed=0):
    """Labels, and the true probability of the rare class."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["common", "rare"], [3000, n_rare])
    odds = n_rare / 3000 * np.exp(rng.normal(size=len(y)) + (y == "rare") - 0.5)
    return y, odds / (1 + odds)


def test_a_rise_of_the_overall_error_is_said_once():
    y, eta = two_classes(6)
    with pytest.warns(CostlyDecisionsWarning) as caught:
        tuned = tune_weights(y, eta, "worst_class")
    summary = tuned.summary()
    assert summary.tuned_error > summary.default_error + 0.1
    (said,) = (str(each.message) for each in caught)
    assert f"{100 * summary.default_error:.1f}% to {100 * summary.tuned_error:.1f}%" in said
    assert "'rare' (6 rows)" in said
    # By hand: with default predictions nothing is rare.
    assert np.isclose(summary.default_error, np.mean((y == "rare") != (eta > 0.5)))


def test_nothing_is_said_of_decisions_that_cost_little():
    X, y = rows(0, rare_classes=(9.0, 9.0))
    TunedDecisionClassifier(LogisticRegression(), "worst_class").fit(X, y)
    tune_weights(*two_classes(6), "accuracy")


def test_classes_of_fewer_rows_can_be_left_out():
    X, y = rows(0)
    clf = TunedDecisionClassifier(
        LogisticRegression(), "worst_class", rare_classes="drop", min_rows=7
    ).fit(X, y)
    some = y != "rare"
    alone = TunedDecisionClassifier(LogisticRegression(), "worst_class").fit(X[some], y[some])
    assert np.array_equal(clf.predict(X), alone.predict(X)) and clf.weights_["rare"] == 0
    kept = TunedDecisionClassifier(
        LogisticRegression(), "worst_class", rare_classes="keep", min_rows=7
    ).fit(X, y)
    assert kept.weights_["rare"] == 1 and np.isnan(kept.class_risks_["rare"])
    eta = kept.predict_proba(X)
    given = tune_weights(y, eta, "worst_class", rare_classes="drop", min_rows=7)
    assert given.weights["rare"] == 0


@pytest.mark.parametrize("way", ["estimator", "given"])
def test_a_class_of_fewer_rows_than_asked_for_is_refused(way):
    X, y = rows(0, (40, 40, 6))
    clf = TunedDecisionClassifier(LogisticRegression(), "worst_class", min_rows=7)
    given, eta = partial(tune_weights, goal="worst_class", min_rows=7), np.full((len(y), 3), 1 / 3)
    ways = {"estimator": partial(clf.fit, X, y), "given": partial(given, y, eta)}
    with pytest.raises(InvalidInputError, match=r"'rare' \(6 rows\).*at least 7 rows"):
        ways[way]()
    with pytest.raises(InvalidParameterError, match="min_rows"):
        TunedDecisionClassifier(LogisticRegression(), "worst_class", min_rows=0).fit(X, y)


def test_what_is_to_be_said_of_a_training_is_said_once():
    X, y = rows(0, (200, 100, 15))
    goal = LabelCVaR(0.05)
    with warnings.catch_warnings(record=True) as alone:
        warnings.simplefilter("always")
        RobustLogisticRegression(goal).fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TunedDecisionClassifier(RobustLogisticRegression(goal), goal).fit(X, y)
    told = [str(each.message) for each in alone]
    assert len(told) == 1 and "may memorise" in told[0]
    assert [str(each.message) for each in caught if "may memorise" in str(each.message)] == told
    # Of a model that is kept it is said, too.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        TunedDecisionClassifier(RobustLogisticRegression(goal), goal, cv=0.3, refit=False).fit(X, y)
    assert sum("may memorise" in str(each.message) for each in caught) == 1
