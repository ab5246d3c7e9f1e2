"""Displays: pictures of analyses in scikit-learn's form, each with the data behind it.

Every display is made by ``from_estimator``, ``from_predictions`` or from the result of an
analysis, draws itself by ``plot(ax=None)`` and gives its numbers by ``to_frame()``. Matplotlib is
loaded when something is drawn.
"""

from equipoise.display.bars import ErrorDecompositionDisplay, WorstCaseWeightsDisplay
from equipoise.display.curves import ConvergenceDisplay, RobustPathDisplay
from equipoise.display.heatmap import TradeoffDisplay
from equipoise.display.points import ClassRisksDisplay, ReliabilityDisplay

__all__ = [
    "ClassRisksDisplay",
    "ConvergenceDisplay",
    "ErrorDecompositionDisplay",
    "ReliabilityDisplay",
    "RobustPathDisplay",
    "TradeoffDisplay",
    "WorstCaseWeightsDisplay",
]
