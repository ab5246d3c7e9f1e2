"""Classifiers around others on out-of-core data: a sample is fitted to, all other rows are counted.

One pass looks at everything, one draws rows of every class to train on and others to tune on, and
one counts what is predicted for all rows that were not trained on. Which rows of a block are drawn
follows from its position, so that none of them is counted and no list of them is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial, reduce
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.blocks.base import Block, Blocks, Stream
from equipoise.blocks.memory import check_memory
from equipoise.decisions import Evaluated, Task, Training, Tuned, TunedWeights
from equipoise.decisions.classifiers import takes_gaps
from equipoise.decisions.folds import FOLDS, FOLDS_OF_A_CLASS
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.trained import class_probabilities, weight_argument
from equipoise.decisions.tuned_weights import reported
from equipoise.exceptions import InvalidParameterError
from equipoise.extras import require
from equipoise.goals import as_goal, decide
from equipoise.objectives.rows import BLOCK_SHARE, LARGEST_BLOCK
from equipoise.objectives.sampling import evenly, spread
from equipoise.objectives.survey import Survey, frame_or_matrix, look_at, survey
from equipoise.validation.labels import known_labels
from equipoise.validation.numbers import check_count, check_number, check_seed

# SAMPLE_SHARE: memory per memory of the sample, since estimators copy it; MOST_ROWS: largest number
# of rows of a sample: a tenth of them know a recall to 0.4 points, and forests take minutes.
SAMPLE_SHARE, MOST_ROWS = 8, 200_000


class Use(IntEnum):
    """What a row of out-of-core data is for."""

    NOTHING = -1
    TRAINING = 0
    TUNING = 1
    COUNTING = 2


@dataclass(frozen=True, eq=False)
class FittedDecisions:
    """A fitted model and its decision rule, how it was evaluated, and what is reported of it.

    ``attributes`` are further ones of the fitted classifier, such as the level that was chosen.
    Further rows are evaluated by the rules that were ``decided`` for a task.
    """

    model: Any
    training: Training
    tuned: TunedWeights
    attributes: dict[str, Any]
    decided: tuple[Task, Tuned] | None = None
    evaluated: Evaluated | None = None


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
    """Random rows of every block to train on and to tune on, a number of each class."""

    known: Survey
    places: Indices  # of the classes of the rows among those of the classifier
    wanted: Indices  # of shape (2, n_blocks, n_classes)
    seed: int

    def rows(self, place: int, block: Block, *, drawn: bool) -> SomeRows | None:
        """The rows that are drawn, or those that are not; None where there are none."""
        again = self.known.again(place, block, frame_or_matrix)
        if again is None:
            return None
        X, labels, weights = again
        use = np.where(weights > 0, Use.COUNTING, Use.NOTHING)
        random = np.random.default_rng([self.seed, place])
        for label in np.flatnonzero(self.wanted[:, place].any(axis=0)):
            train, tune = self.wanted[:, place, label]
            shuffled = random.permutation(np.flatnonzero((labels == label) & (weights > 0)))
            use[shuffled[:train]], use[shuffled[train : train + tune]] = Use.TRAINING, Use.TUNING
        some = (use != Use.NOTHING) & ((use != Use.COUNTING) == drawn)
        block_rows = SomeRows(X, self.places[labels], weights, use)
        return block_rows.taken(some) if some.any() else None

    def sample(self, stream: Stream) -> SomeRows:
        """All rows that are drawn: one pass."""
        by_block = stream.map(partial(self.rows, drawn=True))
        parts = zip(*(part for part in by_block if part is not None), strict=True)
        return SomeRows(*map(_stacked, parts))


def _stacked(parts: tuple[Any, ...]) -> Any:
    if hasattr(parts[0], "iloc"):
        return require("pandas", extra="cli").concat(parts, ignore_index=True)
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


class CountedRows(NamedTuple):
    """Rows that are predicted alike, counted.

    ``lines`` are class indices: true, as a rule predicts, and the most probable; ``sums`` are how
    many rows have them, their weight, and the squares of that, each of shape (3, n_counted).
    """

    lines: Indices
    sums: Matrix

    def merged(self) -> CountedRows:
        """The same rows, those that are alike as one."""
        lines, index = np.unique(self.lines, axis=1, return_inverse=True)
        return CountedRows(lines, np.array([np.bincount(index.ravel(), s) for s in self.sums]))

    def and_also(self, other: CountedRows) -> CountedRows:
        """These and others."""
        pairs = zip(self, other, strict=True)
        return CountedRows(*(np.concatenate(pair, axis=1) for pair in pairs)).merged()


def count_others(
    fitted: FittedDecisions, rule: Vector | Matrix, sample: Sample, stream: Stream
) -> CountedRows:
    """The rows that were not drawn, by class and what is predicted: one pass."""
    # What workers of a cluster are sent: not the sample.
    drawn, classes, model = sample.drawn, sample.classes, fitted.model
    factors = fitted.training.factors_for(model)

    def counted(place: int, block: Block) -> CountedRows | None:
        rows = drawn.rows(place, block, drawn=False)
        if rows is None:
            return None
        table = rescaled(class_probabilities(model, rows.X, classes), factors)
        lines = [rows.labels, decide(table, rule), np.argmax(table, axis=1)]
        sums = [np.ones(len(rows.labels)), rows.weights, rows.weights**2]
        return CountedRows(np.array(lines), np.array(sums)).merged()

    blocks = stream.map(counted)
    return reduce(CountedRows.and_also, (each for each in blocks if each is not None))


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
        train, tune = (np.flatnonzero(self.rows.use == use) for use in (Use.TRAINING, Use.TUNING))
        return train, tune

    def weights(self) -> Vector:
        """Weights under which classes have the shares of all rows, among both parts."""
        labels, weights = self.rows.labels, self.rows.weights.copy()
        for part in self.parts:
            drawn = np.bincount(labels[part], weights[part], minlength=len(self.classes))
            scale = self.totals / np.where(drawn > 0, drawn, 1.0) * (len(part) / self.totals.sum())
            weights[part] *= scale[labels[part]]
        return weights

    def least_rows(self, min_rows: int) -> int:
        """Rows of the sample that classes have of which there are ``min_rows`` in all."""
        drawn = np.bincount(self.rows.labels, minlength=len(self.classes))
        return int(min([min_rows, *drawn[self.counts >= min_rows]]))


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


def evaluated_on_all(
    fitted: FittedDecisions, sample: Sample, stream: Stream, class_prior: Any
) -> FittedDecisions:
    """The same decisions, evaluated on all rows that were not trained on: one more pass."""
    assert fitted.decided is not None
    task, rules = fitted.decided
    rows, classes, few = sample.rows, sample.classes, task.few
    shares = sample.totals / sample.totals.sum()
    prior = shares if class_prior is None else fitted.training.prior
    training = replace(fitted.training, shares=shares, prior=prior)
    fitted, task = replace(fitted, training=training), replace(task, prior=prior)
    others = count_others(fitted, rules.rule, sample, stream)
    evaluated = _evaluated(task, rules, fitted.evaluated, sample, others)
    if not len(rules.by_fold):
        rules = replace(rules, by_fold=rules.rule[None])
    tuned = reported(task, rules, evaluated, fitted.tuned.n_candidates)
    trained, tuned_on = (
        np.bincount(rows.labels[part], minlength=len(classes)) for part in sample.parts
    )
    seen = [trained * ~(few & task.drop), tuned_on * ~few, evaluated.sums[:, 0].sum(axis=0)]
    tuned = replace(tuned, seen=np.array(seen, dtype=np.intp))
    attributes = fitted.attributes | {"n_passes_": stream.n_passes}
    return replace(fitted, tuned=tuned, attributes=attributes)


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
    tunes = classifier.evaluates_known or not as_goal(classifier.goal).is_known
    if classifier._is_fitted_before():
        train, tune = 0 * by_class, evenly(by_class, n_rows)
    else:
        # As in memory, a class with too few rows only trains.
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
        return 1 / check_count(FOLDS if cv is None else cv, "cv", least=2)
    if not isinstance(cv, Real):
        raise InvalidParameterError(
            "cv must be a number of folds, or the share of rows to hold out, where rows come in "
            f"blocks, got {cv!r}: splitters number rows in memory."
        )
    return check_number(cv, "cv", "(0, 1)")


def _evaluated(
    task: Task, rules: Tuned, tuned_on: Evaluated | None, sample: Sample, others: CountedRows
) -> Evaluated:
    """All rows that were not trained on.

    Rows that were tuned on are predicted by the rules that were tuned without their fold, and count
    with the weights that they have among all rows.
    """
    (labels, predicted, default), (times, weights, squares) = others.lines, others.sums
    evaluated = Evaluated(
        labels, predicted, predicted, np.zeros(len(labels), dtype=np.intp), weights,
        task.few, task.prior, None if task.goal.is_known else 0.0, default,
        times.astype(np.intp), squares,
    )  # fmt: skip
    if tuned_on is None or not len(rules.by_fold):
        return evaluated
    rows, k = sample.rows, len(task.prior)
    part = rows.use == Use.TUNING
    totals = np.bincount(rows.labels[part], rows.weights[part], minlength=k)
    made_up = np.bincount(tuned_on.labels, tuned_on.weights, minlength=k)
    factors = np.divide(totals, made_up, out=np.ones(k), where=made_up > 0)
    weights = tuned_on.weights * factors[tuned_on.labels]
    return evaluated.and_also(replace(tuned_on, weights=weights, fold=tuned_on.fold + 1))
