"""What a third party adds by one registry line works wherever its kind is used.

One section a kind. Each registers something that the library does not know, uses it, and takes it
out again.
"""

import inspect
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import test_losses
import test_sets_laws
from equipoise import (
    LabelCVaR,
    RiskScorer,
    RobustLinearClassifier,
    RobustLogisticRegression,
    TunedDecisionClassifier,
    load_model,
    save_model,
)
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.goals import GOALS, Goal, SmoothCriterion, format_goal, parse_goal
from equipoise.losses import LOSSES, Loss, TrainedLoss
from equipoise.risks import ClassRisks, class_risks
from equipoise.sets import SETS, CappedSimplex, Uncertainty
from equipoise.theory import conditional_bound, robust_bayes
from equipoise.validation.numbers import check_number
from equipoise.weights import named_prior
from logistic_cases import draw
from set_constraints import constraints
from set_examples import every_example, few_examples

# --- a set: one file and one line ---------------------------------------------------------------


class AtLeastUniform(Uncertainty):
    """Any weighting under which every class carries at least a share of 1/k of the mass."""

    def __init__(self, share=0.5):
        self.share = share

    def resolve(self, prior, classes=None):
        p, _ = named_prior(prior, classes)
        share = check_number(self.share, "share", "[0, 1]")
        return CappedSimplex(np.full(len(p), share / len(p)), np.ones(len(p)))

    @classmethod
    def examples(cls):
        return [cls(0.5), cls(0.9)]


@constraints.register
def _(recipe: AtLeastUniform, mass, prior):
    return [mass >= recipe.share / len(prior)]


LAWS = {
    name: law
    for name, law in vars(test_sets_laws).items()
    if name.startswith("test_") and "recipe" in inspect.signature(law).parameters
}


@pytest.fixture
def new_set():
    SETS.register(AtLeastUniform)
    yield AtLeastUniform
    SETS.remove("AtLeastUniform")


def test_a_new_set_is_among_the_examples(new_set):
    assert SETS.find("AtLeastUniform") is new_set
    assert sum(isinstance(recipe, new_set) for recipe in every_example()) == 2
    assert any(isinstance(recipe, new_set) for recipe in few_examples())


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_new_set_obeys_the_laws(new_set, law):
    others = {"size": 1e20} if "size" in inspect.signature(law).parameters else {}
    for recipe in new_set.examples():
        law(recipe=recipe, **others)


def test_a_new_set_is_fitted(new_set):
    X, y = draw()
    clf = RobustLogisticRegression(new_set(0.6), tol=1e-8).fit(X, y)
    expected = ClassRisks(clf.class_risks_, clf.class_prior_).robust(new_set(0.6))
    assert clf.robust_risk_ == pytest.approx(expected, rel=1e-6)
    assert min(clf.worst_case_masses_.values()) >= 0.2 - 1e-9
    assert repr(clone(clf).goal) == "AtLeastUniform(share=0.6)"


def test_a_new_set_decides(new_set):
    X, y = draw()
    clf = TunedDecisionClassifier(
        RobustLogisticRegression("standard"), goal=new_set(0.6), cv=3
    ).fit(X, y)
    assert set(clf.predict(X)) <= set(y)


def test_grid_search_reaches_into_a_new_set(new_set):
    X, y = draw(n=600)
    grid = {"goal__share": [0.2, 0.8]}
    fit = RobustLogisticRegression(new_set())
    scoring = RiskScorer(new_set(0.2), loss="cross_entropy")
    search = GridSearchCV(fit, grid, cv=2, scoring=scoring).fit(X, y)
    assert search.best_estimator_.goal.share in (0.2, 0.8)
    assert len(set(search.cv_results_["mean_test_score"])) == 2


def test_a_new_set_judges_predictions_and_bounds(new_set):
    risks = ClassRisks([0.2, 0.6], [0.9, 0.1])
    assert risks.robust(new_set(0.5)) == pytest.approx(0.25 * 0.2 + 0.75 * 0.6)
    assert robust_bayes([0.1, 0.2, 0.3, 0.6], new_set(0.5)).gap <= 1e-12
    assert conditional_bound([900, 100], 0.01, uncertainty=new_set(0.5)).value > 0


def test_a_new_set_refuses_like_the_others(new_set):
    with pytest.raises(InvalidParameterError, match=r"share must be a number in \[0, 1\], got 2"):
        new_set(2).resolve([0.5, 0.5])


def test_a_new_set_is_read_and_written_as_text(new_set):
    goal = parse_goal("AtLeastUniform(share=0.6)")
    assert isinstance(goal, new_set) and format_goal(goal) == "AtLeastUniform(share=0.6)"
    with pytest.raises(InvalidParameterError, match="share must be a number"):
        parse_goal("AtLeastUniform(2)")
    with pytest.raises(InvalidInputError, match=r"did you mean AtLeastUniform\?"):
        parse_goal("AtLeastUnifrom(0.6)")


def fitted_on_the_command_line(goal, folder):
    """What 'equipoise fit' and 'equipoise evaluate' print for a goal, and the model file."""
    pandas = pytest.importorskip("pandas")
    click = pytest.importorskip("click.testing")
    from equipoise.cli.main import main

    X, y = draw(n=300)
    frame = pandas.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=y)
    table, out = str(folder / "t.csv"), str(folder / "m.equipoise")
    frame.to_csv(table, index=False)
    fit = click.CliRunner().invoke(main, ["fit", table, "-t", "y", "-o", out, "--goal", goal])
    assert fit.exit_code == 0, fit.output
    evaluated = click.CliRunner().invoke(main, ["evaluate", out, table])
    assert evaluated.exit_code == 0, evaluated.output
    return fit.stdout, evaluated.stdout, out


def completed(start):
    pytest.importorskip("click")
    from equipoise.cli.main import GoalText

    return [item.value for item in GoalText().shell_complete(None, None, start)]


def test_a_new_set_works_on_the_command_line(new_set, tmp_path):
    fit, evaluated, _ = fitted_on_the_command_line("AtLeastUniform(0.6)", tmp_path)
    assert "AtLeastUniform(share=0.6)" in fit
    assert "Robust risk over AtLeastUniform(share=0.6)" in evaluated
    assert completed("AtLeast") == ["AtLeastUniform("]


def test_a_new_set_is_saved_and_loaded_where_it_is_registered(new_set, tmp_path):
    X, y = draw()
    clf = RobustLogisticRegression(new_set(0.6)).fit(X, y)
    save_model(clf, tmp_path / "m.equipoise")
    loaded = load_model(tmp_path / "m.equipoise")
    assert repr(loaded.model.goal) == "AtLeastUniform(share=0.6)"
    assert loaded.predict(X).tolist() == clf.predict(X).tolist()
    SETS.remove("AtLeastUniform")
    try:
        unknown = r"class 'AtLeastUniform', which is not known here; .* register it first"
        with pytest.raises(InvalidInputError, match=unknown):
            load_model(tmp_path / "m.equipoise")
        with pytest.raises(InvalidInputError, match=r"cannot be saved: .*AtLeastUniform"):
            save_model(clf, tmp_path / "again.equipoise")
    finally:
        SETS.register(new_set)


# --- a loss: one file and one line --------------------------------------------------------------


@dataclass(frozen=True)
class Exponential(TrainedLoss):
    """The exponential loss: the sum of exp(f_j - f_y) over the rivals j of the true class y."""

    def values(self, scores, labels):
        return self._terms(scores, labels).sum(axis=0)

    def gradients(self, scores, labels):
        terms = self._terms(scores, labels)
        terms[labels, np.arange(len(labels))] = -terms.sum(axis=0)
        return terms

    def curvature(self, scores, labels):
        rows, terms = np.arange(len(labels)), self._terms(scores, labels)
        out = np.eye(len(scores))[:, :, None] * terms
        out[labels, :, rows] = out[:, labels, rows] = 0
        out[labels, :, rows] -= terms.T
        out[:, labels, rows] -= terms
        out[labels, labels, rows] = terms.sum(axis=0)
        return out

    @staticmethod
    def _terms(scores, labels):
        rows = np.arange(len(labels))
        terms = np.exp(scores - scores[labels, rows])
        terms[labels, rows] = 0
        return terms


LAW_ARGUMENTS = {"name": "exponential", "k": 3, "d": 4, "shape": (-1,)}
LOSS_LAWS = {
    name: law
    for name, law in vars(test_losses).items()
    if name.startswith("test_")
    and "name" in inspect.signature(law).parameters
    and set(inspect.signature(law).parameters) <= set(LAW_ARGUMENTS)
}


@pytest.fixture
def new_loss():
    yield LOSSES.register(Loss.of_scores("exponential", Exponential()))
    LOSSES.remove("exponential")


@pytest.mark.parametrize("law", LOSS_LAWS.values(), ids=LOSS_LAWS)
def test_a_new_loss_obeys_the_laws(new_loss, law):
    law(**{name: LAW_ARGUMENTS[name] for name in inspect.signature(law).parameters})


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("solver", ["auto", "sqp-lbfgs", "multipliers"])
def test_a_new_loss_is_trained_and_certified(new_loss, k, fit_intercept, solver):
    X, y = draw(k=k)
    settings = {"fit_intercept": fit_intercept, "solver": solver}
    clf = RobustLinearClassifier(LabelCVaR(0.7), loss="exponential", **settings).fit(X, y)
    assert clf.status_ == "converged" and clf.duality_gap_ <= 1e-6 * clf.objective_
    found = class_risks(y, clf.decision_function(X), loss="exponential")
    np.testing.assert_allclose(list(found.values()), clf.class_risks_, rtol=1e-9)
    # Any other parameters are worse.
    rng = np.random.default_rng(0)
    for _ in range(20):
        coef = clf.coef_ + 0.01 * rng.normal(size=clf.coef_.shape)
        scores = X @ coef.T + clf.intercept_
        risks = class_risks(y, scores, loss="exponential")
        penalty = np.sum(coef**2) / (2 * len(y))
        assert risks.robust(LabelCVaR(0.7)) + penalty > clf.objective_


def test_a_new_loss_scores_and_is_searched_for(new_loss):
    X, y = draw(n=600)
    scoring = RiskScorer(LabelCVaR(0.7), loss="exponential")
    grid = {"loss": ["exponential", "squared_hinge"]}
    search = GridSearchCV(RobustLinearClassifier(LabelCVaR(0.7)), grid, cv=2, scoring=scoring)
    assert np.all(np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]))


def test_a_model_of_a_new_loss_is_saved(new_loss, tmp_path):
    X, y = draw()
    clf = RobustLinearClassifier(LabelCVaR(0.7), loss="exponential").fit(X, y)
    save_model(clf, tmp_path / "m.equipoise")
    again = load_model(tmp_path / "m.equipoise")
    np.testing.assert_array_equal(again.model.decision_function(X), clf.decision_function(X))


def test_the_errors_name_a_new_loss(new_loss):
    with pytest.raises(InvalidParameterError, match=r"'smoothed_hinge', 'exponential', got 'log'"):
        class_risks([0, 1], [0.1, 0.2], loss="log")
    message = r"can be trained.*'exponential'\), got 'hinge'"
    with pytest.raises(InvalidParameterError, match=message):
        RobustLinearClassifier(loss="hinge").fit(*draw())


# --- a goal: one file and one line --------------------------------------------------------------


@dataclass(frozen=True)
class PowerMean(SmoothCriterion):
    """The mean of a power of the class risks."""

    prior: np.ndarray
    power: float
    measures = "risk"

    def of_rates(self, recalls, shares):
        return float(np.mean((1 - recalls) ** self.power))


class EvenRisks(Goal):
    """Class risks that are small and alike."""

    def __init__(self, power=2.0):
        self.power = power

    def resolve(self, prior, classes=None):
        p, _ = named_prior(prior, classes)
        return PowerMean(p, check_number(self.power, "power", "[1, inf)"))

    @classmethod
    def examples(cls):
        return [cls(), cls(3.0)]


@pytest.fixture
def new_goal():
    GOALS.register(EvenRisks)
    yield EvenRisks
    GOALS.remove("EvenRisks")


def test_a_new_goal_decides(new_goal):
    X, y = draw(n=2000)
    base = RobustLogisticRegression("standard")
    clf = TunedDecisionClassifier(base, new_goal(), cv=3, random_state=0).fit(X, y)
    plain = base.fit(X, y)
    tuned, default = (list(class_risks(y, one.predict(X)).values()) for one in (clf, plain))
    assert np.mean(np.square(tuned)) < np.mean(np.square(default))
    assert clone(clf).set_params(goal__power=3).goal.power == 3


def test_a_new_goal_is_read_and_written_as_text(new_goal):
    for goal in new_goal.examples():
        assert format_goal(parse_goal(format_goal(goal))) == format_goal(goal) == repr(goal)
    with pytest.raises(InvalidParameterError, match="power must be a number"):
        parse_goal("EvenRisks(power=0.5)")


def test_a_new_goal_works_on_the_command_line_and_in_a_saved_model(new_goal, tmp_path):
    fit, evaluated, out = fitted_on_the_command_line("EvenRisks(power=3)", tmp_path)
    assert "linear model, EvenRisks(power=3)" in fit and "EvenRisks(power=3)" in evaluated
    assert repr(load_model(out).model.goal) == "EvenRisks(power=3)"
    assert completed("Even") == ["EvenRisks("]
