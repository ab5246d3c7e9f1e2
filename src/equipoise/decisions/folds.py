"""Which rows are held out when: folds, or a share of the rows.

Every class is spread evenly. Rows with equal features stay together, or a model would be evaluated
on rows that it has seen; splits given by the user are taken as they are.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import _safe_indexing

from equipoise.arrays import Indices, Mask, NDArray, Vector
from equipoise.decisions.equal_rows import equal_rows
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.text import in_words
from equipoise.weights.priors import check_prior

# FOLDS_OF_A_CLASS: folds in which a class must have rows: weights are tuned without one of them,
# and the others should hold more than a single row.
FOLDS_OF_A_CLASS = 3
# FOLDS: default number of folds, scikit-learn's default.
FOLDS = 5

# Training rows and held-out rows of every split.
Parts = list[tuple[Indices, Indices]]


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows to train and to evaluate on.

    ``y`` are class names, ``labels`` class indices, -1 for a row that is not used; ``weights`` are
    the row weights, and ``params`` the arguments of ``fit``, some with an entry per row.
    """

    X: Any
    y: NDArray[Any]
    labels: Indices
    classes: NDArray[Any]
    weights: Vector
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def used(self) -> Indices:
        """Positions of the rows that are used."""
        return np.flatnonzero(self.labels >= 0)

    def prior(self, class_prior: Any = None) -> Vector:
        """Class frequencies of the population: those given, or those of the rows."""
        if class_prior is not None:
            return check_prior(class_prior, self.classes, name="class_prior")
        totals = np.bincount(self.labels[self.used], self.weights[self.used], len(self.classes))
        return np.asarray(totals / totals.sum())

    def without(self, few: Mask) -> "LabelledRows":
        """The same rows, those of some classes unused."""
        return replace(self, labels=np.where(few[self.labels], -1, self.labels))

    def features(self, rows: Indices) -> Any:
        """Features of some rows, in order; of all rows without a copy."""
        whole = len(rows) == len(self.y) and np.array_equal(rows, np.arange(len(rows)))
        return self.X if whole else _safe_indexing(self.X, rows)


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
        """Held-out rows per training row."""
        trained = np.mean([len(train) for train, _ in self.parts])
        return float(len(self.rows) / trained)


@dataclass(frozen=True)
class RareClasses:
    """What to do with classes that have too few rows.

    ``action`` is ``"error"``, ``"keep"`` (for training alone) or ``"drop"``, and None where the
    user has no choice. A class of fewer than ``min_rows`` rows has too few. ``of_sets`` says that
    the folds are to calibrate sets of labels, not to tune weights.
    """

    action: str | None = None
    min_rows: int = 1
    of_sets: bool = False

    def among(self, few: Mask, needed: str, counts: Indices, classes: NDArray[Any]) -> Mask:
        """Classes with too few rows: refused, or those to be kept or dropped.

        Where fewer than two classes have ``min_rows``, ``"keep"`` ignores that number.
        """
        least = self.min_rows
        if self.action == "keep" and np.count_nonzero((counts >= least) & ~few) < 2:
            least = 1
        if np.any((counts < least) & ~few):
            few, needed = few | (counts < least), f"at least {least} rows of every class"
        enough = np.count_nonzero(~few) >= 2
        if not np.any(few) or (self.action in ("keep", "drop") and enough):
            return few
        rare = np.flatnonzero(few)
        named = in_words(
            f"{name!r} ({count} {'row' if count == 1 else 'rows'})"
            for name, count in zip(classes[rare].tolist(), counts[rare].tolist(), strict=True)
        )
        what, remedy = (
            "decision weights need",
            (
                "Fewer than two classes are left; collect more rows, use fewer folds (cv), or give "
                "known weights."
            ),
        )
        if self.action is None or self.of_sets:
            what = "folds need"
            remedy = "Collect more rows, merge classes, or use fewer folds (cv)."
        elif enough:
            remedy = (
                "Collect more rows, merge it with another class, use fewer folds (cv), or set "
                "rare_classes='drop' (without its rows) or 'keep' (its weight is not tuned; not "
                "for floors with a confidence)."
            )
        raise InvalidInputError(f"Too few rows of class {named}: {what} {needed}. {remedy}")


@dataclass(frozen=True)
class Splitting:
    """How rows are split: ``cv`` as in the estimators, arguments of a splitter, and a seed.

    If ``once``, a number of folds holds out the share of one, and a splitter gives its first split.
    """

    cv: Any = FOLDS
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    once: bool = False
    rare: RareClasses = RareClasses()


def split(rows: LabelledRows, how: Splitting) -> Folds:
    """The folds, with classes that have too few rows refused, kept for training, or dropped.

    No row is tested twice, and none that is unused.
    """
    parts, few, needed = _parts(rows, how)
    counts = np.bincount(rows.labels[rows.used], minlength=len(rows.classes))
    few = how.rare.among(few, needed, counts, rows.classes)
    if how.rare.action == "drop":
        rows = rows.without(few)
        parts = _used(parts, rows.labels)
    labels = rows.labels[np.concatenate([test for _, test in parts])]
    fold = np.repeat(np.arange(len(parts)), [len(test) for _, test in parts])
    return Folds(parts, few, deal(labels, how.seed) if len(parts) < FOLDS_OF_A_CLASS else fold)


def _parts(rows: LabelledRows, how: Splitting) -> tuple[Parts, Mask, str]:
    """The splits, the classes that have too few rows, and how many rows they need, in words."""
    cv = FOLDS if how.cv is None else how.cv
    if isinstance(cv, str):
        fitted = "" if cv == "prefit" else ', or "prefit" where an estimator is given'
        raise InvalidParameterError(
            "cv must be a number of folds, a share of rows to hold out, a splitter or an iterable "
            f"of splits{fitted}, got {cv!r}."
        )
    if isinstance(cv, Integral) and (isinstance(cv, bool) or cv < 2):
        raise InvalidParameterError(
            f"cv must be at least 2 folds, got {cv!r}; to hold out a share of the rows once, give "
            "a float, such as cv=0.2."
        )
    used = rows.used
    labels = rows.labels[used]
    if how.once and isinstance(cv, Integral):
        cv = 1 / check_cv(cv, rows.y[used], classifier=True).get_n_splits()
    if isinstance(cv, Real) and not isinstance(cv, Integral):
        # A confidence is about rows that were drawn one by one.
        groups = np.arange(len(used)) if how.once else equal_rows(rows.features(used))
        parts, few, needed = _hold_out(float(cv), groups, labels, how.seed)
    else:
        splitter = check_cv(cv, rows.y[used], classifier=True)
        if how.once or splitter is cv or not isinstance(splitter, StratifiedKFold):
            splits = splitter.split(rows.X, rows.y, **how.params)
            return _given(islice(splits, 1 if how.once else None), rows.labels)
        n_folds = splitter.n_splits
        least = max(FOLDS_OF_A_CLASS, n_folds)
        parts, few = [], np.bincount(labels) < least
        needed = f"at least {least} rows of every class"
        if np.count_nonzero(~few) >= 2:
            fold = dealt_folds(equal_rows(rows.features(used)), labels, n_folds, how.seed, few)
            numbers = range(n_folds)
            parts = [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in numbers]
    return [(used[train], used[test]) for train, test in parts], few, needed


def _given(splits: Iterable[tuple[Any, Any]], labels: Indices) -> tuple[Parts, Mask, str]:
    """Splits of a splitter, which may leave out rows, but test none twice."""
    n_rows = len(labels)
    with warnings.catch_warnings():
        # Small classes are refused or kept below, with a message of our own.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        parts = [(_rows_of(train, n_rows), _rows_of(test, n_rows)) for train, test in splits]
    if not parts:
        raise InvalidInputError("cv must give at least one split, got none.")
    for index, part in enumerate(parts):
        if len(both := np.intersect1d(*part)):
            raise InvalidInputError(
                f"cv must test no row that is trained on, got row {int(both[0])} in both parts of "
                f"split {index}: the model would be evaluated on rows that it has seen."
            )
    times = np.bincount(np.concatenate([test for _, test in parts]), minlength=n_rows)
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
    needed = (
        f"rows of every class in all training parts of cv and in {FOLDS_OF_A_CLASS} of its test "
        f"parts (or {FOLDS_OF_A_CLASS} rows in fewer parts)"
    )
    return parts, np.any(trained == 0, axis=0) | (times < FOLDS_OF_A_CLASS), needed


def _rows_of(part: Any, n_rows: int) -> Indices:
    """Rows of a split as numbers, from numbers or a mask."""
    numbers = np.asarray(part)
    if numbers.dtype == bool and len(numbers) == n_rows:
        return np.flatnonzero(numbers)
    whole = numbers.dtype.kind in "iu"
    outside = numbers[(numbers < 0) | (numbers >= n_rows)] if whole else numbers[:1]
    if numbers.ndim != 1 or len(outside):
        raise InvalidInputError(
            f"cv must give numbers of rows from 0 to {n_rows - 1}, or a mask of {n_rows} rows, got "
            f"{(outside.tolist() or [numbers.tolist()])[0]!r}."
        )
    return numbers.astype(np.intp)


def _used(parts: Parts, labels: Indices) -> Parts:
    """The same splits without the rows whose label is -1."""
    return [(train[labels[train] >= 0], test[labels[test] >= 0]) for train, test in parts]


def _hold_out(share: float, groups: Indices, labels: Indices, seed: int) -> tuple[Parts, Mask, str]:
    """One stratified split of groups; classes with too few rows only train."""
    if not 0 < share < 1:
        raise InvalidParameterError(
            f"cv, as a share of rows to hold out, must be in (0, 1), got {share!r}; for folds give "
            "an integer."
        )
    counts, least = np.bincount(labels), int(np.ceil(FOLDS_OF_A_CLASS / share))
    few = (np.floor(share * counts) < FOLDS_OF_A_CLASS) | (np.ceil(share * counts) >= counts)
    parts = []
    if np.count_nonzero(~few) >= 2:
        aside = set_aside(_apart(groups, labels, least), labels, share, seed) & ~few[labels]
        parts = [(np.flatnonzero(~aside), np.flatnonzero(aside))]
    return parts, few, f"at least {least} rows of every class"


def deal(labels: Indices, seed: int) -> Indices:
    """Rows dealt out to folds at random, class after class, so that each fold has its share."""
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = np.empty(len(labels), dtype=np.intp)
    folds[order] = np.arange(len(labels)) % FOLDS
    return folds


# Groups of rows that stay together


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
    fold = np.full(len(owner), -1, dtype=np.intp)  # of rows that only train
    dealt = np.flatnonzero(~few[owner])
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    parts = splitter.split(dealt, owner[dealt]) if len(dealt) else ()
    for index, (_, test) in enumerate(parts):
        fold[dealt[test]] = index
    return fold[groups]


def _owners(groups: Indices, labels: Indices) -> Indices:
    """The class of every group: the rarest of those of its rows."""
    rarest_last = np.argsort(-np.bincount(labels)[labels], kind="stable")
    owners = np.zeros(groups.max() + 1, dtype=np.intp)
    owners[groups[rarest_last]] = labels[rarest_last]
    return owners


def _apart(groups: Indices, labels: Indices, needed: int) -> Indices:
    """The groups, with every row of a class of fewer groups than needed in a group of its own."""
    distinct = np.bincount(_owners(groups, labels), minlength=labels.max() + 1)
    alone = groups.max() + 1 + np.arange(len(labels))
    return np.unique(np.where((distinct < needed)[labels], alone, groups), return_inverse=True)[1]


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
        of_class = rng.permutation(np.flatnonzero(owner == label))
        wanted = max(round(share * size[of_class].sum()), 1)
        fitting = of_class[size[of_class] <= wanted]
        if share > 0 and len(of_class) > 1:
            aside[fitting[np.cumsum(size[fitting]) <= wanted]] = True
    left = np.bincount(labels[~aside[groups]], minlength=int(labels.max()) + 1)
    # A class all of whose rows repeat rows of others may have lost every one of them.
    aside[groups[left[labels] == 0]] = False
    return np.asarray(aside[groups])
