"""What fits check before they start, and what they say when they end."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from equipoise.exceptions import FewRowsWarning, InvalidInputError, InvalidParameterError
from equipoise.priors import Vector, weights_of

# A class of fewer rows cannot carry much of the objective without being learnt by heart.
FEW_ROWS = 20
MUCH_MASS = 0.1


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


def check_count(name: str, value: Any) -> int:
    """A whole number of at least one."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_) or value < 1:
        raise InvalidParameterError(f"{name} must be an integer of at least 1, got {value!r}.")
    return int(value)


def encode_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Class names and the class index of every row."""
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


def check_weights(
    sample_weight: Any, labels: NDArray[np.intp], classes: NDArray[Any]
) -> tuple[Vector, Vector]:
    """Sample weights, one per row, and their sums over the classes."""
    if sample_weight is None:
        weights = np.ones(len(labels))
    else:
        weights = check_array(
            np.asarray(sample_weight), ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
        _refuse_bad_weights(weights, len(labels))
    totals = np.bincount(labels, weights=weights, minlength=len(classes))
    if np.any(totals <= 0):
        empty = [repr(name) for name in classes[totals <= 0].tolist()]
        raise InvalidInputError(
            f"sample_weight is zero for every row of class {', '.join(empty)}: "
            "remove its rows, or give it some weight."
        )
    return weights, totals


def _refuse_bad_weights(weights: Vector, n_rows: int) -> None:
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight must have one value for each of the {n_rows} rows, got an array of "
            f"shape {weights.shape}."
        )
    if np.any(weights < 0):
        raise InvalidInputError(
            f"sample_weight must not be negative, got a smallest value of {weights.min():.6g}."
        )
    if not np.any(weights > 0):
        raise InvalidInputError("sample_weight must be positive for some rows, got only zeros.")


def warn_few_rows(
    mass: Vector, prior: Vector, rows: NDArray[np.intp], classes: NDArray[Any]
) -> None:
    """Warn where the worst case rests on a class of very few rows."""
    heavy = (rows < FEW_ROWS) & (mass > np.maximum(MUCH_MASS, prior))
    for i in np.flatnonzero(heavy):
        warnings.warn(
            f"Class {classes[i].item()!r} has {rows[i]} rows but carries {mass[i]:.0%} of the "
            f"objective (weight {weights_of(mass, prior)[i]:.3g}): the fit may learn these rows by "
            "heart. Cap its weight (a larger alpha), regularise more (a smaller C), or collect "
            "more rows.",
            FewRowsWarning,
            stacklevel=4,
        )
