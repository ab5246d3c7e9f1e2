"""Decision weights for given probabilities, and what they do to rows they were not tuned on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.evaluated import Evaluated, evaluate
from equipoise.decisions.folds import FOLDS_OF_A_CLASS, deal, refuse_few
from equipoise.decisions.held_out import HeldOut, Training
from equipoise.decisions.summary import DecisionSummary, warn_of_cost
from equipoise.decisions.tune import POOLING, Tuned, known_rule, tune
from equipoise.exceptions import (
    InvalidInputError,
    SeenRowsWarning,
    UnidentifiableError,
    warn,
)
from equipoise.goals import Criterion, Goal, as_goal
from equipoise.goals.labelled_predictions import Predictions, decide
from equipoise.risks.intervals import RiskIntervals, counted_intervals
from equipoise.text import listing
from equipoise.validation.labels import (
    as_labels,
    check_classes,
    encode_labels,
    known_labels,
    weights_and_totals,
)
from equipoise.validation.numbers import check_count, check_number, check_seed, check_word
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.by_class import ByClass, class_lines
from equipoise.weights.priors import check_prior

# _ROWS_WITHOUT_ERROR: rows without an error from which the model was probably trained on them: by
# the rule of three, its error rate is below 3% otherwise.
_ROWS_WITHOUT_ERROR = 100
# What to do with a class of too few rows.
RARE = ("error", "keep", "drop")


@dataclass(frozen=True, eq=False, repr=False)
class TunedWeights:
    r"""Decision weights, and what they do to rows that they were not tuned on.

    Attributes
    ----------
    classes : class names.
    rule : the decision rule: one weight a class, or costs by true and predicted class.
    weights : decision weights :math:`w` by class with :math:`\sum_i p_i w_i = 1`, :math:`p` the
        class frequencies of the rows. None where a cost matrix says more than weights can.
    threshold : for two classes, the second is predicted where its probability is above this.
    costs : costs beyond those of the right decision, where they make the decision.
    class_prior : class frequencies of the population.
    class_risks : error rate of each class; nan for a class of too few rows.
    class_risk_intervals : the same with intervals of 95% confidence. None where nothing was
        evaluated. Those of tuned weights are approximate: see ``TunedDecisionClassifier``.
    held_out : sums over held-out rows that the risks are made of: number of rows, their weight,
        that of errors, the squares of shares in the class's weight, and for tuned weights the
        weight of errors of ``rule`` on the same rows, of shape (n_folds, 5, n_classes).
    refit : held-out rows for each row of a training part, where the model was trained once more on
        all rows; 0 if not. None for known weights.
    n_candidates : of how many rules this one was chosen by its risks, which intervals allow for.
    robust_risk : the worst case of the risks over the set of weightings, if there is one.
    metric_value : the metric, if there is one.
    fold_weights : weights that were tuned without each fold, of shape (n_folds, n_classes): how far
        they differ says how uncertain the choice is.
    folds : fold of every row, the line of ``fold_weights`` that its label had no part in.
    pooling : how strongly the weights of small classes were shrunk towards the goal's own.
    default_held_out : the first four sums of default predictions, the most probable class.
    shares : shares of the population that are predicted as each class, by default and as tuned, of
        shape (2, n_classes).
    rows_seen : of out-of-core data, how many rows of each class the model was ``"trained"`` on, the
        weights were ``"tuned"`` on, and risks were ``"evaluated"`` on; else None.

    Examples
    --------
    >>> from equipoise import tune_weights
    >>> tune_weights([0] * 9 + [1] * 6, [0.1] * 9 + [0.6] * 6, "worst_class").class_risks
    0: 0
    1: 0
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

    @property
    def rows_seen(self) -> dict[str, ByClass] | None:
        if self.seen is None:
            return None
        names = "trained", "tuned", "evaluated"
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

    def summary(self) -> DecisionSummary:
        """Recall and precision by class, of default predictions and of tuned decisions."""
        found = self.class_risk_intervals
        if found is None or self.default_held_out is None or self.shares is None:
            raise UnidentifiableError(
                "Nothing was evaluated on held-out rows, so that there is nothing to summarise: "
                "compare predictions on rows of your own by class_risk_intervals(y, y_pred)."
            )
        default = counted_intervals(self.default_held_out, self.classes, refit=self.refit)
        rows = self.default_held_out[:, 0].sum(axis=0).astype(np.intp)
        return DecisionSummary(self.prior, rows, default, found, *self.shares)

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


def reported(
    classes: NDArray[Any], tuned: Tuned, evaluated: Evaluated, goal: Goal, criterion: Criterion,
    *, n_candidates: int = 1,
) -> TunedWeights:  # fmt: skip
    """What users are told of a rule: risks, intervals and the value of what it was tuned for."""
    prior, few = evaluated.prior, evaluated.few
    # A promise that fewer rows cannot show, or no rows at all: nothing was evaluated.
    if not len(tuned.by_fold) or few.all():
        return TunedWeights(classes, prior, tuned.rule, pooling=tuned.pooling)
    tables = evaluated.default_counts, evaluated.counts
    compared: dict[str, Any] = {
        "default_held_out": evaluated.default_sums,
        "shares": np.array([predicted_shares(each, prior) for each in tables]),
    }
    if goal.is_known:
        return TunedWeights(
            classes, prior, tuned.rule, evaluated.sums, refit=evaluated.tested_per_trained,
            **compared,
        )  # fmt: skip
    value = evaluated.value(criterion)
    return TunedWeights(
        classes, prior, tuned.rule, evaluated.sums,
        robust_risk=value if criterion.measures == "risk" else None,
        metric_value=1 - value if criterion.measures == "metric" else None,
        fold_weights=tuned.by_fold,
        pooling=tuned.pooling,
        refit=evaluated.tested_per_trained,
        n_candidates=n_candidates,
        **compared,
    )  # fmt: skip


def predicted_shares(table: Matrix, prior: Vector) -> Vector:
    """Shares of the population that are predicted as each class, from weights by true class."""
    totals = table.sum(axis=1)
    factors = np.divide(prior, totals, out=np.zeros_like(prior), where=totals > 0)
    return np.asarray(factors @ table)


def tune_weights(  # noqa: PLR0913  rows, what for, and how
    y: ArrayLike,
    probabilities: ArrayLike,
    goal: Any = None,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    folds: ArrayLike | None = None,
    class_prior: Any = None,
    pooling: float = POOLING,
    rare_classes: str = "error",
    min_rows: int = 1,
    random_state: int | np.random.RandomState | None = None,
) -> TunedWeights:
    r"""Decision weights for probabilities of a model that has not seen the rows.

    .. math:: \arg\max_i \; w_i \eta_i(x)

    is predicted, with the ``w`` that are best for the goal, as in
    :class:`~equipoise.estimators.TunedDecisionClassifier`, which also trains the model. The rows
    are dealt out to five folds; what is reported of a fold comes from weights tuned without it.

    Whether the model has seen the rows cannot be known in general; a ``SeenRowsWarning`` says so
    where a hundred rows or more show no error at all.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels.
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
    class_prior, pooling, rare_classes, min_rows, random_state
        As in ``TunedDecisionClassifier``; with ``rare_classes="drop"`` a class of too few rows has
        weight 0. The weights are for probabilities as they are given.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import tune_weights
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["common", "rare"], [900, 100])
    >>> eta = np.clip(rng.normal(np.where(y == "rare", 0.4, 0.1), 0.1), 0.01, 0.99)
    >>> tune_weights(y, eta, "worst_class").decide([0.1, 0.4]).tolist()
    ['common', 'rare']
    """
    aim, amount, rare_classes = (
        as_goal(goal),
        check_pooling(pooling),
        check_rare(rare_classes, as_goal(goal)),
    )
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
    weights, seed = row_weights(sample_weight, labels, names), check_seed(random_state)
    used = weights > 0
    given = Predictions(table[used], labels[used], weights[used])
    prior = given.prior
    if class_prior is not None:
        prior = check_prior(class_prior, names, name="class_prior")
    if folds is None:
        warn_of_seen_rows(given)
    dealt = deal(given.labels, seed) if folds is None else _check_folds(folds, used)
    few = few_classes(given, dealt, aim, names, rare_classes, check_count(min_rows, "min_rows"))
    training = Training(np.ones((1, len(names))), given.prior, prior)
    rows = Predictions(training.on_population([given.probabilities]), given.labels, weights[used])
    tuned, evaluated, criterion = tune_held_out(
        HeldOut(rows, dealt), aim, few, names, prior, drop=rare_classes == "drop", pooling=amount,
        seed=seed, tested_per_trained=None if aim.is_known else 0.0,
    )  # fmt: skip
    tuned = _for_given(tuned, training.factors, given.prior)
    every = np.zeros(len(labels), dtype=np.intp)
    every[used] = dealt
    found = reported(names, tuned, evaluated, aim, criterion)
    if found.default_held_out is not None:
        warn_of_cost(found.summary())
    fields = {**vars(found), "folds": None if aim.is_known else every}
    return TunedWeights(**fields)


def tune_held_out(  # noqa: PLR0913  rows, what for, and how
    held_out: HeldOut, goal: Goal, few: Mask, classes: NDArray[Any], prior: Vector, *,
    drop: bool, pooling: float, seed: int, tested_per_trained: float | None = 0.0,
) -> tuple[Tuned, Evaluated, Criterion]:  # fmt: skip
    """Tune and evaluate a rule for a goal, on predictions for held-out rows."""
    if goal.is_known:
        # It may name classes of too few rows, as nothing is tuned.
        criterion = goal.resolve(prior, classes)
        rule = goal.known(prior, classes)
        tuned = known_rule(rule, few & drop, int(held_out.fold.max()) + 1)
    else:
        criterion = goal.resolve_some(prior, classes, few)
        tuned = tune(held_out, criterion, few, prior=prior, drop=drop, pooling=pooling, seed=seed)
    return tuned, evaluate(held_out, tuned, few, prior, tested_per_trained), criterion


def few_classes(
    rows: Predictions,
    fold: Indices,
    goal: Goal,
    classes: NDArray[Any],
    rare_classes: str,
    min_rows: int,
) -> Mask:
    """Classes that have too few rows to be tuned; of known rules, to be evaluated."""
    counts = np.bincount(rows.labels, minlength=len(classes))
    if goal.is_known:
        few = counts < 1
        refuse_few(few, "a row of every class to be evaluated on", counts, classes, rare_classes)
        return few
    cells = np.zeros((len(classes), fold.max() + 1), dtype=bool)
    cells[rows.labels, fold] = True
    few = np.count_nonzero(cells, axis=1) < FOLDS_OF_A_CLASS
    needed = f"at least {FOLDS_OF_A_CLASS} rows of every class in the tuning part"
    return refuse_few(few, needed, counts, classes, rare_classes, min_rows)


def _for_given(tuned: Tuned, factors: Vector, shares: Vector) -> Tuned:
    """The rule for probabilities as they were given, of which those tuned on are a rescaling."""
    if np.all(factors == factors[0]):
        return tuned
    if tuned.rule.ndim == 2:
        return Tuned(tuned.rule * factors[:, None], tuned.by_fold * factors[:, None], tuned.pooling)
    rules = np.vstack([tuned.rule[None], tuned.by_fold]) * factors
    rules /= rules @ shares[:, None]
    return Tuned(rules[0], rules[1:], tuned.pooling)


def row_weights(sample_weight: Any, labels: Indices, classes: NDArray[Any]) -> Vector:
    """Weights of the rows; no class that has rows may be without weight."""
    present, among_present = np.unique(labels, return_inverse=True)
    return weights_and_totals(sample_weight, among_present, classes[present])[0]


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


def check_pooling(pooling: Any) -> float:
    """A strength of 0 or more."""
    return check_number(pooling, "pooling", "[0, inf)")


def check_rare(rare_classes: Any, goal: Goal) -> str:
    """What to do with a class of few rows; untuned, it would take rows that a confidence is for."""
    word = check_word(rare_classes, "rare_classes", RARE)
    return "error" if word == "keep" and goal.confidence is not None else word


def warn_of_seen_rows(predictions: Predictions) -> None:
    """Say so where the model was probably trained on the rows."""
    n_rows = len(predictions.labels)
    if n_rows >= _ROWS_WITHOUT_ERROR and np.array_equal(
        np.argmax(predictions.probabilities, axis=1), predictions.labels
    ):
        warn(
            f"The largest probability is that of the true class in all {n_rows} rows, which is too "
            "good for most models unless they were trained on these rows. Weights tuned on such "
            "rows mean nothing, and the risks are too low: give rows that the model has not seen.",
            SeenRowsWarning,
        )
