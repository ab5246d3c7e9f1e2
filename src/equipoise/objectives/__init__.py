"""Objectives: class risks and derivatives of a linear model, on data that no solver sees."""

from equipoise.objectives.base import Evaluation, Objective
from equipoise.objectives.capabilities import (
    ClassGradients,
    Diagonals,
    Hessians,
    OtherLosses,
    RiskGradients,
    ScoreInverses,
    moves_probabilities,
    offered,
)
from equipoise.objectives.linear_objective import LinearObjective
from equipoise.objectives.matrices import Features
from equipoise.objectives.partitioned import PartitionedObjective
from equipoise.objectives.registry import OBJECTIVES, open_objective
from equipoise.objectives.rows import RowsInBlocks, RowsInMemory, TrainingRows

__all__ = [
    "OBJECTIVES",
    "ClassGradients",
    "Diagonals",
    "Evaluation",
    "Features",
    "Hessians",
    "LinearObjective",
    "Objective",
    "OtherLosses",
    "PartitionedObjective",
    "RiskGradients",
    "RowsInBlocks",
    "RowsInMemory",
    "ScoreInverses",
    "TrainingRows",
    "moves_probabilities",
    "offered",
    "open_objective",
]
