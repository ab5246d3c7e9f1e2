"""Which training to take for macro F1 where a class has a handful of rows, on tables not studied.

python benchmarks/few_rows.py run [--learners NAME ...] [--jobs 2]
python benchmarks/few_rows.py show

The rule was decided here, so that ``real_data.py`` need not decide it: the two-class tables outside
of the study whose smaller class has 20 rows or more in each half, of which 6, 8, 12 or 20 are kept
to learn from; in the other half each counts for so much less. Macro F1 there of balanced weights,
and of ``RobustClassifier`` with its rule and two others: the plainest training as good as the best
up to a standard error, as with more rows, and always the one between plain and balanced.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.class_weight import compute_sample_weight

import real_data_tables as tables
from equipoise import RobustClassifier
from equipoise.estimators import robust_classifier
from real_data import main
from real_data_learners import LEARNERS, Remembered
from real_data_show import error, measures

OUT = Path(__file__).parent / "results" / "few_rows.jsonl"
KEPT = (6, 8, 12, 20)
# Rows below which training is guessed, and how much better another must be.
OURS, RULES = "ours", {"plainest": (0, 0.0), "between": (10**9, 1.0)}
BALANCED = "balanced"


def work(name: str, split: int, learner: str) -> dict[str, Any]:
    """Tables of true class by decision on the other half, by rows kept and rule."""
    warnings.simplefilter("ignore")
    whole, began = tables.halves(name, split, tables.MOST_ROWS), time.perf_counter()
    own = robust_classifier._HANDFUL, robust_classifier._CLEARLY
    base, found = Remembered(LEARNERS[learner](split)), {}
    for kept in KEPT if is_of_two(whole) else ():
        part, Remembered.known = tables.with_few(whole, kept, split), {}
        model = clone(base).fit(
            part.X, part.y, sample_weight=compute_sample_weight("balanced", part.y)
        )
        found[f"{kept}, {BALANCED}"] = {"table": rarer(part, model, whole)}
        for rule, values in {OURS: own, **RULES}.items():
            robust_classifier._HANDFUL, robust_classifier._CLEARLY = values
            ours = RobustClassifier(clone(base), "macro_f1", rare="keep", random_state=split)
            ours.fit(part.X, part.y)
            found[f"{kept}, {rule}"] = {"table": rarer(part, ours, whole)}
    robust_classifier._HANDFUL, robust_classifier._CLEARLY = own
    seconds = time.perf_counter() - began
    return {"data": name, "split": split, "learner": learner, "seconds": seconds, "found": found}


def rarer(part: tables.Halves, model: Any, whole: tables.Halves) -> list[list[float]]:
    """The table of decisions, if classes were as rare among the rows judged as in training."""
    counts = [np.unique(y, return_counts=True)[1] for y in (part.y, whole.y)]
    return (np.array(tables.decided(part, model)) * (counts[0] / counts[1])[:, None]).tolist()


def is_of_two(part: tables.Halves) -> bool:
    """Whether there are two classes with rows to spare on both sides."""
    counts = [np.unique(y, return_counts=True)[1] for y in (part.y, part.y_test)]
    return len(counts[0]) == 2 and min(map(min, counts)) >= max(KEPT)


def show(rows: list[dict[str, Any]]) -> None:
    rows = [row for row in rows if row["found"]]
    print("macro F1 on the other half; gain over the plainest training, standard error")
    for learner in dict.fromkeys(row["learner"] for row in rows):
        here = [row for row in rows if row["learner"] == learner]
        names = list(dict.fromkeys(row["data"] for row in here))
        print(f"\n{learner}, {len(names)} tables")
        for kept in KEPT:
            own = {rule: macro_f1(here, names, f"{kept}, {rule}")
                   for rule in (BALANCED, *RULES, OURS)}  # fmt: skip
            words = []
            for rule, values in own.items():
                gain = values - own["plainest"]
                words.append(f"{rule} {values.mean():.4f} ({gain.mean():+.4f}, {error(gain):.4f})")
            print(f"  {kept:2} rows: " + ", ".join(words))


def macro_f1(rows: list[dict[str, Any]], names: list[str], key: str) -> np.ndarray:
    """Means over the splits of every table."""
    return np.array([
        np.mean([measures(row["found"][key]["table"])[2] for row in rows if row["data"] == name])
        for name in names
    ])  # fmt: skip


if __name__ == "__main__":
    main(__doc__, list(LEARNERS), OUT, work, show, data=tables.NOT_STUDIED)
