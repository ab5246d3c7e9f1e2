"""What is compared: models, each made for several ideas of how much the classes matter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import LabelCVaR, Uncertainty, WorstClass, as_uncertainty
from equipoise.tables import MODEL_KINDS

MODEL_WORDS = {"linear": "linear", "boosting": "boosting"}
STANDARD, BALANCED, WORST = "standard", "balanced", "worst class"

# The level that users meet first: no class counts more than ten times its share.
_ALPHA = 0.1


@dataclass(frozen=True, eq=False)
class Choice:
    """One model made for one set of weightings."""

    model: str
    weighting: str
    uncertainty: Uncertainty

    @property
    def label(self) -> str:
        """How tables call it."""
        return f"{MODEL_WORDS[self.model]}, {self.weighting}"


def make_worlds(uncertainties: Mapping[str, Any] | None, prior: Vector) -> dict[str, Uncertainty]:
    """The sets of weightings by name; standard is always among them."""
    if uncertainties is None:
        alpha = middle_alpha(prior)
        return {
            STANDARD: as_uncertainty("standard"),
            BALANCED: as_uncertainty("balanced"),
            f"CVaR {alpha:g}": LabelCVaR(alpha=alpha),
            WORST: WorstClass(),
        }
    if not isinstance(uncertainties, Mapping) or not uncertainties:
        raise InvalidParameterError(
            "uncertainties must be a dict of at least one uncertainty set by name, got "
            f"{uncertainties!r}."
        )
    given = {str(name): as_uncertainty(value) for name, value in uncertainties.items()}
    return {STANDARD: as_uncertainty("standard")} | given


def middle_alpha(prior: Vector) -> float:
    """A level between standard and worst class: 0.1, unless no cap binds there."""
    smallest = float(np.min(prior))
    if smallest < _ALPHA:
        return _ALPHA
    # Halfway on a logarithmic scale between 1 and where the caps stop binding.
    return max(round(float(np.sqrt(smallest)), 2), 0.01)


def make_choices(models: Sequence[str], worlds: Mapping[str, Uncertainty]) -> tuple[Choice, ...]:
    """Every model made for every set of weightings, the plainest first."""
    if isinstance(models, str):
        models = (models,)
    unknown = [model for model in models if model not in MODEL_KINDS]
    if unknown or not models:
        names = " and ".join(map(repr, MODEL_KINDS))
        raise InvalidParameterError(f"models must be some of {names}, got {list(models)!r}.")
    ordered = [model for model in MODEL_KINDS if model in models]
    return tuple(Choice(model, name, world) for model in ordered for name, world in worlds.items())


def alpha_grid(prior: Vector, n_values: int = 12) -> Vector:
    """Levels of LabelCVaR from standard to worst class, evenly spaced on a logarithmic scale."""
    lowest = float(np.clip(np.min(prior), 0.01, 0.5))
    middle = middle_alpha(prior)
    grid = np.geomspace(1.0, lowest, n_values)
    # The level of the table of choices replaces its neighbour, so that both say the same.
    if middle > lowest:
        nearest = int(np.argmin(np.abs(np.log(grid / middle))))
        grid[np.clip(nearest, 1, n_values - 2)] = middle
    return np.asarray(grid)
