"""The contract of a solver, the one loop that runs all solvers, and its result."""

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import Enum
from shutil import get_terminal_size
from time import perf_counter
from typing import Generic, NamedTuple, TextIO, TypeVar

import numpy as np

from equipoise.arrays import Vector, norm
from equipoise.objectives import Evaluation
from equipoise.solvers.curvature import InverseCurvature, NewtonInverse
from equipoise.solvers.problem import NewtonStep, Problem

# FLOOR: the least objective that a gap is relative to, in units of the loss.
FLOOR = 1e-3
# PATIENCE: iterations without progress of objective or gap, after which a solve ends; or a fifth of
# all iterations, where these are more.
PATIENCE = 250
# REACH: how far away, in units of the scaled features, better parameters are looked for where there
# is no penalty; FARTHER: a step that the curvature gives is also tried so many times as long.
REACH, FARTHER = 1e6, 10.0
# SLIGHT_ROUNDING: rounding of scores that does not matter, as a share of the target gap.
SLIGHT_ROUNDING = 1e-4
# FEW_PARAMETERS: up to this number Hessians are formed; factoring one takes 1e9 operations. BARELY:
# its relative damping, 70 times the rounding of as many products.
FEW_PARAMETERS, BARELY = 1500, 1e-11


class Status(Enum):
    """How a solve ended, with the sentence for the user."""

    CONVERGED = "The certified gap reached the tolerance."
    STATIONARY = "The optimality conditions hold to the tolerance; there is no bound."
    STALLED = "Rounding stopped the progress before the tolerance was reached."
    UNCONFIRMED = "Rounding stopped the progress, and better parameters may lie far out."
    MAX_ITER = "The iterations ran out before the tolerance was reached."

    @property
    def converged(self) -> bool:
        return self in (Status.CONVERGED, Status.STATIONARY)


class HistoryRecord(NamedTuple):
    """One line of the history of a solve."""

    iteration: int
    evaluations: int
    objective: float
    gap: float
    seconds: float


@dataclass(frozen=True)
class Solution:
    """The best point, the masses that certify it, and the record of the solve."""

    theta: Vector
    risks: Vector
    mass: Vector
    objective: float
    lower_bound: float
    last_step: float
    n_iter: int
    n_evaluations: int
    status: Status
    history: tuple[HistoryRecord, ...]
    solver: str = ""  # its name
    failed: tuple[tuple[str, Status], ...] = ()  # earlier solvers, and how they ended

    def followed_by(self, other: "Solution", limits: "Limits") -> "Solution":
        """The solution of another solver that began where this one failed, as one solve."""
        moved = tuple(
            line._replace(iteration=line.iteration + self.n_iter) for line in other.history[1:]
        )
        better = self if self.lower_bound > other.lower_bound else other
        merged = replace(
            other,
            mass=better.mass,
            lower_bound=better.lower_bound,
            n_iter=self.n_iter + other.n_iter,
            history=self.history + moved,
            failed=((self.solver, self.status), *other.failed),
        )
        reached = merged.gap <= limits.target(merged.objective)
        return replace(merged, status=Status.CONVERGED) if reached else merged

    def as_returned(self, problem: Problem, limits: "Limits") -> "Solution":
        """The solution at the returned numbers, whose rounding may have cost the tolerance."""
        theta = problem.objective.apart(self.theta)
        objective = self.objective - problem.penalty(self.theta) + problem.penalty(theta)
        out = replace(self, theta=theta, objective=objective)
        state = problem.objective.returned(theta, SLIGHT_ROUNDING * limits.target(objective))
        if state is None:
            return out
        objective, evaluations = problem.value(state), problem.objective.n_evaluations
        out = replace(out, risks=state.risks, objective=objective, n_evaluations=evaluations)
        left = out.gap if self.status is Status.CONVERGED else objective - self.objective
        lost = self.status.converged and left > limits.target(objective)
        return replace(out, status=Status.STALLED) if lost else out

    @property
    def gap(self) -> float:
        return self.objective - self.lower_bound

    @property
    def message(self) -> str:
        """How the solve ended, and how earlier solvers had."""
        before = (f"{name!r} had failed before: {status.value}" for name, status in self.failed)
        return " ".join([self.status.value, *before])


class Progress:
    """Writes the state of a solve, over itself on a terminal, and keeps its clock."""

    def __init__(self, verbose: int = 0, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._on = verbose > 0
        self._moving = self._on and self._stream.isatty()
        # A line as long as the terminal is wide would scroll.
        self._width = get_terminal_size().columns - 1
        self._began = perf_counter()

    def seconds(self) -> float:
        """Seconds since the solve began."""
        return perf_counter() - self._began

    def show(self, record: HistoryRecord, target: float) -> None:
        if self._moving:
            line = _line(record, target)[: self._width]
            print("\r" + line.ljust(self._width), end="", file=self._stream, flush=True)

    def end(self, record: HistoryRecord, target: float, sentence: str) -> None:
        if self._on:
            start, width = ("\r", self._width) if self._moving else ("", 0)
            line = start + _line(record, target).ljust(width)
            print(line, sentence, sep="\n", file=self._stream, flush=True)


def _line(record: HistoryRecord, target: float) -> str:
    return (
        f"iteration {record.iteration}, {record.evaluations} evaluations: "
        f"objective {record.objective:.6g}, gap {record.gap:.1e} (target {target:.1e})"
    )


@dataclass(frozen=True)
class Iterate:
    """The current point, and the masses that the next certificate would use."""

    state: Evaluation
    mass: Vector
    gradient: Vector  # of the Lagrangian
    curvature: InverseCurvature  # handed on from step to step
    decrease: float = np.inf  # of the objective, as the last model predicted
    step: float = np.inf  # length of the last step, relative to the point
    stuck: bool = False  # whether rounding allows no further step
    doubts: int = 0  # how often more was possible than the predicted decrease


I = TypeVar("I", bound=Iterate)  # noqa: E741  reads as in the mathematics of iterations


class Solver(ABC, Generic[I]):
    """Starts at a point and takes steps; the loop decides when to stop."""

    @abstractmethod
    def start(self, problem: Problem, theta: Vector, mass: Vector) -> I:
        """The first iterate."""

    @abstractmethod
    def step(self, problem: Problem, iterate: I) -> I:
        """The next iterate."""


@dataclass(frozen=True)
class Limits:
    """When to stop: ``tol`` is relative to the objective, and to no less than ``FLOOR``.

    Without ``certified``, a predicted decrease within the target is enough.
    """

    tol: float
    max_iter: int
    certified: bool = True

    def target(self, objective: float) -> float:
        return self.tol * max(FLOOR, objective)


class BestSoFar:
    """The best point and the best bound seen so far."""

    def __init__(self, problem: Problem, iterate: Iterate) -> None:
        self.problem = problem
        self._take(iterate.state)
        self.mass, self.bound, self.attempted = iterate.mass, -np.inf, np.inf
        self.idle, self._smallest_gap = 0, np.inf
        self.history: list[HistoryRecord] = []

    def _take(self, state: Evaluation) -> None:
        # Not the state itself, which keeps as many numbers as rows times classes.
        self.theta, self.risks = state.theta, state.risks
        self.objective = self.problem.value(state)

    def see(
        self, iteration: int, iterate: Iterate, limits: Limits, seconds: float
    ) -> HistoryRecord:
        """Record an iterate; certify it when its estimate of the gap is within the target."""
        state = iterate.state
        objective = self.problem.value(state)
        if objective < self.objective and objective - self.bound <= limits.target(objective):
            state = self.problem.exactly(state)  # it would end the solve
            objective = self.problem.value(state)
        self.idle = 0 if objective < self.objective * (1 - 1e-14) else self.idle + 1
        if objective < self.objective:
            self._take(state)
        estimate = self.problem.bound(iterate.state, iterate.mass, iterate.gradient)
        gap = self.objective - estimate
        if gap < 0.99 * self._smallest_gap:
            self.idle, self._smallest_gap = 0, gap
        target = limits.target(self.objective)
        wanted = limits.certified or not self.problem.objective.convex  # starts need no bound
        if wanted and gap <= target and gap <= 0.7 * self.attempted:
            # The estimate, with intercepts that are not optimal, may lie above the objective.
            self.attempted = max(gap, 0.1 * target)
            self.certify(iterate, target)
        record = HistoryRecord(
            iteration,
            self.problem.objective.n_evaluations,
            self.objective,
            self.objective - max(self.bound, estimate),
            seconds,
        )
        self.history.append(record)
        return record

    def certify(self, iterate: Iterate, target: float) -> None:
        state = self.problem.exactly(iterate.state)
        if state is not iterate.state:  # more digits replace fewer
            self._take(state)
        bound = self.problem.exact.certify(state, iterate.mass, target)
        if bound > self.bound or self.bound == -np.inf:  # without any bound, the last masses
            self.bound, self.mass = max(bound, self.bound), iterate.mass

    def doubt(self, iterate: Iterate, target: float) -> NewtonStep | None:
        """A step that may gain more than the target; None where nothing within reach does.

        The step is also tried farther out, where there may be less curvature.
        """
        problem, state, mass = self.problem, iterate.state, iterate.mass
        if self.objective - problem.least <= target:
            return None
        known = iterate.curvature
        if problem.objective.size <= FEW_PARAMETERS:
            base = NewtonInverse(problem, state.theta, mass, precise=True, damping=BARELY)
            known = InverseCurvature(base, state.theta, 0)
        reach = REACH + norm(state.theta)
        step = problem.newton_step(state, mass, iterate.gradient, known.apply, reach, target)
        least = problem.lagrangian(state, mass) - step.gain
        if self.objective - least <= target:
            farther = problem.objective.evaluate(state.theta + FARTHER * step.direction)
            least = min(least, problem.lagrangian(farther, mass))
        return step if self.objective - least > target else None

    @property
    def gap(self) -> float:
        return self.objective - self.bound


def solve(
    problem: Problem,
    solver: Solver[I],
    start: tuple[Vector, Vector],
    limits: Limits,
    progress: Progress,
) -> Solution:
    """Run a solver until the certified gap, or its optimality conditions, meet the tolerance."""
    iterate = solver.start(problem, *start)
    track = BestSoFar(problem, iterate)
    status, iteration, free = Status.MAX_ITER, 0, limits.certified and problem.ridge == 0
    record = track.see(0, iterate, limits, progress.seconds())
    doubted, look, wait = np.inf, 0, 0
    for iteration in range(1, limits.max_iter + 1):
        iterate = solver.step(problem, iterate)
        record = track.see(iteration, iterate, limits, progress.seconds())
        target = limits.target(track.objective)
        progress.show(record, target)
        ended = _status(track, iterate, limits)
        claimed = iterate.decrease <= 0.1 * target and iteration >= look
        if free and (claimed or ended is Status.STALLED):
            step = track.doubt(iterate, target)
            if step is None:
                ended, track.mass = Status.STATIONARY, iterate.mass
            elif ended is None or track.objective < doubted:
                wait = step.products // 2 + (0 if track.objective < doubted else 2 * wait)
                ended, doubted, look = None, track.objective, iteration + wait
                iterate.curvature.update(step.direction, step.image, rescale=False)
                iterate = replace(iterate, stuck=False, doubts=iterate.doubts + 1)
            else:
                ended = Status.UNCONFIRMED
        if ended is not None:
            status = ended
            break
    if not status.converged:
        track.certify(iterate, limits.target(track.objective))
        if track.gap <= limits.target(track.objective):
            status = Status.CONVERGED
    progress.end(record, limits.target(track.objective), status.value)
    return Solution(
        theta=track.theta,
        risks=track.risks,
        mass=track.mass,
        objective=track.objective,
        lower_bound=track.bound,
        last_step=iterate.step,
        n_iter=iteration,
        n_evaluations=problem.objective.n_evaluations,
        status=status,
        history=tuple(track.history),
    )


def _status(track: BestSoFar, iterate: Iterate, limits: Limits) -> Status | None:
    target = limits.target(track.objective)
    if track.gap <= target:
        return Status.CONVERGED
    if not limits.certified and iterate.decrease <= 0.1 * target:
        track.mass = iterate.mass
        return Status.STATIONARY
    patience = track.problem.objective.patience or max(PATIENCE, len(track.history) // 5)
    return Status.STALLED if iterate.stuck or track.idle > patience else None
