"""The first pass over out-of-core data: classes, weights, the scale of columns, checksums.

Later passes compare every chunk with its checksum.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets

from equipoise.arrays import Indices, NDArray, Vector
from equipoise.blocks.base import Block, Stream, in_block
from equipoise.blocks.checksum import checksum
from equipoise.exceptions import InvalidInputError
from equipoise.objectives.matrices import ColumnMoments
from equipoise.objectives.registry import kind_of
from equipoise.validation.labels import (
    as_labels,
    check_sample_weight,
    classes_of,
    known_labels,
    positions,
    refuse_no_classification,
    refuse_weightless,
)

# The message about a chunk that differs from the first pass.
_CHANGED = (
    "its rows, labels or weights changed between passes, and a fit reads the same ones several "
    "times: shuffle, draw or write them before the fit, and store them."
)


class BlockFacts(NamedTuple):
    """What one block holds."""

    shape: tuple[int, int]
    form: str  # its dtype, and whether it is sparse
    classes: NDArray[Any]
    counts: Indices  # rows with a positive weight, by class of the block
    totals: Vector  # sums of weights
    moments: ColumnMoments | None  # of the rows that weigh something, where they are asked
    checksum: tuple[int, ...]  # differs where rows, labels or weights do
    n_bytes: int


def matrix_of(X: Any) -> Any:
    """Rows as an array or as a CSR matrix, in their own dtype; numbers, and two dimensions."""
    X = sp.csr_matrix(X, copy=False) if sp.issparse(X) else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "iufb":
        raise InvalidInputError(
            f"X must be numbers in two dimensions, got shape {X.shape} of {X.dtype}."
        )
    return X


def frame_or_matrix(X: Any) -> Any:
    """Rows for estimators that take tables as well: a DataFrame stays one."""
    return X if hasattr(X, "iloc") else matrix_of(X)


def weights_of_block(block: Block, n_rows: int) -> Vector:
    """Weights of the rows of a block; they may all be zero."""
    weights = block.weights
    none = weights is not None and np.shape(weights) == (n_rows,) and not np.any(weights)
    return np.zeros(n_rows) if none else check_sample_weight(weights, n_rows)


def look_at(
    place: int, block: Block, read: Callable[[Any], Any] = matrix_of, *, finite: bool = True
) -> BlockFacts | None:
    """What a block holds, checked; None where it has no rows. Moments are those of matrices."""
    with in_block(place):
        rows_and_labels = _rows_and_labels(block, read)
        if rows_and_labels is None:
            return None
        X, y = rows_and_labels
        weights = weights_of_block(block, len(y))
        if finite and not hasattr(X, "iloc"):
            _refuse_not_finite(X)
        classes = classes_of(y)
    labels, used = positions(y, classes), weights > 0
    moments = None
    if read is matrix_of and np.any(used):
        moments = kind_of(X).column_moments(X if np.all(used) else X[used])
    return BlockFacts(
        X.shape,
        "a table" if hasattr(X, "iloc") else f"{'sparse ' if sp.issparse(X) else ''}{X.dtype}",
        classes,
        np.bincount(labels[used], minlength=len(classes)),
        np.bincount(labels, weights=weights, minlength=len(classes)).astype(np.float64),
        moments,
        checksum(X, y, block.weights),
        _bytes_of(X),
    )


def _rows_and_labels(block: Block, read: Callable[[Any], Any]) -> tuple[Any, NDArray[Any]] | None:
    """The rows of a block and their labels; None where it has no rows."""
    X = read(block.X)
    if X.shape[0] == 0:
        return None
    if block.y is None:
        raise InvalidInputError("it has no labels; give (X, y).")
    y = as_labels(block.y, name="y")
    if len(y) != X.shape[0]:
        raise InvalidInputError(f"X has {X.shape[0]} rows and y {len(y)}.")
    return X, y


def _bytes_of(X: Any) -> int:
    """What rows take in memory."""
    if hasattr(X, "iloc"):
        return int(X.memory_usage(index=False, deep=True).sum())
    return int(X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes)


def _refuse_not_finite(X: Any) -> None:
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        fine = values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64))
    if fine or np.all(np.isfinite(values)):
        return
    where = X.tocoo() if sp.issparse(X) else None
    bad = np.flatnonzero(~np.isfinite(values)) if where is not None else None
    if where is not None and bad is not None:
        row, column = int(where.row[bad[0]]), int(where.col[bad[0]])
    else:
        row, column = (int(place[0]) for place in np.nonzero(~np.isfinite(values)))
    raise InvalidInputError(
        f"row {row} has {X[row, column]} in column {column}; X must hold finite numbers. Fill or "
        "leave out such rows first."
    )


@dataclass(frozen=True, eq=False)
class Survey:
    """What all blocks hold together."""

    classes: NDArray[Any]
    totals: Vector  # sums of weights by class
    counts: Indices  # rows with a positive weight, by block and class
    n_features: int
    form: str
    moments: ColumnMoments  # empty where nobody asked
    checksums: tuple[tuple[int, ...] | None, ...]  # None for a block without rows
    row_bytes: float

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    def empty(self) -> Any:
        """A matrix of the blocks' kind without rows."""
        sparse, _, dtype = self.form.rpartition(" ")
        empty = np.empty((0, self.n_features), dtype)
        return sp.csr_matrix(empty) if sparse else empty

    def again(
        self, place: int, block: Block, read: Callable[[Any], Any] = matrix_of
    ) -> tuple[Any, Indices, Vector] | None:
        """Rows, class indices and weights of a block in a later pass; None where none weighs.

        The checksum is compared before anything else: what is wrong now was not in the first pass.
        """
        with in_block(place):
            try:
                rows_and_labels = _rows_and_labels(block, read)
                now = None if rows_and_labels is None else checksum(*rows_and_labels, block.weights)
            except (TypeError, ValueError) as error:
                raise InvalidInputError(_CHANGED) from error
            if now != self.checksums[place]:
                raise InvalidInputError(_CHANGED)
            if rows_and_labels is None or not self.counts[place].any():
                return None
            X, y = rows_and_labels
            return X, known_labels(y, self.classes), weights_of_block(block, len(y))


def survey(stream: Stream, look: Callable[[int, Block], BlockFacts | None] = look_at) -> Survey:
    """Look at all blocks once."""
    all_facts, noun = list(stream.map(look)), stream.blocks.noun
    facts = [(place, one) for place, one in enumerate(all_facts) if one is not None]
    if not facts:
        raise InvalidInputError(
            f"There are no rows: every {noun.lower()} is empty, or there is none."
        )
    first, (origin, _) = facts[0][1], facts[0]
    for place, one in facts:
        if one.shape[1] != first.shape[1]:
            raise InvalidInputError(
                f"{noun} {place} has {one.shape[1]} columns where {noun.lower()} {origin} has "
                f"{first.shape[1]}: all {noun.lower()}s must have the same."
            )
        if one.form != first.form:
            raise InvalidInputError(
                f"{noun} {place} is {one.form} where {noun.lower()} {origin} is {first.form}: "
                "convert them to one."
            )
    classes = _all_classes([one for _, one in facts])
    counts = np.zeros((len(all_facts), len(classes)), dtype=np.intp)
    totals = np.zeros(len(classes))
    for place, one in facts:
        where = positions(one.classes.astype(classes.dtype, copy=False), classes)
        counts[place, where], totals[where] = one.counts, totals[where] + one.totals
    refuse_weightless(classes[totals <= 0])
    sums = tuple(None if one is None else one.checksum for one in all_facts)
    moments = _merged([one for _, one in facts])
    row_bytes = sum(one.n_bytes for _, one in facts) / sum(one.shape[0] for _, one in facts)
    return Survey(classes, totals, counts, first.shape[1], first.form, moments, sums, row_bytes)


def _all_classes(facts: list[BlockFacts]) -> NDArray[Any]:
    """All labels that appear anywhere, sorted."""
    texts = {one.classes.dtype.kind in "UO" for one in facts}
    if len(texts) > 1:
        raise InvalidInputError(
            "y must hold labels of one type: some blocks hold text and some numbers."
        )
    classes = classes_of(np.concatenate([one.classes for one in facts]))
    check_classification_targets(np.repeat(classes, 2))
    refuse_no_classification(classes, sum(one.shape[0] for one in facts))
    return classes


def _merged(facts: list[BlockFacts]) -> ColumnMoments:
    """Moments of the columns from those of blocks."""
    known = [(float(one.counts.sum()), one.moments) for one in facts if one.moments is not None]
    if not known:
        return ColumnMoments.none()
    shares = np.array([n_rows for n_rows, _ in known])
    shares /= shares.sum()
    means, spreads, same = (np.array(each) for each in zip(*(m for _, m in known), strict=True))
    one_value = np.all(same & (means == means[0]), axis=0)
    mean = np.where(one_value, means[0], shares @ means)
    deviations = np.concatenate([np.abs(means - mean), spreads])
    unit = np.maximum(deviations.max(axis=0), np.finfo(float).tiny)  # squares do not overflow
    squares = shares @ ((means - mean) / unit) ** 2 + shares @ (spreads / unit) ** 2
    return ColumnMoments(mean, np.sqrt(squares) * unit, one_value)
