r"""Metrics of many classes as functions of a table: macro F-beta, geometric mean of the recalls.

With :math:`h_i` the rows of class ``i`` decided right, :math:`n_i` all its rows, and :math:`d_i`
the rows decided to be of it:

.. math::

    F_\beta = \frac{1}{k} \sum_i \frac{(1 + \beta^2) h_i}{\beta^2 n_i + d_i}, \qquad
    G = \Bigl( \prod_i \frac{h_i}{n_i} \Bigr)^{1/k}

Conventions
-----------
``table`` has the true classes as rows and the decisions as columns, in the same order; it holds
counts or weights. A class without a row has no recall and no F-beta: it is refused, or left out of
the mean with ``absent="drop"``. Decisions for it stay what they are for the other classes, wrong.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Mask, Matrix, Vector
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.validation.labels import class_names
from equipoise.validation.numbers import check_number, check_word

Absent = Literal["raise", "drop"]


def macro_fbeta(
    table: ArrayLike,
    beta: float = 1.0,
    *,
    classes: ArrayLike | None = None,
    absent: Absent = "raise",
) -> float:
    r"""The mean over the classes of their F-beta.

    .. math:: F_\beta = \frac{1}{k} \sum_i \frac{(1 + \beta^2) h_i}{\beta^2 n_i + d_i}

    Parameters
    ----------
    table : array-like of shape (n_classes, n_classes)
        Rows by true class, columns by decision.
    beta : float, default=1.0
        How many times as much recall counts as precision.
    classes : array-like of shape (n_classes,), optional
        Names for the messages.
    absent : {"raise", "drop"}, default="raise"
        Whether a class without a row is an error, or left out of the mean.

    Examples
    --------
    >>> macro_fbeta([[2, 0], [1, 1]])
    0.7333333333333334
    """
    square = check_number(beta, "beta", "(0, inf)") ** 2
    cells, present = _check_table(table, classes, absent)
    hits, rows, decided = np.diag(cells), cells.sum(axis=1), cells.sum(axis=0)
    scores = (1 + square) * hits[present] / (square * rows + decided)[present]
    return float(scores.mean())


def geometric_mean(
    table: ArrayLike, *, classes: ArrayLike | None = None, absent: Absent = "raise"
) -> float:
    r"""The geometric mean of the recalls; 0 as soon as one class is always missed.

    .. math:: G = \Bigl( \prod_i \frac{h_i}{n_i} \Bigr)^{1/k}

    Parameters
    ----------
    table, classes, absent
        As in :func:`macro_fbeta`.

    Examples
    --------
    >>> geometric_mean([[4, 0], [3, 1]])
    0.5
    """
    cells, present = _check_table(table, classes, absent)
    recalls: Vector = (np.diag(cells) / np.where(present, cells.sum(axis=1), 1.0))[present]
    # Roots first: a product of a thousand recalls would vanish.
    return float(np.prod(recalls ** (1 / len(recalls))))


def _check_table(
    table: ArrayLike, classes: ArrayLike | None, absent: Absent
) -> tuple[Matrix, Mask]:
    """The table, and which classes have rows."""
    cells = np.asarray(table, dtype=np.float64)
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or cells.size == 0:
        raise InvalidInputError(
            "table must have a row and a column for each class, rows by true class and columns by "
            f"decision, got shape {cells.shape}."
        )
    if not np.isfinite(cells).all() or cells.min() < 0:
        raise InvalidInputError("table must hold finite values of at least 0, got others.")
    check_word(absent, "absent", ("raise", "drop"))
    present = cells.sum(axis=1) > 0
    if not present.any() or (absent == "raise" and not present.all()):
        _refuse_absent(present, classes)
    return cells, present


def _refuse_absent(present: Mask, classes: Any) -> None:
    names = class_names(classes, len(present))
    if not present.any():
        raise InvalidInputError("table must hold at least one row, got only zeros.")
    raise ClassMismatchError(
        f"every class needs a row in the table, {names[~present].tolist()} has none, so its recall "
        "is undefined; absent='drop' leaves it out of the mean."
    )
