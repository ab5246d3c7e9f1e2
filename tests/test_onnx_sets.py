"""Exported prediction sets in onnxruntime: the sets are ours, and so are labels."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import LabelCVaR, PredictionSets, RobustClassifier
from equipoise.exceptions import InvalidParameterError

pytest.importorskip("onnx")
pytest.importorskip("skl2onnx")
runtime = pytest.importorskip("onnxruntime")

from equipoise.onnx import export, to_onnx  # noqa: E402

CLASSES = np.array(["common", "middle", "rare"])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), [400, 120, 60])
    return rng.normal(size=(len(y), 4)) + 0.8 * y[:, None], CLASSES[y]


def outputs(model, X):
    session = runtime.InferenceSession(to_onnx(model, X).SerializeToString())
    return session.run(None, {"X": X})


def check(model, X):
    label, probabilities, sets = outputs(model, X)
    np.testing.assert_array_equal(sets, model.predict_set(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-9)
    wanted = model.predict(X)
    says = np.array([each is not None for each in wanted.tolist()])
    np.testing.assert_array_equal(label[says], wanted[says])
    return sets.sum(axis=1)


@pytest.mark.parametrize("goal", ["standard", "balanced", {"rare": 0.95}, LabelCVaR(0.3)], ids=str)
@pytest.mark.parametrize("coverage", [0.4, 0.9])
def test_sets_and_labels_are_those_of_the_model(data, goal, coverage):
    X, y = data
    model = PredictionSets(LogisticRegression(), coverage, goal, random_state=0).fit(X, y)
    sizes = check(model, X)
    if goal == "balanced":
        assert (sizes == 0).any() if coverage < 0.5 else (sizes > 1).any()
    check(model.adapted({"common": 0.2, "middle": 0.3, "rare": 0.5}), X)


def test_any_model_that_can_be_written_may_be_inside(data):
    X, y = data
    forest = RandomForestClassifier(10, max_depth=5, random_state=0)
    check(PredictionSets(forest, abstain="several", random_state=0).fit(X, y), X)
    robust = RobustClassifier(LogisticRegression(), training="plain", cv=3).fit(X, y)
    check(PredictionSets(FrozenEstimator(robust), goal="standard").fit(X, y), X)
    averaged = RobustClassifier(LogisticRegression(), cv=3).fit(X, y)
    check(PredictionSets(FrozenEstimator(averaged), goal="standard").fit(X, y), X)


def test_sets_behind_a_step_of_a_pipeline(data):
    X, y = data
    sets = PredictionSets(LogisticRegression(), random_state=0)
    model = make_pipeline(StandardScaler(), sets).fit(X, y)
    _, _, found = outputs(model, X)
    np.testing.assert_array_equal(found, model[-1].predict_set(model[0].transform(X)))


def test_sets_of_folds_are_refused(data):
    with pytest.raises(InvalidParameterError, match=r"one split .* several folds"):
        to_onnx(PredictionSets(LogisticRegression(), cv=3, random_state=0).fit(*data))


def test_other_sets_are_refused(data, monkeypatch):
    right = export.set_steps
    monkeypatch.setattr(
        export,
        "set_steps",
        lambda model: replace(right(model), thresholds=1.2 * np.asarray(model.thresholds_)),
    )
    with pytest.raises(InvalidParameterError, match="labels differ"):
        to_onnx(PredictionSets(LogisticRegression(), random_state=0).fit(*data), data[0])
