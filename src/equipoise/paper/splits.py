"""Training and test rows: the synthetic model's, drawn; Covertype's and Fashion-MNIST's, loaded."""

import gzip
import os
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Matrix
from equipoise.datasets import fetch_covtype, make_power_imbalance
from equipoise.datasets.covtype import FOLDER_VARIABLE
from equipoise.exceptions import InvalidInputError

# UCI's split, which the paper takes: balanced training rows, imbalanced test rows.
_TRAIN, _TEST = 11_340, 15_120

# Fashion-MNIST: where Debian's package puts it, its files, and the rows of each of ten classes.
_FASHION_FOLDER = Path("/usr/share/datasets/fashion-mnist")
_FASHION_FILES = ("{part}-images-idx3-ubyte.gz", "{part}-labels-idx1-ubyte.gz")
_FASHION_PARTS = {"train": 6_000, "t10k": 1_000}
# Its classes that are hardest to tell apart.
FASHION_CLASSES = {0: "t-shirt", 2: "pullover", 6: "shirt"}


@dataclass(frozen=True)
class Split:
    """Standardised training and test rows."""

    X: Matrix
    y: Indices
    X_test: Matrix
    y_test: Indices


def synthetic_split(p: float, n_train: int, n_test: int, seed: int, noise: int = 0) -> Split:
    """Training and test rows; the same seed draws the same points for every p."""
    options: dict[str, Any] = {"p": p, "n_noise_features": noise}
    X, y = make_power_imbalance(n_train, random_state=2 * seed, **options)
    X_test, y_test = make_power_imbalance(n_test, random_state=2 * seed + 1, **options)
    return Split(X, y, X_test, y_test)


@dataclass
class Sources:
    """Where data come from.

    Parameters
    ----------
    path : path-like, optional
        Covertype, as :func:`equipoise.datasets.fetch_covtype` takes it, or a folder with
        Fashion-MNIST.
    """

    path: str | os.PathLike[str] | None = None
    # The split used last: units of the same split follow each other.
    _last: tuple[Any, Split] | None = None

    @cached_property
    def covertype(self) -> tuple[Matrix, Indices]:
        """All rows of Covertype."""
        data: tuple[Any, Any] = fetch_covtype(self.path, return_X_y=True)
        return data

    @cached_property
    def fashion(self) -> Split:
        """T-shirts, pullovers and shirts of Fashion-MNIST, pixels from 0 to 1."""
        folders = [Path(each) for each in (self.path, os.environ.get(FOLDER_VARIABLE)) if each]
        for folder in (*folders, _FASHION_FOLDER):
            files = [folder / n.format(part=p) for p in _FASHION_PARTS for n in _FASHION_FILES]
            if all(file.is_file() for file in files):
                return _fashion_split(folder)
        raise FileNotFoundError(
            "Fashion-MNIST was not found: install Debian's package dataset-fashion-mnist, or put "
            f"its four files ({_FASHION_FILES[0].format(part='train')}, ...) in the folder that "
            f"the environment variable {FOLDER_VARIABLE} names."
        )

    def paper_split(self, test_step: int = 1) -> Split:
        """The paper's split of Covertype; every ``test_step``-th test row is kept."""
        return self._split(("paper", test_step), slice(_TRAIN), slice(_TEST, None, test_step))

    def random_split(self, n_train: int, seed: int, test_step: int = 1) -> Split:
        """Random training rows of Covertype, in which the classes are as unequal as in all."""
        order = np.random.default_rng(seed).permutation(len(self.covertype[1]))
        key = "random", n_train, seed, test_step
        return self._split(key, order[:n_train], order[n_train::test_step])

    def _split(self, key: Any, rows: Any, rest: Any) -> Split:
        if self._last is None or self._last[0] != key:
            X, y = self.covertype
            # Free the last split before the next one is made.
            self._last = None
            self._last = key, standardised(X[rows], y[rows], X[rest], y[rest])
        return self._last[1]


def standardised(X: Matrix, y: Indices, X_test: Matrix, y_test: Indices) -> Split:
    """Both parts on the scale of the training rows: mean 0, standard deviation 1 (n - 1).

    A column that is constant in the training rows is only centred.
    """
    mean, scale = X.mean(axis=0), X.std(axis=0, ddof=1)
    scale[scale == 0] = 1.0
    train, test = X - mean, X_test - mean
    train /= scale
    test /= scale
    return Split(train, y, test, y_test)


def _fashion_split(folder: Path) -> Split:
    arrays = []
    for part, count in _FASHION_PARTS.items():
        pixels, labels = (read_idx(folder / name.format(part=part)) for name in _FASHION_FILES)
        counts = np.bincount(labels.ravel(), minlength=10).tolist()
        if pixels.shape != (10 * count, 28, 28) or counts != [count] * 10:
            raise InvalidInputError(
                f"{folder} must hold Fashion-MNIST, whose part {part} has {count:,} images of "
                f"28 x 28 of each of ten classes; got images of shape {pixels.shape} and classes "
                f"of {counts} rows."
            )
        kept = np.isin(labels, list(FASHION_CLASSES))
        arrays += [pixels[kept].reshape(-1, 28 * 28) / 255.0, labels[kept].astype(np.intp)]
    return Split(*arrays)


def read_idx(file: Path) -> Any:
    """The array of bytes in a gzipped IDX file: 0, 0, 8, its dimensions, four bytes for each."""
    try:
        content = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInputError(f"{file} is damaged ({error}): get it again.") from error
    n_axes = content[3] if content[:3] == b"\0\0\x08" and len(content) > 3 else 0
    start = 4 + 4 * n_axes
    shape = np.frombuffer(content[4:start].ljust(4 * n_axes, b"\0"), dtype=">u4").astype(int)
    if n_axes == 0 or len(content) != start + np.prod(shape):
        raise InvalidInputError(f"{file} must be a whole IDX file of bytes: get it again.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
