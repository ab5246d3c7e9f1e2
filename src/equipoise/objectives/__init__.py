"""Objectives: what solvers may ask of data that they never see themselves."""

from equipoise.objectives.base import Evaluation, Objective
from equipoise.objectives.linear_objective import LinearObjective
from equipoise.objectives.matrices import Features
from equipoise.objectives.partitioned import PartitionedObjective
from equipoise.objectives.registry import OBJECTIVES, open_objective
from equipoise.objectives.rows import RowsInBlocks, RowsInMemory, TrainingRows

__all__ = [
    "OBJECTIVES",
    "Evaluation",
    "Features",
    "LinearObjective",
    "Objective",
    "PartitionedObjective",
    "RowsInBlocks",
    "RowsInMemory",
    "TrainingRows",
    "open_objective",
]
