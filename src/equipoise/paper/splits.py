"""Training and test rows: the synthetic model's, drawn, and Covertype's, loaded when needed."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Matrix
from equipoise.datasets import fetch_covtype, make_power_imbalance

# UCI's split, which the paper takes: balanced training rows, imbalanced test rows.
_TRAIN, _TEST = 11_340, 15_120


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
        Covertype, as :func:`equipoise.datasets.fetch_covtype` takes it.
    """

    path: str | os.PathLike[str] | None = None
    # The split used last: units of the same split follow each other.
    _last: tuple[Any, Split] | None = None

    @cached_property
    def covertype(self) -> tuple[Matrix, Indices]:
        """All rows of Covertype."""
        data: tuple[Any, Any] = fetch_covtype(self.path, return_X_y=True)
        return data

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
