"""Rows with equal features."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from equipoise.arrays import Indices
from equipoise.goals.labelled_predictions import BLOCK_VALUES


def equal_rows(X: Any) -> Indices:
    """Numbers in order of first appearance, the same for rows with equal features.

    Features are a table, a matrix, or a sequence of anything; where they cannot be read, all rows
    differ.

    Examples
    --------
    >>> equal_rows([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]).tolist()
    [0, 1, 0]
    """
    numbers: dict[int, int] = {}
    try:
        # Hashes of 64 bits: two of a million rows agree by accident once in 40 million tables.
        rows = [numbers.setdefault(hash(key), len(numbers)) for key in _keys(X)]
        return np.array(rows, dtype=np.intp)
    except (TypeError, ValueError, AttributeError, RuntimeError):
        return np.arange(X.shape[0] if hasattr(X, "shape") else len(X), dtype=np.intp)


def _keys(X: Any) -> Iterator[Any]:
    """What is equal for rows with equal features."""
    if hasattr(X, "iloc") and not (X.ndim == 2 and all(map(_is_numeric, X.dtypes))):
        from pandas.util import hash_pandas_object

        yield from hash_pandas_object(X, index=False).tolist()
    elif hasattr(X, "tocsr"):
        stored = X.tocsr().copy()
        stored.sum_duplicates()
        stored.eliminate_zeros()
        values = _plain(stored.data)
        for first, last in zip(stored.indptr[:-1], stored.indptr[1:], strict=True):
            yield stored.indices[first:last].tobytes(), values[first:last].tobytes()
    else:
        cells = np.asarray(X)
        numeric = cells.ndim == 2 and _is_numeric(cells.dtype)
        step = max(1, BLOCK_VALUES * len(cells) // max(1, cells.size))
        for start in range(0, len(cells), step):
            rows = cells[start : start + step]
            for row in _plain(rows) if numeric else rows:
                yield row.tobytes() if row.dtype.kind != "O" else repr(row)


def _is_numeric(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _plain(values: Any) -> Any:
    """Numbers of which both zeros are the same, and all that are not a number."""
    numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers
