"""One measurement in a process of its own: prints one line of JSON.

python benchmarks/measure.py ours PROBLEM UNCERTAINTY TOL
python benchmarks/measure.py plain PROBLEM SOLVER TOL
python benchmarks/measure.py plain PROBLEM defaults 1e-4
"""

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from equipoise import FixedWeights, LabelCVaR, RobustLogisticRegression, WorstClass
from problems import PROBLEMS

# Fits are repeated until they have taken so many seconds.
SHORT = 5.0
UNCERTAINTIES = {
    "worst_class": WorstClass(),
    "lcvar-0.1": LabelCVaR(alpha=0.1),
    "standard": FixedWeights("standard"),
}


def memory_mib(field: str) -> float:
    """A memory figure of this process (Linux): VmRSS is the current one, VmHWM the peak."""
    for row in Path("/proc/self/status").read_text().splitlines():
        if row.startswith(field):
            return int(row.split()[1]) / 1024
    return float("nan")


def reset_peak() -> None:
    """Let the peak start again from here, so that making the data does not count."""
    Path("/proc/self/clear_refs").write_text("5")


def timed(fit: Any) -> tuple[Any, float]:
    """The result and the best time of three; of one where it takes more than a few seconds."""
    times: list[float] = []
    while len(times) < 3 and sum(times) < SHORT:
        began = time.perf_counter()
        result = fit()
        times.append(time.perf_counter() - began)
    return result, min(times)


def ours(name: str, goal: str, tol: float) -> dict[str, Any]:
    X, y = PROBLEMS[name]()
    reset_peak()
    before = memory_mib("VmRSS")
    classifier = RobustLogisticRegression(UNCERTAINTIES[goal], tol=tol)
    warnings.simplefilter("ignore")  # 'the caps do not bind' is no news here
    fit, seconds = timed(lambda: classifier.fit(X, y))
    return {
        "seconds": seconds,
        "objective": fit.objective_,
        "lower_bound": fit.lower_bound_,
        "relative_gap": fit.duality_gap_ / max(1e-3, fit.objective_),
        "iterations": fit.n_iter_,
        "evaluations": fit.n_evaluations_,
        "status": fit.status_,
        "peak_mib": memory_mib("VmHWM"),
        "added_mib": memory_mib("VmHWM") - before,
        "matrix_mib": (X.nnz * 12 if hasattr(X, "nnz") else X.nbytes) / 2**20,
    }


def plain_objective(fit: LogisticRegression, X: Any, y: np.ndarray) -> float:
    scores = fit.decision_function(X)
    labels = np.searchsorted(fit.classes_, y)
    top = scores.max(axis=1)
    total = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
    losses = total - scores[np.arange(len(y)), labels]
    return float(losses.mean() + np.sum(fit.coef_**2) / (2 * len(y)))


def plain(name: str, solver: str, tol: float) -> dict[str, Any]:
    X, y = PROBLEMS[name]()
    warnings.simplefilter("ignore")
    classifier = LogisticRegression()
    if solver != "defaults":
        classifier.set_params(solver=solver, tol=tol, max_iter=20_000)
    fit, seconds = timed(lambda: classifier.fit(X, y))
    return {
        "seconds": seconds,
        "objective": plain_objective(fit, X, y),
        "iterations": int(np.max(fit.n_iter_)),
    }


if __name__ == "__main__":
    kind, problem, choice, tolerance = sys.argv[1:]
    measure = {"ours": ours, "plain": plain}[kind]
    print(json.dumps(measure(problem, choice, float(tolerance))))
