"""One value per class, read by class name: what every per-class result of the library is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, NDArray
from equipoise.exceptions import ClassMismatchError
from equipoise.text import html_table, share_cell, text_table

# Columns that are shares in every table, and shown as percentages.
_SHARES = frozenset({"mass", "prior"})


class ByClass(Mapping[Any, Any]):
    """An immutable mapping from class names to values that is also a NumPy array.

    As a mapping, it can be passed to every argument that takes a value per class, and is then
    matched by name, not by position. ``dict``, ``pandas.Series`` and ``numpy.asarray`` take it
    as it is.

    Parameters
    ----------
    values : array-like of shape (n_classes,), or a mapping by class name
        Values in class order. A mapping brings its own names.
    classes : array-like of shape (n_classes,), optional
        Class names, ``0..k-1`` or the mapping's own if not given.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class names, in order.

    Examples
    --------
    >>> risks = ByClass([0.25, 0.5], ["cat", "dog"])
    >>> risks["dog"]
    0.5
    >>> risks
    cat: 0.25
    dog: 0.5
    >>> np.asarray(risks).tolist()
    [0.25, 0.5]
    """

    __slots__ = ("_position", "_values", "classes")

    _position: dict[Any, int]
    _values: NDArray[Any]
    classes: NDArray[Any]

    def __init__(self, values: Any, classes: ArrayLike | None = None) -> None:
        array, names = _aligned(values, classes)
        position = {name: place for place, name in enumerate(names.tolist())}
        if len(position) != len(names):
            raise ClassMismatchError(f"classes must be distinct, got {names.tolist()}.")
        for attribute, value in (("_values", array), ("classes", names), ("_position", position)):
            object.__setattr__(self, attribute, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"ByClass does not change: cannot set {name!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"ByClass does not change: cannot delete {name!r}.")

    def __getitem__(self, name: Any) -> Any:
        if name not in self._position:
            raise KeyError(f"{name!r} is not among the classes {self.classes.tolist()}")
        return self._values[self._position[name]].item()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._position)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # Copying is the only safe default: the values behind a view must not change.
        if copy is False:
            return np.array(self._values, dtype=dtype, copy=False)
        return self._values.astype(dtype or self._values.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return ByClass, (self._values, self.classes)

    def __repr__(self) -> str:
        rows = zip((f"{name}:" for name in self), self._values.tolist(), strict=True)
        return "\n".join(text_table((), rows, right=True, shorten=True))

    def _repr_html_(self) -> str:
        return class_html(value=self)

    def to_numpy(self) -> NDArray[Any]:
        """The values in class order, as a new array."""
        return self._values.copy()

    def to_dict(self) -> dict[Any, Any]:
        """The values by class name, as a plain dictionary."""
        return dict(self)

    def max(self) -> Any:
        """The largest value."""
        return self._values.max().item()

    def idxmax(self) -> Any:
        """The name of the class with the largest value, the first of them if they tie."""
        return self.classes.tolist()[int(self._values.argmax())]


def _aligned(values: Any, classes: ArrayLike | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read-only copies of the values and of their names."""
    if isinstance(values, Mapping):
        classes = list(values) if classes is None else classes
        values = [values[name] for name in np.asarray(classes).tolist()]
    array = np.array(values)
    names = np.arange(array.size) if classes is None else np.array(classes)
    if array.ndim != 1 or array.shape != names.shape or array.size == 0:
        raise ClassMismatchError(
            f"values must be one for each class and at least one, got values of shape "
            f"{array.shape} for classes of shape {names.shape}."
        )
    array.setflags(write=False)
    names.setflags(write=False)
    return array, names


def class_lines(*, shares: Collection[str] = (), **columns: ByClass) -> list[str]:
    """A titled column for each of some values by class, those named in ``shares`` as percentages.

    The middle of a long listing is left out.
    """
    rows = [(f"{name}:", *cells) for name, *cells in _class_rows(shares, columns)]
    return text_table(("class", *columns), rows, right=True, shorten=True)


def class_html(*, shares: Collection[str] = (), caption: str = "", **columns: ByClass) -> str:
    """The same as an HTML table."""
    return html_table(("class", *columns), _class_rows(shares, columns), caption)


def _class_rows(shares: Collection[str], columns: Mapping[str, ByClass]) -> list[list[Any]]:
    names = next(iter(columns.values()))
    cells = [
        [
            share_cell(each) if title in _SHARES.union(shares) else each
            for each in values.to_numpy().tolist()
        ]
        for title, values in columns.items()
    ]
    return [[str(name), *row] for name, *row in zip(names, *cells, strict=True)]
