"""How much more the risks of small classes should count: ``adjustment`` on tables not studied.

python benchmarks/adjustment.py run [--jobs 2]
python benchmarks/adjustment.py show

The rule was decided here, so that ``how_robust.py`` need not decide it: 65 tables outside of the
study, split in half five times, ``RobustLogisticRegression`` on scaled columns. For each
adjustment the recall of the worst class on the other half where the level is chosen
(``LabelCVaR("auto")``) and for the worst class itself, by the rows of the smallest class in the
training half; and errors in all.
"""

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import real_data_tables as tables
from equipoise import LabelCVaR, RobustLogisticRegression, WorstClass
from how_robust import errors_in_all, worst_recall
from real_data import main
from real_data_show import error

OUT = Path(__file__).parent / "results" / "adjustment.jsonl"
ADJUSTMENTS = (0.0, 0.25, 0.5, 1.0)
SETS = {"level chosen": LabelCVaR("auto"), "worst class": WorstClass()}
ROWS = ((0, 20), (20, 50), (50, 10**9), (0, 10**9))
BALANCED = "balanced weights"
LEARNER = "robust logistic"


def work(name: str, split: int, learner: str) -> dict[str, Any]:
    """Tables of true class by decision on the other half."""
    warnings.simplefilter("ignore")
    part, began = tables.halves(name, split, tables.MOST_ROWS), time.perf_counter()
    models: dict[str, Any] = {BALANCED: LogisticRegression(class_weight="balanced", max_iter=1_000)}
    for key, goal in SETS.items():
        for adjustment in ADJUSTMENTS:
            models[f"{key}, {adjustment}"] = RobustLogisticRegression(goal, adjustment=adjustment)
    found: dict[str, Any] = {}
    for key, model in models.items():
        try:
            fitted = make_pipeline(StandardScaler(), model).fit(part.X, part.y)
        except ValueError as reason:
            # A level cannot be chosen where a class is in fewer rows than folds.
            found[key] = {"refused": str(reason)}
            continue
        found[key] = {"table": tables.decided(part, fitted)}
    own = {"data": name, "split": split, "learner": learner, "found": found}
    fewest = int(np.unique(part.y, return_counts=True)[1].min())
    return own | {"seconds": time.perf_counter() - began, "fewest": fewest}


def show(rows: list[dict[str, Any]]) -> None:
    rows = [row for row in rows if not any("refused" in one for one in row["found"].values())]
    for low, high in ROWS:
        here = [row for row in rows if low <= row["fewest"] < high]
        names = sorted({row["data"] for row in here})
        if not names:
            continue
        kinds = f"{low} to {high - 1} rows" if high < ROWS[-1][1] else f"{low} rows or more"
        print(f"\n{kinds} of the smallest class in training, {len(names)} tables")
        print(f"  {'':20} worst-class recall, against balanced, standard error; errors in all")
        own = {key: of_tables(here, names, key) for key in here[0]["found"]}
        for key, (recalls, errors) in own.items():
            gap = recalls - own[BALANCED][0]
            words = f"{recalls.mean():.4f}  {gap.mean():+.4f}  {error(gap):.4f}"
            print(f"  {key:20} {words}  {errors.mean():.4f}")


def of_tables(rows: list[dict[str, Any]], names: list[str], key: str) -> np.ndarray:
    """Recalls of the worst class, and errors in all, of every table."""
    found = {name: [row["found"][key] for row in rows if row["data"] == name] for name in names}
    values = [
        [np.mean([value(one) for one in found[name]]) for name in names]
        for value in (worst_recall, errors_in_all)
    ]
    return np.array(values)


if __name__ == "__main__":
    main(__doc__, [LEARNER], OUT, work, show, data=tables.NOT_STUDIED)
