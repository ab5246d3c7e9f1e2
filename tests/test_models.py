"""Model files: what is saved comes back the same, and nothing else comes in."""

import io
import json
import re
import time
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from equipoise import (
    PredictionSets,
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustnessCV,
    TunedDecisionClassifier,
    estimators,
    population_proba,
)
from equipoise.exceptions import InvalidInputError
from equipoise.goals import CostMatrix, MetricGoal, RecallFloors, parse_goal
from equipoise.metrics import fbeta
from equipoise.risks import ByClass
from equipoise.sets import (
    FixedWeights,
    LabelCVaR,
    LabelHCVaR,
    PriorBox,
    WeightBox,
    WeightHull,
    WorstClass,
)

pd = pytest.importorskip("pandas", minversion="2.1")

from sklearn.compose import (  # noqa: E402
    ColumnTransformer,
    make_column_selector,
    make_column_transformer,
)
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402
from sklearn.naive_bayes import GaussianNB  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import (  # noqa: E402
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier  # noqa: E402

from equipoise.persistence import (  # noqa: E402
    TrainingFacts,
    archive,
    facts_for,
    load_model,
    save_model,
    saved_model,
    tree_models,
)
from equipoise.persistence.saved_model import from_bytes, to_bytes  # noqa: E402
from equipoise.tables import (  # noqa: E402
    MODEL_KINDS,
    booster_for,
    columns_of,
    conform,
    labelled_table,
    learner_for,
    model_for,
    preprocessor,
)
from set_examples import few_examples  # noqa: E402

RECIPES = [
    *few_examples(),
    FixedWeights({"a": 1.0, "b": 2.0, "c": 3.0}),
    LabelHCVaR(alphas={"a": 0.5, "b": 0.5, "c": 0.5}),
    WeightBox(lower=0.5, upper={"a": 2.0}),
    PriorBox(lower={"c": 0.1}, upper={"c": 0.4}),
    WeightHull(["standard", "balanced", {"a": 1, "b": 1, "c": 5}]),
]


def rows(n, seed=0, classes=("a", "b", "c")):
    """A table with every kind of column, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(classes), n, p=np.arange(len(classes), 0, -1) / _triangle(classes))
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n) + labels,
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "town": rng.choice(np.array(["Ulm", "Bonn", None], dtype=object), n),
            "new": rng.random(n) < 0.3,
            "nothing": np.full(n, np.nan),
        }
    )
    return frame, np.array(classes)[labels].astype(object if classes[0] == "a" else np.int64)


def _triangle(classes):
    return len(classes) * (len(classes) + 1) / 2


def facts_of(frame, y, **changes):
    classes, counts = np.unique(y, return_counts=True)
    facts = TrainingFacts(
        target="label",
        columns=columns_of(frame),
        classes=tuple(classes.tolist()),
        counts=tuple(counts.tolist()),
        model="linear",
        goal="balanced",
        seed=0,
    )
    return replace(facts, **changes)


def small(model):
    """The same model of tables with fewer trees."""
    last = "model" if isinstance(model, Pipeline) else "estimator__model"
    trees = {"OrderedForest": "n_estimators", "HistGradientBoostingClassifier": "max_iter"}
    name = trees.get(type(model.get_params()[last]).__name__)
    return model if name is None else model.set_params(**{f"{last}__{name}": 5})


def booster(frame):
    X = conform(frame, columns_of(frame))
    # Both columns of texts as categories, which few levels are not by themselves.
    trees = booster_for(X).set_params(max_iter=5, categorical_features=[2, 3])
    return Pipeline([("features", preprocessor(X, "boosting")), ("model", trees)])


@pytest.fixture(scope="module")
def linear():
    """A fitted linear model, its facts, its table and its bytes."""
    frame, y = rows(200)
    X = conform(frame, columns_of(frame))
    fit = RobustLogisticRegression(LabelCVaR(0.3))
    model = Pipeline([("features", preprocessor(X)), ("model", fit)]).fit(X, y)
    facts = facts_of(frame, y)
    return model, facts, frame, to_bytes(model, facts)


@pytest.fixture(scope="module")
def boosted():
    frame, y = rows(300)
    model = booster(frame).fit(conform(frame, columns_of(frame)), y)
    facts = facts_of(frame, y, model="boosting")
    return model, facts, frame, to_bytes(model, facts)


def repacked(data, change):
    """The archive with its members changed by a function of a dictionary of bytes."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
    return buffer.getvalue()


def with_model(data, change):
    """The archive with the values of its model changed in place by a function."""

    def apply(members):
        model = json.loads(members["model.json"])
        change(model)
        members["model.json"] = json.dumps(model).encode()

    return repacked(data, apply)


def found_in(node, name):
    """The nodes of a class inside a model, outermost first."""
    if isinstance(node, dict):
        if node.get("is") == name:
            yield node
        node = list(node.values())
    for item in node if isinstance(node, list) else ():
        yield from found_in(item, name)


def with_array(data, name, change, owner=None):
    """The archive with the array of one attribute replaced by a function of it."""

    def apply(members):
        model = json.loads(members["model.json"])
        fitted = (each["fitted"] for each in found_in(model, owner) if name in each["fitted"])
        node = next(fitted)[name]
        old = np.frombuffer(members[node["of"]], node["dtype"]).reshape(node["shape"])
        new = np.asarray(change(old))
        members[node["of"]] = new.tobytes()
        node.update(dtype=new.dtype.str, shape=list(new.shape))
        members["model.json"] = json.dumps(model).encode()

    return repacked(data, apply)


# What is saved comes back


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_every_model_comes_back_with_the_same_predictions(tmp_path, kind, recipe):
    frame, y = rows(200)
    X = conform(frame, columns_of(frame))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small(model_for(X, kind, recipe)).fit(X, y)
    facts = facts_of(frame, y, model=kind)
    save_model(model, tmp_path / "model.equipoise", facts)
    loaded = load_model(tmp_path / "model.equipoise")
    assert loaded.facts == facts and loaded.notes == ()
    new, _ = rows(100, seed=1)
    new_X = conform(new, facts.columns)
    assert loaded.predict(new).tolist() == model.predict(new_X).tolist()
    assert np.array_equal(loaded.predict_proba(new), model.predict_proba(new_X))
    plain = repr(recipe) == repr(FixedWeights("standard"))
    assert isinstance(loaded.model, Pipeline) if plain else repr(loaded.model.goal) == repr(recipe)


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c"), (1, 5), (0, 3, 7, 9)])
@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_two_and_many_classes_of_texts_and_numbers_come_back(classes, kind):
    frame, y = rows(200, classes=classes)
    X = conform(frame, columns_of(frame))
    model = (model_for(X, "linear", "balanced") if kind == "linear" else booster(frame)).fit(X, y)
    loaded = from_bytes(to_bytes(model, facts_of(frame, y)))
    found = loaded.predict(frame)
    assert found.tolist() == model.predict(X).tolist()
    assert found.dtype.kind == y.dtype.kind
    assert loaded.facts.counts == tuple(np.unique(y, return_counts=True)[1].tolist())


def test_what_cannot_be_saved_is_told_where_to_go():
    frame = pd.DataFrame({"a": np.arange(40.0), "b": ["x", "y"] * 20})
    y = np.arange(40) % 3 > 0
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number"))
    )
    selected = make_pipeline(columns, RobustLogisticRegression("balanced")).fit(frame, y)
    elsewhere = r"to_onnx writes.*joblib\.dump.*loading its file runs"
    with pytest.raises(InvalidInputError, match=r"by name instead of a selector.*" + elsewhere):
        to_bytes(selected, TrainingFacts.from_model(selected))
    other = TunedDecisionClassifier(GaussianNB(), "balanced").fit(frame[["a"]], y)
    with pytest.raises(InvalidInputError, match="class 'GaussianNB'.*" + elsewhere):
        to_bytes(other, TrainingFacts.from_model(other))


def test_probabilities_on_the_scale_of_the_population_come_back_too(linear):
    model, facts, frame, data = linear
    X = conform(frame, facts.columns)
    expected = population_proba(model, X)
    assert np.array_equal(from_bytes(data).population_proba(frame), expected)


@pytest.mark.parametrize("goal", ["standard", "balanced", "worst_class"])
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_the_scale_of_the_population_is_that_of_the_rows_whatever_the_training(kind, goal):
    frame, y = rows(200)
    X = conform(frame, columns_of(frame))
    model = small(model_for(X, kind, goal)).fit(X, y)
    plain = isinstance(model, Pipeline)
    inside = model if plain else model.estimator_
    # Balanced training sees each class as often as any other; the model knows by how much.
    weights = np.ones(3) if plain else np.asarray(model.training_weights_)
    if goal == "balanced":
        assert weights == pytest.approx(1 / np.unique(y, return_counts=True)[1] * len(y) / 3)
    expected = inside.predict_proba(X) / weights
    expected /= expected.sum(axis=1, keepdims=True)
    loaded = from_bytes(to_bytes(model, facts_of(frame, y)))
    assert loaded.population_proba(frame) == pytest.approx(expected, abs=1e-12)
    # A classifier around others has no other scale.
    same = inside.predict_proba(X) if plain else expected
    assert loaded.predict_proba(frame) == pytest.approx(same, abs=1e-12)
    if kind == "linear":
        means = loaded.population_proba(frame).mean(axis=0)
        assert means == pytest.approx(np.unique(y, return_counts=True)[1] / len(y), abs=0.05)


@pytest.mark.parametrize("goal", ["standard", "worst_class"])
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_a_model_of_tables_takes_raw_rows_and_files_know_them_too(kind, goal):
    frame, y = rows(200)
    frame["born"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(200) % 50, "D")
    X = conform(frame, columns_of(frame))
    raw = small(model_for(frame, kind, goal)).fit(frame, y)
    made = small(model_for(X, kind, goal)).fit(X, y)
    expected = made.predict(X)
    table = labelled_table(frame, y)
    for model in (raw, made):
        loaded = from_bytes(to_bytes(model, facts_for(table, "label", kind, goal, 0)))
        assert loaded.predict(frame).tolist() == expected.tolist()
        assert loaded.predict(frame.iloc[:, ::-1]).tolist() == expected.tolist()
    assert raw.predict(frame).tolist() == expected.tolist()
    # Without facts of a table the model knows its columns itself.
    loaded = from_bytes(to_bytes(raw, TrainingFacts.from_model(raw)))
    assert loaded.predict(frame).tolist() == expected.tolist()


@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_models_of_arrays_come_back(kind):
    frame, y = rows(150)
    X = frame[["x", "gaps"]].to_numpy()
    model = small(model_for(X, kind, "balanced")).fit(X, y)
    loaded = from_bytes(to_bytes(model, TrainingFacts.from_model(model)))
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


def test_the_facts_can_be_read_without_the_model(linear):
    _, facts, _, data = linear
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        read = json.loads(file.read("equipoise.json"))
    assert read["target"] == "label" and read["classes"] == ["a", "b", "c"]
    assert set(read["versions"]) >= {"python", "equipoise", "numpy", "scikit-learn"}
    assert TrainingFacts.from_json(json.dumps(read).encode()) == facts


@pytest.mark.parametrize("goal", ["standard", "balanced", "worst_class"])
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_equal_fits_make_equal_files(kind, goal):
    frame, y = rows(150)
    X = conform(frame, columns_of(frame))
    facts = facts_of(frame, y, created="2020-02-02T00:00:00+00:00")
    models = [small(model_for(X, kind, goal)) for _ in range(2)]
    first, second = (to_bytes(model.fit(X, y), facts) for model in models)
    kept = to_bytes(models[0], facts)
    assert first == kept
    if kind != "linear":
        # The linear fit keeps how many seconds its steps took.
        assert first == second


def test_names_that_look_like_addresses_stay_what_they_are():
    frame, y = rows(60)
    frame = frame.rename(columns={"x": '"__id__": 17', "gaps": '"file": "17'})
    y = np.where(y == "a", '"__id__": 18', y).astype(object)
    X = conform(frame, columns_of(frame))
    model = model_for(X, "linear", FixedWeights(dict.fromkeys(np.unique(y), 1.0))).fit(X, y)
    loaded = from_bytes(to_bytes(model, facts_of(frame, y)))
    assert loaded.predict(frame).tolist() == model.predict(X).tolist()
    assert loaded.model.goal.weights == model.goal.weights
    assert loaded.model.estimator[0].columns == model.estimator[0].columns


# Without a table


LABELS = {
    "texts": ["ham", "spam", "eggs"],
    "whole numbers": [1, 5, 7],
    "two numbers": [-1, 1],
    "floats": [0.0, 2.0],
    "truth values": [False, True],
}
ESTIMATORS = {
    "linear": lambda: RobustLogisticRegression(LabelCVaR(0.8)),
    "standard": lambda: RobustLogisticRegression("standard"),
    "plug-in": lambda: TunedDecisionClassifier(RobustLogisticRegression("standard"), cv=3),
    "known weights": lambda: TunedDecisionClassifier(
        HistGradientBoostingClassifier(max_iter=3), FixedWeights("balanced")
    ),
    "metric": lambda: TunedDecisionClassifier(
        RobustLogisticRegression("standard"), MetricGoal("f1_macro"), cv=3
    ),
    "costs": lambda: TunedDecisionClassifier(RobustLogisticRegression("standard"), CostMatrix(1.0)),
    "floors": lambda: TunedDecisionClassifier(
        RobustLogisticRegression("standard"), RecallFloors(0.05), cv=3
    ),
    "logistic": lambda: TunedDecisionClassifier(LogisticRegression(), "balanced_accuracy", cv=3),
    "forest": lambda: TunedDecisionClassifier(RandomForestClassifier(5, random_state=0), cv=3),
    "bare forest": lambda: RandomForestClassifier(5, random_state=0),
    "bare logistic": LogisticRegression,
    "bare boosting": lambda: HistGradientBoostingClassifier(max_iter=3),
    "trained": lambda: RobustClassifier(LogisticRegression(), "worst_class", cv=3),
    "trained forest": lambda: RobustClassifier(
        RandomForestClassifier(5, random_state=0), "balanced_accuracy", cv=3
    ),
    "balanced training": lambda: RobustClassifier(
        RobustLogisticRegression("standard"), "f1_macro", training="balanced", cv=3
    ),
    "average of trainings": lambda: RobustClassifier(
        LogisticRegression(), "worst_class", training="average", cv=3
    ),
    "path": lambda: RobustnessCV(RobustLogisticRegression(), rule="price", price=2, cv=3),
    "path of decisions": lambda: RobustnessCV(
        TunedDecisionClassifier(LogisticRegression()), alphas=[1.0, 0.5], cv=3
    ),
    "path of a training": lambda: RobustnessCV(
        RobustClassifier(LogisticRegression(), training="balanced"), alphas=[1.0, 0.5], cv=3
    ),
    "chosen": lambda: RobustLogisticRegression(LabelCVaR("auto")),
    "chosen decisions": lambda: TunedDecisionClassifier(
        LogisticRegression(), LabelCVaR("auto"), cv=3
    ),
    "sets of labels": lambda: PredictionSets(LogisticRegression(), cv=0.5),
    "hinge": lambda: RobustLinearClassifier(LabelCVaR(0.8), loss="smoothed_hinge"),
    "pipeline": lambda: make_pipeline(StandardScaler(), RobustLogisticRegression("worst_class")),
    "one step": lambda: make_pipeline(RobustLogisticRegression("balanced")),
}


# Every linear estimator of the library, as it comes.
ESTIMATORS |= {
    name: getattr(estimators, name)
    for name in estimators.__all__
    if hasattr(getattr(estimators, name), "fit") and "RobustL" in name
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_every_estimator_is_saved_without_a_table(make, labels, tmp_path):
    rng = np.random.default_rng(0)
    place = np.minimum(np.arange(90) % (len(labels) + 1), len(labels) - 1)
    X, y = rng.normal(size=(90, 2)) + place[:, None], np.array(labels)[place]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, y)
    save_model(model, tmp_path / "model.equipoise")
    loaded = load_model(tmp_path / "model.equipoise")
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.predict(X).dtype.kind == y.dtype.kind
    if hasattr(model, "predict_proba"):
        assert np.array_equal(loaded.predict_proba(X.tolist()), model.predict_proba(X))
        assert loaded.population_proba(X).shape == (90, len(labels))
    assert loaded.facts.classes == tuple(sorted(labels))
    assert loaded.facts.class_names().tolist() == sorted(labels)
    assert loaded.facts.columns is loaded.facts.counts is None


def test_the_model_itself_knows_its_kind_and_its_goal(tmp_path):
    X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    goals = {
        LabelCVaR(0.9): "LabelCVaR(alpha=0.9)",
        "balanced": "balanced",
        WorstClass(): "WorstClass()",
    }
    for goal, text in goals.items():
        save_model(RobustLogisticRegression(goal).fit(X, y), tmp_path / "m.equipoise")
        facts = load_model(tmp_path / "m.equipoise").facts
        assert (facts.model, facts.goal) == ("RobustLogisticRegression", text)
    plain = LogisticRegression().fit(X, y)
    assert TrainingFacts.from_model(plain).goal is None
    plug_in = TunedDecisionClassifier(RobustLogisticRegression("standard"), cv=2).fit(X, y)
    assert TrainingFacts.from_model(plug_in).goal == "LabelCVaR(alpha=0.1)"


def test_a_level_that_was_chosen_is_kept_with_its_path(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [70, 30])
    X = rng.normal(size=(100, 1)) + (y == "b")[:, None]
    base = RobustLogisticRegression()
    for model in (
        RobustnessCV(base, alphas=[1.0, 0.4], cv=3).fit(X, y),
        RobustLogisticRegression(LabelCVaR("auto")).fit(X, y),
        TunedDecisionClassifier(LogisticRegression(), LabelCVaR("auto"), cv=3).fit(X, y),
    ):
        save_model(model, tmp_path / "m.equipoise")
        loaded = load_model(tmp_path / "m.equipoise")
        assert loaded.facts.goal == f"LabelCVaR(alpha={model.alpha_!r})"
        assert (loaded.model.alpha_, loaded.model.best_index_) == (model.alpha_, model.best_index_)
        for name, values in model.path_.items():
            np.testing.assert_array_equal(loaded.model.path_[name], values)
        parse_goal(loaded.facts.goal).resolve([0.7, 0.3])


def test_a_metric_by_its_coefficients_is_saved(tmp_path):
    X, y = np.arange(40.0)[:, None], np.repeat(["a", "b"], 20)
    model = TunedDecisionClassifier(RobustLogisticRegression("standard"), fbeta(2), cv=2).fit(X, y)
    save_model(model, tmp_path / "m.equipoise")
    loaded = load_model(tmp_path / "m.equipoise")
    assert loaded.model.goal == fbeta(2)
    assert parse_goal(loaded.facts.goal) == fbeta(2)


def test_rows_that_do_not_fit_a_model_without_a_table_are_a_sentence(tmp_path):
    X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    save_model(RobustLogisticRegression("balanced").fit(X, y), tmp_path / "m.equipoise")
    with pytest.raises(InvalidInputError, match=r"cannot predict these rows \(X has 2 features"):
        load_model(tmp_path / "m.equipoise").predict(np.zeros((3, 2)))


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    path = tmp_path / "m.equipoise"
    with pytest.raises(NotFittedError):
        save_model(RobustLogisticRegression(), path)
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    odd = RobustLogisticRegression("balanced").fit(X, y)
    odd.classes_ = dates
    with pytest.raises(InvalidInputError, match="turn the labels into texts"):
        save_model(odd, path)
    assert not path.exists()


# Every way of making features


def mixed(n=150):
    """A table of numbers, whole numbers, categories, texts and gaps, and three classes."""
    rng = np.random.default_rng(0)
    place = np.arange(n) % 3
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n) + place,
            "i": rng.integers(0, 4, n),
            "c": pd.Categorical(rng.choice(["u", "v", "w"], n)),
            "s": rng.choice(["x", "y", "z"], n),
            "g": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    return frame, np.array(["p", "q", "r"])[place]


def columns(*parts, **more):
    named = [(f"part {i}", step, names) for i, (step, names) in enumerate(parts)]
    return make_pipeline(ColumnTransformer(named, **more), RobustLogisticRegression("balanced"))


A = ("passthrough", ["a"])
FEATURES = {
    "passed through": lambda: columns((OneHotEncoder(), ["s"]), A),
    "the rest": lambda: columns(
        (OneHotEncoder(), ["s", "c"]), ("drop", ["g"]), remainder="passthrough"
    ),
    "all but the first": lambda: columns((OneHotEncoder(drop="first"), ["s", "c"]), A),
    "rare": lambda: columns((OneHotEncoder(drop="if_binary", min_frequency=0.35), ["s", "c"]), A),
    "dense": lambda: columns((OneHotEncoder(sparse_output=False, max_categories=2), ["s"]), A),
    "whole numbers": lambda: columns((OrdinalEncoder(), ["i"]), A),
    "numbers and texts": lambda: columns((OneHotEncoder(), ["i", "s"]), A),
    "given order": lambda: columns((OneHotEncoder(categories=[["z", "y", "x"]]), ["s"]), A),
    "texts": lambda: columns(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["s"]), A
    ),
    "named output": lambda: columns((StandardScaler(), ["a"]), ("passthrough", ["i"])).set_output(
        transform="pandas"
    ),
    **{
        f"imputed by {strategy}": lambda strategy=strategy: columns(
            (SimpleImputer(strategy=strategy, add_indicator=True), ["a", "g", "i"])
        )
        for strategy in ("mean", "median", "most_frequent", "constant")
    },
    "a forest of gaps": lambda: make_pipeline(
        ColumnTransformer([("all", "passthrough", ["a", "i", "g"])]),
        RandomForestClassifier(3, random_state=0),
    ),
    "frozen": lambda: TunedDecisionClassifier(
        FrozenEstimator(columns((StandardScaler(), ["a", "i"])).fit(*mixed())), "worst_class"
    ),
}


def test_categories_of_pandas_come_back():
    frame, y = mixed()
    frame = frame.drop(columns="s")
    model = HistGradientBoostingClassifier(max_iter=3).fit(frame, y)
    loaded = from_bytes(to_bytes(model, TrainingFacts.from_model(model)))
    assert np.array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize("make", FEATURES.values(), ids=FEATURES)
def test_every_way_of_making_features_comes_back(make):
    frame, y = mixed()
    model = make().fit(frame, y)
    loaded = from_bytes(to_bytes(model, TrainingFacts.from_model(model)))
    assert np.array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.predict(frame).tolist() == model.predict(frame).tolist()
    assert repr(loaded.model) == repr(model)


# Names that outlive any move of a file


def test_our_classes_stand_in_a_file_under_public_names(linear):
    with zipfile.ZipFile(io.BytesIO(linear[3])) as file:
        text = file.read("model.json").decode()
    names = set(re.findall(r'"is": "(\w+)"', text))
    assert {"ByClass", "LabelCVaR", "RobustLogisticRegression", "OneHotEncoder"} <= names
    assert "equipoise." not in text and "sklearn." not in text


def test_a_class_that_moves_breaks_no_model(monkeypatch, linear):
    model, facts, frame, data = linear
    expected = model.predict(conform(frame, facts.columns)).tolist()
    for moved in (LabelCVaR, RobustLogisticRegression, ByClass):
        monkeypatch.setattr(moved, "__module__", "equipoise.elsewhere.file")
        assert from_bytes(data).predict(frame).tolist() == expected
        assert to_bytes(model, facts) == data


def test_a_class_that_is_not_known_is_named(linear):
    def rename(members):
        text = members["model.json"].decode()
        members["model.json"] = text.replace('"LabelCVaR"', '"MySet"').encode()

    refused(repacked(linear[3], rename), r"class 'MySet', which is not known here.*register it")


def test_a_model_of_the_last_format_is_refused_with_what_to_do(linear):
    def age(members):
        facts = {**json.loads(members["equipoise.json"]), "format": 4}
        members["equipoise.json"] = json.dumps(facts).encode()

    sentence = "of format 4 and this version .* reads format 5: load it with the version that wrote"
    refused(repacked(linear[3], age), sentence)


def test_facts_come_back_from_their_text():
    frame, y = rows(50)
    held_out = {
        "rows": [5, 3, 0],
        "risks": [0.2, 0.0, None],
        "lower": [0.1, 0.0, None],
        "upper": [0.4, 0.7, None],
        "confidence": 0.95,
        "share": 0.2,
    }
    facts = facts_of(frame, y, held_out=held_out, notes=("A sentence.", "naïve → «x»"))
    assert TrainingFacts.from_json(facts.to_json()) == facts


@pytest.mark.parametrize("package", ["equipoise", "numpy", "scipy", "scikit-learn", "python"])
def test_other_versions_are_noted(linear, package):
    _, facts, frame, data = linear
    assert from_bytes(data).notes == ()

    def age(members):
        read = json.loads(members["equipoise.json"])
        read["versions"][package] = "0.99.0"
        members["equipoise.json"] = json.dumps(read).encode()

    loaded = from_bytes(repacked(data, age))
    assert loaded.notes == (
        f"The model was saved with {package} 0.99.0 and runs with {package} "
        f"{facts.versions[package]}: its predictions may differ.",
    )
    assert len(loaded.predict(frame)) == len(frame)


# Nothing else comes in


def refused(data, sentence):
    with pytest.raises(InvalidInputError, match=sentence) as found:
        from_bytes(data, "model.equipoise")
    text = str(found.value)
    assert text.startswith("model.equipoise ") and text.endswith(".") and "\n" not in text


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(),
        GaussianNB(),
        make_pipeline(FunctionTransformer(np.exp), RobustLogisticRegression("balanced")),
        make_pipeline(MinMaxScaler(), RobustLogisticRegression("balanced")),
        TunedDecisionClassifier(GaussianNB(), FixedWeights("balanced")),
        TunedDecisionClassifier(LogisticRegression(), "worst_class", cv=StratifiedKFold(3)),
    ],
    ids=lambda model: re.sub(r"\W+", " ", str(model)),
)
def test_other_kinds_are_refused_by_name_when_saved(estimator, tmp_path):
    X, y = np.abs(np.random.default_rng(0).normal(size=(60, 2))), np.repeat(["a", "b"], 30)
    with pytest.raises(InvalidInputError, match=r"cannot be saved: it holds .* kinds RobustLog"):
        save_model(estimator.fit(X, y), tmp_path / "m.equipoise")
    assert not list(tmp_path.iterdir())


NAMES = ["os.system", "system", "eval", "GaussianNB", "Tree", "__import__", "", "set", None]


@pytest.mark.parametrize("name", NAMES)
def test_other_names_are_refused_when_loaded(linear, name):
    smuggled = {"is": name, "with": {}}

    def as_a_parameter(model):
        next(found_in(model, "RobustLogisticRegression"))["with"]["C"] = smuggled

    def as_the_model(model):
        model.clear()
        model.update(smuggled)

    for change in (as_a_parameter, as_the_model):
        refused(with_model(linear[3], change), "holds an object of the class .* not known here")


def test_a_value_where_an_estimator_belongs_is_refused(linear):
    for value in (None, 3, "text", [], {"is": "tuple", "of": []}, {"is": "LabelCVaR", "with": {}}):

        def replace_model(model, value=value):
            model["with"]["steps"][-1]["of"][1] = value

        refused(with_model(linear[3], replace_model), "cannot be loaded")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is not a model"),
        (b"not a zip", "is not a model"),
        (b"PK\x03\x04 and nothing", "damaged"),
        (b"PK" + b"\x00" * 60, "its end is missing"),
        (b"PK\x05\x06" + b"\x00" * 18, "holds no equipoise.json"),
    ],
)
def test_files_that_are_no_models_are_refused(data, sentence):
    refused(data, sentence)


def test_archives_without_the_facts_or_with_broken_ones_are_refused(linear):
    data = linear[3]
    refused(repacked(data, lambda m: m.pop("equipoise.json")), "holds no equipoise.json")
    for text in ("", "[]", "{}", "[" * 99_999, '{"format": 5}', "\x00"):
        changed = repacked(data, lambda m, text=text: m.update({"equipoise.json": text.encode()}))
        refused(changed, "training facts cannot be read")
    newer = repacked(data, lambda m: m.update({"equipoise.json": b'{"format": 6}'}))
    refused(newer, "of format 6 and this version of equipoise reads format 5")


@pytest.mark.parametrize(
    "change",
    [
        {"classes": ["a", "b"]},
        {"classes": ["a", "a", "b"]},
        {"classes": ["a", "b", 3]},
        {"classes": ["a", "b", None]},
        {"counts": [1, 2]},
        {"counts": [1, 2, -3]},
        {"counts": [1, 2, 0.5]},
        {"seed": "0"},
        {"target": 3},
        {"notes": [3]},
        {"versions": 3},
        {"versions": {"numpy": 3}},
        {"versions": {"numpy": "1" * 1000}},
        {"goal": "x" * 1_000_000},
        {"classes": [f"c{i}" for i in range(10_000)]},
        {"columns": [{"name": f"c{i}", "kind": "number", "dtype": "f"} for i in range(70_000)]},
        {"held_out": {"rows": [1]}},
        {"columns": [{"name": "x", "kind": "oracle", "dtype": "float64"}]},
        {"columns": [{"name": 3, "kind": "text", "dtype": "str"}]},
        {"columns": 3},
        {"columns": []},
        {"classes": ["x", "y", "z"]},
    ],
)
def test_facts_that_contradict_themselves_or_the_model_are_refused(linear, change):
    def apply(members):
        facts = {**json.loads(members["equipoise.json"]), **change}
        members["equipoise.json"] = json.dumps(facts).encode()

    refused(repacked(linear[3], apply), "cannot be loaded")


# Bombs


def test_archives_that_unpack_to_too_much_are_refused_unread(linear):
    # Packed as loosely as can be: random bytes, with a member that declares to be larger.
    noise = np.random.default_rng(0).bytes(12 << 20)
    data = repacked(linear[3], lambda members: members.update({"99.bin": noise}))
    from_bytes(data)
    place = data.rindex(b"PK\x01\x02") + 24  # its size in the table of members
    assert data[place : place + 4] == len(noise).to_bytes(4, "little")
    larger = (archive.MAX_BYTES + 1).to_bytes(4, "little")
    refused(data[:place] + larger + data[place + 4 :], "would unpack to more than a model can need")


def test_archives_that_are_packed_too_tight_are_refused_unread(linear):
    for size, fine in ((archive.FREE_BYTES, True), (2 * archive.FREE_BYTES, False)):
        zeros = bytes(size)
        data = repacked(linear[3], lambda members, zeros=zeros: members.update({"99.bin": zeros}))
        assert len(data) < 300_000
        if fine:
            from_bytes(data)
        else:
            refused(data, "would unpack to more than a model can need")


@pytest.mark.parametrize(
    "grown",
    [
        lambda members: {"model.json": members["model.json"] + b" " * archive.MAX_JSON_BYTES},
        lambda members: {"model.json": members["model.json"] + b"," * archive.MAX_JSON_VALUES},
        lambda _: {f"more/{number}": b"" for number in range(archive.MAX_MEMBERS)},
        lambda _: {f"{number:05}".ljust(2_000, "x"): b"" for number in range(600)},
    ],
    ids=["JSON", "values", "members", "names of members"],
)
def test_each_size_has_its_limit(linear, grown):
    data = repacked(linear[3], lambda members: members.update(grown(members)))
    refused(data, "more (members )?than a model can need")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(linear, method):
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(linear[3])) as old, zipfile.ZipFile(buffer, "w", method) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    refused(buffer.getvalue(), "compressed in a way that models are not")


@pytest.mark.parametrize("depth", [300, 100_000])
@pytest.mark.parametrize("opened", ['{"a":', "["])
def test_values_that_nest_too_deep_are_refused(linear, depth, opened):
    deep = (opened * depth + "1" + {"[": "]"}.get(opened, "}") * depth).encode()
    refused(repacked(linear[3], lambda m: m.update({"model.json": deep})), "cannot be loaded")


@pytest.mark.parametrize("piece", [b"{}", b"[]", b'{"is":"tuple","of":[]}', b"0"])
def test_values_by_the_million_are_refused_unparsed(linear, piece):
    many = b"[" + b",".join([piece] * (60_000_000 // (len(piece) + 1))) + b"]"
    start = time.perf_counter()
    for member in ("model.json", "equipoise.json"):
        change = repacked(linear[3], lambda m, member=member: m.update({member: many}))
        refused(change, "would unpack to more than a model can need")
    assert time.perf_counter() - start < 20


def test_one_array_is_read_once(linear):
    def repeat(model):
        fitted = next(found_in(model, "RobustLogisticRegression"))["fitted"]
        fitted["intercept_"] = fitted["coef_"]

    refused(with_model(linear[3], repeat), "cannot be loaded")


@pytest.mark.parametrize(
    "said",
    [
        {"shape": [10**9]},
        {"shape": [10**12]},
        {"shape": [-1]},
        {"shape": [0, 2**62]},
        {"shape": [2**32, 2**32]},
        {"shape": "12"},
        {"shape": [1.0]},
        {"shape": [1] * 60},
        {"dtype": "|O"},
        {"dtype": "<U0"},
        {"dtype": "<M8[s]"},
        {"dtype": None},
        {"of": "equipoise.json"},
        {"of": "../model.json"},
    ],
)
def test_arrays_that_lie_about_themselves_are_refused(linear, said):
    def lie(model):
        next(found_in(model, "RobustLogisticRegression"))["fitted"]["coef_"].update(said)

    refused(with_model(linear[3], lie), "cannot be loaded")


def test_short_texts_do_not_take_the_room_of_a_long_one(linear):
    texts = {"is": "texts", "dtype": "U", "of": [*map(str, range(100_000)), "x" * 100_000]}

    def smuggle(model):
        next(found_in(model, "RobustLogisticRegression"))["fitted"]["message_"] = texts

    refused(with_model(linear[3], smuggle), "texts that are longer than a model can need")


def test_estimators_that_cost_too_much_to_make_are_refused():
    X, y = np.arange(40.0)[:, None], np.repeat(["a", "b"], 20)
    for base in (HistGradientBoostingClassifier(max_iter=1), RandomForestClassifier(1)):
        model = base.fit(X, y)

        def widen(model):
            model["fitted"]["n_features_in_"] = 2**22

        def widen_more(model):
            model["fitted"]["n_features_in_"] = 2**40

        data = to_bytes(model, TrainingFacts.from_model(model))
        refused(with_model(data, widen_more), "cannot have such a value of 'n_features_in_'")
        if isinstance(base, HistGradientBoostingClassifier):
            refused(with_model(data, widen), "larger than a model can need")


@pytest.mark.parametrize("depth", [8, 9, 30, 100])
def test_estimators_inside_each_other_are_few(depth):
    X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    model = RobustLogisticRegression("balanced").fit(X, y)
    data = to_bytes(model, TrainingFacts.from_model(model))

    def wrap(node):
        inner = dict(node)
        for _ in range(depth - 1):
            step = {"is": "tuple", "of": ["step", inner]}
            inner = {"is": "Pipeline", "with": {"steps": [step]}}
        node.clear()
        node.update(inner)

    start = time.perf_counter()
    if depth == 8:
        assert from_bytes(with_model(data, wrap)).predict(X).tolist() == model.predict(X).tolist()
    else:
        refused(with_model(data, wrap), "nests more than 8 estimators|damaged")
    assert time.perf_counter() - start < 10


def test_estimators_beside_each_other_are_few():
    X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    model = make_pipeline(StandardScaler(with_mean=False), RobustLogisticRegression("balanced"))
    data = to_bytes(model.fit(X, y), TrainingFacts.from_model(model))

    def repeat(node):
        first, last = node["with"]["steps"]
        scaler = {"is": "StandardScaler", "with": {}}
        more = [{"is": "tuple", "of": [f"s{i}", scaler]} for i in range(20_000)]
        node["with"]["steps"] = [first, *more, last]

    refused(with_model(data, repeat), "larger than a model can need")


def test_names_of_features_are_not_made_by_a_text_of_the_file(linear):
    def smuggle(model):
        (columns,) = (each for each in found_in(model, "ColumnTransformer") if "fitted" in each)
        columns["with"]["verbose_feature_names_out"] = "{feature_name:>1000000000}"

    refused(with_model(linear[3], smuggle), "ColumnTransformer contradicts itself")


def test_rows_of_many_features_are_predicted_a_few_at_a_time():
    rng, n = np.random.default_rng(0), 6_000
    frame, y = pd.DataFrame({"name": [f"{row:05}" for row in range(n)]}), rng.choice(["a", "b"], n)
    names = ColumnTransformer([("name", OneHotEncoder(handle_unknown="ignore"), ["name"])])
    model = make_pipeline(names, RobustLogisticRegression("balanced", C=10.0)).fit(frame, y)
    loaded = from_bytes(to_bytes(model, facts_of(frame, y)))
    assert n * n > saved_model.MOST_VALUES
    assert loaded.predict(frame).tolist() == model.predict(frame).tolist()
    assert loaded.predict_proba(frame) == pytest.approx(model.predict_proba(frame), abs=1e-12)


@pytest.mark.parametrize("name", ["n_jobs", "memory", "verbose"])
def test_nothing_in_a_file_sets_processes_folders_or_prints(tmp_path, name):
    X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    value = {"n_jobs": 40, "memory": str(tmp_path / "here"), "verbose": True}[name]
    base = RandomForestClassifier(2, random_state=0)
    model = make_pipeline(StandardScaler(), TunedDecisionClassifier(base, FixedWeights("balanced")))
    if name != "memory":
        model[-1].set_params(**{f"estimator__{name}": value})
    if name == "n_jobs":
        model[-1].set_params(n_jobs=value)
    data = to_bytes(model.fit(X, y), TrainingFacts.from_model(model))
    loaded = from_bytes(data).model
    assert loaded.memory is None and not loaded.verbose
    assert loaded[-1].n_jobs is loaded[-1].estimator_.n_jobs is None
    owner = "Pipeline" if name == "memory" else "RandomForestClassifier"

    def smuggle(model):
        for each in found_in(model, owner):
            each["with"][name] = value

    refused(with_model(data, smuggle), f"sets '{name}' of {owner}, which no model file does")
    assert not (tmp_path / "here").exists()


# Numbers that compiled code would trust

BOOSTER = "HistGradientBoostingClassifier"


def private_names_are_refused(data, owner, names):
    for name in names:

        def smuggle(model, name=name):
            next(each for each in found_in(model, owner) if "fitted" in each)["fitted"][name] = 1

        refused(with_model(data, smuggle), f"cannot have such a value of '{name}'")


def test_private_attributes_are_not_read(linear, boosted):
    private_names_are_refused(
        linear[3], "OneHotEncoder", ["_n_features_outs", "_infrequent_indices", "drop_idx_"]
    )
    names = ["_in_fit", "_n_features", "_predictors", "_bin_mapper", "binned_left_cat_bitsets"]
    private_names_are_refused(boosted[3], BOOSTER, names)


def set_to(place, value):
    def change(array):
        changed = array.copy()
        changed[place] = value
        return changed

    return change


@pytest.fixture(scope="module")
def forest():
    frame, y = rows(200)
    X = conform(frame, columns_of(frame))
    steps = [("features", preprocessor(X)), ("model", RandomForestClassifier(5, random_state=0))]
    model, facts = Pipeline(steps).fit(X, y), facts_of(frame, y)
    return model, facts, frame, to_bytes(model, facts)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("left", value) for value in (0, 10**6, -2, 2**62, -(2**62))),
        *(("right", value) for value in (0, -1, 2**31, 2**62)),
        *(("feature", value) for value in (-1, -(2**62), 99, 10**6, 2**62)),
        ("node_count", 10**6),
        ("node_count", -1),
        ("node_count", 0),
    ],
)
def test_trees_that_point_outside_are_refused(forest, boosted, name, value):
    for data, owner in ((forest[3], "RandomForestClassifier"), (boosted[3], BOOSTER)):
        refused(with_array(data, name, set_to(0, value), owner), "contradicts itself")


@pytest.mark.parametrize("owner", ["RandomForestClassifier", BOOSTER])
def test_nodes_with_two_parents_or_none_are_refused(forest, boosted, owner):
    data = boosted[3] if owner == BOOSTER else forest[3]
    columns = {}
    for name in ("left", "right"):
        with_array(data, name, lambda array, name=name: columns.setdefault(name, array), owner)
    shared = set_to(0, columns["right"][0])
    refused(with_array(data, "left", shared, owner), "contradicts itself")
    leaf = int(np.flatnonzero(columns["left"] == -1)[0])
    refused(with_array(data, "right", set_to(leaf, leaf + 1), owner), "contradicts itself")


def test_trees_of_any_depth_are_walked_in_time(forest):
    # A chain: every second node is a leaf, and the child of the one before it.
    data, n = forest[3], 2 * tree_models.MAX_DEPTH + 3
    nodes, inner = np.arange(n), np.arange(n) % 2 == 0
    inner[-1] = False
    chain = {
        "node_count": lambda _: np.array([n]),
        "left": lambda old: np.where(inner, nodes + 1, -1).astype(old.dtype),
        "right": lambda old: np.where(inner, nodes + 2, -1).astype(old.dtype),
        "feature": lambda old: np.zeros(n, dtype=old.dtype),
    }
    for name in tree_models.FOREST.keys() - {"classes_"}:
        change = chain.get(name, lambda old: np.resize(old[:1], (n, *old.shape[1:])))
        data = with_array(data, name, change, "RandomForestClassifier")
    refused(data, f"its trees are deeper than {tree_models.MAX_DEPTH} nodes")


def test_sets_of_categories_belong_to_columns_of_categories(boosted):
    data = boosted[3]
    many = with_array(data, "is_categorical", np.ones_like, BOOSTER)
    refused(many, "contradicts itself")
    none = with_array(data, "is_categorical", np.zeros_like, BOOSTER)
    refused(none, "contradicts itself")
    refused(with_array(data, "bits", lambda bits: bits[:-1], BOOSTER), "contradicts itself")
    refused(with_array(data, "bits", lambda bits: bits[:, :0], BOOSTER), "cannot have such a value")

    def forget_which(model):
        (booster,) = (each for each in found_in(model, BOOSTER) if "fitted" in each)
        booster["fitted"].pop("is_categorical_")

    refused(with_model(data, forget_which), "contradicts itself")
    # Whatever the sets say, they are read inside.
    for value in (0, 2**32 - 1):
        filled = with_array(data, "bits", lambda bits, v=value: np.full_like(bits, v), BOOSTER)
        assert len(from_bytes(filled).predict(boosted[2])) == len(boosted[2])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("baseline", lambda array: array[:-1]),
        ("baseline", lambda array: np.full_like(array, np.nan)),
        ("value", lambda array: np.full_like(array, np.inf)),
        ("num_threshold", lambda array: np.full_like(array, np.nan)),
        ("is_categorical_", np.zeros_like),
        ("is_categorical_", lambda array: array[:-1]),
    ],
)
def test_boosters_that_contradict_themselves_are_refused(boosted, name, change):
    refused(with_array(boosted[3], name, change, BOOSTER), "cannot be loaded")


LEVELS = [[], [1.0, None], list(range(300)), [["x"]], [{}], None, "x", ["Bonn", "Bonn", "Ulm"]]


@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_categories_that_fit_nothing_else_are_refused(linear, boosted, levels):
    def replace_levels(owner):
        def change(model):
            fitted = next(each for each in found_in(model, owner) if "fitted" in each)["fitted"]
            fitted["categories"][0] = {"is": "texts", "dtype": "O", "of": levels}

        return change

    # Their number is that of the columns that the model reads.
    refused(with_model(linear[3], replace_levels("OneHotEncoder")), "cannot be loaded")
    if levels == LEVELS[2]:
        refused(with_model(boosted[3], replace_levels(BOOSTER)), "cannot be loaded")


def test_categories_in_disorder_make_an_encoder_of_them_in_order(linear):
    def turn(model):
        fitted = next(each for each in found_in(model, "OneHotEncoder") if "fitted" in each)
        fitted["fitted"]["categories"][0]["of"].reverse()

    _, _, frame, data = linear
    assert from_bytes(with_model(data, turn)).predict(frame).tolist() == (
        from_bytes(data).predict(frame).tolist()
    )


@pytest.mark.parametrize("value", [[-1], [10**6], [2**62], [0, 0], [[0]], [0.5], "x", [], [True]])
def test_encoders_group_only_categories_that_they_have(value):
    frame, y = rows(100)
    frame["town"] = np.where(np.arange(100) < 3, "rare", frame["town"].to_numpy())
    X = conform(frame, columns_of(frame))
    model = model_for(X, "linear", "balanced").fit(X, y)
    data = to_bytes(model, facts_of(frame, y))

    def regroup(model):
        fitted = next(each for each in found_in(model, "OneHotEncoder") if "fitted" in each)
        places = fitted["fitted"]["grouped"]
        place = next(i for i, one in enumerate(places) if one is not None)
        places[place] = value

    refused(with_model(data, regroup), "cannot be loaded")


def pairs(*columns):
    return [{"is": "tuple", "of": list(each)} for each in columns]


@pytest.fixture(scope="module")
def of_tables():
    """The file of a model that brings its tables into form itself, with facts and without."""
    frame, y = rows(100)
    model = learner_for(frame).fit(frame, y)
    return [
        to_bytes(model, facts) for facts in (facts_of(frame, y), TrainingFacts.from_model(model))
    ]


KNOWN = [("x", "number"), ("gaps", "number"), ("town", "text"), ("new", "truth")]


@pytest.mark.parametrize(
    "columns",
    [
        None,
        3,
        "x",
        [],
        {"is": "dict", "of": []},
        {"is": "tuple", "of": pairs(*KNOWN)},
        [list(pair) for pair in KNOWN],
        ["x", "gaps"],
        pairs(*KNOWN, ()),
        pairs(*KNOWN, ("y",)),
        pairs(*KNOWN, ("y", "number", "text")),
        pairs(*KNOWN, ("x", "number")),
        pairs(*KNOWN, ("y", "object")),
        pairs(*KNOWN, ("y", None)),
        pairs(*KNOWN, ("y", ["number"])),
        pairs(*KNOWN, (7, "number")),
        pairs(*KNOWN, (None, "number")),
        pairs(*((name, "empty") for name, _ in KNOWN)),
        pairs(*KNOWN, *((f"z{i}", "empty") for i in range(1 << 16))),
        [{"is": "AsTable", "with": {"columns": []}}],
        {"is": "LabelCVaR", "with": {"alpha": 0.1}},
    ],
    ids=lambda columns: str(columns)[:40],
)
def test_columns_that_no_table_has_are_refused(of_tables, columns):
    for data in of_tables:
        refused(with_columns(data, columns), "its AsTable contradicts itself|it is damaged|unknown")


def with_columns(data, columns):
    def swap(model):
        (node,) = found_in(model, "AsTable")
        node["with"]["columns"] = columns

    return with_model(data, swap)


@pytest.mark.parametrize(
    "columns",
    [
        pairs(*KNOWN[1:]),
        pairs(*KNOWN, ("other", "number")),
        pairs(*KNOWN[:2], ("town", "number"), KNOWN[3]),
    ],
    ids=["fewer", "more", "a text as a number"],
)
def test_columns_of_another_table_cannot_be_predicted(of_tables, columns):
    frame, _ = rows(100)
    for data in of_tables:
        with pytest.raises(InvalidInputError) as found:
            from_bytes(with_columns(data, columns)).predict(frame)
        assert "\n" not in str(found.value)


def test_columns_are_found_by_name(of_tables):
    frame, _ = rows(100)
    for data in of_tables:
        found = from_bytes(with_columns(data, pairs(*KNOWN[::-1]))).predict(frame)
        assert found.tolist() == from_bytes(data).predict(frame).tolist()


def test_a_model_of_tables_says_which_column_it_misses(of_tables):
    frame, _ = rows(100)
    for data in of_tables:
        with pytest.raises(InvalidInputError, match="The table has no column 'town'"):
            from_bytes(data).predict(frame.drop(columns="town"))


def test_coefficients_of_the_wrong_shape_are_refused(linear):
    for change in (
        lambda a: a[:, :2],
        lambda a: a[:2],
        lambda a: a.T,
        np.ravel,
        lambda a: a * np.nan,
    ):
        changed = with_array(linear[3], "coef_", change, "RobustLogisticRegression")
        refused(changed, "RobustLogisticRegression cannot have such a value of 'coef_'")


@pytest.fixture(scope="module")
def averaged():
    """A mean of three trainings in a file."""
    place = np.minimum(np.arange(90) % 4, 2)
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.array(["a", "b", "c"])[place]
    base = RandomForestClassifier(2, max_depth=2, random_state=0)
    model = RobustClassifier(base, training="average", cv=3).fit(X + place[:, None], y)
    return to_bytes(model, TrainingFacts.from_model(model))


AVERAGED = {
    "a model less": lambda given: given["estimators"].pop(),
    "no model": lambda given: given["estimators"].clear(),
    "a model that is not fitted": lambda given: given["estimators"][0].pop("fitted"),
    "not a model": lambda given: given["estimators"].append(3),
    "one set of models": lambda given: given.update(estimators=given["estimators"][0]),
    "classes of others": lambda given: given["classes"].update(of=["a", "b", "x"]),
    "a class twice": lambda given: given["classes"].update(of=["a", "b", "b"]),
    "weights of two classes": lambda given: given["class_weights"].update(shape=[9, 1]),
    "no weights": lambda given: given.update(class_weights=None),
}


@pytest.mark.parametrize("change", AVERAGED.values(), ids=AVERAGED)
def test_trainings_that_contradict_their_weights_are_refused(averaged, change):
    changed = with_model(
        averaged, lambda model: change(next(found_in(model, "AveragedTrainings"))["with"])
    )
    refused(changed, "cannot be loaded")


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_training_weights_are_positive(averaged, value):
    def set_first(members):
        model = json.loads(members["model.json"])
        node = next(found_in(model, "AveragedTrainings"))["with"]["class_weights"]
        numbers = np.frombuffer(members[node["of"]], node["dtype"]).copy()
        numbers[0] = value
        members[node["of"]] = numbers.tobytes()
        members["model.json"] = json.dumps(model).encode()

    refused(repacked(averaged, set_first), "AveragedTrainings contradicts itself")


@pytest.mark.parametrize("name", ["class_shares_", "training_weights_"])
def test_what_puts_probabilities_on_the_scale_of_the_population_is_checked(averaged, name):
    def forget(model):
        next(found_in(model, "RobustClassifier"))["fitted"].pop(name)

    def rename(model):
        fitted = next(found_in(model, "RobustClassifier"))["fitted"]
        fitted[name]["with"]["classes"]["of"] = ["a", "b", "x"]

    def negate(members):
        model = json.loads(members["model.json"])
        node = next(found_in(model, "RobustClassifier"))["fitted"][name]["with"]["values"]
        numbers = -np.frombuffer(members[node["of"]], node["dtype"])
        members[node["of"]] = numbers.tobytes()

    refused(with_model(averaged, forget), "contradicts itself")
    refused(with_model(averaged, rename), "contradicts itself")
    refused(repacked(averaged, negate), "contradicts itself")


def test_a_model_that_has_not_been_fitted_is_refused(linear):
    _, facts, frame, data = linear
    X = conform(frame, facts.columns)
    with pytest.raises(InvalidInputError, match="cannot be saved"):
        to_bytes(model_for(X, "linear"), facts)

    def forget(model):
        next(found_in(model, "RobustLogisticRegression")).pop("fitted")

    refused(with_model(data, forget), "cannot be loaded")


@pytest.mark.parametrize("name", ["model.pkl", "model.skops", "model", "equipoise", "model.csv"])
def test_no_other_name_is_given_to_a_model(linear, tmp_path, name):
    with pytest.raises(InvalidInputError, match=r"ends in \.equipoise, got"):
        save_model(linear[0], tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_loading_names_files_that_are_not_there(tmp_path):
    with pytest.raises(InvalidInputError, match=r"There is no model .*none\.equipoise"):
        load_model(tmp_path / "none.equipoise")
    with pytest.raises(InvalidInputError, match="is a folder"):
        load_model(tmp_path)
