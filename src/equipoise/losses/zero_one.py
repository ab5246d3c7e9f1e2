"""The zero-one loss: is the predicted class another than the true one?"""

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidInputError
from equipoise.losses.base import Loss


def zero_one(true: ArrayLike, predicted: ArrayLike) -> Vector:
    r"""The zero-one loss of every row.

    .. math:: \ell_{01}(f, z) = 1\{f(x) \neq y\}

    Parameters
    ----------
    true, predicted : array-like of shape (n,)
        Positions of classes; a prediction of -1 is some other class, and wrong.

    Examples
    --------
    >>> zero_one([0, 1, 1], [0, 1, 0]).tolist()
    [0.0, 0.0, 1.0]
    """
    left, right = np.asarray(true), np.asarray(predicted)
    if left.ndim != 1 or left.shape != right.shape:
        raise InvalidInputError(
            "true and predicted must be one-dimensional and equally long, got shapes "
            f"{left.shape} and {right.shape}."
        )
    wrong: Vector = np.not_equal(left, right).astype(np.float64)
    return wrong


ZERO_ONE = Loss("zero_one", zero_one, reads="labels", range="{0, 1}")
