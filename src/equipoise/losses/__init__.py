"""Losses: one number per row, from the true class and what was predicted for it.

================================  =============  ========  ==========================
name                              reads          values    the loss of a row
================================  =============  ========  ==========================
``"zero_one"``                    labels         0 or 1    is the prediction wrong?
``"cross_entropy"``               probabilities  [0, inf)  minus log probability
``"cross_entropy_from_scores"``   scores         [0, inf)  the same, of the softmax
``"margin"``                      scores         [0, 1]    hinge loss, cut off at one
``"hinge"``                       scores         [0, inf)  one minus margin, if positive
================================  =============  ========  ==========================
"""

from equipoise.exceptions import InvalidParameterError
from equipoise.losses.base import Loss
from equipoise.losses.cross_entropy import (
    CROSS_ENTROPY,
    CROSS_ENTROPY_FROM_SCORES,
    cross_entropy,
    cross_entropy_from_scores,
)
from equipoise.losses.hinge import HINGE, hinge
from equipoise.losses.margin import MARGIN, margin_loss, margins
from equipoise.losses.zero_one import ZERO_ONE, zero_one

LOSSES: dict[str, Loss] = {
    loss.name: loss for loss in (ZERO_ONE, CROSS_ENTROPY, CROSS_ENTROPY_FROM_SCORES, MARGIN, HINGE)
}


def as_loss(loss: str | Loss) -> Loss:
    """The loss of that name; a :class:`Loss` is returned as it is.

    Examples
    --------
    >>> as_loss("margin").reads
    'scores'
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        names = ", ".join(repr(name) for name in LOSSES)
        raise InvalidParameterError(f"loss must be one of {names}, or a Loss, got {loss!r}.")
    return LOSSES[loss]


__all__ = [
    "LOSSES",
    "Loss",
    "as_loss",
    "cross_entropy",
    "cross_entropy_from_scores",
    "hinge",
    "margin_loss",
    "margins",
    "zero_one",
]
