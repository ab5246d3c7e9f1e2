"""What a table is made of, and what about it deserves a warning, in plain sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.extras import require
from equipoise.tables.columns import Column, columns_of
from equipoise.tables.features import MAX_LEVELS
from equipoise.weights.by_class import ByClass

# In fewer rows than this, distinct values say nothing.
_ENOUGH_ROWS = 20
# A text column with so large a share of distinct values names its rows.
_ALL_DISTINCT = 0.95
# So large a share of the distinct texts being numbers is no accident.
_NEARLY_NUMBERS = 0.5
_SHOWN = 5


@dataclass(frozen=True)
class TableFacts:
    """What a table is made of.

    Attributes
    ----------
    n_rows : int
    columns : tuple of Column
        The feature columns, in order.
    counts : ByClass
        Rows of each class.
    warnings : tuple of str
        One sentence for each thing that deserves a look.
    """

    n_rows: int
    columns: tuple[Column, ...]
    counts: ByClass
    warnings: tuple[str, ...]


def table_facts(X: Any, y: Any) -> TableFacts:
    """Columns, class counts and warnings of a table of features with its labels.

    Parameters
    ----------
    X : pandas.DataFrame
        Features, as read from a file or as ``split_target`` gives them.
    y : array-like of shape (n_rows,)
        Labels.

    Returns
    -------
    TableFacts
    """
    columns = columns_of(X)
    classes, rows = np.unique(np.asarray(y), return_counts=True)
    warnings = [*_column_warnings(X, columns), *_class_warnings(classes, rows)]
    return TableFacts(len(X), columns, ByClass(rows, classes), tuple(warnings))


def _column_warnings(X: Any, columns: tuple[Column, ...]) -> Iterator[str]:
    empty = [column.name for column in columns if column.kind == "empty"]
    if empty:
        yield f"{_named(empty)} without a single value: left out."
    names = dict(zip((column.name for column in columns), X.columns, strict=True))
    for column in columns:
        series = X[names[column.name]]
        if column.n_infinite:
            yield (
                f"Column {column.name!r} has {column.n_infinite} infinite values: read as missing."
            )
        if _is_identifier(series, column):
            yield (
                f"Column {column.name!r} names nearly every row differently and looks like "
                "an identifier: leave it out unless it means something."
            )
        elif column.kind == "text":
            yield from _text_warnings(series, column)


def _is_identifier(series: Any, column: Column) -> bool:
    known = len(series) - column.n_missing
    if known < _ENOUGH_ROWS:
        return False
    if column.kind == "number":
        if column.n_distinct < known or column.n_missing:
            return False
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return bool(np.all(values % 1 == 0))
    return column.kind == "text" and column.n_distinct >= _ALL_DISTINCT * known


def _text_warnings(series: Any, column: Column) -> Iterator[str]:
    pandas = require("pandas", extra="cli")
    levels = pandas.Series(series.dropna().unique()).astype(str)
    numbers = pandas.to_numeric(levels, errors="coerce").notna()
    if _NEARLY_NUMBERS <= numbers.mean() < 1:
        stray = levels[~numbers].iloc[0][:60]
        yield (
            f"Column {column.name!r} is read as text because of values such as {stray!r} among its "
            "numbers: mend or empty them if it is a number."
        )
    elif column.n_distinct > MAX_LEVELS:
        yield (
            f"Column {column.name!r} has {column.n_distinct} distinct texts: linear models keep "
            f"the {MAX_LEVELS - 1} most frequent apart and put the others together."
        )


def _class_warnings(classes: NDArray[Any], rows: NDArray[np.intp]) -> Iterator[str]:
    single = [repr(name) for name in classes[rows == 1].tolist()]
    if len(single) == 1:
        yield (
            f"Class {single[0]} has a single row: it is used for training, but no risk can be "
            "estimated from it."
        )
    elif single:
        names = ", ".join(single[:_SHOWN]) + (", ..." if len(single) > _SHOWN else "")
        yield (
            f"{len(single)} classes ({names}) have a single row each: they are used for training, "
            "but their risks cannot be estimated."
        )


def _named(names: list[str]) -> str:
    more = ", ..." if len(names) > _SHOWN else ""
    listing = ", ".join(map(repr, names[:_SHOWN])) + more
    return f"Column {listing} is" if len(names) == 1 else f"{len(names)} columns ({listing}) are"
