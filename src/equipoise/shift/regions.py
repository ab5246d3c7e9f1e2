"""Intervals of class frequencies, and regions that hold all of them together, from draws."""

from __future__ import annotations

import numpy as np

from equipoise.arrays import Matrix, Vector

# WHOLE: frequency from which the upper end of an interval may be 1.
WHOLE = 1 - 1e-3


def intervals(samples: Matrix, confidence: float) -> tuple[Vector, Vector]:
    """Ends of intervals by column: the shortest and the equal-tailed ones together.

    Shortest intervals begin at 0 where a class may be absent.

    Examples
    --------
    >>> low, high = intervals(np.linspace(0, 1, 101)[:, None] ** 4, 0.9)
    >>> low.tolist(), high.round(2).tolist()
    ([0.0], [0.81])
    """
    ordered = np.sort(samples, axis=0)
    n, column = len(ordered), np.arange(samples.shape[1])
    inside = min(n, int(np.ceil(confidence * n)))
    first = np.argmin(ordered[inside - 1 :] - ordered[: n - inside + 1], axis=0)
    low, high = ordered[first, column], ordered[first + inside - 1, column]
    tails = np.quantile(ordered, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    low, high = np.minimum(low, tails[0]), np.maximum(high, tails[1])
    low[first == 0] = 0.0
    high[(first == n - inside) & (ordered[-1] > WHOLE)] = 1.0
    return low, high


def joint_ranges(samples: Matrix, share: float) -> tuple[Vector, Vector]:
    """Ranges that hold a share of the draws in all columns together, by ranks."""
    n = len(samples)
    ranks = samples.argsort(axis=0).argsort(axis=0)
    outer = np.maximum(ranks, n - 1 - ranks).max(axis=1)
    most = int(np.sort(outer)[min(n - 1, int(np.ceil(share * n)) - 1)])
    ordered = np.sort(samples, axis=0)
    return ordered[n - 1 - most], ordered[most]
