"""Objectives: what solvers may ask of data that they never see themselves."""

from equipoise.objectives.linear_objective import Evaluation, LinearObjective
from equipoise.objectives.matrices import Features
from equipoise.objectives.registry import OBJECTIVES, open_objective

__all__ = [
    "OBJECTIVES",
    "Evaluation",
    "Features",
    "LinearObjective",
    "open_objective",
]
