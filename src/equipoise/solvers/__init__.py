"""Solvers of the minimax problem: one contract, one loop, one result."""

from equipoise.solvers.base import Limits, Progress, Solution, Solver, Status
from equipoise.solvers.problem import Problem
from equipoise.solvers.registry import SOLVERS, NamedSolver, choose, run

__all__ = [
    "SOLVERS",
    "Limits",
    "NamedSolver",
    "Problem",
    "Progress",
    "Solution",
    "Solver",
    "Status",
    "choose",
    "run",
]
