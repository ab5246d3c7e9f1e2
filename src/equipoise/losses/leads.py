r"""Leads of the rivals over the true class: :math:`f_j(x) - f_y(x)`.

Losses of scores are functions of the leads alone.

Conventions
-----------
``scores`` and ``lead`` have shape ``(k, rows)``, ``labels`` holds the true classes.
"""

from collections.abc import Callable
from functools import wraps

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.validation.predictions import as_scores, check_true

# A block of this many entries and its temporaries stay in the cache of one core.
_BLOCK_ENTRIES = 2**17


def leads(labels: Indices, scores: Matrix) -> Matrix:
    r"""Leads :math:`f_j - f_y` of the rivals; minus infinity for ``y`` itself."""
    places = np.arange(scores.shape[1])
    lead = np.subtract(scores, scores[labels, places], order="C")
    lead[labels, places] = -np.inf
    return lead


def slopes_by_scores(labels: Indices, by_leads: Matrix) -> Matrix:
    """Derivatives by the scores from those by the leads, in the same memory."""
    by_leads[labels, np.arange(len(labels))] = -by_leads.sum(axis=0)
    return by_leads


def curvature_by_scores(labels: Indices, by_leads: NDArray[np.float64]) -> NDArray[np.float64]:
    """Second derivatives by the scores from those by the leads, in the same memory."""
    places = np.arange(len(labels))
    sums = by_leads.sum(axis=0)
    by_leads[labels, :, places], by_leads[:, labels, places] = -sums.T, -sums
    by_leads[labels, labels, places] = sums.sum(axis=0)
    return by_leads


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
            losses[block] = rows(positions[block], matrix[block].T)
        return losses

    return blockwise
