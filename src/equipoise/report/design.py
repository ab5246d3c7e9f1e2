"""Which rows are held out when: folds, a part of a large table, groups that stay together, time."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, TimeSeriesSplit

from equipoise.arrays import Indices, Mask
from equipoise.decisions import Folds, HeldOut, LabelledRows, RareClasses, Splitting, split
from equipoise.decisions.folds import FOLDS, deal
from equipoise.decisions.summary import FEW_ROWS
from equipoise.decisions.tuned_weights import few_classes
from equipoise.exceptions import InvalidInputError
from equipoise.goals import Predictions, as_goal
from equipoise.tables import LabelledTable, folds_for
from equipoise.tables.features import HELD_OUT

Kind = Literal["folds", "hold-out", "unseen", "groups", "time", "sample"]


@dataclass(frozen=True, eq=False)
class Design:
    """The rows of a table, and how each is held out.

    ``X`` are the features that models get, ``folds`` the splits, ``cv`` and ``cv_code`` what a
    classifier is given for the same splits, as a value and as Python. ``clusters`` are groups of
    rows that belong together; ``trainable`` are training rows of the largest fold before sampling.
    """

    table: LabelledTable
    X: Any
    folds: Folds
    kind: Kind
    cv: Any
    cv_code: str
    clusters: Indices | None = None
    trainable: int = 0
    imports: tuple[str, ...] = field(default=())

    @cached_property
    def tested(self) -> Indices:
        """Held-out rows of each class."""
        return self.table.counts_at(self.folds.rows)

    @property
    def evaluated(self) -> Mask:
        """Classes that have held-out rows."""
        return self.tested > 0

    @property
    def counts(self) -> Mask:
        """Classes with rows enough to count; all that are evaluated where fewer than two have."""
        enough = self.tested >= FEW_ROWS
        return enough if np.count_nonzero(enough) >= 2 else self.evaluated

    @cached_property
    def sampled(self) -> int:
        """Training rows of the largest fold where these are a sample, otherwise 0."""
        largest = max(len(train) for train, _ in self.folds.parts)
        return largest if largest < self.trainable else 0

    @property
    def n_repeated(self) -> int:
        """Rows that repeat the features of an earlier one."""
        return len(self.table.labels) - int(self.table.groups.max()) - 1


def design_for(
    table: LabelledTable,
    X: Any,
    cv: float,
    seed: int,
    *,
    most_rows: int,
    groups: Any = None,
    in_time: bool = False,
) -> Design:
    """Folds for a table; one part is held out of a large one where nothing else is asked for.

    Rows with equal ``groups`` are in one fold; rows in time order train on what came before.
    """
    large = isinstance(folds_for(len(table.labels), len(table.classes)), float)
    kind: Kind = "folds" if isinstance(cv, int) and not (large and cv == FOLDS) else "hold-out"
    clusters, imports, params = None, tuple[str, ...](), dict[str, Any]()
    splitter: Any = HELD_OUT if kind == "hold-out" and isinstance(cv, int) else cv
    code = repr(splitter)
    if groups is not None or in_time:
        once = kind == "hold-out"
        n_splits = round(1 / HELD_OUT) if once else int(cv)
        kind = "time" if in_time else "groups"
        if in_time:
            splitter = TimeSeriesSplit(n_splits - once)
        else:
            clusters = np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1]
            params = {"groups": clusters}
            splitter = StratifiedGroupKFold(n_splits, shuffle=True, random_state=seed)
        code, imports = repr(splitter), (type(splitter).__name__,)
        if once:
            splitter = list(splitter.split(X, table.y, **params))[-1:]
            code = f"list({code}.split(X, y{'' if in_time else ', groups'}))[-1:]"
            params = {}
    rows = rows_of(table, X)
    rare = RareClasses("keep", FEW_ROWS)
    folds = split(rows, Splitting(splitter, seed, params, rare=rare))
    labels = rows.labels
    if np.count_nonzero(np.bincount(labels[folds.rows], minlength=len(table.classes))) < 2:
        raise InvalidInputError("Fewer than two classes have rows that can be held out.")
    largest = max(len(train) for train, _ in folds.parts)
    parts = [
        (stratified_sample(labels, train, most_rows, seed), test) for train, test in folds.parts
    ]
    clusters = None if clusters is None else clusters[folds.rows]
    return Design(
        table, X, replace(folds, parts=parts), kind, splitter, code, clusters, largest, imports
    )


def design_of_unseen(table: LabelledTable, X: Any, seed: int) -> Design:
    """All rows are evaluated, by models that were fitted before and have not seen them."""
    rows, k = np.arange(len(table.labels)), len(table.classes)
    fold, weights = deal(table.labels, seed), rows_of(table, X).weights
    held_out = HeldOut(Predictions(np.ones((len(rows), k)), table.labels, weights), fold)
    rare = RareClasses("keep", FEW_ROWS)
    few = few_classes(held_out, as_goal("f1_macro"), table.classes, rare)
    return Design(table, X, Folds([(rows[:0], rows)], few, fold), "unseen", None, "5")


def design_of_sample(
    table: LabelledTable, X: Any, parts: tuple[Indices, Indices], counts: Indices, seed: int
) -> Design:
    """Out-of-core data: models are fitted to one part of a sample, and tuned on the other.

    ``counts`` are the rows of each class in all data; fewer may have been drawn.
    """
    drawn = np.bincount(table.labels, minlength=len(counts))
    rare = RareClasses("keep", int(min([FEW_ROWS, *drawn[counts >= FEW_ROWS]])))
    folds = split(rows_of(table, X), Splitting([parts], seed, rare=rare))
    return Design(table, X, folds, "sample", HELD_OUT, repr(HELD_OUT), trainable=len(parts[0]))


def stratified_sample(labels: Indices, rows: Indices, size: int, seed: int) -> Indices:
    """At most about ``size`` of the rows, the same share of every class, at least one of each."""
    if len(rows) <= size:
        return rows
    rng = np.random.default_rng(seed)
    by_class = [rows[labels[rows] == label] for label in np.unique(labels[rows])]
    sizes = [int(np.ceil(size / len(rows) * len(class_rows))) for class_rows in by_class]
    parts = [
        rng.choice(class_rows, n, replace=False)
        for class_rows, n in zip(by_class, sizes, strict=True)
    ]
    return np.sort(np.concatenate(parts))


def rows_of(table: LabelledTable, X: Any) -> LabelledRows:
    """The rows of a table with the features that models get; rows without weight are not used."""
    weights = np.ones(len(table.labels)) if table.weights is None else table.weights
    labels = np.where(weights > 0, table.labels, -1)
    return LabelledRows(X, table.y, labels, table.classes, weights)
