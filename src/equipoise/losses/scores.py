r"""Score and probability matrices: checks, the two-class short form, and leads.

The *lead* of class :math:`j` over the true class is :math:`f_j(x) - f_y(x)`. Margins and the
cross-entropy of scores are both functions of the leads alone.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.validation.predictions import as_scores, check_true

# A block of this many entries and its temporaries stay in the cache of one core.
_BLOCK_ENTRIES = 2**17


def own(true: Indices, matrix: Matrix) -> Vector:
    """The entry of each row in the column of its true class."""
    return matrix[np.arange(len(matrix)), true]


def leads(true: Indices, scores: Matrix) -> Matrix:
    r"""Leads :math:`f_j - f_y` of the rivals, shape ``(k, n)``; minus infinity for ``y`` itself.

    Classes come first so that reductions over them run along contiguous memory.
    """
    lead = np.subtract(scores.T, own(true, scores), order="C")
    lead[true, np.arange(len(scores))] = -np.inf
    return lead


def in_blocks(
    rows: Callable[[Indices, Matrix], Vector],
) -> Callable[[ArrayLike, ArrayLike], Vector]:
    """Turn a loss of checked scores into one of user input that needs little extra memory."""

    @wraps(rows)
    def blockwise(true: ArrayLike, scores: ArrayLike) -> Vector:
        matrix = as_scores(scores)
        positions = check_true(true, matrix)
        size = max(1, _BLOCK_ENTRIES // matrix.shape[1])
        losses: NDArray[np.float64] = np.empty(len(matrix))
        for start in range(0, len(matrix), size):
            block = slice(start, start + size)
            losses[block] = rows(positions[block], matrix[block])
        return losses

    return blockwise
