"""One classifier or several, fitted or as predictions, each by its name."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise.exceptions import InvalidInputError
from equipoise.losses import Loss, as_loss


def named(values: Any, name: str | None, *, what: str) -> dict[str, Any]:
    """A dictionary by name, from one or from a single value."""
    if not isinstance(values, Mapping):
        return {name if name is not None else what: values}
    if not values:
        raise InvalidInputError(f"{what}s must hold at least one entry by name, got none.")
    return {str(key): value for key, value in values.items()}


def named_estimators(estimator: Any, name: str | None) -> dict[str, Any]:
    """Fitted classifiers by name; a single one is called by its class unless a name is given."""
    if isinstance(estimator, Mapping):
        return named(estimator, name, what="classifier")
    return {name if name is not None else type(last_step(estimator)).__name__: estimator}


def last_step(estimator: Any) -> Any:
    """The classifier at the end of a pipeline, or the estimator itself."""
    steps = getattr(estimator, "steps", None)
    return steps[-1][1] if steps else estimator


def fitted_attribute(estimator: Any, attribute: str, *, wanted: str) -> Any:
    """An attribute of a fitted classifier or of the last step of a pipeline."""
    fitted = last_step(estimator)
    if not hasattr(fitted, attribute):
        raise InvalidInputError(
            f"{wanted} needs a fitted classifier with {attribute}, such as "
            f"RobustLogisticRegression after fit, got {type(fitted).__name__} without it."
        )
    return getattr(fitted, attribute)


def responses(estimators: Mapping[str, Any], X: Any, loss: str | Loss) -> dict[str, Any]:
    """What the loss reads of each classifier: labels, probabilities or scores."""
    chosen = as_loss(loss)
    found = {}
    for name, estimator in estimators.items():
        method = getattr(estimator, chosen.response_method, None)
        if method is None:
            raise InvalidInputError(
                f"loss={chosen.name!r} needs classifiers with {chosen.response_method}, "
                f"{name!r} has none."
            )
        found[name] = np.asarray(method(X))
    return found


def known_classes(estimators: Mapping[str, Any], loss: str | Loss) -> Any:
    """The classes that columns of scores belong to; None where labels are read."""
    if as_loss(loss).reads == "labels":
        return None
    return next(iter(estimators.values())).classes_
