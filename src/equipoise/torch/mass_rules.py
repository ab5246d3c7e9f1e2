r"""The worst masses of a set on a device, for risks that are tensors there.

A *rule* is the numerical set as a module: its arrays are buffers, its maximiser a fixed number of
tensor operations. Nothing waits for a value, and ``torch.compile`` takes it as it is.

Sets between floors and caps, hulls and balls have rules of their own. Any other set, registered by
whoever, is asked for its ``maximize`` on the host, at the price of one wait a step; it can have a
rule by ``mass_rule.register(MySet)``.

Conventions
-----------
``risks`` and masses are vectors with one entry per class, in the type of the buffers. A *state* is
what mirror ascent moves: the masses themselves, or the shares of the vertices of a hull.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import nn

from equipoise.arrays import NDArray
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import Ball, CappedSimplex, Hull, MassSet
from equipoise.torch.filling_tensors import fill, project_to_simplex, scale_between

# Logarithms of multipliers are known to the range from the least to the most over parts ** rounds.
_PARTS, _ROUNDS, _LEAST = 64, 8, -46.0
# Share of the start that mirror ascent never gives up: from nothing, no factor leads back.
KEPT = 1e-6


class MassRule(nn.Module, ABC):  # type: ignore[misc]
    """Where the worst masses of a set are, and how mirror ascent moves towards them."""

    # Whether the worst masses may jump when risks change a little.
    jumps: bool = True

    @abstractmethod
    def forward(self, risks: Any) -> Any:
        r"""Masses :math:`m \in \arg\max_{m \in M} \langle m, r \rangle`."""

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        r"""The state that maximises :math:`\text{rate} \langle m, r \rangle - KL` from the last."""
        raise NotImplementedError

    def masses(self, state: Any) -> Any:
        """The masses of a state."""
        return state

    def hold(self, **arrays: NDArray[Any] | float) -> None:
        """Keep constants where the module is, but out of checkpoints."""
        for name, values in arrays.items():
            tensor = torch.tensor(np.array(values, dtype=np.float64))
            self.register_buffer(name, tensor, persistent=False)


def ranked(risks: Any) -> Any:
    """Finite risks with the same worst case: infinitely bad classes outrank all others.

    Examples
    --------
    >>> ranked(torch.tensor([1.0, torch.inf])).tolist()
    [0.0, 1.0]
    """
    infinite = torch.isinf(risks)
    return torch.where(infinite.any(), infinite.to(risks.dtype), risks)


@singledispatch
def mass_rule(mass_set: MassSet, prior: NDArray[np.float64]) -> MassRule:
    """The rule of a numerical set; mirror ascent starts as near to the prior as the set allows.

    Examples
    --------
    >>> import torch
    >>> from equipoise.sets import LabelCVaR
    >>> prior = np.array([0.9, 0.1])
    >>> rule = mass_rule(LabelCVaR(0.5).resolve(prior), prior)
    >>> [round(mass, 12) for mass in rule(torch.tensor([0.2, 0.6]).double()).tolist()]
    [0.8, 0.2]
    """
    return HostRule(mass_set, prior)


@mass_rule.register
def _of_capped_simplex(mass_set: CappedSimplex, prior: NDArray[np.float64]) -> MassRule:
    return FillingRule(mass_set, prior)


@mass_rule.register
def _of_hull(mass_set: Hull, _prior: NDArray[np.float64]) -> MassRule:
    return VertexRule(mass_set)


@mass_rule.register
def _of_ball(mass_set: Ball, prior: NDArray[np.float64]) -> MassRule:
    rules = {"kl": TiltingRule, "chi2": RampRule, "tv": MovingRule, "l2": PathRule}
    if mass_set.divergence.name not in rules:
        return HostRule(mass_set, prior)
    return rules[mass_set.divergence.name](mass_set)


class FillingRule(MassRule):
    """Masses between floors and caps."""

    def __init__(self, mass_set: CappedSimplex, prior: NDArray[np.float64]) -> None:
        super().__init__()
        self.jumps, self.whole = not mass_set.is_point, mass_set.is_simplex
        self.hold(lower=mass_set.lower, upper=mass_set.upper)
        positive = torch.tensor(np.maximum(prior, KEPT))
        self.hold(start=scale_between(positive, self.lower, self.upper, 1.0).numpy())

    def forward(self, risks: Any) -> Any:
        if self.whole:
            worst = (risks == risks.max()).to(risks.dtype)
            return worst / worst.sum()
        return self.lower + fill(risks, self.upper - self.lower, 1 - self.lower.sum())

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        pushed = state * torch.exp(rate * (risks - risks.max())) + KEPT * self.start
        if self.whole:
            return pushed / pushed.sum()
        return scale_between(pushed, self.lower, self.upper, 1.0)


class VertexRule(MassRule):
    """Mixtures of given masses; vertices that tie share alike."""

    def __init__(self, mass_set: Hull) -> None:
        super().__init__()
        n_vertices = len(mass_set.vertices)
        self.jumps = n_vertices > 1
        self.hold(vertices=mass_set.vertices, start=np.full(n_vertices, 1 / n_vertices))

    def forward(self, risks: Any) -> Any:
        values = self._values(risks)
        best = (values == values.max()).to(values.dtype)
        return self.masses(best / best.sum())

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        values = self._values(risks)
        pushed = state * torch.exp(rate * (values - values.max())) + KEPT * self.start
        return pushed / pushed.sum()

    def masses(self, state: Any) -> Any:
        return (state[:, None] * self.vertices).sum(0)

    def _values(self, risks: Any) -> Any:
        return (self.vertices * ranked(risks)).sum(1)


class BallRule(MassRule, ABC):
    """Masses within a radius of a centre."""

    jumps = False

    def __init__(self, ball: Ball) -> None:
        super().__init__()
        self.hold(center=ball.center, radius=ball.radius, start=ball.center)
        self.hold(outside=np.where(ball.allowed, 0.0, np.inf))

    def forward(self, risks: Any) -> Any:
        # Classes outside of the ball count nothing.
        risks = ranked(risks) - self.outside
        top = risks.max()
        span = top - torch.where(torch.isinf(risks), top, risks).min()
        scaled = torch.where(span > 0, ((risks - top) / span).clamp(-1.0, 0.0), 0.0)
        return torch.where(span > 0, self.worst(scaled), self.center)

    @abstractmethod
    def worst(self, risks: Any) -> Any:
        """Masses for risks that lie in [-1, 0] and reach both ends."""


class CurvedRule(BallRule, ABC):
    r"""Balls whose worst masses are those at one multiplier, where the divergence is the radius.

    The divergence falls as the multiplier grows. Its logarithm is found by cutting the range where
    it lies into many parts at once: few steps on a device, and a program that is soon compiled.
    """

    def worst(self, risks: Any) -> Any:
        low, high = self.center.new_full((), _LEAST), self.most().log()
        parts = torch.linspace(0, 1, _PARTS, dtype=low.dtype, device=low.device)
        for _ in range(_ROUNDS):
            trials = low + (high - low) * parts
            over = self.distance(self.at(risks, trials.exp()[:, None])) > self.radius
            low = torch.where(over, trials, low).max()
            high = torch.where(over, high, trials).min()
        return self.at(risks, high.exp().reshape(1, 1))[0]

    @abstractmethod
    def most(self) -> Any:
        """A multiplier at which the divergence is below the radius, for risks in [-1, 0]."""

    @abstractmethod
    def at(self, risks: Any, multipliers: Any) -> Any:
        """Masses at each of several multipliers, which are a column."""

    @abstractmethod
    def distance(self, masses: Any) -> Any:
        """The divergence from the centre, of each row."""


class TiltingRule(CurvedRule):
    r"""Kullback-Leibler: :math:`m_i \propto c_i \exp(r_i / \mu)`."""

    def most(self) -> Any:
        # By Hoeffding's lemma the divergence is at most 1 / (8 mu^2).
        return (8 * self.radius) ** -0.5

    def at(self, risks: Any, multipliers: Any) -> Any:
        tilted = self.center * (risks / multipliers).exp()
        return tilted / tilted.sum(1, keepdim=True)

    def distance(self, masses: Any) -> Any:
        held = masses > 0
        ratios = torch.where(held, masses / self.center, 1.0)
        # Term by term none is negative: x log x - x + 1, times the centre.
        return (self.center * torch.where(held, ratios * ratios.log() - ratios + 1, 1.0)).sum(1)


class RampRule(CurvedRule):
    r"""Pearson's divergence: :math:`m_i \propto c_i (r_i + \mu)_+`."""

    def most(self) -> Any:
        # Above one all classes are held: the divergence is at most 1 / (4 (mu - 1)^2).
        return 1 + 0.5 * self.radius**-0.5

    def at(self, risks: Any, multipliers: Any) -> Any:
        ramp = self.center * (risks + multipliers).clamp_min(0.0)
        return ramp / ramp.sum(1, keepdim=True)

    def distance(self, masses: Any) -> Any:
        apart = masses - self.center
        return torch.where(self.center > 0, apart**2 / self.center, 0.0).sum(1)


class PathRule(CurvedRule):
    r"""Euclidean: the point at the radius on the path :math:`P(c + r / \mu)`, or its end."""

    def most(self) -> Any:
        return len(self.center) ** 0.5 / self.radius

    def at(self, risks: Any, multipliers: Any) -> Any:
        return project_to_simplex(self.center + risks / multipliers)

    def distance(self, masses: Any) -> Any:
        return (masses - self.center).norm(dim=1)


class MovingRule(BallRule):
    """Total variation: as much mass as allowed moves from the best classes to the worst."""

    jumps = True

    def worst(self, risks: Any) -> Any:
        tops = (risks == 0).to(risks.dtype)
        moved = torch.minimum(self.radius, (self.center * (1 - tops)).sum())
        return fill(risks, self.center, 1 - moved) + moved * tops / tops.sum()

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        """Scaled alike within the ball; else gains and losses both sum to the radius."""
        pushed = state * torch.exp(rate * (risks - risks.max())) + KEPT * self.start
        free = pushed / pushed.sum()
        none, all_ = torch.zeros_like(free), torch.ones_like(free)
        grown = scale_between(pushed, self.center, all_, 1 + self.radius)
        shrunk = scale_between(pushed, none, self.center, 1 - self.radius)
        inside = (free - self.center).abs().sum() / 2 <= self.radius
        return torch.where(inside, free, grown + shrunk - self.center)


class HostRule(MassRule):
    """Any set, by its own ``maximize`` and ``project`` on the host."""

    def __init__(self, mass_set: MassSet, prior: NDArray[np.float64]) -> None:
        super().__init__()
        self.jumps = not mass_set.is_point
        self.mass_set, self.key = mass_set, _lend(mass_set)
        self.hold(start=mass_set.project(prior))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.key = _lend(self.mass_set)

    def forward(self, risks: Any) -> Any:
        return torch.ops.equipoise.on_host(risks, self.key, False)

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        """Projected ascent: the set is not asked for more than it promises."""
        return torch.ops.equipoise.on_host(state + rate * risks, self.key, True)


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


def check_ascent(ascent: Any, rule: MassRule) -> float | None:
    """The rate of mirror ascent a pass, or None for the exact maximiser."""
    if ascent is None or (isinstance(ascent, str) and ascent == "auto" and not rule.jumps):
        return None
    if isinstance(ascent, str) and ascent == "auto":
        return DEFAULT_ASCENT
    number = isinstance(ascent, int | float) and not isinstance(ascent, bool)
    if not number or not 0 < ascent < np.inf:
        raise InvalidParameterError(
            'ascent must be "auto", None for the exact worst case of every step, or a rate in '
            f"(0, inf), got {ascent!r}."
        )
    if not rule.jumps:
        raise InvalidParameterError(
            f'ascent must be "auto" or None for this set, got {ascent!r}: its worst case moves '
            "continuously with the risks, and the exact one is used."
        )
    return float(ascent)


# In a pass over the data a class of excess risk one grows by the factor e: slower than networks
# learn, so that masses and risks do not chase each other.
DEFAULT_ASCENT = 1.0
