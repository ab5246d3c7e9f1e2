"""How robust to be: levels of LabelCVaR that rules choose, on the data sets of the study.

python benchmarks/how_robust.py run [--data NAME ...] [--learners NAME ...] [--jobs 2]
python benchmarks/how_robust.py show

The sets, splits and learners of ``real_data.py``, of which this takes logistic regression, the
forest and LightGBM inside ``RobustClassifier``, and ``RobustLogisticRegression``; at most 3,000
training rows. ``run`` goes on where it stopped.

Decided before the first run, and not changed by its outcome:

* Fixed levels 1, 0.5, 0.2, 0.1, 0.05, 0.02 and 0.01, and ``alpha="auto"``.
* ``rule="price", price=1``: errors in all are to be at most one point above those of the level
  with the fewest on the rows left out, up to noise.
* ``rule="recall", recall=0.6``: where some level has it on rows left out, every class is to have
  a recall of 0.6 on the other half, up to noise.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

import real_data_tables as tables
from equipoise import LabelCVaR, RobustClassifier, RobustLogisticRegression, RobustnessCV
from real_data import main
from real_data_learners import LEARNERS, Remembered
from real_data_show import error, say

OUT = Path(__file__).parent / "results" / "how_robust.jsonl"
LEVELS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
LINEAR = "robust logistic"
NAMES = (LINEAR, "logistic", "forest", "lightgbm")
RECALL = 0.6


def methods(learner: str, seed: int) -> dict[str, Any]:
    """Classifiers by name; those that choose a level come last."""
    if learner == LINEAR:
        plain: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
        ours: Any = RobustLogisticRegression()
        name, own = "goal", {"random_state": seed}
    else:
        plain = Remembered(LEARNERS[learner](seed))
        ours = RobustClassifier(clone(plain), rare_classes="keep", random_state=seed)
        name, own = "goal", {}
    found = {str(level): clone(ours).set_params(**{name: LabelCVaR(level)}) for level in LEVELS} | {
        "auto": clone(ours).set_params(**{name: LabelCVaR("auto")}),
        "price": RobustnessCV(clone(ours), rule="price", price=1, **own),
        "recall": RobustnessCV(clone(ours), rule="recall", recall=RECALL, **own),
    }
    if learner == LINEAR:
        found = {key: make_pipeline(StandardScaler(), model) for key, model in found.items()}
    return {"none": plain, "balanced": clone(plain)} | found


def work(name: str, split: int, learner: str) -> dict[str, Any]:
    """Tables of true class by decision on the other half, and the path of each rule."""
    warnings.simplefilter("ignore")
    part, began = tables.halves(name, split, tables.MOST_ROWS), time.perf_counter()
    Remembered.known = {}
    found: dict[str, Any] = {}
    for key, model in methods(learner, split).items():
        weights = {}
        if key == "balanced":
            argument = "sample_weight" if learner != LINEAR else "logisticregression__sample_weight"
            weights = {argument: compute_sample_weight("balanced", part.y)}
        try:
            model.fit(part.X, part.y, **weights)
        except ValueError as reason:
            # Our linear models refuse a class that not every fold has.
            found[key] = {"refused": str(reason)}
            continue
        found[key] = {"table": tables.decided(part, model)}
        last = model[-1] if learner == LINEAR else model
        if hasattr(last, "path_"):
            found[key] |= {"level": last.alpha_, "chosen": int(last.best_index_)}
            found[key]["worst_class_risk"] = last.path_["worst_class_risk"].tolist()
    seconds = time.perf_counter() - began
    return {"data": name, "split": split, "learner": learner, "seconds": seconds, "found": found}


def worst_recall(found: dict[str, Any]) -> float:
    counts = np.asarray(found["table"], dtype=float)
    return float((np.diag(counts) / counts.sum(axis=1)).min())


def errors_in_all(found: dict[str, Any]) -> float:
    counts = np.asarray(found["table"], dtype=float)
    return float(1 - np.trace(counts) / counts.sum())


def by_set(rows: list[dict[str, Any]], value: Any) -> np.ndarray:
    """Means of a value over the splits of each data set; rows that have none are left out."""
    names = dict.fromkeys(row["data"] for row in rows)
    every = [[value(row["found"]) for row in rows if row["data"] == name] for name in names]
    return np.array([np.mean(of_set) for of_set in every])


def show_learner(learner: str, rows: list[dict[str, Any]]) -> None:
    keys = ("none", "balanced", *map(str, LEVELS), "auto")
    means = {key: by_set(rows, lambda found, key=key: worst_recall(found[key])) for key in keys}
    costs = {key: by_set(rows, lambda found, key=key: errors_in_all(found[key])) for key in keys}
    print(f"\n{learner}, {len(means['none'])} sets: worst-class recall, errors in all")
    for key in keys:
        print(f"  {key:9} {means[key].mean():.4f}  {costs[key].mean():.4f}")
    best = max(map(str, LEVELS), key=lambda key: means[key].mean())
    gap = means["auto"] - means[best]
    words = f"{gap.mean():+.4f}, standard error {error(gap):.4f}"
    say(gap.mean() >= -0.02, f"auto at most two points below {best}, the best level: {words}")
    other = max(("none", "balanced"), key=lambda key: means[key].mean())
    gap = means["auto"] - means[other]
    say(gap.mean() > 0, f"auto above {other}: {gap.mean():+.4f}, standard error {error(gap):.4f}")
    fewest = min(map(str, LEVELS), key=lambda key: costs[key].mean())
    paid = 100 * (by_set(rows, lambda found: errors_in_all(found["price"])) - costs[fewest])
    words = f"{paid.mean():.2f}, standard error {error(paid):.2f}, at most {paid.max():.1f}"
    say(paid.mean() <= 1 + 2 * error(paid), f"points paid for a price of 1: {words}")
    gained = by_set(rows, lambda found: worst_recall(found["price"])) - means[fewest]
    print(f"      for which the worst class's recall rises by {gained.mean():+.4f}")
    reach = [
        row
        for row in rows
        if row["found"]["recall"]["worst_class_risk"][row["found"]["recall"]["chosen"]]
        <= 1 - RECALL
    ]
    if reach:
        had = by_set(reach, lambda found: worst_recall(found["recall"]))
        words = (
            f"{had.mean():.3f}, standard error {error(had):.3f}, {np.sum(had >= RECALL)} have it"
        )
        enough = had.mean() >= RECALL - 2 * error(had)
        say(enough, f"a recall of {RECALL}, where it can be had, over {len(had)} sets: {words}")


def show(rows: list[dict[str, Any]]) -> None:
    for learner in NAMES:
        here = [row for row in rows if row["learner"] == learner]
        refused = {
            row["data"] for row in here if any("refused" in f for f in row["found"].values())
        }
        if refused:
            print(f"\n{learner}: refused, and left out: {', '.join(sorted(refused))}")
        here = [row for row in here if row["data"] not in refused]
        if here:
            show_learner(learner, here)


if __name__ == "__main__":
    main(__doc__, list(NAMES), OUT, work, show)
