"""Probabilities of fitted classifiers at stated class frequencies, in pipelines too."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import (
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    TunedDecisionClassifier,
    population_proba,
)
from equipoise.exceptions import InvalidParameterError
from equipoise.theory import LocalPolynomialClassifier

NAMES = np.array(["common", "rare"])
RARE = 0.1
SHIFT = np.array([1.0, -0.5])


def drawn(n=6000, seed=0):
    """Rows of two Gaussian classes, a tenth of them of the second."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < RARE * n).astype(int)
    return rng.normal(size=(n, 2)) + np.outer(y, SHIFT), NAMES[y]


def truth(X, prior=RARE):
    """Probabilities of both classes by the density of the rows."""
    odds = prior / (1 - prior) * np.exp(X @ SHIFT - SHIFT @ SHIFT / 2)
    second = odds / (1 + odds)
    return np.column_stack([1 - second, second])


MODELS = {
    "linear": RobustLogisticRegression("balanced", C=1e3),
    "worst class": RobustLogisticRegression("worst_class", C=1e3),
    "chosen penalty": RobustLogisticRegressionCV("balanced", Cs=[1e2, 1e3], cv=3),
    "plug-in": TunedDecisionClassifier(LogisticRegression(C=1e3), "worst_class", cv=3),
    "known weights": TunedDecisionClassifier(LogisticRegression(C=1e3), "balanced"),
    "plug-in over linear": TunedDecisionClassifier(
        make_pipeline(StandardScaler(), RobustLogisticRegression("balanced", C=1e3)),
        "worst_class",
        cv=3,
    ),
    "trained": RobustClassifier(
        LogisticRegression(C=1e3), "worst_class", training="balanced", cv=3
    ),
    "path": RobustnessCV(
        RobustLogisticRegression(C=1e3), alphas=[1.0, 0.2], rule="recall", recall=0.5, cv=3
    ),
    "path of decisions": RobustnessCV(
        TunedDecisionClassifier(LogisticRegression(C=1e3)), alphas=[1.0, 0.5], cv=3
    ),
    "local": LocalPolynomialClassifier(bandwidth=2.5),
}


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_are_those_that_the_rows_were_drawn_with(name):
    X, y = drawn()
    new, _ = drawn(2000, seed=1)
    model = make_pipeline(StandardScaler(), MODELS[name]).fit(X, y)
    alone = MODELS[name].fit(model[:-1].transform(X), y)
    stated = [(None, RARE), ({"rare": 0.5, "common": 0.5}, 0.5), ([0.3, 0.7], 0.7)]
    for prior, share in stated:
        found = population_proba(model, new, prior)
        # Local polynomials smooth what is steep.
        tolerance = 0.06 if name == "local" else 0.03
        assert np.abs(found - truth(new, share)).mean() < tolerance
        np.testing.assert_allclose(found.sum(axis=1), 1)
        rows = model[:-1].transform(new)
        np.testing.assert_array_equal(found, population_proba(alone, rows, prior))


def test_a_pipeline_needs_the_function_and_has_it():
    X, y = drawn(1000)
    model = make_pipeline(StandardScaler(), RobustLogisticRegression("balanced")).fit(X, y)
    linear = model[-1]
    odds = model.predict_proba(X) / np.asarray(linear.worst_case_masses_) * [1 - RARE, RARE]
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(population_proba(model, X), expected, rtol=1e-9)
    search = GridSearchCV(model, {"robustlogisticregression__C": [1.0]}, cv=2).fit(X, y)
    np.testing.assert_allclose(population_proba(search, X), expected, rtol=1e-9)
    frozen = FrozenEstimator(model)
    np.testing.assert_allclose(population_proba(frozen, X), expected, rtol=1e-9)


def test_a_prior_of_the_fit_is_that_of_the_population():
    X, y = drawn()
    given = {"common": 0.7, "rare": 0.3}
    for model in (
        RobustLogisticRegression("balanced", C=1e3, class_prior=given),
        RobustClassifier(
            LogisticRegression(C=1e3), "balanced", training="balanced", class_prior=given
        ),
    ):
        found = population_proba(model.fit(X, y), X)
        assert np.abs(found - truth(X, 0.3)).mean() < 0.03
        at_rows = population_proba(model, X, [1 - RARE, RARE])
        assert np.abs(at_rows - truth(X)).mean() < 0.03


def test_a_classifier_whose_training_was_robust_by_itself_is_put_back():
    X, y = drawn()
    base = RobustLogisticRegression("worst_class", C=1e3)
    own = base.fit(X, y).predict_proba(X)
    model = RobustClassifier(base, "worst_class", cv=3).fit(X, y)
    found = population_proba(model, X)
    assert np.abs(found - truth(X)).mean() < 0.03 < np.abs(own - truth(X)).mean()
    np.testing.assert_allclose(model.predict_proba(X), found)


def test_a_class_that_was_dropped_has_no_probability():
    X, y = drawn(600)
    y = y.astype("<U9")
    y[-2:] = "very rare"
    model = RobustClassifier(
        LogisticRegression(), "worst_class", training="balanced", cv=3, rare_classes="drop"
    ).fit(X, y)
    found = population_proba(model, X)
    assert np.all(found[:, 2] == 0)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_what_cannot_be_put_back_is_refused_in_a_sentence():
    X, y = drawn(600)
    for model in (
        make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced")),
        GaussianNB(),
        CalibratedClassifierCV(RobustLogisticRegression("balanced"), cv=2),
        RobustLinearClassifier("balanced"),
    ):
        with pytest.raises(InvalidParameterError, match=r"equipoise with predict_p.*rescale_p"):
            population_proba(model.fit(X, y), X)
