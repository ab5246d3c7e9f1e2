"""Solvers of the minimax problem: one contract, one loop, one result."""

from equipoise.solvers.base import Iterate, Limits, Solver, solve
from equipoise.solvers.choose import SOLVERS, choose, run
from equipoise.solvers.descent_ascent import Constants, DescentAscent
from equipoise.solvers.multipliers import Multipliers
from equipoise.solvers.problem import Problem
from equipoise.solvers.progress import Progress
from equipoise.solvers.solution import Record, Solution, Status
from equipoise.solvers.sqp import MinimaxSqp

__all__ = [
    "SOLVERS",
    "Constants",
    "DescentAscent",
    "Iterate",
    "Limits",
    "MinimaxSqp",
    "Multipliers",
    "Problem",
    "Progress",
    "Record",
    "Solution",
    "Solver",
    "Status",
    "choose",
    "run",
    "solve",
]
