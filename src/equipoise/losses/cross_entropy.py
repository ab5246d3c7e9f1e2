"""The cross-entropy, in natural logarithms: of probabilities, and of raw scores."""

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.losses.base import Loss
from equipoise.losses.scores import in_blocks, leads, own
from equipoise.validation.predictions import as_probabilities, check_true, probability_eps


def cross_entropy(true: ArrayLike, probabilities: ArrayLike) -> Vector:
    r"""The cross-entropy of predicted probabilities.

    .. math:: \ell(f, z) = -\log \max(f_y(x), \varepsilon)

    :math:`\varepsilon` is the spacing of the floating-point type given (2.2e-16 for double
    precision), as in :func:`sklearn.metrics.log_loss`. A class that a model calls impossible thus
    costs 36.04, not infinity, in each row where it occurs: trees and neighbours predict zeros all
    the time, and one such row would otherwise decide every comparison. A row whose loss is 36.04
    (15.94 in single precision) is a zero.

    Parameters
    ----------
    true : array-like of shape (n,)
        Positions of the true classes.
    probabilities : array-like of shape (n, k), or (n,) or (n, 1) for two classes
        Rows sum to one; the short form is the probability of the second class.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> cross_entropy([0, 1], [[0.5, 0.5], [0.75, 0.25]]).round(3).tolist()
    [0.693, 1.386]
    """
    matrix = as_probabilities(probabilities)
    mine = own(check_true(true, matrix), matrix)
    # The absolute value, because minus the logarithm of 1 would print as -0.0.
    return np.abs(np.log(np.clip(mine, probability_eps(probabilities), 1.0)))


@in_blocks
def cross_entropy_from_scores(true: Indices, scores: Matrix) -> Vector:
    r"""The cross-entropy of the softmax of raw scores.

    .. math:: \ell(f, z) = \log \sum_j \exp(f_j(x) - f_y(x))

    Parameters
    ----------
    true : array-like of shape (n,)
        Positions of the true classes.
    scores : array-like of shape (n, k), or (n,) or (n, 1) for two classes
        One column ``f`` is a decision for the second class, and the loss is the logistic loss,
        ``log(1 + exp(-f))`` for a row of the second class.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> cross_entropy_from_scores([0, 1], [[0.0, 0.0], [1000.0, 0.0]]).round(3).tolist()
    [0.693, 1000.0]
    """
    lead = leads(true, scores)
    shift: Vector = np.maximum(lead.max(axis=0), 0.0)
    # The true class has lead 0. Its term exp(-shift), written as 1 + expm1(-shift), gives the 1
    # of log1p, which keeps a loss of 1e-20 from being rounded to 0.
    rest: Vector = np.exp(lead - shift).sum(axis=0)
    return shift + np.log1p(rest + np.expm1(-shift))


CROSS_ENTROPY = Loss("cross_entropy", cross_entropy, reads="probabilities", range="[0, inf)")
CROSS_ENTROPY_FROM_SCORES = Loss(
    "cross_entropy_from_scores", cross_entropy_from_scores, reads="scores", range="[0, inf)"
)
