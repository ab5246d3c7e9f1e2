"""Decision weights tuned on folds, and judged on rows left out.

What is reported of a fold comes from weights that were tuned, and from an amount of shrinkage that
was chosen, without it: see :mod:`equipoise.decisions.search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.left_out import Predictions, decide, row_weights
from equipoise.decisions.search import FoldTuner, Shrinkage, group_tables, last_as_good, shrunk
from equipoise.exceptions import (
    FewRowsWarning,
    InvalidInputError,
    InvalidParameterError,
    SeenRowsWarning,
    UnattainableError,
    warn,
)
from equipoise.goals import Criterion, Goal, as_goal
from equipoise.risks.intervals import RiskIntervals, counted_intervals
from equipoise.text import listing
from equipoise.validation.folds import FOLDS_OF_A_CLASS, deal, refuse_few
from equipoise.validation.labels import as_labels, check_classes, encode_labels, known_labels
from equipoise.validation.numbers import check_count, check_number, check_seed, check_word
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.by_class import ByClass, class_lines
from equipoise.weights.priors import check_prior

# Warned of is a class of fewer rows, and fewer than such a share of the others', that costs these
# so large a share in errors.
HANDFUL, COSTLY = 20, 0.05
# Rows of the rarest class by which tuned weights and a guess at them count the same; and how many
# times as often as it occurs a class may be predicted by what is on the scale of the rows.
GUESSED_ROWS, FREQUENT = 50, 3.0
# So many rows without an error make it likely that the model was trained on them.
ROWS_WITHOUT_ERROR = 100
# What to do with a class of too few rows.
RARE = ("error", "keep", "drop")

# Fields of tuned weights, the tables that candidates are compared by, and what is to be said of
# classes of few rows.
Outcome = tuple[dict[str, Any], Matrix, str]


@dataclass(frozen=True, eq=False, repr=False)
class TunedWeights:
    r"""Decision weights, and what they do to rows that they were not tuned on.

    Attributes
    ----------
    classes : class names.
    rule : what decides: one weight a class, or costs by true class (first) and decision (second).
    weights : decision weights :math:`w` by class with :math:`\sum_i p_i w_i = 1`, :math:`p` the
        class shares of the rows. None where a cost matrix says more than weights can.
    threshold : for two classes, the second is decided where its probability is above this.
    costs : costs beyond those of the right decision, where they decide.
    class_prior : class frequencies of the population.
    class_risks : share of wrong decisions in each class; nan for a class of too few rows.
    class_risk_intervals : the same with intervals of 95% confidence. None where nothing was judged.
        Those of tuned weights are approximate: see ``PlugInClassifier``.
    held_out : what the risks are made of: number of rows, their weight, that of wrong decisions,
        the squares of shares in the class's weight, and for tuned weights the weight of what
        ``rule`` decides wrongly of the same rows, of shape (n_folds, 5, n_classes).
    refit : rows judged for each row of a training part, where the model was trained anew on all
        rows in the end; 0 if not. None for known weights.
    n_candidates : of how many rules this one was chosen by its risks, which intervals allow for.
    robust_risk : the worst case of the risks over the set of weightings, if there is one.
    metric_value : the metric, if there is one.
    fold_weights : weights that each fold was judged by, of shape (n_folds, n_classes): how far they
        differ says how uncertain the choice is.
    folds : fold of every row, the line of ``fold_weights`` that its label had no part in.
    shrinkage : how far the weights were drawn towards balanced ones.
    rows_seen : where rows came in blocks, how many of each class the model was ``"trained"`` on,
        the weights were ``"tuned"`` on, and risks were ``"judged"`` on; else None.

    Examples
    --------
    >>> from equipoise import tune_weights
    >>> tune_weights([0] * 9 + [1] * 6, [0.1] * 9 + [0.6] * 6, "worst-class")
    class weight   risk lower upper
    0:    0.833333 0    0     0.336267
    1:    1.25     0    0     0.459258
    """

    classes: NDArray[Any]
    prior: Vector
    rule: Vector | Matrix
    held_out: NDArray[np.float64] | None = None
    robust_risk: float | None = None
    metric_value: float | None = None
    fold_weights: Matrix | None = None
    folds: Indices | None = None
    shrinkage: float | None = None
    refit: float | None = None
    n_candidates: int = 1
    seen: Indices | None = None

    @property
    def rows_seen(self) -> dict[str, ByClass] | None:
        if self.seen is None:
            return None
        names = "trained", "tuned", "judged"
        return {n: ByClass(own, self.classes) for n, own in zip(names, self.seen, strict=True)}

    @property
    def weights(self) -> ByClass | None:
        return ByClass(self.rule, self.classes) if self.rule.ndim == 1 else None

    @property
    def threshold(self) -> float | None:
        return float(self.rule[0] / self.rule.sum()) if self.rule.shape == (2,) else None

    @property
    def costs(self) -> Matrix | None:
        return self.rule if self.rule.ndim == 2 else None

    @property
    def class_prior(self) -> ByClass:
        return ByClass(self.prior, self.classes)

    @property
    def class_risks(self) -> ByClass | None:
        found = self.class_risk_intervals
        return None if found is None else found.risks

    @property
    def class_risk_intervals(self) -> RiskIntervals | None:
        if self.held_out is None:
            return None
        return counted_intervals(
            self.held_out, self.classes, refit=self.refit, choices=self.n_candidates
        )

    def decide(self, probabilities: ArrayLike) -> NDArray[Any]:
        """The class of every row of probabilities, which are as in :func:`tune_weights`."""
        table = as_probabilities(probabilities, len(self.classes))
        return np.asarray(self.classes[decide(table, self.rule)])

    def __repr__(self) -> str:
        weights, found = self.weights, self.class_risk_intervals
        columns = {} if weights is None else {"weight": weights}
        if found is not None:
            columns |= {"risk": found.risks, "lower": found.lower, "upper": found.upper}
        columns |= self.rows_seen or {}
        return "\n".join(class_lines(**(columns or {"prior": self.class_prior})))


def tune_weights(  # noqa: PLR0913  rows, what for, and how
    y: ArrayLike,
    probabilities: ArrayLike,
    goal: Any = None,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    class_prior: Any = None,
    shrinkage: float | str = "auto",
    rare: str = "error",
    min_rows: int = 1,
    random_state: int | np.random.RandomState | None = None,
) -> TunedWeights:
    r"""Decision weights for probabilities of a model that has not seen the rows.

    .. math:: \arg\max_i \; w_i \eta_i(x)

    decides, with the ``w`` that are best for the goal, as in
    :class:`~equipoise.estimators.PlugInClassifier`, which also trains the model. The rows are
    dealt out to five folds; what is reported of a fold comes from weights tuned without it.

    That the model has not seen the rows is for the user to see to. It cannot be told in general; a
    ``SeenRowsWarning`` says so where a hundred rows or more show no error at all.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels that came true.
    probabilities : array-like of shape (n_rows, n_classes)
        Columns in the order of the sorted labels, or of ``classes``. For two classes also of shape
        (n_rows,), about the second.
    goal : Uncertainty, str, metric, CostMatrix, RecallFloors or None, default=None
        What the weights are for; None is ``LabelCVaR(0.1)``.
    classes : array-like of shape (n_classes,), default=None
        Names of the columns, where they are not the sorted labels.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.
    folds : array-like of int of shape (n_rows,), default=None
        Fold of every row, ``0..n_folds-1``, at least three. Without it the rows are dealt out to
        five folds at random. Give it where rows belong together.
    class_prior, shrinkage, rare, min_rows, random_state
        As in ``PlugInClassifier``; with ``rare="drop"`` a class of too few rows has weight 0.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import tune_weights
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["common", "rare"], [900, 100])
    >>> eta = np.clip(rng.normal(np.where(y == "rare", 0.4, 0.1), 0.1), 0.01, 0.99)
    >>> tune_weights(y, eta, "worst-class").decide([0.1, 0.4]).tolist()
    ['common', 'rare']
    """
    aim = as_goal(goal)
    amount = check_shrinkage(shrinkage, aim)
    if classes is None:
        names, labels = encode_labels(y)
    else:
        names = check_classes(classes)
        labels = known_labels(as_labels(y, name="y"), names)
    table = as_probabilities(probabilities, len(names))
    if len(table) != len(labels):
        raise InvalidInputError(
            f"probabilities must have one row for each of the {len(labels)} labels, got "
            f"{len(table)}."
        )
    weights = row_weights(sample_weight, labels, names)
    used = weights > 0
    predictions = Predictions(table[used], labels[used], weights[used])
    prior = predictions.prior
    if class_prior is not None:
        prior = check_prior(class_prior, names, name="class_prior")
    if folds is None:
        warn_of_seen_rows(predictions)
    seed = check_seed(random_state)
    dealt = deal(predictions.labels, seed) if folds is None else _check_folds(folds, used)
    found, _, words = tune_predicted(
        predictions, dealt, aim, prior, names,
        shrinkage=amount, rare=check_rare(rare, aim),
        min_rows=check_count(min_rows, "min_rows"), seed=seed,
    )  # fmt: skip
    if words:
        warn(words, FewRowsWarning)
    every = np.zeros(len(labels), dtype=np.intp)
    every[used] = dealt
    return TunedWeights(names, prior, **found, folds=None if aim.is_known else every)


def _check_folds(folds: Any, used: Mask) -> Indices:
    """The folds of the rows that have weight, as the user numbered them."""
    given = np.asarray(folds)
    whole = given.shape == used.shape and given.dtype.kind in "iu"
    found = np.unique(given[used]) if whole else np.empty(0)
    if len(found) < FOLDS_OF_A_CLASS or not np.array_equal(found, np.arange(len(found))):
        raise InvalidInputError(
            f"folds must hold a whole number for each of the {len(used)} rows, and number at least "
            f"{FOLDS_OF_A_CLASS} folds from 0 on, each with rows that have weight, got an array of "
            f"shape {given.shape} and type {given.dtype} with {listing(np.unique(given).tolist())}."
        )
    return np.asarray(given[used], dtype=np.intp)


def check_shrinkage(shrinkage: Any, goal: Goal) -> Shrinkage:
    """An amount from 0 to 1, or "auto"; weights that keep floors cannot be drawn elsewhere."""
    named = isinstance(shrinkage, str) and shrinkage == "auto"
    if isinstance(shrinkage, str) and not named:
        raise InvalidParameterError(
            f'shrinkage must be "auto" or a number in [0, 1], got {shrinkage!r}.'
        )
    amount = 0.0 if named else check_number(shrinkage, "shrinkage", "[0, 1]")
    if amount > 0 and not goal.may_shrink:
        raise InvalidParameterError(
            f'shrinkage must be "auto" or 0 for {type(goal).__name__}, got {shrinkage!r}: weights '
            "drawn towards balanced ones would not keep the floors."
        )
    return "auto" if named and goal.may_shrink else amount


def check_rare(rare: Any, goal: Goal) -> str:
    """What to do with a class of few rows; untuned, it would take rows that a confidence is for."""
    word = check_word(rare, "rare", RARE)
    return "error" if word == "keep" and goal.confidence is not None else word


def tune_predicted(  # noqa: PLR0913  rows, what for, and how
    predictions: Predictions, folds: Indices, goal: Goal, prior: Vector, classes: NDArray[Any], *,
    shrinkage: Shrinkage, rare: str, min_rows: int, seed: int,
) -> Outcome:  # fmt: skip
    """Weights for rows that were predicted elsewhere, each row in a fold; known ones are judged."""
    counts = np.bincount(predictions.labels, minlength=len(classes))
    if goal.is_known:
        few = counts < 1
        refuse_few(few, "a row of every class to be judged by", counts, classes, rare)
        rule = goal.resolve(prior, classes).known(predictions.prior)
        decided = decide(predictions.probabilities, rule)
        sums = predictions.error_sums(decided, folds, ~few)
        return {"rule": rule, "held_out": sums}, group_tables(predictions, decided), ""
    cells = np.zeros((len(classes), folds.max() + 1), dtype=bool)
    cells[predictions.labels, folds] = True
    few = np.count_nonzero(cells, axis=1) < FOLDS_OF_A_CLASS
    needed = f"at least {FOLDS_OF_A_CLASS} rows of every class in the tuning part"
    few = refuse_few(few, needed, counts, classes, rare, min_rows)
    return tune_on_folds(
        predictions, folds, goal.resolve_some(prior, classes, few), predictions.prior, classes, few,
        drop=rare == "drop", shrinkage=shrinkage, seed=seed,
    )  # fmt: skip


def judge_known(
    predictions: Predictions, folds: Indices, criterion: Criterion, shares: Vector,
    classes: NDArray[Any], few: Mask, refit: float = 0.0,
) -> Outcome:  # fmt: skip
    """What known decisions do to rows left out, as :func:`tune_on_folds` tells of tuned ones."""
    own = criterion.known(shares[~few] / shares[~few].sum())
    rule = np.ones((len(classes),) * own.ndim)
    rule[np.ix_(*[np.flatnonzero(~few)] * own.ndim)] = own
    return _judged(predictions, folds, rule, few, refit)


def _judged(
    predictions: Predictions, folds: Indices, rule: Vector | Matrix, few: Mask, refit: float
) -> Outcome:
    """What a rule that was not tuned on the rows does to them."""
    decided = decide(predictions.probabilities, rule)
    rows = np.flatnonzero(~few[predictions.labels])
    tables = group_tables(predictions.take(rows), decided[rows])
    sums = predictions.error_sums(decided, folds, ~few)
    fields = {"rule": rule, "held_out": sums, "refit": refit}
    return fields, tables[:, ~few][:, :, np.argsort(few, kind="stable")], ""


def judge_either(
    tuned: Outcome, predictions: Predictions, folds: Indices, criterion: Criterion,
    rule: Vector, few: Mask, refit: float,
) -> Outcome:  # fmt: skip
    """Tuned weights, or a plainer rule that does as well for a metric up to a standard error.

    This is for metrics that count rows: risks alone are what weights are drawn to balance.
    """
    if criterion.counted_by is None:
        return tuned
    fields, tables, words = _judged(predictions, folds, rule, few, refit)
    tables = tables * (criterion.counted_by / predictions.among(~few).prior)[:, None]
    if last_as_good([tuned[1], tables], criterion, 1.0) == 0:
        return tuned
    return fields | {"metric_value": 1 - criterion.of_table(tables.sum(axis=0))}, tables, words


def warn_of_seen_rows(predictions: Predictions) -> None:
    """Say so where the model was probably trained on the rows."""
    n_rows = len(predictions.labels)
    if n_rows >= ROWS_WITHOUT_ERROR and np.array_equal(
        np.argmax(predictions.probabilities, axis=1), predictions.labels
    ):
        warn(
            f"The largest probability is that of the true class in all {n_rows} rows, which is too "
            "good for most models unless they were trained on these rows. Weights tuned on such "
            "rows mean nothing, and the risks are too low: give rows that the model has not seen.",
            SeenRowsWarning,
        )


def tune_on_folds(  # noqa: PLR0913  rows, what for, and how
    predictions: Predictions, folds: Indices, criterion: Criterion, shares: Vector,
    classes: NDArray[Any], few: Mask, *, drop: bool, shrinkage: Shrinkage, seed: int,
    refit: float = 0.0, n_candidates: int = 1, as_trained: Vector | None = None,
) -> Outcome:  # fmt: skip
    """Weights tuned on all rows, and judged fold by fold on rows left out: fields of the result.

    With them come tables of true class by decision, by which results are compared, and a warning
    or nothing. The criterion is among the classes that have rows enough. Classes of too ``few`` are
    neither tuned nor judged, and never decided if ``drop``; otherwise they have weight 1.
    ``shares`` are those of the rows that the probabilities were learnt from, which are on the scale
    of the rows if it is known by which weights a model ``as_trained`` decides.
    """
    rows = np.flatnonzero(~few[predictions.labels])
    among, own = predictions.among(~few), shares[~few]
    # Metrics count decisions as the population has them; weights are for odds as they were given.
    counted_by = among.prior if criterion.counted_by is None else criterion.counted_by
    factors = counted_by / among.prior
    tuner = FoldTuner(among.carried(factors), folds[rows], criterion, shrinkage, seed)
    tuned, amount = tuner.choose()
    try:
        judges = list(map(tuner.without, range(tuner.n_folds)))
    except UnattainableError:
        # All rows show what is promised, and fewer do not: then nothing is judged.
        if criterion.confidence is None:
            raise
        judges = []
    guess = None if as_trained is None else _guess(among, criterion, as_trained[~few], factors)
    if guess is not None:
        share = GUESSED_ROWS / (GUESSED_ROWS + among.effective_rows.min())
        tuned, *judges = (shrunk(found, guess, share) for found in (tuned, *judges))
    every = np.full((1 + len(judges), len(few)), 0.0 if drop else 1.0)
    for line, found in zip(every, (tuned, *judges), strict=True):
        # With a mean of one over the classes that count.
        line[~few] = found * factors * (own.sum() / (own @ (found * factors)))
    weights, fold_weights = every[0], every[1:]
    if not judges:
        return {"rule": weights, "shrinkage": amount}, np.empty((0, len(few), len(few))), ""
    decided = np.empty(len(folds), dtype=np.intp)
    for fold, line in enumerate(fold_weights):
        here = folds == fold
        decided[here] = decide(predictions.probabilities[here], line)
    # A decision for a class that was not tuned is an error like any other.
    every_class = group_tables(predictions.take(rows), decided[rows])
    tables = every_class[:, ~few][:, :, np.argsort(few, kind="stable")] * factors[:, None]
    value = criterion.of_table(tables.sum(axis=0))
    sums = predictions.error_sums(decided, folds, ~few)
    final = decide(predictions.probabilities, weights)
    fields = {
        "rule": weights,
        "held_out": np.concatenate(
            [sums, predictions.error_sums(final, folds, ~few)[:, 2:3]], axis=1
        ),
        "refit": refit,
        "n_candidates": n_candidates,
        "robust_risk": value if criterion.measures == "risk" else None,
        "metric_value": 1 - value if criterion.measures == "metric" else None,
        "fold_weights": fold_weights,
        "shrinkage": amount,
    }
    return fields, tables, _words_of_cost(predictions, weights, final, few, classes)


def _guess(
    predictions: Predictions, criterion: Criterion, as_trained: Vector, factors: Vector
) -> Vector | None:
    """Weights between those by which a model decides as trained, and balanced ones.

    None where there is nothing to guess by: a model that was trained without weights and predicts
    a rare class far too often draws its rows itself, and is not on their scale.
    """
    if criterion.lean is None:
        return None
    if np.all(as_trained == as_trained[0]):
        shares = predictions.sample_weight @ predictions.probabilities / predictions.totals.sum()
        if np.any(shares > FREQUENT * predictions.prior):
            return None
    lean, own = criterion.lean, as_trained * factors
    return np.asarray(own ** (1 - lean) * predictions.prior**-lean / factors)


def _words_of_cost(
    predictions: Predictions, weights: Vector, decided: Indices, few: Mask, classes: NDArray[Any]
) -> str:
    """Say which classes of few rows take how many rows of others that they would lose otherwise."""
    labels, rows, paid = predictions.labels, predictions.effective_rows, []
    handful = (rows < HANDFUL) & (rows < COSTLY * (rows.sum() - rows))
    for own in np.flatnonzero(handful & ~few):
        taken = np.flatnonzero((decided == own) & (labels != own))
        without = np.where(np.arange(len(weights)) == own, 0.0, weights)
        right = decide(predictions.probabilities[taken], without) == labels[taken]
        others = predictions.totals.sum() - predictions.totals[own]
        cost = predictions.sample_weight[taken[right]].sum() / others
        if cost >= COSTLY:
            n_rows = np.count_nonzero(labels == own)
            paid.append(f"class {classes.tolist()[own]!r} of {n_rows} rows {100 * cost:.0f} points")
    if not paid:
        return ""
    return (
        f"A weight that rests on few rows costs the other classes errors: {', '.join(paid)}. "
        f"rare='drop' with min_rows={HANDFUL} leaves such a class out, and rare='keep' gives it no "
        "weight of its own."
    )
