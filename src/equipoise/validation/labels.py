"""Class labels of rows, their positions, and the weights of the rows.

Integer labels go through a lookup table and everything else through a dictionary; both are
linear in the number of rows, where :func:`numpy.unique` sorts a million of them.

Conventions
-----------
``y`` is an array of shape ``(n,)``, one class name per row; ``classes`` holds each name once, and
``labels`` are positions in it.
"""

from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets

from equipoise.arrays import Indices, NDArray, Vector, on_host
from equipoise.exceptions import ClassMismatchError, InvalidInputError
from equipoise.text import listing

Names = NDArray[Any]


def as_labels(values: Any, *, name: str) -> Names:
    """Class names of rows as a one-dimensional array with at least one row and nothing missing."""
    y = np.asarray(on_host(values))
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or len(y) == 0:
        raise InvalidInputError(
            f"{name} must be one class label for each of at least one row, got an array of shape "
            f"{y.shape}."
        )
    return np.asarray(complete_labels(y, name=name))


def one_label_per_row(y: Any) -> Any:
    """The labels as they are; a sparse matrix or several columns are refused.

    Examples
    --------
    >>> one_label_per_row([[0, 1], [1, 0]])
    Traceback (most recent call last):
    equipoise.exceptions.InvalidInputError: y must be one class label per row, got an array of \
shape (2, 2): for columns of zeros and ones take y.argmax(axis=1).
    """
    if issparse(y):
        raise InvalidInputError(
            f"y must be an array of labels, got a sparse matrix of shape {y.shape}: take "
            "y.toarray().ravel()."
        )
    shape = np.asarray(on_host(y)).shape
    if len(shape) == 2 and shape[1] > 1:
        raise InvalidInputError(
            f"y must be one class label per row, got an array of shape {shape}: for columns of "
            "zeros and ones take y.argmax(axis=1)."
        )
    return y


def complete_labels(y: Any, *, name: str = "y") -> Any:
    """The labels as they are; a missing one is refused, with its row.

    Examples
    --------
    >>> complete_labels(["ham", None])
    Traceback (most recent call last):
    equipoise.exceptions.InvalidInputError: y must not have missing labels, got None in row 1.
    """
    labels = np.asarray(on_host(y))
    row = _first_missing(labels) if labels.ndim == 1 else None
    if row is not None:
        value = labels[row : row + 1].tolist()[0]
        raise InvalidInputError(f"{name} must not have missing labels, got {value!r} in row {row}.")
    return y


def _first_missing(labels: Names) -> int | None:
    """The row of the first label that is missing."""
    if labels.dtype.kind == "f":
        missing = np.isnan(labels)
    elif labels.dtype == object and set(map(type, labels)) != {str}:
        missing = np.fromiter(map(_is_missing, labels), dtype=bool, count=len(labels))
    else:
        return None
    return int(np.argmax(missing)) if missing.any() else None


def classes_of(y: Names) -> Names:
    """The distinct labels, sorted."""
    if _is_integer(y) and _fits(y, y):
        low = int(y.min())
        present = np.bincount(y.astype(np.int64) - low)
        return (np.flatnonzero(present) + low).astype(y.dtype)
    distinct = set(y.tolist())
    try:
        ordered = sorted(distinct)
    except TypeError as error:
        raise InvalidInputError(f"labels must be of one type: {error}.") from error
    return np.array(ordered, dtype=y.dtype)


def _is_integer(y: Names) -> bool:
    # The upper half of uint64 does not fit the offsets of the table.
    return y.dtype.kind in "iub" and y.dtype != np.uint64


def _fits(keys: Names, y: Names) -> bool:
    return int(keys.max()) - int(keys.min()) < len(y)


def _is_missing(label: Any) -> bool:
    # nan differs from itself; the truth value of pandas.NA is an error.
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True
    except ValueError:  # of an array, which is not a label, but not missing either
        return False


def positions(y: Names, classes: Names) -> Indices:
    """Where each label stands in ``classes``; -1 for a label that is not there."""
    if not (_is_integer(y) and _is_integer(classes) and _fits(classes, y)):
        places = {name: place for place, name in enumerate(classes.tolist())}
        indices = map(places.get, y.tolist(), repeat(-1))
        return np.fromiter(indices, dtype=np.intp, count=len(y))
    low = int(classes.min())
    span = int(classes.max()) - low + 1
    table = np.full(span + 1, -1, dtype=np.intp)
    table[classes.astype(np.int64) - low] = np.arange(len(classes))
    offset = y.astype(np.int64) - low
    if int(offset.min()) < 0 or int(offset.max()) >= span:
        # The last entry of the table stands for everything outside of it.
        offset = np.where((offset < 0) | (offset >= span), span, offset)
    return table[offset]


def check_classes(classes: Any) -> Names:
    """Class names given by the user: distinct, in the order of the columns of scores."""
    names = as_labels(classes, name="classes")
    if len(set(names.tolist())) != len(names):
        raise ClassMismatchError(f"classes must be distinct, got {names.tolist()}.")
    return names


def named_labels(y: Any, classes: Any = None) -> tuple[Names, Indices]:
    """Class names, those of columns where they are given, and the class index of every row.

    Examples
    --------
    >>> named_labels(["b", "a"])[1].tolist(), named_labels(["b", "a"], ["b", "a"])[1].tolist()
    ([1, 0], [0, 1])
    """
    if classes is None:
        return encode_labels(y)
    names = check_classes(classes)
    return names, known_labels(as_labels(y, name="y"), names)


def class_names(classes: Any, n_classes: int) -> Names:
    """Names for ``n_classes`` classes, ``0..k-1`` where none are given."""
    names = np.arange(n_classes) if classes is None else np.asarray(classes)
    if names.shape != (n_classes,):
        raise ClassMismatchError(
            f"classes must name each of the {n_classes} classes, got {names.tolist()}."
        )
    return names


def check_length(values: Any, n_rows: int, *, name: str, of: str = "y_true") -> None:
    """As many values as rows."""
    if len(values) != n_rows:
        raise InvalidInputError(
            f"{name} must have one entry for each of the {n_rows} rows of {of}, got {len(values)}."
        )


def predicted_positions(y: Names, classes: Names) -> Indices:
    """Indices of predicted labels; one that is not a class of ``y_true`` is -1, and wrong."""
    if _is_text(y) != _is_text(classes):
        raise ClassMismatchError(
            f"y_pred must hold labels of the same type as y_true, got {y.tolist()[0]!r} "
            f"where the classes are {classes.tolist()}."
        )
    if y.dtype.kind == "f" and _is_integer(classes) and np.any(y % 1):
        raise InvalidInputError(
            f"y_pred must hold class labels, got {y[y % 1 != 0][0]}; for probabilities "
            "or scores choose a loss that reads them, such as 'cross_entropy' or 'margin'."
        )
    return positions(y, classes)


def _is_text(y: Names) -> bool:
    return isinstance(y[:1].tolist()[0], str)


def encode_labels(y: Any) -> tuple[Names, Indices]:
    """Class names and the class index of every row."""
    y = on_host(y)
    whole = isinstance(y, np.ndarray) and y.ndim == 1 and y.size > 0 and _is_integer(y)
    if whole and 2 * len(classes := classes_of(y)) <= len(y):
        labels = positions(y, classes)
    else:  # other types, of which scikit-learn refuses what is not a classification
        objects = np.asarray(y)
        if objects.dtype == object and objects.ndim == 1:
            y = _of_one_type(objects)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
    if len(labels) == 0:
        raise InvalidInputError("y must hold at least one row, got none.")
    refuse_no_classification(classes, len(labels))
    return classes, labels


def refuse_no_classification(classes: Names, n_rows: int) -> None:
    """Refuse labels of a single class, and labels of which each row has another."""
    if len(classes) < 2:
        raise InvalidInputError(
            f"y must hold at least 2 classes, got only one class: {classes.tolist()}."
        )
    if len(classes) == n_rows > 2:
        raise InvalidInputError(
            f"y has as many classes as rows ({n_rows}): every class would be fitted to a single "
            "row. If y is a number to predict, this is a regression problem."
        )


def _of_one_type(y: Names) -> Names:
    """Texts that came as objects, or numbers, as a column of mixed origin has them."""
    names = y.tolist()
    types = {type(name) for name in names}
    if types == {str}:
        return y
    complete_labels(y)
    # True would be 1 beside numbers.
    if all(issubclass(kind, Real) for kind in types) and (len(types) == 1 or bool not in types):
        return np.array(names)
    kinds = ", ".join(sorted(kind.__name__ for kind in types))
    raise InvalidInputError(
        "Unknown label type: y must hold class labels of one type, numbers or text, and none "
        f"missing, got objects of type {kinds}."
    )


def known_labels(y: Names, classes: Names, *, name: str = "y", owner: str = "classes") -> Indices:
    """Class index of every label, all of which must be known."""
    labels = positions(y, classes)
    if np.any(labels < 0):
        stray = y[labels < 0].tolist()[0]
        raise ClassMismatchError(
            f"{name} must hold no labels but those of {owner}, [{listing(classes.tolist())}], got "
            f"{stray!r}: "
            "leave such rows out."
        )
    return labels


def labels_of_rows(y: Any, classes: Names, n_rows: int) -> Indices:
    """Class index of every row, from labels all of which must be known."""
    names = as_labels(y, name="y")
    check_length(names, n_rows, name="y", of="X")
    return known_labels(names, classes)


def check_sample_weight(sample_weight: Any, n_rows: int) -> Vector:
    """Weights of the rows: finite, none negative, some positive; all one where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(on_host(sample_weight), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sample_weight must hold numbers: {error}.") from error
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight must have one value for each of the {n_rows} rows, got an array of "
            f"shape {weights.shape}."
        )
    if n_rows == 0:
        return weights
    with np.errstate(over="ignore", invalid="ignore"):
        smallest, total = float(weights.min()), float(weights.sum())
    # NaN compares false, and makes the sum NaN.
    if not np.isfinite(total):
        what = "NaN" if np.isnan(weights).any() else f"a largest value of {weights.max():.6g}"
        raise InvalidInputError(
            f"sample_weight must hold finite values with a finite sum, got {what}."
        )
    if smallest < 0:
        raise InvalidInputError(
            f"sample_weight must not be negative, got a smallest value of {smallest:.6g}."
        )
    if total == 0:
        raise InvalidInputError(
            "sample_weight must be positive in at least one row, got only zeros."
        )
    return weights


def row_shares(sample_weight: Any, n_rows: int) -> Vector:
    """Weights of the rows, scaled to sum to one."""
    weights = check_sample_weight(sample_weight, n_rows)
    return np.asarray(weights / weights.sum())


def weights_and_totals(
    sample_weight: Any, labels: Indices, classes: Names
) -> tuple[Vector, Vector]:
    """Weights of the rows, and their sums over the classes.

    No class that has rows may be without weight.
    """
    weights = check_sample_weight(sample_weight, len(labels))
    sums = np.bincount(labels, weights=weights, minlength=len(classes))
    totals = sums.astype(np.float64, copy=False)
    without = (totals <= 0) & (np.bincount(labels, minlength=len(classes)) > 0)
    refuse_weightless(classes[without])
    return weights, totals


def refuse_weightless(classes: Names) -> None:
    """Refuse classes whose rows all have no weight."""
    if len(classes):
        raise InvalidInputError(
            f"sample_weight is zero for every row of class {', '.join(map(repr, classes.tolist()))}"
            ": remove its rows, or give it some weight."
        )
