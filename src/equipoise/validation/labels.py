"""Class labels and their positions, without sorting a million rows.

Integer labels go through a lookup table and everything else through a dictionary; both are
linear in the number of rows, where :func:`numpy.unique` sorts.

Conventions
-----------
``labels`` is an array of shape ``(n,)``, one class name per row; ``classes`` holds each name once.
"""

from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from equipoise.arrays import Indices
from equipoise.exceptions import ClassMismatchError, InvalidInputError

Labels = NDArray[Any]

# A lookup table of this size is cheap whatever the number of rows.
_SMALL_TABLE = 2**16


def as_labels(values: Any, *, name: str) -> Labels:
    """Labels as a one-dimensional array with at least one row and nothing missing.

    Examples
    --------
    >>> as_labels([["cat"], ["dog"]], name="y").tolist()
    ['cat', 'dog']
    """
    labels = np.asarray(values)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) == 0:
        raise InvalidInputError(
            f"{name} must be one class label for each of at least one row, got an array of shape "
            f"{labels.shape}."
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise InvalidInputError(f"{name} must not have missing labels, got nan.")
    return labels


def classes_of(labels: Labels) -> Labels:
    """The distinct labels, sorted.

    Examples
    --------
    >>> classes_of(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    if _is_integer(labels) and _fits(labels, labels):
        low = labels.min()
        present = np.bincount(labels.astype(np.int64) - int(low))
        return (np.flatnonzero(present) + int(low)).astype(labels.dtype)
    return _sorted_distinct(labels)


def _is_integer(labels: Labels) -> bool:
    # The upper half of uint64 does not fit the offsets of the table.
    return labels.dtype.kind in "iub" and labels.dtype != np.uint64


def _fits(keys: Labels, labels: Labels) -> bool:
    return _span(keys) <= max(_SMALL_TABLE, len(labels))


def _span(labels: Labels) -> int:
    return int(labels.max()) - int(labels.min()) + 1


def _sorted_distinct(labels: Labels) -> Labels:
    distinct = set(labels.tolist())
    missing = [label for label in distinct if _is_missing(label)]
    if missing:
        raise InvalidInputError(f"labels must not be missing, got {missing[0]!r}.")
    try:
        ordered = sorted(distinct)
    except TypeError as error:
        raise InvalidInputError(f"labels must be of one type: {error}.") from error
    return np.array(ordered, dtype=labels.dtype)


def _is_missing(label: Any) -> bool:
    # nan differs from itself; the truth value of pandas.NA is an error.
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def positions(labels: Labels, classes: Labels) -> Indices:
    """Where each label stands in ``classes``; -1 for a label that is not there.

    Examples
    --------
    >>> positions(np.array(["b", "x"]), np.array(["a", "b"])).tolist()
    [1, -1]
    """
    if _is_integer(labels) and _is_integer(classes) and _fits(classes, labels):
        return _looked_up(labels, classes)
    places = {name: place for place, name in enumerate(classes.tolist())}
    found = map(places.get, labels.tolist(), repeat(-1))
    return np.fromiter(found, dtype=np.intp, count=len(labels))


def _looked_up(labels: Labels, classes: Labels) -> Indices:
    low, span = int(classes.min()), _span(classes)
    table = np.full(span + 1, -1, dtype=np.intp)
    table[classes.astype(np.int64) - low] = np.arange(len(classes))
    offset = labels.astype(np.int64) - low
    if int(offset.min()) < 0 or int(offset.max()) >= span:
        # The last entry of the table stands for everything outside of it.
        offset = np.where((offset < 0) | (offset >= span), span, offset)
    return table[offset]


def check_classes(classes: Any) -> Labels:
    """Class names given by the user: distinct, in the order of the columns of scores.

    Examples
    --------
    >>> check_classes(["cat", "dog"]).tolist()
    ['cat', 'dog']
    """
    names = as_labels(classes, name="classes")
    if len(set(names.tolist())) != len(names):
        raise ClassMismatchError(f"classes must be distinct, got {names.tolist()}.")
    return names


def true_positions(labels: Labels, classes: Labels) -> Indices:
    """Indices of the true labels, every one of which must be a class."""
    places = positions(labels, classes)
    if int(places.min()) < 0:
        stray = labels[places < 0].tolist()[0]
        raise ClassMismatchError(
            f"y_true must hold the given classes only, {classes.tolist()}, got {stray!r}."
        )
    return places


def predicted_positions(labels: Labels, classes: Labels) -> Indices:
    """Indices of predicted labels; one that is no class of ``y_true`` is -1, and wrong."""
    if _is_text(labels) != _is_text(classes):
        raise ClassMismatchError(
            f"y_pred must hold labels of the same type as y_true, got {labels.tolist()[0]!r} "
            f"where the classes are {classes.tolist()}."
        )
    if labels.dtype.kind == "f" and _is_integer(classes) and np.any(labels % 1):
        raise InvalidInputError(
            f"y_pred must hold class labels, got {labels[labels % 1 != 0][0]}; for probabilities "
            "or scores choose a loss that reads them, such as 'cross_entropy' or 'margin'."
        )
    return positions(labels, classes)


def _is_text(labels: Labels) -> bool:
    return isinstance(labels[:1].tolist()[0], str)


def encode_labels(y: Any) -> tuple[NDArray[Any], Indices]:
    """Class names and the class index of every row.

    Examples
    --------
    >>> classes, labels = encode_labels(np.array(["b", "a", "b"]))
    >>> classes.tolist(), labels.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    if type_of_target(y, input_name="y") == "unknown":
        y = _numbers_among_objects(y)
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise InvalidInputError(
            f"y must hold at least 2 classes, got only one class: {classes.tolist()}."
        )
    if len(classes) == len(labels) > 2:
        raise InvalidInputError(
            f"y has as many classes as rows ({len(labels)}): every class would be learnt from a "
            "single row. If y is a number to predict, this is a regression problem."
        )
    return classes, labels


def _numbers_among_objects(y: NDArray[Any]) -> NDArray[Any]:
    """Numbers that came as objects, as a column of mixed origin does."""
    labels = y.tolist()
    types = {type(label) for label in labels}
    if len(types) == 1 and isinstance(labels[0], Real):
        return np.array(labels)
    names = ", ".join(sorted(kind.__name__ for kind in types))
    raise InvalidInputError(
        "Unknown label type: y must hold class labels of one type, numbers or text, and none "
        f"missing, got objects of type {names}."
    )


def known_labels(y: NDArray[Any], classes: NDArray[Any], *, owner: str) -> Indices:
    """Class index of every label, all of which must be known.

    Examples
    --------
    >>> known_labels(np.array(["b"]), np.array(["a", "b"]), owner="the model").tolist()
    [1]
    """
    labels = positions(y, classes)
    if np.any(labels < 0):
        stray = y[labels < 0].tolist()[0]
        raise ClassMismatchError(
            f"y must hold classes that {owner} knows, {classes.tolist()}, got {stray!r}: "
            "leave such rows out."
        )
    return np.asarray(labels, dtype=np.intp)
