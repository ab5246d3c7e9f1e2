"""Held-out rows by true and predicted class: confusion tables, class risks, and values of goals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.held_out import HeldOut
from equipoise.decisions.tune import Task, Tuned
from equipoise.goals import Criterion
from equipoise.goals.labelled_predictions import confusion_table, decide, most_probable
from equipoise.goals.sparse_rows import Table

# GROUPS: groups of rows that the jackknife leaves out in turn: standard errors are then known to
# about a sixth, 1 / sqrt(2 * 19).
GROUPS = 20


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Held-out rows by true and predicted class, and what follows from them.

    Row ``x`` is predicted as ``predicted`` by the rule that was tuned without its fold, and as
    ``final`` by the rule that is returned; its most probable class is ``default``, where it is not
    ``predicted``. Abstained rows have the index after the last class, and are errors. Rows that
    agree in all of these may be one entry: ``weights`` is then the sum of their weights,
    ``squares`` that of the squares, and ``times`` their number. Classes of too ``few`` rows are not
    evaluated; ``prior`` are the class frequencies of the population, ``tested_per_trained`` as in
    :class:`HeldOut`, and None where the rule was known.
    ``clusters`` are numbers of groups of rows that belong together, such as a patient's: they are
    left out together, and intervals are for so many groups rather than rows.
    """

    labels: Indices
    predicted: Indices
    final: Indices
    fold: Indices
    weights: Vector
    few: Mask
    prior: Vector
    tested_per_trained: float | None = 0.0
    default: Indices | None = None
    times: Indices | None = None
    squares: Vector | None = None
    clusters: Indices | None = None

    @cached_property
    def rows(self) -> Indices:
        """Rows of the classes that are evaluated."""
        return np.flatnonzero(~self.few[self.labels])

    @cached_property
    def table(self) -> Table:
        """Weight by true and predicted class, with class frequencies of the population.

        Only classes that are evaluated have a row; columns of the others come last, and then that
        of abstained rows, if there are any.
        """
        return self._table(self.weights[self.rows])

    def _table(self, weights: Vector) -> Table:
        rows, shape = self.rows, self._shape
        labels, order = self.labels[rows], np.argsort(self.few, kind="stable")
        order = np.append(order, np.arange(len(order), shape[1]))
        weights = weights * self._factors[labels]
        return confusion_table(labels, self.predicted[rows], weights, *shape)[~self.few][:, order]

    @cached_property
    def _shape(self) -> tuple[int, int]:
        """The numbers of classes and of decisions, one more where a row was abstained from."""
        k = len(self.few)
        return k, k + bool(np.any(self.predicted == k))

    @cached_property
    def _factors(self) -> Vector:
        """Factors that give the classes their frequencies in the population."""
        totals = np.bincount(self.labels, self.weights, minlength=len(self.few))
        return np.divide(self.prior, totals, out=np.zeros_like(totals), where=totals > 0)

    @cached_property
    def _groups(self) -> Matrix:
        """The weight of every row in each group: rows are dealt out class by class."""
        rows = self.rows
        weights, groups = self.weights[rows], np.zeros((GROUPS, len(rows)))
        if self.clusters is not None:
            groups[self.clusters[rows] % GROUPS, np.arange(len(rows))] = weights
            return groups
        if self.times is not None:
            times = self.times[rows]
            drawn = np.random.default_rng(0).multinomial(times, [1 / GROUPS] * GROUPS)
            return np.asarray(drawn.T * (weights / times))
        order = np.argsort(self.labels[rows], kind="stable")
        groups[np.arange(len(rows)) % GROUPS, order] = weights[order]
        return groups

    def value(self, criterion: Criterion) -> float:
        """The value of a criterion among the classes that are evaluated."""
        return criterion.value(self.table)

    def values_without(self, criterion: Criterion) -> Vector:
        """Values with each of the jackknife's groups left out."""
        return np.array([criterion.value(self.table - self._table(g)) for g in self._groups])

    def class_risks_without(self, group: int) -> Vector:
        """Class risks with one of the jackknife's groups left out; nan for a class without rows."""
        rows, k = self.rows, len(self.few)
        labels, weights = self.labels[rows], self._groups.sum(axis=0) - self._groups[group]
        totals = np.bincount(labels, weights, minlength=k)
        errors = np.bincount(labels, weights * (self.predicted[rows] != labels), minlength=k)
        return np.asarray(np.divide(errors, totals, out=np.full(k, np.nan), where=totals > 0))

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """Sums over the rows of every fold and class, of shape (n_folds, 5, n_classes).

        They are the number of rows, their weight, the weight of errors, the squares of shares in
        the weight of the class, and the weight of errors of the rule that is returned.
        """
        rows, k = self.rows, len(self.few)
        labels, weights = self.labels[rows], self.weights[rows]
        totals = np.bincount(labels, weights, minlength=k)
        times = np.ones(len(rows)) if self.times is None else self.times[rows]
        squares = weights**2 if self.squares is None else self.squares[rows]
        wrong, finally_wrong = (
            weights * (each[rows] != labels) for each in (self.predicted, self.final)
        )
        cells, n_folds = self.fold[rows] * k + labels, int(self.fold.max(initial=0)) + 1
        squares = squares / totals[labels] ** 2
        if self.clusters is not None:
            squares = self._squares(labels, weights / totals[labels], wrong)
        values = times, weights, wrong, squares, finally_wrong
        sums = [np.bincount(cells, each, minlength=n_folds * k) for each in values]
        return np.stack([each.reshape(n_folds, k) for each in sums], axis=1).astype(np.float64)

    def _squares(self, labels: Indices, shares: Vector, wrong: Vector) -> Vector:
        """Squares of shares that give the variance of a class risk between groups of rows.

        A class without errors, or without a row that is right, shows no spread: then a group
        counts as a single row. No group counts as more than its rows.
        """
        k, errors = len(self.few), (wrong > 0).astype(np.float64)
        risks = np.bincount(labels, shares * errors, minlength=k)
        assert self.clusters is not None
        cells, cell_of_row = np.unique(self.clusters[self.rows] * k + labels, return_inverse=True)

        def between(values: Vector) -> Vector:
            sums = np.bincount(cell_of_row, values)
            return np.bincount(cells % k, sums**2, minlength=k).astype(np.float64)

        whole, spread = between(shares), between(shares * (errors - risks[labels]))
        binomial = risks * (1 - risks)
        squares = np.divide(spread, binomial, out=whole, where=binomial > 0)
        squares = np.maximum(squares, np.bincount(labels, shares**2, minlength=k))
        return np.asarray(shares * squares[labels])

    @property
    def by_default(self) -> Evaluated:
        """The same rows, each predicted as its most probable class."""
        default = self.predicted if self.default is None else self.default
        return replace(self, predicted=default, final=default)

    @cached_property
    def counts(self) -> Table:
        """Weight of the rows by true and predicted class, of all classes.

        A last column is that of abstained rows, if there are any.
        """
        return confusion_table(self.labels, self.predicted, self.weights, *self._shape)

    @property
    def predicted_shares(self) -> Vector:
        """Shares of the population that are predicted as each class."""
        return self._shares[: len(self.few)]

    @property
    def abstained_share(self) -> float:
        """Share of the population that is predicted as no class."""
        return float(self._shares[len(self.few) :].sum())

    @property
    def _shares(self) -> Vector:
        weights = self._factors[self.labels] * self.weights
        return np.bincount(self.predicted, weights, minlength=len(self.few)).astype(np.float64)

    def and_also(self, other: Evaluated) -> Evaluated:
        """These rows and others."""
        entries = "labels", "predicted", "final", "fold", "weights", "default", "times", "squares"
        ours, theirs = self._complete, other._complete
        joined: dict[str, Any] = {
            n: np.concatenate([getattr(ours, n), getattr(theirs, n)]) for n in entries
        }
        return replace(self, **joined)

    @property
    def _complete(self) -> Evaluated:
        """The same, nothing left out."""
        return replace(
            self,
            default=self.by_default.predicted,
            times=np.ones(len(self.labels), dtype=np.intp) if self.times is None else self.times,
            squares=self.weights**2 if self.squares is None else self.squares,
        )


def evaluate(held_out: HeldOut, tuned: Tuned, task: Task) -> Evaluated:
    """Held-out rows, each predicted by the rule that was tuned without its fold."""
    rows, fold = held_out.predictions, held_out.fold
    final = decide(rows.probabilities, tuned.rule)
    predicted = final.copy()
    for index, rule in enumerate(tuned.by_fold):
        part = np.flatnonzero(fold == index)
        predicted[part] = decide(rows.probabilities[part], rule)
    ratio = held_out.tested_per_trained
    if task.goal.is_known and not ratio:
        ratio = None
    default = most_probable(rows.probabilities)
    weights = rows.sample_weight
    return Evaluated(
        rows.labels, predicted, final, fold, weights, task.few, task.prior, ratio, default
    )
