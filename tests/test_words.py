"""Words that are nearly right: the error says which one may be meant, everywhere in one way."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from equipoise import (
    FixedWeights,
    RobustClassifier,
    TunedDecisionClassifier,
    class_risks,
    robust_path,
    tune_weights,
)
from equipoise.estimators import RobustLinearClassifier, RobustnessCV
from equipoise.exceptions import InvalidInputError
from equipoise.goals import GOAL_WORDS, MetricGoal, as_goal, parse_goal
from equipoise.losses import LOSSES, as_loss
from equipoise.metrics import as_metric
from equipoise.sets import PriorBall, as_uncertainty
from equipoise.text import did_you_mean

X = np.random.default_rng(0).normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)
BASE = LogisticRegression()


def hint(call):
    """What the error of a call suggests, or None."""
    with pytest.raises(InvalidInputError) as caught:
        call()
    found = re.search(r"\(did you mean (.*)\?\)", str(caught.value))
    return found[1] if found else None


# As other libraries, other languages and tired people write them.
GOALS = {
    "macro_f1": "'f1_macro'",
    "f1 macro": "'f1_macro'",
    "macro-F1": "'f1_macro'",
    "MacroF1": "'f1_macro'",
    "marco_f1": "'f1_macro'",
    "macro_f1_score": "'f1_macro'",
    "macro_f2": "'f2_macro'",
    "F1": "'f1'",
    "f1_score": "'f1'",
    "jaccard_score": "'jaccard'",
    "worst-class": "'worst_class'",
    "worst class": "'worst_class'",
    "Worst-Class": "'worst_class'",
    "worst": "'worst_class'",
    "class_worst": "'worst_class'",
    "balanced_accuracy_score": "'balanced_accuracy'",
    "accuracy_balanced": "'balanced_accuracy'",
    "accuracy_score": "'accuracy'",
    "Accuracy": "'accuracy'",
    "Balanced": "'balanced'",
    "geometric mean": "'geometric_mean'",
    "standart": "'standard'",
}
CALLS = {
    "lcvar=0.1": ("'lcvar:0.1'", "LabelCVaR(...)"),
    "lcvar 0.3": ("'lcvar:0.3'", "LabelCVaR(...)"),
    "label_cvar(0.1)": ("LabelCVaR", "LabelCVaR(...)"),
    "recall_floors": ("RecallFloors", "RecallFloors(...)"),
}


@pytest.mark.parametrize("word", GOALS)
def test_goals_are_understood_in_python_and_on_the_command_line(word):
    assert hint(lambda: as_goal(word)) == GOALS[word]
    assert hint(lambda: parse_goal(word)) == GOALS[word]


@pytest.mark.parametrize("word", CALLS)
def test_calls_are_written_as_each_place_takes_them(word):
    assert (hint(lambda: parse_goal(word)), hint(lambda: as_goal(word))) == CALLS[word]


def test_the_command_line_prints_it():
    testing = pytest.importorskip("click.testing")
    from equipoise.cli.main import main

    done = testing.CliRunner().invoke(main, ["fit", "rows.csv", "--goal", "macro_f1"])
    assert done.exit_code == 2 and "did you mean 'f1_macro'?" in done.output


PLACES = {
    "goal": (lambda: TunedDecisionClassifier(BASE, goal="worst-class").fit(X, Y), "'worst_class'"),
    "goal of weights": (lambda: tune_weights(Y, X[:, 0] > 0, "macro_f1"), "'f1_macro'"),
    "set": (lambda: as_uncertainty("worst-class"), "'worst_class'"),
    "set as text": (lambda: as_uncertainty("LabelCVaR(0.1)"), "LabelCVaR(...)"),
    "metric": (lambda: as_metric("f1_score", 0.5), "'f1'"),
    "metric goal": (lambda: MetricGoal("accuracy_score").resolve([0.5, 0.5]), "'accuracy'"),
    "loss": (lambda: as_loss("zero_one_loss"), "'zero_one'"),
    "loss of risks": (lambda: class_risks(Y, Y, loss="cross-entropy"), "'cross_entropy'"),
    "trained loss": (
        lambda: RobustLinearClassifier(loss="hinge_squared").fit(X, Y),
        "'squared_hinge'",
    ),
    "divergence": (lambda: PriorBall(0.1, "KL").resolve([0.5, 0.5]), "'kl'"),
    "weights": (lambda: FixedWeights("balance").resolve([0.5, 0.5]), "'balanced'"),
    "rule": (lambda: RobustnessCV(RobustLinearClassifier(), rule="Price").fit(X, Y), "'price'"),
    "absent": (lambda: class_risks(Y, Y, absent="dropped"), "'drop'"),
    "solver": (
        lambda: RobustLinearClassifier(solver="sqp_newton").fit(X, Y),
        "'sqp-newton'",
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_place_that_takes_words_suggests_one(place):
    call, expected = PLACES[place]
    assert hint(call) == expected


def test_a_training_is_suggested():
    wrong = RobustClassifier(BASE, training="balance")
    assert hint(lambda: wrong.fit(X, Y)) == "'balanced'"


@pytest.mark.parametrize("word", ["robust", "", "{", "0.1", "x" * 100_000, "best", "ü"])
def test_nothing_is_suggested_for_what_is_like_nothing(word):
    assert hint(lambda: as_goal(word)) is None
    assert hint(lambda: parse_goal(word)) is None
    assert hint(lambda: as_loss(word)) is None


@pytest.mark.parametrize("value", [3, None, ["f1"], 0.5])
def test_only_texts_are_words(value):
    assert did_you_mean(value, GOAL_WORDS) == ""


def test_where_there_are_no_words_there_is_no_hint():
    assert did_you_mean("alpha", []) == ""
    with pytest.raises(InvalidInputError, match=r"has no hyper-parameter .* got 'alpha'"):
        robust_path(X, Y, "worst_class", parameter="alpha", values=[0.5])


@pytest.mark.parametrize("words", [GOAL_WORDS, tuple(LOSSES)], ids=["goals", "losses"])
def test_every_word_is_nearest_to_itself_however_it_is_joined_or_turned(words):
    for word in words:
        parts = re.split("[-_]", word)
        for written in (word, word.upper(), " ".join(parts), "-".join(reversed(parts))):
            assert did_you_mean(written, words) == f" (did you mean {word!r}?)"
