"""Decision weights for given probabilities, and what they do to rows they were not tuned on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from equipoise.arrays import ArrayLike, Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.abstained import labels_or_none
from equipoise.decisions.evaluated import Evaluated, evaluate
from equipoise.decisions.folds import FOLDS_OF_A_CLASS, RareClasses, deal
from equipoise.decisions.held_out import HeldOut, Training, rescaled
from equipoise.decisions.summary import FEW_ROWS, DecisionSummary, ShownAsTable, SummaryTable
from equipoise.decisions.tune import POOLING, Task, Tuned, tune
from equipoise.exceptions import (
    CostlyDecisionsWarning,
    InvalidInputError,
    SeenRowsWarning,
    UnidentifiableError,
    warn,
)
from equipoise.goals import Goal, as_goal
from equipoise.goals.labelled_predictions import (
    Predictions,
    abstaining_costs,
    decide,
    most_probable,
)
from equipoise.goals.row_costs import decide_by_costs
from equipoise.goals.sparse_rows import Table
from equipoise.risks.intervals import RiskIntervals, counted_intervals
from equipoise.text import listing, share_text
from equipoise.validation.labels import named_labels, one_label_per_row, weights_and_totals
from equipoise.validation.numbers import check_count, check_number, check_seed, check_word
from equipoise.validation.predictions import (
    as_probabilities,
    as_sparse_probabilities,
    check_rows,
)
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior

# ROWS_WITHOUT_ERROR: rows without an error from which the model was probably trained on them: by
# the rule of three, its error rate is below 3% otherwise.
ROWS_WITHOUT_ERROR = 100
# COSTLY: rise of the overall error rate from which a fit warns: ten points (on one table of the
# study the rate rises from 31% to 48%).
COSTLY = 0.10


@dataclass(frozen=True, eq=False, repr=False)
class TunedWeights(ShownAsTable):
    r"""Decision weights, and what they do to rows that they were not tuned on.

    Attributes
    ----------
    classes
        Class names.
    rule
        The decision rule: one weight a class, or costs by true and predicted class; one more
        weight, or column of costs, is that of abstaining.
    weights
        Decision weights :math:`w` by class with :math:`\sum_i p_i w_i = 1`, :math:`p` the class
        frequencies of the rows. None where a cost matrix says more than weights can.
    threshold
        For two classes, the second is predicted where its probability is above this.
    abstain_below
        Rows whose largest weighted probability is below this have no class: they are None in
        ``decide``. None where every row has a class.
    costs
        Costs beyond those of the right decision, where they make the decision. Where frequencies of
        the classes were changed, a rule that may abstain is one, its last column that of
        abstaining.
    class_prior
        Class frequencies of the population.
    class_risks
        Error rate of each class; nan for a class with too few rows.
    class_risk_intervals
        The same with intervals of 95% confidence. None where nothing was evaluated. Those of tuned
        weights are approximate: see ``TunedDecisionClassifier``.
    held_out
        Sums over held-out rows that the risks are made of: number of rows, their weight, that of
        errors, the squares of shares in the class's weight, and for tuned weights the weight of
        errors of ``rule`` on the same rows, of shape (n_folds, 5, n_classes).
    refit
        Held-out rows for each row of a training part, where the model was trained once more on all
        rows; 0 if not. None for known weights.
    n_candidates
        Of how many rules this one was chosen by its risks, which intervals allow for.
    robust_risk
        The worst case of the risks over the set of weightings, if there is one.
    metric_value
        The metric, if there is one.
    fold_weights
        Weights that were tuned without each fold, of shape (n_folds, n_classes): how far they
        differ says how uncertain the choice is. A last column is that of ``abstain_below``.
    folds
        Fold of every row, the line of ``fold_weights`` that its label had no part in.
    pooling
        How strongly the weights of small classes were shrunk towards the goal's own.
    default_held_out
        The first four sums of default predictions, the most probable class.
    shares
        Shares of the population that are predicted as each class, by default and as tuned, of shape
        (2, n_classes).
    abstained
        Share of the population that has no class on held-out rows; None where every row has one.
    rows_seen
        Of out-of-core data, how many rows of each class the model was ``"trained"`` on, the weights
        were ``"tuned"`` on, and risks were ``"evaluated"`` on; else None.

    Examples
    --------
    >>> from equipoise import tune_weights
    >>> y, probabilities = [0] * 90 + [1] * 60, [0.1] * 80 + [0.3] * 35 + [0.8] * 35
    >>> tuned = tune_weights(y, probabilities, "worst_class")
    >>> tuned.weights
    0: 0.5238
    1:  1.714
    >>> round(tuned.threshold, 2), tuned.decide([0.2, 0.3]).tolist()
    (0.23, [0, 1])
    """

    classes: NDArray[Any]
    prior: Vector
    rule: Vector | Matrix
    held_out: NDArray[np.float64] | None = None
    robust_risk: float | None = None
    metric_value: float | None = None
    fold_weights: Matrix | None = None
    folds: Indices | None = None
    pooling: float | None = None
    refit: float | None = None
    n_candidates: int = 1
    seen: Indices | None = None
    default_held_out: NDArray[np.float64] | None = None
    shares: Matrix | None = None
    abstained: float | None = None

    @property
    def rows_seen(self) -> dict[str, ByClass] | None:
        if self.seen is None:
            return None
        names = "trained", "tuned", "evaluated"
        return {
            n: ByClass(counts, self.classes) for n, counts in zip(names, self.seen, strict=True)
        }

    @property
    def weights(self) -> ByClass | None:
        k = len(self.classes)
        return ByClass(self.rule[:k], self.classes) if self.rule.ndim == 1 else None

    @property
    def may_abstain(self) -> bool:
        """Whether a row may have no class."""
        return bool(self.rule.shape[-1] > len(self.classes))

    @property
    def abstain_below(self) -> float | None:
        return float(self.rule[-1]) if self.may_abstain and self.rule.ndim == 1 else None

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
        intervals = self.class_risk_intervals
        return None if intervals is None else intervals.risks

    @property
    def class_risk_intervals(self) -> RiskIntervals | None:
        if self.held_out is None:
            return None
        return counted_intervals(
            self.held_out, self.classes, refit=self.refit, choices=self.n_candidates
        )

    def summary(self) -> DecisionSummary:
        """Recall and precision by class, of default predictions and of tuned decisions."""
        intervals = self.class_risk_intervals
        if intervals is None or self.default_held_out is None or self.shares is None:
            raise UnidentifiableError(
                "Nothing was evaluated on held-out rows, so there is nothing to summarise: "
                "compare predictions on rows of your own by class_risk_intervals(y, y_pred)."
            )
        default = counted_intervals(self.default_held_out, self.classes, refit=self.refit)
        rows = self.default_held_out[:, 0].sum(axis=0).astype(np.intp)
        summary = DecisionSummary(self.prior, rows, default, intervals, *self.shares)
        return replace(summary, abstained=self.abstained)

    def decide(self, probabilities: ArrayLike, *, costs: Any = None) -> NDArray[Any]:
        """The class of every row of probabilities, which are as in :func:`tune_weights`.

        A row that is abstained from has None. ``costs`` of each row, as in
        :func:`equipoise.goals.decide_by_costs`, take the place of the weights, unless these may
        abstain.
        """
        return self.of_table(_as_table(probabilities, len(self.classes)), costs)

    def of_table(self, table: Table, costs: Any = None) -> NDArray[Any]:
        """The same for probabilities that were checked."""
        if costs is None:
            decisions = decide(table, self.rule)
            abstained = decisions == len(self.classes) if self.may_abstain else None
            return labels_or_none(self.classes, decisions, abstained)
        if self.may_abstain:
            raise InvalidInputError(
                "costs must be None where the goal has abstain=True, got costs of rows: they say "
                "nothing of rows without a class. Tune with abstain=False to decide by costs."
            )
        return np.asarray(self.classes[decide_by_costs(table, costs)])

    @property
    def _table(self) -> SummaryTable:
        columns: dict[str, list[str]] = {"class": [str(name) for name in self.classes.tolist()]}
        weights, intervals = self.weights, self.class_risk_intervals
        if weights is not None:
            columns["weight"] = [f"{weight:.4g}" for weight in weights.values()]
        if intervals is not None:
            for name in ("risks", "lower", "upper"):
                values = getattr(intervals, name).values()
                columns[name.rstrip("s")] = [share_text(value) for value in values]
        for name, rows in (self.rows_seen or {}).items():
            columns[name] = [f"{count:,}" for count in rows.values()]
        if len(columns) == 1:
            columns["prior"] = [share_text(share) for share in self.prior]
        notes = {}
        if self.abstain_below is not None:
            below = f"{self.abstain_below:.4g}"
            notes["no class"] = f"where the largest weighted probability is below {below}"
        return SummaryTable(tuple(columns), list(zip(*columns.values(), strict=True)), notes)


def reported(task: Task, tuned: Tuned, evaluated: Evaluated, n_candidates: int = 1) -> TunedWeights:
    """A rule, its risks on held-out rows, and the value of its goal."""
    tuned_weights = TunedWeights(task.classes, task.prior, tuned.rule)
    if not task.goal.is_known:
        tuned_weights = replace(tuned_weights, pooling=tuned.pooling)
    # A promise that fewer rows cannot show, or no rows at all: nothing was evaluated.
    if not len(tuned.by_fold) or evaluated.few.all():
        return tuned_weights
    default = evaluated.by_default
    tuned_weights = replace(
        tuned_weights,
        held_out=evaluated.sums,
        refit=evaluated.tested_per_trained,
        default_held_out=default.sums[:, :4],
        shares=np.array([default.predicted_shares, evaluated.predicted_shares]),
        abstained=evaluated.abstained_share if tuned_weights.may_abstain else None,
    )
    if task.goal.is_known:
        return tuned_weights
    value, measures = evaluated.value(task.criterion), task.criterion.measures
    return replace(
        tuned_weights,
        robust_risk=value if measures == "risk" else None,
        metric_value=1 - value if measures == "metric" else None,
        fold_weights=tuned.by_fold,
        n_candidates=n_candidates,
    )


def tune_weights(  # noqa: PLR0913  rows, what for, and how
    y: ArrayLike,
    probabilities: ArrayLike,
    goal: Any = None,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    pooling: float = POOLING,
    class_prior: Any = None,
    rare_classes: str = "error",
    min_rows: int = 1,
    random_state: int | np.random.RandomState | None = None,
) -> TunedWeights:
    r"""Decision weights for probabilities of held-out rows, from any model.

    .. math:: \arg\max_i \; w_i \eta_i(x)

    is predicted, with the weights ``w`` that are the best for the goal. Use it for held-out
    probabilities that exist already, of any library; :class:`~equipoise.RobustClassifier` also
    trains the model. The rows are dealt out to five folds, and each fold is evaluated with weights
    that were tuned on the others.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels.
    probabilities : array-like or sparse array of shape (n_rows, n_classes)
        Columns in the order of the sorted labels, or of ``classes``. For two classes also of shape
        (n_rows,), of the second. Of thousands of classes, a SciPy sparse array may hold the most
        probable of each row: others are not predicted for it.
    goal : Uncertainty, str, metric, CostMatrix, RecallFloors or None, default=None
        What the weights are tuned for: an uncertainty set such as ``LabelCVaR(0.1)``, which is the
        default, or ``"worst_class"``; a metric or its name, such as ``"f1_macro"``;
        ``RecallFloors``; or a ``CostMatrix``.
    classes : array-like of shape (n_classes,), default=None
        Names of the columns, where they are not the sorted labels.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.
    folds : array-like of int of shape (n_rows,), default=None
        Fold of every row, ``0..n_folds-1``, at least three, where rows belong together. None deals
        the rows out to five folds at random.
    pooling : float, default=2.0
        How strongly the weights of small classes are shrunk towards the starting weights of the
        goal (balanced ones, for recalls); 0 turns it off.
    class_prior : dict or array-like of shape (n_classes,), default=None
        Class frequencies of the population, where those of the rows differ. The weights multiply
        the probabilities as they are given.
    rare_classes : {"error", "keep", "drop"}, default="error"
        What to do with classes that have too few rows to be tuned: refuse them; leave their weights
        at 1; or set their weights to 0.
    min_rows : int, default=1
        Classes of fewer rows than this count as rare too.
    random_state : int, RandomState or None, default=None
        Seed of the folds. None is deterministic: the same in every call.

    Notes
    -----
    The rows must be held out from the training of the model, which cannot be checked in general; a
    ``SeenRowsWarning`` is given where at least a hundred rows show no error at all.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import tune_weights
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["common", "rare"], [900, 100])
    >>> eta = np.clip(rng.normal(np.where(y == "rare", 0.4, 0.1), 0.1), 0.01, 0.99)
    >>> tuned = tune_weights(y, eta, "worst_class")
    >>> print(tuned.summary())
    class         rows recall: default tuned  95% interval precision: default tuned
    common         900          100.0% 90.6% 88.0 to 92.8%              90.8% 99.3%
    rare           100            9.0% 94.0% 87.4 to 97.8%             100.0% 52.5%
    overall error                 9.1%  9.1%
    >>> tuned.decide([0.1, 0.4]).tolist()
    ['common', 'rare']
    """
    aim, amount = as_goal(goal), check_number(pooling, "pooling", "[0, inf)")
    rare = check_rare(rare_classes, min_rows, aim)
    shape = np.shape(y)
    if len(shape) == 2 and np.ndim(probabilities) == 1:
        raise InvalidInputError(
            f"y must be labels, got an array of shape {shape}: labels come first, as in "
            "tune_weights(y, probabilities, goal)."
        )
    names, labels = named_labels(one_label_per_row(y), classes)
    table = _as_table(probabilities, len(names))
    check_rows(table, len(labels))
    weights, _ = weights_and_totals(sample_weight, labels, names)
    seed = check_seed(random_state)
    used = weights > 0
    rows = Predictions(table[used], labels[used], weights[used])
    prior = rows.prior
    if class_prior is not None:
        prior = check_prior(class_prior, names, name="class_prior")
    if folds is None:
        warn_of_seen_rows(rows)
    dealt = deal(rows.labels, seed) if folds is None else _check_folds(folds, used)
    factors = Training(np.ones((1, len(names))), rows.prior, prior).factors
    moved = replace(rows, probabilities=rescaled(rows.probabilities, factors))
    few = few_classes(HeldOut(moved, dealt), aim, names, rare)
    task = Task(aim, names, prior, few, rare.action == "drop", amount, seed)
    tuned = tune(HeldOut(moved, dealt), task)
    evaluated = evaluate(HeldOut(moved, dealt), tuned, task)
    tuned_weights = reported(task, _for_given(tuned, factors, rows.prior), evaluated)
    warn_of_cost(tuned_weights)
    every = np.zeros(len(labels), dtype=np.intp)
    every[used] = dealt
    return replace(tuned_weights, folds=None if aim.is_known else every)


def _as_table(probabilities: Any, k: int) -> Table:
    return (as_sparse_probabilities if issparse(probabilities) else as_probabilities)(
        probabilities, k
    )


def few_classes(held_out: HeldOut, goal: Goal, classes: NDArray[Any], rare: RareClasses) -> Mask:
    """Classes that have too few rows to be tuned; of known rules, to be evaluated."""
    labels, fold = held_out.predictions.labels, held_out.fold
    counts = np.bincount(labels, minlength=len(classes))
    if goal.is_known:
        needed = "a row of every class to be evaluated on"
        return RareClasses(rare.action).among(counts < 1, needed, counts, classes)
    cells = np.zeros((len(classes), fold.max() + 1), dtype=bool)
    cells[labels, fold] = True
    few = np.count_nonzero(cells, axis=1) < FOLDS_OF_A_CLASS
    needed = f"at least {FOLDS_OF_A_CLASS} rows of every class in the tuning part"
    return rare.among(few, needed, counts, classes)


def _for_given(tuned: Tuned, factors: Vector, shares: Vector) -> Tuned:
    """The rule for probabilities as they were given, of which those tuned on are a rescaling."""
    if np.all(factors == factors[0]):
        return tuned
    rules = [tuned.rule, *tuned.by_fold]
    if tuned.rule.ndim == 2:
        moved = [rule * factors[:, None] for rule in rules]
    elif len(tuned.rule) > len(factors):
        moved = [abstaining_costs(rule, factors) for rule in rules]
    else:
        moved = [rule * factors / (rule * factors @ shares) for rule in rules]
    return Tuned(moved[0], np.array(moved[1:]), tuned.pooling)


def _check_folds(folds: Any, used: Mask) -> Indices:
    """The folds of the rows that have weight, as the user numbered them."""
    numbers = np.asarray(folds)
    whole = numbers.shape == used.shape and numbers.dtype.kind in "iu"
    distinct = np.unique(numbers[used]) if whole else np.empty(0)
    if len(distinct) < FOLDS_OF_A_CLASS or not np.array_equal(distinct, np.arange(len(distinct))):
        raise InvalidInputError(
            f"folds must hold a whole number for each of the {len(used)} rows, and number at least "
            f"{FOLDS_OF_A_CLASS} folds from 0 on, each with rows that have weight, got an array of "
            f"shape {numbers.shape} and type {numbers.dtype} with "
            f"{listing(np.unique(numbers).tolist())}."
        )
    return np.asarray(numbers[used], dtype=np.intp)


def check_rare(rare_classes: Any, min_rows: Any, goal: Goal) -> RareClasses:
    """What to do with small classes; an untuned weight would break the confidence of floors."""
    action = check_word(rare_classes, "rare_classes", ("error", "keep", "drop"))
    if action == "keep" and goal.confidence is not None:
        action = "error"
    return RareClasses(action, check_count(min_rows, "min_rows"))


def warn_of_seen_rows(predictions: Predictions) -> None:
    """Warn where the model was probably trained on the rows."""
    n_rows = len(predictions.labels)
    if n_rows >= ROWS_WITHOUT_ERROR and np.array_equal(
        most_probable(predictions.probabilities), predictions.labels
    ):
        warn(
            f"The largest probability is that of the true class in all {n_rows} rows, which is too "
            "good for most models unless they were trained on these rows. Weights tuned on such "
            "rows mean nothing, and the risks are too low: give held-out rows.",
            SeenRowsWarning,
        )


def warn_of_cost(tuned: TunedWeights) -> None:
    """Warn where tuned decisions raise the overall error rate by more than ten points."""
    if tuned.default_held_out is None:
        return
    summary = tuned.summary()
    # Rows without a class are what an abstaining goal asks for, not errors that it makes.
    wrong = summary.tuned_error - (summary.abstained or 0.0)
    if wrong - summary.default_error <= COSTLY:
        return
    small = np.flatnonzero((summary.rows < FEW_ROWS) & (summary.rows > 0))
    names = tuned.classes.tolist()
    named = ", ".join(f"{names[i]!r} ({summary.rows[i]} rows)" for i in small)
    few = f" Recalls of small classes are hardly known: {named}." if named else ""
    warn(
        f"Tuned decisions raise the overall error rate from {share_text(summary.default_error)} to "
        f"{share_text(wrong)} on held-out rows; summary() says which classes gain."
        f"{few} A weaker goal costs less: a larger alpha, floors for single classes, "
        "or a metric such as 'f1_macro'.",
        CostlyDecisionsWarning,
    )
