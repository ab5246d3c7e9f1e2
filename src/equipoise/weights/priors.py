r"""Translations between what users say and what the numerics use.

Users speak of weights :math:`q_i`, of alphas and of priors. Inside the library everything
numerical is about masses :math:`m_i = p_i q_i`, the share of the objective that class ``i``
carries, so that :math:`\sum_i m_i = 1`. This module is the only place that converts.

Conventions
-----------
``prior``, ``weights`` and ``masses`` are float64 arrays of shape ``(n_classes,)`` in the order
of ``classes``. A *weighting* is what users write: ``"standard"``, ``"balanced"``, a dict by class
or an array in class order.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, NDArray, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.text import did_you_mean
from equipoise.validation.numbers import check_numbers


def check_prior(prior: Any, classes: ArrayLike, *, name: str = "class_prior") -> Vector:
    """A prior as a probability vector: one non-negative value per class, summing to one."""
    vector = check_numbers(prior, np.asarray(classes), name=name)
    if not np.all(np.isfinite(vector)) or np.any(vector < 0):
        raise InvalidParameterError(
            f"{name} must hold finite values of at least 0, got {vector.tolist()}."
        )
    total = float(vector.sum())
    if abs(total - 1) > 1e-6:
        raise InvalidParameterError(f"{name} must sum to 1, got a sum of {total:.6g}.")
    return vector / total


def named_prior(prior: Any, classes: ArrayLike | None) -> tuple[Vector, NDArray[Any]]:
    """A checked prior and class names, ``0..k-1`` or the prior's own where none are given."""
    if classes is None:
        classes = list(prior) if isinstance(prior, Mapping) else range(np.size(prior))
    names = np.array(classes)
    return check_prior(prior, names, name="prior"), names


def normalize_weights(weights: ArrayLike, prior: ArrayLike, *, name: str = "weights") -> Vector:
    r"""Scale weights so that :math:`\sum_i p_i q_i = 1`."""
    q, p = np.asarray(weights, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    if not np.all(np.isfinite(q)) or np.any(q < 0):
        raise InvalidParameterError(
            f"{name} must hold finite values of at least 0, got {q.tolist()}."
        )
    total = float(p @ q)
    if total <= 0:
        raise InvalidInputError(
            f"{name} must be positive for at least one class of positive prior, got {q.tolist()}."
        )
    return q / total


def masses_of(weights: ArrayLike, prior: ArrayLike) -> Vector:
    r"""Masses :math:`m_i = p_i q_i` of normalised weights."""
    return np.asarray(weights, dtype=np.float64) * np.asarray(prior, dtype=np.float64)


def weights_of(masses: ArrayLike, prior: ArrayLike) -> Vector:
    r"""Weights :math:`q_i = m_i / p_i`; a class without prior and without mass has weight 0."""
    m, p = np.asarray(masses, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.divide(m, p, out=np.where(m > 0, np.inf, 0.0), where=p > 0)


def mass_of_weighting(weights: Any, prior: Vector, classes: NDArray[Any], *, name: str) -> Vector:
    """The mass of one weighting, given by name, by class or in class order."""
    if not isinstance(weights, str):
        q = check_numbers(weights, classes, name=name)
        return masses_of(normalize_weights(q, prior, name=name), prior)
    if weights == "standard":
        return prior
    if weights == "balanced":
        # A class of prior zero has no rows, and no weight could give it mass.
        return (prior > 0) / np.count_nonzero(prior)
    raise InvalidParameterError(
        f'{name} must be "standard", "balanced", a dict by class or an array, got {weights!r}'
        f"{did_you_mean(weights, ('standard', 'balanced'))}."
    )


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
        by_name = {str(name): value for name, value in weightings.items()}
    elif isinstance(weightings, Iterable):
        listed = list(weightings)
        names = [w if isinstance(w, str) else f"q{place}" for place, w in enumerate(listed, 1)]
        by_name = dict(zip(names, listed, strict=True))
        if len(by_name) < len(listed):
            raise InvalidParameterError(f"weightings must be distinct, got {names}.")
    else:
        by_name = {}
    if not by_name:
        raise InvalidParameterError(
            "weightings must be a dict by name or a list with at least one weighting, such as "
            f'["standard", "balanced"], got {weightings!r}.'
        )
    return by_name
