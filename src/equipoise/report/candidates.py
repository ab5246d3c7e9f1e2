"""What is compared: models, each made for several ideas of how much the classes matter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.goals import as_goal
from equipoise.sets import (
    FixedWeights,
    LabelCVaR,
    Uncertainty,
    WorstClass,
    as_uncertainty,
    middle_alpha,
)
from equipoise.tables import MODEL_KINDS

STANDARD, BALANCED, WORST = "standard", "balanced", "worst class"


@dataclass(frozen=True, eq=False)
class Candidate:
    """One kind of model made for one set of weightings."""

    model: str
    weighting: str
    uncertainty: Uncertainty

    @property
    def label(self) -> str:
        """How tables call it."""
        return f"{self.model}, {self.weighting}"

    @property
    def is_known(self) -> bool:
        """Whether it is made for a single weighting, which leaves nothing to tune."""
        return as_goal(self.uncertainty).is_known

    @property
    def about(self) -> str:
        """What the weighting means, in a few words."""
        if self.weighting == STANDARD:
            return "every row counts the same"
        if self.weighting == BALANCED:
            return "every class counts the same"
        if self.weighting == WORST:
            return "any weights: the class with the largest risk decides"
        if isinstance(self.uncertainty, LabelCVaR):
            times = f"{1 / self.uncertainty.alpha:.3g}"
            return f"the worst weighting in which no row counts more than {times} times"
        return f"the worst weighting of {self.uncertainty!r}"


def make_weightings(
    uncertainties: Mapping[str, Any] | None, prior: Vector
) -> dict[str, Uncertainty]:
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


def make_candidates(
    models: Sequence[str], weightings: Mapping[str, Uncertainty]
) -> tuple[Candidate, ...]:
    """Every model made for every set of weightings, the plainest first."""
    if isinstance(models, str):
        models = (models,)
    if not models or any(model not in MODEL_KINDS for model in models):
        names = " and ".join(map(repr, MODEL_KINDS))
        raise InvalidParameterError(f"models must be some of {names}, got {list(models)!r}.")
    return tuple(
        Candidate(model, name, uncertainty)
        for model in MODEL_KINDS
        if model in models
        for name, uncertainty in weightings.items()
    )


# The few lines of Python that fit a candidate to the whole table.


def refit_code(candidate: Candidate, loading: Sequence[str], rarest: int, seed: int) -> str:
    """Python code that ends in a fitted ``model``.

    Parameters
    ----------
    candidate : Candidate
    loading : lines that make ``X`` and ``y``, from :func:`file_lines` or :func:`python_lines`.
    rarest : rows of the smallest class.
    seed : seed of everything random.
    """
    uncertainty = candidate.uncertainty
    imports, goal = [f"from equipoise import {type(uncertainty).__name__}"], repr(uncertainty)
    if isinstance(uncertainty, FixedWeights) and isinstance(uncertainty.weights, str):
        imports, goal = [], repr(uncertainty.weights)
    options = f", random_state={seed}, rarest={rarest}" if candidate.model == "boosting" else ""
    model = f"model = model_for(X, {candidate.model!r}, goal={goal}{options})"
    return "\n".join([*imports, *loading, model, "model.fit(X, y)"]) + "\n"


def file_lines(path: str, target: str, drop: Sequence[str], *, text_labels: bool) -> list[str]:
    """Lines that read features and labels from a file."""
    dropped = f".drop(columns={list(drop)!r})" if drop else ""
    labels = ", text_labels=True" if text_labels else ""
    return [
        "from equipoise.tables import model_for, read_table, split_target",
        "",
        f"table = read_table({path!r}){dropped}",
        f"X, y = split_target(table, {target!r}{labels})",
    ]


def python_lines(*, is_frame: bool) -> list[str]:
    """Lines that bring a DataFrame or an array ``X`` into the form that models read."""
    return [
        *([] if is_frame else ["import pandas as pd"]),
        "from equipoise.tables import columns_of, conform, model_for",
        "",
        *([] if is_frame else ["X = pd.DataFrame(X).rename(columns=lambda place: f'x{place}')"]),
        "X = conform(X, columns_of(X))  # numbers and texts, as the models read them",
    ]
