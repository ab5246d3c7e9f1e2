"""Checks of what numerical sets are made of and asked."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidInputError
from equipoise.weights.priors import check_prior


def check_masses(values: Any, name: str) -> Vector:
    """A read-only probability vector."""
    return frozen(check_prior(values, np.arange(np.size(values)), name=name))


def frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """The array itself, made read-only."""
    array.setflags(write=False)
    return array


def refuse_nan(risks: Any, xp: Any) -> None:
    """Refuse NaN among the risks: a maximiser that skips it would hide a broken class."""
    worst = float(xp.max(risks))
    if worst != worst:
        raise InvalidInputError("risks must not be NaN: a class without rows has no risk.")


def refuse_infinite(point: Any, xp: Any) -> None:
    """Refuse a point that has no nearest mass."""
    if not bool(xp.all(xp.isfinite(point))):
        raise InvalidInputError(f"point must hold finite values, got {point}.")
