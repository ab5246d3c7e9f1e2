"""What is compared: models, each made for several ideas of how much the classes matter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import LabelCVaR, Uncertainty, WorstClass, as_uncertainty, middle_alpha
from equipoise.tables import MODEL_KINDS

MODEL_WORDS = {"linear": "linear", "boosting": "boosting"}
STANDARD, BALANCED, WORST = "standard", "balanced", "worst class"


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
