"""Which rows stand for all of them: those that lie far out more surely, and for fewer others.

Of a column that is rarely other than zero, a uniform sample would know next to nothing, and neither
would Hessians and coarse problems of it. Every row is taken with a chance in proportion to its
size, and weighs the more the smaller its chance was: sums over the rows taken are, in the mean,
those over all.
"""

import numpy as np

from equipoise.arrays import Indices, Vector


def drawn(sizes: Vector, count: int, offset: float = 0.5) -> tuple[Indices, Vector]:
    """Places of so many rows, in order, and the chances they had; all rows where there are fewer.

    Rows without a size are not drawn.

    Examples
    --------
    >>> drawn(np.array([1.0, 1.0, 6.0, 1.0, 1.0]), 3)
    (array([0, 2, 3]), array([0.5, 1. , 0.5]))
    """
    usable = int(np.count_nonzero(sizes))
    chance = np.where(sizes > 0, 1.0, 0.0) if usable <= count else _chances(sizes, count)
    # Every row with its chance, and as many in all as they sum to.
    ends = np.floor(np.cumsum(chance) + offset)
    places = np.flatnonzero(np.diff(ends, prepend=0.0) > 0)
    return places, chance[places]


def _chances(sizes: Vector, count: int) -> Vector:
    """Chances in proportion to sizes that sum to a count; none above one."""
    sure = np.zeros(len(sizes), dtype=bool)
    while True:
        left = count - np.count_nonzero(sure)
        chance = np.where(sure, 1.0, sizes * (left / max(sizes[~sure].sum(), 1e-300)))
        more = chance > 1
        if not np.any(more):
            return np.asarray(chance)
        sure |= more
