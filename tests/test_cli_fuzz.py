"""Damaged inputs by the thousand: the command line and the model loader answer in sentences.

Every case is drawn from a seed of its own, so that a failure can be run again by its number.
"""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from equipoise.exceptions import EquipoiseError, InvalidInputError

pd = pytest.importorskip("pandas", minversion="2.1")
pytest.importorskip("click")

from click.testing import CliRunner  # noqa: E402

from equipoise.cli.main import main  # noqa: E402
from equipoise.persistence import TrainingFacts  # noqa: E402
from equipoise.persistence.saved_model import from_bytes, to_bytes  # noqa: E402
from equipoise.tables import columns_of, conform, model_for  # noqa: E402

# Together more than 2,000; the counts of each are tuned to its cost.
ARCHIVE_CASES = 300
SCHEMA_CASES = 500
ARRAY_CASES = 300
FACTS_CASES = 200
ARGUMENT_CASES = 500
GOAL_CASES = 300
TABLE_CASES = 250
ROUNDS = 10


def table(n=60):
    rng = np.random.default_rng(0)
    label = np.resize(["ham", "ham", "spam"], n)
    return pd.DataFrame(
        {
            "x": rng.normal(size=n).round(3) + (label == "spam"),
            "town": rng.choice(np.array(["Ulm", "Bonn", None], dtype=object), n),
            "label": label,
        }
    )


def fitted(kind):
    frame = table()
    raw, y = frame.drop(columns="label"), frame["label"].to_numpy(dtype=object)
    columns = columns_of(raw)
    X = conform(raw, columns)
    model = model_for(X, kind, "worst_class" if kind == "boosting" else "balanced")
    if kind == "boosting":
        few = {"estimator__model__max_iter": 2, "estimator__model__max_leaf_nodes": 4}
        model.set_params(**few)
    facts = TrainingFacts(
        classes=("ham", "spam"),
        model=kind,
        goal="balanced",
        target="label",
        columns=columns,
        counts=(40, 20),
        seed=0,
        created="2020-02-02T00:00:00+00:00",
    )
    model.fit(X, y)
    if kind == "linear":
        # The same bytes, and so the same damage, in every run.
        model.estimator_[-1].history_["seconds"][:] = 0
    return to_bytes(model, facts)


@pytest.fixture(scope="module")
def archives():
    return [fitted("linear"), fitted("boosting")]


def cases(count):
    """Numbers of cases, in rounds that fail one by one."""
    size = -(-count // ROUNDS)
    rounds = [range(start, min(count, start + size)) for start in range(0, count, size)]
    return pytest.mark.parametrize("numbers", rounds, ids=lambda r: f"{r.start}-{r.stop - 1}")


MARKS = np.frombuffer(b'",;=:\n\r\t 019axNe-.?', dtype=np.uint8)


def damaged(data, rng):
    """Bytes with a few of them changed, left out, doubled, or cut off."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(data) + 1))
        length = int(rng.integers(1, 9))
        kind = rng.integers(5)
        # Half of the new bytes are those that tables are made of.
        new = rng.bytes(length) if rng.random() < 0.5 else bytes(rng.choice(MARKS, length))
        if kind == 0:
            data[place : place + length] = new
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = data[place : place + length]
        elif kind == 3:
            data[place:place] = new
        elif rng.random() < 0.3:
            del data[place:]
    return bytes(data)


JUNK = [None, True, 0, -1, 2**70, 1e308, float("nan"), "", "x", "\x00", "builtins", [], {}, [[]]]


def mangled(value, rng):
    """A JSON value with one place in it replaced, removed, doubled or exchanged."""
    places = []
    _collect(value, places)
    owner, key = places[rng.integers(len(places))]
    kind = rng.integers(4)
    if kind == 0 or not isinstance(owner, dict):
        owner[key] = JUNK[rng.integers(len(JUNK))]
    elif kind == 1:
        del owner[key]
    elif kind == 2:
        other, place = places[rng.integers(len(places))]
        owner[key] = json.loads(json.dumps(other[place]))
    else:
        owner[f"{key} "] = owner.pop(key)
    return value


def _collect(value, places):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        places.append((value, key))
        if isinstance(item, dict | list) and item:
            _collect(item, places)


def repacked(data, change):
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
    return buffer.getvalue()


def answers(data):
    """Whether a model loads; loading and predicting raise nothing but sentences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loaded = from_bytes(data, "m.equipoise")
        except InvalidInputError as error:
            text = str(error)
            assert text.startswith("m.equipoise ") and "\n" not in text and len(text) < 600
            return False
        # Most damage shows when the model is loaded and tried out; what is left may show here.
        with suppress(EquipoiseError):
            assert len(loaded.predict(table())) == len(loaded.predict_proba(table())) == 60
    return True


# The model loader


def test_the_archives_are_sound_before_they_are_damaged(archives):
    assert all(answers(data) for data in archives)


@cases(ARCHIVE_CASES)
def test_damaged_archives(archives, numbers):
    loaded = 0
    for number in numbers:
        rng = np.random.default_rng([1, number])
        loaded += answers(damaged(archives[number % 2], rng))
    assert loaded < len(numbers)


@cases(SCHEMA_CASES)
def test_archives_with_a_mangled_schema(archives, numbers):
    refused = 0
    for number in numbers:
        rng = np.random.default_rng([2, number])

        def mangle(members, rng=rng):
            schema = mangled(json.loads(members["model.json"]), rng)
            members["model.json"] = json.dumps(schema).encode()

        refused += not answers(repacked(archives[number % 2], mangle))
    assert refused > 0


@cases(ARRAY_CASES)
def test_archives_with_damaged_arrays(archives, numbers):
    for number in numbers:
        rng = np.random.default_rng([3, number])

        def spoil(members, rng=rng):
            names = [name for name, data in members.items() if name.endswith(".bin") and data]
            name = names[rng.integers(len(names))]
            data = bytearray(members[name])
            if rng.random() < 0.3:
                data = bytearray(damaged(data, rng))
            else:
                # The numbers alone: the array keeps its form.
                for _ in range(rng.integers(1, 6)):
                    place = int(rng.integers(0, len(data)))
                    data[place] = rng.integers(256)
            members[name] = bytes(data)

        answers(repacked(archives[number % 2], spoil))


@cases(FACTS_CASES)
def test_archives_with_mangled_facts(archives, numbers):
    refused = 0
    for number in numbers:
        rng = np.random.default_rng([4, number])

        def mangle(members, rng=rng):
            facts = mangled(json.loads(members["equipoise.json"]), rng)
            members["equipoise.json"] = json.dumps(facts).encode()

        refused += not answers(repacked(archives[0], mangle))
    assert refused > 0


# The command line


def judged(result):
    """The command ended in a result, or in one sentence and an exit code."""
    detail = f"{result.args if hasattr(result, 'args') else ''}\n{result.output}"
    assert result.exception is None or isinstance(result.exception, SystemExit), detail
    assert result.exit_code in (0, 1, 2), detail
    spoken(result.exit_code, result.stdout, result.stderr)


def spoken(code, stdout, stderr):
    assert "Traceback" not in stderr and "this is a bug" not in stderr, stderr
    if code == 0:
        return
    lines = [line for line in stderr.splitlines() if not line.startswith("Warning: ")]
    errors = [line for line in lines if line.startswith("Error: ")]
    assert len(errors) == 1 and len(errors[0]) > len("Error: "), stderr
    if code == 1:
        assert lines == errors, stderr
        assert not stdout or stdout.startswith("prediction"), stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory, archives):
    folder = tmp_path_factory.mktemp("fuzz")
    frame = table()
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    (folder / "m.equipoise").write_bytes(archives[0])
    (folder / "bad.equipoise").write_bytes(archives[0][:-50])
    (folder / "empty.csv").write_bytes(b"")
    (folder / "folder").mkdir()
    return folder


@pytest.fixture
def here(place, monkeypatch):
    monkeypatch.chdir(place)
    return place


WORDS = {
    "file": [
        "t.csv",
        "t.csv.gz",
        "m.equipoise",
        "bad.equipoise",
        "empty.csv",
        "folder",
        "none",
        "",
        "-",
    ],
    "column": ["label", "x", "town", "Label", "", "\x00", "é" * 300, "--target"],
    "number": ["0", "1", "0.5", "-1", "nan", "inf", "1e999", "x", "", "99999999999999999999"],
    "goal": [
        "balanced",
        "lcvar:0.5",
        "FixedWeights({'ham': 1, 'spam': 2})",
        "lcvar:9",
        "{}",
        "a:b",
    ],
    "out": ["o.equipoise", "o.csv", "folder", "none/o", "", "t.csv", "-"],
    "kind": ["linear", "deep", ""],
}
OPTIONS = {
    "fit": {
        "-t": "column",
        "--target": "column",
        "-o": "out",
        "-g": "goal",
        "--goal": "goal",
        "--C": "number",
        "--seed": "number",
        "--hold-out": "number",
        "--drop": "column",
        "--model": "kind",
        "--text-labels": None,
        "-q": None,
        "--json": None,
        "--nonsense": None,
    },
    "predict": {
        "-o": "out",
        "--proba": None,
        "--scale": "kind",
        "--keep": "column",
        "--json": None,
        "-q": None,
    },
    "evaluate": {"-t": "column", "--confidence": "number", "--json": None, "-q": None},
}
NEEDED = {
    # The cheapest goal, before any that is drawn.
    "fit": ["-t", "label", "-o", "o.equipoise", "--hold-out", "0", "-g", "standard"],
    "predict": ["-o", "o.csv"],
    "evaluate": [],
}
FILES = {
    "fit": ["t.csv"],
    "predict": ["m.equipoise", "t.csv"],
    "evaluate": ["m.equipoise", "t.csv"],
}


def any_of(values, rng):
    return values[rng.integers(len(values))]


def arguments(rng):
    """A command with files and options, each of them right or wrong."""
    command = any_of(list(OPTIONS), rng)
    files = [any_of(WORDS["file"], rng) if rng.random() < 0.3 else name for name in FILES[command]]
    if rng.random() < 0.1:
        files = files[: rng.integers(len(files) + 1)] + ["more"] * int(rng.integers(2))
    words = [*files, *(NEEDED[command] if rng.random() < 0.8 else [])]
    for _ in range(rng.integers(0, 4)):
        option = any_of(list(OPTIONS[command]), rng)
        words.append(option)
        kind = OPTIONS[command][option]
        if kind is not None and rng.random() < 0.95:
            words.append(any_of(WORDS[kind], rng))
    if rng.random() < 0.1:
        rng.shuffle(words)
    return [command if rng.random() < 0.98 else "guess", *words]


@cases(ARGUMENT_CASES)
def test_wrong_arguments(here, numbers):
    for number in numbers:
        rng = np.random.default_rng([5, number])
        judged(CliRunner().invoke(main, arguments(rng)))


GOALS = [
    "standard",
    "worst_class",
    "FixedWeights({'ham': 1, 'spam': 5})",
    "lcvar:0.1",
    "LabelHCVaR(c=0.5, kappa=2)",
    "WeightBox({'spam': 1}, {'spam': 10})",
    "PriorBox(lower={'spam': 0.001}, upper={'spam': 0.05})",
    "PriorBall(radius=0.1, divergence='kl')",
    "WeightHull(['standard', {'ham': 1, 'spam': 2}])",
    "f1_macro",
    "RecallFloors(floors={'spam': 0.5}, confidence=0.9)",
    "CostMatrix(costs=[[0, 1], [5.0, 0]])",
    "MetricGoal(metric='f1')",
]


@cases(GOAL_CASES)
def test_damaged_texts_of_goals(here, numbers):
    for number in numbers:
        rng = np.random.default_rng([6, number])
        text = damaged(any_of(GOALS, rng).encode(), rng).decode("utf-8", errors="replace")
        words = ["fit", "t.csv", "-t", "label", "-o", "o.equipoise", "--hold-out", "0", "-g", text]
        judged(CliRunner().invoke(main, words))


@pytest.fixture(scope="module")
def tables():
    """The bytes of one table in each form."""
    frame = table()
    text = frame.to_csv(index=False).encode()
    found = {"csv": text, "csv.gz": gzip.compress(text, mtime=0)}
    with suppress(ImportError):
        buffer = io.BytesIO()
        frame.to_parquet(buffer)
        found["parquet"] = buffer.getvalue()
    return found


@cases(TABLE_CASES)
def test_damaged_tables(here, numbers, tables):
    commands = [
        ["fit", None, "-t", "label", "-o", "o.equipoise", "--hold-out", "0"],
        ["predict", "m.equipoise", None, "-o", "-"],
        ["evaluate", "m.equipoise", None],
    ]
    for number in numbers:
        rng = np.random.default_rng([7, number])
        # Most damage to packed bytes is found at once; texts are read on.
        form = any_of(["csv", "csv", "csv", "csv.gz", *list(tables)[2:]], rng)
        (here / "bad").write_bytes(damaged(tables[form], rng))
        words = commands[number % 3]
        judged(CliRunner().invoke(main, ["bad" if word is None else word for word in words]))
        assert not list(here.glob(".equipoise-*"))


@cases(60)
def test_damaged_models_on_the_command_line(here, numbers, archives):
    for number in numbers:
        rng = np.random.default_rng([8, number])
        (here / "bad.equipoise").write_bytes(damaged(archives[number % 2], rng))
        words = ["evaluate", "bad.equipoise", "t.csv"]
        if number % 2:
            words = ["predict", "bad.equipoise", "t.csv", "-o", "-"]
        judged(CliRunner().invoke(main, words))


def test_there_are_two_thousand_cases():
    parts = (ARCHIVE_CASES, SCHEMA_CASES, ARRAY_CASES, FACTS_CASES)
    assert sum(parts) + ARGUMENT_CASES + GOAL_CASES + TABLE_CASES >= 2000


# Processes of their own


def _half(text):
    return text[: len(text) // 2]


# Many commands, each in a process of its own that begins where all imports are done.
FORKED = """
import json, os, runpy, sys
import click, equipoise.estimators, equipoise.persistence, equipoise.tables, pandas
codes = []
for number, words in enumerate(json.load(sys.stdin)):
    child = os.fork()
    if not child:
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        sys.argv = ["equipoise", *words]
        try:
            runpy.run_module("equipoise.cli", run_name="__main__")
        except SystemExit as ended:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(ended.code)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""


def in_fresh_processes(commands, folder):
    """Exit code, output and errors of each command; Python starts anew for each."""
    for words in commands:
        command = [sys.executable, "-m", "equipoise.cli", *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        yield done.returncode, done.stdout, done.stderr


def in_forked_processes(commands, folder):
    """The same, where Python and what it imports start only once."""
    command = [sys.executable, "-c", FORKED]
    pipes = {"input": json.dumps(commands), "stdout": subprocess.PIPE, "text": True}
    done = subprocess.run(command, cwd=folder, check=True, **pipes)
    for number, code in enumerate(json.loads(done.stdout)):
        read = [(folder / f"{number}.{name}").read_text() for name in ("stdout", "stderr")]
        yield code, *read


def half(text):
    return text[: len(text) // 2]


@pytest.fixture(scope="module")
def ended(tmp_path_factory, place, archives, tables):
    """What twenty commands said; four of them, one of each kind, had a Python of their own."""
    folder, commands = tmp_path_factory.mktemp("processes"), []
    shutil.copy(place / "t.csv", folder)
    for number in range(20):
        rng = np.random.default_rng([9, number])
        table, model = f"{number}.csv", f"{number}.equipoise"
        (folder / table).write_bytes(damaged(tables["csv"], rng)[: rng.integers(40)])
        (folder / model).write_bytes(archives[0][: rng.integers(len(archives[0]) - 100)])
        words = [
            arguments(rng)[:2],
            ["fit", table, "-t", "label", "-o", "o.equipoise"],
            ["evaluate", model, "t.csv"],
            ["fit", "t.csv", "-t", "label", "-o", "o", "-g", half(any_of(GOALS, rng))],
        ]
        commands.append(words[number % 4])
    others = in_forked_processes if hasattr(os, "fork") else in_fresh_processes
    return [*in_fresh_processes(commands[:4], folder), *others(commands[4:], folder)]


@pytest.mark.parametrize("start", range(0, 20, 4))
def test_damage_in_a_process_of_its_own(ended, start):
    assert len(ended) == 20
    for code, stdout, stderr in ended[start : start + 4]:
        assert code in (1, 2), stderr
        spoken(code, stdout, stderr)
