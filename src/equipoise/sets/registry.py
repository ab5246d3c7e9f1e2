"""All uncertainty sets by name, and what estimators accept as one."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from equipoise.exceptions import InvalidParameterError
from equipoise.registry import Registry
from equipoise.sets.alphas import DEFAULT_ALPHA, alpha_choice
from equipoise.sets.ball import PriorBall
from equipoise.sets.base import Uncertainty
from equipoise.sets.box import PriorBox, WeightBox
from equipoise.sets.cvar import LabelCVaR, LabelHCVaR, WorstClass
from equipoise.sets.hull import FixedWeights, WeightHull
from equipoise.text import did_you_mean

SETS: Registry[type[Uncertainty]] = Registry(
    "uncertainty set",
    FixedWeights,
    WorstClass,
    LabelCVaR,
    LabelHCVaR,
    WeightBox,
    PriorBox,
    PriorBall,
    WeightHull,
)

# Sets that have a short name.
WORDS: dict[str, Uncertainty] = {
    "worst_class": WorstClass(),
    "balanced": FixedWeights("balanced"),
    "standard": FixedWeights("standard"),
}


def as_uncertainty(value: Any, *, name: str = "goal") -> Uncertainty:
    """A recipe from a recipe, one of three names, or None for ``LabelCVaR(0.1)``.

    Examples
    --------
    >>> as_uncertainty("balanced"), as_uncertainty(None)
    (FixedWeights(weights='balanced'), LabelCVaR(alpha=0.1))
    """
    if value is None:
        return LabelCVaR(DEFAULT_ALPHA)
    if isinstance(value, Uncertainty):
        if alpha_choice(value) is not None:
            value.resolve([1.0])  # says where alpha is chosen, and that it is not here
        return value
    if isinstance(value, str) and value in WORDS:
        found: Uncertainty = clone(WORDS[value])
        return found
    raise InvalidParameterError(
        f"{name} must be an uncertainty set such as LabelCVaR(0.1), one of the names "
        f'"standard", "balanced" and "worst_class", or None, got {value!r}'
        f"{did_you_mean(value, WORDS, (f'{name}(...)' for name in SETS))}."
    )
