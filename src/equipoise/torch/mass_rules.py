r"""The worst masses of a set on a device, for risks that are tensors there.

A *rule* is the numerical set as a module: its arrays are buffers, its maximiser a fixed number of
tensor operations. Nothing waits for a value, and ``torch.compile`` takes it as it is.

Sets between floors and caps, hulls and balls have rules of their own. Any other set, registered by
whoever, is asked for its ``maximize`` on the host, at the price of one wait a step; it can have a
rule by ``mass_rule.register(MySet)``.

Conventions
-----------
``risks`` and masses are vectors with one entry per class, in the type of the buffers. A *state* is
where mirror ascent starts: the masses themselves, or the shares of the vertices of a hull.
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

    @abstractmethod
    def forward(self, risks: Any) -> Any:
        r"""Masses :math:`m \in \arg\max_{m \in M} \langle m, r \rangle`."""

    @abstractmethod
    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        r"""The state that maximises :math:`\text{rate} \langle m, r \rangle - D(m, \text{state})`.

        :math:`D` is the Kullback-Leibler divergence unless the rule names another one.
        """

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
        self.whole = mass_set.is_simplex
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

    def __init__(self, ball: Ball) -> None:
        super().__init__()
        self.hold(center=ball.center, radius=ball.radius, start=ball.center)
        self.hold(outside=np.where(ball.allowed, 0.0, np.inf))

    def forward(self, risks: Any) -> Any:
        return self.best(ranked(risks), 0.0)

    def best(self, scores: Any, least: float) -> Any:
        r"""Masses that maximise :math:`\langle m, s \rangle - \text{least} \cdot D(m, c)`."""
        # Classes outside of the ball count nothing.
        scores = scores - self.outside
        top = scores.max()
        span = top - torch.where(torch.isinf(scores), top, scores).min()
        scaled = torch.where(span > 0, ((scores - top) / span).clamp(-1.0, 0.0), 0.0)
        return torch.where(span > 0, self.worst(scaled, least / span), self.center)

    @abstractmethod
    def worst(self, risks: Any, least: Any) -> Any:
        """The same for risks that lie in [-1, 0] and reach both ends."""


class CurvedRule(BallRule, ABC):
    r"""Balls whose worst masses are those at one multiplier, where the divergence is the radius.

    The divergence falls as the multiplier grows. Its logarithm is found by cutting the range where
    it lies into many parts at once: few steps on a device, and a program that is soon compiled.

    Mirror ascent takes the divergence of the ball, from the state. Then a step is the same problem:
    the worst masses for the gradient of the divergence at the state plus the risks, with a
    multiplier of at least one.
    """

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        return self.best(self.gradient(state) + rate * ranked(risks), 1.0)

    def worst(self, risks: Any, least: Any) -> Any:
        low = self.from_multiplier(risks, least).log().clamp_min(_LEAST)
        high = torch.maximum(self.most().log(), low)
        parts = torch.linspace(0, 1, _PARTS, dtype=low.dtype, device=low.device)
        for _ in range(_ROUNDS):
            trials = low + (high - low) * parts
            over = self.distance(self.at(risks, trials.exp()[:, None])) > self.radius
            low = torch.where(over, trials, low).max()
            high = torch.where(over, high, trials).min()
        return self.at(risks, high.exp().reshape(1, 1))[0]

    @abstractmethod
    def gradient(self, state: Any) -> Any:
        """The gradient of the divergence from the centre."""

    def from_multiplier(self, risks: Any, multiplier: Any) -> Any:
        """What ``at`` takes for a multiplier, from which the search starts."""
        return multiplier

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

    def gradient(self, state: Any) -> Any:
        # From nothing, no factor leads back.
        return torch.where(self.center > 0, (state / self.center).clamp_min(KEPT).log(), 0.0)

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
    r"""Pearson's divergence: :math:`m_i \propto c_i (r_i + \nu)_+`.

    Mirror ascent takes half of it. At the multiplier :math:`\mu` the masses are
    :math:`c_i (r_i + \nu)_+ / \mu`, where :math:`\nu` makes them sum to one.
    """

    def gradient(self, state: Any) -> Any:
        return torch.where(self.center > 0, state / self.center - 1, 0.0)

    def from_multiplier(self, risks: Any, multiplier: Any) -> Any:
        order = risks.argsort(descending=True)
        held, gained = self.center[order].cumsum(0), (self.center * risks)[order].cumsum(0)
        # The ramps add up to the largest of these lines in nu, and reach the multiplier where the
        # first of the lines does.
        return torch.where(held > 0, (multiplier - gained) / held, torch.inf).min()

    def most(self) -> Any:
        # Above one all classes are held: the divergence is at most 1 / (4 (nu - 1)^2).
        return 1 + 0.5 * self.radius**-0.5

    def at(self, risks: Any, multipliers: Any) -> Any:
        ramp = self.center * (risks + multipliers).clamp_min(0.0)
        return ramp / ramp.sum(1, keepdim=True)

    def distance(self, masses: Any) -> Any:
        apart = masses - self.center
        return torch.where(self.center > 0, apart**2 / self.center, 0.0).sum(1)


class PathRule(CurvedRule):
    r"""Euclidean: the point at the radius on the path :math:`P(c + r / \mu)`, or its end.

    Mirror ascent takes :math:`k / 2` times the squared distance, for ``k`` classes: around equal
    masses that is the Kullback-Leibler divergence, while half of it would move a mass of
    :math:`1 / k` by as much as one of 1.
    """

    def gradient(self, state: Any) -> Any:
        return len(self.center) * (state - self.center)

    def from_multiplier(self, risks: Any, multiplier: Any) -> Any:
        return len(risks) * multiplier

    def most(self) -> Any:
        return len(self.center) ** 0.5 / self.radius

    def at(self, risks: Any, multipliers: Any) -> Any:
        return project_to_simplex(self.center + risks / multipliers)

    def distance(self, masses: Any) -> Any:
        return (masses - self.center).norm(dim=1)


class MovingRule(BallRule):
    """Total variation: as much mass as allowed moves from the best classes to the worst."""

    def worst(self, risks: Any, least: Any) -> Any:
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
        self.mass_set, self.key = mass_set, _lend(mass_set)
        self.hold(start=mass_set.project(prior))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.key = _lend(self.mass_set)

    def forward(self, risks: Any) -> Any:
        return torch.ops.equipoise.on_host(risks, self.key, False)

    def ascend(self, state: Any, risks: Any, rate: Any) -> Any:
        """By the squared distance, as in Euclidean balls: a projection, which every set has."""
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
    """How far the masses go from their mean, or None for the exact maximiser.

    Examples
    --------
    >>> from equipoise.sets import WorstClass
    >>> check_ascent("auto", WorstClass().resolve([0.9, 0.1]))
    1.0
    """
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
    :math:`a`. So :math:`T > L` suffices, whatever the steps of the network and the number of
    batches in a pass. An optimizer is ``STEPS_LATE`` steps late, remembered risks ``window``
    passes; :math:`T` is ``SPAN`` times their sum.

    Parameters
    ----------
    passes : tensor
        The share of the data set that the batch is.
    window : float
        Passes over which risks are remembered.

    Examples
    --------
    >>> round(mean_share(torch.tensor(1.0), 0.5).item(), 4)  # one batch a pass: 21 steps
    0.0476
    >>> round(1 / mean_share(torch.tensor(0.01), 0.5).item(), 2)  # a hundred: 120 steps
    120.0
    """
    return passes / (SPAN * (STEPS_LATE * passes + window))
