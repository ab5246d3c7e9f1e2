"""Class weights you do not have to guess: robust classification over sets of weightings.

``__all__`` and ``PUBLIC_MODULES`` are what ``docs/policy.md`` promises; all else may change in any
version. Names are loaded when they are first used, so that ``import equipoise`` costs next to
nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Type checkers take a name for public only where it is imported as itself.
if TYPE_CHECKING:
    from equipoise import blocks as blocks
    from equipoise import datasets as datasets
    from equipoise import display as display
    from equipoise import exceptions as exceptions
    from equipoise import goals as goals
    from equipoise import losses as losses
    from equipoise import metrics as metrics
    from equipoise import risks as risks
    from equipoise import sets as sets
    from equipoise import shift as shift
    from equipoise.analysis import robust_path as robust_path
    from equipoise.analysis import weight_tradeoff as weight_tradeoff
    from equipoise.estimators import PredictionSets as PredictionSets
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
    from equipoise.sets import WeightBox as WeightBox
    from equipoise.sets import WeightHull as WeightHull
    from equipoise.sets import WeightRatio as WeightRatio
    from equipoise.sets import WorstClass as WorstClass

__version__ = "0.1.0"

# The public modules, with their ``__all__``. Those that need an optional package are imported by
# their own names alone.
_LOADED_MODULES = (
    "blocks",
    "datasets",
    "display",
    "exceptions",
    "goals",
    "losses",
    "metrics",
    "risks",
    "sets",
    "shift",
)
PUBLIC_MODULES = (*_LOADED_MODULES, "onnx", "torch")

# The public names at the top level, by the module that each comes from.
_NAMES = {
    "analysis": ["robust_path", "weight_tradeoff"],
    "estimators": [
        "PredictionSets",
        "RobustClassifier",
        "RobustLinearClassifier",
        "RobustLogisticRegression",
        "RobustLogisticRegressionCV",
        "RobustnessCV",
        "TunedDecisionClassifier",
        "population_proba",
        "tune_weights",
    ],
    "goals": ["CostMatrix", "RecallFloors"],
    "persistence": ["load_model", "save_model"],
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
        "WeightBox",
        "WeightHull",
        "WeightRatio",
        "WorstClass",
    ],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = list(_HOME) + list(_LOADED_MODULES)


def __getattr__(name: str) -> Any:
    if name in _LOADED_MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    # The next access finds it without coming here.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "PUBLIC_MODULES", "__version__"])
