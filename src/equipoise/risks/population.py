r"""Probabilities of a reweighted classifier, put back on the scale of the population.

A classifier trained with class weights :math:`q`, or on rows resampled to the class shares
:math:`m`, estimates the probabilities of a world in which class ``i`` has the share
:math:`m_i = p_i q_i` instead of :math:`p_i`. By Bayes' rule

.. math:: P_\pi(Y = i | X = x) \propto \frac{\pi_i}{m_i} \, P_m(Y = i | X = x)

for any prior :math:`\pi`, as long as the classes themselves look the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, Matrix, NDArray, Vector
from equipoise.exceptions import ClassMismatchError, InvalidInputError, UnidentifiableError
from equipoise.validation.labels import class_names
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.priors import check_prior, mass_of_weighting

# Mass below which a division by it would overflow: the least normal float64.
_NO_MASS = float(np.finfo(np.float64).tiny)
_REMEDY = "Train with a positive weight for it, or state a prior of 0 for it."
_NO_ROWS_REMEDY = "Give rows in which it is possible, or state a prior of 0 for it."


def rescale_proba(
    probabilities: ArrayLike,
    *,
    weights: Any = None,
    masses: Any = None,
    class_prior: Any = None,
    target_prior: Any = None,
    classes: ArrayLike | None = None,
) -> NDArray[np.float64]:
    r"""Class probabilities on the scale of the population, or of a stated prior.

    .. math:: \eta_i \mapsto \frac{\eta_i \pi_i / m_i}{\sum_j \eta_j \pi_j / m_j}

    Use it for classifiers of other libraries that were trained with known class weights or on
    resampled rows. Tiny probabilities keep their relative precision.

    Parameters
    ----------
    probabilities : array-like of shape (n_rows, n_classes), or (n_rows,) for two classes
        Probabilities predicted by a classifier that was trained with class weights; for two classes
        also those of the second class alone.
    weights : dict by class, array-like of shape (n_classes,), or "balanced"
        Class weights :math:`q` that it was trained with; only their ratios matter.
    masses : dict by class or array-like of shape (n_classes,)
        Instead of weights: the share :math:`m` that each class had in training, after resampling
        or weighting.
    class_prior : dict by class or array-like of shape (n_classes,), optional
        Class frequencies :math:`p` of the population, which the weights multiplied. With
        ``weights`` and no ``target_prior`` it cancels, and may be left out.
    target_prior : dict by class or array-like of shape (n_classes,), optional
        The prior :math:`\pi` to put the probabilities on: ``class_prior`` if not given.
    classes : array-like of shape (n_classes,), optional
        Names of the columns, where values are given by class.

    Returns
    -------
    ndarray of shape (n_rows, n_classes)

    Examples
    --------
    A classifier trained with ``class_weight={"ham": 1, "spam": 9}`` finds a mail to be as likely
    spam as not. On the scale of the mails that arrive it is one in ten:

    >>> rescale_proba([[0.5, 0.5]], weights={"ham": 1, "spam": 9}, classes=["ham", "spam"])
    array([[0.9, 0.1]])
    """
    matrix = as_probabilities(probabilities)
    names = _names(matrix.shape[1], classes, (weights, masses, class_prior, target_prior))
    if (weights is None) == (masses is None):
        raise InvalidInputError(
            "give either the weights or the masses of the training, got "
            f"{'neither' if weights is None else 'both'}."
        )
    # With weights given as numbers any prior will do: it cancels, unless there is a target.
    cancels = masses is None and target_prior is None and not isinstance(weights, str)
    if class_prior is None and not cancels and (masses is None or target_prior is None):
        raise InvalidInputError(
            "class_prior is needed, the class frequencies of the population: they cancel only for "
            "weights given as numbers and without a target_prior."
        )
    even = np.full(len(names), 1 / len(names))
    p = even if class_prior is None else check_prior(class_prior, names)
    target = p if target_prior is None else check_prior(target_prior, names, name="target_prior")
    if masses is None:
        trained = mass_of_weighting(weights, p, names, name="weights")
    else:
        trained = check_prior(masses, names, name="masses")
    return reweighted(matrix, odds_factors(trained, target, names))


def odds_factors(
    masses: Vector,
    target: Vector,
    classes: NDArray[Any],
    *,
    negligible: float = _NO_MASS,
    remedy: str = _REMEDY,
) -> Vector:
    r"""The factors :math:`\pi_i / m_i` that put odds from masses to a prior.

    A class of prior 0 has the factor 0. One that has a prior but no more than ``negligible`` mass
    is refused: the fit says nothing about it.
    """
    lost = (masses <= negligible) & (target > 0)
    if np.any(lost):
        names = ", ".join(map(repr, classes[lost].tolist()))
        raise UnidentifiableError(
            f"Class {names} carries no mass in training, so the fit says nothing about its "
            f"probability. {remedy}"
        )
    factors: Vector = np.divide(target, masses, out=np.zeros_like(target), where=target > 0)
    return factors


def in_population(
    class_prior: Any, weights: Vector, truth: Matrix, *others: Matrix
) -> tuple[Vector, ...]:
    r"""Weights of rows and probabilities fitted to them, as a population has them.

    Rows have the class frequencies :math:`s = \sum_j w_j \eta(x_j)` of the first, true
    probabilities. Where a prior :math:`\pi` is given, all odds are carried over by the factors
    :math:`\pi_i / s_i`, and each row has the weight :math:`w_j \sum_i \eta_i(x_j) \pi_i / s_i`.
    """
    if class_prior is None:
        return weights, truth, *others
    classes = np.arange(truth.shape[1])
    prior = check_prior(class_prior, classes)
    factors = odds_factors(weights @ truth, prior, classes, remedy=_NO_ROWS_REMEDY)
    return weights * (truth @ factors), *(reweighted(each, factors) for each in (truth, *others))


def _names(n_classes: int, classes: Any, given: tuple[Any, ...]) -> NDArray[Any]:
    names = class_names(classes, n_classes)
    keys = {key for values in given if isinstance(values, Mapping) for key in values}
    if classes is None and not keys <= set(names.tolist()):
        raise ClassMismatchError(
            f"classes= must name the columns of probabilities where values are given by class, "
            f"here by {sorted(keys, key=str)}; for a classifier give its classes_."
        )
    return names


def reweighted(matrix: Matrix, factors: Vector) -> Matrix:
    """Rows times factors, scaled to sum to one, without a product that over- or underflows."""
    digits, powers = np.frexp(matrix)
    factor_digits, factor_powers = np.frexp(factors)
    digits, powers = digits * factor_digits, powers + factor_powers
    # Zeros have no size of their own, and must not set the scale of their row.
    powers = np.where(digits > 0, powers, np.iinfo(np.int32).min // 4)
    odds: Matrix = np.ldexp(digits, powers - powers.max(axis=1, keepdims=True))
    totals = odds.sum(axis=1, keepdims=True)
    if len(totals) and not totals.min() > 0:
        row = int(np.argmin(totals))
        raise UnidentifiableError(
            f"Row {row} has probability 0 in every class of positive prior: there is nothing to "
            "put back."
        )
    odds /= totals
    return odds
