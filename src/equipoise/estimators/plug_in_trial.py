"""Predictions put to the test: the rule they are decided by, and what it does to every class."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.decisions import Evidence, Goal, Outcomes, decide
from equipoise.estimators.plug_in_folds import refuse_few, without_training
from equipoise.estimators.plug_in_purpose import Purpose
from equipoise.estimators.plug_in_rules import CostRule, Rule, WeightRule
from equipoise.estimators.plug_in_tuning import Choice, FoldTuner, Shrinkage
from equipoise.exceptions import UnattainableError
from equipoise.risks import RiskIntervals, class_risk_intervals
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.by_class import ByClass, class_lines


@dataclass(frozen=True, eq=False)
class Trial:
    """Probabilities for rows that their model has not seen, with the labels that came true.

    Attributes
    ----------
    evidence : the rows.
    folds : fold of every row, ``0..n_folds-1``.
    few : which classes have too few rows to be tuned or judged.
    classes : class names.
    shares : class frequencies of the rows that the probabilities were learnt from.
    prior : class frequencies of the population.
    """

    evidence: Evidence
    folds: Indices
    few: Mask
    classes: NDArray[Any]
    shares: Vector
    prior: Vector

    @property
    def tuned_rows(self) -> Indices:
        """Rows of classes that have enough of them."""
        return np.flatnonzero(~self.few[self.evidence.labels])

    def among_tuned(self) -> Evidence:
        """The same rows as if there were no other classes."""
        rows, tuned = self.tuned_rows, np.flatnonzero(~self.few)
        labels = np.searchsorted(tuned, self.evidence.labels[rows])
        probabilities = self.evidence.probabilities[np.ix_(rows, tuned)]
        # A row that only other classes are possible for has no preference among these.
        probabilities[~probabilities.any(axis=1)] = 1 / len(tuned)
        return Evidence(probabilities, labels, self.evidence.sample_weight[rows])

    def all_weights(self, weights: Vector) -> Vector:
        r"""Weights of all classes with :math:`\sum_i p_i w_i = 1`; untuned ones have weight 1."""
        shares = self.shares[~self.few]
        every = np.ones(len(self.classes))
        every[~self.few] = weights * (shares.sum() / (shares @ weights))
        return every


def trial_of_one_model(
    evidence: Evidence,
    classes: NDArray[Any],
    prior: Vector,
    folds: Indices,
    *,
    known: bool,
    rare: Any,
) -> Trial:
    """Rows whose models are no business of ours, in folds; ``known`` weights are not tuned."""
    counts = np.bincount(evidence.labels, minlength=len(classes))
    splits = without_training(evidence.labels, folds, len(classes), known=known)
    refuse_few(splits, counts, classes, rare)
    return Trial(evidence, folds, splits.few, classes, evidence.prior, prior)


@dataclass(frozen=True, eq=False, repr=False)
class TunedWeights:
    r"""Decision weights, and what they do to rows that they were not tuned on.

    Attributes
    ----------
    weights : ByClass or None
        Decision weights :math:`w` with :math:`\sum_i p_i w_i = 1`, :math:`p` the class shares of
        the rows. None where a cost matrix says more than weights can.
    threshold : float or None
        For two classes, the second is decided where its probability is above this.
    class_risks : ByClass
        Share of wrong decisions in each class; nan for a class of too few rows.
    class_risk_intervals : RiskIntervals
        The same with confidence intervals.
    robust_risk : float or None
        The worst case of the risks over the set of weightings, if there is one.
    metric_value : float or None
        The metric, if there is one.
    fold_weights : ndarray of shape (n_folds, n_classes) or None
        The weights that each fold was judged by: how far they differ says how uncertain the
        choice is.
    folds : ndarray of shape (n_rows,) or None
        Fold of every row: the line of ``fold_weights`` that its label had no part in.
    shrinkage : float or None
        How far the weights were drawn towards balanced ones.
    costs : ndarray of shape (n_classes, n_classes) or None
        Costs beyond those of the right decision, where they decide.
    """

    weights: ByClass | None
    threshold: float | None
    class_risks: ByClass
    class_risk_intervals: RiskIntervals
    robust_risk: float | None = None
    metric_value: float | None = None
    fold_weights: Matrix | None = None
    folds: Indices | None = None
    shrinkage: float | None = None
    costs: Matrix | None = None

    @property
    def rule(self) -> Rule:
        """What decides."""
        return rule_of(self.weights, self.costs)

    def decide(self, probabilities: ArrayLike) -> NDArray[Any]:
        """The class of every row of probabilities.

        Parameters
        ----------
        probabilities : array-like of shape (n_rows, n_classes)
            Or of shape (n_rows,) for two classes, about the second.
        """
        classes = self.class_risks.classes
        table = as_probabilities(probabilities, len(classes))
        return np.asarray(classes[self.rule.decide(table)])

    def __repr__(self) -> str:
        intervals = self.class_risk_intervals
        columns = {"weight": self.weights, "risk": self.class_risks}
        columns |= {"lower": intervals.lower, "upper": intervals.upper}
        shown = {name: values for name, values in columns.items() if values is not None}
        return "\n".join(class_lines(**shown))


def rule_of(weights: ByClass | None, costs: Matrix | None) -> Rule:
    """The rule of given weights, or of given costs where there are no weights."""
    if costs is not None:
        return CostRule(costs)
    return WeightRule(np.asarray(weights, dtype=np.float64))


def judge_known(trial: Trial, rule: Rule) -> TunedWeights:
    """What a rule that was known beforehand does to the rows."""
    decided = rule.decide(trial.evidence.probabilities)[trial.tuned_rows]
    intervals = _intervals(trial, decided)
    weights = None if rule.weights is None else ByClass(rule.weights, trial.classes)
    return TunedWeights(weights, rule.threshold, intervals.risks, intervals, costs=rule.costs)


def tune_trial(trial: Trial, purpose: Purpose, shrinkage: Shrinkage) -> TunedWeights:
    """Weights for a purpose, tuned on all rows and judged fold by fold on rows left out."""
    goal = purpose.goal(trial.prior, trial.classes, trial.few)
    folds = trial.folds[trial.tuned_rows]
    tuner = FoldTuner(trial.among_tuned(), folds, goal, shrinkage)
    choice = tuner.choose()
    fold_weights = np.array(
        [trial.all_weights(_without(tuner, fold).weights) for fold in range(tuner.n_folds)]
    )
    decided = _decisions(trial, fold_weights)
    intervals = _intervals(trial, decided)
    value = _value(trial, goal, decided)
    rule = WeightRule(trial.all_weights(choice.weights))
    return TunedWeights(
        ByClass(rule.weights, trial.classes),
        rule.threshold,
        intervals.risks,
        intervals,
        robust_risk=value if purpose.kind == "uncertainty" else None,
        metric_value=1 - value if purpose.kind == "metric" else None,
        fold_weights=fold_weights,
        shrinkage=choice.amount,
    )


def _without(tuner: FoldTuner, fold: int) -> Choice:
    try:
        return tuner.choose(frozenset({fold}))
    except UnattainableError as error:
        raise UnattainableError(
            f"{error} This holds without fold {fold}, which is left out to be judged: with all "
            "rows the floors are attainable, so more folds (a larger cv) may do."
        ) from error


def _decisions(trial: Trial, fold_weights: Matrix) -> Indices:
    """Decisions for the rows of tuned classes, each by the weights of its fold."""
    rows = trial.tuned_rows
    probabilities, folds = trial.evidence.probabilities[rows], trial.folds[rows]
    decided = np.empty(len(rows), dtype=np.intp)
    for fold, weights in enumerate(fold_weights):
        here = folds == fold
        decided[here] = decide(probabilities[here], weights)
    return decided


def _value(trial: Trial, goal: Goal, decided: Indices) -> float:
    """The goal's value; a decision for a class that was not tuned is an error like any other."""
    rows, k = trial.tuned_rows, len(trial.classes)
    weight = trial.evidence.sample_weight[rows]
    cells = trial.evidence.labels[rows] * k + decided
    counts = np.asarray(np.bincount(cells, weights=weight, minlength=k * k), dtype=np.float64)
    table = counts.reshape(k, k)
    hits, decisions, totals = np.diag(table), table.sum(axis=0), table.sum(axis=1)
    tuned = ~trial.few
    outcomes = Outcomes(hits[None, tuned], decisions[None, tuned], totals[tuned])
    return float(goal.values(outcomes)[0])


def _intervals(trial: Trial, decided: Indices) -> RiskIntervals:
    """Risks of all classes; that of a class of too few rows is nan, somewhere from 0 to 1."""
    rows, tuned = trial.tuned_rows, np.flatnonzero(~trial.few)
    weights = trial.evidence.sample_weight[rows]
    found = class_risk_intervals(
        trial.evidence.labels[rows], decided, classes=tuned, sample_weight=weights
    )

    def with_few(values: ByClass, unknown: float) -> ByClass:
        every = np.full(len(trial.classes), unknown)
        every[tuned] = np.asarray(values)
        return ByClass(every, trial.classes)

    return RiskIntervals(
        with_few(found.risks, np.nan),
        with_few(found.lower, 0.0),
        with_few(found.upper, 1.0),
        found.confidence,
        found.simultaneous,
        found.method,
        found.approximate,
    )
