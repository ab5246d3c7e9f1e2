"""Displays: pictures of analyses in scikit-learn's form, each with the data behind it.

Every display is made by ``from_estimator``, ``from_predictions`` or from the result of an
analysis, draws itself by ``plot(ax=None)`` and gives its numbers by ``frame()``. Matplotlib is
loaded when something is drawn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.display.class_risks import ClassRisksDisplay
    from equipoise.display.convergence import ConvergenceDisplay
    from equipoise.display.decomposition import ErrorDecompositionDisplay
    from equipoise.display.path import RobustPathDisplay
    from equipoise.display.reliability import ReliabilityDisplay
    from equipoise.display.tradeoff import TradeoffDisplay
    from equipoise.display.worst_case import WorstCaseWeightsDisplay

__all__ = [
    "ClassRisksDisplay",
    "ConvergenceDisplay",
    "ErrorDecompositionDisplay",
    "ReliabilityDisplay",
    "RobustPathDisplay",
    "TradeoffDisplay",
    "WorstCaseWeightsDisplay",
]

_HOME = {
    "ClassRisksDisplay": "class_risks",
    "ConvergenceDisplay": "convergence",
    "ErrorDecompositionDisplay": "decomposition",
    "ReliabilityDisplay": "reliability",
    "RobustPathDisplay": "path",
    "TradeoffDisplay": "tradeoff",
    "WorstCaseWeightsDisplay": "worst_case",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
