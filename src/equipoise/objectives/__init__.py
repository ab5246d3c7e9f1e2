"""Objectives: what solvers may ask of data that they never see themselves."""

from equipoise.objectives.base import Evaluation, Objective
from equipoise.objectives.linear_objective import LinearObjective
from equipoise.objectives.matrices import Features
from equipoise.objectives.registry import OBJECTIVES, open_objective

__all__ = [
    "OBJECTIVES",
    "Evaluation",
    "Features",
    "LinearObjective",
    "Objective",
    "open_objective",
]
