"""Class weights you do not have to guess: robust classification over sets of weightings.

Names are loaded when they are first used, so that ``import equipoise`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Type checkers take a name for public only where it is imported as itself.
if TYPE_CHECKING:
    from equipoise import analysis as analysis
    from equipoise import blocks as blocks
    from equipoise import datasets as datasets
    from equipoise import decisions as decisions
    from equipoise import display as display
    from equipoise import estimators as estimators
    from equipoise import exceptions as exceptions
    from equipoise import goals as goals
    from equipoise import losses as losses
    from equipoise import metrics as metrics
    from equipoise import objectives as objectives
    from equipoise import paper as paper
    from equipoise import persistence as persistence
    from equipoise import report as report
    from equipoise import risks as risks
    from equipoise import sets as sets
    from equipoise import solvers as solvers
    from equipoise import tables as tables
    from equipoise import theory as theory
    from equipoise import weights as weights
    from equipoise.analysis import robust_path as robust_path
    from equipoise.analysis import weight_tradeoff as weight_tradeoff
    from equipoise.estimators import RobustClassifier as RobustClassifier
    from equipoise.estimators import RobustLinearClassifier as RobustLinearClassifier
    from equipoise.estimators import RobustLogisticRegression as RobustLogisticRegression
    from equipoise.estimators import RobustLogisticRegressionCV as RobustLogisticRegressionCV
    from equipoise.estimators import RobustnessCV as RobustnessCV
    from equipoise.estimators import TunedDecisionClassifier as TunedDecisionClassifier
    from equipoise.estimators import population_proba as population_proba
    from equipoise.estimators import tune_weights as tune_weights
    from equipoise.goals import CostMatrix as CostMatrix
    from equipoise.goals import RecallFloors as RecallFloors
    from equipoise.persistence import load_model as load_model
    from equipoise.persistence import save_model as save_model
    from equipoise.report import compare as compare
    from equipoise.risks import RiskScorer as RiskScorer
    from equipoise.risks import class_risk_intervals as class_risk_intervals
    from equipoise.risks import class_risks as class_risks
    from equipoise.risks import rescale_proba as rescale_proba
    from equipoise.risks import robust_risk_interval as robust_risk_interval
    from equipoise.sets import FixedWeights as FixedWeights
    from equipoise.sets import LabelCVaR as LabelCVaR
    from equipoise.sets import LabelHCVaR as LabelHCVaR
    from equipoise.sets import PriorBall as PriorBall
    from equipoise.sets import PriorBox as PriorBox
    from equipoise.sets import Uncertainty as Uncertainty
    from equipoise.sets import WeightBox as WeightBox
    from equipoise.sets import WeightHull as WeightHull
    from equipoise.sets import WeightRatio as WeightRatio
    from equipoise.sets import WorstClass as WorstClass
    from equipoise.theory import LocalPolynomialClassifier as LocalPolynomialClassifier
    from equipoise.weights import ByClass as ByClass

__version__ = "0.1.0"

# What the top level offers: its rooms, and the names that are worth a shorter way.
_ROOMS = {
    "analysis": ["robust_path", "weight_tradeoff"],
    "blocks": [],
    "datasets": [],
    "decisions": [],
    "display": [],
    "estimators": [
        "TunedDecisionClassifier",
        "RobustClassifier",
        "RobustLinearClassifier",
        "RobustLogisticRegression",
        "RobustLogisticRegressionCV",
        "RobustnessCV",
        "population_proba",
        "tune_weights",
    ],
    "exceptions": [],
    "goals": ["CostMatrix", "RecallFloors"],
    "losses": [],
    "metrics": [],
    "persistence": ["load_model", "save_model"],
    "objectives": [],
    "paper": [],
    "report": ["compare"],
    "risks": [
        "RiskScorer",
        "class_risk_intervals",
        "class_risks",
        "rescale_proba",
        "robust_risk_interval",
    ],
    "sets": [
        "FixedWeights",
        "LabelCVaR",
        "LabelHCVaR",
        "PriorBall",
        "PriorBox",
        "Uncertainty",
        "WeightBox",
        "WeightHull",
        "WeightRatio",
        "WorstClass",
    ],
    "solvers": [],
    "tables": [],
    "theory": ["LocalPolynomialClassifier"],
    "weights": ["ByClass"],
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = list(_ROOMS | _HOME)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    # The next access finds it without coming here.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
