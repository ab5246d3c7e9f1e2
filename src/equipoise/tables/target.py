"""The label column: which classes a table has, and how to recognise them in another table."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.extras import require
from equipoise.tables.columns import conform, feature_columns, text_of
from equipoise.text import listing

# Whole numbers beyond this are no longer told apart as floats.
_EXACT = 2.0**53


def split_target(frame: Any, target: str, *, text_labels: bool = False) -> tuple[Any, NDArray[Any]]:
    """Features, as models read them, and labels.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table.
    target : str
        The column that holds the class of each row. Whole numbers stay numbers; everything else
        becomes text.
    text_labels : bool, default=False
        Whether numbers are names of classes too: every distinct value is a class.

    Returns
    -------
    X : pandas.DataFrame
        Columns of float64 and of ``str`` objects, NaN where missing; see
        :func:`equipoise.tables.conform`.
    y : ndarray of shape (n_rows,)
        Labels, int64 or ``str`` objects.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1, 2, 3], "kind": ["a", "b", "a"]})
    >>> X, y = split_target(table, "kind")
    >>> list(X.columns), y.tolist()
    (['size'], ['a', 'b', 'a'])
    """
    y = labels_of(frame, target, text_labels=text_labels)
    features = features_of(frame, target)
    return conform(features, feature_columns(features)), y


def features_of(frame: Any, target: str) -> Any:
    """The table without its label column."""
    return frame.drop(columns=_find(frame, target))


def labels_of(frame: Any, target: str, *, text_labels: bool = False) -> NDArray[Any]:
    """The labels of a table with at least two classes, none of them missing."""
    series = frame[_find(frame, target)]
    missing = int(series.isna().sum())
    if missing:
        first = int(np.argmax(series.isna().to_numpy())) + 1
        raise InvalidInputError(
            f"The label {target!r} is missing in {missing} of {len(series)} rows, first in data "
            f"row {first}: remove these rows or fill them in (values such as NA, None and ? are "
            "read as missing)."
        )
    labels = _plain(series, target, text_labels=text_labels)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise InvalidInputError(
            f"The label {target!r} has only one class, {classes.tolist()[0]!r}, in all "
            f"{len(labels)} rows: there is nothing to tell apart."
        )
    if len(classes) == len(labels) > 2:
        raise InvalidInputError(
            f"The label {target!r} has a different value in each of the {len(labels)} rows; it "
            "looks like an identifier or a quantity, not a class. Is another column the label?"
        )
    return labels


def _find(frame: Any, target: str) -> Any:
    """The name of the column as the table has it."""
    names = {str(name): name for name in frame.columns}
    if target in names:
        return names[target]
    alike = [name for name in names if name.strip().lower() == target.strip().lower()]
    hint = f" Did you mean {alike[0]!r}?" if alike else ""
    raise InvalidInputError(
        f"The table has no column {target!r}; its columns are {listing(names, 20)}.{hint}"
    )


def _plain(series: Any, target: str, *, text_labels: bool) -> NDArray[Any]:
    """Labels as int64 or as ``str`` objects."""
    pandas = require("pandas", extra="cli")
    if isinstance(series.dtype, pandas.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    # Columns that can hold gaps have dtypes of their own: the values say what they are.
    values: NDArray[Any] = series.to_numpy(dtype=object)
    types = pandas.api.types
    is_number = types.is_numeric_dtype(series.dtype) and not types.is_bool_dtype(series.dtype)
    if text_labels or not is_number:
        return np.array([text_of(value) for value in values.tolist()], dtype=object)
    if types.is_integer_dtype(series.dtype):
        fit = max(values.tolist()) <= np.iinfo(np.int64).max
        return values.astype(np.int64) if fit else values.astype(str).astype(object)
    numbers = values.astype(np.float64)
    fraction = numbers[
        ~np.isfinite(numbers) | (np.floor(numbers) != numbers) | (np.abs(numbers) > _EXACT)
    ]
    if len(fraction) == 0:
        return numbers.astype(np.int64)
    raise InvalidInputError(
        f"The label {target!r} holds numbers with fractions, such as {fraction[0]:.6g} "
        f"({len(np.unique(numbers))} distinct values): that is a quantity, not a class. Cut it "
        "into ranges first (pandas.cut), or pass --text-labels (text_labels=True) if every "
        "distinct value is the name of a class."
    )


def labels_like(frame: Any, target: str, classes: NDArray[Any]) -> NDArray[Any]:
    """The labels of another table, as the classes that a model knows.

    A class is recognised by its text, so that ``1``, ``1.0`` and ``"1"`` are one class. A label
    that is no class is an error that names it.
    """
    series = frame[_find(frame, target)]
    known = {str(name): place for place, name in enumerate(classes.tolist())}
    codes, levels = require("pandas", extra="cli").factorize(series, use_na_sentinel=True)
    if (codes < 0).any():
        row = series.index[int(np.argmax(codes < 0))] + 1
        raise InvalidInputError(f"The label {target!r} is missing in data row {row}.")
    places = [_place(level, known) for level in levels]
    if -1 in places:
        stray = text_of(levels[places.index(-1)])
        raise ClassMismatchError(
            f"The label {target!r} holds {stray!r}, which is no class of the model (its classes "
            f"are {listing(known, 8)}): remove its rows, or fit again with them."
        )
    return np.asarray(classes[np.asarray(places, dtype=np.intp)[codes]])


def _place(level: Any, known: dict[str, int]) -> int:
    """Where a label stands among the classes; -1 if nowhere."""
    text = text_of(level)
    if text in known:
        return known[text]
    # Columns of truth values and of numbers have more than one spelling.
    if text.lower() in ("true", "false"):
        return known.get(text.capitalize(), -1)
    try:
        return known.get(text_of(float(text)), -1)
    except ValueError:
        return -1
