r"""Decision weights tuned on folds, steadied where rows are few, and judged on rows left out.

Tuned weights fit the noise of their rows, the more so the fewer rows a class has. They are
therefore averaged over the folds, each left out in turn, and drawn towards balanced ones,

.. math:: \log w = (1 - \lambda) \, \overline{\log w_{-f}} + \lambda \log w_{\mathrm{balanced}},

with an amount :math:`\lambda` that is chosen by cross-validation over the folds. What is reported
of fold ``f`` comes from weights that were tuned, and from an amount that was chosen, without it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.decisions import Evidence, Goal, bagged, decide, shrunk
from equipoise.weights.priors import balanced_weights

# Amounts of shrinkage that are compared. Of amounts whose values differ by less than this share of
# a standard error the largest is taken; a whole one gives too much away where rows are many.
AMOUNTS = (0.0, 0.25, 0.5, 0.75, 1.0)
NOISE = 0.25
# Where every class has so many rows, weights are averaged over resamples of each part as well.
ENOUGH_ROWS, RESAMPLES = 100, 10
# Groups of rows that the jackknife leaves out in turn.
GROUPS = 20

Shrinkage = float | Literal["auto"]
Folds = frozenset[int]


@dataclass(frozen=True, eq=False)
class Choice:
    """Decision weights, and how far they were drawn towards balanced ones."""

    weights: Vector
    amount: float


class FoldTuner:
    """Tunes decision weights on the folds of the evidence, with any of them left out.

    Parameters
    ----------
    evidence : Evidence
        All rows; every class has rows in three folds or more.
    folds : array of shape (n_rows,)
        Fold of every row, ``0..n_folds-1``.
    goal : Goal
        What the weights are for.
    shrinkage : float or "auto"
        The amount of shrinkage of the best weights for the rows; or the wish to average them over
        the folds and to choose the amount.
    """

    def __init__(
        self, evidence: Evidence, folds: Indices, goal: Goal, shrinkage: Shrinkage
    ) -> None:
        self.evidence, self.folds, self.goal, self.shrinkage = evidence, folds, goal, shrinkage
        self.n_folds = int(folds.max()) + 1
        self._reference = balanced_weights(evidence.prior)
        self._tuned: dict[Folds, Vector] = {}

    def choose(self, left_out: Folds = frozenset()) -> Choice:
        """Weights from all folds but those left out."""
        if self.shrinkage != "auto":
            amount = self.shrinkage
            return Choice(shrunk(self._tune(left_out), self._reference, amount), amount)
        others = [left_out | {fold} for fold in range(self.n_folds) if fold not in left_out]
        amount = self._best_amount(left_out)
        logs = [np.log(self._tune(rest)) for rest in others]
        average = np.exp(np.mean([log - log.mean() for log in logs], axis=0))
        return Choice(shrunk(average, self._reference, amount), amount)

    def _tune(self, left_out: Folds) -> Vector:
        # Two folds are left out together once for each of them.
        if left_out not in self._tuned:
            rows = np.flatnonzero(~np.isin(self.folds, list(left_out)))
            self._tuned[left_out] = self._weights(self.evidence.take(rows))
        return self._tuned[left_out]

    def _weights(self, evidence: Evidence) -> Vector:
        if self.shrinkage != "auto" or not self.goal.bags_well:
            return self.goal.tune(evidence).weights
        if min(len(rows) for rows in evidence.by_class) < ENOUGH_ROWS:
            return self.goal.tune(evidence).weights
        return bagged(evidence, self.goal, RESAMPLES).tuned.weights

    def _best_amount(self, left_out: Folds) -> float:
        """The largest amount that is as good as the best, up to noise, on folds left out next."""
        inner = [fold for fold in range(self.n_folds) if fold not in left_out]
        rows = [np.flatnonzero(self.folds == fold) for fold in inner]
        tuned = [self._tune(left_out | {fold}) for fold in inner]
        judged = self.evidence.take(np.concatenate(rows))
        decisions = [
            self._decisions(rows, [shrunk(weights, self._reference, amount) for weights in tuned])
            for amount in AMOUNTS
        ]
        return AMOUNTS[_largest_as_good(judged, decisions, self.goal)]

    def _decisions(self, rows: list[Indices], weights: list[Vector]) -> Indices:
        probabilities = self.evidence.probabilities
        parts = [decide(probabilities[part], w) for part, w in zip(rows, weights, strict=True)]
        return np.concatenate(parts)


def _largest_as_good(judged: Evidence, decisions: list[Indices], goal: Goal) -> int:
    """The last candidate whose value is the lowest, up to the noise of the comparison."""
    tables = [_tables(judged, decided) for decided in decisions]
    values = np.array([goal.value(table.sum(axis=0)) for table in tables])
    without = np.array([_values_without_groups(table, goal) for table in tables])
    best = int(np.argmin(values))
    excess, excess_without = values - values[best], without - without[best]
    spread = excess_without - excess_without.mean(axis=1, keepdims=True)
    errors = np.sqrt((spread**2).sum(axis=1) * (GROUPS - 1) / GROUPS)
    return int(np.flatnonzero(excess <= NOISE * errors)[-1])


def _tables(judged: Evidence, decided: Indices) -> Matrix:
    """Tables of true class by decision, one for each of the jackknife's groups."""
    k = judged.n_classes
    cells = (_groups(judged.labels) * k + judged.labels) * k + decided
    counts = np.bincount(cells, weights=judged.sample_weight, minlength=GROUPS * k * k)
    return np.asarray(counts, dtype=np.float64).reshape(GROUPS, k, k)


def _groups(labels: Indices) -> Indices:
    """Rows dealt out to the groups class by class, so that no group takes all of a class."""
    order = np.argsort(labels, kind="stable")
    groups = np.empty_like(labels)
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels))])[labels[order]]
    groups[order] = (np.arange(len(labels)) - starts) % GROUPS
    return groups


def _values_without_groups(tables: Matrix, goal: Goal) -> Vector:
    total = tables.sum(axis=0)
    return np.array([goal.value(total - table) for table in tables])
