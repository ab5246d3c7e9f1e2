"""Decision weights for classifiers with probabilities: how to choose among classes.

A :class:`Goal` says what the weights are for; ``goal.tune(evidence)`` finds them.
"""

from equipoise.decisions.averages import GeometricMean, MacroFBeta, WeightedRecall
from equipoise.decisions.bagging import Bagged, bagged
from equipoise.decisions.evidence import Evidence, decide
from equipoise.decisions.floors import FloorGoal
from equipoise.decisions.goal import Goal, Outcomes, Tuned
from equipoise.decisions.metrics import MetricGoal
from equipoise.decisions.robust import RobustGoal
from equipoise.decisions.shrink import shrunk

__all__ = [
    "Bagged",
    "Evidence",
    "FloorGoal",
    "GeometricMean",
    "Goal",
    "MacroFBeta",
    "MetricGoal",
    "Outcomes",
    "RobustGoal",
    "Tuned",
    "WeightedRecall",
    "bagged",
    "decide",
    "shrunk",
]
