"""What all fits share: all or nothing, and a word where the worst case rests on few rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.exceptions import FewRowsWarning, warn

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
