"""How cost grows: rows of Covertype, and classes of a capped simplex."""

import time
import warnings
from typing import Any

import numpy as np

from equipoise import RobustLogisticRegression, WorstClass
from equipoise.sets import CappedSimplex
from problems import covertype, standardised


def rows(sizes: tuple[int, ...] = (50_000, 100_000, 200_000, 400_000)) -> list[dict[str, Any]]:
    """Worst-class fits of ever more rows of Covertype."""
    X, y = covertype()
    order = np.random.default_rng(0).permutation(len(y))
    found = []
    for size in sizes:
        part, labels = standardised(X[order[:size]], y[order[:size]])
        began = time.perf_counter()
        fit = RobustLogisticRegression(WorstClass()).fit(part, labels)
        seconds = time.perf_counter() - began
        found.append(
            {
                "rows": size,
                "seconds": seconds,
                "microseconds_per_row": 1e6 * seconds / size,
                "evaluations": fit.n_evaluations_,
                "iterations": fit.n_iter_,
            }
        )
    return found


def capped_simplex(n_classes: int = 1_000_000) -> dict[str, float]:
    """Maximiser and projection at very many classes, as multiples of one ``np.argsort``."""
    random = np.random.default_rng(0)
    prior = random.dirichlet(np.ones(n_classes))
    masses = CappedSimplex(np.zeros(n_classes), prior / 0.1)
    values = random.standard_normal(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sort = best_of(lambda: np.argsort(values))
        return {
            "argsort_seconds": sort,
            "maximize": best_of(lambda: masses.maximize(values)) / sort,
            "project": best_of(lambda: masses.project(values / n_classes)) / sort,
        }


def best_of(call: Any, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)
