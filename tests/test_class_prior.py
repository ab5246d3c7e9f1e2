"""One meaning of ``class_prior``: rows of other class frequencies, as if drawn from the population.

Wherever it is given, the result must be that of the same rows brought to the population by hand:
each with the weight of its class there over that in the rows, and with probabilities whose odds are
carried over by the same factors.
"""

import inspect
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from equipoise import (
    PUBLIC_MODULES,
    CostMatrix,
    LabelCVaR,
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    TunedDecisionClassifier,
    population_proba,
    tune_weights,
)
from equipoise.analysis import weight_tradeoff
from equipoise.display import ReliabilityDisplay
from equipoise.exceptions import InvalidParameterError, MissingExtraError
from equipoise.risks import (
    ClassRisks,
    RiskScorer,
    class_risks,
    classifier_risks,
    rescale_proba,
)
from equipoise.theory import (
    conditional_bound,
    excess_risk,
    excess_risk_in_class,
    iid_bound,
    margin_condition,
    rate_bound,
    robust_bayes,
)

SET = LabelCVaR(0.4)
K, N = 3, 900
PRIOR = np.array([0.2, 0.3, 0.5])
PAIR = np.array([0.25, 0.75])


class Rows:
    """Rows with the frequencies of a sample, and the same rows brought to the population."""

    def __init__(self, prior, seed=0):
        rng = np.random.default_rng(seed)
        k = len(prior)
        self.prior, self.y = (
            prior,
            rng.choice(k, N, p=np.array([0.6, 0.3, 0.1][:k]) / sum([0.6, 0.3, 0.1][:k])),
        )
        self.X = rng.normal(size=(N, 2)) + 1.5 * np.column_stack([self.y, -(self.y**2)])
        scores = -((self.X[:, :1] - 1.5 * np.arange(k)) ** 2) - np.arange(k)
        self.table = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        self.decided = self.table.argmax(axis=1)
        factors = prior / (np.bincount(self.y) / N)
        self.weights = factors[self.y]
        self.carried = self.over(self.table, factors)
        # Without labels a row stands for all classes, each with its probability.
        self.factors = prior / self.table.mean(axis=0)
        self.expected = self.table @ self.factors

    @staticmethod
    def over(table, factors):
        return table * factors / (table * factors).sum(axis=1, keepdims=True)


THREE, TWO = Rows(PRIOR), Rows(PAIR)
FOLDS = np.arange(N) % 5


def risks_of(rows, **more):
    return class_risks(rows.y, rows.decided, **more)


def of_labels(summary):
    """A summary of class risks, from frequencies and from weights of the rows."""
    given = risks_of(THREE, class_prior=THREE.prior)
    return summary(given), summary(risks_of(THREE, sample_weight=THREE.weights))


def scored():
    fit = LogisticRegression().fit(THREE.X, THREE.y)
    given = RiskScorer(SET, class_prior=PRIOR)(fit, THREE.X, THREE.y)
    return given, RiskScorer(SET)(fit, THREE.X, THREE.y, sample_weight=THREE.weights)


def of_a_classifier():
    rows, fit = (THREE.X, THREE.y), LogisticRegression().fit(THREE.X, THREE.y)
    weighted = classifier_risks(fit, *rows, sample_weight=THREE.weights)
    return classifier_risks(fit, *rows, class_prior=PRIOR).standard(), weighted.standard()


def in_a_class():
    other = np.array([0.3, 0.2, 0.1])
    weighted = risks_of(THREE, sample_weight=THREE.weights)
    given = excess_risk_in_class(risks_of(THREE), other, other, "standard", class_prior=PRIOR)
    return given, excess_risk_in_class(weighted, other, other, "standard")


def bound_of(bound, *arguments):
    """Bounds know the population by its frequencies alone: those that the set is taken at."""
    found = bound(np.bincount(THREE.y), *arguments, PRIOR, SET, risks=risks_of(THREE).risks)
    return np.asarray(found.masses), SET.resolve(PRIOR).maximize(np.asarray(found.terms))


def traded_off():
    def numbers(found):
        return np.r_[found.risks.ravel(), found.regret.ravel(), found.masses.ravel()]

    names = ["standard", "balanced", (1, 2, 5)]
    given = weight_tradeoff(THREE.y, THREE.table, names, class_prior=PRIOR)
    brought = weight_tradeoff(THREE.y, THREE.carried, names, sample_weight=THREE.weights)
    return numbers(given), numbers(brought)


def tuned(goal, rows):
    def numbers(found, scale):
        weights = np.asarray(found.weights) * scale
        values = [found.robust_risk, found.metric_value]
        return np.r_[weights / weights.sum(), [0.0 if v is None else v for v in values]]

    arguments = {"folds": FOLDS}
    given = tune_weights(rows.y, rows.table, goal, class_prior=rows.prior, **arguments)
    brought = tune_weights(rows.y, rows.carried, goal, sample_weight=rows.weights, **arguments)
    # Weights for probabilities as they came, and for those of the population.
    return numbers(given, 1.0), numbers(brought, rows.prior / (np.bincount(rows.y) / N))


class Said(ClassifierMixin, BaseEstimator):
    """A fitted classifier that says what it was told to."""

    def __init__(self, table):
        self.table = table

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return self.table[: len(X)]


def plugged_in(model, **settings):
    def numbers(table, prior, weights):
        base = Said(table).fit(THREE.X, THREE.y)
        found = model(base, "f1_macro", cv="prefit", class_prior=prior, **settings)
        found.fit(THREE.X, THREE.y, sample_weight=weights)
        return np.r_[found.predict(THREE.X), found.metric_value_]

    given = numbers(THREE.table, PRIOR, None)
    return given, numbers(THREE.carried, None, THREE.weights)


def bayes():
    given = robust_bayes(THREE.table, SET, class_prior=PRIOR)
    brought = robust_bayes(Rows.over(THREE.table, THREE.factors), SET, sample_weight=THREE.expected)
    # Certified to 1e-7 each.
    return np.round(given.risk, 6), np.round(brought.risk, 6)


def excess(y=None):
    other = Rows.over(THREE.table, np.array([1.0, 2.0, 1.0]))
    factors = THREE.factors if y is None else PRIOR / (np.bincount(y) / N)
    weights = THREE.expected if y is None else THREE.weights
    given = excess_risk(THREE.table, other, "standard", (1, 2, 5), y=y, class_prior=PRIOR)
    brought = [Rows.over(table, factors) for table in (THREE.table, other)]
    found = excess_risk(*brought, "standard", (1, 2, 5), y=y, sample_weight=weights)
    return [
        [each.excess, each.estimation, each.irreducible, each.l1, each.disagreement]
        for each in (given, found)
    ]


def margin():
    given = margin_condition(TWO.table, "balanced", class_prior=PAIR)
    brought = Rows.over(TWO.table, TWO.factors)
    found = margin_condition(brought, "balanced", sample_weight=TWO.expected)
    return [
        [each.threshold, each.exponent, each.constant, each.distance] for each in (given, found)
    ]


def fitted(model, **settings):
    settings |= {"goal": SET, "tol": 1e-9}
    given = model(class_prior=PRIOR, **settings).fit(THREE.X, THREE.y)
    brought = model(**settings).fit(THREE.X, THREE.y, sample_weight=THREE.weights)
    return given.objective_, brought.objective_


def put_back():
    fit = RobustLogisticRegression(SET).fit(THREE.X, THREE.y)
    masses = fit.worst_case_masses_
    arguments = {"masses": masses, "class_prior": PRIOR}
    given = population_proba(fit, THREE.X, class_prior=PRIOR)
    return given, rescale_proba(fit.predict_proba(THREE.X), **arguments)


def put_back_by_weights():
    # Trained with weights, on rows of the population.
    weights = np.array([1.0, 2.0, 3.0])
    masses = weights * PRIOR / (weights @ PRIOR)
    given = rescale_proba(THREE.table, weights=weights, class_prior=PRIOR)
    return given, Rows.over(THREE.table, PRIOR / masses)


def drawn():
    def numbers(display):
        return np.concatenate(
            [np.ravel(display.to_dict()[name]) for name in ("predicted", "observed")]
        )

    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    fit = RobustLogisticRegression(SET).fit(TWO.X, TWO.y)
    display = ReliabilityDisplay.from_estimator(fit, TWO.X, TWO.y, class_prior=PAIR)
    tables = [fit.predict_proba(TWO.X), population_proba(fit, TWO.X, PAIR)]
    wanted = []
    for quantity in ("predicted", "observed"):
        for table in tables:
            bins = np.searchsorted([0.2, 0.4, 0.6, 0.8], table[:, 1], side="right")
            values = table[:, 1] if quantity == "predicted" else TWO.y
            sums = np.bincount(bins, weights=TWO.weights * values)
            wanted.append((sums / np.bincount(bins, weights=TWO.weights))[np.unique(bins)])
    return numbers(display), np.concatenate(wanted)


def of_a_training_loss():
    torch = pytest.importorskip("torch")
    from equipoise.torch import RobustLoss

    rng = np.random.default_rng(0)
    logits, targets = torch.tensor(rng.normal(size=(60, 3))), torch.arange(60) % 3
    brought = RobustLoss(SET, 1000 * np.asarray(PRIOR)).eval()
    return [
        float(loss(logits, targets))
        for loss in (RobustLoss(SET, [500, 300, 200], class_prior=PRIOR).eval(), brought)
    ]


CASES = {
    "RobustLoss.__init__": of_a_training_loss,
    "class_risks": lambda: of_labels(lambda risks: risks.standard()),
    "class_risks, weighted": lambda: of_labels(lambda risks: risks.weighted([1, 2, 5])),
    "class_risks, robust": lambda: of_labels(lambda risks: risks.robust(SET)),
    "class_risks, worst case": lambda: of_labels(lambda risks: risks.worst_case_weights(SET)),
    "ClassRisks.__init__": lambda: (
        ClassRisks(risks_of(THREE).risks, PRIOR).robust(SET),
        risks_of(THREE, sample_weight=THREE.weights).robust(SET),
    ),
    "classifier_risks": of_a_classifier,
    "ClassRisks.with_prior": lambda: (
        risks_of(THREE).with_prior(PRIOR).standard(),
        risks_of(THREE, sample_weight=THREE.weights).standard(),
    ),
    "RiskScorer.__init__": scored,
    "excess_risk_in_class": in_a_class,
    "iid_bound": lambda: bound_of(iid_bound, 0.01),
    "rate_bound": lambda: bound_of(rate_bound, 0.1),
    "conditional_bound": lambda: bound_of(conditional_bound, 0.01),
    "weight_tradeoff": traded_off,
    "tune_weights": lambda: tuned(SET, THREE),
    "tune_weights, costs": lambda: tuned(CostMatrix([[0, 1, 1], [4, 0, 4], [2, 2, 0]]), THREE),
    "tune_weights, f1_macro": lambda: tuned("f1_macro", TWO),
    "tune_weights, f1": lambda: tuned("f1", TWO),
    "tune_weights, accuracy": lambda: tuned("accuracy", TWO),
    "TunedDecisionClassifier.__init__": lambda: plugged_in(TunedDecisionClassifier),
    "RobustClassifier.__init__": lambda: plugged_in(RobustClassifier),
    "robust_bayes": bayes,
    "excess_risk": excess,
    "excess_risk, with labels": lambda: excess(THREE.y),
    "margin_condition": margin,
    "RobustLogisticRegression.__init__": lambda: fitted(RobustLogisticRegression),
    "RobustLogisticRegressionCV.__init__": lambda: fitted(
        RobustLogisticRegressionCV, Cs=[0.01, 1.0], cv=3
    ),
    "RobustLinearClassifier.__init__": lambda: fitted(RobustLinearClassifier),
    "population_proba": put_back,
    "rescale_proba": put_back_by_weights,
    "ReliabilityDisplay.from_estimator": drawn,
}


@pytest.mark.parametrize("case", CASES)
def test_rows_brought_to_the_population_give_the_same(case):
    given, brought = CASES[case]()
    np.testing.assert_allclose(np.asarray(given), np.asarray(brought), rtol=1e-6, atol=1e-9)


def takers():
    """Every public function and method that takes a class_prior."""
    for room in (*PUBLIC_MODULES, "analysis", "estimators", "theory"):
        try:
            module = import_module(f"equipoise.{room}")
        except MissingExtraError:  # seen where its optional part is installed
            continue
        for name in module.__all__:
            value = getattr(module, name)
            members = {name: value}
            if inspect.isclass(value):
                own = [key for key in vars(value) if key == "__init__" or not key.startswith("_")]
                members = {f"{name}.{key}": getattr(value, key) for key in own}
            for path, function in members.items():
                if callable(function) and "class_prior" in inspect.signature(function).parameters:
                    yield path


# These hand it on to functions that are here, or are compared in tests of their own.
HANDED_ON = {
    "PredictionSets.__init__",
    "PredictionSets.adapted",
    "PriorEstimate.weights",
    "PriorMonitor.__init__",
    "ErrorDecompositionDisplay.from_predictions",
    "WorstCaseWeightsDisplay.from_predictions",
    "tune_decisions",
    "DecisionSummary.__init__",
    "descent_ascent",
    "robust_risk_interval",
}


def test_every_function_with_a_class_prior_is_here():
    known = {case.split(",")[0] for case in CASES} | HANDED_ON
    assert set(takers()) <= known


def test_a_class_that_the_population_lacks_has_no_fbeta():
    with pytest.raises(InvalidParameterError, match="class_prior must be positive for every class"):
        tune_weights(THREE.y, THREE.table, "f1_macro", class_prior=[0.5, 0.5, 0.0])
