"""The multiclass margin, the hinge loss of Crammer and Singer, and the same cut off at one."""

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.losses.base import Loss
from equipoise.losses.trained import in_blocks, leads


@in_blocks
def margins(true: Indices, scores: Matrix) -> Vector:
    r"""By how much the score of the true class beats that of its best rival.

    .. math:: a = f_y(x) - \max_{y' \neq y} f_{y'}(x)

    Parameters
    ----------
    true : array-like of shape (n,)
        Positions of the true classes.
    scores : array-like of shape (n, k), or (n,) or (n, 1) for two classes
        One column ``f`` is a decision for the second class, whose margin is ``f``.

    Examples
    --------
    >>> margins([0, 2], [[3.0, 1.0, 0.5], [1.0, 4.0, 2.0]]).tolist()
    [2.0, -2.0]
    """
    best_lead: Vector = leads(true, scores).max(axis=0)
    return -best_lead


def margin_loss(true: ArrayLike, scores: ArrayLike) -> Vector:
    r"""The multiclass margin loss, in the unit interval and above the zero-one loss.

    .. math:: \Phi(a) = 1\{a \leq 0\} + (1 - a) 1\{0 < a \leq 1\}

    of the margin :math:`a`, with the paper's margin parameter of one (Sec. 2 of Xu et al., 2020);
    arguments as in :func:`margins`.

    Examples
    --------
    >>> margin_loss([1, 1, 1], [-2.0, 0.25, 3.0]).tolist()
    [1.0, 0.75, 0.0]
    """
    return np.clip(1 - margins(true, scores), 0.0, 1.0)


def hinge(true: ArrayLike, scores: ArrayLike) -> Vector:
    r"""The multiclass hinge loss: convex, and above the margin loss.

    .. math:: \ell(f, z) = \max(0, 1 - a)

    of the margin :math:`a`; arguments as in :func:`margins`.

    Examples
    --------
    >>> hinge([1, 1, 1], [-2.0, 0.25, 3.0]).tolist()
    [3.0, 0.75, 0.0]
    """
    return np.maximum(0.0, 1 - margins(true, scores))


MARGIN = Loss("margin", margin_loss, reads="scores", range="[0, 1]")
HINGE = Loss("hinge", hinge, reads="scores", range="[0, inf)")
