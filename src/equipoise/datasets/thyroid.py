"""Thyroid function of 7,200 patients: three classes, the rarest with one patient in 43."""

import gzip
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from equipoise.arrays import Matrix
from equipoise.extras import require
from equipoise.validation.numbers import check_word

Subset = Literal["all", "train", "test"]

# The classes that UCI calls 1, 2 and 3.
_CLASSES = ("hypothyroid", "compensated", "normal")

_N_TRAIN = 3772
_ROWS = {"all": slice(None), "train": slice(_N_TRAIN), "test": slice(_N_TRAIN, None)}


def load_thyroid(
    *, subset: Subset = "all", return_X_y: bool = False, as_frame: bool = False
) -> Any:
    """Thyroid function of 7,200 patients: 166 hypothyroid, 368 compensated, 6,666 normal.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        All rows in UCI's order, or UCI's 3,772 training rows or 3,428 test rows alone.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` only.
    as_frame : bool, default=False
        Whether to return pandas objects.

    Returns
    -------
    sklearn.utils.Bunch, or a pair if ``return_X_y``
        ``data`` float64 of shape (n, 21); ``target`` class names of shape (n,);
        ``feature_names``; ``target_names``, in the order of UCI's numbers 1, 2, 3; ``frame``,
        both together if ``as_frame``; and ``DESCR``, with what is known about the classes, the
        source and the licence (CC BY 4.0).

    Examples
    --------
    >>> thyroid = load_thyroid()
    >>> thyroid.data.shape
    (7200, 21)
    >>> X, y = load_thyroid(subset="test", return_X_y=True)
    >>> {name: int((y == name).sum()) for name in thyroid.target_names}
    {'hypothyroid': 73, 'compensated': 177, 'normal': 3178}
    """
    names, table = _read()
    rows = table[_ROWS[check_word(subset, "subset", tuple(_ROWS))]]
    # A copy, so that the data do not keep the whole table alive.
    data, target = rows[:, :-1].copy(), np.array(_CLASSES)[rows[:, -1].astype(int) - 1]
    frame = None
    if as_frame:
        frame = require("pandas", extra="cli").DataFrame(data, columns=names).assign(target=target)
        data, target = frame[names], frame["target"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=names,
        target_names=list(_CLASSES),
        DESCR=(files("equipoise.datasets") / "data" / "thyroid.rst").read_text("utf-8"),
    )


def _read() -> tuple[list[str], Matrix]:
    """The names of the features, and the table with UCI's class numbers in the last column."""
    packed = files("equipoise.datasets") / "data" / "thyroid.csv.gz"
    header, *lines = gzip.decompress(packed.read_bytes()).decode("ascii").splitlines()
    return header.split(",")[:-1], np.loadtxt(lines, delimiter=",")
