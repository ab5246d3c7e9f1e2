"""Robust plug-ins on Covertype's own split: tuned on its validation rows, judged on its test rows.

python benchmarks/forests.py [--seeds 10] [--models forest boosting] [--out FILE]

Trained on the first 11,340 rows (1,620 a class), tuned on the next 3,780 (540 a class), judged on
the last 565,892. Printed: standard and worst-class risk of the plain model and of the same model
with decision weights for the worst class.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from equipoise import TunedDecisionClassifier, WorstClass, class_risks
from equipoise.decisions import decide
from problems import covertype

OUT = Path(__file__).parent / "results" / "forests.json"
TRAIN, VALIDATION, TEST = slice(0, 11_340), slice(11_340, 15_120), slice(15_120, None)
BATCH = 50_000
MODELS = {
    "forest": lambda seed: RandomForestClassifier(300, random_state=seed, n_jobs=2),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}


def decided(model: Any, weights: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Plain and weighted decisions, in batches that keep the votes of all trees out of memory."""
    plain, ours = [], []
    for start in range(0, len(X), BATCH):
        p = model.predict_proba(X[start : start + BATCH])
        plain.append(model.classes_[p.argmax(axis=1)])
        ours.append(model.classes_[decide(p, weights)])
    return np.concatenate(plain), np.concatenate(ours)


def one_seed(name: str, seed: int, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    model = MODELS[name](seed).fit(X[TRAIN], y[TRAIN])
    began = time.perf_counter()
    tuned = TunedDecisionClassifier(FrozenEstimator(model), WorstClass(), random_state=seed).fit(
        X[VALIDATION], y[VALIDATION]
    )
    seconds = time.perf_counter() - began
    # One pass of the trees over the test rows serves both.
    plain, ours = decided(model, np.asarray(tuned.weights_), X[TEST])
    assert np.array_equal(ours[:BATCH], tuned.predict(X[TEST][:BATCH]))
    row: dict[str, Any] = {"seed": seed, "tuning_seconds": seconds}
    for label, decisions in (("plain", plain), ("ours", ours)):
        risks = class_risks(y[TEST], decisions)
        row[label] = {"standard": risks.standard(), "worst": risks.worst()}
    return row


def show(name: str, rows: list[dict[str, Any]]) -> None:
    for label in ("plain", "ours"):
        for kind in ("standard", "worst"):
            values = np.array([row[label][kind] for row in rows])
            print(
                f"{name:9} {label:6} {kind:9} risk: mean {values.mean():.4f}, spread "
                f"{values.std(ddof=1) if len(values) > 1 else 0:.4f}, from {values.min():.4f} to "
                f"{values.max():.4f} over {len(values)} seeds",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    X, y = covertype()
    X = X.astype(np.float32)
    results = {}
    for name in arguments.models:
        results[name] = [one_seed(name, seed, X, y) for seed in range(arguments.seeds)]
        show(name, results[name])
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=2))
    print(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
