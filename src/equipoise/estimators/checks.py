"""What fits check before they start, and what they say when they end."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array

from equipoise.exceptions import FewRowsWarning, InvalidInputError, InvalidParameterError
from equipoise.priors import Vector, check_prior
from equipoise.sets.checks import check_numbers

# A class of fewer rows cannot carry much of the objective, and so many times its share of the
# rows, without being learnt by heart.
FEW_ROWS = 20
MUCH_MASS = 0.1
TIMES_ITS_SHARE = 2.0


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Give an estimator its attributes back if the block ends in any exception."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def check_positive(name: str, value: Any, *, infinite: bool = False) -> float:
    """A positive number, finite unless ``infinite``."""
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not real or not value > 0 or (np.isinf(float(value)) and not infinite):
        rule = "a positive number" + (" or numpy.inf" if infinite else "")
        raise InvalidParameterError(f"{name} must be {rule}, got {value!r}.")
    return float(value)


def check_ridge(C: float, total: float) -> float:
    """The strength ``1 / (C n)`` of the penalty, ``n`` the sum of the sample weights."""
    scale = float(C) * total
    if not scale > np.finfo(np.float64).tiny:
        raise InvalidParameterError(
            f"C times the sum of the sample weights must not vanish, got C = {C:.6g} and a sum of "
            f"{total:.6g}."
        )
    return 1 / scale


def check_count(name: str, value: Any) -> int:
    """A whole number of at least one."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_) or value < 1:
        raise InvalidParameterError(f"{name} must be an integer of at least 1, got {value!r}.")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameterError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_verbosity(value: Any) -> int:
    """A whole number of at least zero, or True or False."""
    if not isinstance(value, Integral | np.bool_) or value < 0:
        raise InvalidParameterError(f"verbose must be an integer of at least 0, got {value!r}.")
    return int(value)


def check_class_prior(values: Any, classes: NDArray[Any], *, name: str) -> Vector:
    """A prior from a dict by class or an array in class order."""
    return check_prior(check_numbers(values, classes, name=name), classes, name=name)


def encode_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Class names and the class index of every row."""
    if type_of_target(y, input_name="y") == "unknown":
        y = _numbers_among_objects(y)
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"y must hold at least 2 classes, got only one class: {classes.tolist()}."
        )
    if len(classes) == len(labels) > 2:
        raise InvalidInputError(
            f"y has as many classes as rows ({len(labels)}): every class would be learnt from a "
            "single row. If y is a number to predict, this is a regression problem."
        )
    return classes, labels


def _numbers_among_objects(y: NDArray[Any]) -> NDArray[Any]:
    """Numbers that came as objects, as a column of mixed origin does."""
    labels = y.tolist()
    types = {type(label) for label in labels}
    if len(types) == 1 and isinstance(labels[0], Real):
        return np.array(labels)
    names = ", ".join(sorted(kind.__name__ for kind in types))
    raise InvalidInputError(
        "Unknown label type: y must hold class labels of one type, numbers or text, and none "
        f"missing, got objects of type {names}."
    )


def check_weights(
    sample_weight: Any, labels: NDArray[np.intp], classes: NDArray[Any]
) -> tuple[Vector, Vector]:
    """Sample weights, one per row, and their sums over the classes."""
    if sample_weight is None:
        weights = np.ones(len(labels))
    else:
        weights = _numbers(sample_weight, len(labels))
        _refuse_bad_weights(weights)
    sums = np.bincount(labels, weights=weights, minlength=len(classes))
    totals = sums.astype(np.float64, copy=False)
    if np.any(totals <= 0):
        empty = [repr(name) for name in classes[totals <= 0].tolist()]
        raise InvalidInputError(
            f"sample_weight is zero for every row of class {', '.join(empty)}: "
            "remove its rows, or give it some weight."
        )
    return weights, totals


def _numbers(sample_weight: Any, n_rows: int) -> Vector:
    """One finite float64 for each row."""
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sample_weight must hold numbers: {error}.") from error
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight must have one value for each of the {n_rows} rows, got an array of "
            f"shape {weights.shape}."
        )
    checked: Vector = check_array(weights, ensure_2d=False, input_name="sample_weight")
    return checked


def _refuse_bad_weights(weights: Vector) -> None:
    if np.any(weights < 0):
        raise InvalidInputError(
            f"sample_weight must not be negative, got a smallest value of {weights.min():.6g}."
        )
    if not np.any(weights > 0):
        raise InvalidInputError("sample_weight must be positive for some rows, got only zeros.")
    if np.isinf(float(weights.max()) * len(weights)):
        raise InvalidInputError(
            f"sample_weight must have a finite sum, got a largest value of {weights.max():.6g}."
        )


def warn_few_rows(
    mass: Vector, weights: Vector, rows: NDArray[np.intp], classes: NDArray[Any]
) -> None:
    """Warn where the worst case rests on a class of very few rows."""
    shares = rows / rows.sum()
    heavy = (rows < FEW_ROWS) & (mass > np.maximum(MUCH_MASS, TIMES_ITS_SHARE * shares))
    for i in np.flatnonzero(heavy):
        warnings.warn(
            f"Class {classes.tolist()[i]!r} has {rows[i]} rows but carries {mass[i]:.0%} of the "
            f"objective (weight {weights[i]:.3g}): the fit may learn these rows by heart. Cap its "
            "weight (a larger alpha), regularise more (a smaller C), or collect more rows.",
            FewRowsWarning,
            stacklevel=5,
        )
