"""Systems of equations by products alone: GMRES (Saad and Schultz 1986), for arrays and tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.arrays import like, norm, to_numpy, zeros_like

# BATCH: products between two looks at the residual, for which a device would have to wait.
BATCH = 5


def gmres(
    product: Callable[[Any], Any], right_side: Any, accuracy: float, most: int
) -> tuple[Any, float]:
    """A solution of ``product(x) = right_side``, and the residual that is left, relative.

    It takes and holds about ``most`` products at most. Of a singular system it is a solution where
    the right side lies in the range.

    Examples
    --------
    >>> matrix = np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> solution, left = gmres(matrix.__matmul__, np.array([3.0, 3.0]), 1e-12, 5)
    >>> solution.round(9).tolist(), left < 1e-12
    ([1.0, 1.0], True)
    """
    length, left, size, weights = norm(right_side), 1.0, 0, np.zeros(0)
    nothing = zeros_like(right_side, right_side.shape)
    if not 0 < length < np.inf:
        return nothing, 0.0 if length == 0 else np.inf
    most = min(most, len(right_side))
    basis = zeros_like(right_side, (most + 1, len(right_side)))
    # Images of the basis, written in it: one column each, with one entry below the diagonal.
    images = zeros_like(right_side, (most + 1, most))
    basis[0] = right_side / length
    while size < most and left > accuracy:
        for column in range(size, min(size + BATCH, most)):
            known, image = basis[: column + 1], product(basis[column])
            for _ in range(2):  # once more for what rounding has left
                parts = known @ image
                image = image - parts @ known
                images[: column + 1, column] += parts
            new = (image @ image) ** 0.5
            images[column + 1, column] = new
            basis[column + 1] = image / (new + 1e-30)
        size = column + 1
        matrix, first = to_numpy(images[: size + 1, :size]), np.eye(size + 1)[0]
        if not np.all(np.isfinite(matrix)):
            return nothing, np.inf
        weights = np.linalg.lstsq(matrix, first, rcond=None)[0]
        left = norm(matrix @ weights - first)
    return like(length * weights, right_side) @ basis[:size], left
