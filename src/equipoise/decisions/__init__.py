"""Decision weights for classifiers with probabilities: the search for them, and what they do.

:func:`tune` finds the weights that a criterion asks for; :func:`tune_weights` tunes them on folds,
and judges them on rows left out.
"""

from equipoise.decisions.left_out import Predictions, decide
from equipoise.decisions.search import tune
from equipoise.decisions.tuning import TunedWeights, tune_weights

__all__ = ["Predictions", "TunedWeights", "decide", "tune", "tune_weights"]
