"""Forest cover of 581,012 places: seven classes, read from a local copy or fetched."""

import gzip
import hashlib
import os
import warnings
import zipfile
import zlib
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from equipoise.arrays import NDArray
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.validation.numbers import check_word

Subset = Literal["all", "train", "validation", "test"]
Integers = NDArray[np.int16]

# Where a local copy is looked for when no path is given.
FOLDER_VARIABLE = "EQUIPOISE_DATA"
# The fastest to read first.
FILE_NAMES = ("covtype.npz", "covtype.data", "covtype.data.gz")

_REMEDY = (
    "get covtype.data.gz from "
    "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz, and give "
    f"its path or put it in the folder that the environment variable {FOLDER_VARIABLE} names."
)
# Of the numbers as little-endian int16 with the class in the last column.
_TABLE_SHA256 = "374d5311b45f82216fef53d5f74bda06336ef91e24f09b2a62ff374ddf9fb206"
_ROWS = 581_012
_COUNTS = (211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510)

# What reading a damaged file may raise.
_DAMAGED = (ValueError, LookupError, EOFError, TypeError, OSError, zipfile.BadZipFile, zlib.error)

_SUBSETS = {
    "all": slice(None),
    "train": slice(11_340),
    "validation": slice(11_340, 15_120),
    "test": slice(15_120, None),
}

_CLASSES = [
    "spruce/fir",
    "lodgepole pine",
    "ponderosa pine",
    "cottonwood/willow",
    "aspen",
    "douglas-fir",
    "krummholz",
]
_FEATURES = [
    "Elevation",
    "Aspect",
    "Slope",
    "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology",
    "Horizontal_Distance_To_Roadways",
    "Hillshade_9am",
    "Hillshade_Noon",
    "Hillshade_3pm",
    "Horizontal_Distance_To_Fire_Points",
    *(f"Wilderness_Area_{number}" for number in range(1, 5)),
    *(f"Soil_Type_{number}" for number in range(1, 41)),
]


def fetch_covtype(
    path: str | os.PathLike[str] | None = None,
    *,
    subset: Subset = "all",
    return_X_y: bool = False,
) -> Any:
    """Forest cover types: 581,012 rows, 54 features, seven classes; whole and in UCI's order.

    Parameters
    ----------
    path : path-like, optional
        A file, or a folder that holds one: UCI's text ``covtype.data``, the same gzipped
        (``covtype.data.gz``), or ``covtype.npz``. By default the folder that the environment
        variable EQUIPOISE_DATA names, and where it has no such file scikit-learn's own copy,
        which scikit-learn downloads if need be.
    subset : {"all", "train", "validation", "test"}, default="all"
        All rows, or those of UCI's split: 11,340 training rows and 3,780 validation rows, in
        which the classes are equally frequent, and 565,892 test rows, in which they are not.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` only.

    Returns
    -------
    sklearn.utils.Bunch, or a pair if ``return_X_y``
        ``data`` float64 of shape (n, 54); ``target`` UCI's class numbers 1 to 7 of shape (n,);
        ``feature_names``; ``target_names``, in the order of these numbers; and ``DESCR``.

    Raises
    ------
    InvalidInputError
        If a file is truncated or altered; the message names its checksum or its counts.
    FileNotFoundError
        If there is no local copy and none can be downloaded.

    Examples
    --------
    >>> X, y = fetch_covtype(return_X_y=True)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (581012, 54)
    """
    chosen = _SUBSETS[check_word(subset, "subset", tuple(_SUBSETS))]
    rows = _table(path)[chosen]
    data, target = rows[:, :-1].astype(np.float64), rows[:, -1].astype(np.int64)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(_FEATURES),
        target_names=list(_CLASSES),
        DESCR=(files("equipoise.datasets") / "data" / "covtype.rst").read_text("utf-8"),
    )


def _table(path: str | os.PathLike[str] | None) -> Integers:
    """All rows as integers, the class in the last column, checked."""
    file = _local_file(path)
    if file is None:
        return _checked(_from_sklearn(), "scikit-learn's copy of Covertype")
    try:
        table = _from_npz(file) if file.suffix == ".npz" else _from_text(file)
    except _DAMAGED as error:
        raise InvalidInputError(
            f"'{file}' is truncated or not a file of Covertype ({error}): {_REMEDY}"
        ) from error
    return _checked(table, str(file))


def _local_file(path: str | os.PathLike[str] | None) -> Path | None:
    location = os.environ.get(FOLDER_VARIABLE, "") if path is None else path
    if path is None and not location:
        return None
    place = Path(location).expanduser()
    files = [place, *(place / name for name in FILE_NAMES)]
    existing = next((file for file in files if file.is_file()), None)
    if existing is None and path is not None:
        raise InvalidParameterError(
            f"path must be a Covertype file or a folder that holds one of "
            f"{', '.join(FILE_NAMES)}, got '{place}'."
        )
    return existing


def _from_text(file: Path) -> Integers:
    """UCI's text, gzipped or not."""
    with file.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"  # whatever its name
    with gzip.open(file) if is_packed else file.open("rb") as text:
        return np.loadtxt(text, dtype=np.int16, delimiter=",", ndmin=2)


def _from_npz(file: Path) -> Integers:
    """Quantities, packed yes/no facts and classes, as three arrays of one archive."""
    # Opened here, because np.load leaves a damaged archive open.
    with file.open("rb") as raw, np.load(raw, allow_pickle=False) as stored:
        facts = np.unpackbits(stored["X_bin_packed"], axis=1, count=44)
        return np.hstack([stored["X_quant"], facts, stored["y"][:, None]]).astype(np.int16)


def _from_sklearn() -> Integers:
    try:
        # Each failed attempt warns; what counts is said once, below.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            bunch = sklearn_datasets.fetch_covtype()
    except OSError as error:
        raise FileNotFoundError(
            f"Covertype is not on this machine and could not be downloaded ({error}): {_REMEDY}"
        ) from error
    return np.column_stack([bunch.data, bunch.target]).astype(np.int16)


def _checked(table: Integers, source: str) -> Integers:
    """The table, if every number in it is UCI's."""
    counts = tuple(np.bincount(np.clip(table[:, -1], 0, 8), minlength=9)[1:8].tolist())
    if table.shape != (_ROWS, len(_FEATURES) + 1) or counts != _COUNTS:
        raise InvalidInputError(
            f"{source} is not Covertype: it has {len(table):,} rows (expected {_ROWS:,}) and "
            f"classes of {counts} rows (expected {_COUNTS}): {_REMEDY}"
        )
    checksum = hashlib.sha256(np.ascontiguousarray(table, dtype="<i2").tobytes()).hexdigest()
    if checksum != _TABLE_SHA256:
        raise InvalidInputError(
            f"{source} was altered: the counts are right, but its numbers as int16 have sha256 "
            f"{checksum} (expected {_TABLE_SHA256}): {_REMEDY}"
        )
    return table
