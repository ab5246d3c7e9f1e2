r"""Baselines for long tails, each in a few lines and with the right counts.

All take ``class_counts`` of the training rows, :math:`n_i`, checked once; none divides by what
happens to be in a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  as everyone writes it

from equipoise.arrays import ArrayLike
from equipoise.torch.robust_loss import check_columns, check_counts
from equipoise.validation.numbers import check_count, check_number


def class_balanced_weights(class_counts: ArrayLike, beta: float = 0.999) -> Any:
    r"""Weights by the effective number of rows (Cui et al. 2019, equation 2).

    .. math:: w_i \propto \frac{1 - \beta}{1 - \beta^{n_i}}, \qquad \textstyle\sum_i w_i = k

    ``beta=0`` weighs all classes alike; towards one, they weigh by inverse counts. The weights are
    for ``F.cross_entropy(..., reduction="none")``: with ``reduction="mean"`` PyTorch divides by the
    weights of the batch.

    Examples
    --------
    >>> class_balanced_weights([1000, 10], beta=0.999)
    tensor([0.0310, 1.9690])
    """
    counts, _ = check_counts(class_counts)
    rate = check_number(beta, "beta", "[0, 1)")
    # 1 - beta^n, without loss of digits where beta is near one.
    effective = -np.expm1(counts * np.log(rate)) if rate else np.ones_like(counts)
    weights = (1 - rate) / effective
    return _single(weights * len(weights) / weights.sum())


def adjusted_logits(logits: Any, class_counts: ArrayLike, tau: float = 1.0) -> Any:
    r"""Logit adjustment after training: :math:`f_i - \tau \log p_i` (Menon et al. 2021, eq. 9).

    Examples
    --------
    >>> adjusted_logits(torch.zeros(1, 2), [90, 10]).argmax(1).tolist()
    [1]
    """
    return logits - _log_shares(class_counts, tau).to(logits)


class LogitAdjustedLoss(nn.Module):  # type: ignore[misc]
    r"""The cross-entropy of :math:`f_i + \tau \log p_i` (Menon et al. 2021, equation 10).

    Examples
    --------
    >>> loss = LogitAdjustedLoss([90, 10])
    >>> round(float(loss(torch.zeros(1, 2), torch.tensor([1]))), 4)
    2.3026
    """

    def __init__(self, class_counts: ArrayLike, tau: float = 1.0) -> None:
        super().__init__()
        self.register_buffer("shift", _log_shares(class_counts, tau), persistent=False)

    def forward(self, logits: Any, targets: Any) -> Any:
        """The loss of a batch: logits of shape (rows, classes), targets of shape (rows,)."""
        return F.cross_entropy(logits + self.shift.to(logits.dtype), targets)


class FocalLoss(nn.Module):  # type: ignore[misc]
    r"""The focal loss :math:`-(1 - \pi_y)^\gamma \log \pi_y` (Lin et al. 2017).

    Examples
    --------
    >>> round(float(FocalLoss(gamma=2.0)(torch.zeros(1, 2), torch.tensor([1]))), 4)
    0.1733
    """

    def __init__(self, gamma: float = 2.0) -> None:
        super().__init__()
        self.gamma = check_number(gamma, "gamma", "[0, inf)")

    def forward(self, logits: Any, targets: Any) -> Any:
        """The loss of a batch: logits of shape (rows, classes), targets of shape (rows,)."""
        losses = F.cross_entropy(logits, targets, reduction="none")
        return (-torch.expm1(-losses)).pow(self.gamma).mul(losses).mean()


class CosineLinear(nn.Module):  # type: ignore[misc]
    """A last layer whose outputs are cosines, as LDAM needs it.

    Examples
    --------
    >>> layer = CosineLinear(2, 2)
    >>> bool(layer(torch.ones(1, 2)).abs().max() <= 1 + 1e-6)
    True
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features))

    def forward(self, embeddings: Any) -> Any:
        """Cosines of shape (rows, out_features) for embeddings of shape (rows, in_features)."""
        return F.linear(F.normalize(embeddings, dim=1), F.normalize(self.weight, dim=1))


class DeferredLDAMLoss(nn.Module):  # type: ignore[misc]
    r"""Label-distribution-aware margins with deferred reweighting (Cao et al. 2019).

    The cross-entropy of ``scale`` times the cosines of a :class:`CosineLinear`, that of the true
    class less its margin, :math:`\Delta_i \propto n_i^{-1/4}`, the
    largest of them ``margin``. From epoch ``start`` on, rows weigh by
    :func:`class_balanced_weights`; ``set_epoch`` says when.

    Examples
    --------
    >>> loss = DeferredLDAMLoss([90, 10], start=2)
    >>> rows = torch.tensor([[0.9, 0.1]]), torch.tensor([1])
    >>> early = loss(*rows)
    >>> loss.set_epoch(2)
    >>> bool(loss(*rows) > early)  # the rare class weighs more now
    True
    """

    def __init__(
        self,
        class_counts: ArrayLike,
        *,
        start: int,
        margin: float = 0.5,
        scale: float = 30.0,
        beta: float = 0.9999,
    ) -> None:
        super().__init__()
        counts, _ = check_counts(class_counts)
        self.start, self.epoch = check_count(start, "start", 0), 0
        self.scale = check_number(scale, "scale", "(0, inf)")
        largest = check_number(margin, "margin", "(0, inf)")
        margins = (counts / counts.min()) ** -0.25
        self.register_buffer("margins", _single(largest * margins), persistent=False)
        self.register_buffer("weights", class_balanced_weights(counts, beta), persistent=False)

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch begins, counted from 0."""
        self.epoch = check_count(epoch, "epoch", 0)

    def forward(self, cosines: Any, targets: Any) -> Any:
        """The loss of a batch: cosines of shape (rows, classes), targets of shape (rows,)."""
        margins = F.one_hot(targets, len(self.margins)) * self.margins
        losses = F.cross_entropy(self.scale * (cosines - margins), targets, reduction="none")
        if self.epoch >= self.start:
            losses = losses * self.weights[targets]
        return losses.mean()


class GroupDROLoss(nn.Module):  # type: ignore[misc]
    r"""Group DRO by exponentiated gradient, with classes as groups (Sagawa et al. 2020).

    .. math:: q_i \leftarrow q_i \exp(\eta \hat R_i) / Z, \qquad
              \text{loss} = \textstyle\sum_i q_i \hat R_i

    Algorithm 1 draws groups evenly; for rows drawn evenly :math:`\hat R_i` is the sum of losses of
    class ``i`` in the batch over its expected number of rows :math:`b\, n_i / n`, which is without
    bias and zero for a class that is missing. ``adjustment`` adds :math:`C / \sqrt{n_i}` to the
    risks that move the weights.

    Examples
    --------
    >>> loss = GroupDROLoss([50, 50], step_size=1.0)
    >>> _ = loss(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))
    >>> bool(loss.masses[1] > loss.masses[0])
    True
    """

    def __init__(
        self, class_counts: ArrayLike, step_size: float = 0.01, adjustment: float = 0.0
    ) -> None:
        super().__init__()
        counts, _ = check_counts(class_counts)
        self.step_size = check_number(step_size, "step_size", "(0, inf)")
        extra = check_number(adjustment, "adjustment", "[0, inf)") / np.sqrt(counts)
        self.register_buffer("shares", _single(counts / counts.sum()), persistent=False)
        self.register_buffer("extra", _single(extra), persistent=False)
        self.register_buffer("masses", torch.full((len(counts),), 1 / len(counts)))

    def forward(self, logits: Any, targets: Any) -> Any:
        """The loss of a batch: logits of shape (rows, classes), targets of shape (rows,)."""
        check_columns(logits, len(self.masses))
        losses = F.cross_entropy(logits.float(), targets, reduction="none")
        sums = losses.new_zeros(len(self.masses)).index_add(0, targets, losses)
        risks = sums / (self.shares * len(targets))
        if self.training:
            with torch.no_grad():
                grown = self.masses * torch.exp(self.step_size * (risks + self.extra))
                self.masses.copy_(grown / grown.sum())
        return (self.masses.clone() * risks).sum()


def _log_shares(class_counts: ArrayLike, tau: float) -> Any:
    counts, _ = check_counts(class_counts)
    return _single(check_number(tau, "tau", "[0, inf)") * np.log(counts / counts.sum()))


def _single(values: Any) -> Any:
    return torch.tensor(np.asarray(values), dtype=torch.float32)
