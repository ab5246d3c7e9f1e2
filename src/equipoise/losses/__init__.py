"""Losses: one number per row, from the true class and what was predicted for it.

================================  =============  ========  =======  ==========================
name                              reads          values    trained  the loss of a row
================================  =============  ========  =======  ==========================
``"zero_one"``                    labels         0 or 1             is the prediction wrong?
``"cross_entropy"``               probabilities  [0, inf)  yes      minus log probability
``"cross_entropy_from_scores"``   scores         [0, inf)  yes      the same, of the softmax
``"margin"``                      scores         [0, 1]    rounded  hinge loss, cut off at one
``"hinge"``                       scores         [0, inf)           one minus margin, if positive
``"squared_hinge"``               scores         [0, inf)  yes      its square, over all rivals
``"smoothed_hinge"``              scores         [0, inf)  yes      hinge loss, corners rounded
================================  =============  ========  =======  ==========================

A new loss is one file and one line in ``registry.py``; ``LOSSES.register`` adds one from outside.
"""

from equipoise.losses.base import Loss, TrainedLoss
from equipoise.losses.cross_entropy import cross_entropy, cross_entropy_from_scores
from equipoise.losses.hinges import hinge, margin_loss, margins, zero_one
from equipoise.losses.registry import LOSSES, as_loss, as_trained

__all__ = [
    "LOSSES",
    "Loss",
    "TrainedLoss",
    "as_loss",
    "as_trained",
    "cross_entropy",
    "cross_entropy_from_scores",
    "hinge",
    "margin_loss",
    "margins",
    "zero_one",
]
