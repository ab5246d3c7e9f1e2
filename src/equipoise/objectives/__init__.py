"""Objectives: what solvers may ask of data that they never see themselves."""

from equipoise.objectives.base import Evaluation, Objective
from equipoise.objectives.build import open_objective
from equipoise.objectives.linear import LinearObjective

__all__ = ["Evaluation", "LinearObjective", "Objective", "open_objective"]
