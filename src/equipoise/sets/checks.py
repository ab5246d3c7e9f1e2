"""Checks of what sets are made of: the rule that is printed is the rule that is checked."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.priors import Vector, check_prior, per_class


def check_number(value: Any, name: str, interval: str) -> float:
    """A number inside an interval written as mathematicians do, such as ``"(0, 1]"``."""
    if isinstance(value, Real) and not isinstance(value, bool) and _inside(float(value), interval):
        return float(value)
    raise InvalidParameterError(f"{name} must be a number in {interval}, got {value!r}.")


def check_numbers(
    values: Any, classes: NDArray[Any], *, name: str, default: float | None = None
) -> Vector:
    """One number per class from a scalar, a dict by class or an array."""
    try:
        return per_class(values, classes, name=name, default=default)
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"{name} must be a number, a dict by class or an array of numbers, got {values!r}."
        ) from error


def check_interval(vector: Vector, classes: NDArray[Any], name: str, interval: str) -> Vector:
    """Every entry inside the interval; the error names the first class that is not."""
    inside = _inside(vector, interval)
    if not np.all(inside):
        bad = int(np.argmin(inside))
        raise InvalidParameterError(
            f"{name} must be in {interval} for every class, "
            f"got {vector[bad]:.6g} for class {classes.tolist()[bad]!r}."
        )
    return vector


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


def ends(interval: str) -> tuple[float, float]:
    """The two numbers between the brackets."""
    low, high = interval[1:-1].split(",")
    return float(low), float(high)


def _inside(values: Any, interval: str) -> Any:
    # Comparisons with NaN are false, so NaN lies in no interval.
    low, high = ends(interval)
    above = values >= low if interval[0] == "[" else values > low
    below = values <= high if interval[-1] == "]" else values < high
    return above & below
