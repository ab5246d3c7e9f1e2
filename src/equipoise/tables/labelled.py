"""The label column and labelled rows, read and checked once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices, Vector
from equipoise.decisions.equal_rows import equal_rows
from equipoise.decisions.folds import set_aside
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.extras import require
from equipoise.tables.columns import Column, features_of, find_column, text_of
from equipoise.tables.features import MAX_LEVELS
from equipoise.tables.read import read_table
from equipoise.text import listing
from equipoise.validation.labels import (
    as_labels,
    check_length,
    encode_labels,
    named_labels,
    weights_and_totals,
)
from equipoise.validation.numbers import check_number

# _ENOUGH_ROWS: rows below which distinct values say nothing about a column.
_ENOUGH_ROWS = 20
# _ALL_DISTINCT: share of distinct values from which a column of texts identifies its rows.
_ALL_DISTINCT = 0.95
# _NEARLY_NUMBERS: share of distinct texts that are numbers, from which the others are suspect.
_NEARLY_NUMBERS = 0.5
_SHOWN = 5
# _EXACT: whole numbers beyond it are not distinct as floats (2**53).
_EXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Labelled rows, their columns and their classes.

    ``X`` are the features as :func:`conform` gives them, ``labels`` the class index of every row;
    ``columns`` are the features as they came, and ``warnings`` has one sentence for each thing that
    deserves a look. ``weights`` are sample weights where they were given, ``times`` how many rows
    each stands for where equal ones were counted.

    Examples
    --------
    >>> table = labelled_table([[1.0], [2.0], [1.0], [3.0]], ["a", "b", "a", "a"])
    >>> table.prior.tolist(), table.groups.tolist()[0] == table.groups.tolist()[2]
    ([0.75, 0.25], True)
    """

    X: Any
    classes: NDArray[Any]
    labels: Indices
    columns: tuple[Column, ...]
    warnings: tuple[str, ...]
    weights: Vector | None = None
    times: Indices | None = None

    @cached_property
    def y(self) -> NDArray[Any]:
        """Labels."""
        return self.classes[self.labels]

    @cached_property
    def counts(self) -> Indices:
        """Rows of each class."""
        return self.counts_at(np.arange(len(self.labels)))

    @cached_property
    def prior(self) -> Vector:
        """Share of each class in the weight of the rows, those of several counted as often."""
        factors = [each for each in (self.weights, self.times) if each is not None]
        weights = np.prod(factors, axis=0, dtype=np.float64) if factors else None
        totals = np.bincount(self.labels, weights=weights, minlength=len(self.classes))
        return np.asarray(totals / totals.sum(), dtype=np.float64)

    @cached_property
    def groups(self) -> Indices:
        """Equal numbers for rows with equal features."""
        return equal_rows(self.X)

    def counts_at(self, rows: Indices) -> Indices:
        """How many of some rows each class has."""
        times = None if self.times is None else self.times[rows]
        counts = np.bincount(self.labels[rows], weights=times, minlength=len(self.classes))
        return np.asarray(counts, dtype=np.intp)


def read_labelled(
    path: str | Path, target: str, *, drop: Sequence[str] = (), text_labels: bool = False
) -> LabelledTable:
    """The labelled rows in a file.

    The file is read as by :func:`read_table`, its label as by :func:`split_target`; the columns
    ``drop`` are left out.

    Examples
    --------
    >>> from importlib.resources import files
    >>> table = read_labelled(files("equipoise.datasets") / "data" / "thyroid.csv.gz", "target")
    >>> table.classes.tolist(), table.counts.tolist()
    ([1, 2, 3], [166, 368, 6666])
    """
    return labelled_table(*without_label(read_table(path), target, drop, text_labels=text_labels))


def labelled_table(X: Any, y: Any, sample_weight: Any = None) -> LabelledTable:
    """Labelled rows from a DataFrame or an array ``X`` of numbers and texts, with missing values.

    Examples
    --------
    >>> table = labelled_table([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], ["cat", "dog", "cat"])
    >>> table.labels.tolist(), [column.name for column in table.columns]
    ([0, 1, 0], ['x0', 'x1'])
    """
    (frame, features, columns), names = features_of(X), as_labels(y, name="y")
    check_length(names, len(frame), name="y", of="X")
    classes, labels = encode_labels(names)
    weights = None
    if sample_weight is not None:
        weights = weights_and_totals(sample_weight, labels, classes)[0]
    warnings = tuple(_warnings(frame, columns, classes, np.bincount(labels)))
    return LabelledTable(features, classes, labels, columns, warnings, weights)


def unseen_rows(
    y: Any, classes: Any = None, sample_weight: Any = None, X: Any = None
) -> LabelledTable:
    """Labels of rows that only somebody else's model can read, or has predicted.

    Of ``X``, a sparse matrix, a list of texts or anything else of one item a row, it is seen which
    rows are equal.

    Examples
    --------
    >>> unseen_rows(["a", "b", "a"]).counts.tolist()
    [2, 1]
    >>> groups = unseen_rows(["a", "b", "a"], X=["well", "ill", "well"]).groups
    >>> (groups == groups[0]).tolist()
    [True, False, True]
    """
    names, labels = named_labels(y, classes)
    weights = None
    if sample_weight is not None:
        weights = weights_and_totals(sample_weight, labels, names)[0]
    alike = np.arange(len(labels)) if X is None else equal_rows(X)
    check_length(labels, len(alike), name="y", of="X")
    frame = require("pandas", extra="report").DataFrame({"row": alike})
    return LabelledTable(frame, names, labels, (), (), weights)


def _warnings(
    frame: Any, columns: Sequence[Column], classes: NDArray[Any], counts: Indices
) -> Iterator[str]:
    empty = [column.name for column in columns if column.kind == "empty"]
    if empty:
        yield f"Column {listing(empty, _SHOWN)}: left out, being without a single value."
    for column in columns:
        if column.n_infinite:
            name, count = listing([column.name]), column.n_infinite
            yield f"Column {name} has {count} infinite values: read as missing."
        if oddity := _oddity(frame[column.name], column):
            yield f"Column {listing([column.name])} {oddity}."
    single = classes[counts == 1].tolist()
    if single:
        name = listing(single, _SHOWN)
        yield f"Class {name}: used for training, but no risk can be estimated from a single row."


def _oddity(series: Any, column: Column) -> str:
    """What a column may be beside what it is read as; nothing of most."""
    if column.kind == "text":
        pandas = require("pandas", extra="cli")
        levels = pandas.Series(series.dropna().unique()).astype(str)
        numbers = pandas.to_numeric(levels, errors="coerce").notna()
        if _NEARLY_NUMBERS <= numbers.mean() < 1:
            return (
                f"is read as text because of values such as {listing(levels[~numbers][:1])} among "
                "its numbers: mend or empty them if it is a number"
            )
    known, is_identifier = len(series) - column.n_missing, False
    if column.kind == "number" and column.n_distinct == known == len(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        is_identifier = bool(np.all(values % 1 == 0))
    elif column.kind == "text":
        is_identifier = column.n_distinct >= _ALL_DISTINCT * known
    if is_identifier and known >= _ENOUGH_ROWS:
        return (
            "names nearly every row differently and looks like an identifier: leave it out unless "
            "it means something"
        )
    if column.kind == "text" and column.n_distinct > MAX_LEVELS:
        return (
            f"has {column.n_distinct} distinct texts: linear models keep the {MAX_LEVELS - 1} most "
            "frequent apart and put the others together"
        )
    return ""


def hold_out(
    table: LabelledTable, share: float = 0.2, random_state: int = 0
) -> tuple[Indices, Indices]:
    """Training rows and held-out rows: about ``share`` of every class, at random.

    Repeated rows stay on one side, or a model would be evaluated on rows that it has seen; a row
    repeated so often that it would fill the share stays in training. So does a class whose rows
    are all alike, such as a class of one row. The positions of both are given in order.

    Examples
    --------
    >>> table = labelled_table([[float(position)] for position in range(10)], [0, 1] * 5)
    >>> train, test = hold_out(table, share=0.4)
    >>> len(train), len(test)
    (6, 4)
    """
    check_number(share, "share", "[0, 1)")
    aside = set_aside(table.groups, table.labels, share, random_state)
    return np.flatnonzero(~aside), np.flatnonzero(aside)


# The label column: which classes a table has, and how to recognise them in another table.


def split_target(frame: Any, target: str, *, text_labels: bool = False) -> tuple[Any, NDArray[Any]]:
    """Features, as :func:`conform` gives them, and labels: int64 or ``str`` objects.

    Parameters
    ----------
    frame : pandas.DataFrame
    target : str
        The column that holds the class of each row. Whole numbers stay numbers; everything else
        becomes text.
    text_labels : bool, default=False
        Whether numbers are names of classes too: every distinct value is a class.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"size": [1, 2, 3], "kind": ["a", "b", "a"]})
    >>> X, y = split_target(table, "kind")
    >>> list(X.columns), y.tolist()
    (['size'], ['a', 'b', 'a'])
    """
    features, y = without_label(frame, target, text_labels=text_labels)
    return features_of(features)[1].set_axis(features.index), y


def label_and_dropped(frame: Any, target: str, drop: Sequence[str]) -> tuple[Any, list[Any]]:
    """Names of the label column and of the columns to drop, as a table has them."""
    if target in drop:
        raise InvalidInputError(f"The label {target!r} cannot be dropped.")
    return find_column(frame, target), [find_column(frame, name) for name in drop]


def without_label(
    frame: Any, target: str, drop: Sequence[str] = (), *, text_labels: bool = False
) -> tuple[Any, NDArray[Any]]:
    """The other columns of a table, without those to drop, and its labels."""
    label, others = label_and_dropped(frame, target, drop)
    y = _labels(frame[label], target, text_labels=text_labels)
    return frame.drop(columns=[label, *others]), y


def _labels(series: Any, target: str, *, text_labels: bool) -> NDArray[Any]:
    """Labels of at least two classes, none of them missing."""
    missing = int(series.isna().sum())
    if missing:
        first = int(np.argmax(series.isna().to_numpy())) + 1
        raise InvalidInputError(
            f"The label {target!r} is missing in {missing} of {len(series)} rows, first in data "
            f"row {first}: remove these rows or fill them in (values such as NA, None and ? are "
            "read as missing)."
        )
    labels = _plain(series, target, text_labels=text_labels)
    _refuse_no_classes(np.unique(labels), len(labels), target)
    return labels


def _refuse_no_classes(classes: NDArray[Any], n_rows: int, target: str) -> None:
    if len(classes) < 2:
        raise InvalidInputError(
            f"The label {target!r} has only one class, {classes.tolist()[0]!r}, in all "
            f"{n_rows} rows: there is nothing to tell apart."
        )
    if len(classes) == n_rows > 2:
        raise InvalidInputError(
            f"The label {target!r} has a different value in each of the {n_rows} rows; it "
            "looks like an identifier or a quantity, not a class. Is another column the label?"
        )


def labels_by_text(
    rows: Mapping[str, int], target: str, *, text_labels: bool = False
) -> dict[str, Any]:
    """The label that each distinct text of a label column stands for, from its number of rows.

    Examples
    --------
    >>> labels_by_text({"1": 20, "2.0": 10}, "kind")
    {'1': 1, '2.0': 2}
    """
    pandas = require("pandas", extra="cli")
    series = pandas.Series(list(rows), dtype=object)
    numbers = pandas.to_numeric(series, errors="coerce")
    labels = _plain(
        series if text_labels or numbers.isna().any() else numbers, target, text_labels=text_labels
    )
    _refuse_no_classes(np.unique(labels), sum(rows.values()), target)
    return dict(zip(rows, labels.tolist(), strict=True))


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
    # Infinite values are beyond the exact ones too.
    fraction = numbers[(np.floor(numbers) != numbers) | (np.abs(numbers) > _EXACT)]
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

    Examples
    --------
    >>> import pandas as pd
    >>> labels_like(pd.DataFrame({"kind": ["2", "1.0"]}), "kind", np.array([1, 2])).tolist()
    [2, 1]
    """
    series = frame[find_column(frame, target)]
    known = {str(name): position for position, name in enumerate(classes.tolist())}
    codes, levels = require("pandas", extra="cli").factorize(series, use_na_sentinel=True)
    if (codes < 0).any():
        row = series.index[int(np.argmax(codes < 0))] + 1
        raise InvalidInputError(f"The label {target!r} is missing in data row {row}.")
    positions = [_position(level, known) for level in levels]
    if -1 in positions:
        stray = text_of(levels[positions.index(-1)])
        raise ClassMismatchError(
            f"The label {target!r} holds {stray!r}, which is not a class of the model (its classes "
            f"are {listing(known, 8)}): remove its rows, or fit again with them."
        )
    return np.asarray(classes[np.asarray(positions, dtype=np.intp)[codes]])


def _position(level: Any, known: dict[str, int]) -> int:
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
