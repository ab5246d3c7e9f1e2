"""Classifiers around others on rows in blocks: a sample is fitted to, all other rows are counted.

One pass looks at everything, one draws rows of every class to train on and others to tune on, and
one counts what is decided for all rows that were not trained on. Which rows of a block are drawn
follows from its place, so that none of them is counted and no list of them is kept.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.blocks.base import Answer, AskedOf, Block, Blocks, Stream, in_block
from equipoise.blocks.memory import check_memory
from equipoise.decisions import TunedWeights, decide, left_out
from equipoise.estimators.class_weighted import weight_argument
from equipoise.exceptions import EquipoiseWarning, InvalidInputError, InvalidParameterError
from equipoise.extras import require
from equipoise.goals import Goal, as_goal
from equipoise.objectives.rows import BLOCK_SHARE, LARGEST_BLOCK
from equipoise.objectives.sampling import evenly, spread
from equipoise.objectives.survey import (
    Survey,
    frame_or_matrix,
    look_at,
    survey,
    weights_of_block,
)
from equipoise.sets import LabelCVaR
from equipoise.validation.classifiers import takes_gaps
from equipoise.validation.folds import FOLDS, FOLDS_OF_A_CLASS, deal
from equipoise.validation.labels import as_labels, known_labels
from equipoise.validation.numbers import check_count, check_number, check_seed
from equipoise.weights.by_class import ByClass

# The part of the memory that the sample takes, which estimators copy; more rows are not worth the
# time that most of them take.
SAMPLE_SHARE, MOST_ROWS = 8, 200_000
# What a row is for.
NOTHING, TRAINING, TUNING, COUNTING = -1, 0, 1, 2


# The fitted base estimator, the weights that decide, and other attributes.
Fitted = tuple[Any, TunedWeights, dict[str, Any]]


class SomeRows(NamedTuple):
    """Rows of blocks: features, class indices, weights, and what each is for."""

    X: Any
    labels: Indices
    weights: Vector
    use: Indices

    def taken(self, rows: Mask) -> SomeRows:
        """Some of the rows."""
        return SomeRows(self.X[rows], self.labels[rows], self.weights[rows], self.use[rows])


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Random rows of every block to train on and to tune on, so many of each class."""

    known: Survey
    places: Indices  # of the classes of the rows among those of the classifier
    wanted: Indices  # of shape (2, n_blocks, n_classes)
    seed: int

    def rows(self, place: int, block: Block, *, drawn: bool) -> SomeRows | None:
        """The rows that are drawn, or those that are not; None where there are none."""
        if not self.known.counts[place].any():
            return None
        with in_block(place):
            X, y = frame_or_matrix(block.X), as_labels(block.y, name="y")
            self.known.check(place, X, y)
            labels, weights = known_labels(y, self.known.classes), weights_of_block(block, len(y))
        use = np.where(weights > 0, COUNTING, NOTHING)
        random = np.random.default_rng([self.seed, place])
        for label in np.flatnonzero(self.wanted[:, place].any(axis=0)):
            train, tune = self.wanted[:, place, label]
            own = random.permutation(np.flatnonzero((labels == label) & (weights > 0)))
            use[own[:train]], use[own[train : train + tune]] = TRAINING, TUNING
        some = (use != NOTHING) & ((use != COUNTING) == drawn)
        found = SomeRows(X, self.places[labels], weights, use)
        return found.taken(some) if some.any() else None

    def sample(self, stream: Stream) -> SomeRows:
        """All rows that are drawn: one pass."""
        found = stream.map(partial(self.rows, drawn=True))
        parts = zip(*(part for part in found if part is not None), strict=True)
        return SomeRows(*map(_stacked, parts))


def _stacked(parts: tuple[Any, ...]) -> Any:
    if hasattr(parts[0], "iloc"):
        return require("pandas", extra="cli").concat(parts, ignore_index=True)
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class DecidedRows:
    """What a rule decides for rows: sums over the rows of a class, and how each is decided."""

    model: Any
    rule: Vector | Matrix
    classes: NDArray[Any]

    def __call__(self, rows: SomeRows) -> Answer:
        chances = left_out.class_probabilities(self.model, rows.X, self.classes)
        decided = decide(chances, self.rule)
        return counted(rows, decided, decided, len(self.classes))


def counted(rows: SomeRows, decided: Indices, final: Indices, k: int) -> Answer:
    """Number, weight, weight of errors, squares of weights, and weight of errors by the final rule.

    With them comes a table of weights by true class and decision.
    """
    labels, weights = rows.labels, rows.weights
    wrong, finally_wrong = (weights * (each != labels) for each in (decided, final))
    every = (None, weights, wrong, weights**2, finally_wrong)
    sums = [np.bincount(labels, weights=values, minlength=k) for values in every]
    cells = np.bincount(labels * k + decided, weights=weights, minlength=k * k)
    return np.array(sums, dtype=np.float64), np.asarray(cells, dtype=np.float64).reshape(k, k)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows drawn for a classifier, with weights that make up for it, or all where they are few."""

    drawn: DrawnRows
    rows: SomeRows
    classes: NDArray[Any]
    counts: Indices  # of all rows that weigh something, by class
    totals: Vector  # sums of their weights

    @property
    def is_whole(self) -> bool:
        return len(self.rows.labels) == int(self.counts.sum())

    @property
    def parts(self) -> tuple[Indices, Indices]:
        """The rows to train on, and those to tune on."""
        train, tune = (np.flatnonzero(self.rows.use == use) for use in (TRAINING, TUNING))
        return train, tune

    def weights(self) -> Vector:
        """Weights under which classes have the shares of all rows, among both parts."""
        labels, found = self.rows.labels, self.rows.weights.copy()
        for part in self.parts:
            drawn = np.bincount(labels[part], found[part], minlength=len(self.classes))
            scale = self.totals / np.where(drawn > 0, drawn, 1.0) * (len(part) / self.totals.sum())
            found[part] *= scale[labels[part]]
        return found


def draw_sample(classifier: Any, stream: Stream) -> Sample:
    """Look at all blocks, and draw the rows that a classifier is fitted to: two passes."""
    finite = not takes_gaps(classifier)
    known = survey(stream, partial(look_at, read=frame_or_matrix, finite=finite))
    classes, places = known.classes, np.arange(len(known.classes))
    if classifier._is_fitted_before():
        classes = np.asarray(classifier.estimator.classes_)
        places = known_labels(known.classes, classes, owner="the fitted estimator")
    n_rows, seed = _sample_rows(classifier, known), check_seed(classifier.random_state)
    wanted = np.stack([known.counts, 0 * known.counts])
    if known.n_rows > n_rows:
        wanted = _wanted(classifier, known, n_rows, seed)
    drawn, counts = DrawnRows(known, places, wanted, seed), np.zeros(len(classes), dtype=np.intp)
    totals = np.zeros(len(classes))
    counts[places], totals[places] = known.counts.sum(axis=0), known.totals
    return Sample(drawn, drawn.sample(stream), classes, counts, totals)


def stream_of(blocks: Blocks, memory: int | str) -> Stream:
    """Passes over blocks of a size that memory has room for."""
    n_bytes = check_memory(memory) // BLOCK_SHARE
    return Stream(blocks.of_at_most(min(LARGEST_BLOCK, n_bytes)))


def fit_to_sample(classifier: Any, blocks: Blocks, params: dict[str, Any]) -> Fitted:
    """Fit a classifier around another to blocks."""
    if params:
        raise InvalidInputError(
            f"fit takes no {', '.join(sorted(params))} with rows in blocks: weights come with "
            "them, as (X, y, weights)."
        )
    inner, stream = copy(classifier), stream_of(blocks, classifier.memory)
    seed = inner.random_state = check_seed(classifier.random_state)
    try:
        sample = draw_sample(inner, stream)
        rows, classes = sample.rows, sample.classes
        if sample.is_whole:
            weights = None if np.all(rows.weights == 1) else rows.weights
            whole: Fitted = inner._fitted(rows.X, classes[rows.labels], weights, {})
            return whole
        model, tuned, more = _fitted_to(sample, inner)
        decided = DecidedRows(model, tuned.rule, classes)
        rest = stream.total(AskedOf(partial(sample.drawn.rows, drawn=False), decided))
    finally:
        stream.blocks.close()
    shares = sample.totals / sample.totals.sum()
    if classifier.class_prior is None:
        tuned = replace(tuned, prior=shares)
    if "class_shares_" in more:
        more["class_shares_"] = ByClass(shares, classes)
    goal = as_goal(LabelCVaR(more["alpha_"]) if "alpha_" in more else classifier.goal)
    tuned = _judged(tuned, goal, decided, rows, rest, seed, drop=classifier.rare == "drop")
    return model, tuned, more | {"n_passes_": stream.n_passes}


def _sample_rows(classifier: Any, known: Survey) -> int:
    least = 2 * len(known.classes)
    if classifier.sample_rows is not None:
        return check_count(classifier.sample_rows, "sample_rows", least=least)
    row_bytes = known.row_bytes + 8 * (len(known.classes) + 4)
    n_rows = int(check_memory(classifier.memory) / SAMPLE_SHARE / row_bytes)
    return min(max(n_rows, least), MOST_ROWS)


def _wanted(classifier: Any, known: Survey, n_rows: int, seed: int) -> Indices:
    """How many rows of every block and class train, and how many tune."""
    by_class = known.counts.sum(axis=0)
    tunes = classifier.chooses_training or not as_goal(classifier.goal).is_known
    if classifier._is_fitted_before():
        train, tune = 0 * by_class, evenly(by_class, n_rows)
    else:
        # As in memory, a class of too few rows is for training alone.
        aside = np.floor(_share(classifier.cv) * by_class).astype(np.intp)
        aside[aside < FOLDS_OF_A_CLASS] = 0
        half = n_rows // 2 if tunes else n_rows
        train = evenly(by_class - aside, half)
        if weight_argument(classifier.estimator) is None:
            # Without weights, a sample must have the shares of all rows.
            fair = np.rint(half / by_class.sum() * by_class).astype(np.intp)
            train = np.clip(fair, 1, by_class - aside)
        tune = np.where(aside > 0, evenly(by_class - train, n_rows - half), 0) * tunes
    first = spread(known.counts, train, seed)
    return np.stack([first, spread(known.counts - first, tune, seed + 1)])


def _share(cv: Any) -> float:
    """The share of a class that is not trained on, at least."""
    if cv is None or isinstance(cv, Integral):
        return 1 / check_count(5 if cv is None else cv, "cv", least=2)
    if not isinstance(cv, Real):
        raise InvalidParameterError(
            "cv must be a number of folds, or the share of rows to hold out, where rows come in "
            f"blocks, got {cv!r}: splitters number rows in memory."
        )
    return check_number(cv, "cv", "(0, 1)")


def _fitted_to(sample: Sample, inner: Any) -> Fitted:
    """What a classifier makes of a sample in which classes weigh as they do in all rows."""
    rows, weights, key = sample.rows, sample.weights(), weight_argument(inner.estimator)
    if not inner._is_fitted_before():
        inner.cv, inner.refit = [sample.parts], False
    # What counts is how many there are of a class, not how many are drawn.
    drawn = np.bincount(rows.labels, minlength=len(sample.classes))
    inner.min_rows = int(min([inner.min_rows, *drawn[sample.counts >= inner.min_rows]]))
    params = {key: weights} if key is not None and "__" in key else {}
    with warnings.catch_warnings():
        if key is None and np.all(rows.weights == 1):
            # Then the sample has the shares of all rows.
            warnings.filterwarnings("ignore", ".* does not take sample_weight", EquipoiseWarning)
        found: Fitted = inner._fitted(rows.X, sample.classes[rows.labels], weights, params)
    return found


def _judged(
    tuned: TunedWeights, goal: Goal, decided: DecidedRows, rows: SomeRows, rest: Answer, seed: int,
    *, drop: bool,
) -> TunedWeights:  # fmt: skip
    """The weights, judged on all rows that were not trained on.

    Rows that were tuned on are decided by weights that were tuned without their fold.
    """
    k, few, parts = len(tuned.classes), np.zeros(len(tuned.classes), dtype=bool), [rest]
    if tuned.held_out is not None:
        few = tuned.held_out[:, 0].sum(axis=0) == 0
        own = rows.taken((rows.use == TUNING) & ~(few[rows.labels] & drop))
        parts += _by_folds(own, decided, tuned.fold_weights, seed)
    elif not goal.is_known:
        few = tuned.rule == 0
    sums, tables = (np.array(each) for each in zip(*parts, strict=True))
    sums[:, :, few] = 0.0
    total = sums[:, 1].sum(axis=0)
    sums[:, 3] /= np.where(total > 0, total, 1.0) ** 2
    trained, tuned_on = (
        np.bincount(rows.labels[rows.use == use], minlength=k) for use in (TRAINING, TUNING)
    )
    seen = [trained * ~(few & drop), tuned_on * ~few, sums[:, 0].sum(axis=0)]
    found: dict[str, Any] = {"held_out": sums, "seen": np.array(seen, dtype=np.intp)}
    criterion = goal.resolve_some(tuned.prior, tuned.classes, few)
    table = tables.sum(axis=0)[~few][:, np.argsort(few, kind="stable")]
    if criterion.counted_by is not None:
        table *= (criterion.counted_by / table.sum(axis=1))[:, None]
    value = criterion.of_table(table)
    if criterion.measures is not None and not goal.is_known:
        risk = criterion.measures == "risk"
        found["robust_risk" if risk else "metric_value"] = value if risk else 1 - value
    return replace(tuned, **found)


def _by_folds(
    rows: SomeRows, decided: DecidedRows, fold_weights: Matrix | None, seed: int
) -> list[Answer]:
    """Counts of rows that weights were tuned on, each fold by weights that were tuned without."""
    chances = left_out.class_probabilities(decided.model, rows.X, decided.classes)
    final, folds = decide(chances, decided.rule), deal(rows.labels, seed)
    own = final.copy()
    for fold, line in enumerate(() if fold_weights is None else fold_weights):
        own[folds == fold] = decide(chances[folds == fold], line)
    masks = [folds == fold for fold in range(FOLDS)]
    return [counted(rows.taken(m), own[m], final[m], len(decided.classes)) for m in masks]
