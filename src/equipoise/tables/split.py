"""Rows set aside to judge a fit by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.exceptions import InvalidParameterError
from equipoise.extras import require

Rows = NDArray[np.intp]


def hold_out(X: Any, y: Any, share: float = 0.2, seed: int = 0) -> tuple[Rows, Rows]:
    """Rows to train on and rows to judge by: about ``share`` of every class, at random.

    Repeated rows stay on one side, or a model could be judged by what it has seen; a row repeated
    so often that it would fill the share by itself stays in training. So does a class whose rows
    are all alike, such as a class of one row.

    Parameters
    ----------
    X : pandas.DataFrame
        Features.
    y : array-like of shape (n_rows,)
        Labels.
    share : float in [0, 1)
        Share of the rows to set aside.
    seed : int
        Seed of the random order.

    Returns
    -------
    train, test : ndarray of int
        Positions of rows, in order.
    """
    if not 0 <= share < 1:
        raise InvalidParameterError(f"share must be in [0, 1), got {share!r}.")
    group = row_groups(X)
    classes, labels = np.unique(np.asarray(y), return_inverse=True)
    # A group belongs to the class of its first row, also where labels of equal rows differ.
    owner = np.zeros(group.max() + 1, dtype=np.intp)
    owner[group[::-1]] = labels[::-1]
    size, aside = np.bincount(group), np.zeros(len(owner), dtype=bool)
    rng = np.random.default_rng(seed)
    for place in range(len(classes)):
        groups = rng.permutation(np.flatnonzero(owner == place))
        aside[_some(groups, size[groups], share)] = True
    left = np.bincount(labels[~aside[group]], minlength=len(classes))
    # A class all of whose rows repeat rows of others may have lost every one of them.
    aside[group[left[labels] == 0]] = False
    return np.flatnonzero(~aside[group]), np.flatnonzero(aside[group])


def row_groups(X: Any) -> Rows:
    """Equal numbers for equal rows."""
    hashes = require("pandas", extra="cli").util.hash_pandas_object(X, index=False)
    return np.asarray(np.unique(hashes.to_numpy(), return_inverse=True)[1], dtype=np.intp)


def _some(groups: Rows, sizes: Rows, share: float) -> Rows:
    """The first groups that hold a share of the rows together, passing over too large ones."""
    if len(groups) < 2 or share == 0:
        return groups[:0]
    room = share * float(sizes.sum())
    fitting = sizes <= room
    if not fitting.any():
        # Of a handful of rows one is set aside, unless it stands for most of them.
        return groups[:1] if 2 * sizes[0] <= sizes.sum() else groups[:0]
    fits, filled = groups[fitting], np.cumsum(sizes[fitting])
    return np.asarray(fits[: int(np.searchsorted(filled, room * (1 + 1e-9), side="right"))])
