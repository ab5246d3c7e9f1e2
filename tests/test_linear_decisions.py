"""Tuned decisions of linear models: offsets from scores of the model fitted without a row."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import recall_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from equipoise import (
    LabelCVaR,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    load_model,
    population_proba,
    save_model,
)
from equipoise.blocks import from_blocks
from equipoise.estimators import leave_one_out, linear_decisions
from equipoise.estimators.leave_one_out import LinearFit, left_out_leads
from equipoise.exceptions import FewRowsWarning, InvalidInputError, InvalidParameterError
from equipoise.losses import as_trained
from equipoise.sets import FixedWeights

NAMES = np.array(["common", "less", "rare"])


def draw(n=400, k=3, seed=0, spread=1.5):
    """Gaussian classes, the first of them the most frequent."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.7, 0.2, 0.1])[:k]
    y = rng.choice(k, n, p=shares / shares.sum())
    return rng.normal(size=(n, k)) + spread * np.eye(k)[y], NAMES[y]


def expected_failures(estimator):
    return {
        "check_classifiers_train": "the most probable class is not what is decided",
        "check_sample_weight_equivalence_on_dense_data": "equal rows are left out together",
        "check_sample_weight_equivalence_on_sparse_data": "equal rows are left out together",
    }


@parametrize_with_checks(
    [RobustLogisticRegression("worst_class", decisions="tuned")],
    expected_failed_checks=expected_failures,
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [2, 3])
def test_leads_are_those_of_fits_without_the_rows(k):
    X, y = draw(60, k)
    X[5] = X[4]
    model = RobustLogisticRegression("balanced", C=0.3, tol=1e-10).fit(X, y)
    labels, counts = np.searchsorted(NAMES, y), np.array([np.sum(y == name) for name in NAMES[:k]])
    # At masses that stay as they are, which those of one weighting do.
    masses = np.asarray(model.worst_case_masses_)
    fit = LinearFit(
        model.coef_,
        model.intercept_,
        True,
        masses,
        1 / (0.3 * len(y)),
        as_trained("cross_entropy").kernel(k),
    )
    rows, leads = left_out_leads(fit, X, labels, np.ones(len(y)), counts.astype(float))
    full = model.decision_function(X)
    for place in (0, 4, 5, 20, 41):
        kept = np.any(X[place] != X, axis=1)
        own = np.array([np.sum(y[kept] == name) for name in NAMES[:k]])
        # The same penalty, and the same mass for each class.
        again = clone(model).set_params(C=0.3 * len(y) / kept.sum()).fit(X[kept], y[kept])
        scores = np.atleast_2d(again.decision_function(X[[place]]).T)
        exact = fit.leads(scores)[0]
        here = rows.position[place]
        before = fit.leads(np.atleast_2d(full[[place]].T))[0]
        moved = np.abs(exact - before).max()
        assert own.min() > 3 and np.abs(leads[here] - exact).max() < 0.15 * moved + 1e-4


def test_only_decisions_change():
    X, y = draw()
    plain, tuned = (
        RobustLogisticRegression("worst_class", decisions=each).fit(X, y)
        for each in ("argmax", "tuned")
    )
    for name in ("coef_", "intercept_", "objective_", "lower_bound_", "duality_gap_"):
        np.testing.assert_array_equal(getattr(tuned, name), getattr(plain, name))
    np.testing.assert_array_equal(tuned.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(population_proba(tuned, X), population_proba(plain, X))
    offsets = np.asarray(tuned.decision_offsets_)
    assert np.ptp(offsets) > 0 and abs(offsets.mean()) < 1e-12
    np.testing.assert_allclose(tuned.decision_function(X), plain.decision_function(X) + offsets)
    best = NAMES[tuned.decision_function(X).argmax(axis=1)]
    np.testing.assert_array_equal(tuned.predict(X), best)
    np.testing.assert_array_equal(tuned.to_sklearn().predict(X), best)
    assert not np.any(np.asarray(plain.decision_offsets_))
    again = tuned.set_params(decisions="argmax").fit(X, y)
    assert not hasattr(again, "tuned_") and not np.any(np.asarray(again.decision_offsets_))


@pytest.mark.parametrize("k", [2, 3])
def test_the_worst_class_gains_on_new_rows(k):
    gains = []
    for seed in range(6):
        (X, y), (new, truth) = draw(600, k, seed), draw(20_000, k, 100 + seed)
        worst = [
            recall_score(truth, model.fit(X, y).predict(new), average=None).min()
            for model in (
                RobustLogisticRegression("standard"),
                RobustLogisticRegression("worst_class", decisions="tuned"),
            )
        ]
        gains.append(worst[1] - worst[0])
    assert np.mean(gains) > 0.1 and min(gains) > 0


def test_copies_of_rows_are_left_out_together():
    X, y = draw(200)
    one = RobustLogisticRegression("worst_class", C=1e3, decisions="tuned").fit(X, y)
    # Three copies of every row: a fit with copies of a row knows that row.
    copies = RobustLogisticRegression("worst_class", C=1e3 / 3, decisions="tuned")
    copies.fit(X.repeat(3, axis=0), y.repeat(3))
    for name in NAMES:
        assert abs(one.tuned_.class_risks[name] - copies.tuned_.class_risks[name]) < 0.02
    assert copies.tuned_.held_out[:, 0].sum() == 200


def test_at_most_so_many_rows_are_left_out():
    X, y = draw(5000)
    clf = RobustLogisticRegression("worst_class", decisions="tuned").fit(X, y)
    rows = clf.tuned_.held_out[:, 0].sum(axis=0)
    assert rows.max() == 1000 and rows[2] == np.sum(y == "rare")
    k, rng = 25, np.random.default_rng(0)
    y = np.arange(k).repeat(900)
    X = 3 * rng.normal(size=(k, 4))[y] + rng.normal(size=(len(y), 4))
    rows = clf.fit(X, y).tuned_.held_out[:, 0].sum(axis=0)
    assert rows.tolist() == [linear_decisions.MOST_ROWS // k] * k


def test_where_a_hessian_is_too_large_folds_are_fitted():
    X, y = draw(600)
    near = RobustLogisticRegression("worst_class", decisions="tuned").fit(X, y)
    wide = np.hstack([X, np.zeros((len(y), 800))])
    folds = RobustLogisticRegression("worst_class", decisions="tuned").fit(wide, y)
    assert (2 * wide.shape[1]) ** 2 > leave_one_out.MOST_WORK
    assert folds.tuned_.held_out[:, 0].sum() == len(y)
    difference = np.asarray(near.decision_offsets_) - np.asarray(folds.decision_offsets_)
    assert 0 < np.abs(difference).max() < 0.3
    margin = RobustLinearClassifier("worst_class", "margin", decisions="tuned").fit(X, y)
    assert margin.tuned_.held_out[:, 0].sum() == len(y)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
def test_pooling_shrinks_towards_the_weights_of_the_goal():
    X, y = draw(150)
    apart = []
    for pooling in (0.0, 2.0, 1e6):
        clf = RobustLogisticRegression("worst_class", decisions="tuned", pooling=pooling).fit(X, y)
        weights = np.asarray(clf.tuned_.weights) * np.asarray(clf.class_prior_)
        apart.append(np.ptp(np.log(weights)))
    assert apart[0] > apart[1] > apart[2] and apart[2] < 1e-3
    with pytest.raises(InvalidParameterError, match=r"pooling must be a number in \[0, inf\)"):
        clf.set_params(pooling=-1).fit(X, y)


def test_what_cannot_be_tuned():
    X, y = draw()
    for goal in ("balanced", "standard", FixedWeights([1.0, 2.0, 3.0])):
        clf = RobustLogisticRegression(goal, decisions="tuned").fit(X, y)
        assert not np.any(np.asarray(clf.decision_offsets_)) and not hasattr(clf, "tuned_")
    with pytest.raises(InvalidInputError, match="needs rows in memory"):
        RobustLogisticRegression(decisions="tuned").fit(from_blocks([(X, y)]))
    few = np.concatenate([np.flatnonzero(y != "rare"), np.flatnonzero(y == "rare")[:2]])
    with pytest.warns(FewRowsWarning):
        clf = RobustLogisticRegression("worst_class", decisions="tuned").fit(X[few], y[few])
    assert clf.decision_offsets_["rare"] == 0 and clf.decision_offsets_["less"] != 0


CLASSIFIERS = {
    "argmax": RobustLogisticRegression("worst_class"),
    "tuned": RobustLogisticRegression("worst_class", decisions="tuned"),
    "no probabilities": RobustLinearClassifier("worst_class", decisions="tuned"),
    "chosen penalty": RobustLogisticRegressionCV("worst_class", Cs=[0.1, 1], decisions="tuned"),
    "chosen level": RobustnessCV(RobustLogisticRegression(), alphas=[0.3, 1.0], cv=3),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_linear_classifier_has_a_summary(name):
    X, y = draw()
    clf = clone(CLASSIFIERS[name])
    assert "<td>common</td>" not in clf._repr_mimebundle_()["text/html"]
    text = repr(clf.fit(X, y).summary())
    assert "objective: " in text and "common" in text and "optimum (converged)" in text
    assert ("recall: default" in text) == (name not in ("argmax", "chosen level"))
    assert "<td>common</td>" in clf._repr_mimebundle_()["text/html"]


def test_a_saved_model_keeps_its_summary(tmp_path):
    X, y = draw()
    clf = RobustLogisticRegression(LabelCVaR(0.2), decisions="tuned").fit(X, y)
    save_model(clf, tmp_path / "model.equipoise")
    again = load_model(tmp_path / "model.equipoise")
    assert repr(again.model.summary()) == repr(clf.summary())
