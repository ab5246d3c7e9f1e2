"""Every solver on a grid of problems, and the one that ``solver="auto"`` takes: CPU seconds.

    python benchmarks/solver_grid.py [--tol 1e-3 1e-6] [--out FILE]

Gaussian classes of equal size and of a power law, few and many classes, columns and rows. The
choice is measured against the fastest solver that converges: 1.0 says that it is the fastest. A
fit ends after 300 iterations.
"""

import argparse
import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from equipoise import RobustLogisticRegression
from equipoise.objectives import open_objective
from equipoise.solvers import Problem, choose
from many_classes import GOALS, power_law

SIZES = [(5, 10, 4_000), (20, 20, 4_000), (60, 40, 4_000), (150, 30, 6_000), (400, 30, 8_000)]
SIZES += [(800, 30, 8_000)]
SOLVERS = ("sqp-newton", "sqp-lbfgs", "multipliers")
# FEW: parameters up to which sqp-newton is tried.
FEW = 1_500


def equal_classes(k: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    centres = rng.standard_normal((k, d)) * (2.5 / np.sqrt(np.log(k) + 1)) / np.sqrt(d / 20)
    return centres[y] + rng.standard_normal((n, d)), y


LAWS = {"equal": equal_classes, "power law": power_law}


def chosen(X: np.ndarray, y: np.ndarray, goal: str) -> str:
    k, n = int(y.max()) + 1, len(y)
    with open_objective(X, y, np.ones(n), n_classes=k, fit_intercept=True, ridge=1 / n) as rows:
        masses = GOALS[goal].resolve(np.bincount(y) / n)
        return choose(Problem(rows, masses, 1 / n))[0]


def line(law: str, size: tuple[int, int, int], goal: str, tol: float) -> str:
    k, d, n = size
    X, y = LAWS[law](k, n, d)
    times = {}
    for solver in SOLVERS:
        if solver == "sqp-newton" and k * (d + 1) > FEW:
            continue
        model = RobustLogisticRegression(GOALS[goal], solver=solver, tol=tol, max_iter=300)
        began = time.process_time()
        ended = model.fit(X, y).status_
        times[solver] = time.process_time() - began if ended == "converged" else np.inf
    auto, best = chosen(X, y, goal), min(times.values())
    shown = ", ".join(f"{name} {seconds:.2f}" for name, seconds in times.items())
    return (
        f"| {law} | {k} x {d} x {n:,} | {goal} | {tol:g} | {shown} | {auto} | "
        f"{times[auto] / best:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-3, 1e-6])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    out = given.out.open("w", encoding="utf-8") if given.out else sys.stdout
    print("| classes | size | goal | gap | CPU s | auto | to the fastest |", file=out, flush=True)
    with threadpool_limits(1):
        for size, law, tol, goal in product(SIZES, LAWS, given.tol, GOALS):
            print(line(law, size, goal, tol), file=out, flush=True)


if __name__ == "__main__":
    main()
