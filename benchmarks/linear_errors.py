"""Linear models and the error of the worst class, judged on the other half of six data sets.

python benchmarks/linear_errors.py [--splits 5] [--methods NAME ...]

Halves are those of ``real_data.py``; features are standardised on the training half. For each
method: the largest class error on the other half, a mean over the splits for each set and over the
sets, and how it differs from balanced class weights, with the standard error over the splits.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import real_data_tables as tables
from equipoise import (
    PlugInClassifier,
    RiskScorer,
    RobustClassifier,
    RobustLinearClassifier,
    RobustLogisticRegression,
    WorstClass,
)

SETS = ("ann_thyroid", "mammography", "page_blocks", "satimage", "wine_quality", "yeast")
REFERENCE = "balanced weights"


def scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def cross_entropy() -> Any:
    return scaled(RobustLogisticRegression(WorstClass()))


def margin() -> Any:
    return scaled(RobustLinearClassifier(WorstClass(), "margin"))


def searched() -> Any:
    grid = {"robustlinearclassifier__C": [0.01, 0.1, 1.0, 10.0, 100.0]}
    return GridSearchCV(margin(), grid, scoring=RiskScorer(WorstClass()))


METHODS: dict[str, Callable[[int], Any]] = {
    REFERENCE: lambda _: scaled(LogisticRegression(class_weight="balanced", max_iter=2000)),
    "robust cross-entropy": lambda _: cross_entropy(),
    "robust margin": lambda _: margin(),
    "robust margin, C on folds": lambda _: searched(),
    "robust margin, tuned": lambda seed: RobustClassifier(
        margin(), WorstClass(), random_state=seed
    ),
    "robust cross-entropy, tuned": lambda seed: PlugInClassifier(
        cross_entropy(), WorstClass(), random_state=seed
    ),
}


def worst_error(name: str, split: int, make: Callable[[int], Any]) -> float:
    part = tables.halves(name, split, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decided = make(split).fit(part.X, part.y).predict(part.X_test)
    return 1 - float(recall_score(part.y_test, decided, average=None, zero_division=0).min())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    given = parser.parse_args()
    print(" " * 30 + "".join(f"{name[:11]:>13}" for name in SETS) + "   mean")
    reference, splits = None, range(given.splits)
    for method in dict.fromkeys([REFERENCE, *given.methods]):
        began = time.perf_counter()
        found = np.array([[worst_error(name, s, METHODS[method]) for s in splits] for name in SETS])
        seconds = time.perf_counter() - began
        cells = "".join(f"{mean:13.3f}" for mean in found.mean(axis=1))
        print(f"{method:30}{cells}  {found.mean():.4f}  {seconds:.0f} s", flush=True)
        reference = found if reference is None else reference
        more, root = found - reference, np.sqrt(given.splits)
        errors = more.std(axis=1, ddof=1) / root
        pairs = zip(more.mean(axis=1), errors, strict=True)
        if method != REFERENCE:
            print(" " * 30 + "".join(f"{mean:+7.3f}~{error:.3f}" for mean, error in pairs))


if __name__ == "__main__":
    main()
