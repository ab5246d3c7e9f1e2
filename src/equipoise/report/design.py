"""What is compared, and which rows are judged by which fits.

Models are made for several ideas of how much the classes matter, and judged in folds in which no
row is judged by a fit that has seen it. Rows with equal features stay together, or a fit would be
judged by what it has seen. Every class is spread evenly over the folds. A class of fewer distinct
rows than folds only trains: it would be missing from some of the fits, and its risk cannot be
estimated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices, Mask, Vector
from equipoise.decisions.left_out import error_sums
from equipoise.estimators.robust_linear import FEW_ROWS
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.goals import as_goal
from equipoise.sets import LabelCVaR, Uncertainty, WorstClass, as_uncertainty, middle_alpha
from equipoise.tables import MODEL_KINDS, LabelledTable, hold_out
from equipoise.text import listing
from equipoise.validation.numbers import check_count

STANDARD, BALANCED, WORST = "standard", "balanced", "worst class"
_ABOUT = {
    STANDARD: "every row counts the same",
    BALANCED: "every class counts the same",
    WORST: "any weights: the class with the largest risk decides",
}

# Above so many rows one part is held out instead of folds, and costly fits take a sample.
MANY_ROWS = 100_000
# Share of the rows of a large table that is held out.
HELD_OUT = 0.2
# Classes of fewer rows are shown but do not decide which candidate is best: one error more or less
# in a handful of rows would.
DECIDING_ROWS = FEW_ROWS

# Rows that no fold judges.
TRAINS_ONLY, TUNES_ONLY = -1, -2
# What decides a fold is tuned on others, by what it does to others again: with fewer folds, the
# tuning makes its own.
FEWEST_FOLDS = 3
# Of more classes, tuning takes its time.
FEW_CLASSES = 10


@dataclass(frozen=True, eq=False)
class Candidate:
    """One kind of model made for one set of weightings."""

    model: str
    weighting: str
    uncertainty: Uncertainty

    @property
    def label(self) -> str:
        """How tables call it."""
        return f"{self.model}, {self.weighting}"

    @property
    def is_known(self) -> bool:
        """Whether it is made for a single weighting, which leaves nothing to tune."""
        return as_goal(self.uncertainty).is_known

    @property
    def about(self) -> str:
        """What the weighting means, in a few words."""
        if self.weighting in _ABOUT:
            return _ABOUT[self.weighting]
        if isinstance(self.uncertainty, LabelCVaR):
            times = f"{1 / self.uncertainty.alpha:.3g}"
            return f"the worst weighting in which no row counts more than {times} times"
        return f"the worst weighting of {self.uncertainty!r}"


def make_weightings(
    uncertainties: Mapping[str, Any] | None, prior: Vector
) -> dict[str, Uncertainty]:
    """The sets of weightings by name; standard is always among them."""
    if uncertainties is None:
        alpha = middle_alpha(prior)
        cvar = {f"CVaR {alpha:g}": LabelCVaR(alpha=alpha)}
        uncertainties = {BALANCED: "balanced", **cvar, WORST: WorstClass()}
    if not isinstance(uncertainties, Mapping) or not uncertainties:
        raise InvalidParameterError(
            "uncertainties must be a dict of at least one uncertainty set by name, got "
            f"{uncertainties!r}."
        )
    given = {str(name): as_uncertainty(value) for name, value in uncertainties.items()}
    return {STANDARD: as_uncertainty("standard")} | given


def make_candidates(
    models: Sequence[str], weightings: Mapping[str, Uncertainty]
) -> tuple[Candidate, ...]:
    """Every model made for every set of weightings, the plainest first."""
    if isinstance(models, str):
        models = (models,)
    if not models or any(model not in MODEL_KINDS for model in models):
        names = " and ".join(map(repr, MODEL_KINDS))
        raise InvalidParameterError(f"models must be some of {names}, got {list(models)!r}.")
    return tuple(
        Candidate(model, name, uncertainty)
        for model in MODEL_KINDS
        if model in models
        for name, uncertainty in weightings.items()
    )


@dataclass(frozen=True, eq=False)
class Design:
    """Which rows are judged in which fold; 1 fold is a hold-out.

    Negative are rows that only train, and rows of a hold-out that decisions are only tuned on.
    """

    table: LabelledTable
    fold: Indices
    n_folds: int

    @classmethod
    def for_table(cls, table: LabelledTable, cv: int, seed: int) -> "Design":
        """Folds for a table, or one part held out where it is large."""
        check_count(cv, "cv", least=2)
        if len(table.labels) > MANY_ROWS:
            design = cls(table, _held_out(table, seed), 1)
        else:
            design = cls(table, _spread(table, cv, seed), cv)
        if np.count_nonzero(design.estimable) < 2:
            raise InvalidInputError(
                f"At least two classes need {cv} different rows or more, to be judged on rows that "
                f"a fit has not seen; the classes have {listing(table.counts.tolist())} rows."
            )
        return design

    @cached_property
    def judged(self) -> Indices:
        """The rows that are judged."""
        return np.flatnonzero(self.fold >= 0)

    @cached_property
    def tuned_on(self) -> Indices:
        """The rows that decisions are tuned on; those of folds serve each other."""
        return np.flatnonzero(self.fold == TUNES_ONLY) if self.n_folds == 1 else self.judged

    @property
    def tuning_folds(self) -> Indices | None:
        """Folds of these rows, unless they are dealt out anew."""
        return self.fold[self.judged] if self.n_folds >= FEWEST_FOLDS else None

    @property
    def can_tune(self) -> bool:
        """Whether two classes or more have rows enough to tune decisions on."""
        counts = np.bincount(self.table.labels[self.tuned_on])
        return bool(np.count_nonzero(counts >= FEWEST_FOLDS) >= 2)

    @property
    def can_tune_levels(self) -> bool:
        """Whether decisions of many levels can be tuned in a short time."""
        return self.can_tune and len(self.table.classes) <= FEW_CLASSES

    @cached_property
    def tested(self) -> Indices:
        """Rows judged of each class."""
        return np.bincount(self.table.labels[self.judged], minlength=len(self.table.classes))

    @cached_property
    def estimable(self) -> Mask:
        """Classes that are judged."""
        return self.tested > 0

    @cached_property
    def deciding(self) -> Mask:
        """Classes with rows enough to decide; all that are judged where fewer than two have."""
        enough = self.tested >= DECIDING_ROWS
        return enough if np.count_nonzero(enough) >= 2 else self.estimable

    @cached_property
    def prior(self) -> Vector:
        """Shares of the classes that decide, among themselves."""
        prior = self.table.prior[self.deciding]
        return np.asarray(prior / prior.sum())

    @property
    def n_repeated(self) -> int:
        """Rows that repeat the features of an earlier one."""
        return len(self.fold) - int(self.table.groups.max()) - 1

    @property
    def refit(self) -> float | None:
        """Rows judged for each row of a training part; None where one fit is judged."""
        return None if self.n_folds == 1 else self.n_folds / (self.n_folds - 1)

    def error_sums(self, predicted: Indices) -> NDArray[np.float64]:
        """What class risks and their intervals are made of, by fold."""
        rows, labels, weights = self.judged, self.table.labels, self.table.weights_at(self.judged)
        return error_sums(
            labels[rows], predicted[rows], self.fold[rows],
            np.ones(len(rows)) if weights is None else weights,
            shape=(self.n_folds, len(self.table.classes)),
        )  # fmt: skip

    def parts(self) -> Iterator[tuple[str, Indices, Indices]]:
        """Name, training rows and rows to predict of every fold."""
        if self.n_folds == 1:
            trains = self.fold == TRAINS_ONLY
            yield "hold-out", np.flatnonzero(trains), np.flatnonzero(~trains)
            return
        for fold in range(self.n_folds):
            name = f"fold {fold + 1} of {self.n_folds}"
            yield name, np.flatnonzero(self.fold != fold), np.flatnonzero(self.fold == fold)


def _held_out(table: LabelledTable, seed: int) -> Indices:
    """The fold of every row of a large table: one part to be judged, one to tune on, the rest."""
    fold = np.full(len(table.labels), TRAINS_ONLY, dtype=np.intp)
    tuning = min(HELD_OUT, MANY_ROWS / len(fold))
    fold[hold_out(table, HELD_OUT + tuning, seed)[1]] = TUNES_ONLY
    fold[hold_out(table, HELD_OUT, seed)[1]] = 0
    # Repeated rows are on one side of both; a class that the two leave no row to train on gets
    # back those that are not judged.
    trained = np.bincount(table.labels[fold == TRAINS_ONLY], minlength=len(table.classes))
    lost = np.isin(table.groups, table.groups[trained[table.labels] == 0])
    fold[lost & (fold == TUNES_ONLY)] = TRAINS_ONLY
    return fold


def _spread(table: LabelledTable, n_folds: int, seed: int) -> Indices:
    """The fold of every row: groups of equal rows dealt out class by class in random order."""
    of_group, size = table.group_labels, np.bincount(table.groups)
    fold = np.full(len(size), TRAINS_ONLY, dtype=np.intp)
    rng = np.random.default_rng(seed)
    for label in range(len(table.classes)):
        own = rng.permutation(np.flatnonzero(of_group == label))
        if len(own) >= n_folds:
            fold[own] = _dealt(size[own], n_folds, rng)
    of_row, k = fold[table.groups], len(table.classes)
    # Every class is in every training part: one that would be missing only trains.
    judged = of_row != TRAINS_ONLY
    cells = of_row[judged] * k + table.labels[judged]
    counts = np.bincount(cells, minlength=n_folds * k).reshape(n_folds, k)
    missing = (counts == table.counts).any(axis=0)
    # Rows of other classes with equal features go with them.
    affected = np.isin(table.groups, table.groups[missing[table.labels]])
    return np.where(affected, TRAINS_ONLY, of_row)


def _dealt(sizes: Indices, n_folds: int, rng: np.random.Generator) -> Indices:
    """Folds of groups of these sizes: the largest first, each to the fold with the fewest rows."""
    fold = np.empty(len(sizes), dtype=np.intp)
    # Ties are broken in a random order, so that the first fold is not always the larger one.
    loads, order = [0] * n_folds, rng.permutation(n_folds).tolist()
    for group in np.argsort(-sizes, kind="stable").tolist():
        fold[group] = lightest = min(order, key=loads.__getitem__)
        loads[lightest] += int(sizes[group])
    return fold
