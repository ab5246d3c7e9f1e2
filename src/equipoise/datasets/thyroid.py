"""Thyroid function of 7,200 patients: three classes, the rarest with one patient in 43."""

import gzip
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from equipoise.exceptions import InvalidParameterError

Subset = Literal["all", "train", "test"]

# The classes that UCI calls 1, 2 and 3.
_CLASSES = ("hypothyroid", "compensated", "normal")

_N_TRAIN = 3772
_ROWS = {"all": slice(None), "train": slice(_N_TRAIN), "test": slice(_N_TRAIN, None)}

_DESCRIPTION = """\
Thyroid function of 7,200 patients (UCI Thyroid Disease, ann-thyroid)
---------------------------------------------------------------------

Is a patient who was referred to the clinic hypothyroid? 21 features, none missing: age, 15 yes/no
facts (0 and 1), and five laboratory values. Age and the laboratory values are scaled by constants
that UCI does not give; next to its other thyroid files, TSH and T4 look divided by 1,000.

    class        UCI's number   training rows   test rows    all
    hypothyroid             1              93          73    166
    compensated             2             191         177    368
    normal                  3           3,488       3,178  6,666

The first 3,772 rows are UCI's training rows, the other 3,428 its test rows. 71 rows repeat an
earlier one; none of the test rows repeats a training row.

The names of the classes are ours. UCI numbers them, and its notes speak of 'normal (not
hypothyroid), hyperfunction and subnormal functioning' without saying which is which. The
laboratory values speak against 'hyperfunction': the median TSH of class 1 is 35 times that of
class 3 and its median TT4 less than a third, the signs of primary hypothyroidism; class 2 has six
times the TSH at four fifths of the TT4, which UCI's other thyroid files call compensated
hypothyroidism. This is a reading of the numbers: do not draw medical conclusions from the names.

Source: Quinlan, R. (1986). Thyroid Disease [Dataset]. UCI Machine Learning Repository.
https://doi.org/10.24432/C5D010. Records of the Garvan Institute, Sydney; this version was
given to UCI by Randolf Werner, who had it from Daimler-Benz. Licence: CC BY 4.0,
https://creativecommons.org/licenses/by/4.0/. Changes: both files joined, with column names.
"""


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
    >>> from equipoise.datasets import load_thyroid
    >>> thyroid = load_thyroid()
    >>> thyroid.data.shape
    (7200, 21)
    >>> X, y = load_thyroid(subset="test", return_X_y=True)
    >>> {name: int((y == name).sum()) for name in thyroid.target_names}
    {'hypothyroid': 73, 'compensated': 177, 'normal': 3178}
    """
    if subset not in _ROWS:
        raise InvalidParameterError(f"subset must be 'all', 'train' or 'test', got {subset!r}.")
    names, table = _read()
    rows = table[_ROWS[subset]]
    # A copy, so that the data do not keep the whole table alive.
    data, target = rows[:, :-1].copy(), np.array(_CLASSES)[rows[:, -1].astype(int) - 1]
    frame = None
    if as_frame:
        frame = _frame(data, target, names)
        data, target = frame[names], frame["target"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=names,
        target_names=list(_CLASSES),
        DESCR=_DESCRIPTION,
    )


def _read() -> tuple[list[str], NDArray[np.float64]]:
    """The names of the features, and the table with UCI's class numbers in the last column."""
    packed = files("equipoise.datasets") / "data" / "thyroid.csv.gz"
    header, *lines = gzip.decompress(packed.read_bytes()).decode("ascii").splitlines()
    return header.split(",")[:-1], np.loadtxt(lines, delimiter=",")


def _frame(data: NDArray[np.float64], target: NDArray[np.str_], names: list[str]) -> Any:
    frame = _pandas().DataFrame(data, columns=names)
    return frame.assign(target=target)


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("as_frame=True needs pandas: pip install pandas") from error
    return pd
