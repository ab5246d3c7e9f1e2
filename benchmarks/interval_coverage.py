"""How often the 95% intervals of RobustClassifier hold the class risks of the rule that it returns.

python benchmarks/interval_coverage.py [--redraws 500] [--learners forest] [--goals "worst class"]

Gaussian classes around means that differ in three columns each; every redraw fits a classifier for
the worst class in five folds and compares its risks on 8,000 new rows of each class with its
intervals. Printed is the share of redraws in which the interval of each class holds, and the mean
width of the intervals, for every learner and table; rows are split off for no learner.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from equipoise import RecallFloors, RobustClassifier

LEARNERS = {
    "tree of depth 3": DecisionTreeClassifier(max_depth=3, random_state=0),
    "logistic": LogisticRegression(max_iter=300),
    "neighbours": KNeighborsClassifier(15),
    "forest": RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
    "boosting": HistGradientBoostingClassifier(
        max_iter=30, min_samples_leaf=10, early_stopping=False, random_state=0
    ),
}
GOALS = {"worst class": "worst_class", "a floor of 0.8": RecallFloors({0: 0.8})}
# Rows of each class, and columns.
SIZES = [((250, 200, 150), 10), ((200, 60), 30), ((2000, 40), 5)]


def rows(rng: np.random.Generator, counts: tuple[int, ...], width: int) -> tuple[Any, Any]:
    """Features and labels; the classes differ in three columns each."""
    y = np.repeat(np.arange(len(counts)), counts)
    means = np.zeros((len(counts), width))
    for label in range(1, len(counts)):
        means[label, 3 * label - 3 : 3 * label] = 0.8
    return means[y] + rng.normal(size=(len(y), width)), y


def held(learner: Any, counts: tuple[int, ...], width: int, goal: Any, seed: int) -> Any:
    """Whether the interval of each class holds, and how wide it is."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    X, y = rows(rng, counts, width)
    fitted = RobustClassifier(learner, goal, random_state=seed).fit(X, y)
    new, true = rows(rng, (8_000,) * len(counts), width)
    wrong, found = fitted.predict(new) != true, fitted.class_risk_intervals_
    risks = [wrong[true == label].mean() for label in range(len(counts))]
    widths = [found[label].upper - found[label].lower for label in range(len(counts))]
    return [[risk in found[label] for label, risk in enumerate(risks)], widths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--redraws", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--goals", nargs="+", choices=GOALS, default=list(GOALS))
    given, began = parser.parse_args(), time.perf_counter()
    goals = {word: GOALS[word] for word in given.goals}
    for name in given.learners:
        learner = LEARNERS[name]
        for counts, width in SIZES:
            for word, goal in goals.items():
                if time.perf_counter() - began > given.seconds:
                    return
                pieces = Parallel(given.jobs)(
                    delayed(held)(learner, counts, width, goal, seed)
                    for seed in range(given.redraws)
                )
                rates, widths = np.mean(np.array(pieces, dtype=float), axis=0)
                print(
                    f"{name:15} {word:14} {counts!s:16} held {rates.round(3)}, "
                    f"mean width {widths.round(3)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
