"""Displays: pictures of analyses in scikit-learn's form, each with the data behind it.

Every display is made by ``from_estimator``, ``from_predictions`` or from the result of an
analysis, draws itself by ``plot(ax=None)`` and gives its numbers by ``to_frame()``. Matplotlib is
loaded when something is drawn. ``plt.style.use("equipoise.display.quiet")`` gives figures of your
own the same look.
"""

from equipoise.display.frequencies import ClassFrequenciesDisplay, PriorMonitorDisplay
from equipoise.display.frontier import FrontierDisplay
from equipoise.display.label_sets import CoveragePathDisplay
from equipoise.display.points import ClassRisksDisplay, ReliabilityDisplay
from equipoise.display.robust_fits import (
    ConvergenceDisplay,
    PathDisplay,
    RobustPathDisplay,
)
from equipoise.display.weightings import (
    ErrorDecompositionDisplay,
    TradeoffDisplay,
    WorstCaseWeightsDisplay,
)

__all__ = [
    "ClassFrequenciesDisplay",
    "ClassRisksDisplay",
    "ConvergenceDisplay",
    "CoveragePathDisplay",
    "ErrorDecompositionDisplay",
    "FrontierDisplay",
    "PathDisplay",
    "PriorMonitorDisplay",
    "ReliabilityDisplay",
    "RobustPathDisplay",
    "TradeoffDisplay",
    "WorstCaseWeightsDisplay",
]
