"""Exports that would decide otherwise: each is compared with the classifier, and refused."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import NuSVC
from sklearn.tree import DecisionTreeClassifier

from equipoise import FixedWeights, RobustClassifier, TunedDecisionClassifier
from equipoise.exceptions import InvalidParameterError

pytest.importorskip("onnx")
pytest.importorskip("skl2onnx")
runtime = pytest.importorskip("onnxruntime")

from equipoise.onnx import export, to_onnx, tree_ensembles  # noqa: E402

N_TRAIN = 300


def draw(k=2, n_rows=1300, seed=0):
    """Rows of unequal classes, with a column of many zeros."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, n_rows, p=np.array([0.8, 0.2] if k == 2 else [0.75, 0.17, 0.08]))
    X = rng.normal(size=(n_rows, 5)) + 0.8 * rng.normal(size=(k, 5))[labels]
    X[:, 1] = np.round(X[:, 1])
    return X, labels


def plugged(base, k=2, names=None):
    X, labels = draw(k)
    y = labels if names is None else names[labels]
    return TunedDecisionClassifier(base, "balanced").fit(X[:N_TRAIN], y[:N_TRAIN])


def assert_same(model, k=2, tolerance=1e-12):
    X, _ = draw(k)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    label, probabilities = session.run(None, {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=tolerance)


# What was written wrong, and is right


@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
@pytest.mark.parametrize("k", [2, 3])
def test_linear_discriminants_are_linear(k, solver):
    assert_same(plugged(LinearDiscriminantAnalysis(solver=solver), k), k)


@pytest.mark.parametrize("k", [2, 3])
def test_a_number_may_stand_for_missing_values_in_xgboost(k):
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.XGBClassifier(n_estimators=8, n_jobs=1, missing=0.0)
    assert_same(plugged(booster, k), k, tolerance=1e-6)


def test_lightgbm_takes_the_tiniest_numbers_for_zeros():
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1)
    rng = np.random.default_rng(0)
    X = rng.choice([0.0, 1.0, -1.0], (600, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=600) > 0).astype(int)
    model = TunedDecisionClassifier(booster, "balanced").fit(X, y)
    edge = float(np.float32(1e-35))
    rows = np.zeros((10, 3))
    rows[:, 0] = [s * e for s in (-1, 1) for e in (edge / 2, edge, 1.1 * edge, 1e-300, 0.0)]
    session = runtime.InferenceSession(to_onnx(model, X).SerializeToString())
    _, probabilities = session.run(None, {"X": rows})
    np.testing.assert_allclose(probabilities, model.predict_proba(rows), rtol=0, atol=1e-12)


# What is refused


def scaled(base):
    return make_pipeline(StandardScaler(), base)


# What skl2onnx or the runtime does to classifiers of scikit-learn that are not written here.
REFUSED = {
    "distance": (scaled(KNeighborsClassifier(weights="distance")), "labels differ"),
    "isotonic": (CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=2), "labels differ"),
    "process": (scaled(GaussianProcessClassifier()), "not standard"),
    "radius": (scaled(RadiusNeighborsClassifier(9.0)), "onnxruntime fails on rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_predicts_otherwise_or_cannot_be_run_is_refused(name):
    base, message = REFUSED[name]
    with pytest.raises(InvalidParameterError, match=message):
        to_onnx(plugged(base))


def test_the_scores_of_nu_support_vectors_are_refused():
    X, y = draw()
    model = RobustClassifier(scaled(NuSVC(nu=0.1)), "balanced", cv=3).fit(X[:N_TRAIN], y[:N_TRAIN])
    with pytest.raises(InvalidParameterError, match=r"NuSVC has no probabilities"):
        to_onnx(model)


def test_trees_with_more_than_a_number_in_a_leaf_are_refused():
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    linear = lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1, linear_tree=True)
    with pytest.raises(InvalidParameterError, match=r"LGBMClassifier.*labels differ"):
        to_onnx(plugged(linear))
    several = xgboost.XGBClassifier(n_estimators=3, n_jobs=1, multi_strategy="multi_output_tree")
    with pytest.raises(InvalidParameterError, match="XGBClassifier cannot be written as ONNX"):
        to_onnx(plugged(several, 3))


def test_class_names_that_int64_does_not_hold_are_refused():
    names = np.array([3, 2**63 + 5], dtype=np.uint64)
    with pytest.raises(InvalidParameterError, match=r"below 2\*\*63.*9223372036854775813"):
        to_onnx(plugged(DecisionTreeClassifier(max_depth=3), names=names))
    assert_same(
        plugged(DecisionTreeClassifier(max_depth=3), names=np.array([3, 2**62], dtype=np.uint64))
    )


# What is refused because it differs


def sabotaged(monkeypatch, change):
    """Decision trees written with a change."""

    def write(graph, model, rows):
        trees = [change(tree) for tree in tree_ensembles._of_scikit_learn(model.tree_)]
        compare = tree_ensembles._BELOW if change is strictly_below else tree_ensembles._AT_MOST
        return tree_ensembles._sums(graph, rows, trees, len(model.classes_), compare)

    monkeypatch.setitem(export._TREES, "sklearn.DecisionTreeClassifier", write)


def strictly_below(tree):
    return tree


def missing_elsewhere(tree):
    return replace(tree, missing_left=~tree.missing_left)


def other_leaves(tree):
    return replace(tree, weight=tree.weight * 0.999)


@pytest.mark.parametrize("change", [strictly_below, missing_elsewhere, other_leaves])
def test_trees_that_differ_in_one_respect_are_refused(monkeypatch, change):
    model = plugged(DecisionTreeClassifier(max_depth=4, random_state=0))
    sabotaged(monkeypatch, change)
    with pytest.raises(InvalidParameterError, match=r"on \d+ rows, \d+ labels differ.*by up to"):
        to_onnx(model)


@pytest.mark.parametrize("k", [2, 3])
def test_a_classifier_inside_of_others_is_found_by_comparison(k):
    inner = KNeighborsClassifier(weights="distance")
    model = plugged(CalibratedClassifierCV(scaled(inner), method="sigmoid", cv=2), k)
    with pytest.raises(InvalidParameterError, match=r"labels differ from those of predict"):
        to_onnx(model)


class FarOut(ClassifierMixin, BaseEstimator):
    """One class, and another one for rows beyond what any rule of thumb makes up."""

    def __init__(self, beyond=1e6):
        self.beyond = beyond

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict_proba(self, X):
        second = np.where(X[:, 0] > self.beyond, 0.9, 0.1)
        return np.column_stack([1 - second, second])


def written_flat(monkeypatch, made, probabilities, *, passes_nan=False):
    """Write classifiers of a class with the same probabilities for all rows."""

    def write(graph, head, rows):
        gaps = rows if passes_nan else graph.cast(graph.add("IsNaN", rows), "float64")
        zeros = graph.add("MatMul", gaps, graph.constant(np.zeros((5, 2))))
        return graph.add("Add", zeros, graph.constant(np.array([probabilities])))

    monkeypatch.setitem(export._TREES, f"{made.__module__.split('.')[0]}.{made.__name__}", write)


def test_rows_of_the_user_are_compared_too(monkeypatch):
    X, labels = draw()
    model = TunedDecisionClassifier(FarOut(), FixedWeights([1, 1])).fit(X, labels)
    written_flat(monkeypatch, FarOut, [0.9, 0.1])
    to_onnx(model)
    X[0, 0] = 2e6
    with pytest.raises(InvalidParameterError, match=r"1 labels differ.*by up to 0.8 "):
        to_onnx(model, X)


def test_probabilities_that_are_no_numbers_are_refused(monkeypatch):
    model = TunedDecisionClassifier(FarOut(), FixedWeights([1, 1])).fit(*draw())
    written_flat(monkeypatch, FarOut, [0.9, 0.1], passes_nan=True)
    with pytest.raises(InvalidParameterError, match=r"by up to nan"):
        to_onnx(model)


class RefusesAll(FarOut):
    """A classifier that takes none of the rows that are made up."""

    def predict_proba(self, X):
        if not np.all(X[:, 0] >= self.beyond):
            raise ValueError("too small")
        return super().predict_proba(X)


def test_what_cannot_be_compared_is_refused(monkeypatch):
    X, labels = draw()
    X[:, 0] += 2e6
    model = TunedDecisionClassifier(RefusesAll(), FixedWeights([1, 1])).fit(X, labels)
    written_flat(monkeypatch, RefusesAll, [0.1, 0.9])
    with pytest.raises(InvalidParameterError, match="predicts none of the generated rows"):
        to_onnx(model)
    to_onnx(model, X)
