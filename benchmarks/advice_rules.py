"""Which candidate should a report advise for a goal? Rules compared on tables that pages never saw.

python benchmarks/advice_rules.py run [--tables decide confirm]
python benchmarks/advice_rules.py show

``run`` makes the candidates of a report (three models, plain and tuned for three goals) on half of
each table and evaluates them on the other half: a line of ``results/advice_rules.jsonl`` a table.
``show`` applies each rule to the held-out values that a report has, and prints how far the chosen
candidate's value on the other half is from that of the rule 'all, the simplest', and from that of
the best candidate.

Decided before any run, and not changed by its outcome:

* Rules are compared on the 65 tables ``NOT_STUDIED`` ('decide'), and the one that is chosen there
  is compared again on the 26 tables ``ALL`` ('confirm'), most of which ``advice.py`` uses; third
  of the half/half splits with duplicates on one side; at most 1,500 training rows.
* Rules: the simplest within one standard error of the best, or the best, of all candidates or of
  those tuned for the goal. Of all candidates plain ones are simpler than tuned ones, and tuned ones
  come by their overall error; of those tuned for the goal the order is linear, forest, boosting.
* Added after a look at 'decide', before 'confirm': all candidates, in an order that begins with
  those tuned for the goal and needs no second rule where a price allows none of them.
* A rule replaces 'all, the simplest' if it is better by two standard errors over the tables, pooled
  over the goals, or if it needs less code and is no worse.
"""

import argparse
import json
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from advice_show import ADVISED, CLOSE, judge, packed, unpacked
from equipoise.decisions import decide, select
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.trained import class_probabilities
from equipoise.goals import as_goal
from equipoise.report.candidates import candidates_for, named_learners
from equipoise.report.design import design_for
from equipoise.report.evaluations import Evaluator
from equipoise.tables import labelled_table
from real_data_tables import ALL, NOT_STUDIED, halves

OUT = Path(__file__).parent / "results" / "advice_rules.jsonl"
TABLES = {"decide": NOT_STUDIED, "confirm": ALL}
GOALS = ("worst_class", "balanced_accuracy", "f1_macro")
SPLIT, MOST_ROWS = 2, 1_500
ALL_CANDIDATES, TUNED, TUNED_FIRST = "all", "tuned for the goal", "tuned for the goal first"


def work(name: str) -> dict[str, Any]:
    """What a report knows of its candidates, and what they predict for the other half."""
    part = halves(name, SPLIT, MOST_ROWS)
    table = labelled_table(part.X, part.y)
    learners, _ = named_learners(None, table.columns, 0)
    design = design_for(table, part.X, 5, 0, most_rows=len(part.y))
    evaluator = Evaluator(design, learners, 0, None)
    found = evaluator.all(candidates_for(learners, {"f1_macro": as_goal("f1_macro")}))
    probabilities = {
        kind: class_probabilities(clone(each).fit(part.X, part.y), part.X_test, table.classes)
        for kind, each in learners.items()
    }
    row: dict[str, Any] = {
        "models": [each.candidate.model for each in found],
        "tuned_for": [each.candidate.tuned_for for each in found],
        "overall": [each.overall().estimate for each in found],
        "truth": packed(np.searchsorted(table.classes, part.y_test)),
        "n_classes": len(table.classes),
        "decided": [
            packed(decide(rescaled(probabilities[each.candidate.model], each.factors), each.rule))
            for each in found
        ],
    }
    for goal in GOALS:
        pairs = [each.value(as_goal(goal), table.classes) for each in found]
        row[goal] = {
            "values": [value for value, _ in pairs],
            "without": [without.tolist() for _, without in pairs],
        }
    return row


def chosen(row: dict[str, Any], goal: str, *, among: str, simplest: bool) -> int:
    """The position of the candidate that a rule takes."""
    tuned_for = np.array(row["tuned_for"])
    if among == ALL_CANDIDATES:
        plain = tuned_for == "plain"
        order = np.lexsort((np.where(plain, 0.0, row["overall"]), ~plain))
    else:
        order = np.argsort(tuned_for != goal, kind="stable")
        order = order[: np.count_nonzero(tuned_for == goal)] if among == TUNED else order
    values = np.array(row[goal]["values"])[order]
    if not simplest:
        return int(order[np.argmin(values)])
    return int(order[select(values, np.array(row[goal]["without"])[order]).index])


RULES = {
    f"{among}, {which}": partial(chosen, among=among, simplest=simplest)
    for among in (ALL_CANDIDATES, TUNED)
    for which, simplest in (("the simplest", True), ("the best", False))
} | {f"{TUNED_FIRST}, the simplest": partial(chosen, among=TUNED_FIRST, simplest=True)}

# The rule that reports have now.
CHOSEN = f"{TUNED}, the best"


def show(rows: list[dict[str, Any]]) -> None:
    """Values against those of the first rule, in points, and tables close to the best candidate."""
    reference = next(iter(RULES))
    gains: dict[str, list[list[float]]] = {name: [] for name in RULES}
    close: dict[str, list[list[bool]]] = {name: [] for name in RULES}
    for row in rows:
        truth, decided = unpacked(row["truth"]), list(map(unpacked, row["decided"]))
        if np.sum(np.bincount(truth) >= 10) < 2:
            continue
        values: dict[str, list[float]] = {name: [] for name in RULES}
        near: dict[str, list[bool]] = {name: [] for name in RULES}
        for goal in GOALS:
            every = {str(at): each for at, each in enumerate(decided)}
            judged = judge(goal, truth, every | {ADVISED: decided[0]}, row["n_classes"])
            best = int(np.argmax(judged.values[:-1]))
            for name, rule in RULES.items():
                at = rule(row, goal)
                gap = judged.values[at] - judged.values[best]
                error = (judged.draws[:, at] - judged.draws[:, best]).std(ddof=1)
                values[name].append(100 * float(judged.values[at]))
                near[name].append(bool(gap >= -max(CLOSE[0] * error, CLOSE[1])))
        for name in RULES:
            gains[name].append(list(np.subtract(values[name], values[reference])))
            close[name].append(near[name])
    print(f"{len(gains[reference])} tables; points against '{reference}', with standard errors")
    for name in RULES:
        by_table = np.array(gains[name])
        pooled, n = by_table.mean(axis=1), len(by_table)
        cells = [
            f"{goal} {column.mean():+.2f} ({column.std(ddof=1) / np.sqrt(n):.2f})"
            for goal, column in zip((*GOALS, "pooled"), (*by_table.T, pooled), strict=True)
        ]
        shares = ", ".join(f"{share:.2f}" for share in np.mean(close[name], axis=0))
        print(f"  {name:40} {'; '.join(cells)}; close to the best {shares}")
    pooled = {name: np.array(gains[name]).mean(axis=1) for name in RULES}
    for name in RULES:
        further = pooled[name] - pooled[CHOSEN]
        error = further.std(ddof=1) / np.sqrt(len(further))
        if name != CHOSEN:
            print(f"  {name}, against '{CHOSEN}': {further.mean():+.2f} ({error:.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    given = parser.parse_args()
    lines = OUT.read_text().splitlines() if OUT.exists() else []
    rows = {row["table"]: row for row in map(json.loads, lines)}
    for part in given.tables:
        if given.what == "show":
            print(f"\n{part}:", end=" ")
            if known := [rows[name] for name in TABLES[part] if name in rows]:
                show(known)
            continue
        OUT.parent.mkdir(parents=True, exist_ok=True)
        for name in [name for name in TABLES[part] if name not in rows]:
            began = time.process_time()
            with warnings.catch_warnings(), OUT.open("a") as file:
                warnings.simplefilter("ignore")
                file.write(json.dumps({"table": name, **work(name)}) + "\n")
            print(f"{part}, {name}: {time.process_time() - began:.0f} s of a core", flush=True)


if __name__ == "__main__":
    main()
