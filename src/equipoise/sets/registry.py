"""All uncertainty sets by name, and what estimators accept as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from sklearn.base import clone

from equipoise.exceptions import InvalidParameterError
from equipoise.registry import Registry
from equipoise.sets.ball import PriorBall
from equipoise.sets.base import Uncertainty
from equipoise.sets.box import PriorBox, WeightBox
from equipoise.sets.cvar import LabelCVaR, LabelHCVaR, WorstClass
from equipoise.sets.hull import FixedWeights, WeightHull
from equipoise.sets.ratio import WeightRatio
from equipoise.text import brief, did_you_mean

SETS: Registry[type[Uncertainty]] = Registry(
    "uncertainty set",
    FixedWeights,
    WorstClass,
    LabelCVaR,
    LabelHCVaR,
    WeightBox,
    WeightRatio,
    PriorBox,
    PriorBall,
    WeightHull,
)

# Level of LabelCVaR where users name no set: no class counts more than ten times its share.
DEFAULT_ALPHA = 0.1
# Sets that have a short name.
WORDS: dict[str, Uncertainty] = {
    "worst_class": WorstClass(),
    "balanced": FixedWeights("balanced"),
    "standard": FixedWeights("standard"),
}
# Metrics of scikit-learn that evaluate probabilities or rankings, and no predicted classes.
_OF_PROBABILITIES = ("roc_auc", "average_precision", "neg_log_loss", "neg_brier_score", "log_loss")


def as_uncertainty(value: Any, *, name: str = "goal", or_else: str = "None") -> Uncertainty:
    """A recipe from a recipe, one of three names, or None for ``LabelCVaR(0.1)``.

    ``or_else`` is what may stand there besides, for the message.

    Examples
    --------
    >>> as_uncertainty("balanced"), as_uncertainty(None)
    (FixedWeights(weights='balanced'), LabelCVaR(alpha=0.1))
    """
    if value is None:
        return LabelCVaR(DEFAULT_ALPHA)
    if isinstance(value, Uncertainty):
        if value.is_open:
            value.resolve([1.0])
        return value
    if isinstance(value, str) and value in WORDS:
        recipe: Uncertainty = clone(WORDS[value])
        return recipe
    raise InvalidParameterError(
        f"{name} must be an uncertainty set such as LabelCVaR(0.1), one of the names "
        f'"standard", "balanced" and "worst_class", or {or_else}, got {brief(value)}'
        f"{likely_goal(value, WORDS, (f'{name}(...)' for name in SETS))}."
    )


def likely_goal(value: Any, words: Iterable[str], calls: Iterable[str]) -> str:
    """What a value that is not a goal may stand for, in brackets or after a colon.

    Examples
    --------
    >>> likely_goal(0.1, WORDS, SETS)
    ' (did you mean LabelCVaR(0.1)?)'
    """
    if isinstance(value, str) and value.startswith(_OF_PROBABILITIES):
        return ". It evaluates probabilities or rankings, which decision weights do not improve"
    if isinstance(value, Real) and 0 < float(value) <= 1:
        return f" (did you mean LabelCVaR({value})?)"
    if isinstance(value, Mapping):
        return " (did you mean FixedWeights({...}), or RecallFloors({...}) for recalls?)"
    if hasattr(value, "fit") and not isinstance(value, type):
        return ": a model goes first into RobustClassifier(model, goal)"
    return did_you_mean(value, words, calls)
