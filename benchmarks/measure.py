"""One measurement in a process of its own: prints one line of JSON.

python benchmarks/measure.py ours PROBLEM UNCERTAINTY TOL
python benchmarks/measure.py plain PROBLEM SOLVER TOL
python benchmarks/measure.py plain PROBLEM defaults 1e-4

``SOLVER`` is one of scikit-learn's LogisticRegression, or ``cyanure`` or ``intelex``, for plain
fits of these packages. All minimise the mean cross-entropy of the rows plus the squared norm of the
coefficients over 2 n, without a penalty of intercepts: cyanure with lambda_1 = 1 / n, the others
with C = 1. The objective is computed here from coefficients and intercepts, in one way for all.
"""

import io
import json
import logging
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


class Cyanure:
    """Cyanure's multinomial regression; it stops by a duality gap, at a relative tolerance."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def fit(self, X: Any, y: np.ndarray) -> LogisticRegression:
        """Its coefficients, in an estimator of scikit-learn."""
        from cyanure.estimators import LogisticRegression as Multinomial

        classes, labels = np.unique(y, return_inverse=True)
        options = {"penalty": "l2", "lambda_1": 1 / len(y), "multi_class": "multinomial"}
        model = Multinomial(**options, tol=self.tol, max_iter=20_000, verbose=False)
        model.fit(X, labels)
        fit = LogisticRegression()
        fit.classes_, fit.n_iter_ = classes, model.n_iter_
        by_class = np.asarray(model.coef_)
        fit.coef_ = by_class if len(by_class) == len(classes) else by_class.T
        fit.intercept_ = np.ravel(model.intercept_)
        return fit


class Accelerated:
    """scikit-learn-intelex's regression, refused where it leaves the fit to scikit-learn."""

    def __init__(self, tol: float) -> None:
        self.tol = tol

    def fit(self, X: Any, y: np.ndarray) -> Any:
        from sklearnex.linear_model import LogisticRegression as Regression

        log, messages = logging.getLogger("sklearnex"), io.StringIO()
        log.setLevel(logging.INFO)
        log.addHandler(logging.StreamHandler(messages))
        fit = Regression(tol=self.tol, max_iter=20_000).fit(X, y)
        if "fallback" in messages.getvalue():
            raise RuntimeError("scikit-learn-intelex leaves this fit to scikit-learn")
        return fit


def plain_classifier(solver: str, tol: float) -> Any:
    if solver == "cyanure":
        return Cyanure(tol)
    if solver == "intelex":
        return Accelerated(tol)
    if solver == "defaults":
        return LogisticRegression()
    return LogisticRegression(solver=solver, tol=tol, max_iter=20_000)


def plain(name: str, solver: str, tol: float) -> dict[str, Any]:
    X, y = PROBLEMS[name]()
    warnings.simplefilter("ignore")
    classifier = plain_classifier(solver, tol)
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
