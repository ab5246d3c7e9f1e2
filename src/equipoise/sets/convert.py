"""What estimators accept as an uncertainty set."""

from typing import Any

from equipoise.exceptions import InvalidParameterError
from equipoise.sets.alphas import default_uncertainty
from equipoise.sets.base import Uncertainty
from equipoise.sets.cvar import WorstClass
from equipoise.sets.point import FixedWeights


def as_uncertainty(value: Any) -> Uncertainty:
    """A recipe from a recipe, one of three names, or None for ``LabelCVaR(0.1)``."""
    if value is None:
        return default_uncertainty()
    if isinstance(value, Uncertainty):
        return value
    if isinstance(value, str) and value in ("standard", "balanced"):
        return FixedWeights(value)
    if isinstance(value, str) and value == "worst-class":
        return WorstClass()
    raise InvalidParameterError(
        "uncertainty must be an uncertainty set such as LabelCVaR(0.1), one of the names "
        f'"standard", "balanced" and "worst-class", or None, got {value!r}.'
    )
