"""All solvers by name, which of them for which problem, and a good place to start from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from equipoise.arrays import Vector
from equipoise.objectives import ClassGradients, Hessians, offered
from equipoise.registry import Registry
from equipoise.solvers.base import FEW_PARAMETERS, Limits, Progress, Solution, Solver, Status, solve
from equipoise.solvers.descent_ascent import DescentAscent
from equipoise.solvers.intercepts import can_balance
from equipoise.solvers.multipliers import Multipliers, may_be_equal
from equipoise.solvers.problem import Problem
from equipoise.solvers.sqp import MinimaxSqp
from equipoise.solvers.sqp_memory import StepMemory
from equipoise.solvers.sqp_newton import NewtonSteps, Sampled
from equipoise.validation.numbers import check_word

# MANY_NUMBERS: of all class gradients (256 MiB), above which a solver without them is preferred
# where it is as good; MOST_NUMBERS: (2 GiB) above which they are not formed.
MANY_NUMBERS, MOST_NUMBERS = 1 << 25, 1 << 28
# CLASSES_PER_ROW: classes squared, per row, from which multipliers are faster where intercepts can
# balance the risks: the programme in the masses then costs more than a pass.
CLASSES_PER_ROW = 8
# CLASSES_UNDER_CAPS: from which the same holds where caps bind, and multipliers take more
# iterations: at 300 classes sqp-lbfgs takes less time, at 1,000 far more.
CLASSES_UNDER_CAPS = 500
# COARSE_ROWS, COARSE_ROWS_PER_PARAMETER: rows of the coarsest problem, at least and per parameter;
# REFINEMENT: the factor for the next problem; COARSE_SHARE: a coarse problem has less than a third
# of all rows.
COARSE_ROWS, COARSE_ROWS_PER_PARAMETER, REFINEMENT, COARSE_SHARE = 2_000, 6, 8, 3
# SAMPLE_ROWS, SAMPLE_ROWS_PER_PARAMETER, SAMPLE_SHARE: rows of a sampled Hessian, at least, per
# parameter and as a share of all rows. All rows of small classes are among them.
SAMPLE_ROWS, SAMPLE_ROWS_PER_PARAMETER, SAMPLE_SHARE = 8_000, 20, 0.1
# ROUGH: relative tolerance of problems that are not convex, on the way to another one.
ROUGH = 1e-3
# ROUGH_ENOUGH: the relative tolerance from which a fit in single precision comes first: to 1e-4 it
# takes the iterations of double precision, to 1e-5 rounding ends half of the fits.
ROUGH_ENOUGH = 1e-4
# UNBOUNDED: the loosest relative tolerance of the optimality conditions where no penalty bounds the
# gap. Held to 0.3, fits with hinges were up to 36% off; held to 1e-4, random ones are within 4e-5.
UNBOUNDED = 1e-4


@dataclass(frozen=True)
class NamedSolver:
    """A solver by name; ``make`` builds it for a problem and a relative accuracy.

    ``requires`` are the capabilities of the objective that it uses beside the contract.
    """

    name: str
    make: Callable[[Problem, float], Solver[Any]]
    warmed: bool = False  # whether a cold start is warmed on fewer rows
    share: float = 1.0  # of the iterations, where another solver can follow
    rough: bool = False  # whether it takes fewer digits first, where the tolerance allows
    requires: tuple[type, ...] = ()


def _sampled_rows(problem: Problem) -> int:
    """Rows that are enough for a Hessian."""
    return max(SAMPLE_ROWS, SAMPLE_ROWS_PER_PARAMETER * problem.objective.size)


def _sqp_newton(problem: Problem, tol: float) -> MinimaxSqp:
    enough, n_rows = _sampled_rows(problem), problem.objective.n_rows
    at_hand = problem.objective.sample_rows
    if at_hand or enough < n_rows / 2:
        rows = at_hand or max(enough, int(n_rows * SAMPLE_SHARE)) // problem.masses.n_classes
        use: Sampled = "far" if not at_hand else "always" if at_hand >= enough else "first"
        return MinimaxSqp(NewtonSteps(tol, problem.thin(rows), use))
    return MinimaxSqp(NewtonSteps(tol))


SOLVERS: Registry[NamedSolver] = Registry(
    "solver",
    NamedSolver("sqp-newton", _sqp_newton, warmed=True, requires=(ClassGradients, Hessians)),
    NamedSolver("sqp-lbfgs", lambda *_: MinimaxSqp(StepMemory()), requires=(ClassGradients,)),
    NamedSolver("multipliers", lambda *_: Multipliers(), share=0.5, rough=True),
    NamedSolver("descent-ascent", lambda *_: DescentAscent()),
)


def choose(problem: Problem) -> tuple[str, ...]:
    """Names of the solvers for a problem of this size: the first choice, then what may follow.

    Each iteration takes two products of the rows with all scores (n d k operations, or as many as
    stored values times k). Beside these sqp-newton forms Hessians, each as dear as k d / 30
    evaluations; sqp-lbfgs holds k^2 d numbers and multiplies them in k^3 d operations; multipliers
    hold k^2 numbers and pass over the scores a few times, but take about twice the iterations, and
    many more where intercepts cannot balance the risks. For a single weighting multipliers are
    plain L-BFGS.
    """
    objective, classes = problem.objective, problem.masses.n_classes
    if objective.size <= FEW_PARAMETERS:
        return ("sqp-newton",)
    numbers = classes * objective.size
    if numbers > MOST_NUMBERS:
        return ("multipliers",)
    many = classes >= CLASSES_UNDER_CAPS
    balance = may_be_equal(problem) or (many and can_balance(problem))
    costly = classes**2 > CLASSES_PER_ROW * objective.n_rows or numbers > MANY_NUMBERS
    if problem.masses.is_point or (costly and balance):
        return ("multipliers", "sqp-lbfgs")
    return ("sqp-lbfgs", "multipliers")


def run(
    problem: Problem,
    name: str,
    start: tuple[Vector, Vector],
    limits: Limits,
    progress: Progress,
    *,
    cold: bool = True,
    way: Sequence[Problem] = (),
) -> Solution:
    """Solve with a named solver, or with ``"auto"``; a cold start is warmed on fewer rows.

    Problems on the ``way`` to one that is not convex are solved before it, each from where the last
    ended. It begins at the best of these ends and of the start.
    """
    check_word(name, "solver", ("auto", *SOLVERS))
    names = choose(problem) if name == "auto" else (name,)
    for one in names:
        for capability in SOLVERS[one].requires:
            offered(problem.objective, capability, user=f"solver={one!r}")
    ends = [start]
    for easier in way:
        tol = limits.tol if easier.objective.convex else max(limits.tol, ROUGH)
        ended = run(easier, name, ends[-1], replace(limits, tol=tol), Progress(), cold=cold)
        ends.append((ended.theta, ended.mass))
        problem.objective.n_evaluations += ended.n_evaluations
        cold = False
    if way:
        start = min(ends, key=lambda end: problem.value(problem.objective.evaluate(end[0])))
    elif cold and SOLVERS[names[0]].warmed:
        start = _from_coarse(problem, start)
    if not problem.objective.convex:
        limits = replace(limits, certified=False)
    elif problem.ridge == 0:
        limits = replace(limits, tol=min(limits.tol, UNBOUNDED))
    return _first_that_converges(problem, names, start, limits, progress)


def _first_that_converges(
    problem: Problem,
    names: tuple[str, ...],
    start: tuple[Vector, Vector],
    limits: Limits,
    progress: Progress,
) -> Solution:
    """Solvers one after another, each from where the last ended, until one converges."""
    first, *others = names
    share = SOLVERS[first].share if others else 1.0
    part = replace(limits, max_iter=max(1, int(share * limits.max_iter)))
    solution = _solved(problem, first, start, part, progress)
    left = limits.max_iter - solution.n_iter
    if solution.status.converged or not others or left < 1:
        return solution
    start, limits = (solution.theta, solution.mass), replace(limits, max_iter=left)
    again = _first_that_converges(problem, tuple(others), start, limits, progress)
    return solution.followed_by(again, limits)


def _solved(
    problem: Problem, name: str, start: tuple[Vector, Vector], limits: Limits, progress: Progress
) -> Solution:
    """The solution of one solver; where digits were too few, with more."""
    make, first = SOLVERS[name].make, problem
    if SOLVERS[name].rough and limits.tol >= ROUGH_ENOUGH and problem.ridge > 0:
        first = problem.rougher()
    solver = make(first, limits.tol)
    solution = replace(solve(first, solver, start, limits, progress), solver=name)
    problem.objective.n_evaluations = first.objective.n_evaluations
    if solution.status.converged or first.exact is first or solution.status is Status.MAX_ITER:
        return solution
    # Masses at floors and caps would be a slow start.
    exact, again = first.exact, (solution.theta, start[1])
    more = solve(exact, make(exact, limits.tol), again, limits, progress)
    problem.objective.n_evaluations = exact.objective.n_evaluations
    return replace(more, solver=name)


def _from_coarse(problem: Problem, start: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    """The solution of the same problem on a few rows, then on more, to a loose tolerance.

    Its penalty is the geometric mean of that of all rows and that of a fit to the few rows alone.
    The former is too weak for them: rare columns would separate the classes, and their coefficients
    begin far out, where Hessians say little. Where only a sample is in memory, Hessians of each
    problem are those of the one before, if it has enough rows.
    """
    n_classes, n_rows = problem.masses.n_classes, problem.objective.n_rows
    enough = max(COARSE_ROWS, COARSE_ROWS_PER_PARAMETER * problem.objective.size)
    enough = max(enough, problem.objective.coarse_rows)
    rows, tol, largest = max(1, enough // n_classes), 1e-1, 0
    # A sample costs little beside a pass over all rows: the last problem is the whole sample.
    sample, before = problem.objective.sample_rows, None
    while largest < sample if sample else rows * n_classes < n_rows / COARSE_SHARE:
        coarse = problem.thin(rows)
        largest = coarse.objective.n_rows
        fewer = n_rows / coarse.objective.n_rows
        coarse = replace(coarse, ridge=problem.ridge * fewer**0.5)
        if before is not None:
            few = before.objective.n_rows < _sampled_rows(problem)
            before = None if few else replace(before, ridge=coarse.ridge)
        solver = MinimaxSqp(NewtonSteps(tol, before, "always"))
        ended = solve(coarse, solver, start, Limits(tol, 50, certified=False), Progress())
        start = ended.theta, ended.mass
        rows, tol, before = rows * REFINEMENT, tol / 10, coarse if sample else None
    return start
