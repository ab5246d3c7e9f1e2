"""Which of several points does no other beat in every coordinate?"""

from __future__ import annotations

import numpy as np

from equipoise.arrays import ROUNDING, ArrayLike, Mask


def undominated(points: ArrayLike) -> Mask:
    """The points to which no other is better, the lower the better; of equal ones the first.

    One that is no worse in any coordinate and better in one dominates.

    Examples
    --------
    >>> undominated([[0.1, 0.5], [0.2, 0.3], [0.2, 0.4], [0.1, 0.5]]).tolist()
    [True, True, False, False]
    """
    every = np.asarray(points, dtype=np.float64)
    kept = np.ones(len(every), dtype=bool)
    for at, point in enumerate(every):
        no_worse = np.all(every <= point + ROUNDING, axis=1)
        better = np.any(every < point - ROUNDING, axis=1)
        kept[at] = not np.any(no_worse & (better | (np.arange(len(every)) < at)))
    return kept
