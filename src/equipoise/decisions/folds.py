"""Which rows are held out when: folds, or a share of the rows.

Every class is spread evenly. Rows with equal features stay together, or a model would be evaluated
on what it has seen; splits that are given are taken as they are.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from equipoise.arrays import Indices, Mask, NDArray
from equipoise.decisions.equal_rows import equal_rows
from equipoise.exceptions import InvalidInputError, InvalidParameterError

# FOLDS_OF_A_CLASS: folds in which a class must have rows: weights are tuned without one of them,
# and what is left should hold more than a single row.
FOLDS_OF_A_CLASS = 3
# FOLDS: of rows that were predicted by one model; scikit-learn's default.
FOLDS = 5
# TRAINS_ONLY: the fold of rows that are never held out.
TRAINS_ONLY = -1

# Training rows and held-out rows of every split.
Parts = list[tuple[Indices, Indices]]


@dataclass(frozen=True, eq=False)
class Folds:
    """Which rows are held out when.

    ``parts`` are training rows and held-out rows of every split, ``few`` the classes of too few
    rows to be tuned or evaluated, ``fold`` the fold of every held-out row, in the order of
    ``rows``. Rows predicted by one model are dealt out to folds for the tuning.
    """

    parts: Parts
    few: Mask
    fold: Indices = field(repr=False)

    @cached_property
    def rows(self) -> Indices:
        """The held-out rows, one split after the other."""
        return np.concatenate([test for _, test in self.parts])

    @property
    def tested_per_trained(self) -> float:
        """Held-out rows for each row of a training part."""
        trained = np.mean([len(train) for train, _ in self.parts])
        return float(len(self.rows) / trained)


def split(  # noqa: PLR0913  the rows, how, and which classes
    cv: Any, X: Any, y: NDArray[Any], labels: Indices, classes: NDArray[Any], *,
    params: Mapping[str, Any], seed: int, once: bool = False, rare_classes: str | None = None,
    min_rows: int = 1,
) -> Folds:  # fmt: skip
    """The folds of ``cv``, with classes of too few rows refused, kept for training, or dropped.

    ``labels`` are class indices, -1 for a row that is not used. If ``once``, a number of folds
    holds out the share of one, and a splitter gives its first split.
    """
    parts, few, needed = split_rows(cv, X, y, labels, params, seed, once=once)
    counts = np.bincount(labels[labels >= 0], minlength=len(classes))
    few = refuse_few(few, needed, counts, classes, rare_classes, min_rows)
    if rare_classes == "drop":
        labels = np.where(few[labels], -1, labels)
        parts = _used(parts, labels)
    tested = np.concatenate([test for _, test in parts])
    return Folds(parts, few, _fold_of(parts, labels[tested], seed))


def split_rows(
    cv: Any, X: Any, y: NDArray[Any], labels: Indices, params: Mapping[str, Any], seed: int,
    *, once: bool = False,
) -> tuple[Parts, Mask, str]:  # fmt: skip
    """The splits of ``cv`` as scikit-learn understands it, or one that holds out a share.

    They test no row twice, and no row left out, which a splitter or its groups may count. With
    them come the classes that have too few rows, and in words what they would have to have. If
    ``once``, a number of folds holds out the share of one, and a splitter gives its first split.
    """
    if isinstance(cv, str):
        fitted = "" if cv == "prefit" else ', or "prefit" where an estimator is given'
        raise InvalidParameterError(
            "cv must be a number of folds, a share of rows to hold out, a splitter or an iterable "
            f"of splits{fitted}, got {cv!r}."
        )
    used = np.flatnonzero(labels >= 0)
    if once and (cv is None or isinstance(cv, Integral)):
        cv = 1 / check_cv(5 if cv is None else cv, y[used], classifier=True).get_n_splits()
    if isinstance(cv, Real) and not isinstance(cv, Integral):
        # A confidence is about rows that were drawn one by one.
        groups = np.arange(len(used)) if once else _groups(X, used, len(labels))
        parts, few, rule = _hold_out(float(cv), groups, labels[used], seed)
    else:
        splitter = check_cv(5 if cv is None else cv, y[used], classifier=True)
        if once or splitter is cv or not isinstance(splitter, StratifiedKFold):
            return _given(islice(splitter.split(X, y, **params), 1 if once else None), labels)
        # Rows may come in an order; folds of neighbours would be predicted as no new row is.
        groups = _groups(X, used, len(labels))
        parts, few, rule = _dealt_out(splitter.n_splits, groups, labels[used], seed)
    return [(used[train], used[test]) for train, test in parts], few, rule


def _groups(X: Any, rows: Indices, n_rows: int) -> Indices:
    return equal_rows(X if len(rows) == n_rows else _safe_indexing(X, rows))


def _given(splits: Iterable[tuple[Any, Any]], labels: Indices) -> tuple[Parts, Mask, str]:
    """Splits of a splitter, which may test some rows never, but none twice."""
    n_rows = len(labels)
    with warnings.catch_warnings():
        # Classes of few rows are refused or kept below, with a sentence of our own.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        parts = [(_rows_of(train, n_rows), _rows_of(test, n_rows)) for train, test in splits]
    if not parts:
        raise InvalidInputError("cv must give at least one split, got none.")
    for place, part in enumerate(parts):
        if len(both := np.intersect1d(*part)):
            raise InvalidInputError(
                f"cv must test no row that is trained on, got row {int(both[0])} in both parts of "
                f"split {place}: the model would be evaluated on rows that it has seen."
            )
    times = np.bincount(np.concatenate([test for _, test in parts]), minlength=len(labels))
    if np.any(times > 1):
        raise InvalidInputError(
            f"cv must test no row twice, got row {int(np.argmax(times > 1))} in "
            f"{int(times.max())} test parts: repeated rows would count as new ones. Use a splitter "
            "without repeats, such as StratifiedKFold."
        )
    parts = _used(parts, labels)
    k = labels.max() + 1
    trained, tested = (
        np.array([np.bincount(labels[part], minlength=k) for part in side])
        for side in zip(*parts, strict=True)
    )
    # Rows of fewer parts are dealt out to folds.
    times = tested.sum(axis=0) if len(parts) < FOLDS_OF_A_CLASS else (tested > 0).sum(axis=0)
    rule = (
        f"rows of every class in all training parts of cv and in {FOLDS_OF_A_CLASS} of its test "
        f"parts (or {FOLDS_OF_A_CLASS} rows in fewer parts)"
    )
    return parts, np.any(trained == 0, axis=0) | (times < FOLDS_OF_A_CLASS), rule


def _rows_of(given: Any, n_rows: int) -> Indices:
    """Rows of a split as numbers, which may be given as a mask."""
    found = np.asarray(given)
    if found.dtype == bool and len(found) == n_rows:
        return np.flatnonzero(found)
    outside = found[(found < 0) | (found >= n_rows)] if found.dtype.kind in "iu" else found[:1]
    if found.ndim != 1 or len(outside):
        raise InvalidInputError(
            f"cv must give numbers of rows from 0 to {n_rows - 1}, or a mask of {n_rows} rows, got "
            f"{(outside.tolist() or [found.tolist()])[0]!r}."
        )
    return found.astype(np.intp)


def _used(parts: Parts, labels: Indices) -> Parts:
    """The same splits without the rows whose label is -1."""
    return [(train[labels[train] >= 0], test[labels[test] >= 0]) for train, test in parts]


def _dealt_out(
    n_folds: int, groups: Indices, labels: Indices, seed: int
) -> tuple[Parts, Mask, str]:
    """Folds in which equal rows stay together; classes of few rows are for training alone."""
    needed = max(FOLDS_OF_A_CLASS, n_folds)
    few, rule = np.bincount(labels) < needed, f"at least {needed} rows of every class"
    if np.count_nonzero(~few) < 2:
        return [], few, rule
    fold = dealt_folds(groups, labels, n_folds, seed, few)
    parts = [
        (np.flatnonzero(fold != each), np.flatnonzero(fold == each)) for each in range(n_folds)
    ]
    return parts, few, rule


def dealt_folds(groups: Indices, labels: Indices, n_folds: int, seed: int, few: Mask) -> Indices:
    """The fold of every row: groups of equal rows dealt out at random, class by class.

    Rows of classes that have ``few`` only train.

    Examples
    --------
    >>> groups, labels = np.array([0, 1, 0, 2, 3, 4]), np.array([0, 0, 0, 0, 1, 1])
    >>> folds = dealt_folds(groups, labels, 2, 0, np.array([False, False]))
    >>> bool(folds[0] == folds[2])
    True
    """
    groups = _apart(groups, labels, max(FOLDS_OF_A_CLASS, n_folds))
    owner = _owners(groups, labels)
    fold = np.full(len(owner), TRAINS_ONLY, dtype=np.intp)
    own = np.flatnonzero(~few[owner])
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for place, (_, test) in enumerate(splitter.split(own, owner[own])):
        fold[own[test]] = place
    return fold[groups]


def _hold_out(share: float, groups: Indices, labels: Indices, seed: int) -> tuple[Parts, Mask, str]:
    """One split, stratified, of groups; classes of few rows are for training alone."""
    if not 0 < share < 1:
        raise InvalidParameterError(
            f"cv, as a share of rows to hold out, must be in (0, 1), got {share!r}; for folds give "
            "an integer."
        )
    counts = np.bincount(labels)
    few = (np.floor(share * counts) < FOLDS_OF_A_CLASS) | (np.ceil(share * counts) >= counts)
    rule = f"at least {int(np.ceil(FOLDS_OF_A_CLASS / share))} rows of every class"
    if np.count_nonzero(~few) < 2:
        return [], few, rule
    groups = _apart(groups, labels, int(np.ceil(FOLDS_OF_A_CLASS / share)))
    aside = set_aside(groups, labels, share, seed) & ~few[labels]
    return [(np.flatnonzero(~aside), np.flatnonzero(aside))], few, rule


def refuse_few(
    few: Mask, rule: str, counts: Indices, classes: NDArray[Any], rare_classes: str | None,
    min_rows: int = 1,
) -> Mask:  # fmt: skip
    """Refuse classes that are too rare to be tuned, or find those to be kept or dropped.

    Where fewer than two classes have ``min_rows``, classes that are kept need no so many.
    ``rare_classes`` is None where nobody was asked.
    """
    if rare_classes == "keep" and np.count_nonzero((counts >= min_rows) & ~few) < 2:
        min_rows = 1
    if np.any((counts < min_rows) & ~few):
        few, rule = few | (counts < min_rows), f"at least {min_rows} rows of every class"
    enough = np.count_nonzero(~few) >= 2
    if not np.any(few) or (rare_classes not in ("error", None) and enough):
        return few
    named = ", ".join(f"{classes.tolist()[i]!r} ({counts[i]} rows)" for i in np.flatnonzero(few))
    remedy = (
        "Collect more rows, merge it with another class, use fewer folds (cv), or set "
        "rare_classes='drop' (without its rows) or 'keep' (its weight is not tuned; no confidence)."
        if enough
        else "Fewer than two classes are left; collect more rows, use fewer folds (cv), or give "
        "known weights."
    )
    what = "decision weights need"
    if rare_classes is None:
        what, remedy = "folds need", "Collect more rows, merge classes, or use fewer folds (cv)."
    raise InvalidInputError(f"Too few rows of class {named}: {what} {rule}. {remedy}")


def _fold_of(parts: Parts, labels: Indices, seed: int) -> Indices:
    """Fold of every held-out row; rows of fewer than three splits are dealt out to folds."""
    if len(parts) < FOLDS_OF_A_CLASS:
        return deal(labels, seed)
    return np.repeat(np.arange(len(parts)), [len(test) for _, test in parts])


def deal(labels: Indices, seed: int) -> Indices:
    """Rows dealt out to folds at random, class after class, so that each fold has its share."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = np.empty(len(labels), dtype=np.intp)
    folds[order] = np.arange(len(labels)) % FOLDS
    return folds


# Groups of rows that stay together


def _owners(groups: Indices, labels: Indices) -> Indices:
    """The class of every group: the rarest of those of its rows."""
    counts = np.bincount(labels)
    rarest_last = np.argsort(-counts[labels], kind="stable")
    owners = np.zeros(groups.max() + 1, dtype=np.intp)
    owners[groups[rarest_last]] = labels[rarest_last]
    return owners


def _apart(groups: Indices, labels: Indices, needed: int) -> Indices:
    """The groups, with every row of a class of fewer groups than needed on its own."""
    distinct = np.bincount(_owners(groups, labels), minlength=labels.max() + 1)
    alone = (distinct < needed)[labels]
    own = groups.max() + 1 + np.arange(len(labels))
    return np.unique(np.where(alone, own, groups), return_inverse=True)[1]


def set_aside(groups: Indices, labels: Indices, share: float, seed: int) -> Mask:
    """Rows to evaluate on: about a share of every class, in groups at random.

    A group larger than that share trains. Of several groups at least one is held out.

    Examples
    --------
    >>> int(set_aside(np.arange(10), np.array([0, 1] * 5), 0.4, seed=0).sum())
    4
    """
    owner, size, rng = _owners(groups, labels), np.bincount(groups), np.random.default_rng(seed)
    aside = np.zeros(len(owner), dtype=bool)
    for label in range(int(labels.max()) + 1):
        own = rng.permutation(np.flatnonzero(owner == label))
        wanted = max(round(share * size[own].sum()), 1)
        fitting = own[size[own] <= wanted]
        if share > 0 and len(own) > 1:
            aside[fitting[np.cumsum(size[fitting]) <= wanted]] = True
    left = np.bincount(labels[~aside[groups]], minlength=int(labels.max()) + 1)
    # A class all of whose rows repeat rows of others may have lost every one of them.
    aside[groups[left[labels] == 0]] = False
    return np.asarray(aside[groups])
