"""Tables by the hundred that nobody would write on purpose, through every command that reads one.

Each is drawn from a seed of its own, so that a failure can be run again by its number. A command
ends with a result, or with one sentence and its exit code; it leaves no traceback and no half file.
"""

import csv
import gzip
import io
import zipfile
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pytest

pd = pytest.importorskip("pandas", minversion="2.1")
pytest.importorskip("click")
pytest.importorskip("jinja2")
pytest.importorskip("pyarrow", exc_type=ImportError)

from click.testing import CliRunner  # noqa: E402

from equipoise.cli.main import main  # noqa: E402

STUDY_TABLES, FEW_TABLES = 200, 12

WORDS = ["Ulm", "Bonn", "Köln", "東京", "مرحبا", "🙂", "a b", "O'Neill", "x" * 300]
CELLS = {
    "numbers": ["0", "1.5", "-2", "3e4", "17", "0.1", "8.25"],
    "numbers with a stray": ["0", "1.5", "-2", "3e4", "17", "n.a. today"],
    "digits": ["\u0661\u0662", "\uff11", "\xb2", "\u2167", "1_000", "0x1F", "1,5", "\u066a5"],
    "infinities": ["inf", "-Infinity", "1e999", "-1e308", "5e-324", "nan", "NaN", "1"],
    "long numbers": ["9" * 30, "-" + "9" * 19, "18446744073709551615", "1" * 400, "0.1" + "0" * 99],
    "dates": [
        "2024-01-01",
        "01/02/2024",
        "2024-02-30",
        "9999-12-31",
        "0001-01-01",
        "24:61",
        "1/1/1",
    ],
    "truths": ["True", "false", "TRUE", "0", "1", "yes", "no", "T"],
    "formulas": ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "=HYPERLINK(1)", "'=1"],
    "quotes": ['"', '""', 'a"b', '"a', 'b"', "''", 'a,"b"', '"""'],
    "marks": [",", ";", "\t", "|", "\n", "\r", "\r\n", "a\nb", "\\", "\\n"],
    "controls": ["\x00", "\x1b[2J", "\x7f", "\x1a", "\ufeff", "\u2028", "\u202e", "\x0c", "\xa0"],
    "gaps": ["", " ", "NA", "None", "null", "?", "N/A", "-", "#N/A"],
    "huge": ["x" * 200_000, "y", "1" * 140_000, "z z " * 9_000],
    "pages": [
        "<script>alert(1)</script>",
        "</td>",
        "{{ 7*7 }}",
        "%s",
        "${x}",
        "&amp;",
        "</script>",
    ],
    "words": WORDS,
}
LABELS = {
    "texts": ["ham", "ham", "ham", "spam", "spam"],
    "numbers": ["0", "1", "1", "2"],
    "floats": ["0.0", "1.0", "1"],
    "fractions": ["0.5", "0.25", "1"],
    "truths": ["True", "False"],
    "one class": ["ham"],
    "gaps": ["ham", "spam", "", "NA"],
    "formulas": ["=1+1", "-2+3", "@x"],
    "odd": ["a\nb", 'c"d', "e,f", "\x1b[31m", " "],
    "long": ["l" * 100_000, "m" * 100_000 + "n"],
    "long numbers": ["9" * 25, "9" * 24],
    "dates": ["2024-01-01", "2024-01-02"],
    "infinite": ["inf", "-inf", "1"],
    "unicode digits": ["\u0661", "\u0662"],
}
NAMES = ["x", "", " ", "Label", "prediction", "probability[ham]", "1", "a\nb", 'q"q', "="]
NAMES += [
    "n" * 5000,
    "\x00",
    "📦",
    "label ",
    "index",
    "Unnamed: 0",
    "__id__",
    "PAR1",
    "a,b",
    "\ufeff",
]


def any_of(values, rng):
    return values[rng.integers(len(values))]


def hostile_frame(rng):
    """Names of columns and rows of texts, the label among them more often than not."""
    n_rows = int(any_of([any_of([0, 1, 2, 3], rng), 30, 60, 60, 60, 60, 60, 60], rng))
    names, columns = ["x", "town"], []
    names += [any_of(NAMES, rng) for _ in range(any_of([0, 0, 1, 1, 2], rng))]
    names += [f"c{place}" for place in range(any_of([0, 0, 0, 0, 0, 0, 0, 300], rng))]
    for place, _ in enumerate(names):
        tame = ["numbers", "words"][place] if place < 2 and rng.random() < 0.8 else None
        kind = tame or any_of(list(CELLS), rng)
        columns.append([any_of(CELLS[kind], rng) for _ in range(n_rows)])
    if rng.random() < 0.95:
        kind = "texts" if rng.random() < 0.7 else any_of(list(LABELS), rng)
        names.append("label")
        columns.append([any_of(LABELS[kind], rng) for _ in range(n_rows)])
    if rng.random() < 0.2:
        # Names that nothing was done to may be the same.
        order = rng.permutation(len(names))
        names, columns = [names[at] for at in order], [columns[at] for at in order]
    return names, columns


def as_text(names, columns, rng):
    """A text that means to be a CSV file."""
    rows = [names, *map(list, zip(*columns, strict=True))]
    for _ in range(rng.integers(1, 4) if rng.random() < 0.1 else 0):
        place = rng.integers(len(rows))
        rows[place] = rows[place][:-1] if rng.random() < 0.5 else [*rows[place], "more"]
    buffer, mark = io.StringIO(), any_of([",", ",", ",", ";", "\t", "|", ":"], rng)
    end = any_of(["\n", "\n", "\r\n", "\r"], rng)
    if rng.random() < 0.07:
        # Without any quoting: marks in the cells are taken for what they look like.
        buffer.write(end.join(mark.join(row) for row in rows))
    else:
        quoting = any_of([csv.QUOTE_MINIMAL, csv.QUOTE_ALL], rng)
        csv.writer(buffer, delimiter=mark, lineterminator=end, quoting=quoting).writerows(rows)
    text = buffer.getvalue()
    if rng.random() < 0.1:
        text = text.replace(end, end * 3)
    if rng.random() < 0.05:
        text = f"{end}{end}{text}"
    return text.rstrip("\r\n") if rng.random() < 0.2 else text


def damaged(data, rng):
    """Bytes with some of them changed, left out, doubled or cut off."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        place, length = int(rng.integers(len(data) + 1)), int(rng.integers(1, 9))
        new = any_of([rng.bytes(length), b'"', b"\x00" * length, b"\xff\xfe", b"\r", b",,,,"], rng)
        if rng.random() < 0.3:
            del data[place : place + length]
        data[place:place] = new
    return bytes(data[: rng.integers(len(data) + 1)] if rng.random() < 0.2 else data)


def as_parquet(names, columns, rng):
    """A file of columns of any type that such files know."""
    n_rows = len(columns[0])
    odd = {
        "list": [[1, 2]] * n_rows,
        "struct": [{"a": 1}] * n_rows,
        "bytes": [b"\xff\x00"] * n_rows,
        "when": [datetime(2024, 1, 1, tzinfo=UTC)] * n_rows,
        "day": [date(9999, 1, 1)] * n_rows,
        "decimal": [Decimal("1.5")] * n_rows,
        "whole": pd.array([1, None] * n_rows, dtype="Int64")[:n_rows],
        "category": pd.Categorical(["a", "b"] * n_rows)[:n_rows],
        "nothing": [None] * n_rows,
        "nan": [np.inf] * n_rows,
    }
    frame = pd.DataFrame({f"{name}": column for name, column in zip(names, columns, strict=True)})
    frame["x"] = pd.to_numeric(frame.get("x"), errors="coerce") if "x" in frame else 0.0
    chosen = [name for name in odd if rng.random() < 0.15]
    for name in chosen:
        frame[name] = odd[name]
    buffer = io.BytesIO()
    frame.to_parquet(buffer, row_group_size=int(rng.integers(1, 50)))
    return buffer.getvalue()


def hostile_bytes(number):
    rng = np.random.default_rng([10, number])
    names, columns = hostile_frame(rng)
    if rng.random() < 0.15:
        data = as_parquet(names, columns, rng)
        return damaged(data, rng) if rng.random() < 0.5 else data
    text = as_text(names, columns, rng)
    encoding = any_of([*["utf-8"] * 12, "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252"], rng)
    data = text.encode(encoding, "replace")
    if rng.random() < 0.15:
        data = damaged(data, rng)
    if rng.random() < 0.15:
        data = gzip.compress(data, 1, mtime=0)
        data = any_of([data, data, data[: len(data) // 2], data + b"x", gzip.compress(data)], rng)
    elif rng.random() < 0.02:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("t.csv", data)
        data = packed.getvalue()
    return data


def judged(words):
    """The exit code of a command that ended in a result or in one sentence."""
    result = CliRunner().invoke(main, words)
    detail = f"{words}\n{result.stderr[-2000:]}"
    assert result.exception is None or isinstance(result.exception, SystemExit), detail
    assert result.exit_code in (0, 1, 2), detail
    assert "Traceback" not in result.stderr and "this is a bug" not in result.stderr, detail
    if result.exit_code:
        lines = [line for line in result.stderr.splitlines() if not line.startswith("Warning: ")]
        assert [line.startswith("Error: ") for line in lines] == [True], detail
        assert len("Error: ") < len(lines[0]) < 4000, detail
    return result.exit_code


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a model that knows the columns that most tables have."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    label = np.resize(["ham", "ham", "spam"], 60)
    x = rng.normal(size=60).round(3) + (label == "spam")
    pd.DataFrame({"x": x, "town": rng.choice(WORDS, 60), "label": label}).to_csv("t", index=False)
    assert judged(["fit", "t", "-t", "label", "-o", "known.equipoise", "-q"]) == 0
    return tmp_path


def answers(here, numbers, *, report_every):
    """How often each command ended with which code."""
    found = Counter()
    for number in numbers:
        (here / "bad").write_bytes(hostile_bytes(number))
        (here / "own.equipoise").unlink(missing_ok=True)
        commands = [["fit", "bad", "-t", "label", "-o", "own.equipoise", "--hold-out", "0.3"]]
        if number % 4 == 3:
            commands[0] += ["--text-labels"]
        if number % report_every == 0:
            commands.append(["report", "bad", "-t", "label", "-o", "p.html", "--model", "linear"])
        for words in commands:
            found[words[0], judged(words)] += 1
        own = (here / "own.equipoise").exists()
        for model in ["known.equipoise", *["own.equipoise"] * own]:
            found["predict", judged(["predict", model, "bad", "-o", "out.csv", "--proba"])] += 1
            found["evaluate", judged(["evaluate", model, "bad"])] += 1
        assert not list(here.glob(".equipoise-*")), number
    return found


def told(found, n_tables):
    print(f"\n{n_tables} hostile tables")  # noqa: T201  the study's counts
    for (command, code), times in sorted(found.items()):
        print(f"{command:>8}, exit code {code}: {times}")  # noqa: T201
    # Neither all nor none are too damaged to be read.
    for command in ("fit", "predict", "evaluate"):
        assert found[command, 0] and found[command, 1], command
    assert found["report", 0] + found["report", 1] > 0


def test_a_few_hostile_tables(here):
    told(answers(here, range(FEW_TABLES), report_every=4), FEW_TABLES)


@pytest.mark.slow
def test_many_hostile_tables(here):
    told(answers(here, range(STUDY_TABLES), report_every=1), STUDY_TABLES)
