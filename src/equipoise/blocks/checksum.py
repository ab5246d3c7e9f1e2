"""Checksums of blocks: whether a later pass reads what an earlier one did.

All of a block is read for every pass, so that a checksum of all of it costs little: features are
added up as 64-bit integers, each times an odd number by its position, which takes some 5 % of the
time of a pass. No single change is missed, because odd numbers are invertible.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import NDArray
from equipoise.extras import require

# _N_SUMS: sums of 64-bit words, 8 KB in all, which stay in a core's cache. It is a prime, so that
# words that trade places, in a row or between rows near each other, are in different sums.
_N_SUMS = 1021
_WORD = np.dtype(np.uint64)


def checksum(X: Any, y: Any, weights: Any) -> tuple[int, ...]:
    """Some integers that differ where rows, labels or weights do, in every process the same.

    ``X`` is an array, a CSR matrix or a DataFrame; ``weights`` may be None.

    Examples
    --------
    >>> X = np.eye(3)
    >>> checksum(X, [0, 1, 0], None) == checksum(X, [0, 1, 0], None)
    True
    >>> checksum(X, [0, 1, 0], None) == checksum(X[[1, 0, 2]], [0, 1, 0], None)
    False
    """
    beside = [_of_array(np.asarray(part)) for part in (y, weights) if part is not None]
    return (*X.shape, *_of_rows(X), *beside)


def _of_rows(X: Any) -> list[int]:
    if hasattr(X, "iloc"):
        columns = [_of_column(X.iloc[:, place]) for place in range(X.shape[1])]
        return [_of_array(np.array(columns))]
    return [_of_array(part) for part in ((X.data, X.indices, X.indptr) if sp.issparse(X) else (X,))]


def _of_column(series: Any) -> int:
    if isinstance(series.dtype, np.dtype) and series.dtype != object:
        return _of_array(series.to_numpy())
    util = require("pandas", extra="cli").util
    try:
        return _of_array(util.hash_pandas_object(series, index=False).to_numpy())
    except TypeError:  # of cells such as lists there is no hash
        return _of_array(series.to_numpy(dtype=object))


def _of_array(values: NDArray[Any]) -> int:
    if values.dtype == object:
        return crc32(_joined(values.tolist()).encode(errors="surrogatepass"))
    if values.dtype == np.longdouble:  # has bytes that mean nothing
        values = values.astype(np.float64)
    octets = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    summed = len(octets) - len(octets) % (_N_SUMS * _WORD.itemsize)
    words = octets[:summed].view(_WORD).reshape(-1, _N_SUMS)
    # The same sums of words that trade places differ by their factors.
    factors = 2 * np.arange(len(words), dtype=_WORD) + _WORD.type(1)
    sums = np.einsum("i,ij->j", factors, words)
    return crc32(octets[summed:].data, crc32(sums.data))


def _joined(objects: list[Any]) -> str:
    try:
        return "\0".join(objects)
    except TypeError:  # not all are texts; hashes of these would differ from process to process
        return repr(objects)
