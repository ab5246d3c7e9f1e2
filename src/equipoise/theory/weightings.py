r"""Weightings as users give them: by name, by class, in class order, one or several.

Conventions
-----------
A weighting is ``"standard"``, ``"balanced"``, a dict by class or an array in class order. It is
scaled to weights :math:`q` with :math:`\sum_i p_i q_i = 1`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Matrix, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets.point import mass_of_weighting
from equipoise.validation.predictions import as_probabilities
from equipoise.validation.row_weights import check_sample_weight
from equipoise.weights.priors import weights_of


def scaled_weights(
    weights: Any, prior: Vector, classes: ArrayLike | None = None, *, name: str = "weights"
) -> Vector:
    r"""One weighting as weights :math:`q` with :math:`\sum_i p_i q_i = 1`."""
    names = np.arange(len(prior)) if classes is None else np.asarray(classes)
    return weights_of(mass_of_weighting(weights, prior, names, name=name), prior)


def named_weightings(weightings: Any) -> dict[str, Any]:
    """Weightings by name; those of a list are called what they are, or ``q1``, ``q2``, ..."""
    if isinstance(weightings, str):
        weightings = [weightings]
    if isinstance(weightings, Mapping):
        found = {str(name): value for name, value in weightings.items()}
    elif isinstance(weightings, Iterable):
        listed = list(weightings)
        names = [w if isinstance(w, str) else f"q{place}" for place, w in enumerate(listed, 1)]
        found = dict(zip(names, listed, strict=True))
        if len(found) < len(listed):
            raise InvalidParameterError(f"weightings must be distinct, got {names}.")
    else:
        found = {}
    if not found:
        raise InvalidParameterError(
            "weightings must be a dict by name or a list with at least one weighting, such as "
            f'["standard", "balanced"], got {weightings!r}.'
        )
    return found


def checked_probabilities(probabilities: Any) -> Matrix:
    """Class probabilities of the rows; a classifier in their place is told what to give."""
    if hasattr(probabilities, "predict_proba"):
        raise InvalidInputError(
            "probabilities must be an array, such as classifier.predict_proba(X), got "
            f"{probabilities!r}."
        )
    return as_probabilities(probabilities)


def rows_with_weights(
    probabilities: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Matrix, NDArray[np.float64]]:
    """Checked class probabilities, and weights of the rows that sum to one."""
    matrix = checked_probabilities(probabilities)
    if sample_weight is None:
        return matrix, np.full(len(matrix), 1 / max(len(matrix), 1))
    weights = check_sample_weight(sample_weight, len(matrix))
    total = float(weights.sum())
    if total <= 0:
        raise InvalidParameterError("sample_weight must be positive in at least one row.")
    return matrix, weights / total
