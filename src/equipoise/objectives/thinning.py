"""A sample that stands for all rows: rows that lie far out are taken with higher probability.

A uniform sample has next to no rows in which a rare column is not zero, and neither have Hessians
and coarse problems of the sample. Every row is taken with a probability in proportion to its size,
and weighs as much as its inverse: sums over the sample have the sums over all rows as their mean.
"""

import numpy as np

from equipoise.arrays import Indices, Vector


def drawn(sizes: Vector, count: int, offset: float = 0.5) -> tuple[Indices, Vector]:
    """Positions of ``count`` rows, in order, and their probabilities; all rows of fewer.

    Rows of size zero are not drawn.

    Examples
    --------
    >>> drawn(np.array([1.0, 1.0, 6.0, 1.0, 1.0]), 3)
    (array([0, 2, 3]), array([0.5, 1. , 0.5]))
    """
    usable = int(np.count_nonzero(sizes))
    chance = np.where(sizes > 0, 1.0, 0.0) if usable <= count else _probabilities(sizes, count)
    # Every row with its probability, and as many in all as these sum to.
    ends = np.floor(np.cumsum(chance) + offset)
    places = np.flatnonzero(np.diff(ends, prepend=0.0) > 0)
    return places, chance[places]


def _probabilities(sizes: Vector, count: int) -> Vector:
    """Probabilities in proportion to sizes that sum to a count; none above one."""
    sure = np.zeros(len(sizes), dtype=bool)
    while True:
        left = count - np.count_nonzero(sure)
        chance = np.where(sure, 1.0, sizes * (left / max(sizes[~sure].sum(), 1e-300)))
        more = chance > 1
        if not np.any(more):
            return np.asarray(chance)
        sure |= more
