r"""Translations between what users say and what the numerics use.

Users speak of weights :math:`q_i`, of alphas and of priors. Inside the library everything
numerical speaks of masses :math:`m_i = p_i q_i`, the share of the objective that class ``i``
carries, so that :math:`\sum_i m_i = 1`. This module is the only place that converts.

Conventions
-----------
``prior``, ``weights`` and ``masses`` are float64 arrays of shape ``(n_classes,)`` in the order
of ``classes``.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError

Vector = NDArray[np.float64]


def per_class(
    values: Any, classes: ArrayLike, *, name: str, default: float | None = None
) -> Vector:
    """One float per class from a scalar, a mapping by class, or an array in class order.

    A class that a mapping leaves out takes ``default``; without a default it is an error.
    """
    names = np.asarray(classes)
    if isinstance(values, Mapping):
        return _from_mapping(values, names, name, default)
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        return np.full(len(names), float(array))
    if array.shape != (len(names),):
        raise ClassMismatchError(
            f"{name} must be a scalar, a dict by class or an array with one value for each of the "
            f"{len(names)} classes, got an array of shape {array.shape}."
        )
    return array.copy()


def _from_mapping(
    values: Mapping[Any, float], names: NDArray[Any], name: str, default: float | None
) -> Vector:
    known = names.tolist()
    unknown = [key for key in values if key not in known]
    if unknown:
        raise ClassMismatchError(
            f"{name} names {_listing(unknown)}, not among the classes {_listing(known)}."
        )
    missing = [key for key in known if key not in values]
    if missing and default is None:
        raise ClassMismatchError(
            f"{name} must name every class; {_listing(missing)} is missing "
            f"(the classes are {_listing(known)})."
        )
    return np.array([values.get(key, default) for key in known], dtype=np.float64)


def _listing(names: list[Any], limit: int = 10) -> str:
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown}, ... ({len(names)} in all)"


def check_prior(prior: Any, classes: ArrayLike, *, name: str = "class_prior") -> Vector:
    """A prior as a probability vector: one non-negative value per class, summing to one."""
    vector = per_class(prior, classes, name=name)
    if not np.all(np.isfinite(vector)) or np.any(vector < 0):
        raise InvalidParameterError(
            f"{name} must hold finite values of at least 0, got {vector.tolist()}."
        )
    total = float(vector.sum())
    if abs(total - 1) > 1e-6:
        raise InvalidParameterError(f"{name} must sum to 1, got a sum of {total:.6g}.")
    return vector / total


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


def balanced_weights(prior: ArrayLike) -> Vector:
    r"""Weights :math:`q_i = 1 / (k p_i)` under which every class carries the same mass."""
    p = np.asarray(prior, dtype=np.float64)
    return weights_of(np.full(len(p), 1 / len(p)), p)
