"""The rows to compare on: features as models read them, labels by class, and what they are."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Vector
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.tables import TableFacts, columns_of, conform, row_groups, table_facts
from equipoise.validation.labels import encode_labels
from equipoise.validation.row_weights import weights_and_totals

Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Table:
    """Labelled rows.

    Attributes
    ----------
    X : pandas.DataFrame
        Columns of float64 and of texts, NaN where missing.
    y : ndarray of shape (n_rows,)
        Labels.
    classes : ndarray of shape (n_classes,)
        Class names.
    labels : ndarray of shape (n_rows,)
        Class index of every row.
    weights : ndarray of shape (n_rows,) or None
        Sample weights where they were given.
    facts : TableFacts
    """

    X: Any
    y: NDArray[Any]
    classes: NDArray[Any]
    labels: Rows
    weights: Vector | None
    facts: TableFacts

    @cached_property
    def counts(self) -> Rows:
        """Rows of each class."""
        return np.bincount(self.labels, minlength=len(self.classes))

    @cached_property
    def prior(self) -> Vector:
        """Share of each class in the weight of the rows."""
        totals = np.bincount(self.labels, weights=self.weights, minlength=len(self.classes))
        return np.asarray(totals / totals.sum(), dtype=np.float64)

    @cached_property
    def groups(self) -> Rows:
        """Equal numbers for rows with equal features."""
        return row_groups(self.X)

    def weights_at(self, rows: Any) -> Vector | None:
        """Sample weights of some rows."""
        return None if self.weights is None else self.weights[rows]


def as_table(X: Any, y: Any, sample_weight: Any = None) -> Table:
    """Labelled rows from a DataFrame, an array, or anything that pandas makes a DataFrame of."""
    frame = _frame(X)
    names = np.asarray(y)
    if names.ndim != 1 or len(names) != len(frame):
        raise InvalidInputError(
            f"y must hold one label for each of the {len(frame)} rows of X, got an array of shape "
            f"{names.shape}."
        )
    classes, labels = encode_labels(names)
    weights = None
    if sample_weight is not None:
        weights = weights_and_totals(sample_weight, labels, classes)[0]
    facts = table_facts(frame, names)
    if all(column.kind == "empty" for column in facts.columns):
        raise InvalidInputError(
            "The table has no column with any value besides the label: there is nothing to learn "
            "from."
        )
    return Table(conform(frame, facts.columns), names, classes, labels, weights, facts)


def _frame(X: Any) -> Any:
    pandas = require("pandas", extra="report")
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "toarray"):
        raise InvalidInputError(
            "X must be a table of rows and columns, got a sparse matrix: give X.toarray() or a "
            "DataFrame."
        )
    if not isinstance(X, pandas.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            raise InvalidInputError(f"X must have rows and columns, got shape {array.shape}.")
        X = pandas.DataFrame(array, columns=[f"x{place}" for place in range(array.shape[1])])
    if len(X) == 0:
        raise InvalidInputError("X must have at least one row, got none.")
    frame = X.reset_index(drop=True).set_axis([str(name) for name in X.columns], axis=1)
    columns_of(frame)
    return frame
