"""The summary of tuned decisions: recalls, precisions and errors as counted by hand."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import cross_val_predict

from equipoise import RobustClassifier, TunedDecisionClassifier, tune_weights
from equipoise.blocks import from_blocks
from equipoise.exceptions import UnidentifiableError

NAMES = np.array(["common", "<b>", "rare"])


def draw(n=1200, seed=0):
    """Three overlapping Gaussian classes, two of them small."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    return rng.normal(size=(n, 2)) + 2.5 * np.array([[0, 0], [1, 0], [0, 1]])[y], NAMES[y]


def shown(value):
    return f"{100 * value:.1f}%"


def test_rates_are_those_of_scikit_learn_on_the_same_predictions():
    X, y = draw()
    folds = np.arange(len(y)) % 5
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(5)]
    eta = cross_val_predict(LogisticRegression(), X, y, cv=splits, method="predict_proba")
    classes = np.unique(y)
    tuned = tune_weights(y, eta, "balanced_accuracy", folds=folds)
    table = tuned.summary().to_frame()
    default = classes[eta.argmax(axis=1)]
    decided = classes[(eta * tuned.fold_weights[folds]).argmax(axis=1)]
    for predicted, name in ((default, "default"), (decided, "tuned")):
        found = recall_score(y, predicted, average=None)
        np.testing.assert_allclose(table[f"recall_{name}"], found)
        np.testing.assert_allclose(
            table[f"precision_{name}"], precision_score(y, predicted, average=None)
        )
    summary = tuned.summary()
    assert np.isclose(summary.default_error, np.mean(default != y))
    assert np.isclose(summary.tuned_error, np.mean(decided != y))
    assert np.all(table["recall_tuned_lower"] < table["recall_tuned"])
    assert np.all(table["recall_tuned_upper"] > table["recall_tuned"])
    text = repr(summary)
    assert shown(np.mean(default != y)) in text and shown(np.mean(decided != y)) in text


def test_precisions_and_errors_are_for_the_population():
    X, y = draw()
    eta = LogisticRegression().fit(*draw(seed=1)).predict_proba(X)
    prior = dict(zip(np.unique(y), (0.2, 0.5, 0.3), strict=True))
    tuned = tune_weights(y, eta, "balanced_accuracy", class_prior=prior)
    summary, table = tuned.summary(), tuned.summary().to_frame()
    recalls, shares = table["recall_tuned"].to_numpy(), np.asarray(tuned.class_prior)
    assert np.isclose(summary.tuned_error, 1 - shares @ recalls)
    assert np.isclose((table["precision_tuned"] * tuned.shares[1]).sum(), shares @ recalls)


@pytest.mark.parametrize("training", ["plain", "average"])
def test_classifiers_tell_time_and_size_too(training):
    X, y = draw()
    clf = RobustClassifier(LogisticRegression(), "balanced_accuracy", training=training).fit(X, y)
    assert clf.summary().costs.keys() == {"model size", "time of the fit", "time of a prediction"}
    html = clf._repr_mimebundle_()["text/html"]
    assert "<td>&lt;b&gt;</td>" in html and "<td><b></td>" not in html
    assert "overall error" not in clone(clf)._repr_mimebundle_()["text/html"]


def test_out_of_core_data_are_summarised_on_all_rows_that_did_not_train():
    X, y = draw(6000)
    blocks = from_blocks([(X[i::6], y[i::6]) for i in range(6)])
    clf = TunedDecisionClassifier(LogisticRegression(), "balanced_accuracy", sample_rows=600)
    clf.fit(blocks)
    summary = clf.summary()
    np.testing.assert_array_equal(summary.rows, np.asarray(clf.rows_seen_["evaluated"]))
    whole = clone(clf).set_params(sample_rows=None).fit(X, y).summary()
    for name in ("default", "tuned"):
        near, far = (np.asarray(getattr(each, name).risks) for each in (summary, whole))
        np.testing.assert_allclose(near, far, atol=0.1)


def test_where_nothing_was_evaluated_there_is_no_summary():
    X, y = draw()
    clf = TunedDecisionClassifier(LogisticRegression(), "balanced").fit(X, y)
    with pytest.raises(UnidentifiableError, match="Nothing was evaluated"):
        clf.summary()
