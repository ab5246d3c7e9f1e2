r"""The worst masses of a set, for risks that are tensors on a device.

A *rule* is the numerical set as a module: its arrays are buffers, and ``torch.compile`` takes it as
it is. Sets that are a box or the hull of known corners have rules of a fixed number of tensor
operations, so that nothing waits for a value. Every other set is evaluated by its own ``maximize``
and ``project`` on the host, at the cost of one wait a step.

Conventions
-----------
``risks`` and masses are vectors with one entry per class, in the type of the buffers. A *state* is
where mirror ascent starts: the masses themselves, or the shares of the corners of a hull.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import nn

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import MassSet
from equipoise.sets.filling import fill

# Share of the start that mirror ascent never gives up: from nothing, no factor leads back.
KEPT = 1e-6


def mass_rule(mass_set: MassSet, prior: Vector) -> MassRule:
    """The rule of a numerical set; mirror ascent starts as near to the prior as the set allows."""
    if mass_set.box is not None:
        return BoxRule(*mass_set.box, prior)
    if mass_set.corners is not None:
        return CornerRule(mass_set.corners)
    return HostRule(mass_set, prior)


class MassRule(nn.Module, ABC):  # type: ignore[misc]
    """Where the worst masses of a set are, and how mirror ascent moves towards them."""

    @abstractmethod
    def forward(self, risks: Any) -> Any:
        r"""Masses :math:`m \in \arg\max_{m \in M} \langle m, r \rangle`."""

    @abstractmethod
    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        r"""The state that maximises :math:`\text{rate} \langle m, r \rangle - D(m, \text{state})`.

        :math:`D` is the Kullback-Leibler divergence, or what the rule names instead.
        """

    def masses(self, state: Any) -> Any:
        """The masses of a state."""
        return state

    def hold(self, **arrays: NDArray[Any] | float) -> None:
        """Keep constants where the module is, but out of checkpoints."""
        for name, values in arrays.items():
            tensor = torch.tensor(np.array(values, dtype=np.float64))
            self.register_buffer(name, tensor, persistent=False)


class BoxRule(MassRule):
    """Masses between floors and caps."""

    def __init__(self, lower: Vector, upper: Vector, prior: Vector) -> None:
        super().__init__()
        self.is_simplex = bool(np.all(lower == 0) and np.all(upper == 1))
        self.hold(lower=lower, upper=upper)
        positive = torch.tensor(np.maximum(prior, KEPT))
        self.hold(start=scale_between(positive, self.lower, self.upper).numpy())

    def forward(self, risks: Any) -> Any:
        if self.is_simplex:
            worst = (risks == risks.max()).to(risks.dtype)
            return worst / worst.sum()
        return self.lower + fill(risks, self.upper - self.lower, 1 - self.lower.sum())

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        pushed = state * torch.exp(rate * (risks - risks.max())) + KEPT * self.start
        if self.is_simplex:
            return pushed / pushed.sum()
        return scale_between(pushed, self.lower, self.upper)


def scale_between(masses: Any, lower: Any, upper: Any) -> Any:
    r"""Positive masses scaled until they sum to one, each kept between its bounds.

    .. math:: \min_m \; KL(m, v) \quad \text{subject to} \quad
              \text{lower} \le m \le \text{upper}, \; \textstyle\sum_i m_i = 1.

    The solution is ``clip(factor * v, lower, upper)``; its sum is piecewise linear in the factor.
    """
    breaks, order = torch.cat([lower / masses, upper / masses]).sort()
    rises = torch.cat([masses, -masses])[order].cumsum(0)[:-1] * breaks.diff()
    sums = lower.sum() + torch.cat([rises.new_zeros(1), rises.cumsum(0)])
    left = torch.where(sums <= 1, breaks, breaks[0]).max()
    right = torch.where(sums >= 1, breaks, breaks[-1]).min()
    low, high = ((factor * masses).clamp(lower, upper).sum() for factor in (left, right))
    way = (1 - low) / (high - low).clamp_min(torch.finfo(masses.dtype).tiny)
    factor = left + way.clamp(0.0, 1.0) * (right - left).clamp_min(0.0)
    return (factor * masses).clamp(lower, upper)


class CornerRule(MassRule):
    """Mixtures of corners; corners that tie share alike. Mirror ascent moves the shares."""

    def __init__(self, corners: Matrix) -> None:
        super().__init__()
        self.hold(corners=corners, start=np.full(len(corners), 1 / len(corners)))

    def forward(self, risks: Any) -> Any:
        values = self._values(risks)
        best = (values == values.max()).to(values.dtype)
        return self.masses(best / best.sum())

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        values = self._values(risks)
        pushed = state * torch.exp(rate * (values - values.max())) + KEPT * self.start
        return pushed / pushed.sum()

    def masses(self, state: Any) -> Any:
        return (state[:, None] * self.corners).sum(0)

    def _values(self, risks: Any) -> Any:
        # Infinitely bad classes outrank all others.
        infinite = torch.isinf(risks)
        ranked = torch.where(infinite.any(), infinite.to(risks.dtype), risks)
        return (self.corners * ranked).sum(1)


class HostRule(MassRule):
    """A set without a rule of its own, by its ``maximize`` and ``project`` on the host."""

    def __init__(self, mass_set: MassSet, prior: NDArray[np.float64]) -> None:
        super().__init__()
        self.mass_set, self.key = mass_set, _lend(mass_set)
        self.hold(start=mass_set.project(prior))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.key = _lend(self.mass_set)

    def forward(self, risks: Any) -> Any:
        return torch.ops.equipoise.on_host(risks, self.key, False)

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        """By ``k / 2`` times the squared distance, for ``k`` classes: a projection.

        Around equal masses that is the Kullback-Leibler divergence.
        """
        return torch.ops.equipoise.on_host(state + rate * risks / len(risks), self.key, True)


_LENT: WeakValueDictionary[int, MassSet] = WeakValueDictionary()
_KEYS = count()


def _lend(mass_set: MassSet) -> int:
    """A number for the set, by which compiled programs know it."""
    key = next(_KEYS)
    _LENT[key] = mass_set
    return key


def _on_host(vector: torch.Tensor, key: int, nearest: bool) -> torch.Tensor:
    mass_set = _LENT[key]
    values = vector.detach().cpu().double().numpy()
    masses = mass_set.project(values) if nearest else mass_set.maximize(values)
    return torch.tensor(masses, dtype=vector.dtype, device=vector.device)


torch.library.custom_op("equipoise::on_host", _on_host, mutates_args=()).register_fake(
    lambda vector, key, nearest: torch.empty_like(vector)
)


def check_ascent(ascent: Any, mass_set: MassSet) -> float | None:
    """How far the masses go from their mean, or None for the exact maximiser."""
    if isinstance(ascent, str) and ascent == "auto":
        ascent = DEFAULT_ASCENT
    number = isinstance(ascent, int | float) and not isinstance(ascent, bool)
    if ascent is not None and not (number and 0 < ascent < np.inf):
        raise InvalidParameterError(
            'ascent must be "auto", a number in (0, inf), or None for the exact worst case of '
            f"every step, got {ascent!r}."
        )
    # A single weighting has nowhere to go.
    return None if ascent is None or mass_set.is_point else float(ascent)


# Logarithm of the factor by which a class with an excess risk of one exceeds its mean mass. Masses
# that respond so add the covariance of the class gradients to the curvature of the objective. That
# of the cross-entropy is the covariance of the gradients of rows where probabilities are right
# (Fisher's information), and no smaller: the largest stable step is at worst halved.
DEFAULT_ASCENT = 1.0
# Length of the mean of the masses, in delays of the loop of network and masses. Above one the loop
# is damped (see ``mean_share``); two leaves room for what is not linear.
SPAN = 2.0
# Delay of an optimizer, in steps: 1 / (1 - 0.9) for the usual momentum, which is also Adam's.
STEPS_LATE = 10.0


def mean_share(passes: Any, window: float) -> Any:
    r"""The share of the last masses in their running mean, of which they are one step ahead.

    To first order, with :math:`a` for ``ascent`` and a mean over :math:`T` steps, the logarithms of
    the masses are :math:`a R_t + (a / T) \sum_{s < t} R_s`. The sum alone finds the masses of the
    optimum, but network and masses would circle around it, and a delay of :math:`L` steps between
    them drives the circles apart. The first term damps them; the delay takes :math:`a L / T` of the
    :math:`a`. So :math:`T > L` suffices for all steps of the network and numbers of batches
    in a pass. An optimizer is ``STEPS_LATE`` steps late, remembered risks ``window``
    passes; :math:`T` is ``SPAN`` times their sum.

    Parameters
    ----------
    passes : tensor
        The share of the data set that the batch is.
    window : float
        Passes over which risks are remembered.
    """
    return passes / (SPAN * (STEPS_LATE * passes + window))
