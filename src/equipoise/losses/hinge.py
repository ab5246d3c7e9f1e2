"""The multiclass hinge loss of Crammer and Singer."""

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Vector
from equipoise.losses.base import Loss
from equipoise.losses.margin import margins


def hinge(true: ArrayLike, scores: ArrayLike) -> Vector:
    r"""The multiclass hinge loss: convex, and above the margin loss.

    .. math:: \ell(f, z) = \max(0, 1 - a)

    of the margin :math:`a`.

    Parameters
    ----------
    true, scores
        As in :func:`equipoise.losses.margins`.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> hinge([1, 1, 1], [-2.0, 0.25, 3.0]).tolist()
    [3.0, 0.75, 0.0]
    """
    return np.maximum(0.0, 1 - margins(true, scores))


HINGE = Loss("hinge", hinge, reads="scores", range="[0, inf)")
