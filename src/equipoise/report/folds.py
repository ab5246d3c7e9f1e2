r"""Who is judged by whom: folds in which every row is judged by fits that have not seen it.

Rows with equal features stay together, or a fit would be judged by what it has seen. Every class
is spread evenly over the folds. A class of fewer distinct rows than folds only trains: it would
be missing from some of the fits, and its risk cannot be estimated.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices as Rows
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.tables import LabelledTable as Table
from equipoise.tables import hold_out
from equipoise.validation.numbers import check_count

# Above so many rows one part is held out instead of folds, and costly fits take a sample.
MANY_ROWS = 100_000
# Share of the rows of a large table that is held out.
HELD_OUT = 0.2

TRAINS_ONLY = -1


@dataclass(frozen=True, eq=False)
class Design:
    """The folds.

    Attributes
    ----------
    fold : ndarray of shape (n_rows,)
        The fold in which a row is judged; -1 for a row that only trains.
    n_folds : int
        1 where a part of the rows is held out.
    estimable : ndarray of bool of shape (n_classes,)
        Which classes are judged.
    n_repeated : int
        Rows that repeat the features of an earlier one.
    """

    fold: Rows
    n_folds: int
    estimable: NDArray[np.bool_]
    n_repeated: int

    @property
    def judged(self) -> Rows:
        """The rows that are judged."""
        return np.flatnonzero(self.fold != TRAINS_ONLY)

    def parts(self) -> Iterator[tuple[int, Rows, Rows]]:
        """Number, training rows and judged rows of every fold."""
        for fold in range(self.n_folds):
            yield fold, np.flatnonzero(self.fold != fold), np.flatnonzero(self.fold == fold)


def make_design(table: Table, cv: int, seed: int) -> Design:
    """Folds for a table, or one part held out where it is large."""
    if check_count(cv, "cv") < 2:
        raise InvalidParameterError(f"cv must be at least 2 folds, got {cv!r}.")
    many = len(table.y) > MANY_ROWS
    fold = _held_out(table, seed) if many else _folds(table, cv, seed)
    n_folds = 1 if many else cv
    counts = np.bincount(table.labels[fold != TRAINS_ONLY], minlength=len(table.classes))
    estimable = counts > 0
    if np.count_nonzero(estimable) < 2:
        raise InvalidInputError(
            f"At least two classes need {cv} different rows or more, to be judged on rows that a "
            f"fit has not seen; the classes have {_listing(table)} rows."
        )
    repeated = len(table.y) - int(table.groups.max()) - 1
    return Design(fold, n_folds, estimable, repeated)


def _listing(table: Table) -> str:
    shown = ", ".join(str(count) for count in table.counts[:10])
    return shown if len(table.counts) <= 10 else f"{shown}, ..."


def _held_out(table: Table, seed: int) -> Rows:
    fold = np.full(len(table.y), TRAINS_ONLY, dtype=np.intp)
    _, aside = hold_out(table.X, table.labels, HELD_OUT, seed)
    fold[aside] = 0
    return fold


def _folds(table: Table, n_folds: int, seed: int) -> Rows:
    """Groups of equal rows dealt out class by class in random order."""
    groups, size = table.groups, np.bincount(table.groups)
    # A group belongs to the class of its first row, also where labels of equal rows differ.
    owner = np.zeros(len(size), dtype=np.intp)
    owner[groups[::-1]] = table.labels[::-1]
    of_group = np.full(len(size), TRAINS_ONLY, dtype=np.intp)
    rng = np.random.default_rng(seed)
    for label in range(len(table.classes)):
        own = rng.permutation(np.flatnonzero(owner == label))
        if len(own) >= n_folds:
            of_group[own] = _dealt(size[own], n_folds, rng)
    return _without_gaps(of_group[groups], table, n_folds)


def _dealt(sizes: Rows, n_folds: int, rng: np.random.Generator) -> Rows:
    """Folds of groups of these sizes: consecutive pieces of about equally many rows."""
    order = np.argsort(-sizes, kind="stable")
    fold, load = np.empty(len(sizes), dtype=np.intp), np.zeros(n_folds)
    large = order[sizes[order] > 1]
    for group in large:
        # Ties are broken at random, so that the first fold is not always the larger one.
        lightest = int(np.argmin(load + rng.random(n_folds)))
        fold[group] = lightest
        load[lightest] += sizes[group]
    single = order[len(large) :]
    # The emptiest folds are filled up first; what is left goes round.
    room = np.maximum(np.ceil(load.max() - load).astype(np.intp), 0)
    filled = np.repeat(np.arange(n_folds), room)[: len(single)]
    turn = rng.permutation(n_folds)
    rest = turn[np.arange(len(single) - len(filled)) % n_folds]
    fold[single] = np.concatenate([rng.permutation(filled), rest])
    return fold


def _without_gaps(fold: Rows, table: Table, n_folds: int) -> Rows:
    """Every class in every training part: one that would be missing only trains."""
    k = len(table.classes)
    judged = fold != TRAINS_ONLY
    cells = fold[judged] * k + table.labels[judged]
    counts = np.bincount(cells, minlength=n_folds * k).reshape(n_folds, k)
    missing = (counts == table.counts).any(axis=0)
    # Rows of other classes with equal features go with them.
    affected = np.isin(table.groups, table.groups[missing[table.labels]])
    return np.where(affected, TRAINS_ONLY, fold)


def stratified_sample(labels: Rows, rows: Rows, size: int, seed: int) -> Rows:
    """At most about so many of the rows, the same share of every class, at least one of each."""
    if len(rows) <= size:
        return rows
    rng = np.random.default_rng(seed)
    share = size / len(rows)
    parts = []
    for label in np.unique(labels[rows]):
        own = rows[labels[rows] == label]
        parts.append(rng.choice(own, size=int(np.ceil(share * len(own))), replace=False))
    return np.sort(np.concatenate(parts))
