"""Classifiers around others on out-of-core data: a sample is fitted to, all other rows are counted.

One pass looks at everything, one draws rows of every class to train on and others to tune on, and
one counts what is predicted for all rows that were not trained on. Which rows of a block are drawn
follows from its position, so that none of them is counted and no list of them is kept.
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
from equipoise.blocks.base import Answer, AskedOf, Block, Blocks, Stream
from equipoise.blocks.memory import check_memory
from equipoise.decisions import Evaluated, TunedWeights
from equipoise.decisions.folds import FOLDS_OF_A_CLASS
from equipoise.decisions.held_out import own_scale, rescaled
from equipoise.decisions.trained import class_probabilities, weight_argument
from equipoise.decisions.tuned_weights import predicted_shares
from equipoise.exceptions import EquipoiseWarning, InvalidInputError, InvalidParameterError
from equipoise.extras import require
from equipoise.goals import Goal, as_goal, decide
from equipoise.goals.labelled_predictions import confusion_table
from equipoise.objectives.rows import BLOCK_SHARE, LARGEST_BLOCK
from equipoise.objectives.sampling import evenly, spread
from equipoise.objectives.survey import Survey, frame_or_matrix, look_at, survey
from equipoise.sets import LabelCVaR
from equipoise.validation.classifiers import takes_gaps
from equipoise.validation.labels import known_labels
from equipoise.validation.numbers import check_count, check_number, check_seed

# SAMPLE_SHARE: the sample takes one part in so many of the memory, since estimators copy it;
# MOST_ROWS: rows of a sample at most, as more are not worth the time that most estimators take.
SAMPLE_SHARE, MOST_ROWS = 8, 200_000
# What a row is for.
NOTHING, TRAINING, TUNING, COUNTING = -1, 0, 1, 2


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
class PredictedRows:
    """What a rule predicts for rows, and by default: sums over the rows of a class, and tables.

    ``factors`` put the model's probabilities on the scale that the rule is for.
    """

    model: Any
    rule: Vector | Matrix
    factors: Vector
    classes: NDArray[Any]

    def __call__(self, rows: SomeRows) -> Answer:
        table = class_probabilities(self.model, rows.X, self.classes)
        table = rescaled(table, self.factors)
        k, default = len(self.classes), np.argmax(table, axis=1)
        own, by_default = counted(rows, decide(table, self.rule), k), counted(rows, default, k)
        return *own, by_default[0][:4], by_default[1]


def counted(rows: SomeRows, predicted: Indices, k: int) -> Answer:
    """Number, weight, weight of errors, squares of weights, and again the weight of errors.

    With them comes a table of weights by true and predicted class.
    """
    labels, weights = rows.labels, rows.weights
    wrong = weights * (predicted != labels)
    every = (None, weights, wrong, weights**2, wrong)
    sums = [np.bincount(labels, weights=values, minlength=k) for values in every]
    return np.array(sums, dtype=np.float64), confusion_table(labels, predicted, weights, k)


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


def fit_to_sample(classifier: Any, blocks: Blocks, params: dict[str, Any]) -> Any:
    """Fit a classifier around another to blocks."""
    if params:
        raise InvalidInputError(
            f"fit takes no {', '.join(sorted(params))} with out-of-core data: weights come with "
            "the rows, as (X, y, weights)."
        )
    inner, stream = copy(classifier), stream_of(blocks, classifier.memory)
    inner.random_state = check_seed(classifier.random_state)
    try:
        sample = draw_sample(inner, stream)
        rows, classes = sample.rows, sample.classes
        if sample.is_whole:
            weights = None if np.all(rows.weights == 1) else rows.weights
            return inner.fitted_to(rows.X, classes[rows.labels], weights, {})
        fitted = _fitted_to(sample, inner)
        shares = sample.totals / sample.totals.sum()
        prior = shares if classifier.class_prior is None else fitted.training.prior
        training = replace(fitted.training, shares=shares, prior=prior)
        own = training.class_weights[0] if len(training.class_weights) == 1 else 1.0
        factors = training.factors / (own * own_scale(fitted.model, shares * own))
        predicted = PredictedRows(fitted.model, fitted.tuned.rule, factors, classes)
        rest = stream.total(AskedOf(partial(sample.drawn.rows, drawn=False), predicted))
    finally:
        stream.blocks.close()
    goal = as_goal(classifier.goal)
    if "alpha_" in fitted.attributes:
        goal = as_goal(LabelCVaR(fitted.attributes["alpha_"]))
    tuned = replace(fitted.tuned, prior=prior)
    tuned = _evaluated(
        tuned, fitted.evaluated, goal, rows, rest, drop=classifier.rare_classes == "drop"
    )
    attributes = fitted.attributes | {"n_passes_": stream.n_passes}
    return replace(fitted, tuned=tuned, training=training, attributes=attributes)


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


def _fitted_to(sample: Sample, inner: Any) -> Any:
    """What a classifier makes of a sample in which classes weigh as they do in all rows."""
    rows, weights, key = sample.rows, sample.weights(), weight_argument(inner.estimator)
    if not inner._is_fitted_before():
        inner.cv, inner.refit = [sample.parts], False
    # What counts is how many there are of a class, not how many are drawn.
    drawn = np.bincount(rows.labels, minlength=len(sample.classes))
    inner.min_rows = int(min([inner.min_rows, *drawn[sample.counts >= inner.min_rows]]))
    with warnings.catch_warnings():
        if key is None and np.all(rows.weights == 1):
            # Then the sample has the shares of all rows.
            warnings.filterwarnings("ignore", ".* does not take sample_weight", EquipoiseWarning)
        return inner.fitted_to(rows.X, sample.classes[rows.labels], weights, {})


def _as_they_weigh(own: Evaluated, rows: SomeRows, k: int) -> Evaluated:
    """Rows that were tuned on, with the weights that they have among all rows."""
    of_tuning = rows.use == TUNING
    totals = np.bincount(rows.labels[of_tuning], rows.weights[of_tuning], minlength=k)
    made_up = np.bincount(own.labels, own.weights, minlength=k)
    factors = np.divide(totals, made_up, out=np.ones(k), where=made_up > 0)
    return replace(own, weights=own.weights * factors[own.labels])


def _evaluated(
    tuned: TunedWeights, own: Evaluated | None, goal: Goal, rows: SomeRows, rest: Answer,
    *, drop: bool,
) -> TunedWeights:  # fmt: skip
    """The rule, evaluated on all rows that were not trained on.

    Rows that were tuned on are predicted by the rules that were tuned without their fold.
    """
    k, few = len(tuned.classes), tuned.rule == 0 if tuned.rule.ndim == 1 else np.zeros(0, bool)
    sums, table, default, default_table = rest[0][None], rest[1], rest[2][None], rest[3]
    if own is not None:
        own = _as_they_weigh(own, rows, k)
        few, parts, by_default = own.few, own.sums.copy(), own.default_sums.copy()
        totals = parts[:, 1].sum(axis=0)
        # Squares of weights, and not of their shares, can be added up.
        for each in (parts, by_default):
            each[:, 3] *= totals**2
        sums = np.concatenate([sums, parts])
        default = np.concatenate([default, by_default])
        table, default_table = table + own.counts, default_table + own.default_counts
    few = few if len(few) == k else np.zeros(k, dtype=bool)
    total = sums[:, 1].sum(axis=0)
    for each in (sums, default):
        each[:, :, few] = 0.0
        each[:, 3] /= np.where(total > 0, total, 1.0) ** 2
    trained, tuned_on = (
        np.bincount(rows.labels[rows.use == use], minlength=k) for use in (TRAINING, TUNING)
    )
    seen = [trained * ~(few & drop), tuned_on * ~few, sums[:, 0].sum(axis=0)]
    shares = [predicted_shares(each, tuned.prior) for each in (default_table, table)]
    found: dict[str, Any] = {
        "held_out": sums,
        "seen": np.array(seen, dtype=np.intp),
        "default_held_out": default,
        "shares": np.array(shares),
    }
    if goal.is_known:
        return replace(tuned, **found)
    criterion = goal.resolve_some(tuned.prior, tuned.classes, few)
    counts = table.sum(axis=1, keepdims=True)
    table = np.divide(table, counts, out=np.zeros_like(table), where=counts > 0)
    table = (table * tuned.prior[:, None])[~few][:, np.argsort(few, kind="stable")]
    value = criterion.value(table)
    if criterion.measures == "risk":
        found["robust_risk"] = value
    if criterion.measures == "metric":
        found["metric_value"] = 1 - value
    return replace(tuned, **found)
