"""Model files changed at random but in form: ``python model_mutations.py SEED COUNT MODEL ...``.

Every change is one that a hostile author could make: a number, a shape, a type or a flag is another
one, a value is missing, doubled, exchanged or of another kind, at one place or at a few. A file
either loads and predicts, or is refused in one of our sentences; anything else ends the process
with a traceback. Prints what came out as JSON, with the largest memory and the longest time.
"""

import io
import json
import resource
import sys
import time
import warnings
import zipfile
from contextlib import suppress

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise import (
    LabelCVaR,
    PredictionSets,
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    RobustLogisticRegressionCV,
    RobustnessCV,
    TunedDecisionClassifier,
)
from equipoise.exceptions import EquipoiseError
from equipoise.goals import PrecisionFloors
from equipoise.persistence import TrainingFacts
from equipoise.persistence.archive import packed
from equipoise.persistence.saved_model import from_bytes, to_bytes
from equipoise.tables import columns_of, conform, learner_for, model_for, preprocessor

# Beyond what the process holds before the first file.
MEMORY = 2 << 30


def frame(n=80):
    """Numbers with gaps, and texts of which some are rare."""
    import pandas as pd

    rng = np.random.default_rng(0)
    town = rng.choice(np.array(["Ulm", "Bonn", None], dtype=object), n)
    town[:3] = "Rhumspringe", "Ulm", "Wiek"
    gaps = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    return pd.DataFrame({"x": rng.normal(size=n), "gaps": gaps, "town": town})


def positions(n=80, k=3):
    """Indices of classes, of which the last has most rows."""
    return np.minimum(np.arange(n) % (k + 1), k - 1)


def labels(n=80, k=3):
    return np.array(["ham", "spam", "eggs"], dtype=object)[positions(n, k)]


def forest(**given):
    return RandomForestClassifier(3, max_depth=3, random_state=0, **given)


def boosting(**given):
    return HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4, min_samples_leaf=3, **given)


FEW_TREES = {
    "linear": {},
    "forest": {"n_estimators": 3, "max_depth": 3},
    "boosting": {
        "max_iter": 2,
        "max_leaf_nodes": 4,
        "min_samples_leaf": 3,
        "categorical_features": [2],
    },
}


def table_model(kind):
    if kind == "features":
        return Pipeline([("features", preprocessor(frame())), ("model", forest())])
    if kind == "plain":
        return learner_for(frame())
    model = model_for(frame(), kind, "worst_class", cv=2)
    few = {f"estimator__model__{name}": value for name, value in FEW_TREES[kind].items()}
    return model.set_params(**few)


# Without a table, of numbers; then those of tables.
BARE = {
    "RobustLogisticRegression": lambda: RobustLogisticRegression(LabelCVaR(0.5)),
    "RobustLinearClassifier": lambda: RobustLinearClassifier(LabelCVaR(0.5)),
    "LogisticRegression": LogisticRegression,
    "RandomForestClassifier": forest,
    "HistGradientBoostingClassifier": boosting,
    "scaled": lambda: make_pipeline(StandardScaler(), RobustLogisticRegression("worst_class")),
    "plug-in": lambda: TunedDecisionClassifier(LogisticRegression(), "worst_class", cv=2),
    "abstaining": lambda: TunedDecisionClassifier(
        LogisticRegression(), PrecisionFloors(0.6, abstain=True), cv=2
    ),
    "RobustLogisticRegressionCV": lambda: RobustLogisticRegressionCV(LabelCVaR(0.5), Cs=2, cv=2),
    "RobustClassifier": lambda: RobustClassifier(LogisticRegression(), "worst_class", cv=2),
    "AveragedTrainings": lambda: RobustClassifier(
        LogisticRegression(), "worst_class", training="average", cv=2
    ),
    "PredictionSets": lambda: PredictionSets(LogisticRegression(), cv=0.5),
    "RobustnessCV": lambda: RobustnessCV(RobustLogisticRegression(), alphas=[1.0, 0.5], cv=2),
    "plug-in of a forest": lambda: TunedDecisionClassifier(forest(), "f1_macro", cv=2),
    "frozen": lambda: TunedDecisionClassifier(
        FrozenEstimator(forest().fit(*numbers())), "worst_class"
    ),
}
TABLES = ("features table", "plain table", "linear table", "forest table", "boosting table")
MODELS = (*BARE, *TABLES)


def numbers():
    return np.random.default_rng(1).normal(size=(80, 2)) + positions()[:, None], labels()


def saved(name):
    """A fitted model as the members of its file, and rows that it takes."""
    warnings.simplefilter("ignore")
    if name in BARE:
        X, y = numbers()
        model = BARE[name]().fit(X, y)
        data = to_bytes(model, TrainingFacts.from_model(model))
    else:
        X, y = frame(), labels()
        columns = columns_of(X)
        model = table_model(name.split()[0]).fit(conform(X, columns), y)
        facts = TrainingFacts(classes=tuple(sorted(set(y))), model=name, columns=columns)
        data = to_bytes(model, facts)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {each: archive.read(each) for each in archive.namelist()}, X


WHOLE = [0, 1, -1, 2, 3, 7, 8, 9, 255, 256, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63)]
REAL = [0.0, -1.0, 0.5, 1e-308, 1e308, -1e308, np.nan, np.inf, -np.inf]
DTYPES = ["<f8", "<f4", "<i8", "<i4", "<u4", "|u1", "|b1", ">f8", "|O", "<U4", "", None]
VALUES = [*WHOLE, *REAL, None, True, False, "", "x", "auto", "nan", [], [0], {}]


def some(rng, items):
    return items[int(rng.integers(len(items)))]


def changed_numbers(array, rng):
    """Some numbers replaced by extreme ones, by each other, or by neighbours."""
    array = array.copy()
    flat = array.reshape(-1)
    for _ in range(int(rng.integers(1, 4))):
        if not flat.size:
            return array
        place, kind = int(rng.integers(flat.size)), rng.integers(4)
        with np.errstate(all="ignore"), suppress(OverflowError, ValueError):
            if kind == 0:
                flat[place] = some(rng, WHOLE if array.dtype.kind in "iu" else REAL)
            elif kind == 1:
                flat[place] = flat[rng.integers(flat.size)]
            elif kind == 2:
                flat[place] = flat[place] + array.dtype.type(some(rng, [1, 2, 4]))
            else:
                flat[:] = some(rng, WHOLE if array.dtype.kind in "iu" else REAL)
    return array


def changed_shape(array, rng):
    """The numbers in another shape, or fewer or more of them."""
    ways = [
        lambda a: a[:-1],
        lambda a: a[1:],
        lambda a: a[:0],
        lambda a: np.concatenate([a, a]),
        lambda a: np.repeat(a, 3, axis=0),
        lambda a: a[None],
        lambda a: a.ravel(),
        lambda a: a.T,
        lambda a: a[..., :-1],
        lambda a: np.concatenate([a, a], axis=-1),
        lambda a: a[..., :0],
        lambda a: a[::-1],
    ]
    return np.ascontiguousarray(some(rng, ways)(array))


def mutate_array(node, members, rng):
    kind = rng.choice(4, p=[0.5, 0.25, 0.15, 0.1])
    old = np.frombuffer(members[node["of"]], node["dtype"]).reshape(node["shape"])
    if kind <= 1:
        new = (changed_numbers if kind == 0 else changed_shape)(old, rng)
        members[node["of"]] = new.tobytes()
        node["shape"] = list(new.shape)
    elif kind == 2:
        dtype = some(rng, DTYPES)
        if rng.random() < 0.7 and dtype in DTYPES[:7]:
            with np.errstate(all="ignore"):
                members[node["of"]] = old.astype(dtype).tobytes()
        node["dtype"] = dtype
    else:
        shape = node["shape"]
        if shape and rng.random() < 0.7:
            shape[rng.integers(len(shape))] = some(rng, WHOLE)
        else:
            node["shape"] = some(rng, [[], [0], [1], [-1], [2**32, 2**32], [0, 2**62], "x", None])


def mutate_value(owner, key, places, rng):
    """One place of the values of a model replaced, removed, doubled, exchanged or nudged."""
    value, kind = owner[key], rng.integers(7)
    if kind == 0 and isinstance(owner, dict):
        del owner[key]
    elif kind == 1:
        other, place = some(rng, places)
        owner[key] = json.loads(json.dumps(other[place]))
    elif kind == 2 and isinstance(value, list) and value:
        some(rng, [value.pop, value.reverse, lambda: value.append(some(rng, value))])()
    elif kind == 3 and type(value) is bool:
        owner[key] = not value
    elif kind == 3 and type(value) in (int, float):
        owner[key] = some(rng, [value + 1, -value, value * 2**31, value * 1e-3, value * 2**62])
    elif kind == 4 and isinstance(value, str):
        strings = [o[k] for o, k in places if isinstance(o[k], str)]
        owner[key] = some(rng, strings)
    elif kind == 5:
        owner[key] = [value]
    else:
        owner[key] = some(rng, VALUES)


def places_of(value, arrays, places):
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        places.append((value, key))
        if isinstance(item, dict) and item.get("is") == "array":
            arrays.append(item)
        elif isinstance(item, dict | list):
            places_of(item, arrays, places)


def columns_mutated(members, rng):
    """The file with one change, or two, of the columns that its table has."""
    model = json.loads(members["model.json"])
    # That of the fitted model, mostly, where a pipeline inside another keeps its own.
    chosen = -1 if rng.random() < 0.7 else 0
    for _ in range(1 + (rng.random() < 0.3)):
        places, inside = [], []
        places_of([model], [], places)
        values = (owner[key] for owner, key in places)
        nodes = [one for one in values if isinstance(one, dict) and one.get("is") == "AsTable"]
        tables = [one for one in nodes if isinstance(one.get("with"), dict)]
        given = tables[chosen]["with"] if tables else {}
        if "columns" in given:
            inside.append((given, "columns"))
        if isinstance(given.get("columns"), dict | list):
            places_of(given["columns"], [], inside)
        if inside:
            mutate_value(*some(rng, inside), places[1:], rng)
    return packed({**members, "model.json": json.dumps(model).encode()})


def mutated(members, rng):
    """The file with one change, or two."""
    if b'"AsTable"' in members["model.json"] and rng.random() < 0.3:
        return columns_mutated(members, rng)
    members = dict(members)
    model = json.loads(members["model.json"])
    for _ in range(1 + (rng.random() < 0.3)):
        arrays, places = [], []
        places_of([model], arrays, places)
        if arrays and rng.random() < 0.6:
            node = some(rng, arrays)
            with suppress(Exception):
                mutate_array(node, members, rng)
        else:
            mutate_value(*some(rng, places[1:]), places[1:], rng)
    return packed({**members, "model.json": json.dumps(model).encode()})


def outcome(data, X):
    """Whether a file loads; all that goes wrong is one of our errors."""
    try:
        loaded = from_bytes(data, "m.equipoise")
    except EquipoiseError as error:
        text = str(error)
        assert text.startswith("m.equipoise ") and "\n" not in text and len(text) < 700, text
        return "refused"
    for rows in (X, X[:1]):
        for method in ("predict", "predict_proba", "population_proba"):
            with suppress(EquipoiseError):
                assert len(getattr(loaded, method)(rows)) == len(rows)
    return "loaded"


def run(name, seed, count):
    members, X = saved(name)
    found = {"loaded": 0, "refused": 0, "seconds": 0.0}
    assert outcome(packed(members), X) == "loaded"
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        # What happened last, for whoever looks at a process that has ended.
        sys.stderr.write(f"{name} {seed} {number}\n")
        data = mutated(members, rng)
        start = time.process_time()
        found[outcome(data, X)] += 1
        found["seconds"] = max(found["seconds"], time.process_time() - start)
    found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return found


def main(seed, count, *names):
    """Each model in turn, in a process that cannot take more memory than is allowed."""
    warnings.simplefilter("ignore")
    saved("boosting table")
    with open("/proc/self/statm") as file:  # noqa: PTH123
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    sys.stdout.write(json.dumps({name: run(name, int(seed), int(count)) for name in names}))


if __name__ == "__main__":
    main(*sys.argv[1:])
