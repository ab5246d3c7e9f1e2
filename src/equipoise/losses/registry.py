"""All losses by name: one file and one line here for each."""

from __future__ import annotations

from equipoise.exceptions import InvalidParameterError
from equipoise.losses.base import Loss, TrainedLoss
from equipoise.losses.cross_entropy import CROSS_ENTROPY, CROSS_ENTROPY_FROM_SCORES
from equipoise.losses.hinges import HINGE, SMOOTHED_HINGE, SQUARED_HINGE, ZERO_ONE
from equipoise.losses.smooth_margin import MARGIN
from equipoise.registry import Registry

LOSSES: Registry[Loss] = Registry(
    "loss",
    ZERO_ONE,
    CROSS_ENTROPY,
    CROSS_ENTROPY_FROM_SCORES,
    MARGIN,
    HINGE,
    SQUARED_HINGE,
    SMOOTHED_HINGE,
)


def as_loss(loss: str | Loss) -> Loss:
    """The loss of that name; a :class:`Loss` is returned as it is.

    Examples
    --------
    >>> as_loss("margin").reads
    'scores'
    """
    return loss if isinstance(loss, Loss) else LOSSES.find(loss)


def as_trained(loss: str | Loss) -> TrainedLoss:
    """The side of a loss, given as it is or by name, that a model can be trained with.

    Examples
    --------
    >>> as_trained("squared_hinge")
    SquaredHinge()
    """
    resolved_loss = as_loss(loss)
    if resolved_loss.trained is None:
        names = ", ".join(repr(name) for name, known in LOSSES.items() if known.trained)
        raise InvalidParameterError(
            f"loss must be one that can be trained ({names}), got {resolved_loss.name!r}."
        )
    return resolved_loss.trained
