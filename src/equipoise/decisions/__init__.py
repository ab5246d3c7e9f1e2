"""Decision weights for classifiers with probabilities: how to choose among classes."""

from equipoise.decisions.evidence import Evidence, decide
from equipoise.decisions.goal import Goal, Tuned

__all__ = ["Evidence", "Goal", "Tuned", "decide"]
