"""What each safeguard of the SQP solvers is worth, in passes over the rows.

PYTHONPATH=src:tests:benchmarks python benchmarks/safeguards.py [--quick]

Every fit of a list is run with all safeguards, then with each of them removed: the random problems
of ``tests/random_problems.py``, the hostile ones of ``tests/hostile_problems.py`` and the data sets
of ``benchmarks/problems.py`` at small sizes. A pass is an evaluation of the class risks and their
gradients; a Hessian counts as one pass for each 30 parameters, times its share of the rows. The
table says how many fits take other numbers of passes, by which factor their passes grow (the
geometric mean over all fits, the least and the largest), and how many fits more end unsolved:
not converged, or above the best by more than the tolerance.
"""

import argparse
import contextlib
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import hostile_problems
import problems
import random_problems
from equipoise import LabelCVaR, RobustLinearClassifier, RobustLogisticRegression, WorstClass
from equipoise.blocks import Blocks, from_blocks
from equipoise.solvers import damping, registry, sqp, sqp_newton
from equipoise.solvers.curvature import NewtonInverse
from equipoise.text import text_table

TOL, MAX_ITER = 1e-6, 200
SOLVERS = "sqp-newton", "sqp-lbfgs"
Fitted = RobustLinearClassifier | RobustLogisticRegression
Fit = Callable[[], Fitted]


class Run(NamedTuple):
    """How a fit went."""

    passes: float
    solved: bool
    objective: float


class Worth(NamedTuple):
    """The fits without a safeguard, beside those with it."""

    changed: int
    mean: float  # growth of passes, over all fits
    least: float
    largest: float
    hurt: str  # the fit whose passes grow most
    unsolved: int


class Double(NewtonInverse):
    """A Hessian that is never formed in single precision."""

    def __init__(self, *given: Any, precise: bool = False, **settings: Any) -> None:
        super().__init__(*given, precise=True, **settings)


class Forgetful(sqp_newton.NewtonSteps):
    """Steps by Hessians, without pairs on top of them."""

    def learn(self, *given: Any) -> Any:
        moved = super().learn(*given)
        moved.curvature.clear()
        return moved


class Uncut(sqp_newton.NewtonSteps):
    """A new Hessian near the solution whether or not its first step was cut."""

    def learn(self, attempt: Any, moved: Any, misfit: sqp.Misfit) -> Any:
        return super().learn(attempt, moved, misfit._replace(cut=False))


class Eager(sqp_newton.NewtonSteps):
    """A new Hessian in each step."""

    def _pays(self, problem: Any, iterate: Any, model: Any) -> bool:
        return bool(iterate.record.age > 0)


class Unsampled(sqp_newton.NewtonSteps):
    """All Hessians of all rows."""

    def __init__(self, tol: float, *_: Any) -> None:
        super().__init__(tol)


def _constant(name: str, value: float, *modules: Any) -> Callable[[], Any]:
    @contextlib.contextmanager
    def removed() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for module in modules:
                stack.enter_context(mock.patch.object(module, name, value))
            yield

    return removed


def _strategy(strategy: type) -> Callable[[], Any]:
    return lambda: mock.patch.object(registry, "NewtonSteps", strategy)


@contextlib.contextmanager
def _hidden() -> Iterator[None]:
    with _constant("HIDDEN", 0.0, sqp, damping)(), _constant("ROUNDED", 0.0, sqp)():
        yield


NEVER = 1 << 40
SAFEGUARDS: dict[str, Callable[[], Any]] = {
    "the worst of the last objectives (RECENT)": _constant("RECENT", 1, sqp),
    "decreases hidden by rounding (HIDDEN)": _hidden,
    "pairs on top of a Hessian (PAIRS)": _strategy(Forgetful),
    "old Hessians kept while they pay": _strategy(Eager),
    "a Hessian kept after its first step was cut": _strategy(Uncut),
    "a fresh Hessian where an old one fails": lambda: mock.patch.object(
        sqp_newton, "_has_aged", return_value=False
    ),
    "only double precision": lambda: mock.patch.object(sqp_newton, "NewtonInverse", Double),
    "Hessians of a sample": _strategy(Unsampled),
    "doubts about a sample out of core (DOUBTED)": _constant("DOUBTED", NEVER, sqp_newton),
    "damped whole steps (LOST)": _constant("LOST", NEVER, sqp_newton),
    "corrections of whole steps": _constant("LONGER", 0.0, damping),
    "damping of implausible models": lambda: mock.patch.object(
        sqp_newton, "until_plausible", lambda _, iterate, model: (iterate, model)
    ),
    "damping where flat models fail": _constant("MOST", 0.0, sqp_newton),
    "blocks of the Hessian's diagonal (lbfgs)": lambda: mock.patch(
        "equipoise.solvers.sqp_memory.ScoreInverses", type("Never", (), {})
    ),
}


@dataclass
class Hessians:
    """The passes that Hessians cost."""

    n_rows: int = 0
    passes: float = 0.0

    def counted(self, made: Callable[..., None]) -> Callable[..., None]:
        def make(base: Any, problem: Any, theta: Any, *given: Any, **settings: Any) -> None:
            share = problem.objective.n_rows / self.n_rows
            self.passes += share * len(theta) / sqp_newton.PARAMETERS_PER_EVALUATION
            made(base, problem, theta, *given, **settings)

        return make


def run(fit: Fit, n_rows: int) -> Run | None:
    """A fit and its passes; None where the problem is refused."""
    spent = Hessians(n_rows)
    counting = mock.patch.object(NewtonInverse, "__init__", spent.counted(NewtonInverse.__init__))
    with counting, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = fit()
        except ValueError:
            return None
    passes = model.n_evaluations_ + spent.passes
    return Run(passes, model.status_ in ("converged", "stationary"), model.objective_)


def small_problems(numbers: range) -> Iterator[tuple[str, Fit, int]]:
    """Random and hostile problems, by each solver of SQP."""
    for seed in range(numbers.start // 2, numbers.stop // 2):
        for penalty in (False, True):
            problem = random_problems.draw(seed, penalty=penalty)
            for solver in SOLVERS:
                name = f"random {seed} {'with' if penalty else 'without'} penalty, {solver}"
                yield (
                    name,
                    lambda p=problem, s=solver: p.fit(s, max_iter=MAX_ITER)[0],
                    len(problem.labels),
                )
    for number in numbers:
        hostile = hostile_problems.draw(number)
        for solver in SOLVERS:

            def fit(problem: Any = hostile, solver: str = solver) -> Fitted:
                model = RobustLinearClassifier(solver=solver, **problem.settings)
                return model.fit(problem.X, problem.labels, sample_weight=problem.weights)

            yield f"hostile {number}, {solver}", fit, len(hostile.labels)


def nearly_separate(form: str) -> Any:
    """Classes that next to no row of a sample tells apart."""
    rng, shares = np.random.default_rng(0), np.array([0.6, 0.3, 0.1])
    y = rng.choice(3, size=100_000, p=shares)
    X = 0.9 * rng.normal(size=(3, 30))[y] + rng.normal(size=(len(y), 30))
    return (np.exp(X / 2) if form == "skewed" else X).astype(np.float32), y


def large_problems() -> Iterator[tuple[str, Fit, int]]:
    """Data sets of the benchmark at small sizes, in memory and out of core."""
    data = {
        "covertype, first 11,340": problems.covertype_rows(11_340, random=False),
        "covertype, 60,000": problems.covertype_rows(60_000, random=True),
        "seven unequal classes, 50,000": problems.PROBLEMS["seven-unequal"](),
        "fifty classes, 5,000": problems.gaussian_classes(5_000, 20, 50),
    }
    for name, (X, y) in data.items():
        for goal in (WorstClass(), LabelCVaR(0.1)):
            # By sqp-lbfgs alone, 60,000 rows of Covertype take a minute and thousands of passes.
            for solver in SOLVERS[:1] if "60,000" in name else SOLVERS:
                settings = {"solver": solver, "tol": TOL, "max_iter": MAX_ITER}

                def fit(X: Any = X, y: Any = y, goal: Any = goal, settings: Any = settings) -> Any:
                    return RobustLogisticRegression(goal, **settings).fit(X, y)

                yield f"{name}, {goal}, {solver}", fit, len(y)
    for form in ("normal", "skewed"):
        X, y = nearly_separate(form)

        def streamed(X: Any = X, y: Any = y) -> Any:
            blocks = from_blocks(
                [(X[rows], y[rows]) for rows in np.array_split(np.arange(len(y)), 7)]
            )
            with mock.patch.object(Blocks, "sampled_share", 0.04):
                return RobustLogisticRegression(WorstClass()).fit(blocks)

        yield f"out of core, {form}", streamed, len(y)


def compare(names: list[str], here: list[Run | None], there: list[Run | None]) -> Worth:
    """Fits with all safeguards ``here``, and without one ``there``."""
    rows = [(n, a, b) for n, a, b in zip(names, here, there, strict=True) if a and b]
    growth = {name: b.passes / a.passes for name, a, b in rows}
    changed = sum(a.passes != b.passes for _, a, b in rows)
    mean = float(np.exp(np.mean(np.log(list(growth.values())))))
    unsolved = 0
    for _, a, b in rows:
        least = min(a.objective, b.objective)
        solved = [
            one.solved and one.objective - least <= 2 * TOL * max(1e-6, abs(least))
            for one in (a, b)
        ]
        unsolved += int(solved[0]) - int(solved[1])
    hurt = max(growth, key=growth.__getitem__)
    return Worth(changed, mean, min(growth.values()), growth[hurt], hurt, unsolved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the large problems")
    parser.add_argument("--only", default="", help="safeguards whose names match this")
    parser.add_argument("--numbers", nargs=2, type=int, default=(0, 50), help="of the problems")
    parser.add_argument("--fits", default="", help="fits whose names match this")
    options = parser.parse_args()
    fits = list(small_problems(range(*options.numbers)))
    fits += [] if options.quick else list(large_problems())
    fits = [fit for fit in fits if re.search(options.fits, fit[0])]
    names, began = [name for name, *_ in fits], time.perf_counter()
    here = [run(fit, n_rows) for _, fit, n_rows in fits]
    kept = [one for one in here if one]
    solved = sum(one.solved for one in kept)
    total = sum(one.passes for one in kept)
    print(f"{len(kept)} fits, {solved} of them solved, {total:,.0f} passes with all safeguards.\n")
    lines = []
    for name, removed in SAFEGUARDS.items():
        if not re.search(options.only, name):
            continue
        with removed():
            worth = compare(names, here, [run(fit, n_rows) for _, fit, n_rows in fits])
        factors = f"{worth.mean:.3f}", f"{worth.least:.2f}", f"{worth.largest:.2f} ({worth.hurt})"
        lines.append([name, str(worth.changed), *factors, f"{worth.unsolved:+d}"])
        print(f"{time.perf_counter() - began:5.0f} s", *lines[-1], file=sys.stderr, flush=True)
    heads = ["without", "fits that change", "mean factor", "least", "largest", "unsolved"]
    print(*text_table(heads, lines), sep="\n")


if __name__ == "__main__":
    main()
