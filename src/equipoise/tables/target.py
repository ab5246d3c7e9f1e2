"""The label column: which classes a table has, and how to recognise them in another table."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.extras import require
from equipoise.tables.columns import columns_of, conform

_SHOWN = 8
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
    columns = columns_of(features)
    if all(column.kind == "empty" for column in columns):
        raise InvalidInputError(
            "The table has no column with any value besides the label "
            f"{target!r}: there is nothing to learn from."
        )
    return conform(features, columns), y


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
    shown = ", ".join(repr(name) for name in list(names)[:20])
    more = ", ..." if len(names) > 20 else ""
    raise InvalidInputError(
        f"The table has no column {target!r}; its columns are {shown}{more}.{hint}"
    )


def _plain(series: Any, target: str, *, text_labels: bool) -> NDArray[Any]:
    """Labels as int64 or as ``str`` objects."""
    pandas = require("pandas", extra="cli")
    types = pandas.api.types
    if isinstance(series.dtype, pandas.CategoricalDtype):
        series = series.astype(series.cat.categories.dtype)
    if types.is_bool_dtype(series.dtype) or not types.is_numeric_dtype(series.dtype):
        return _as_texts(series.to_numpy(dtype=object))
    if types.is_integer_dtype(series.dtype):
        # Columns that can hold gaps come as objects.
        values = np.array(series.tolist())
        return _as_texts(values) if text_labels else _as_integers(values)
    return _from_floats(series.to_numpy(dtype=np.float64), target, text_labels=text_labels)


def _as_integers(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "u" and int(values.max()) > np.iinfo(np.int64).max:
        return _as_texts(values.astype(object))
    return values.astype(np.int64)


def _from_floats(values: NDArray[np.float64], target: str, *, text_labels: bool) -> NDArray[Any]:
    if text_labels:
        return _as_texts(values)
    fraction = values[
        ~np.isfinite(values) | (np.floor(values) != values) | (np.abs(values) > _EXACT)
    ]
    if len(fraction) == 0:
        return values.astype(np.int64)
    raise InvalidInputError(
        f"The label {target!r} holds numbers with fractions, such as {fraction[0]:.6g} "
        f"({len(np.unique(values))} distinct values): that is a quantity, not a class. Cut it "
        "into ranges first (pandas.cut), or pass --text-labels (text_labels=True) if every "
        "distinct value is the name of a class."
    )


def _as_texts(values: NDArray[Any]) -> NDArray[Any]:
    return np.array([_text(value) for value in values.tolist()], dtype=object)


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
        stray = _text(levels[places.index(-1)])
        shown = ", ".join(list(known)[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        raise ClassMismatchError(
            f"The label {target!r} holds {stray!r}, which is no class of the model (its classes "
            f"are {shown}): remove its rows, or fit again with them."
        )
    return np.asarray(classes[np.asarray(places, dtype=np.intp)[codes]])


def _place(level: Any, known: dict[str, int]) -> int:
    """Where a label stands among the classes; -1 if nowhere."""
    text = _text(level)
    if text in known:
        return known[text]
    # Columns of truth values and of numbers have more than one spelling.
    if text.lower() in ("true", "false"):
        return known.get(text.capitalize(), -1)
    try:
        return known.get(_text(float(text)), -1)
    except ValueError:
        return -1


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
