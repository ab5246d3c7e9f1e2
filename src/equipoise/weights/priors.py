r"""Translations between what users say and what the numerics use.

Users speak of weights :math:`q_i`, of alphas and of priors. Inside the library everything
numerical speaks of masses :math:`m_i = p_i q_i`, the share of the objective that class ``i``
carries, so that :math:`\sum_i m_i = 1`. This module is the only place that converts.

Conventions
-----------
``prior``, ``weights`` and ``masses`` are float64 arrays of shape ``(n_classes,)`` in the order
of ``classes``.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.validation.numbers import check_numbers


def check_prior(prior: Any, classes: ArrayLike, *, name: str = "class_prior") -> Vector:
    """A prior as a probability vector: one non-negative value per class, summing to one.

    Examples
    --------
    >>> check_prior({"b": 0.1, "a": 0.9}, ["a", "b"]).tolist()
    [0.9, 0.1]
    """
    vector = check_numbers(prior, np.asarray(classes), name=name)
    if not np.all(np.isfinite(vector)) or np.any(vector < 0):
        raise InvalidParameterError(
            f"{name} must hold finite values of at least 0, got {vector.tolist()}."
        )
    total = float(vector.sum())
    if abs(total - 1) > 1e-6:
        raise InvalidParameterError(f"{name} must sum to 1, got a sum of {total:.6g}.")
    return vector / total


def normalize_weights(weights: ArrayLike, prior: ArrayLike, *, name: str = "weights") -> Vector:
    r"""Scale weights so that :math:`\sum_i p_i q_i = 1`.

    Examples
    --------
    >>> normalize_weights([1, 9], [0.9, 0.1]).round(6).tolist()
    [0.555556, 5.0]
    """
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
    r"""Masses :math:`m_i = p_i q_i` of normalised weights.

    Examples
    --------
    >>> masses_of([0.5, 5.5], [0.9, 0.1]).round(12).tolist()
    [0.45, 0.55]
    """
    return np.asarray(weights, dtype=np.float64) * np.asarray(prior, dtype=np.float64)


def weights_of(masses: ArrayLike, prior: ArrayLike) -> Vector:
    r"""Weights :math:`q_i = m_i / p_i`; a class without prior and without mass has weight 0.

    Examples
    --------
    >>> weights_of([0.5, 0.5], [0.8, 0.2]).tolist()
    [0.625, 2.5]
    """
    m, p = np.asarray(masses, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.divide(m, p, out=np.where(m > 0, np.inf, 0.0), where=p > 0)


def balanced_weights(prior: ArrayLike) -> Vector:
    r"""Weights :math:`q_i = 1 / (k p_i)` under which every class carries the same mass.

    Examples
    --------
    >>> balanced_weights([0.8, 0.2]).tolist()
    [0.625, 2.5]
    """
    p = np.asarray(prior, dtype=np.float64)
    return weights_of(np.full(len(p), 1 / len(p)), p)
