"""Classifiers that weigh classes themselves, and so take no training weights of ours."""

from typing import Any

from equipoise.decisions.classifiers import last_of
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import as_uncertainty

# Parameters by which other classifiers weigh classes themselves, and the values that do nothing.
_OWN_WEIGHTS = (
    "class_weight",
    "class_weights",
    "auto_class_weights",
    "is_unbalance",
    "unbalance",
    "unbalanced_sets",
    "scale_pos_weight",
)
_NO_WEIGHTS = ("None", "False", "1", "1.0")


def is_robust(estimator: Any) -> bool:
    """Whether the training weighs the classes by itself, as linear models over a set do."""
    return isinstance(last_of(estimator), RobustLinearModel) and _single(estimator) is None


def _single(estimator: Any) -> Any:
    """The set of a linear model that is fitted for one weighting, else None."""
    last = last_of(estimator)
    goal = last.goal if isinstance(last, RobustLinearModel) else None
    known = as_uncertainty(goal) if isinstance(goal, str) else goal
    return None if getattr(known, "weighting", None) is None else known


def refuse_own_weights(estimator: Any) -> None:
    """Refuse an estimator that weighs classes itself: no weights of ours would be what they say."""
    settings = {
        name: value
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] in _OWN_WEIGHTS and str(value) not in _NO_WEIGHTS
    }
    if (single := _single(estimator)) is not None:
        if not (isinstance(single.weighting, str) and single.weighting == "standard"):
            settings["goal"] = single
        # With a prior of its own, a model does not see weights that are the same within a class.
        if last_of(estimator).class_prior is not None:
            settings["class_prior"] = last_of(estimator).class_prior
    for name, value in settings.items():
        raise InvalidParameterError(
            f"estimator must not weigh classes itself, got {name}={value!r}: training weights "
            "are chosen here, and would multiply with it or be ignored. "
            + ('Use "standard"' if name == "goal" else "Leave it out")
            + ", or use TunedDecisionClassifier, which takes the training as it is."
        )
