"""Errors of TunedDecisionClassifier and tune_weights: one sentence each."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, ShuffleSplit
from sklearn.svm import LinearSVC

from equipoise import CostMatrix, FixedWeights, LabelCVaR, PriorBox, RecallFloors
from equipoise.estimators import TunedDecisionClassifier, tune_weights
from equipoise.exceptions import (
    ClassMismatchError,
    EmptySetError,
    InvalidInputError,
    InvalidParameterError,
    UnattainableError,
)

RNG = np.random.default_rng(0)
Y = np.repeat(["a", "b", "c"], [50, 25, 15])
X = RNG.normal(size=(90, 2)) + 2 * np.eye(3)[np.repeat([0, 1, 2], [50, 25, 15])][:, :2]
TABLE = LogisticRegression().fit(X, Y).predict_proba(X)
BASE = LogisticRegression()
FITTED = clone(BASE).fit(X, Y)


def costs(**changes):
    """Costs of one for every error, with changes such as ``ab=3``."""
    matrix = 1.0 - np.eye(3)
    for pair, cost in changes.items():
        matrix["abc".index(pair[0]), "abc".index(pair[1])] = cost
    return matrix


class Invented(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are what it is told."""

    def __init__(self, row=(0.2, 0.3, 0.5)):
        self.row = row

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.row, (len(X), 1))


BAD_SETTINGS = {
    "a dict for a goal": (
        {"goal": {"a": 1, "b": 1, "c": 2}},
        InvalidParameterError,
        r"goal must be .* FixedWeights\(\.\.\.\) or CostMatrix\(\.\.\.\) .* got \{'a': 1",
    ),
    "an array for a goal": (
        {"goal": costs()},
        InvalidParameterError,
        r"FixedWeights\(\.\.\.\) or CostMatrix\(\.\.\.\) for known weights or costs",
    ),
    "a confidence of text": (
        {"goal": RecallFloors(0.5, "high")},
        InvalidParameterError,
        r"confidence must be a number in \(0, 1\), got 'high'",
    ),
    "confidence 1": (
        {"goal": RecallFloors(0.5, 1)},
        InvalidParameterError,
        r"confidence must be a number in \(0, 1\), got 1",
    ),
    "a floor of 1 with a confidence": (
        {"goal": RecallFloors(1.0, 0.9)},
        InvalidParameterError,
        r"floors must be in \[0, 1\) for every class, got 1",
    ),
    "unknown weights": (
        {"goal": FixedWeights("heavy")},
        InvalidParameterError,
        "weights must be .*'heavy'",
    ),
    "a class for a goal": (
        {"goal": LabelCVaR},
        InvalidParameterError,
        r"goal must be an uncertainty set such as LabelCVaR\(0\.1\), .* got .*LabelCVaR",
    ),
    "weights of two": (
        {"goal": FixedWeights([1, 2])},
        ClassMismatchError,
        r"3 classes, got .* \(2,\)",
    ),
    "weights lack one": (
        {"goal": FixedWeights({"a": 1, "b": 2})},
        ClassMismatchError,
        "'c' is missing",
    ),
    "weights of others": (
        {"goal": FixedWeights({"a": 1, "b": 2, "c": 3, "d": 4})},
        ClassMismatchError,
        "names 'd', not among the classes 'a', 'b', 'c'",
    ),
    "negative weights": ({"goal": FixedWeights([1, -1, 1])}, InvalidParameterError, "at least 0"),
    "costs of two": (
        {"goal": CostMatrix([[0, 1], [1, 0]])},
        ClassMismatchError,
        r"a row and a column for each of the 3 classes .* got shape \(2, 2\)",
    ),
    "ragged costs": (
        {"goal": CostMatrix([[0, 1, 1], [1, 0], [1, 1, 0]])},
        InvalidInputError,
        "costs, as a matrix, must hold numbers",
    ),
    "costs of text": (
        {"goal": CostMatrix(np.full((3, 3), "x"))},
        InvalidInputError,
        "must hold numbers",
    ),
    "nan costs": (
        {"goal": CostMatrix(costs(ab=np.nan))},
        InvalidInputError,
        "must hold finite costs",
    ),
    "gains for costs": (
        {"goal": CostMatrix(costs(bb=2))},
        InvalidInputError,
        "where class 'b' is true, predicting it costs 2, and predicting 'a' only 1",
    ),
    "no costs": (
        {"goal": CostMatrix(np.zeros((3, 3)))},
        InvalidInputError,
        "costs must be higher for some wrong prediction",
    ),
    "costs lack a pair": (
        {"goal": CostMatrix({"a": {"b": 1, "c": 1}, "b": {"a": 1}})},
        ClassMismatchError,
        r"lacks \('b', 'c'\); give a cost for every pair",
    ),
    "costs of others": ({"goal": CostMatrix({"a": {"d": 1}})}, ClassMismatchError, "names 'd'"),
    "unknown metric": ({"goal": "auc"}, InvalidParameterError, "goal must be .* got 'auc'"),
    "f1 of three": ({"goal": "f1"}, InvalidParameterError, "two classes and there are 3"),
    "unknown set": ({"goal": 0.1}, InvalidParameterError, "goal must be .* got 0.1"),
    "empty set": ({"goal": PriorBox(upper=0.2)}, EmptySetError, "sum of 0.6"),
    "alpha": ({"goal": LabelCVaR(0)}, InvalidParameterError, "alpha must be .* got 0"),
    "floor above 1": (
        {"goal": RecallFloors({"a": 1.5})},
        InvalidParameterError,
        "got 1.5 for class 'a'",
    ),
    "floor of others": (
        {"goal": RecallFloors({"d": 0.5})},
        ClassMismatchError,
        "names 'd', not among",
    ),
    "floor of text": (
        {"goal": RecallFloors("high")},
        InvalidParameterError,
        "floors must be .*'high'",
    ),
    "impossible floors": (
        {"goal": RecallFloors(0.99)},
        UnattainableError,
        "No decision weights reach recalls of at least 0.99 for class 'a' .* Lower a floor",
    ),
    "too sure a floor": (
        {"goal": RecallFloors({"c": 0.9}, 0.99)},
        UnattainableError,
        "^3 rows of class 'c' cannot show a recall of 0.9 with confidence 0.99: at least 44 ",
    ),
    "pooling -1": (
        {"pooling": -1},
        InvalidParameterError,
        r"pooling must be a number in \[0, inf\), got -1",
    ),
    "pooling text": ({"pooling": "auto"}, InvalidParameterError, "pooling must be .* got 'auto'"),
    "refit": ({"refit": "no"}, InvalidParameterError, "refit must be True or False, got 'no'"),
    "many splits without refit": (
        {"refit": False},
        InvalidParameterError,
        "several splits, got refit=False and 5 splits: hold out a share",
    ),
    "cv 1.5": ({"cv": 1.5}, InvalidParameterError, r"must be in \(0, 1\), got 1.5; for folds give"),
    "cv text": ({"cv": "five"}, InvalidParameterError, "cv must be .* got 'five'"),
    "cv repeats": (
        {"cv": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)},
        InvalidInputError,
        "must test no row twice, got row 0 in 2 test parts",
    ),
    "too many folds": (
        {"cv": 20},
        InvalidInputError,
        r"Too few rows of class 'c' \(15 rows\): decision weights need at least 20 rows",
    ),
    "far too many folds": ({"cv": 40}, InvalidInputError, "Fewer than two classes are left"),
    "too small a share": (
        {"cv": 0.1},
        InvalidInputError,
        r"class 'b' \(25 rows\) and 'c' \(15 rows\): .* at least 30 rows of every class",
    ),
    "no training rows": (
        {"cv": [(np.arange(75), np.arange(75, 90))]},
        InvalidInputError,
        r"'a' \(50 rows\), 'b' \(25 rows\) and 'c' .* rows of every class in all training parts",
    ),
    "rare": ({"rare_classes": "omit"}, InvalidParameterError, "rare_classes must .* got 'omit'"),
    "seed": ({"random_state": "x"}, InvalidParameterError, "random_state must be .* got 'x'"),
    "prior": ({"class_prior": [0.5, 0.2, 0.2]}, InvalidParameterError, "sum to 1, got .* 0.9"),
    "prior of others": ({"class_prior": {"d": 1}}, ClassMismatchError, "names 'd'"),
    "no probabilities": (
        {"estimator": LinearSVC()},
        InvalidParameterError,
        "which LinearSVC does not have: wrap it in .*CalibratedClassifierCV",
    ),
    "a class for an estimator": (
        {"estimator": LogisticRegression},
        InvalidParameterError,
        "estimator must be a classifier with fit and predict_proba",
    ),
    "an array for an estimator": (
        {"estimator": TABLE.tolist()},
        InvalidParameterError,
        "for probabilities use tune_weights",
    ),
    "not fitted": ({"cv": "prefit"}, NotFittedError, "already fitted, and LogisticRegression is"),
    "frozen, not fitted": (
        {"estimator": FrozenEstimator(LogisticRegression())},
        NotFittedError,
        "fit it first",
    ),
    "nan probabilities": (
        {"estimator": Invented((0.5, np.nan, 0.5))},
        InvalidInputError,
        "predict_proba of Invented must be finite, got nan in row 0, column 1: drop such rows",
    ),
    "scores": (
        {"estimator": Invented((0.9, 0.9, 0.1))},
        InvalidInputError,
        r"sum to 1 in every row, got .* \(sum 1.9\); raw scores .* calibrate",
    ),
    "negative probabilities": (
        {"estimator": Invented((-0.5, 0.5, 1.0))},
        InvalidInputError,
        "predict_proba of Invented must be at least 0, got .* in row 0",
    ),
    "too few columns": (
        {"estimator": Invented((0.5, 0.5))},
        InvalidInputError,
        r"one column for each of the 3 classes, got shape \(\d+, 2\)",
    ),
    "three dimensions": (
        {"estimator": Invented(((0.5, 0.5), (0.5, 0.5)))},
        InvalidInputError,
        "must have one column|must be a table",
    ),
}


def parametrized(registry):
    return pytest.mark.parametrize(
        ("settings", "error", "message"), registry.values(), ids=list(registry)
    )


@parametrized(BAD_SETTINGS)
def test_bad_settings_get_a_sentence(settings, error, message):
    clf = TunedDecisionClassifier(**{"estimator": clone(BASE)} | settings)
    with pytest.raises(error, match=message) as caught:
        clf.fit(X, Y)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    assert not [name for name in vars(clf) if name.endswith("_")]


# Only predictions show which floors are attainable, and the base is not at fault here.
EARLY = {
    name: case
    for name, case in BAD_SETTINGS.items()
    if case[1] is not UnattainableError and "estimator" not in case[0]
}


@parametrized(EARLY)
def test_bad_settings_are_refused_before_any_model_is_trained(settings, error, message):
    class Untrained(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise RuntimeError("trained")

    with pytest.raises(error, match=message.replace("LogisticRegression", "Untrained")):
        TunedDecisionClassifier(Untrained(), **settings).fit(X, Y)


BAD_ROWS = {
    "no labels": (X, None, None, "requires y to be passed"),
    "rows without labels": (X, Y[:-1], None, "inconsistent numbers of samples"),
    "one class": (X, np.full(90, "a"), None, r"at least 2 classes, got only one class: \['a'\]"),
    "numbers to predict": (X, X[:, 0], None, "Unknown label type: continuous"),
    "nan label": (X, np.where(Y == "a", np.nan, 1.0), None, "missing labels, got nan in row 0"),
    "missing label": (X, np.where(Y == "a", None, "b"), None, "missing labels, got None in row 0"),
    "nan": (np.where(X > 3, np.nan, X) * np.nan, Y, None, "Input X contains NaN"),
    "negative weight": (X, Y, np.full(90, -1.0), "not be negative"),
    "no weight": (X, Y, np.zeros(90), "positive in at least one row"),
    "a class without weight": (X, Y, (Y != "b") * 1.0, "zero for every row of class 'b'"),
    "too few weights": (X, Y, np.ones(3), r"each of the 90 rows, got .* shape \(3,\)"),
}


@pytest.mark.parametrize(("rows", "y", "weight", "message"), BAD_ROWS.values(), ids=list(BAD_ROWS))
def test_bad_rows_get_a_sentence(rows, y, weight, message):
    clf = TunedDecisionClassifier(BASE)
    with pytest.raises(ValueError, match=message):
        clf.fit(rows, y, sample_weight=weight)
    assert not [name for name in vars(clf) if name.endswith("_")]


BAD_TUNING = {
    "sums": (
        {"probabilities": TABLE * 2},
        InvalidInputError,
        r"probabilities must sum to 1 in every row, got .* \(sum 2\)",
    ),
    "nan": (
        {"probabilities": np.where(TABLE > 0.9, np.nan, TABLE)},
        InvalidInputError,
        "probabilities must be finite, got nan in row 0",
    ),
    "text": ({"probabilities": [["x"] * 3] * 90}, InvalidInputError, "must hold numbers"),
    "two columns": ({"probabilities": TABLE[:, :2]}, InvalidInputError, r"3 classes, got .* 2\)"),
    "rows": ({"probabilities": TABLE[:-1]}, InvalidInputError, "each of the 90 labels, got 89"),
    "one column of three": ({"probabilities": TABLE[:, 0]}, InvalidInputError, "3 classes"),
    "missing class": (
        {"classes": ["a", "b", "c", "d"], "probabilities": np.c_[TABLE, np.zeros(90)]},
        InvalidInputError,
        r"Too few rows of class 'd' \(0 rows\): decision weights need at least 3 rows",
    ),
    "unknown class": (
        {"classes": ["a", "b", "d"]},
        ClassMismatchError,
        "y must hold no labels but those of classes, .* got 'c'",
    ),
    "repeated classes": ({"classes": ["a", "b", "b"]}, ClassMismatchError, "must be distinct"),
    "a dict for a goal": ({"goal": {"a": 2}}, InvalidParameterError, r"FixedWeights\(\.\.\.\)"),
    "floors": (
        {"goal": RecallFloors({"a": 1.0, "b": 1.0})},
        UnattainableError,
        "at least 1 for class 'a' and 1 for class 'b' together on the tuning rows. Lower a floor",
    ),
    "weights": ({"sample_weight": [1.0]}, InvalidInputError, "each of the 90 rows"),
    "prior": ({"class_prior": [1, 1, 1]}, InvalidParameterError, "sum to 1"),
    "costs": (
        {"goal": CostMatrix([[0, 1], [1, 0]])},
        ClassMismatchError,
        "for each of the 3 classes",
    ),
}


@parametrized(BAD_TUNING)
def test_bad_probabilities_get_a_sentence(settings, error, message):
    with pytest.raises(error, match=message):
        tune_weights(Y, **{"probabilities": TABLE} | settings)


def test_an_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="shrinking"):
        tune_weights(Y, TABLE, shrinking=0.5)


# Fitted estimators and their classes


def test_a_class_missing_from_the_tuning_part_is_named():
    some = Y != "b"
    with pytest.raises(InvalidInputError, match=r"rows of class 'b' \(0 rows\): .* tuning part"):
        TunedDecisionClassifier(FITTED, cv="prefit").fit(X[some], Y[some])
    with pytest.raises(InvalidInputError, match=r"class 'b' \(0 rows\): .* need a row"):
        TunedDecisionClassifier(FITTED, cv="prefit", goal="balanced").fit(X[some], Y[some])


def test_labels_unknown_to_a_fitted_estimator_are_named():
    with pytest.raises(ClassMismatchError, match=r"those of the fitted estimator, .* got 'z'"):
        TunedDecisionClassifier(FITTED, cv="prefit").fit(X, np.where(Y == "a", "z", Y))


def test_a_floor_for_a_class_that_is_kept_untuned_is_refused():
    y = np.where(np.arange(90) < 88, np.where(Y == "c", "b", Y), "c")
    with pytest.raises(InvalidParameterError, match=r"must not name \['c'\], which has too few"):
        TunedDecisionClassifier(BASE, RecallFloors({"c": 0.5}), rare_classes="keep").fit(X, y)


def test_classes_that_a_splitter_never_tests_are_named():
    y = np.where(np.arange(90) < 88, np.where(Y == "c", "b", Y), "c")
    with pytest.raises(InvalidInputError, match=r"Too few rows of class 'c' \(2 rows\)"):
        TunedDecisionClassifier(BASE, cv=ShuffleSplit(1, random_state=0)).fit(X, y)


def test_floors_that_only_all_rows_keep_are_not_evaluated():
    # Two rows of ten are beyond hope: a recall of 0.8, and of 0.75 without a fold that has neither.
    y, eta = np.repeat(["a", "b"], [40, 10]), np.repeat([0.1, 0.9, 0.05], [40, 8, 2])
    tuned = tune_weights(y, eta, RecallFloors({"a": 1.0, "b": 0.8}))
    assert 0.1 < tuned.threshold < 0.9
    assert tuned.class_risks is None and tuned.fold_weights is None


def test_a_class_that_is_not_tuned_cannot_stay_beside_a_confidence():
    goal = RecallFloors({"a": 0.5}, confidence=0.9)
    TunedDecisionClassifier(BASE, goal, rare_classes="keep").fit(X, Y)
    y = np.where(np.arange(90) < 88, np.where(Y == "c", "b", Y), "c")
    message = r"Too few rows of class 'c' .* not for floors with a confidence\)"
    with pytest.raises(InvalidInputError, match=message):
        TunedDecisionClassifier(BASE, goal, rare_classes="keep").fit(X, y)


# Nothing half-done


class Interrupted(LogisticRegression):
    """Stops in the middle of the second fit."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Interrupted.fits += 1
        if Interrupted.fits == 2:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight=sample_weight)


def test_an_interrupt_leaves_the_estimator_as_it_was():
    clf = TunedDecisionClassifier(BASE, goal="accuracy").fit(X, Y)
    before = dict(vars(clf))
    clf.estimator = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X[:, :1], Y)
    after = dict(vars(clf)) | {"estimator": BASE}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)


def test_what_is_not_fitted_says_so():
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(TunedDecisionClassifier(BASE), method)(X)
