"""Thousands of classes of a power law on a CUDA device: seconds and memory to a certified gap.

    python benchmarks/many_classes_gpu.py [--case 5000 ...] [--quick]

Rows are drawn on the device: Gaussian classes, the i-th with a share in proportion to 1 / i and
three rows at least, in float32. Each line is a fit in a fresh process of its own memory's peak.
``--quick`` takes a fortieth of the rows and a tenth of the classes, on any machine.
"""

import argparse
import subprocess
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np
import torch

from equipoise import LabelCVaR, RobustLogisticRegression, WorstClass

# LEAST_ROWS: of each class.
LEAST_ROWS = 3
GOALS = {"worst class": WorstClass(), "LabelCVaR(0.2)": LabelCVaR(alpha=0.2)}


class Case(NamedTuple):
    """The size of a problem, and the relative gaps to reach."""

    k: int
    d: int
    n: int
    gaps: tuple[float, ...]


CASES = {
    "5000": Case(5_000, 64, 200_000, (1e-3, 1e-4)),
    "20000": Case(20_000, 128, 400_000, (1e-3,)),
}


def power_law(k: int, d: int, n: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, k + 1)
    drawn = rng.choice(k, n - LEAST_ROWS * k, p=share / share.sum())
    labels = np.concatenate([np.repeat(np.arange(k), LEAST_ROWS), drawn])
    generator = torch.Generator(device).manual_seed(0)
    y = torch.tensor(labels, device=device)
    scale = (2.5 / np.sqrt(np.log(k) + 1)) / np.sqrt(d / 20)
    centres = torch.randn(k, d, generator=generator, device=device) * scale
    X = torch.randn(n, d, generator=generator, device=device)
    X += centres[y]
    return X, y


def line(name: str, goal: str, gap: float, *, quick: bool) -> str:
    case, device = CASES[name], "cuda" if torch.cuda.is_available() else "cpu"
    k, d, n = (case.k // 10, case.d // 4, case.n // 40) if quick else case[:3]
    X, y = power_law(k, d, n, device)
    RobustLogisticRegression(GOALS[goal], tol=0.5).fit(X[:999, :4], y[:999] % 70)  # loads libraries
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    model = RobustLogisticRegression(GOALS[goal], tol=gap).fit(X, y)
    seconds = time.perf_counter() - began
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else float("nan")
    return (
        f"| {k:,} x {d} x {n:,}, {goal}, {gap:g} | {seconds:.2f} s | {peak:.2f} GiB | gap "
        f"{model.duality_gap_ / model.objective_:.1e} | {model.n_evaluations_} evaluations, "
        f"{model.status_} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.one:
        goal, gap = given.one
        print(line(given.case[0], goal, float(gap), quick=given.quick), flush=True)
        return
    for name in given.case:
        for gap in CASES[name].gaps:
            for goal in GOALS:
                words = [sys.executable, __file__, "--case", name, "--one", goal, str(gap)]
                subprocess.run([*words, *(["--quick"] if given.quick else [])], check=False)


if __name__ == "__main__":
    main()
