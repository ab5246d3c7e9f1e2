"""The main claims in a few minutes, as one table: ``make bench-quick``.

Generated and bundled data alone, so that it runs anywhere. Each line says what was measured here
and what was promised before: a ceiling, or that one number is above another. The whole is in
``benchmarks/run.py``, ``benchmarks/real_data.py`` and ``benchmarks/report_times.py``.
"""

import os
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import baselines
import ladder
from equipoise import RobustClassifier, class_risks
from equipoise.datasets import load_thyroid
from equipoise.report import compare
from equipoise.text import text_table

Line = tuple[str, str, str, bool]

PROBLEM = "seven-unequal"
PAGE_SECONDS = 90
SPLITS = 3
LEARNERS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)),
    "random forest": RandomForestClassifier(50, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
}


def ratio() -> Iterator[Line]:
    """Robust fits beside the fastest plain fit of scikit-learn."""
    found = ladder.compare(PROBLEM, ["newton-cg", "lbfgs"])
    plain = f"{found['plain']['seconds']:.2f} s ({found['plain']['solver']})"
    for name in ("worst_class", "lcvar-0.1"):
        mine, ceiling = found[name], found["ceiling"]
        said = f"{mine['seconds']:.2f} s to {plain}: ratio {mine['ratio']:.2f}"
        claim = f"50,000 x 54 x 7, robust fit ({name}) to scikit-learn's plain one"
        yield claim, said, f"at most {ceiling}", mine["ratio"] <= ceiling


def certificate() -> Iterator[Line]:
    """The certified interval holds what CVXPY finds."""
    found = baselines.against_cvxpy()
    low, high, theirs = found["lower_bound"], found["objective"], found["optimum"]
    # CVXPY stops at a tolerance of its own.
    inside = low - 1e-6 * theirs <= theirs <= high + 1e-6 * theirs
    said = f"{theirs:.7f} in [{low:.7f}, {high:.7f}]"
    yield "2,000 x 20 x 5, CVXPY's optimum lies between bound and objective", said, "inside", inside
    said = f"{found['theirs']:.1f} s to {found['ours'] * 1000:.0f} ms: {found['speedup']:.0f} times"
    yield "the same, time of CVXPY to ours", said, "at least 20 times", found["speedup"] >= 20


def worst_recalls(learner: Any, train: Any, test: Any) -> tuple[float, float]:
    """Recall of the worst class on new rows: balanced weights, and RobustClassifier."""
    balanced = clone(learner)
    last = balanced[-1] if hasattr(balanced, "steps") else balanced
    last.set_params(class_weight="balanced")
    robust = RobustClassifier(clone(learner), "worst_class", cv=3)
    labels = [model.fit(*train).predict(test[0]) for model in (balanced, robust)]
    theirs, mine = (1 - class_risks(test[1], each).worst() for each in labels)
    return theirs, mine


def worst_class() -> Iterator[Line]:
    """Held-out halves of bundled and of generated data."""
    gains = []
    for data, (X, y) in {
        "thyroid": load_thyroid(return_X_y=True),
        "4,000 x 20 x 4": make_classification(
            4_000, n_informative=8, n_classes=4, weights=[0.7, 0.2, 0.07], random_state=0
        ),
    }.items():
        halves = list(StratifiedShuffleSplit(SPLITS, test_size=0.5, random_state=0).split(X, y))
        rarest = np.unique(y, return_counts=True)[1].min() / 2
        for name, learner in LEARNERS.items():
            pairs = [worst_recalls(learner, (X[a], y[a]), (X[b], y[b])) for a, b in halves]
            theirs, mine = np.mean(pairs, axis=0)
            gains.append(mine - theirs)
            # Two standard errors of a difference of recalls of the rarest class, on one half.
            noise = 2 * np.sqrt((theirs * (1 - theirs) + mine * (1 - mine)) / rarest)
            claim = f"{data}, recall of the worst class, {name}"
            said = f"{mine:.3f}, balanced weights {theirs:.3f}"
            yield claim, said, f"no worse (noise {noise:.3f})", bool(mine >= theirs - noise)
    gain = float(np.mean(gains))
    yield "the same, mean of the six differences", f"{gain:+.3f}", "above 0", gain > 0


def page() -> Iterator[Line]:
    """The page of the bundled data."""
    thyroid = load_thyroid(as_frame=True)
    began = time.perf_counter()
    compare(thyroid.data, thyroid.target).to_html()
    seconds = time.perf_counter() - began
    claim = "7,200 x 21 x 3, the whole page"
    yield claim, f"{seconds:.0f} s", f"at most {PAGE_SECONDS} s", seconds <= PAGE_SECONDS


def main() -> None:
    warnings.simplefilter("ignore")
    began, lines = time.perf_counter(), []
    for part in (ratio, certificate, worst_class, page):
        for line in part():
            lines.append(line)
            print(f"{time.perf_counter() - began:4.0f} s  {line[0]}", file=sys.stderr, flush=True)
    rows = [
        [claim, here, promised, "yes" if good else "NO"] for claim, here, promised, good in lines
    ]
    print(*text_table(["claim", "here", "promised", "holds"], rows), sep="\n")
    print(f"{os.cpu_count()} cores, {time.perf_counter() - began:.0f} s.")
    sys.exit(0 if all(line[-1] for line in lines) else 1)


if __name__ == "__main__":
    main()
