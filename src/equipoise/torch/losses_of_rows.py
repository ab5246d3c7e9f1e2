"""Losses of rows of logits, with the values that the losses of the same names have in NumPy."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812  as everyone writes it

from equipoise.exceptions import InvalidParameterError
from equipoise.text import not_among
from equipoise.validation.numbers import check_number

# Losses of the rows from logits of shape (rows, classes) and positions of the true classes.
LossOfRows = Callable[[Any, Any], Any]


def squared_hinge_of_rows(logits: Any, labels: Any) -> Any:
    """The squared hinge loss, summed over the rivals of the true class."""
    return (_excess(logits, labels).clamp_min(0.0) ** 2).sum(1)


def smoothed_hinge_of_rows(logits: Any, labels: Any) -> Any:
    """The multiclass hinge loss, its corners rounded by quadratics."""
    excess = _excess(logits, labels).clamp_min(0.0)
    order = excess.sort(1, descending=True).values
    counts = torch.arange(1, logits.shape[1] + 1, device=logits.device)
    level = ((order.cumsum(1) - 1) / counts).amax(1, keepdim=True).clamp_min(0.0)
    # The best shares are constants for the derivative (Danskin's theorem).
    shares = (excess - level).clamp_min(0.0).detach()
    return (shares * (excess - shares / 2)).sum(1)


def _excess(logits: Any, labels: Any) -> Any:
    """By how much each rival comes too close; -inf for the class itself."""
    true_class = labels[:, None]
    return (1 + logits - logits.gather(1, true_class)).scatter(1, true_class, -torch.inf)


_BY_NAME: dict[str, LossOfRows] = {
    "squared_hinge": squared_hinge_of_rows,
    "smoothed_hinge": smoothed_hinge_of_rows,
}


def loss_of_rows(loss: str | LossOfRows, label_smoothing: float = 0.0) -> LossOfRows:
    """The loss of that name, or a function of ``(logits, labels)`` of the user's own."""
    smoothing = check_number(label_smoothing, "label_smoothing", "[0, 1]")
    if loss == "cross_entropy":
        return partial(F.cross_entropy, reduction="none", label_smoothing=smoothing)
    if smoothing:
        raise InvalidParameterError(
            f'label_smoothing is a part of loss="cross_entropy", got {smoothing} for {loss!r}.'
        )
    if callable(loss):
        return loss
    if loss not in _BY_NAME:
        names = ("cross_entropy", *_BY_NAME)
        raise InvalidParameterError(not_among("loss", loss, names))
    return _BY_NAME[loss]
