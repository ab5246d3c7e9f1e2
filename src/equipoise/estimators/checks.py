"""What fits check before they start, and what they say when they end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.exceptions import FewRowsWarning, InvalidParameterError, warn
from equipoise.validation.numbers import check_numbers
from equipoise.validation.row_weights import check_sample_weight, class_totals
from equipoise.weights.priors import check_prior

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


def check_ridge(C: float, total: float) -> float:
    """The strength ``1 / (C n)`` of the penalty, ``n`` the sum of the sample weights."""
    scale = float(C) * total
    if not scale > np.finfo(np.float64).tiny:
        raise InvalidParameterError(
            f"C times the sum of the sample weights must not vanish, got C = {C:.6g} and a sum of "
            f"{total:.6g}."
        )
    return 1 / scale


def check_class_prior(values: Any, classes: NDArray[Any], *, name: str) -> Vector:
    """A prior from a dict by class or an array in class order."""
    return check_prior(check_numbers(values, classes, name=name), classes, name=name)


def check_weights(
    sample_weight: Any, labels: NDArray[np.intp], classes: NDArray[Any]
) -> tuple[Vector, Vector]:
    """Sample weights, one per row, and their sums over the classes."""
    weights = check_sample_weight(sample_weight, len(labels))
    return weights, class_totals(weights, labels, classes)


def warn_few_rows(
    mass: Vector, weights: Vector, rows: NDArray[np.intp], classes: NDArray[Any]
) -> None:
    """Warn where the worst case rests on a class of very few rows."""
    shares = rows / rows.sum()
    heavy = (rows < FEW_ROWS) & (mass > np.maximum(MUCH_MASS, TIMES_ITS_SHARE * shares))
    for i in np.flatnonzero(heavy):
        warn(
            f"Class {classes.tolist()[i]!r} has {rows[i]} rows but carries {mass[i]:.0%} of the "
            f"objective (weight {weights[i]:.3g}): the fit may learn these rows by heart. Cap its "
            "weight (a larger alpha), regularise more (a smaller C), or collect more rows.",
            FewRowsWarning,
        )
