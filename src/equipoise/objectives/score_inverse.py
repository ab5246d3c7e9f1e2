r"""The diagonal blocks of a Hessian, one a score, from a sample of the rows, and their inverse.

For probabilities :math:`p` the block of a score is :math:`\sum_j s_j p_j (1 - p_j) x_j x_j^\top`.
Rows are taken in proportion to their curvature :math:`s_j p_j (1 - p_j)`, at equal distances of its
running sum, so that each row taken counts the same.
"""

from collections.abc import Callable

import numpy as np

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.objectives.matrices import Features
from equipoise.threads import Workers

# RELATIVE_DAMPING: of a block, relative to its largest diagonal entry, so that columns without
# curvature keep an inverse; LEAST_CURVATURE: that entry counts as no less.
RELATIVE_DAMPING, LEAST_CURVATURE = 1e-8, 1e-3


def sampled_blocks(
    features: Features,
    probabilities: Callable[[int], Vector],
    scale: Vector,
    n_rows: int,
    workers: Workers,
) -> NDArray[np.float64]:
    """Blocks ``(n_scores, width, width)`` of the Hessian, each from ``n_rows`` rows."""
    middles = (np.arange(n_rows) + 0.5) / n_rows
    blocks = np.zeros((features.n_scores, features.width, features.width))

    def work(score: int) -> None:
        p = probabilities(score)
        sums = np.cumsum(p * (1 - p) * scale)
        sample = features.take(np.searchsorted(sums, middles * sums[-1]))
        X = sample.design(sample.load(slice(0, n_rows))).astype(np.float32)
        blocks[score] = np.dot(X.T, X) * (sums[-1] / n_rows)

    list(workers.map(work, range(features.n_scores)))
    return blocks


class ScoreInverse:
    """The inverse of the blocks plus the penalty's curvature ``ridges``."""

    def __init__(self, features: Features, blocks: NDArray[np.float64], ridges: Vector) -> None:
        self._features = features
        diagonal = np.einsum("aii->ai", blocks)  # a view
        largest = np.maximum(diagonal.max(axis=1, keepdims=True), LEAST_CURVATURE)
        diagonal += features.unfold(ridges) + RELATIVE_DAMPING * largest
        inverse = np.linalg.inv(blocks)
        self._inverse = (inverse + inverse.swapaxes(1, 2)) / 2

    def apply(self, rows: Matrix) -> Matrix:
        """The inverse times each row."""
        by_score = self._features.unfold(rows).swapaxes(0, 1)
        return self._features.fold(np.matmul(by_score, self._inverse).swapaxes(0, 1))
