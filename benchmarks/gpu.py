"""Fits on a CUDA device: a pass over the rows, whole robust fits, and torch's own plain fit.

    python benchmarks/gpu.py            # a few minutes on one device
    python benchmarks/gpu.py --quick    # the same lines on few rows, to see that they run

Times are medians once everything has run, and the device is waited for. Rows are on the device and
standardised before. Each line is measured by itself: one that fails says so, and the next goes on.
"""

import argparse
import os
import statistics
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import torch

from equipoise import RobustLogisticRegression
from equipoise.objectives import Evaluation
from equipoise.objectives.torch_objective import TorchObjective
from equipoise.objectives.torch_rows import torch_objective
from problems import covertype, gaussian_classes

DEVICE = "cuda"
TOL = 1e-6
REPEATS = 5
# A plain fit that has not arrived by then is said not to.
LIMIT = 30.0


class Arrived(Exception):  # noqa: N818  no error
    """Ends a fit that is at its target, or will not be."""


class Case(NamedTuple):
    """Labelled rows on the device."""

    name: str
    X: torch.Tensor
    y: torch.Tensor

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


def seconds(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The median time of some work that has run before."""
    work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def generated(n: int, d: int, k: int) -> Case:
    """Gaussian classes of unequal size, drawn on the device."""
    torch.manual_seed(0)
    shares = torch.linspace(1, 4, k, device=DEVICE)
    y = torch.multinomial(shares, n, replacement=True)
    centres = torch.randn(k, d, device=DEVICE) * 0.35
    X = torch.randn(n, d, device=DEVICE)
    for start in range(0, n, 1 << 20):
        X[start : start + (1 << 20)] += centres[y[start : start + (1 << 20)]]
    return Case(f"generated {n:,} x {d} x {k}", X, y)


def forest(n: int | None = None) -> Case:
    """Covertype, standardised; with noise and repeated where more rows are wanted."""
    X, y = covertype()
    rows = torch.tensor(X, dtype=torch.float32, device=DEVICE)
    labels = torch.tensor(y - y.min(), device=DEVICE)
    name = "Covertype"
    if n is not None:
        torch.manual_seed(0)
        copies = -(-n // len(rows))
        rows, labels = rows.repeat(copies, 1)[:n], labels.repeat(copies)[:n]
        spread = rows[: len(X)].std(0)
        for start in range(0, n, 1 << 20):
            part = rows[start : start + (1 << 20)]
            part += 0.1 * spread * torch.randn_like(part)
        name = "Covertype, repeated with noise,"
    rows = (rows - rows.double().mean(0).float()) / rows.double().std(0).clamp(min=1e-6).float()
    return Case(f"{name} {len(rows):,} x {rows.shape[1]} x 7", rows, labels)


def lookalike(n: int) -> Case:
    """Covertype where it can be read, else generated rows of its size."""
    if os.environ.get("EQUIPOISE_DATA"):
        return forest(None if n > 500_000 else n)
    return generated(n, 54, 7)


def thousand(n: int, d: int, k: int) -> Case:
    X, y = gaussian_classes(n, d, k)
    rows = torch.tensor(X, dtype=torch.float32, device=DEVICE)
    return Case(f"generated {n:,} x {d} x {k:,}", rows, torch.tensor(y, device=DEVICE))


def objective_of(case: Case) -> TorchObjective:
    return torch_objective(
        case.X, case.y, None, n_classes=case.n_classes, fit_intercept=True, ridge=1 / len(case.X)
    )


def one_pass(case: Case) -> str:
    """The time of a pass, and its errors against float64."""
    objective = objective_of(case)
    theta = 0.3 * np.random.default_rng(0).standard_normal(objective.size)
    took = seconds(lambda: objective.evaluate_with_gradients(theta), 20)
    state, gradients = objective.evaluate_with_gradients(theta)
    exact = objective.exactly(Evaluation(theta, state.risks, None))
    reference = objective.class_gradients(exact)
    error = np.linalg.norm(gradients - reference) / np.linalg.norm(reference)
    risk = np.max(np.abs(state.risks / exact.risks - 1))
    in_doubles = seconds(lambda: objective.exactly(Evaluation(theta, state.risks, None)), 3)
    return (
        f"a pass takes {1e3 * took:.2f} ms, relative errors {error:.1e} of the class gradients and "
        f"{risk:.1e} of the risks; risks in float64 {1e3 * in_doubles:.1f} ms"
    )


def whole_fit(case: Case, **settings: Any) -> str:
    """The time of a robust fit, and what it says of itself."""
    model = RobustLogisticRegression("worst_class", tol=TOL, **settings)
    took = seconds(lambda: model.fit(case.X, case.y))
    return (
        f"the worst-class fit takes {took:.3f} s: {model.status_}, relative gap "
        f"{model.duality_gap_ / model.objective_:.1e}, objective {model.objective_:.7f}, "
        f"{model.n_evaluations_} evaluations, {model.n_iter_} iterations"
    )


def plain(case: Case, target: float, *, history: int, dtype: torch.dtype) -> float:
    """Seconds until torch's LBFGS is at the target of the plain objective; infinite if never."""
    k, ridge = case.n_classes, 1 / len(case.X)
    X = case.X.to(dtype)

    def run() -> float:
        weights = torch.zeros(k, X.shape[1], device=DEVICE, dtype=dtype, requires_grad=True)
        intercepts = torch.zeros(k, device=DEVICE, dtype=dtype, requires_grad=True)
        solver = torch.optim.LBFGS(
            [weights, intercepts],
            max_iter=3000,
            max_eval=6000,
            history_size=history,
            tolerance_grad=0,
            tolerance_change=0,
            line_search_fn="strong_wolfe",
        )
        torch.cuda.synchronize()
        began, there = time.perf_counter(), []

        def closure() -> torch.Tensor:
            solver.zero_grad()
            scores = torch.addmm(intercepts, X, weights.T)
            loss = torch.nn.functional.cross_entropy(scores, case.y)
            loss = loss + 0.5 * ridge * (weights * weights).sum()
            loss.backward()
            now = time.perf_counter() - began
            if loss.item() <= target:
                there.append(time.perf_counter() - began)
            if there or now > LIMIT:
                raise Arrived
            return loss

        with suppress(Arrived):
            solver.step(closure)
        return there[0] if there else float("inf")

    first = run()
    return first if first > 1 else min(first, run())


def against_plain(case: Case) -> str:
    """Our robust fit beside torch's plain fit, each to its own objective's relative 1e-6."""
    best = RobustLogisticRegression("standard", tol=1e-8).fit(case.X, case.y)
    target = best.objective_ * (1 + TOL)
    model = RobustLogisticRegression("worst_class", tol=TOL)
    ours = seconds(lambda: model.fit(case.X, case.y), 3)
    kinds = [(h, t) for t in (torch.float32, torch.float64) for h in (10, 50)]
    times = {
        f"{str(dtype)[6:]}, memory {history}": plain(case, target, history=history, dtype=dtype)
        for history, dtype in kinds
    }
    name, theirs = min(times.items(), key=lambda item: item[1])
    if theirs == float("inf"):
        return f"robust {ours:.3f} s; plain by torch's LBFGS not within {LIMIT:.0f} s"
    return (
        f"robust {ours:.3f} s; plain by torch's LBFGS {theirs:.3f} s ({name}), ratio "
        f"{ours / theirs:.3f}; plain optimum {best.objective_:.7f} ({best.status_})"
    )


def report(make: Callable[[], Case], *works: Callable[[Case], str]) -> None:
    """A line for each piece of work on one case, or its traceback."""
    try:
        case = make()
    except Exception:
        traceback.print_exc()
        return
    for work in works:
        try:
            print(f"{case.name}: {work(case)}", flush=True)
        except Exception:
            print(f"{case.name}: {work.__name__} failed", flush=True)
            traceback.print_exc()
    del case
    torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a plain fit")
    options = parser.parse_args()
    quick = options.quick
    globals()["LIMIT"] = options.limit
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    many, some = (200_000, 50_000) if quick else (10_000_000, 581_012)
    wide = (2_000, 50, 100) if quick else (20_000, 500, 1_000)
    report(lambda: generated(many, 54, 7), one_pass, whole_fit, against_plain)
    if os.environ.get("EQUIPOISE_DATA"):
        report(lambda: forest(many), whole_fit, against_plain)
    report(lambda: lookalike(some), one_pass, whole_fit, against_plain)
    report(lambda: thousand(*wide), whole_fit, against_plain)


if __name__ == "__main__":
    main()
