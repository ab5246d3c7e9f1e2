"""Numbers that users give, alone or by class: the rule printed is the rule checked."""

from collections.abc import Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, NDArray, Vector
from equipoise.exceptions import ClassMismatchError, InvalidParameterError
from equipoise.text import listing, not_among


def check_number(value: Any, name: str, interval: str) -> float:
    """A number inside an interval written as mathematicians do, such as ``"(0, 1]"``."""
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    with suppress(OverflowError):  # of a whole number that is larger than any other
        if real and _inside(float(value), interval):
            return float(value)
    raise InvalidParameterError(f"{name} must be a number in {interval}, got {value!r}.")


def check_count(value: Any, name: str, least: int = 1) -> int:
    """A whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_) or value < least:
        raise InvalidParameterError(
            f"{name} must be an integer of at least {least}, got {value!r}."
        )
    return int(value)


def check_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameterError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_verbosity(value: Any) -> int:
    """A whole number of at least zero, or True or False."""
    if not isinstance(value, Integral | np.bool_) or value < 0:
        raise InvalidParameterError(f"verbose must be an integer of at least 0, got {value!r}.")
    return int(value)


def check_word(value: Any, name: str, words: tuple[str, ...]) -> str:
    """One of the given words."""
    if isinstance(value, str) and value in words:
        return value
    raise InvalidParameterError(not_among(name, value, words))


def check_seed(random_state: Any) -> int:
    """A seed; the same one every time where none is given, so that fits can be repeated."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise InvalidParameterError(
        f"random_state must be an integer, a RandomState or None, got {random_state!r}."
    )


def check_numbers(
    values: Any, classes: ArrayLike, *, name: str, default: float | None = None
) -> Vector:
    """One number per class from a number for all, a dict by class, or an array in class order.

    A class that a dict leaves out takes ``default``; without a default it is an error.
    """
    names = np.asarray(classes)
    numbers = values
    if isinstance(values, Mapping):
        numbers = _in_class_order(values, names.tolist(), name, default)
    try:
        array = np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"{name} must be a number, a dict by class or an array of numbers, got {values!r}."
        ) from error
    if array.ndim == 0:
        return np.full(len(names), float(array))
    if array.shape != (len(names),):
        raise ClassMismatchError(
            f"{name} must be a number, a dict by class or an array with one value for each of the "
            f"{len(names)} classes, got an array of shape {array.shape}."
        )
    return array


def _in_class_order(
    values: Mapping[Any, Any], known: list[Any], name: str, default: float | None
) -> list[Any]:
    unknown = [key for key in values if key not in known]
    if unknown:
        raise ClassMismatchError(
            f"{name} names {listing(unknown)}, not among the classes {listing(known)}."
        )
    missing = [key for key in known if key not in values]
    if missing and default is None:
        raise ClassMismatchError(
            f"{name} must name every class; {listing(missing)} is missing "
            f"(the classes are {listing(known)})."
        )
    return [values.get(key, default) for key in known]


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


def _inside(values: Any, interval: str) -> Any:
    # Comparisons with NaN are false, so NaN lies in no interval.
    low, high = map(float, interval[1:-1].split(","))
    above = values >= low if interval[0] == "[" else values > low
    below = values <= high if interval[-1] == "]" else values < high
    return above & below
