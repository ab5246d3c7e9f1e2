"""Class weights you do not have to guess: robust classification over sets of weightings.

Names are loaded when they are first used, so that ``import equipoise`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise import (
        analysis,
        datasets,
        decisions,
        display,
        estimators,
        exceptions,
        goals,
        losses,
        models,
        objectives,
        paper,
        report,
        risks,
        sets,
        solvers,
        tables,
        weights,
    )
    from equipoise.analysis import robust_path, weight_tradeoff
    from equipoise.estimators import (
        LocalPolynomialClassifier,
        PlugInClassifier,
        RobustLinearClassifier,
        RobustLogisticRegression,
        tune_weights,
    )
    from equipoise.goals import CostMatrix, RecallFloors
    from equipoise.models import load_model, save_model
    from equipoise.report.compare import compare
    from equipoise.risks import (
        RiskScorer,
        balanced_risk,
        class_risk_intervals,
        class_risks,
        population_proba,
        robust_risk,
        standard_risk,
        weighted_risk,
        worst_case_weights,
        worst_class_interval,
        worst_class_risk,
    )
    from equipoise.sets import (
        FixedWeights,
        LabelCVaR,
        LabelHCVaR,
        PriorBall,
        PriorBox,
        Uncertainty,
        WeightBox,
        WeightHull,
        WorstClass,
    )
    from equipoise.weights import ByClass

__version__ = "0.1.0"

__all__ = [
    "ByClass",
    "CostMatrix",
    "FixedWeights",
    "LabelCVaR",
    "LabelHCVaR",
    "LocalPolynomialClassifier",
    "PlugInClassifier",
    "PriorBall",
    "PriorBox",
    "RecallFloors",
    "RiskScorer",
    "RobustLinearClassifier",
    "RobustLogisticRegression",
    "Uncertainty",
    "WeightBox",
    "WeightHull",
    "WorstClass",
    "analysis",
    "balanced_risk",
    "class_risk_intervals",
    "class_risks",
    "compare",
    "datasets",
    "decisions",
    "display",
    "estimators",
    "exceptions",
    "goals",
    "load_model",
    "losses",
    "models",
    "objectives",
    "paper",
    "population_proba",
    "report",
    "risks",
    "robust_path",
    "robust_risk",
    "save_model",
    "sets",
    "solvers",
    "standard_risk",
    "tables",
    "tune_weights",
    "weight_tradeoff",
    "weighted_risk",
    "weights",
    "worst_case_weights",
    "worst_class_interval",
    "worst_class_risk",
]

# Where a name lives; whatever is public and not listed here is a submodule.
_HOME = {
    "ByClass": "weights",
    "CostMatrix": "goals",
    "FixedWeights": "sets",
    "LabelCVaR": "sets",
    "LabelHCVaR": "sets",
    "LocalPolynomialClassifier": "estimators",
    "PlugInClassifier": "estimators",
    "PriorBall": "sets",
    "PriorBox": "sets",
    "RecallFloors": "goals",
    "RiskScorer": "risks",
    "RobustLinearClassifier": "estimators",
    "RobustLogisticRegression": "estimators",
    "Uncertainty": "sets",
    "WeightBox": "sets",
    "WeightHull": "sets",
    "WorstClass": "sets",
    "balanced_risk": "risks",
    "class_risk_intervals": "risks",
    "class_risks": "risks",
    "compare": "report",
    "load_model": "models",
    "population_proba": "risks",
    "robust_path": "analysis",
    "robust_risk": "risks",
    "save_model": "models",
    "standard_risk": "risks",
    "tune_weights": "estimators",
    "weight_tradeoff": "analysis",
    "weighted_risk": "risks",
    "worst_case_weights": "risks",
    "worst_class_interval": "risks",
    "worst_class_risk": "risks",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _HOME:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    # The next access finds it without coming here.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
