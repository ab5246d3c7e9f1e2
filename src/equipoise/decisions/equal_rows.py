"""Rows with equal features."""

from typing import Any

import numpy as np

from equipoise.arrays import Indices, NDArray

# Rows whose cells stay in the cache.
_BLOCK = 1 << 10


def equal_rows(X: Any) -> Indices:
    """Numbers in the order in which they appear, the same for rows with equal features.

    Features are a table, a matrix, or a sequence of anything; where they cannot be looked at, all
    rows differ.

    Examples
    --------
    >>> equal_rows([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]).tolist()
    [0, 1, 0]
    """
    try:
        if hasattr(X, "iloc") and not (X.ndim == 2 and all(map(_is_numeric, X.dtypes))):
            from pandas.util import hash_pandas_object

            return _numbered(hash_pandas_object(X, index=False).to_numpy())
        if hasattr(X, "tocsr"):
            return _numbered(_sparse_hashes(X.tocsr()))
        cells = np.asarray(X)
        if cells.ndim == 2 and _is_numeric(cells.dtype):
            return _numbered(_hashes(cells))
        keys: dict[Any, int] = {}
        rows = ((each.dtype.kind != "O" and each.tobytes()) or repr(each) for each in cells)
        return np.array([keys.setdefault(key, len(keys)) for key in rows], dtype=np.intp)
    except (TypeError, ValueError, AttributeError, RuntimeError):
        return np.arange(X.shape[0] if hasattr(X, "shape") else len(X), dtype=np.intp)


def _is_numeric(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _numbered(keys: NDArray[Any]) -> Indices:
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), dtype=np.intp)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks[places]


def _hashes(cells: NDArray[Any]) -> NDArray[np.uint64]:
    """Sums over the columns of what a value and the place of its column are mixed to."""
    own = _mixed(np.arange(1, cells.shape[1] + 1, dtype=np.uint64))
    found = np.zeros(len(cells), dtype=np.uint64)
    for start in range(0, len(cells), _BLOCK):
        block = slice(start, start + _BLOCK)
        found[block] = _mixed(_bits(cells[block]) + own).sum(axis=1)
    return found


def _sparse_hashes(rows: Any) -> NDArray[np.uint64]:
    rows.sum_duplicates()
    own = _mixed(rows.indices.astype(np.uint64) + np.uint64(1))
    mixed = np.where(rows.data != 0, _mixed(_bits(rows.data) + own), np.uint64(0))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Numbers as bits, the same for both zeros and for all that is not a number."""
    numbers = values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits of which all depend on all that were given, as in the generator splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
