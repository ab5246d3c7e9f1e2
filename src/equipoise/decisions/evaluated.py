"""What decisions do to held-out rows: confusion tables, class risks with intervals, and values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.folds import Folds
from equipoise.decisions.held_out import HeldOut
from equipoise.decisions.tune import Tuned
from equipoise.goals import Criterion
from equipoise.goals.labelled_predictions import confusion_table, decide
from equipoise.risks.intervals import RiskIntervals, counted_intervals

# GROUPS: of rows that the jackknife leaves out in turn, for standard errors known to a sixth.
GROUPS = 20


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Held-out rows by true and predicted class, and what follows from them.

    Row ``x`` is predicted as ``predicted`` by the rule that was tuned without its fold, and as
    ``final`` by the rule that is returned; its most probable class is ``default``, where it is not
    ``predicted``. The row stands for ``times`` rows of the weight ``weights`` each. Classes of too
    ``few`` rows are not evaluated; ``prior`` are the class frequencies of the population.
    ``tested_per_trained`` are held-out rows for each training row where the model was trained once
    more on all rows, else 0; None where the rule was known.
    """

    labels: Indices
    predicted: Indices
    final: Indices
    fold: Indices
    weights: Vector
    few: Mask
    prior: Vector
    tested_per_trained: float | None = 0.0
    times: Indices | None = None
    default: Indices | None = None

    @cached_property
    def rows(self) -> Indices:
        """Rows of the classes that are evaluated."""
        return np.flatnonzero(~self.few[self.labels])

    @cached_property
    def table(self) -> Matrix:
        """Weight by true and predicted class, with class frequencies of the population.

        Only classes that are evaluated have a row; columns of the others come last.
        """
        often = 1.0 if self.times is None else self.times[self.rows]
        return self._table(self.weights[self.rows] * often)

    def _table(self, weights: Vector) -> Matrix:
        rows, k = self.rows, len(self.few)
        found = confusion_table(self.labels[rows], self.predicted[rows], weights, k)
        order = np.argsort(self.few, kind="stable")
        return (found * self._factors[:, None])[~self.few][:, order]

    @cached_property
    def counts(self) -> Matrix:
        """Weight of the rows by true and predicted class, of all classes."""
        return self._counts(self.predicted)

    @cached_property
    def default_counts(self) -> Matrix:
        """The same by true and most probable class."""
        return self._counts(self.predicted if self.default is None else self.default)

    def _counts(self, predicted: Indices) -> Matrix:
        often = self.weights if self.times is None else self.weights * self.times
        return confusion_table(self.labels, predicted, often, len(self.few))

    @cached_property
    def _factors(self) -> Vector:
        """What gives the classes their frequencies in the population."""
        own = self.weights if self.times is None else self.weights * self.times
        totals = np.bincount(self.labels, own, minlength=len(self.few))
        return np.divide(self.prior, totals, out=np.zeros_like(totals), where=totals > 0)

    @cached_property
    def _groups(self) -> Matrix:
        """The weight of every row in each group: rows are dealt out class by class."""
        rows = self.rows
        weights, found = self.weights[rows], np.zeros((GROUPS, len(rows)))
        if self.times is not None:
            drawn = np.random.default_rng(0).multinomial(self.times[rows], [1 / GROUPS] * GROUPS)
            return np.asarray(drawn.T * weights)
        order = np.argsort(self.labels[rows], kind="stable")
        found[np.arange(len(rows)) % GROUPS, order] = weights[order]
        return found

    def value(self, criterion: Criterion) -> float:
        """The value of a criterion among the classes that are evaluated."""
        return criterion.value(self.table)

    def values_without(self, criterion: Criterion) -> Vector:
        """Values with each of the jackknife's groups left out."""
        return np.array([criterion.value(self.table - self._table(own)) for own in self._groups])

    def class_risks_without(self, group: int) -> Vector:
        """Class risks with one of the jackknife's groups left out; nan for a class without rows."""
        rows, k, own = self.rows, len(self.few), self._groups.sum(axis=0) - self._groups[group]
        labels = self.labels[rows]
        totals = np.bincount(labels, own, minlength=k)
        errors = np.bincount(labels, own * (self.predicted[rows] != labels), minlength=k)
        return np.asarray(np.divide(errors, totals, out=np.full(k, np.nan), where=totals > 0))

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """Sums over the rows of every fold and class, of shape (n_folds, 5, n_classes).

        They are the number of rows, their weight, the weight of errors, the squares of shares in
        the weight of the class, and the weight of errors of the rule that is returned.
        """
        rows, k = self.rows, len(self.few)
        labels, fold, weights = self.labels[rows], self.fold[rows], self.weights[rows]
        often = np.ones(len(rows)) if self.times is None else self.times[rows]
        totals = np.bincount(labels, weights * often, minlength=k)
        shares = weights / totals[labels]
        wrong, finally_wrong = (
            weights * (each[rows] != labels) for each in (self.predicted, self.final)
        )
        every = np.ones(len(rows)), weights, wrong, shares**2, finally_wrong
        n_folds = int(self.fold.max(initial=0)) + 1
        cells = fold * k + labels
        return np.stack(
            [
                np.bincount(cells, v * often, minlength=n_folds * k).reshape(n_folds, k)
                for v in every
            ],
            axis=1,
        ).astype(np.float64)

    @property
    def default_sums(self) -> NDArray[np.float64]:
        """The same of default predictions, of shape (n_folds, 4, n_classes)."""
        default = self.predicted if self.default is None else self.default
        return replace(self, predicted=default, final=default).sums[:, :4]

    def intervals(self, classes: NDArray[np.generic], n_candidates: int = 1) -> RiskIntervals:
        """Class risks with intervals, for one of so many candidates."""
        return counted_intervals(
            self.sums, classes, refit=self.tested_per_trained, choices=n_candidates
        )


def evaluate(
    held_out: HeldOut, tuned: Tuned, few: Mask, prior: Vector, tested_per_trained: float | None
) -> Evaluated:
    """Held-out rows, each predicted by the rule that was tuned without its fold."""
    rows, fold = held_out.predictions, held_out.fold
    final = decide(rows.probabilities, tuned.rule)
    predicted = final.copy()
    for place, rule in enumerate(tuned.by_fold):
        own = np.flatnonzero(fold == place)
        predicted[own] = decide(rows.probabilities[own], rule)
    return Evaluated(
        rows.labels, predicted, final, fold, rows.sample_weight, few, prior, tested_per_trained,
        default=np.argmax(rows.probabilities, axis=1),
    )  # fmt: skip


def evaluate_labels(
    labels: Indices, predicted: Indices, weights: Vector, folds: Folds, prior: Vector
) -> Evaluated:
    """Held-out rows that a model, trained without their fold, predicts by itself."""
    few = np.zeros(len(prior), dtype=bool)
    return Evaluated(
        labels, predicted, predicted, folds.fold, weights, few, prior, folds.tested_per_trained
    )
