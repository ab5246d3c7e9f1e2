"""Many classes of a power law: CPU seconds to a certified gap, beside scikit-learn's plain fits.

python benchmarks/many_classes.py [--case 300 ...] [--goal standard ...] [--plain lbfgs ...]
    [--tol 1e-3] [--out FILE]

Cases: ``300``, ``1000``, ``3000`` classes of a power law (32 columns, 15,800 rows, centres as far
apart as in the other benchmarks), ``10000`` of them (64 columns, 50,000 rows), ``sections`` and
``maintainers`` of Debian's package index with TF-IDF, which are skipped where no index is. Ours
ends at a certified relative gap; scikit-learn's lbfgs and newton-cg are fitted with smaller and
smaller tolerances until their own objective is within the same relative distance of the best lower
bound of it, and the last fit counts. One thread, one process, in turns. A ratio of at most 1 says
that ours takes no longer than the faster of the two. The last line of 3,000 classes is the growth
from 300: the exponent of k.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from equipoise import FixedWeights, LabelCVaR, RobustLogisticRegression, WorstClass
from equipoise.datasets import load_debian_packages
from measure import memory_mib, plain_objective, reset_peak

# LEAST_ROWS: of each class of a power law.
LEAST_ROWS = 3
TOLERANCES = {"lbfgs": 10.0 ** -np.arange(2, 8), "newton-cg": 10.0 ** -np.arange(1, 6)}
GOALS = {
    "standard": FixedWeights("standard"),
    "worst class": WorstClass(),
    "LabelCVaR(0.2)": LabelCVaR(alpha=0.2),
}
Data = tuple[Any, np.ndarray]


def power_law(k: int, n: int = 15_800, d: int = 32) -> Data:
    """Gaussian classes, the i-th with a share in proportion to 1 / i."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, k + 1)
    drawn = rng.choice(k, n - LEAST_ROWS * k, p=share / share.sum())
    y = np.concatenate([np.repeat(np.arange(k), LEAST_ROWS), drawn])
    centres = rng.standard_normal((k, d)) * (2.5 / np.sqrt(np.log(k) + 1)) / np.sqrt(d / 20)
    X = centres[y] + rng.standard_normal((n, d))
    return StandardScaler(copy=False).fit_transform(X), y


def packages(label: Any) -> Data:
    text, y = load_debian_packages(label=label, return_X_y=True)
    return TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(text), y


CASES: dict[str, Callable[[], Data]] = {
    "300": lambda: power_law(300),
    "1000": lambda: power_law(1_000),
    "3000": lambda: power_law(3_000),
    "10000": lambda: power_law(10_000, 50_000, 64),
    "sections": lambda: packages("section"),
    "maintainers": lambda: packages("maintainer"),
}


def timed(fit: Callable[[], Any]) -> tuple[Any, float, float]:
    """A result, its CPU seconds and the memory that it added, in MiB."""
    reset_peak()
    before, began = memory_mib("VmRSS"), time.process_time()
    result = fit()
    return result, time.process_time() - began, memory_mib("VmHWM") - before


def plain(data: Data, solver: str, bound: float, tol: float) -> tuple[float, float, float]:
    """Relative distance to the bound, seconds and memory of the first fit that is near enough."""
    for sk_tol in TOLERANCES[solver]:
        model = LogisticRegression(solver=solver, tol=float(sk_tol), max_iter=10_000)
        fit, seconds, memory = timed(lambda model=model: model.fit(*data))
        distance = plain_objective(fit, *data) / bound - 1
        if distance <= tol:
            break
    return distance, seconds, memory


def growth(fewer: list[float], more: list[float]) -> str:
    """Seconds and memory of ten times as many classes, as powers of their number."""
    return ", ".join(f"k^{np.log10(b / a):.2f}" for a, b in zip(fewer, more, strict=True))


def lines(
    name: str, goals: list[str], solvers: list[str], tol: float, measured: dict[Any, Any]
) -> Iterator[str]:
    """A table row for each fit of a case, which is also noted among those measured."""
    try:
        data = CASES[name]()
    except FileNotFoundError as error:
        yield f"| {name} | skipped: {error} |"
        return
    X, y = data
    k = len(np.unique(y))
    yield f"| {name}: {k:,} classes, {X.shape[0]:,} x {X.shape[1]:,} | gap | CPU s | MiB | ratio |"
    standard = RobustLogisticRegression(GOALS["standard"], tol=tol / 10).fit(X, y)
    best = np.inf
    for solver in solvers:
        distance, seconds, memory = plain(data, solver, standard.lower_bound_, tol)
        best = min(best, seconds if distance <= tol else np.inf)
        yield f"| scikit-learn {solver} | {distance:.1e} | {seconds:.2f} | {memory:.0f} | |"
    for goal in goals:
        model = RobustLogisticRegression(GOALS[goal], tol=tol)
        fit, seconds, memory = timed(lambda model=model: model.fit(X, y))
        gap = fit.duality_gap_ / fit.objective_
        yield (
            f"| {goal} ({fit.n_evaluations_} evaluations, {fit.status_}) | {gap:.1e} | "
            f"{seconds:.2f} | {memory:.0f} | {seconds / best:.2f} |"
        )
        measured[name, goal] = [seconds, memory]
        if name == "3000" and ("300", goal) in measured:
            powers = growth(measured["300", goal], measured[name, goal])
            yield f"| growth of {goal} from 300 classes: seconds and memory | | | | {powers} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--goal", nargs="+", choices=GOALS, default=list(GOALS))
    parser.add_argument("--plain", nargs="+", choices=TOLERANCES, default=list(TOLERANCES))
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    out = given.out.open("w", encoding="utf-8") if given.out else sys.stdout
    print(f"Relative gap {given.tol:g}, CPU seconds on one thread.", file=out, flush=True)
    measured: dict[Any, Any] = {}
    with threadpool_limits(1):
        for name in given.case:
            print(file=out)
            for line in lines(name, given.goal, given.plain, given.tol, measured):
                print(line, file=out, flush=True)


if __name__ == "__main__":
    main()
