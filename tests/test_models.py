"""Model files: what is saved comes back the same, and nothing else comes in."""

import io
import json
import re
import sys
import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from equipoise import (
    ByClass,
    LocalPolynomialClassifier,
    PlugInClassifier,
    RobustLogisticRegression,
    estimators,
)
from equipoise.exceptions import InvalidInputError
from equipoise.goals import CostMatrix, MetricGoal, RecallFloors, parse_goal
from equipoise.metrics import fbeta
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
sio = pytest.importorskip("skops.io")

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import Pipeline, make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from equipoise.models import (  # noqa: E402
    TrainingFacts,
    archive,
    load_model,
    save_model,
)
from equipoise.models.saved_model import from_bytes, to_bytes  # noqa: E402
from equipoise.tables import (  # noqa: E402
    booster_for,
    columns_of,
    conform,
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


def booster(frame):
    X = conform(frame, columns_of(frame))
    trees = booster_for(X).set_params(max_iter=5)
    return Pipeline([("features", preprocessor(X, "boosting")), ("model", trees)])


@pytest.fixture(scope="module")
def linear():
    """A fitted linear model, its facts, its table and its bytes."""
    frame, y = rows(200)
    X = conform(frame, columns_of(frame))
    model = model_for(X, "linear", LabelCVaR(0.3)).fit(X, y)
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


def with_schema(data, change):
    """The archive with its schema changed in place by a function."""

    def apply(members):
        schema = json.loads(members["schema.json"])
        change(schema)
        members["schema.json"] = json.dumps(schema).encode()

    return repacked(data, apply)


# What is saved comes back


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
@pytest.mark.parametrize("kind", ["linear", "boosting"])
def test_every_model_comes_back_with_the_same_predictions(tmp_path, kind, recipe):
    if kind == "boosting":
        pytest.importorskip("equipoise.estimators.plug_in")
    frame, y = rows(200)
    X = conform(frame, columns_of(frame))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = model_for(X, kind, recipe)
        if kind == "boosting":
            model.set_params(model__estimator__max_iter=5)
        model.fit(X, y)
    facts = facts_of(frame, y, model=kind)
    save_model(model, tmp_path / "model.skops", facts)
    loaded = load_model(tmp_path / "model.skops")
    assert loaded.facts == facts and loaded.notes == ()
    new, _ = rows(100, seed=1)
    new_X = conform(new, facts.columns)
    assert loaded.predict(new).tolist() == model.predict(new_X).tolist()
    assert np.array_equal(loaded.predict_proba(new), model.predict_proba(new_X))
    kept = loaded.model[-1].get_params(deep=False)
    assert repr(kept["goal" if kind == "boosting" else "uncertainty"]) == repr(recipe)


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


def test_probabilities_on_the_scale_of_the_population_come_back_too(linear):
    model, facts, frame, data = linear
    X = conform(frame, facts.columns)
    expected = model[-1].predict_population_proba(model[:-1].transform(X))
    assert np.array_equal(from_bytes(data).predict_population_proba(frame), expected)


def test_the_facts_can_be_read_without_the_model(linear):
    _, facts, _, data = linear
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        read = json.loads(file.read("equipoise.json"))
    assert read["target"] == "label" and read["classes"] == ["a", "b", "c"]
    assert set(read["versions"]) >= {"python", "equipoise", "numpy", "scikit-learn", "skops"}
    assert TrainingFacts.from_json(json.dumps(read)) == facts


def test_skops_alone_reads_the_model(linear):
    model, facts, frame, data = linear
    X = conform(frame, facts.columns)
    trusted = sio.get_untrusted_types(data=data)
    assert "equipoise.LabelCVaR" in trusted and not any(name.count(".") > 1 for name in trusted)
    assert sio.loads(data, trusted=trusted).predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("kind", ["linear", "boosting"])
def test_equal_fits_make_equal_files(kind):
    frame, y = rows(150)
    X = conform(frame, columns_of(frame))
    facts = facts_of(frame, y, created="2020-02-02T00:00:00+00:00")
    models = [model_for(X, kind, FixedWeights("balanced")) for _ in range(2)]
    first, second = (to_bytes(model.fit(X, y), facts) for model in models)
    kept = to_bytes(models[0], facts)
    assert first == kept
    if kind == "boosting":
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
    assert loaded.model[-1].uncertainty.weights == model[-1].uncertainty.weights


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
    "plug-in": lambda: PlugInClassifier(RobustLogisticRegression("standard"), cv=3),
    "known weights": lambda: PlugInClassifier(
        HistGradientBoostingClassifier(max_iter=3), FixedWeights("balanced")
    ),
    "metric": lambda: PlugInClassifier(
        RobustLogisticRegression("standard"), MetricGoal("macro_f1"), cv=3
    ),
    "costs": lambda: PlugInClassifier(RobustLogisticRegression("standard"), CostMatrix(1.0)),
    "floors": lambda: PlugInClassifier(
        RobustLogisticRegression("standard"), RecallFloors(0.05), cv=3
    ),
    "logistic": lambda: PlugInClassifier(LogisticRegression(), "balanced_accuracy", cv=3),
    "local": lambda: LocalPolynomialClassifier(bandwidth=1.0),
    "pipeline": lambda: make_pipeline(StandardScaler(), RobustLogisticRegression("worst-class")),
    "one step": lambda: make_pipeline(RobustLogisticRegression("balanced")),
}


# Every estimator of the library, as it comes.
ESTIMATORS |= {
    name: getattr(estimators, name)
    for name in estimators.__all__
    if hasattr(getattr(estimators, name), "fit") and name != "PlugInClassifier"
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_every_estimator_is_saved_without_a_table(make, labels, tmp_path):
    rng = np.random.default_rng(0)
    place = np.arange(90) % len(labels)
    X, y = rng.normal(size=(90, 2)) + place[:, None], np.array(labels)[place]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X, y)
    save_model(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.predict(X).dtype.kind == y.dtype.kind
    if hasattr(model, "predict_proba"):
        assert np.array_equal(loaded.predict_proba(X.tolist()), model.predict_proba(X))
        assert loaded.predict_population_proba(X).shape == (90, len(labels))
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
        save_model(RobustLogisticRegression(goal).fit(X, y), tmp_path / "m.skops")
        facts = load_model(tmp_path / "m.skops").facts
        assert (facts.model, facts.goal) == ("RobustLogisticRegression", text)
    local = LocalPolynomialClassifier(bandwidth=1.0).fit(X, y)
    assert TrainingFacts.from_model(local).goal is None
    plug_in = PlugInClassifier(RobustLogisticRegression("standard"), cv=2).fit(X, y)
    assert TrainingFacts.from_model(plug_in).goal == "LabelCVaR(alpha=0.1)"


def test_a_metric_by_its_coefficients_is_saved(tmp_path):
    X, y = np.arange(40.0)[:, None], np.repeat(["a", "b"], 20)
    model = PlugInClassifier(RobustLogisticRegression("standard"), fbeta(2), cv=2).fit(X, y)
    save_model(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    assert loaded.model.goal == fbeta(2)
    assert parse_goal(loaded.facts.goal) == fbeta(2)


def test_rows_that_do_not_fit_a_model_without_a_table_are_a_sentence(tmp_path):
    X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    save_model(RobustLogisticRegression("balanced").fit(X, y), tmp_path / "m.skops")
    with pytest.raises(InvalidInputError, match=r"cannot predict these rows \(X has 2 features"):
        load_model(tmp_path / "m.skops").predict(np.zeros((3, 2)))


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
    path = tmp_path / "m.skops"
    with pytest.raises(NotFittedError):
        save_model(RobustLogisticRegression(), path)
    forest = PlugInClassifier(RandomForestClassifier(2), FixedWeights("balanced")).fit(X, y)
    with pytest.raises(InvalidInputError, match="cannot be saved: it holds an object of type 'skl"):
        save_model(forest, path)
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    odd = RobustLogisticRegression("balanced").fit(X, y)
    odd.classes_ = dates
    with pytest.raises(InvalidInputError, match="turn the labels into texts"):
        save_model(odd, path)
    assert not path.exists()


# Names that outlive any move of a file


def nodes(data):
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        stack = [json.loads(file.read("schema.json"))]
    while stack:
        value = stack.pop()
        children = value.values() if isinstance(value, dict) else value
        stack.extend(child for child in children if isinstance(child, dict | list))
        if isinstance(value, dict) and "__loader__" in value:
            yield value["__module__"], value["__class__"]


def test_our_classes_stand_in_a_file_under_public_names(linear):
    ours = {name for name in nodes(linear[3]) if name[0].startswith("equipoise")}
    names = {"ByClass", "LabelCVaR", "RobustLogisticRegression"}
    assert ours == {("equipoise", name) for name in names}


def test_a_class_that_moves_breaks_no_model(monkeypatch, linear):
    model, facts, frame, data = linear
    expected = model.predict(conform(frame, facts.columns)).tolist()
    for moved in (LabelCVaR, RobustLogisticRegression, ByClass):
        monkeypatch.setattr(moved, "__module__", "equipoise.elsewhere.file")
        assert from_bytes(data).predict(frame).tolist() == expected
        assert ("equipoise", moved.__name__) in set(nodes(to_bytes(model, facts)))
    monkeypatch.delitem(sys.modules, "equipoise.sets.cvar")
    monkeypatch.setitem(sys.modules, "equipoise.sets.cvar", None)
    assert from_bytes(to_bytes(model, facts)).predict(frame).tolist() == expected


def test_a_class_that_is_not_known_is_named(linear):
    def rename(members):
        text = members["schema.json"].decode()
        members["schema.json"] = text.replace('"LabelCVaR"', '"MySet"').encode()

    refused(repacked(linear[3], rename), r"class 'MySet', which is not known here.*register it")


def test_a_model_of_the_last_format_is_refused_with_what_to_do(linear):
    def age(members):
        text = members["schema.json"].decode()
        old = '"__class__": "LabelCVaR", "__module__": "equipoise.sets.cvar"'
        members["schema.json"] = re.sub(
            r'"__class__": "LabelCVaR",\s+"__module__": "equipoise"', old, text
        ).encode()
        facts = {**json.loads(members["equipoise.json"]), "format": 1}
        members["equipoise.json"] = json.dumps(facts).encode()

    sentence = "of format 1 and this version .* reads format 2: load it with the version that wrote"
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


def test_a_model_of_another_scikit_learn_is_noted(linear):
    _, _, frame, data = linear

    def age(members):
        current = members["schema.json"].decode()
        import sklearn

        old = current.replace(f'\\"{sklearn.__version__}\\"', '\\"0.99.0\\"')
        assert old != current
        members["schema.json"] = old.encode()

    loaded = from_bytes(repacked(data, age))
    assert len(loaded.notes) == 1 and "scikit-learn 0.99.0" in loaded.notes[0]
    assert len(loaded.predict(frame)) == len(frame)


# Nothing else comes in


def refused(data, sentence):
    with pytest.raises(InvalidInputError, match=sentence) as found:
        from_bytes(data, "model.skops")
    text = str(found.value)
    assert text.startswith("model.skops ") and text.endswith(".") and "\n" not in text


def test_unknown_types_are_refused_by_name(linear):
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.tree import DecisionTreeClassifier

    _, facts, _, _ = linear
    refused(to_bytes(DecisionTreeClassifier(), facts), "type 'sklearn.tree._classes.DecisionTreeC")
    exp = make_pipeline(FunctionTransformer(np.exp))
    refused(to_bytes(exp, facts), r"of type 'numpy.*exp'")


@pytest.mark.parametrize(
    ("module", "name", "loader"),
    [
        ("os", "system", "FunctionNode"),
        ("builtins", "eval", "FunctionNode"),
        ("builtins", "eval", "TypeNode"),
        ("subprocess", "Popen", "ConstructorFromReduceNode"),
        ("subprocess", "Popen", "ObjectNode"),
        ("builtins", "dict", "ObjectNode"),
        ("numpy", "ndarray", "FunctionNode"),
        ("functools", "partial", "MethodNode"),
        ("operator", "methodcaller", "OperatorFuncNode"),
        ("scipy.sparse._matrix", "spmatrix", "SparseMatrixNode"),
        (["os"], "system", "FunctionNode"),
        ("os", "system", ["FunctionNode"]),
    ],
)
def test_types_that_could_run_code_are_refused_by_name(linear, module, name, loader):
    def smuggle(schema):
        schema["extra"] = {"__module__": module, "__class__": name, "__loader__": loader}

    refused(with_schema(linear[3], smuggle), "holds an object of type")


def test_no_marker_of_a_hostile_file_is_ever_executed(tmp_path, linear):
    marker = tmp_path / "executed"

    def smuggle(schema):
        call = {"__module__": "os", "__class__": "system", "__loader__": "FunctionNode"}
        arguments = json.dumps([f"touch {marker}"])
        json_node = {"__module__": "builtins", "__class__": "str", "__loader__": "JsonNode"}
        schema["content"] = {
            "__module__": "functools",
            "__class__": "partial",
            "__loader__": "PartialNode",
            "content": {"func": call, "args": {**json_node, "content": arguments}},
        }

    refused(with_schema(linear[3], smuggle), "of type 'os.system'")
    assert not marker.exists()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is no model"),
        (b"not a zip", "is no model"),
        (b"PK\x03\x04 and nothing", "damaged"),
        (b"PK\x05\x06" + b"\x00" * 18, "holds no schema.json"),
    ],
)
def test_files_that_are_no_models_are_refused(data, sentence):
    refused(data, sentence)


def test_archives_without_the_facts_or_with_broken_ones_are_refused(linear):
    data = linear[3]
    refused(repacked(data, lambda m: m.pop("equipoise.json")), "holds no equipoise.json")
    for text in ("", "[]", "{}", "[" * 99_999, '{"format": 2}', "\x00"):
        changed = repacked(data, lambda m, text=text: m.update({"equipoise.json": text.encode()}))
        refused(changed, "training facts cannot be read")
    newer = repacked(data, lambda m: m.update({"equipoise.json": b'{"format": 3}'}))
    refused(newer, "of format 3 and this version of equipoise reads format 2")


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


def test_archives_that_unpack_to_too_much_are_refused_unread(monkeypatch, linear):
    def grow(members):
        members["zeros.npy"] = b"\x00" * 2_000_000

    data = repacked(linear[3], grow)
    assert len(data) < 100_000
    from_bytes(data)
    monkeypatch.setattr(archive, "MAX_BYTES", 1_000_000)
    refused(data, "would unpack to more than a model can need")


@pytest.mark.parametrize(
    ("limit", "value"), [("MAX_SCHEMA_BYTES", 1000), ("MAX_FACTS_BYTES", 10), ("MAX_MEMBERS", 3)]
)
def test_each_size_has_its_limit(monkeypatch, linear, limit, value):
    monkeypatch.setattr(archive, limit, value)
    refused(linear[3], "would unpack to more")


def test_one_array_read_many_times_is_refused(monkeypatch, linear):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(10_000))
    node = {"__module__": "numpy", "__class__": "ndarray", "__loader__": "NdArrayNode"}

    def repeat(members):
        schema = json.loads(members["schema.json"])
        schema["extra"] = [{**node, "type": "numpy", "file": "large.npy"}] * 50
        members.update({"schema.json": json.dumps(schema).encode(), "large.npy": buffer.getvalue()})

    data = repacked(linear[3], repeat)
    from_bytes(data)
    monkeypatch.setattr(archive, "MAX_BYTES", 50 * 80_000)
    refused(data, "its arrays would unpack to more than a model can need")


@pytest.mark.parametrize("depth", [300, 100_000])
def test_schemas_that_nest_too_deep_are_refused(linear, depth):
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    refused(repacked(linear[3], lambda m: m.update({"schema.json": deep})), "cannot be loaded")


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
        "__import__('os').system('true')",
        "",
    ],
)
def test_arrays_that_lie_about_their_length_are_refused(linear, header):
    text = header.encode().ljust(117) + b"\n"
    lie = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\x00" * 8

    def replace_first(members):
        name = next(name for name in members if name.endswith(".npy"))
        members[name] = lie

    refused(repacked(linear[3], replace_first), "cannot be loaded")


# Numbers that compiled code would trust


def test_trees_that_point_outside_are_refused(boosted):
    model, facts, _, _ = boosted
    trees = model[-1]._predictors
    tree = trees[0][0]
    inner = int(np.flatnonzero(tree.nodes["is_leaf"] == 0)[0])
    split = next((t for stage in trees for t in stage if t.nodes["is_categorical"].any()), None)
    changes = [
        (tree, inner, "left", len(tree.nodes)),
        (tree, inner, "right", 2**32 - 1),
        (tree, inner, "left", inner),
        (tree, inner, "right", 0),
        (tree, inner, "feature_idx", 10**6),
        (tree, inner, "feature_idx", -1),
    ]
    if split is not None:
        # The booster puts its categorical columns first, so the last one holds numbers.
        place, last = int(np.flatnonzero(split.nodes["is_categorical"])[0]), 3
        changes += [(split, place, "bitset_idx", 10**6), (split, place, "feature_idx", last)]
    number = int(
        np.flatnonzero((tree.nodes["is_leaf"] == 0) & (tree.nodes["is_categorical"] == 0))[0]
    )
    changes.append((tree, number, "is_categorical", 1))
    for part, place, field, value in changes:
        kept = part.nodes.copy()
        part.nodes[field][place] = value
        try:
            refused(to_bytes(model, facts), "HistGradientBoostingClassifier points outside")
        finally:
            part.nodes = kept
    assert from_bytes(to_bytes(model, facts)).facts == facts


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("n_trees_per_iteration_", 10**9),
        ("_n_features", 1),
        ("_bin_mapper.is_categorical_", np.ones(2, dtype=np.uint8)),
        ("_bin_mapper.bin_thresholds_", []),
        ("_baseline_prediction", np.zeros((1, 1))),
    ],
)
def test_boosters_that_contradict_themselves_are_refused(path, value):
    frame, y = rows(100)
    model = booster(frame).fit(conform(frame, columns_of(frame)), y)
    owner = model[-1]
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    setattr(owner, name, value)
    refused(to_bytes(model, facts_of(frame, y)), "points outside its own arrays")


def test_categories_beyond_the_bit_sets_are_refused():
    frame, y = rows(100)
    model = booster(frame).fit(conform(frame, columns_of(frame)), y)
    mapper = model[-1]._bin_mapper
    place = int(np.flatnonzero(mapper.is_categorical_)[0])
    mapper.bin_thresholds_[place] = np.array([1e6])
    refused(to_bytes(model, facts_of(frame, y)), "points outside its own arrays")


@pytest.mark.parametrize("value", [-1, 10**6])
def test_encoders_that_write_outside_are_refused(value):
    frame, y = rows(100)
    frame["town"] = np.where(np.arange(100) < 3, "rare", frame["town"].to_numpy())
    X = conform(frame, columns_of(frame))
    model = model_for(X, "linear", "balanced").fit(X, y)
    encoder = model[0].named_transformers_["texts"][-1]
    mapping = next(m for m in encoder._default_to_infrequent_mappings if m is not None)
    mapping[0] = value
    refused(to_bytes(model, facts_of(frame, y)), "OneHotEncoder points outside")


def test_coefficients_of_the_wrong_shape_are_refused():
    frame, y = rows(100)
    X = conform(frame, columns_of(frame))
    model = model_for(X, "linear", "balanced").fit(X, y)
    model[-1].coef_ = model[-1].coef_[:, :2]
    refused(to_bytes(model, facts_of(frame, y)), "does not fit its own training facts")


def test_a_model_that_has_not_been_fitted_is_refused(linear):
    _, facts, frame, _ = linear
    X = conform(frame, facts.columns)
    refused(to_bytes(model_for(X, "linear"), facts), "cannot be loaded")


def test_loading_names_files_that_are_not_there(tmp_path):
    with pytest.raises(InvalidInputError, match=r"There is no model .*none\.skops"):
        load_model(tmp_path / "none.skops")
    with pytest.raises(InvalidInputError, match="is a folder"):
        load_model(tmp_path)
