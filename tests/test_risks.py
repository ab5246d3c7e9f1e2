"""Class risks and the risks that follow from them: by hand, by brute force, by scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, recall_score

from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.losses import LOSSES
from equipoise.risks import (
    ClassRisks,
    class_risks,
)
from equipoise.sets import FixedWeights, LabelCVaR, WorstClass
from equipoise.weights.by_class import ByClass
from set_examples import few_examples

RECIPES = few_examples()


@pytest.fixture
def paper_example():
    return ClassRisks([0.2, 0.6], [0.9, 0.1])


@st.composite
def labelled_rows(draw):
    """Labels of up to four classes, guesses and small integer weights."""
    n, k = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    labels = arrays(np.int64, n, elements=st.integers(0, k - 1))
    weights = draw(arrays(np.int64, n, elements=st.integers(0, 3)))
    truth = draw(labels)
    assume(all(weights[truth == i].sum() > 0 for i in set(truth)))
    guess = draw(labels)
    assume(np.isin(guess, truth).any())  # guesses of none of the classes are refused
    return truth, guess, weights


@st.composite
def risks_and_prior(draw):
    k = draw(st.integers(2, 6))
    risks = draw(arrays(np.float64, k, elements=st.floats(0, 10)))
    shares = draw(arrays(np.float64, k, elements=st.floats(0.05, 1)))
    return ClassRisks(risks, shares / shares.sum())


def brute_force(truth, losses, weights):
    """Class risks and priors by walking over the rows."""
    sums, totals = {}, {}
    for label, loss, weight in zip(truth, losses, weights, strict=True):
        sums[label] = sums.get(label, 0.0) + weight * loss
        totals[label] = totals.get(label, 0.0) + weight
    whole = sum(totals.values())
    risks = {label: sums[label] / totals[label] for label in totals}
    return risks, {label: total / whole for label, total in totals.items()}


# Values by hand


def test_the_example_of_the_reading_notes(paper_example):
    assert paper_example.standard() == pytest.approx(0.24)
    assert paper_example.balanced() == pytest.approx(0.4)
    assert (paper_example.worst(), paper_example.worst_class()) == (0.6, 1)
    assert paper_example.robust(LabelCVaR(0.5)) == pytest.approx(0.28)
    assert paper_example.worst_case_masses(LabelCVaR(0.5)).to_numpy() == pytest.approx([0.8, 0.2])
    weights = paper_example.worst_case_weights(LabelCVaR(0.5))
    assert weights.to_numpy() == pytest.approx([8 / 9, 2])


def test_weights_are_scaled_to_mean_one(paper_example):
    # q proportional to (1, 9): masses (.9, .9) / 1.8
    assert paper_example.weighted([1, 9]) == pytest.approx(0.4)
    assert paper_example.weighted({1: 90, 0: 10}) == pytest.approx(0.4)


def test_class_risks_by_hand():
    truth, guess = list("aaabbc"), list("aabbac")
    risks = class_risks(truth, guess, sample_weight=[1, 1, 2, 3, 1, 5])
    assert risks["a"] == 0.5
    assert risks["b"] == 0.25
    assert risks["c"] == 0.0
    assert risks.prior.to_numpy() == pytest.approx(np.array([4, 4, 5]) / 13)


def test_the_margin_loss_by_hand():
    scores = [[2.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 1.0, 0.0]]
    risks = class_risks([0, 0, 2], scores, loss="margin", classes=[0, 1, 2], absent="drop")
    assert risks == {0: 0.25, 2: 1.0}


# Brute force and scikit-learn


@settings(max_examples=80)
@given(rows=labelled_rows())
def test_class_risks_by_brute_force(rows):
    truth, guess, weights = rows
    risks, prior = brute_force(truth.tolist(), truth != guess, weights)
    found = class_risks(truth, guess, sample_weight=weights)
    assert found.risks.to_dict() == pytest.approx(risks)
    assert found.prior.to_dict() == pytest.approx(prior)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_by_brute_force(name):
    rng = np.random.default_rng(3)
    scores, true = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    names, weights = np.array(["x", "y", "z"]), rng.random(300)
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    kinds = {"labels": scores.argmax(axis=1), "probabilities": proba, "scores": scores}
    predictions = kinds[LOSSES[name].reads]
    given_as = names[predictions] if LOSSES[name].reads == "labels" else predictions
    found = class_risks(names[true], given_as, loss=name, sample_weight=weights)
    risks, _ = brute_force(names[true].tolist(), LOSSES[name](true, predictions), weights)
    assert found.risks.to_dict() == pytest.approx(risks)


@settings(max_examples=50)
@given(rows=labelled_rows())
def test_identities_with_scikit_learn(rows):
    truth, guess, weights = rows
    labels = np.unique(truth)
    found = class_risks(truth, guess, sample_weight=weights)
    recall = recall_score(
        truth, guess, labels=labels, average=None, sample_weight=weights, zero_division=0
    )
    np.testing.assert_allclose(np.asarray(found), 1 - recall, atol=1e-12)
    assert found.standard() == pytest.approx(
        1 - accuracy_score(truth, guess, sample_weight=weights)
    )
    assert found.worst() == pytest.approx(1 - recall.min())


def test_balanced_risk_is_one_minus_balanced_accuracy():
    rng = np.random.default_rng(0)
    truth, guess, weights = rng.integers(0, 5, 99), rng.integers(0, 5, 99), rng.random(99)
    assert class_risks(truth, guess, sample_weight=weights).balanced() == pytest.approx(
        1 - balanced_accuracy_score(truth, guess, sample_weight=weights)
    )


def test_standard_cross_entropy_is_log_loss():
    rng = np.random.default_rng(0)
    truth, weights = rng.integers(0, 3, 99), rng.random(99)
    proba = rng.dirichlet(np.ones(3), 99)
    found = class_risks(truth, proba, loss="cross_entropy", sample_weight=weights)
    assert found.standard() == pytest.approx(log_loss(truth, proba, sample_weight=weights))


# Laws


@settings(max_examples=50)
@given(rows=labelled_rows(), seed=st.integers(0, 99))
def test_the_order_of_the_rows_does_not_matter(rows, seed):
    truth, guess, weights = rows
    order = np.random.default_rng(seed).permutation(len(truth))
    plain = class_risks(truth, guess, sample_weight=weights)
    shuffled = class_risks(truth[order], guess[order], sample_weight=weights[order])
    np.testing.assert_allclose(np.asarray(plain), np.asarray(shuffled), rtol=1e-12)


@settings(max_examples=50)
@given(rows=labelled_rows())
def test_integer_weights_are_repetitions(rows):
    truth, guess, weights = rows
    every = np.unique(truth[weights > 0])
    repeated = class_risks(np.repeat(truth, weights), np.repeat(guess, weights), classes=every)
    weighted = class_risks(truth, guess, sample_weight=weights)
    assert weighted.risks.to_dict() == pytest.approx(repeated.risks.to_dict())
    assert weighted.prior.to_dict() == pytest.approx(repeated.prior.to_dict())


@settings(max_examples=50)
@given(risks=risks_and_prior(), scale=st.floats(0.1, 10))
def test_weighted_risk_depends_on_ratios_only(risks, scale):
    q = np.arange(1.0, len(risks) + 1)
    assert risks.weighted(scale * q) == pytest.approx(risks.weighted(q))
    masses = q * risks.prior.to_numpy()
    assert risks.weighted(q) == pytest.approx(masses @ np.asarray(risks) / masses.sum())


@settings(max_examples=50)
@given(risks=risks_and_prior())
def test_special_weights_and_sets_agree(risks):
    assert risks.weighted(np.ones(len(risks))) == pytest.approx(risks.standard())
    assert risks.weighted(1 / risks.prior.to_numpy()) == pytest.approx(risks.balanced())
    assert risks.robust(FixedWeights("standard")) == pytest.approx(risks.standard())
    assert risks.robust("balanced") == pytest.approx(risks.balanced())
    assert risks.robust(WorstClass()) == pytest.approx(risks.worst())
    assert risks.robust() == pytest.approx(risks.robust(LabelCVaR(0.1)))


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@settings(max_examples=40)
@given(risks=risks_and_prior(), seed=st.integers(0, 999))
def test_no_weighting_in_the_set_beats_the_worst_case(recipe, risks, seed):
    prior = risks.prior.to_numpy()
    point = np.random.default_rng(seed).dirichlet(np.ones(len(risks)))
    inside = recipe.resolve(prior, risks.classes).project(point)
    assert inside @ np.asarray(risks) <= risks.robust(recipe) + 1e-9


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@settings(max_examples=40)
@given(risks=risks_and_prior())
def test_worst_case_weights_attain_the_robust_risk(recipe, risks):
    weights, masses = risks.worst_case_weights(recipe), risks.worst_case_masses(recipe)
    prior = risks.prior.to_numpy()
    assert np.dot(prior, weights) == pytest.approx(1)
    np.testing.assert_allclose(np.asarray(masses), prior * np.asarray(weights), atol=1e-12)
    assert risks.weighted(weights) == pytest.approx(risks.robust(recipe))
    assert risks.robust(recipe) <= risks.worst() + 1e-9


def test_the_prior_of_the_population_changes_the_risks_that_depend_on_it():
    rng = np.random.default_rng(5)
    truth, guess = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    options = {"sample_weight": rng.random(200), "classes": [3, 1, 0, 2]}
    risks, recipe = class_risks(truth, guess, **options), LabelCVaR(0.5)
    prior = {0: 0.7, 1: 0.1, 2: 0.1, 3: 0.1}
    moved = class_risks(truth, guess, class_prior=prior, **options)
    assert moved == risks.with_prior(prior) and moved.risks == risks.risks
    assert moved == class_risks(truth, guess, class_prior=[0.1, 0.1, 0.7, 0.1], **options)
    assert dict(moved.prior) == pytest.approx(prior)
    assert moved.balanced() == risks.balanced() and moved.worst() == risks.worst()
    assert moved.standard() == pytest.approx(sum(prior[name] * risks[name] for name in prior))
    assert moved.weighted([1, 2, 3, 4]) != risks.weighted([1, 2, 3, 4])
    assert moved.robust(recipe) != risks.robust(recipe)
    assert moved.worst_case_weights(recipe) != risks.worst_case_weights(recipe)


def test_a_prior_may_name_classes_without_rows_that_are_dropped():
    options = {"classes": ["a", "b", "c"], "absent": "drop"}
    prior = {"a": 0.2, "b": 0.3, "c": 0.5}
    found = class_risks(["a", "b", "b"], ["a", "b", "a"], class_prior=prior, **options)
    assert dict(found.prior) == pytest.approx({"a": 0.4, "b": 0.6})


# Labels of all kinds


@pytest.mark.parametrize(
    "rename",
    [
        lambda y: y - 7,
        lambda y: y.astype(np.uint8),
        lambda y: y.astype(np.uint64) + np.uint64(2**63),
        lambda y: y * 10**12,
        lambda y: y + 0.5,
        lambda y: np.array(["red", "green", "blue"])[y],
        lambda y: np.array(["red", "green", "blue"], dtype=object)[y],
        lambda y: pd.Series(np.array(["red", "green", "blue"])[y]),
        lambda y: pd.Categorical(np.array(["red", "green", "blue"])[y]),
        lambda y: y.tolist(),
        lambda y: y[:, np.newaxis],
    ],
)
def test_risks_do_not_depend_on_the_names(rename):
    rng = np.random.default_rng(0)
    truth, guess = rng.integers(0, 3, 50), rng.integers(0, 3, 50)
    plain, named = class_risks(truth, guess), class_risks(rename(truth), rename(guess))
    names = np.unique(np.asarray(rename(truth)))
    assert named.classes.tolist() == names.tolist()
    assert sorted(named.values()) == pytest.approx(sorted(plain.values()))
    first = np.asarray(rename(truth)).ravel().tolist()[0]
    assert named[first] == pytest.approx(plain[int(truth[0])])


def test_boolean_labels_stay_boolean():
    assert class_risks([True, False], [True, True]).classes.dtype == bool


def test_labels_set_the_order_and_the_columns():
    scores = np.array([[5.0, 0.0], [5.0, 0.0]])
    risks = class_risks(["n", "y"], scores, loss="margin", classes=["y", "n"])
    assert list(risks) == ["y", "n"]
    assert risks == {"y": 0.0, "n": 1.0}


def test_a_prediction_outside_the_classes_is_an_error_of_the_row():
    assert class_risks([0, 0, 1], [0, 9, -5]) == {0: 0.5, 1: 1.0}
    assert class_risks(["a", "b"], ["a", "zebra"]) == {"a": 0.0, "b": 1.0}


def test_integer_valued_floats_are_labels():
    assert class_risks([0, 1], [0.0, 0.0]) == {0: 0.0, 1: 1.0}


# The container


def test_class_risks_do_not_change_and_survive_pickling(paper_example):
    twin = pickle.loads(pickle.dumps(paper_example))
    assert twin == paper_example
    assert twin.prior == paper_example.prior
    assert twin != twin.with_prior([0.5, 0.5])
    with pytest.raises(AttributeError, match="cannot assign"):
        twin.prior = None


def test_class_risks_print_as_a_table(paper_example):
    assert repr(paper_example) == "class risk prior\n0:     20%   90%\n1:     60%   10%"
    assert "<td>20%</td><td>90%</td>" in paper_example._repr_html_()


def test_names_come_with_the_risks():
    risks = ClassRisks(ByClass([0.1, 0.3], ["a", "b"]), {"b": 0.25, "a": 0.75})
    assert risks.standard() == pytest.approx(0.15)
    assert risks.worst_class() == "b"


# A class without rows, and other errors


def test_an_absent_class_is_refused_or_dropped():
    with pytest.raises(ClassMismatchError, match=r"\['c'\] has none.*absent='drop'"):
        class_risks(["a", "b"], ["a", "a"], classes=["a", "b", "c"])
    risks = class_risks(["a", "b"], ["a", "a"], classes=["a", "b", "c"], absent="drop")
    assert risks == {"a": 0.0, "b": 1.0}
    assert risks.prior == {"a": 0.5, "b": 0.5}


def test_a_class_without_weight_is_absent():
    with pytest.raises(ClassMismatchError, match=r"\[1\] has none"):
        class_risks([0, 1], [0, 0], sample_weight=[1, 0])
    assert class_risks([0, 1], [0, 0], sample_weight=[1, 0], absent="drop") == {0: 0.0}
    with pytest.raises(InvalidInputError, match="positive in at least one row"):
        class_risks([0, 1], [0, 0], sample_weight=[0, 0], absent="drop")


@pytest.mark.parametrize(
    ("truth", "guess", "options", "error", "message"),
    [
        ([0, 1], [0], {}, InvalidInputError, "y_pred must have one entry for each of the 2 rows"),
        ([], [], {}, InvalidInputError, "at least one row"),
        ([[0, 1]], [0], {}, InvalidInputError, "y_true must be one class label"),
        ([0, 1], [[0.5, 0.5], [1, 0]], {}, InvalidInputError, "choose a loss that reads them"),
        ([0, 1], [0.3, 0.9], {}, InvalidInputError, "must hold class labels, got 0.3"),
        (["a", "b"], [0, 1], {}, ClassMismatchError, "same type as y_true, got 0"),
        ([0, 1], ["0", "1"], {}, ClassMismatchError, "same type as y_true, got '0'"),
        ([0, 2], [0, 0], {"classes": [0, 1]}, ClassMismatchError, r"\[0, 1\], got 2"),
        ([0, 1], [0, 0], {"classes": [0, 0]}, ClassMismatchError, "classes must be distinct"),
        ([0.0, np.nan], [0, 0], {}, InvalidInputError, "missing labels, got nan"),
        (["a", None], ["a", "a"], {}, InvalidInputError, "labels, got None in row 1"),
        (
            np.array(["a", 1], dtype=object),
            ["a", "a"],
            {},
            InvalidInputError,
            "labels must be of one type",
        ),
        ([0, 1], [0, 0], {"absent": "nan"}, InvalidParameterError, "absent must be one of 'raise'"),
        ([0, 1], [0, 0], {"loss": "log"}, InvalidParameterError, "got 'log'"),
        ([0, 1], [0, 0], {"sample_weight": [1]}, InvalidInputError, "sample_weight must have one"),
        ([0, 1], [0, 0], {"sample_weight": [1, -1]}, InvalidInputError, "smallest value of -1"),
        ([0, 1], [0, 0], {"sample_weight": [1, np.nan]}, InvalidInputError, "finite"),
        (
            [0, 1],
            [0, 0],
            {"sample_weight": [[1, 1]]},
            InvalidInputError,
            r"one value .* shape \(1, 2\)",
        ),
        ([0, 1], np.eye(3)[:2], {"loss": "margin"}, InvalidInputError, "each of 2 classes, got"),
        ([0, 0], np.eye(2), {"loss": "margin"}, InvalidInputError, "classes= names the columns"),
        ([0, 1], ["a", "b"], {"loss": "hinge"}, InvalidInputError, "must hold scores"),
    ],
)
def test_errors_name_the_thing_the_rule_and_the_value(truth, guess, options, error, message):
    with pytest.raises(error, match=message):
        class_risks(truth, guess, **options)


def test_given_risks_and_priors_are_checked():
    with pytest.raises(InvalidInputError, match="risks must be finite"):
        ClassRisks([0.1, np.nan], [0.5, 0.5])
    with pytest.raises(InvalidParameterError, match="must sum to 1"):
        ClassRisks([0.1, 0.2], [0.5, 0.6])
    with pytest.raises(ClassMismatchError, match="'b' is missing"):
        ClassRisks({"a": 0.1, "b": 0.2}, {"a": 1.0})


def test_weights_must_name_the_classes(paper_example):
    with pytest.raises(ClassMismatchError, match="names 2, not among"):
        paper_example.weighted({0: 1, 1: 1, 2: 1})


def test_recalls_are_those_of_scikit_learn_and_stand_beside_the_risks():
    rng = np.random.default_rng(0)
    names = np.array(["cat", "dog", "owl"])
    truth, guess = names[rng.integers(3, size=60)], names[rng.integers(3, size=60)]
    risks = class_risks(truth, guess)
    expected = recall_score(truth, guess, average=None, labels=names)
    assert isinstance(risks.recall(), ByClass)
    assert risks.recall().to_dict() == pytest.approx(dict(zip(names, expected, strict=True)))
    frame = risks.to_frame()
    assert list(frame.columns) == ["class", "prior", "risk", "recall"]
    assert frame["class"].tolist() == names.tolist()
    np.testing.assert_allclose(frame["recall"], expected)
    np.testing.assert_array_equal(frame["risk"], np.asarray(risks))
    np.testing.assert_array_equal(frame["prior"], np.asarray(risks.prior))
    assert list(risks.with_prior([0.2, 0.3, 0.5]).to_frame()["prior"]) == [0.2, 0.3, 0.5]


def test_only_zero_one_risks_have_recalls():
    risks = class_risks([0, 1, 1], [0.2, 0.9, 0.4], loss="cross_entropy")
    for found in (risks, risks.with_prior([0.5, 0.5])):
        with pytest.raises(InvalidInputError, match="zero-one loss, and these are of 'cross_ent"):
            found.recall()
        assert list(found.to_frame().columns) == ["class", "prior", "risk"]
