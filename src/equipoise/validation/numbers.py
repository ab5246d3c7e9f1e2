"""Numbers that users give, alone or by class: the rule printed is the rule checked."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Vector
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.text import listing


def check_number(value: Any, name: str, interval: str) -> float:
    """A number inside an interval written as mathematicians do, such as ``"(0, 1]"``.

    Examples
    --------
    >>> check_number(0.5, "alpha", "(0, 1]")
    0.5
    >>> check_number(1.5, "alpha", "(0, 1]")
    Traceback (most recent call last):
    equipoise.exceptions.InvalidParameterError: alpha must be a number in (0, 1], got 1.5.
    """
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if real and _inside(float(value), interval):
        return float(value)
    raise InvalidParameterError(f"{name} must be a number in {interval}, got {value!r}.")


def check_count(value: Any, name: str, least: int = 1) -> int:
    """A whole number of at least ``least``.

    Examples
    --------
    >>> check_count(3, "cv", least=2)
    3
    """
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_) or value < least:
        raise InvalidParameterError(
            f"{name} must be an integer of at least {least}, got {value!r}."
        )
    return int(value)


def check_flag(value: Any, name: str) -> bool:
    """True or False.

    Examples
    --------
    >>> check_flag(True, "refit")
    True
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameterError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_verbosity(value: Any) -> int:
    """A whole number of at least zero, or True or False.

    Examples
    --------
    >>> check_verbosity(True)
    1
    """
    if not isinstance(value, Integral | np.bool_) or value < 0:
        raise InvalidParameterError(f"verbose must be an integer of at least 0, got {value!r}.")
    return int(value)


def check_word(value: Any, name: str, words: tuple[str, ...]) -> str:
    """One of the given words.

    Examples
    --------
    >>> check_word("drop", "rare", ("error", "keep", "drop"))
    'drop'
    """
    if isinstance(value, str) and value in words:
        return value
    raise InvalidParameterError(
        f"{name} must be one of {', '.join(map(repr, words))}, got {value!r}."
    )


def check_seed(random_state: Any) -> int:
    """A seed; the same one every time where none is given, so that fits can be repeated.

    Examples
    --------
    >>> check_seed(None), check_seed(7)
    (0, 7)
    """
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

    Examples
    --------
    >>> check_numbers({"b": 2}, ["a", "b"], name="weights", default=1).tolist()
    [1.0, 2.0]
    """
    names = np.asarray(classes)
    try:
        if isinstance(values, Mapping):
            return _from_mapping(values, names, name, default)
        array = np.array(values, dtype=np.float64)
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"{name} must be a number, a dict by class or an array of numbers, got {values!r}."
        ) from error
    if array.ndim == 0:
        return np.full(len(names), float(array))
    if array.shape != (len(names),):
        raise ClassMismatchError(
            f"{name} must be a scalar, a dict by class or an array with one value for each of the "
            f"{len(names)} classes, got an array of shape {array.shape}."
        )
    return array


def _from_mapping(
    values: Mapping[Any, float], names: NDArray[Any], name: str, default: float | None
) -> Vector:
    known = names.tolist()
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
    return np.array([values.get(key, default) for key in known], dtype=np.float64)


def check_interval(vector: Vector, classes: NDArray[Any], name: str, interval: str) -> Vector:
    """Every entry inside the interval; the error names the first class that is not.

    Examples
    --------
    >>> check_interval(np.array([0.5, 0.25]), np.array(["a", "b"]), "recall", "[0, 1]").tolist()
    [0.5, 0.25]
    """
    inside = _inside(vector, interval)
    if not np.all(inside):
        bad = int(np.argmin(inside))
        raise InvalidParameterError(
            f"{name} must be in {interval} for every class, "
            f"got {vector[bad]:.6g} for class {classes.tolist()[bad]!r}."
        )
    return vector


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
