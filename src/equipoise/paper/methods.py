"""The methods that the paper compares, as values that can be stored and drawn."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Vector
from equipoise.sets import FixedWeights, LabelCVaR, LabelHCVaR, PriorBox, Uncertainty


@dataclass(frozen=True)
class Method:
    """Standard or balanced risk, LCVaR(alpha), LHCVaR(c, kappa), or PriorBox(lower, upper).

    ``inverted`` is LHCVaR with the exponent kappa in place of 1/kappa, as the scripts have it. A
    box without width is a prior that is known.
    """

    kind: str
    alpha: float | None = None
    c: float | None = None
    kappa: float | None = None
    inverted: bool = False
    lower: Sequence[float] | None = None
    upper: Sequence[float] | None = None

    @property
    def label(self) -> str:
        """Its name with its hyper-parameters."""
        if self.kind == "LCVaR":
            return f"LCVaR({self.alpha:g})"
        if self.kind == "LHCVaR":
            end = ", exponent κ" if self.inverted else ""
            return f"LHCVaR(c={self.c:g}, κ={self.kappa:g}{end})"
        return self.kind

    def uncertainty(self) -> Uncertainty:
        """The set of weightings."""
        if self.alpha is not None:
            return LabelCVaR(self.alpha)
        if self.upper is not None:
            return PriorBox(list(self.lower or [0.0] * len(self.upper)), list(self.upper))
        if self.c is not None:
            return LabelHCVaR(c=self.c, kappa=1 / self._power)
        return FixedWeights(self.kind.lower())

    @property
    def is_fixed(self) -> bool:
        """Whether it has a single weighting and no caps."""
        return self.alpha is None and self.c is None and self.upper is None

    def caps(self, prior: ArrayLike) -> Vector:
        r"""Caps :math:`p_i / \alpha_i` of the masses, also those above one."""
        p = np.asarray(prior, dtype=np.float64)
        if self.alpha is not None:
            return p / self.alpha
        if self.upper is not None:
            return np.asarray(self.upper, dtype=np.float64)
        if self.c is None:
            return np.full(len(p), np.inf)
        powers = p**self._power
        return np.asarray(p * powers.sum() / (self.c * powers))

    @property
    def _power(self) -> float:
        kappa = 1.0 if self.kappa is None else self.kappa
        return kappa if self.inverted else 1 / kappa

    def spec(self) -> dict[str, Any]:
        """What JSON can hold of it."""
        return {name: value for name, value in asdict(self).items() if value}


STANDARD = Method("Standard")
BALANCED = Method("Balanced")


def lcvar(alpha: float) -> Method:
    """Label CVaR."""
    return Method("LCVaR", alpha=alpha)


def lhcvar(c: float, kappa: float = 1.0, *, inverted: bool = False) -> Method:
    """Label heterogeneous CVaR."""
    return Method("LHCVaR", c=c, kappa=kappa, inverted=inverted)


def prior_box(lower: Sequence[float], upper: Sequence[float]) -> Method:
    """Class priors between bounds."""
    return Method("PriorBox", lower=tuple(lower), upper=tuple(upper))


def known_prior(prior: Sequence[float]) -> Method:
    """The weights for a prior that is known."""
    return Method("Told the prior", lower=tuple(prior), upper=tuple(prior))
