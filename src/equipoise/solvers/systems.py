"""Systems of equations by products alone, for arrays and tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from equipoise.arrays import like, norm, to_numpy, zeros_like

# BATCH: products between two looks at the residual, for which a device would have to wait.
BATCH = 5
# SHRINKING: of residuals from one refinement to the next, above which rounding is all that is left.
SHRINKING = 0.5


def gmres(
    product: Callable[[Any], Any], right_side: Any, accuracy: float, most: int
) -> tuple[Any, float]:
    """A solution of ``product(x) = right_side`` (Saad and Schultz 1986), and its relative residual.

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
    # Images of the basis, written in it: one row each, with one entry beyond the diagonal.
    images = zeros_like(right_side, (most, most + 1))
    basis[0] = right_side / length
    while size < most and left > accuracy:
        for column in range(size, min(size + BATCH, most)):
            known, image = basis[: column + 1], product(basis[column])
            parts = known @ image
            image = image - parts @ known
            rest = known @ image  # what rounding has left
            image = image - rest @ known
            new = (image @ image) ** 0.5
            images[column, : column + 1] = parts + rest
            images[column, column + 1] = new
            basis[column + 1] = image / (new + 1e-30)
        size = column + 1
        matrix, first = to_numpy(images[:size, : size + 1]).T, np.eye(size + 1)[0]
        if not np.all(np.isfinite(matrix)):
            return nothing, np.inf
        weights = np.linalg.lstsq(matrix, first, rcond=None)[0]
        left = norm(matrix @ weights - first)
    return like(length * weights, right_side) @ basis[:size], left


def refined(system: Any, inverse: Any, right_side: Any, accuracy: float) -> tuple[Any, float]:
    """A solution by a matrix that is nearly the inverse, and the residual that is left, relative.

    Each step leaves a share of the residual, until rounding leaves the rest.

    Examples
    --------
    >>> matrix, near = np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([[0.5, -0.17], [0.0, 0.33]])
    >>> solution, left = refined(matrix, near, np.array([3.0, 3.0]), 1e-12)
    >>> solution.round(9).tolist(), left < 1e-12
    ([1.0, 1.0], True)
    """
    length, before, solution = norm(right_side), np.inf, inverse @ right_side
    while True:
        rest = right_side - system @ solution
        left = norm(rest) / length
        if left <= accuracy or not left <= SHRINKING * before:
            return solution, left
        solution, before = solution + inverse @ rest, left
