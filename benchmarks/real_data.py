"""Robust decision weights on real data, against the usual remedies.

python benchmarks/real_data.py [--repeats 10] [--data NAME ...] [--out FILE]

Every data set is split in half, stratified, again and again; identical rows stay on one side.
For a random forest and for histogram gradient boosting: the plain model, the same with balanced
class weights, imbalanced-learn's balanced forest, scikit-learn's tuned threshold (two classes), and
our plug-in for the worst class. Printed are the recall of the worst class and the balanced accuracy
on the other half, and the paired differences of ours to each other method with 95% intervals over
the splits (Student; splits of one data set overlap, so that they are a little too narrow).
"""

import argparse
import gzip
import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from imblearn.ensemble import BalancedRandomForestClassifier
from scipy.stats import t as student
from sklearn.base import ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import recall_score
from sklearn.model_selection import StratifiedGroupKFold, TunedThresholdClassifierCV

from equipoise import PlugInClassifier, WorstClass

DATA = ("ann_thyroid", "page_blocks", "wine_quality", "mammography", "kr_vs_k", "satimage")
OUT = Path(__file__).parent / "results" / "real_data.json"
# A class of fewer rows is left out: its recall could not be judged on half of them.
FEWEST = 10

Maker = Callable[[int], ClassifierMixin]


def forest(seed: int, **options: Any) -> RandomForestClassifier:
    return RandomForestClassifier(200, random_state=seed, n_jobs=2, **options)


def boosting(seed: int, **options: Any) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=seed, **options)


def robust(estimator: ClassifierMixin, seed: int) -> PlugInClassifier:
    return PlugInClassifier(estimator, WorstClass(), random_state=seed)


def threshold(estimator: ClassifierMixin, seed: int) -> TunedThresholdClassifierCV:
    return TunedThresholdClassifierCV(estimator, random_state=seed)


METHODS: dict[str, Maker] = {
    "forest, plain": forest,
    "forest, balanced weights": lambda seed: forest(seed, class_weight="balanced"),
    "forest, balanced subsamples": lambda seed: BalancedRandomForestClassifier(
        200, random_state=seed, n_jobs=2
    ),
    "forest, tuned threshold": lambda seed: threshold(forest(seed), seed),
    "forest, ours": lambda seed: robust(forest(seed), seed),
    "boosting, plain": boosting,
    "boosting, balanced weights": lambda seed: boosting(seed, class_weight="balanced"),
    "boosting, tuned threshold": lambda seed: threshold(boosting(seed), seed),
    "boosting, ours": lambda seed: robust(boosting(seed), seed),
}


def load(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels, and a group for identical rows."""
    folder = os.environ.get("EQUIPOISE_DATA")
    if not folder:
        raise SystemExit("Set EQUIPOISE_DATA to the folder of the data sets.")
    with gzip.open(Path(folder) / f"{name}.csv.gz", "rt") as file:
        frame = pd.read_csv(file)
    y = frame.pop("target").to_numpy()
    X = pd.get_dummies(frame).to_numpy(dtype=np.float64)
    names, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, names[counts >= FEWEST])
    _, groups = np.unique(X[kept], axis=0, return_inverse=True)
    return X[kept], y[kept], groups.ravel()


def one_split(name: str, seed: int) -> dict[str, tuple[float, float]]:
    X, y, groups = load(name)
    halves = StratifiedGroupKFold(2, shuffle=True, random_state=seed)
    train, test = next(halves.split(X, y, groups))
    found = {}
    for method, make in METHODS.items():
        if "threshold" in method and len(np.unique(y)) > 2:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decided = make(seed).fit(X[train], y[train]).predict(X[test])
        recalls = recall_score(y[test], decided, average=None, zero_division=0)
        found[method] = float(recalls.min()), float(recalls.mean())
    return found


def interval(differences: np.ndarray) -> tuple[float, float]:
    """Mean and half width of a 95% interval."""
    n = len(differences)
    if n < 2:
        return float(differences.mean()), float("nan")
    half = student.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    return float(differences.mean()), float(half)


def show(name: str, splits: list[dict[str, tuple[float, float]]]) -> dict[str, Any]:
    print(f"\n{name}: worst-class recall and balanced accuracy, mean of {len(splits)} splits")
    rows: dict[str, Any] = {}
    for method in splits[0]:
        values = np.array([split[method] for split in splits])
        ours = "forest, ours" if method.startswith("forest") else "boosting, ours"
        gains = np.array([split[ours] for split in splits]) - values
        (worst, worst_half), (mean, mean_half) = interval(gains[:, 0]), interval(gains[:, 1])
        rows[method] = {
            "worst_recall": float(values[:, 0].mean()),
            "balanced_accuracy": float(values[:, 1].mean()),
            "gain_worst": [worst, worst_half],
            "gain_balanced": [mean, mean_half],
        }
        line = f"  {method:28} {values[:, 0].mean():.3f}  {values[:, 1].mean():.3f}"
        if method != ours:
            line += f"   ours: {worst:+.3f} +- {worst_half:.3f}, {mean:+.3f} +- {mean_half:.3f}"
        print(line, flush=True)
    return rows


def overall(results: dict[str, dict[str, Any]]) -> None:
    print("\nMean over the data sets where a method applies, and how ours differs there")
    for method in METHODS:
        rows = [found[method] for found in results.values() if method in found]
        if rows:
            worst = np.mean([row["worst_recall"] for row in rows])
            mean = np.mean([row["balanced_accuracy"] for row in rows])
            gain = np.mean([row["gain_worst"][0] for row in rows])
            price = np.mean([row["gain_balanced"][0] for row in rows])
            print(f"  {method:28} {worst:.3f}  {mean:.3f}   ours: {gain:+.3f}, {price:+.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    results = {}
    for name in arguments.data:
        splits = [one_split(name, seed) for seed in range(arguments.repeats)]
        results[name] = show(name, splits)
    overall(results)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=2))
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
