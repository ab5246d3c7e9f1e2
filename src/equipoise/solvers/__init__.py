"""Solvers of the minimax problem: one contract, one loop, one result."""

from equipoise.solvers.base import Iterate, Limits, Solver, solve
from equipoise.solvers.descent_ascent import DescentAscent, StepConstants
from equipoise.solvers.multipliers import Multipliers
from equipoise.solvers.problem import Problem
from equipoise.solvers.registry import SOLVERS, NamedSolver, choose, run
from equipoise.solvers.solution import HistoryRecord, Progress, Solution, Status
from equipoise.solvers.sqp import MinimaxSqp

__all__ = [
    "SOLVERS",
    "DescentAscent",
    "HistoryRecord",
    "Iterate",
    "Limits",
    "MinimaxSqp",
    "Multipliers",
    "NamedSolver",
    "Problem",
    "Progress",
    "Solution",
    "Solver",
    "Status",
    "StepConstants",
    "choose",
    "run",
    "solve",
]
