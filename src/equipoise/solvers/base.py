"""The contract of a solver, the one loop that runs them all, and what it hands back."""

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from shutil import get_terminal_size
from time import perf_counter
from typing import Generic, NamedTuple, TextIO, TypeVar

import numpy as np

from equipoise.arrays import Vector
from equipoise.objectives import Evaluation
from equipoise.solvers.problem import Problem

# A gap counts relative to the objective, but to no less than this.
FLOOR = 1e-3
# A solve ends when neither objective nor gap has moved for so many iterations, or a fifth of all.
PATIENCE = 250


class Status(Enum):
    """How a solve ended, with the sentence that the user reads."""

    CONVERGED = "The certified gap reached the tolerance."
    STATIONARY = "The optimality conditions hold to the tolerance (no bound without a penalty)."
    STALLED = "Rounding stopped the progress before the gap reached the tolerance."
    MAX_ITER = "The iterations ran out before the gap reached the tolerance."

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
    """The best point found, the masses that certify it, and the record of the solve."""

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

    @property
    def gap(self) -> float:
        return self.objective - self.lower_bound


class Progress:
    """Writes the current state of a solve over itself on a terminal, and the end everywhere.

    It also keeps the clock that the history is written by.
    """

    def __init__(self, verbose: int = 0, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._on = verbose > 0
        self._moving = self._on and self._stream.isatty()
        # A line as long as the terminal is wide would scroll.
        self._width = get_terminal_size().columns - 1
        self._began = perf_counter()

    def seconds(self) -> float:
        """Time since the solve was asked for."""
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
    """Where a solver stands: the point and the masses that the next certificate would use."""

    state: Evaluation
    mass: Vector
    gradient: Vector  # of the Lagrangian
    decrease: float = np.inf  # of the objective, as the last model promised
    step: float = np.inf  # length of the last one, relative to the point
    stuck: bool = False  # whether rounding allows no further step


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

    Without ``certified``, a promised decrease within the target is enough.
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
        self.theta, self.risks = iterate.state.theta, iterate.state.risks
        self.objective = problem.value(iterate.state)
        self.mass, self.bound, self.attempted = iterate.mass, -np.inf, np.inf
        self.idle, self._smallest_gap = 0, np.inf
        self.history: list[HistoryRecord] = []

    def see(self, iteration: int, iterate: Iterate, target: float, seconds: float) -> HistoryRecord:
        """Take note of an iterate; certify it when its own estimate promises success."""
        objective = self.problem.value(iterate.state)
        self.idle = 0 if objective < self.objective * (1 - 1e-14) else self.idle + 1
        if objective < self.objective:
            # Not the state itself: what it keeps is as much as rows times classes.
            self.theta, self.risks = iterate.state.theta, iterate.state.risks
            self.objective = objective
        estimate = self.problem.bound(iterate.state, iterate.mass, iterate.gradient)
        gap = self.objective - estimate
        if gap < 0.99 * self._smallest_gap:
            self.idle, self._smallest_gap = 0, gap
        if gap <= target and gap <= 0.7 * self.attempted:
            # The estimate, with intercepts as they are, may even lie above the objective.
            self.attempted = max(gap, 0.1 * target)
            self.certify(iterate)
        record = HistoryRecord(
            iteration,
            self.problem.objective.n_evaluations,
            self.objective,
            self.objective - max(self.bound, estimate),
            seconds,
        )
        self.history.append(record)
        return record

    def certify(self, iterate: Iterate) -> None:
        bound = self.problem.certify(iterate.state, iterate.mass)
        if bound > self.bound or self.bound == -np.inf:  # without any bound, the last masses
            self.bound, self.mass = max(bound, self.bound), iterate.mass

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
    status, iteration = Status.MAX_ITER, 0
    record = track.see(0, iterate, limits.target(track.objective), progress.seconds())
    for iteration in range(1, limits.max_iter + 1):
        iterate = solver.step(problem, iterate)
        target = limits.target(track.objective)
        record = track.see(iteration, iterate, target, progress.seconds())
        progress.show(record, target)
        found = _status(track, iterate, target, limits.certified and problem.ridge > 0)
        if found is not None:
            status = found
            break
    if not status.converged:
        track.certify(iterate)
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


def _status(track: BestSoFar, iterate: Iterate, target: float, certified: bool) -> Status | None:
    if track.gap <= target:
        return Status.CONVERGED
    if not certified and iterate.decrease <= 0.1 * target:
        track.mass = iterate.mass
        return Status.STATIONARY
    patience = max(PATIENCE, len(track.history) // 5)
    return Status.STALLED if iterate.stuck or track.idle > patience else None
