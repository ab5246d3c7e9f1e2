"""Linear models as ordinary estimators of scikit-learn, which know nothing of this package."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from equipoise import (
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    TunedDecisionClassifier,
    estimators,
    robust_path,
)
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.exceptions import InvalidParameterError
from equipoise.losses import LOSSES
from linear_models import small_data

NAMES = np.array(["a", "bb", "ccc"])
LINEAR = {
    "RobustLogisticRegression": RobustLogisticRegression("worst_class"),
    "RobustLogisticRegressionCV": RobustLogisticRegressionCV("worst_class", Cs=[0.1, 1], cv=3),
    "RobustnessCV": RobustnessCV(RobustLogisticRegression(), alphas=[1.0, 0.5], cv=3),
} | {
    f"RobustLinearClassifier {name}": RobustLinearClassifier("worst_class", loss=name, C=10)
    for name, loss in LOSSES.items()
    if loss.trained is not None
}


def test_no_linear_estimator_is_missing():
    public = [getattr(estimators, name) for name in estimators.__all__]
    linear = {e.__name__ for e in public if inspect.isclass(e) and issubclass(e, RobustLinearModel)}
    assert linear < {name.split()[0] for name in LINEAR}
    assert {"margin", "squared_hinge"} < {name.split()[-1] for name in LINEAR}


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", LINEAR)
def test_the_twin_decides_the_same_and_has_the_same_probabilities(name, k, dtype):
    X, y, _ = small_data(k)
    frame = pd.DataFrame(X, columns=["x", "y", "z"]).astype(dtype)
    model = LINEAR[name].fit(frame, NAMES[y])
    twin = model.to_sklearn()
    kind = LinearSVC if "Classifier" in name else LogisticRegression
    assert type(twin) is kind and twin.feature_names_in_.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(twin.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(twin.decision_function(frame), model.decision_function(frame))
    assert hasattr(twin, "predict_proba") == hasattr(model, "predict_proba")
    if kind is LogisticRegression:
        found, wanted = twin.predict_proba(frame), model.predict_proba(frame)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-15)


def test_the_twins_of_a_path_are_those_of_its_fits():
    X, y, _ = small_data(3)
    for fit in robust_path(X, y, values=[1.0, 0.5]).estimators:
        np.testing.assert_array_equal(fit.to_sklearn().predict(X), fit.predict(X))


def test_a_pickled_twin_loads_without_this_package(tmp_path):
    X, y, _ = small_data(3)
    model = RobustLinearClassifier(loss="margin").fit(X, NAMES[y])
    (tmp_path / "twin").write_bytes(pickle.dumps(model.to_sklearn()))
    code = (
        "import pickle, sys; sys.modules['equipoise'] = None\n"
        f"print(*pickle.load(open({str(tmp_path / 'twin')!r}, 'rb')).predict({X.tolist()}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == model.predict(X).tolist()


def test_a_path_of_decisions_says_how_it_is_exported():
    X, y, _ = small_data(2)
    path = RobustnessCV(TunedDecisionClassifier(LogisticRegression(), cv=3), alphas=[1.0, 0.5])
    with pytest.raises(InvalidParameterError, match=r"TunedDecisionClassifier.*onnx\.to_onnx"):
        path.fit(X, y).to_sklearn()
