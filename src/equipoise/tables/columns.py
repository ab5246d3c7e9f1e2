"""What kind of thing each column holds, and columns brought into the two forms that models read.

A model sees numbers (float64, NaN where missing) and texts (``str`` objects, NaN where missing),
and nothing else. :func:`columns_of` says which column of a table is to be which;
:func:`conform` makes it so, for the training table and for every later one alike.
"""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.exceptions import InvalidInputError, in_a_sentence
from equipoise.extras import require
from equipoise.text import listing

# Larger numbers are cut here: their squares must not overflow when columns are scaled.
LARGEST = 1e100

_EXPECTED = {"number": "numbers", "date": "dates", "text": "texts", "truth": "truth values"}
COLUMN_KINDS = (*_EXPECTED, "empty")
_TRUTHS = {"true": "True", "false": "False", "1": "True", "0": "False"}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : {"number", "text", "truth", "date", "empty"}
        Dates become numbers of days, truth values the texts ``True`` and ``False``; an empty
        column, with no value in any row, is left out.
    dtype : str
        What the column was in the table.
    n_missing, n_infinite, n_distinct : int
        Missing values (infinite ones count as missing), infinite values, distinct values.

    Examples
    --------
    >>> Column("born", "date", "datetime64[ns]").is_numeric
    True
    """

    name: str
    kind: str
    dtype: str
    n_missing: int = 0
    n_infinite: int = 0
    n_distinct: int = 0

    @property
    def is_numeric(self) -> bool:
        """Whether a model reads it as numbers."""
        return self.kind in ("number", "date")

    @property
    def is_categorical(self) -> bool:
        """Whether a model reads it as categories."""
        return self.kind in ("text", "truth")


def as_frame(X: Any) -> Any:
    """A table as a DataFrame with names that are texts; those of an array are x0, x1 and so on."""
    pandas = require("pandas", extra="report")
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    if hasattr(X, "toarray"):
        raise InvalidInputError(
            "X must be a table of rows and columns, got a sparse matrix: give X.toarray() or a "
            "DataFrame, or compare classifiers of your own, which may take it as it is."
        )
    if not isinstance(X, pandas.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            raise InvalidInputError(f"X must have rows and columns, got shape {array.shape}.")
        X = pandas.DataFrame(array, columns=[f"x{position}" for position in range(array.shape[1])])
    if len(X) == 0:
        raise InvalidInputError("X must have at least one row, got none.")
    return X.reset_index(drop=True).set_axis([str(name) for name in X.columns], axis=1)


def columns_of(frame: Any) -> tuple[Column, ...]:
    """The columns of a pandas DataFrame, in order.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31, 45], "town": ["Ulm", None]})
    >>> [(column.name, column.kind, column.n_missing) for column in columns_of(table)]
    [('age', 'number', 0), ('town', 'text', 1)]
    """
    check_names(frame.columns)
    return tuple(_column(str(name), series) for name, series in frame.items())


def check_names(names: Iterable[Any]) -> None:
    """Refuse column names that occur twice."""
    times = Counter(map(str, names))
    if twice := sorted(name for name, count in times.items() if count > 1):
        raise InvalidInputError(
            f"Column names must be distinct, but the table has {listing(twice, 5)} more than once: "
            "rename or remove one of them."
        )


def find_column(frame: Any, wanted: str) -> Any:
    """The name of a column as the table has it, which need not be a text.

    Examples
    --------
    >>> import pandas as pd
    >>> find_column(pd.DataFrame({7: [1, 2]}), "7")
    7
    """
    names = {str(name): name for name in frame.columns}
    if wanted in names:
        return names[wanted]
    alike = [name for name in names if name.strip().lower() == wanted.strip().lower()]
    hint = f" Did you mean {alike[0]!r}?" if alike else ""
    raise InvalidInputError(
        f"The table has no column {wanted!r}; its columns are {listing(names, 20)}.{hint}"
    )


def _column(name: str, series: Any) -> Column:
    kind, infinite = _kind(name, series), 0
    if kind == "number":
        values = _numbers(series, name)
        infinite = int(np.isinf(values).sum())
        missing = int(np.isnan(values).sum()) + infinite
    else:
        missing = int(series.isna().sum())
    if missing == len(series):
        kind = "empty"
    distinct = 0 if kind == "empty" else int(series.nunique())
    return Column(name, kind, str(series.dtype), missing, infinite, distinct)


# By what pandas takes the values of a column for.
_KINDS = {
    "string": "text",
    "categorical": "text",
    "boolean": "truth",
    "integer": "number",
    "floating": "number",
    "mixed-integer-float": "number",
    "decimal": "number",
    "timedelta64": "number",
    "date": "date",
    "datetime": "date",
    "datetime64": "date",
    "empty": "empty",
}


def _kind(name: str, series: Any) -> str:
    """The kind of a column, from its dtype or, for objects, from their values."""
    if _is_plain(series):
        return "number"
    inferred = require("pandas", extra="cli").api.types.infer_dtype(series, skipna=True)
    if inferred in _KINDS:
        return _KINDS[inferred]
    for value in series.dropna() if inferred == "complex" or series.dtype == object else ():
        if not isinstance(value, str | int | float | bool | np.generic):
            raise InvalidInputError(
                f"Column {name!r} holds values of type {type(value).__name__}, which no model "
                "reads: turn it into columns of numbers or texts, or leave it out."
            )
    return "text"


def conform(frame: Any, columns: Sequence[Column]) -> Any:
    """The given columns of a table, in their order, as numbers and texts that models read.

    Empty columns are left out. A column that is missing from the table, or that holds a text
    where a number was expected, is an error that names it. What is conformed already stays.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [31, 45], "new": [True, False], "nothing": [None, None]})
    >>> conform(table, columns_of(table)).to_dict("list")
    {'age': [31.0, 45.0], 'new': ['True', 'False']}
    """
    pandas = require("pandas", extra="cli")
    used = [column for column in columns if column.kind != "empty"]
    names = {str(name): name for name in frame.columns}
    lacking = [column.name for column in used if column.name not in names]
    if lacking:
        raise InvalidInputError(
            f"The table has no column {listing(lacking, 12)}; its columns are {listing(names, 12)}."
        )
    made = {column.name: _made(frame[names[column.name]], column) for column in used}
    return pandas.DataFrame(made, index=frame.index, columns=[column.name for column in used])


def features_of(X: Any) -> tuple[Any, Any, tuple[Column, ...]]:
    """A table, the same as models read it, and its columns, one of which holds something."""
    frame = as_frame(X)
    columns = columns_of(frame)
    refuse_empty(columns)
    return frame, conform(frame, columns), columns


def refuse_empty(columns: Iterable[Column]) -> None:
    """Refuse columns of which none holds a value."""
    if all(column.kind == "empty" for column in columns):
        raise InvalidInputError(
            "The table has no column with any value besides the label: there is nothing to learn "
            "from."
        )


def _made(series: Any, column: Column) -> Any:
    # Lists and other objects are not values.
    with in_a_sentence(f"Column {column.name!r} must hold {_EXPECTED[column.kind]}", TypeError):
        if column.kind == "number":
            return _finite(_numbers(series, column.name))
        if column.kind == "date":
            return _days(series, column.name)
        return _texts(series, truth=column.kind == "truth")


def _numbers(series: Any, name: str) -> Any:
    """The column as float64; a text among the numbers is an error that quotes it."""
    if _is_plain(series):
        return series.to_numpy(dtype=np.float64)
    pandas = require("pandas", extra="cli")
    if series.dtype.kind == "m":
        series = series.dt.total_seconds()
    elif isinstance(series.dtype, pandas.CategoricalDtype):
        series = series.astype(object)
    try:
        numbers = pandas.to_numeric(series, errors="coerce")
    except OverflowError:
        # Whole numbers of hundreds of digits are infinite once they have a point.
        texts = series.astype(str).str.replace(r"^([+-]?\d+)$", r"\1.", regex=True)
        numbers = pandas.to_numeric(texts, errors="coerce")
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    _refuse_strays(series, np.isnan(values), name, "numbers")
    return values


def _finite(values: Any) -> Any:
    return np.clip(np.where(np.isinf(values), np.nan, values), -LARGEST, LARGEST)


def _is_plain(series: Any) -> bool:
    """Whether NumPy holds it as numbers: wide tables have many such columns, and nothing else."""
    return isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiu"


def _refuse_strays(series: Any, unread: Any, name: str, what: str) -> None:
    stray = unread & series.notna().to_numpy()
    if stray.any():
        position = int(np.argmax(stray))
        row = series.index[position]
        row = row + 1 if isinstance(row, int | np.integer) else row
        raise InvalidInputError(
            f"Column {name!r} must hold {what}, got {str(series.iloc[position])[:60]!r} in data "
            f"row {row}."
        )


def _days(series: Any, name: str) -> Any:
    """Days since 1970 as float64; numbers are days already."""
    if _is_plain(series):
        return _finite(series.to_numpy(dtype=np.float64))
    pandas = require("pandas", extra="cli")
    # pandas warns where it reads dates one by one.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        stamps = pandas.to_datetime(series, errors="coerce", utc=True, format="mixed")
    _refuse_strays(series, stamps.isna().to_numpy(), name, "dates")
    # As NumPy's, which know years beyond those of nanoseconds.
    times = stamps.dt.tz_localize(None).to_numpy()
    return (times - np.datetime64(0, "s")) / np.timedelta64(1, "D")


def _texts(series: Any, *, truth: bool) -> Any:
    """The column as ``str`` objects with NaN for what is missing."""
    # Few distinct values stand for many rows: only those are looked at one by one.
    codes, levels = require("pandas", extra="cli").factorize(series, use_na_sentinel=True)
    texts = [text_of(level) for level in levels]
    if truth:
        texts = [_TRUTHS.get(text.lower(), text) for text in texts]
    return np.array([*texts, np.nan], dtype=object)[codes]


def text_of(value: Any) -> str:
    """A value as text; a whole number has no point, also where a gap made it a float."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
