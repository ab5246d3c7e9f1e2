"""Stages from folds to a choice: frozen values, no leakage, one rule to choose by, bad input."""

from dataclasses import FrozenInstanceError, fields, is_dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from equipoise import RobustClassifier, TunedDecisionClassifier, tune_weights
from equipoise.decisions import (
    Choice,
    Evaluated,
    Folds,
    HeldOut,
    LabelledRows,
    Predictions,
    Splitting,
    Task,
    Training,
    Tuned,
    select,
    split,
)
from equipoise.exceptions import InvalidInputError

STAGES = [Choice, Evaluated, Folds, HeldOut, LabelledRows, Predictions, Task, Training, Tuned]


def table(seed=0, counts=(120, 60, 40)):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(["a", "b", "c"], counts))
    means = {"a": (0, 0), "b": (2, 0), "c": (0, 2)}
    return np.array([means[name] for name in y]) + rng.normal(size=(len(y), 2)), y


@pytest.mark.parametrize("stage", STAGES)
def test_stages_are_values_that_cannot_be_changed(stage):
    assert is_dataclass(stage)
    value = object.__new__(stage)
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(stage)[0].name, None)


# No leakage


@pytest.mark.parametrize("goal", ["worst_class", "f1_macro"])
def test_the_rule_of_a_fold_does_not_know_labels_of_that_fold(goal):
    X, y = table()
    eta = LogisticRegression().fit(X, y).predict_proba(X)
    folds, prior = np.arange(len(y)) % 4, [0.5, 0.3, 0.2]
    first = tune_weights(y, eta, goal, folds=folds, class_prior=prior)
    other = y.copy()
    own = np.flatnonzero(folds == 2)
    other[own] = np.roll(y[own], 1)
    again = tune_weights(other, eta, goal, folds=folds, class_prior=prior)
    # The weights are for probabilities as given, carried over by shares that all labels count in.
    np.testing.assert_allclose(
        first.fold_weights[2] / first.fold_weights[2].sum(),
        again.fold_weights[2] / again.fold_weights[2].sum(),
        rtol=1e-12,
    )
    assert np.abs(first.fold_weights[1] - again.fold_weights[1]).max() > 1e-6


class Neighbours:
    """Four splits of neighbours."""

    def split(self, X, y, groups=None):
        for part in np.array_split(np.arange(len(y)), 4):
            yield np.setdiff1d(np.arange(len(y)), part), part

    def get_n_splits(self, X=None, y=None, groups=None):
        return 4


def test_the_rule_of_a_fold_comes_from_held_out_rows_of_the_others():
    (X, y), learner = table(), LogisticRegression()
    parts = list(Neighbours().split(X, y))
    eta = np.vstack([learner.fit(X[a], y[a]).predict_proba(X[b]) for a, b in parts])
    folds = np.repeat(np.arange(4), [len(test) for _, test in parts])
    expected = tune_weights(y, eta, "worst_class", folds=folds)
    found = TunedDecisionClassifier(learner, "worst_class", cv=Neighbours()).fit(X, y)
    np.testing.assert_allclose(found.fold_weights_, expected.fold_weights, rtol=1e-9)
    # Rows of a fold, moved as they may be, do nothing to what its own rule is tuned on but train.
    told = eta.copy()
    told[folds == 3] = 1 / 3
    again = tune_weights(y, told, "worst_class", folds=folds)
    np.testing.assert_allclose(again.fold_weights[3], expected.fold_weights[3], rtol=1e-9)
    assert np.abs(again.fold_weights[:3] - expected.fold_weights[:3]).max() > 1e-3


# One rule to choose by


def test_the_simplest_within_one_standard_error_of_the_best_is_taken():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=20)
    values = np.array([0.40, 0.31, 0.30, 0.29])
    # Noise that all share says nothing of differences; that of the second one's does.
    without = values[:, None] + 0.01 * noise + np.array([0, 1, 0, 0])[:, None] * 0.01 * noise[::-1]
    chosen = select(values, without)
    assert chosen.index == 1 and chosen.close == (1, 3)
    assert chosen.errors[0] == pytest.approx(0) and chosen.errors[1] > 0.02
    assert select(values, values[:, None] + 0.01 * noise).index == 3


def test_what_is_not_allowed_is_neither_chosen_nor_the_best():
    values = np.array([0.5, 0.2, 0.3, 0.3])
    without = np.tile(values[:, None], 5)
    chosen = select(values, without, np.array([True, False, True, True]))
    assert chosen.index == 2 and chosen.close == (2, 3)


def test_of_equal_candidates_the_first_is_taken():
    values = np.array([0.3, 0.3 - 1e-15, 0.3])
    assert select(values, np.tile(values[:, None], 4)).close == (0, 1, 2)


# Bad input


def test_too_few_rows_of_all_classes_but_one():
    y = np.array(["a"] * 30 + ["b"] * 2 + ["c"] * 2)
    X = np.arange(34.0)[:, None]
    for rare in ("error", "keep", "drop"):
        with pytest.raises(InvalidInputError, match="Fewer than two classes are left"):
            TunedDecisionClassifier(LogisticRegression(), rare_classes=rare).fit(X, y)
        with pytest.raises(InvalidInputError, match="Fewer than two classes are left"):
            tune_weights(y, np.full((34, 3), 1 / 3), rare_classes=rare)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize("kind", [TunedDecisionClassifier, RobustClassifier])
def test_a_class_of_fewer_rows_than_folds(kind):
    X, y = table(counts=(60, 40, 4))
    with pytest.raises(InvalidInputError, match=r"'c' \(4 rows\).*at least 5 rows"):
        kind(LogisticRegression(), "worst_class").fit(X, y)
    kept = kind(LogisticRegression(), "worst_class", rare_classes="keep").fit(X, y)
    assert kept.weights_["c"] == 1 and np.isnan(kept.class_risks_["c"])
    dropped = kind(LogisticRegression(), "worst_class", rare_classes="drop").fit(X, y)
    assert dropped.weights_["c"] == 0 and "c" not in dropped.predict(X)
    assert np.all(dropped.predict_proba(X)[:, 2] == 0)


class Base(ClassifierMixin, BaseEstimator):
    """Class frequencies, by a fit that can go wrong in several ways."""

    def __init__(self, wrong=""):
        self.wrong = wrong

    def fit(self, X, y):
        # One fold's training part lacks the row that is marked.
        if self.wrong in ("error", "own error") and not np.any(X == 77):
            raise (ValueError if self.wrong == "error" else OwnError)("no marked row")
        if self.wrong != "classes":
            self.classes_, counts = np.unique(y, return_counts=True)
            self.shares_ = counts / counts.sum()
        return None if self.wrong == "None" else self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X) - (self.wrong == "rows"), 1))


class OwnError(Exception):
    pass


@pytest.mark.parametrize("kind", [TunedDecisionClassifier, RobustClassifier])
@pytest.mark.parametrize("names", [["a", "b", "c"], [0, 1, 2]], ids=["text", "numbers"])
@pytest.mark.parametrize("wrong", ["error", "own error"])
def test_a_training_that_fails_in_one_fold_names_the_fold(kind, names, wrong):
    X, y = table()
    y = np.array(names)[np.unique(y, return_inverse=True)[1]]
    X[100, 0] = 77
    parts = [(np.setdiff1d(np.arange(220), test), test) for test in np.arange(220).reshape(4, 55)]
    with pytest.raises(InvalidInputError, match=r"Base failed in fold 1 .*no marked row"):
        kind(Base(wrong), cv=parts).fit(X, y)


class FailsWeighted(Base):
    """Fails in one fold where the rows are weighted."""

    def fit(self, X, y, sample_weight=None):
        if sample_weight is not None and not np.any(X == 77):
            raise ValueError("too heavy")
        return super().fit(X, y)


def test_one_of_several_trainings_that_fails_is_named_by_its_weights():
    X, y = table()
    X[100, 0] = 77
    parts = [(np.setdiff1d(np.arange(220), test), test) for test in np.arange(220).reshape(4, 55)]
    with pytest.raises(
        InvalidInputError, match=r"fold 1 of 4 with training weights 0\.\d+, .*: too heavy"
    ):
        RobustClassifier(FailsWeighted(), "worst_class", cv=parts).fit(X, y)


class NumbersInOneFold(Base):
    """Takes text in all folds but one, where it takes numbers alone."""

    def fit(self, X, y):
        if not np.any(X == 77) and y.dtype.kind not in "biu":
            raise ValueError("no text here")
        return super().fit(X, y)


def test_text_is_not_replaced_by_numbers_in_one_fold_in_silence():
    X, y = table()
    X[100, 0] = 77
    parts = [(np.setdiff1d(np.arange(220), test), test) for test in np.arange(220).reshape(4, 55)]
    with pytest.raises(InvalidInputError, match=r"failed in fold 1 .*no text here"):
        TunedDecisionClassifier(NumbersInOneFold(), cv=parts).fit(X, y)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("rows", "must give probabilities for each of"),
        ("None", "Base returned None"),
        ("classes", "Base left no classes_"),
    ],
)
@pytest.mark.parametrize("kind", [TunedDecisionClassifier, RobustClassifier])
def test_a_base_that_breaks_its_contract_is_named(kind, wrong, told):
    with pytest.raises(InvalidInputError, match=told):
        kind(Base(wrong)).fit(*table())


@pytest.mark.parametrize(
    ("row", "told"),
    [(220, "got 220"), (-1, "got -1"), (0.5, "got (110|0).0")],
)
def test_splits_of_rows_that_are_not_there_are_refused(row, told):
    X, y = table()
    parts = [(np.arange(110), np.append(np.arange(110, 219), row))]
    with pytest.raises(
        InvalidInputError, match=f"cv must give numbers of rows from 0 to 219.*{told}"
    ):
        TunedDecisionClassifier(LogisticRegression(), cv=parts).fit(X, y)
    labels = np.unique(y, return_inverse=True)[1]
    parts = [(np.append(np.arange(110), row), np.arange(110, 219))]
    with pytest.raises(InvalidInputError, match=told):
        split(LabelledRows(X, y, labels, np.unique(y), np.ones(len(y))), Splitting(parts))
