"""Mistakes that new users make, each refused with the sentence that helps."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from equipoise import (
    CostMatrix,
    LabelCVaR,
    RecallFloors,
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    TunedDecisionClassifier,
    tune_weights,
)
from equipoise.exceptions import (
    ClassMismatchError,
    InvalidInputError,
    InvalidParameterError,
    UnattainableError,
)
from equipoise.risks import class_risk_intervals, class_risks
from equipoise.theory import LocalPolynomialClassifier

LINEAR = [RobustLogisticRegression, RobustLinearClassifier, RobustLogisticRegressionCV]
ALL = [
    *(kind() for kind in LINEAR),
    RobustLogisticRegression(LabelCVaR("auto")),
    LocalPolynomialClassifier(),
    RobustClassifier(GaussianNB()),
    TunedDecisionClassifier(GaussianNB()),
    RobustnessCV(RobustLogisticRegression()),
]
every_classifier = pytest.mark.parametrize("model", ALL, ids=repr)


def rows(n=90):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + y[:, None], y


def with_nan(y):
    y = y.astype(float)
    y[7] = np.nan
    return y


def with_none(y):
    y = np.array(["a", "b", "c"], dtype=object)[y]
    y[7] = None
    return y


def with_na(kind):
    def change(y):
        pandas = pytest.importorskip("pandas")
        names = y if kind == "Int64" else np.array(["a", "b", "c"])[y]
        series = pandas.Series(names).astype(kind)
        series[7] = pandas.NA
        return series

    return change


@every_classifier
@pytest.mark.parametrize(
    "change", [with_nan, with_none, with_na("Int64"), with_na("string"), with_na(object)]
)
def test_a_missing_label_is_named_with_its_row(model, change):
    X, y = rows()
    message = r"y must not have missing labels, got (nan|None|<NA>) in row 7\."
    with pytest.raises(InvalidInputError, match=message):
        clone(model).fit(X, change(y))


@pytest.mark.parametrize("kind", LINEAR)
def test_class_weights_of_a_linear_model_are_its_goal(kind):
    message = rf"{kind.__name__} has no parameter 'class_weight': .*goal='balanced'"
    with pytest.raises(TypeError, match=message):
        kind(class_weight="balanced")
    with pytest.raises(TypeError, match=rf"{kind.__name__}.*did you mean 'max_iter'"):
        kind(max_iters=7)


@every_classifier
def test_a_measure_of_rankings_suggests_no_other_goal(model):
    if "goal" not in model.get_params():
        pytest.skip("has no goal")
    with pytest.raises(InvalidParameterError, match=r"got 'roc_auc'\.") as caught:
        clone(model).set_params(goal="roc_auc").fit(*rows())
    assert "did you mean" not in str(caught.value)


@every_classifier
def test_a_set_without_parentheses_is_written_with_them(model):
    if "goal" not in model.get_params():
        pytest.skip("has no goal")
    with pytest.raises(InvalidParameterError, match=r"did you mean LabelCVaR\(\.\.\.\)"):
        clone(model).set_params(goal=LabelCVaR).fit(*rows())


@pytest.mark.parametrize("kind", [RobustClassifier, TunedDecisionClassifier])
def test_a_regressor_is_refused_as_one(kind):
    message = r"estimator must be a classifier, got the regressor LinearRegression\.$"
    with pytest.raises(InvalidParameterError, match=message):
        kind(LinearRegression()).fit(*rows())


@pytest.mark.parametrize("function", [class_risks, class_risk_intervals])
def test_predictions_that_share_no_class_with_labels_are_refused(function):
    labels, predicted = ["Normal", "Fraud", "Normal"], ["normal", "fraud", "normal"]
    with pytest.raises(ClassMismatchError, match=r"\['Fraud', 'Normal'\], got none.*'normal'"):
        function(labels, predicted)
    # All wrong is another thing, where the classes are named.
    risks = function(labels[:1], ["Fraud"], classes=["Normal"])
    assert list(risks) == ["Normal"]


def test_floors_that_rows_cannot_show_name_the_share_to_hold_out():
    model = RobustClassifier(GaussianNB(), goal=RecallFloors({2: 0.9}, confidence=0.95))
    with pytest.raises(UnattainableError, match=re.escape("such as cv=0.5")):
        model.fit(*rows())


@pytest.mark.parametrize("out", ["page.pdf", "page", "page.html.txt"])
def test_a_page_of_another_form_is_refused_before_any_work(out):
    testing = pytest.importorskip("click.testing")
    main = pytest.importorskip("equipoise.cli.main").main
    ran = testing.CliRunner().invoke(main, ["report", "no-such.csv", "--target", "y", "--out", out])
    assert ran.exit_code == 2 and f"a page must end in .html, got '{out}'" in ran.output


ROWS, PARTS = rows()
NAMES = np.array(["a", "b", "c"])[PARTS]
UNIFORM = np.full((len(PARTS), 3), 1 / 3)


def tuned(**settings):
    return RobustClassifier(settings.pop("estimator", GaussianNB()), **settings)


@pytest.mark.parametrize("kind", [tuned, RobustLogisticRegression])
@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (0.1, "did you mean LabelCVaR(0.1)"),
        ({0: 1, 1: 2, 2: 3}, "did you mean FixedWeights({...})"),
        (GaussianNB(), "a model goes first into RobustClassifier(model, goal)"),
        ("neg_log_loss", "which decision weights do not improve"),
        (np.arange(5000.0), "got array([0."),
    ],
)
def test_what_is_not_a_goal_names_what_may_be_meant(kind, goal, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)) as caught:
        kind(goal=goal).fit(ROWS, PARTS)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("kind", LINEAR)
@pytest.mark.parametrize(
    "goal", ["f1_macro", RecallFloors({0: 0.9}), CostMatrix(1 - np.eye(3)), RecallFloors], ids=repr
)
def test_goals_of_decisions_of_a_linear_model_name_the_class_that_takes_them(kind, goal):
    message = (
        r"goal of a linear model must be .* use RobustClassifier\(LogisticRegression\(\), goal"
    )
    with pytest.raises(InvalidParameterError, match=message):
        kind(goal=goal).fit(ROWS, PARTS)


@pytest.mark.parametrize("kind", [tuned, RobustLogisticRegression])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.eye(3)[PARTS], "got an array of shape (90, 3): for columns of zeros and ones take"),
        (csr_matrix(PARTS), "got a sparse matrix of shape (1, 90): take y.toarray().ravel()"),
        (np.zeros(90), "y must hold at least 2 classes, got only one class: [0.0]"),
    ],
    ids=["columns", "sparse", "one class"],
)
def test_labels_of_another_form_say_what_to_take(kind, y, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        kind().fit(ROWS, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": 1}, "cv must be at least 2 folds, got 1; .* such as cv=0.2"),
        ({"cv": True}, "cv must be at least 2 folds, got True"),
        ({"cv": 0}, "cv must be at least 2 folds, got 0"),
        ({"training": None}, "training must name class weights, got None: use 'plain'"),
        ({"estimator": GaussianNB}, r"got <class .*GaussianNB'> \(did you mean GaussianNB\(\)\?\)"),
        ({"estimator": StandardScaler()}, "got StandardScaler, which does not predict"),
    ],
)
def test_settings_that_are_nearly_right(settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        tuned(**settings).fit(ROWS, PARTS)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (RobustClassifier, "class_weight", "has no parameter 'class_weight': training='balanced'"),
        (RobustClassifier, "goals", r"has no parameter 'goals' \(did you mean 'goal'\?\)"),
        (RobustLogisticRegression, "uncertainty", "the uncertainty set is its goal"),
        (RobustLogisticRegression, "cv", "RobustLogisticRegressionCV chooses C"),
        (RobustLogisticRegression, "penalty", "C its inverse strength"),
    ],
)
def test_a_parameter_of_another_class_names_what_to_use(kind, name, message):
    with pytest.raises(TypeError, match=message):
        kind(**{name: None})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((UNIFORM, NAMES), r"labels come first, as in tune_weights\(y, probabilities, goal\)"),
        ((NAMES, np.log(UNIFORM)), r"got \[-1.099, -1.099, -1.099\] in row 0 .*take predict_proba"),
        ((NAMES, UNIFORM[:5]), "one row for each of the 90 labels, got 5"),
        ((NAMES[:0], UNIFORM[:0]), "y must hold at least one row, got none"),
    ],
)
def test_arguments_of_tune_weights(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        tune_weights(*arguments, "worst_class")


def test_a_class_of_one_row_is_counted_in_the_singular():
    y = np.where(np.arange(90) == 0, 2, PARTS % 2)
    with pytest.raises(InvalidInputError, match=r"class 2 \(1 row\)"):
        tuned().fit(ROWS, y)
