"""Rows of probabilities that hold only the most probable of many classes, as sparse rows.

A class that a row does not hold has the probability zero, and is not predicted for that row. Work
and memory grow with what is held, not with the number of classes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.exceptions import InvalidInputError

# MOST_CELLS: probabilities, 1 GiB of float64, beyond which sparse rows are not made dense: goals
# that need it copy them several times.
MOST_CELLS = 1 << 27
# A Matrix or a csr_array, whose types SciPy does not tell.
Table: TypeAlias = Any


def dense(table: Table) -> Matrix:
    """All probabilities of some rows; those of sparse rows only where memory holds them."""
    if not issparse(table):
        return np.asarray(table)
    n, k = table.shape
    if n * k > MOST_CELLS:
        raise InvalidInputError(
            f"This goal needs all probabilities of {n:,} rows and {k:,} classes at once, "
            f"{n * k / 2**27:.0f} GiB: take a set such as LabelCVaR(0.2), or a metric such as "
            "'f1_macro', which read sparse probabilities as they are, or fewer rows."
        )
    return np.asarray(table.toarray())


def rows_of(table: csr_array) -> Indices:
    """The row of every value that is held."""
    return np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))


def with_values(table: csr_array, values: Vector) -> csr_array:
    """Rows that hold other values of the same classes."""
    return csr_array((values, table.indices, table.indptr), shape=table.shape)


def row_maxima(table: csr_array) -> Vector:
    """The largest value of each row; of a row that holds nothing, 0."""
    held = np.diff(table.indptr) > 0
    maxima = np.zeros(table.shape[0])
    if held.any():
        maxima[held] = np.maximum.reduceat(table.data, table.indptr[:-1][held])
    return maxima


def row_argmax(table: csr_array) -> Indices:
    """The first class with the largest value of each row; of a row that holds nothing, class 0.

    Examples
    --------
    >>> row_argmax(csr_array([[0.0, 0.2, 0.2], [0.5, 0.0, 0.1]]))
    array([1, 0])
    """
    rows = rows_of(table)
    largest = np.flatnonzero(table.data == row_maxima(table)[rows])
    classes = np.zeros(table.shape[0], dtype=np.intp)
    # In reverse, so that the first of a row is written last.
    classes[rows[largest[::-1]]] = table.indices[largest[::-1]]
    return classes


def at_labels(table: Table, labels: Indices) -> Vector:
    """The value of each row at its own class."""
    if not issparse(table):
        return np.asarray(table[np.arange(len(labels)), labels])
    rows, values = rows_of(table), np.zeros(len(labels))
    here = np.flatnonzero(table.indices == labels[rows])
    values[rows[here]] = table.data[here]
    return values


def among(table: csr_array, rows: Indices, classes: Mask) -> csr_array:
    """Some rows, and what they hold of some classes."""
    some = table[rows]
    kept = classes[some.indices]
    ends = np.concatenate([[0], np.cumsum(kept)])[some.indptr]
    numbers = np.cumsum(classes) - 1
    shape = some.shape[0], int(np.count_nonzero(classes))
    return csr_array((some.data[kept], numbers[some.indices[kept]], ends), shape=shape)
