"""One of several candidates, by one rule: the simplest within one standard error of the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise.arrays import ROUNDING, Mask, Matrix, Vector


@dataclass(frozen=True, eq=False)
class Choice:
    """The candidate that is taken: its position, all values, and errors of their differences.

    ``errors`` are standard errors of how far each value lies above the smallest; ``close`` are the
    candidates within one of them, the simplest first.
    """

    index: int
    values: Vector
    errors: Vector
    close: tuple[int, ...]


def select(values: Vector, without: Matrix, allowed: Mask | None = None) -> Choice:
    """The simplest candidate within one standard error of the best.

    Candidates come in the order of their simplicity, the simplest first; the lower a value the
    better. ``without`` has a line for each candidate, its values without each group of rows.

    Examples
    --------
    >>> without = np.array([[0.31, 0.33], [0.30, 0.30], [0.30, 0.28]])
    >>> select(np.array([0.32, 0.30, 0.29]), without).index
    1
    """
    ranked = values if allowed is None else np.where(allowed, values, np.inf)
    best = int(np.argmin(ranked))
    errors = excess_errors(without, best)
    close = np.flatnonzero(ranked - ranked[best] <= errors + ROUNDING)
    return Choice(int(close[0]), values, errors, tuple(close.tolist()))


def excess_errors(without: Matrix, best: int) -> Vector:
    """Standard errors of how far candidates lie above one of them, by the jackknife.

    Examples
    --------
    >>> excess_errors(np.array([[0.1, 0.3], [0.1, 0.1]]), 1)
    array([0.1, 0. ])
    """
    # Without a group that held all rows of a class, nothing is known.
    known = without[:, np.isfinite(without).all(axis=0)]
    excess, n_groups = known - known[best], max(known.shape[1], 1)
    spread = excess - excess.mean(axis=1, keepdims=True)
    return np.asarray(np.sqrt((spread**2).sum(axis=1) * (n_groups - 1) / n_groups))
