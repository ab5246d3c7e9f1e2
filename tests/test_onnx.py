"""Exported classifiers in onnxruntime: the labels are ours, and so are the probabilities."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from equipoise import (
    CostMatrix,
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    TunedDecisionClassifier,
)
from equipoise.exceptions import InvalidParameterError, MissingExtraError
from equipoise.theory import LocalPolynomialClassifier

pytest.importorskip("onnx")
pytest.importorskip("skl2onnx")
runtime = pytest.importorskip("onnxruntime")

from equipoise.onnx import to_onnx  # noqa: E402

TEXTS = np.array(["healthy", "hyper", "hypo"])
NUMBERS = np.array([3, 10, 20])


def draw(k=3, n_rows=1300, seed=0):
    """Rows of unequal classes on scales from 1e-3 to 1e5, as float64 that float32 rounds."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(k, n_rows, p=np.array([0.8, 0.2] if k == 2 else [0.75, 0.17, 0.08]))
    X = rng.normal(size=(n_rows, 5)) + 0.8 * rng.normal(size=(k, 5))[labels]
    return np.round(X, 1) * [1e-3, 1.0, 0.1, 1e5, 7.0] + [0, 0, 0, 1e5, 0], labels


def session(model, **settings):
    written = to_onnx(model, **settings).SerializeToString()
    return runtime.InferenceSession(written, providers=["CPUExecutionProvider"])


def run(model, X, **settings):
    return session(model, **settings).run(None, {"X": np.ascontiguousarray(X)})


def assert_same(model, X, tolerance=1e-12):
    label, probabilities = run(model, X)
    wanted = model.predict(X)
    np.testing.assert_array_equal(label, wanted)
    assert label.dtype == (np.int64 if wanted.dtype.kind == "i" else object)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=0, atol=tolerance)
    # A row alone takes another way through the runtime.
    one, _ = run(model, X[:1])
    np.testing.assert_array_equal(one, wanted[:1])


BASES = {
    "linear": RobustLogisticRegression("standard"),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression()),
    "robust": make_pipeline(StandardScaler(), RobustLogisticRegression("worst_class")),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(8, random_state=0),
    "shallow forest": RandomForestClassifier(8, max_depth=4, random_state=0),
    "scaled forest": make_pipeline(StandardScaler(), ExtraTreesClassifier(8, random_state=0)),
    "slow boosting": GradientBoostingClassifier(n_estimators=4, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=8, random_state=0),
}


@pytest.mark.parametrize(("k", "names"), [(2, NUMBERS), (3, TEXTS)], ids=["numbers", "texts"])
@pytest.mark.parametrize("base", BASES)
def test_a_plug_in_decides_the_same(base, k, names):
    X, labels = draw(k)
    model = TunedDecisionClassifier(BASES[base], "worst_class", cv=3).fit(
        X[:300], names[labels[:300]]
    )
    assert_same(model, X[300:])


@pytest.mark.parametrize(("k", "names"), [(2, TEXTS), (3, NUMBERS)], ids=["texts", "numbers"])
@pytest.mark.parametrize("base", ["scaled", "shallow forest", "boosting"])
def test_a_robust_classifier_decides_the_same_in_a_pipeline_too(base, k, names):
    X, labels = draw(k)
    model = RobustClassifier(BASES[base], "worst_class", cv=3)
    model = make_pipeline(StandardScaler(), model).fit(X[:300], names[labels[:300]])
    assert_same(model, X[300:])


@pytest.mark.parametrize(
    ("goal", "share"), [("standard", 0.5), ("balanced", 0.1), ("balanced", 0.2)]
)
def test_votes_of_equal_weight_go_to_the_same_class(goal, share):
    # With 10 trees of pure leaves, weighted votes are equal up to rounding in very many rows.
    rng = np.random.default_rng(1)
    X, labels = rng.normal(size=(1200, 3)), (np.arange(1200) % 200 < 200 * share).astype(int)
    model = TunedDecisionClassifier(RandomForestClassifier(10, random_state=0), "balanced")
    model.fit(X[:200], labels[:200])
    weighted = model.predict_proba(X[200:]) * np.asarray(model.weights_)
    assert np.count_nonzero(np.abs(np.diff(weighted)) < 1e-12) > 50
    assert_same(model, X[200:])


def _nodes(tree):
    return zip(tree.feature, tree.threshold, strict=True)


@pytest.mark.parametrize("base", ["forest", "boosting", "slow boosting"])
def test_rows_on_the_thresholds_of_trees_and_beside_them_go_the_same_way(base):
    X, labels = draw()
    model = TunedDecisionClassifier(BASES[base], "worst_class", cv=3).fit(X[:300], labels[:300])
    fitted = model.estimator_
    if base != "boosting":
        trees = [tree.tree_ for tree in np.ravel(fitted.estimators_)]
        cuts = [(f, t) for tree in trees for f, t in _nodes(tree) if f >= 0]
    else:
        nodes = [each.nodes for step in fitted._predictors for each in step]
        inner = [node for each in nodes for node in each if not node["is_leaf"]]
        cuts = [(node["feature_idx"], node["num_threshold"]) for node in inner]
    rows, cuts = X[: len(cuts[:400])].copy(), cuts[:400]
    variants = []
    for near in (np.float64, np.float32):
        for towards in (-np.inf, None, np.inf):
            changed = rows.copy()
            for row, (feature, cut) in zip(changed, cuts, strict=True):
                value = near(cut) if towards is None else np.nextafter(near(cut), near(towards))
                row[feature] = value
            variants.append(changed)
    assert_same(model, np.concatenate(variants))


@pytest.mark.parametrize("base", ["scaled", "forest", "boosting"])
def test_rows_in_float32_are_answered_as_in_float64(base):
    X, labels = draw()
    model = TunedDecisionClassifier(BASES[base], "worst_class", cv=3).fit(X[:300], labels[:300])
    rows = X[300:].astype(np.float32)
    label, probabilities = run(model, rows, dtype="float32")
    np.testing.assert_array_equal(label, model.predict(rows.astype(np.float64)))
    wanted = model.predict_proba(rows.astype(np.float64))
    np.testing.assert_allclose(probabilities, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("base", ["scaled", "forest", "boosting"])
def test_a_class_that_was_left_out_is_never_decided(base):
    X, labels = draw()
    y = TEXTS[labels[:300]].copy()
    y[:2] = "aaa"
    model = TunedDecisionClassifier(BASES[base], "worst_class", cv=3, rare_classes="drop").fit(
        X[:300], y
    )
    assert model.classes_[0] == "aaa" and len(model.estimator_.classes_) == 3
    assert_same(model, X[300:])


def test_costs_decide_the_same():
    X, labels = draw()
    goal = CostMatrix([[0, 1, 5], [1, 0, 1], [2, 1, 0]])
    assert_same(
        TunedDecisionClassifier(BASES["forest"], goal).fit(X[:300], TEXTS[labels[:300]]), X[300:]
    )


def test_missing_values_go_the_same_way():
    X, labels = draw()
    X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    for base in ("forest", "boosting"):
        model = TunedDecisionClassifier(BASES[base], "balanced").fit(X[:300], labels[:300])
        assert_same(model, X[300:])


STEPS = {
    "selected": make_pipeline(MinMaxScaler(), PCA(3)),
    "filled": make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
    "by columns": make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), [0, 2, 3]),
        (OneHotEncoder(handle_unknown="ignore"), [1]),
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_before_are_computed_in_float64(step):
    X, labels = draw(2)
    X[:, 1] = np.round(X[:, 1])
    if step != "selected":
        X[np.random.default_rng(2).random(len(X)) < 0.2, 2:] = np.nan
    base = make_pipeline(STEPS[step], RandomForestClassifier(5, random_state=0))
    assert_same(TunedDecisionClassifier(base, "balanced").fit(X[:300], labels[:300]), X[300:])


LINEAR = {
    "logistic": RobustLogisticRegression("worst_class", max_iter=2000),
    "cv": RobustLogisticRegressionCV("worst_class", Cs=[0.1, 1.0], cv=3),
    "path": RobustnessCV(RobustLogisticRegression(), alphas=[1.0, 0.5], cv=3),
}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_say_the_same(name, k):
    X, labels = draw(k)
    X = StandardScaler().fit_transform(X)
    assert_same(LINEAR[name].fit(X[:300], TEXTS[labels[:300]]), X[300:])


@pytest.mark.parametrize("loss", ["squared_hinge", "margin"])
@pytest.mark.parametrize("k", [2, 3])
def test_models_without_probabilities_have_scores(k, loss):
    X, labels = draw(k)
    model = make_pipeline(StandardScaler(), RobustLinearClassifier(loss=loss))
    model.fit(X[:300], NUMBERS[labels[:300]])
    label, scores = run(model, X[300:])
    np.testing.assert_array_equal(label, model.predict(X[300:]))
    np.testing.assert_allclose(scores, model.decision_function(X[300:]), atol=1e-10)
    assert scores.shape == model.decision_function(X[300:]).shape


def test_classifiers_around_others_are_taken_apart():
    X, labels = draw()
    rows, y = X[:300], TEXTS[labels[:300]]
    forest = RandomForestClassifier(4, random_state=0).fit(X[900:], TEXTS[labels[900:]])
    frozen = TunedDecisionClassifier(FrozenEstimator(forest), "worst_class").fit(rows, y)
    path = RobustnessCV(TunedDecisionClassifier(BASES["tree"], cv=3), alphas=[1.0, 0.5]).fit(
        rows, y
    )
    search = GridSearchCV(
        make_pipeline(StandardScaler(), TunedDecisionClassifier(LogisticRegression(), "balanced")),
        {"tuneddecisionclassifier__estimator__C": [0.1, 1.0]},
        cv=2,
    ).fit(rows, y)
    for model in (frozen, path, search):
        assert_same(model, X[300:])


def test_a_linear_classifier_without_probabilities_can_be_decided_by_weights():
    X, labels = draw(2)
    model = RobustClassifier(make_pipeline(StandardScaler(), LinearSVC()), "worst_class", cv=3)
    model.fit(X[:300], labels[:300])
    np.testing.assert_array_equal(run(model, X[300:])[0], model.predict(X[300:]))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("library", ["lightgbm.LGBMClassifier", "xgboost.XGBClassifier"])
@pytest.mark.parametrize("with_missing", [False, True])
def test_boosters_of_others_decide_the_same(library, k, with_missing):
    module, name = library.split(".")
    quiet = {"verbose": -1} if module == "lightgbm" else {}
    booster = getattr(pytest.importorskip(module), name)(n_estimators=8, n_jobs=1, **quiet)
    X, labels = draw(k)
    if with_missing:
        X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    model = RobustClassifier(booster, "worst_class", training="balanced", cv=3)
    model.fit(X[:300], TEXTS[labels[:300]])
    # XGBoost adds up in float32.
    assert_same(model, X[300:], tolerance=1e-12 if module == "lightgbm" else 1e-6)


def test_a_booster_that_stopped_early_is_written_as_far_as_it_counts():
    xgboost = pytest.importorskip("xgboost")
    X, labels = draw(2)
    booster = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=2, n_jobs=1)
    model = RobustClassifier(booster, "worst_class", training="balanced", cv=3)
    model.fit(X[:300], labels[:300])
    assert model.estimator_.best_iteration < 57
    assert_same(model, X[300:], tolerance=1e-6)


@pytest.mark.parametrize(
    "base",
    [
        GaussianNB(),
        CalibratedClassifierCV(GaussianNB(), cv=2),
        make_pipeline(StandardScaler(), LogisticRegression(solver="liblinear")),
    ],
    ids=lambda base: type(base).__name__,
)
def test_other_classifiers_are_left_to_skl2onnx(base):
    X, labels = draw(2)
    model = TunedDecisionClassifier(base, "worst_class", cv=3).fit(X[:300], labels[:300])
    label, probabilities = run(model, X[300:])
    wanted = model.predict_proba(X[300:])
    np.testing.assert_allclose(probabilities, wanted, rtol=0, atol=1e-5)
    near = np.abs(model.decision_function(X[300:])) < 1e-5
    assert near.mean() < 0.01
    np.testing.assert_array_equal(label[~near], model.predict(X[300:])[~near])


# What cannot be written


class Unheard(ClassifierMixin, BaseEstimator):
    """A classifier that nobody else has."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_, self.n_features_in_ = counts / counts.sum(), X.shape[1]
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


def plugged(base, X=None):
    rows, labels = draw(2, 90)
    return TunedDecisionClassifier(base, "balanced").fit(rows if X is None else X, labels)


def test_a_base_without_a_converter_is_named_with_what_to_do():
    with pytest.raises(InvalidParameterError, match=r"Unheard cannot be.*RandomForest.*register"):
        to_onnx(plugged(Unheard()))


def test_trees_that_would_be_rounded_are_refused():
    base = CalibratedClassifierCV(RandomForestClassifier(3), cv=2)
    with pytest.raises(InvalidParameterError, match=r"trees in float32.*another way.*Use"):
        to_onnx(plugged(base))


def test_gradient_boosting_that_starts_elsewhere_is_refused():
    base = GradientBoostingClassifier(n_estimators=2, init=GaussianNB())
    with pytest.raises(InvalidParameterError, match=r"labels differ"):
        to_onnx(plugged(base))


@pytest.mark.parametrize("settings", [{"init": "zero"}, {"loss": "exponential"}])
def test_settings_of_gradient_boosting_are_kept(settings):
    X, labels = draw(2)
    base = GradientBoostingClassifier(n_estimators=4, random_state=0, **settings)
    assert_same(TunedDecisionClassifier(base, "balanced").fit(X[:300], labels[:300]), X[300:])


def test_a_step_that_no_runtime_has_in_float64_is_named():
    base = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1))
    rows, labels = draw(2, 90)
    with pytest.warns(ConvergenceWarning):
        model = TunedDecisionClassifier(base, "balanced").fit(rows, labels)
    with pytest.raises(InvalidParameterError, match=r"PolynomialFeatures, L.*cannot be run"):
        to_onnx(model)
    marked = make_pipeline(SimpleImputer(add_indicator=True), GaussianNB())
    with pytest.raises(InvalidParameterError, match=r"SimpleImputer.*no indicators"):
        to_onnx(TunedDecisionClassifier(marked, "balanced").fit(rows, labels))


def test_categories_of_trees_are_refused():
    X = np.column_stack([np.arange(90) % 4, np.arange(90.0)])
    base = HistGradientBoostingClassifier(max_iter=3, categorical_features=[0])
    with pytest.raises(InvalidParameterError, match=r"categorical features\. Encode them"):
        to_onnx(plugged(base, X))
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1)
    labels = np.arange(300) % 2
    colours = np.array(list("abcdef"))[np.arange(300) % 6]
    frame = pd.DataFrame({"colour": pd.Categorical(colours), "size": np.arange(300.0)})
    with pytest.raises(InvalidParameterError, match=r"LGBMClassifier.*splits by categories"):
        to_onnx(TunedDecisionClassifier(booster, "balanced").fit(frame, labels))


def test_what_is_not_ours_or_not_fitted_is_refused():
    rows, labels = draw(2, 90)
    with pytest.raises(InvalidParameterError, match=r"classifier of equipoise.*skl2onnx\.to_onnx"):
        to_onnx(GaussianNB().fit(rows, labels))
    with pytest.raises(InvalidParameterError, match="LocalPolynomialClassifier"):
        to_onnx(LocalPolynomialClassifier().fit(rows[:, :1], labels))
    for model in (TunedDecisionClassifier(GaussianNB()), RobustLogisticRegression()):
        with pytest.raises(NotFittedError):
            to_onnx(model)
    with pytest.raises(InvalidParameterError, match="RidgeClassifier has no probabilities"):
        to_onnx(RobustClassifier(RidgeClassifier(), "balanced").fit(rows, labels))
    with pytest.raises(InvalidParameterError, match="dtype must be"):
        to_onnx(plugged(GaussianNB()), dtype="float16")


def test_without_onnx_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'equipoise\[onnx\]'"):
        to_onnx(plugged(GaussianNB()))


@pytest.mark.parametrize("training", ["balanced", "sqrt"])
@pytest.mark.parametrize("base", ["scaled", "forest", "boosting"])
def test_probabilities_of_weighted_trainings_are_on_the_scale_of_the_population(base, training):
    X, labels = draw(3)
    prior = [0.2, 0.5, 0.3]
    model = RobustClassifier(BASES[base], "f1_macro", training=training, class_prior=prior, cv=3)
    assert_same(model.fit(X[:300], labels[:300]), X[300:])


def test_known_weights_decide_on_the_scale_of_the_population():
    X, labels = draw(2)
    model = TunedDecisionClassifier(BASES["scaled"], "balanced", class_prior=[0.5, 0.5])
    assert_same(model.fit(X[:300], labels[:300]), X[300:])


@pytest.mark.parametrize("base", ["scaled", "forest", "boosting"])
def test_an_average_of_trainings_is_a_mean_in_the_graph(base):
    X, labels = draw(3)
    prior = [0.2, 0.5, 0.3]
    model = RobustClassifier(
        BASES[base], "worst_class", training="average", class_prior=prior, cv=3
    )
    assert len(model.fit(X[:300], labels[:300]).estimator_.estimators) == 3
    assert_same(model, X[300:])
