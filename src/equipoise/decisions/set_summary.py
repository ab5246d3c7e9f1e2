"""Sets of labels on held-out rows: coverage by class with intervals, and sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.decisions.conformal import CoverageTask, calibration_rows, in_sets, thresholds
from equipoise.decisions.summary import ShownAsTable, SummaryTable
from equipoise.extras import require
from equipoise.risks.intervals import RiskIntervals, counted_intervals
from equipoise.text import share_text
from equipoise.weights.by_class import ByClass


@dataclass(frozen=True, eq=False, repr=False)
class SetSummary(ShownAsTable):
    """Coverage and sizes of prediction sets on held-out rows.

    Attributes
    ----------
    rows : held-out rows of each class.
    misses : shares of the rows of each class whose set lacks it, with intervals.
    sizes : mean size of the sets of the rows of each class.
    class_prior : class frequencies of the population, which means over all rows are for.
    singles, empties : shares of rows whose sets have one label, and none.
    always : classes that are in every set, as too few rows show more.

    Examples
    --------
    >>> sets = np.array([[True, False], [True, True], [False, True], [True, False]])
    >>> print(evaluated_sets(sets, np.array([0, 0, 1, 1]), np.array(["a", "b"]), np.ones(2) / 2))
    class         rows coverage  95% interval mean size
    a                2   100.0% 15.8 to 100.0%      1.50
    b                2    50.0%   1.3 to 98.7%      1.00
    all rows: coverage 75.0%, mean size 1.25, one label 75.0%, no label 0.0%
    """

    rows: Indices
    misses: RiskIntervals
    sizes: ByClass
    class_prior: ByClass
    singles: float
    empties: float
    always: tuple[Any, ...] = ()

    @property
    def class_coverage(self) -> ByClass:
        """The share of the rows of each class whose set holds it."""
        return ByClass(1 - np.asarray(self.misses.risks), self.misses.risks.classes)

    def _mean(self, values: Any, prior: Any) -> float:
        known = self.rows > 0
        if not known.any():
            return float("nan")
        shares = np.where(known, np.asarray(prior), 0.0)
        return float(shares[known] @ np.asarray(values)[known] / shares.sum())

    @property
    def coverage(self) -> float:
        """Coverage at the class frequencies of the population."""
        return self._mean(self.class_coverage, self.class_prior)

    @property
    def macro_coverage(self) -> float:
        """The mean of the classes' coverages."""
        return self._mean(self.class_coverage, np.ones(len(self.rows)))

    @property
    def mean_size(self) -> float:
        """Mean number of labels at the class frequencies of the population."""
        return self._mean(self.sizes, self.class_prior)

    def to_frame(self) -> Any:
        """Rows, coverage with its interval, and mean size, one line a class, as a DataFrame."""
        covered = self.class_coverage
        columns = {
            "rows": self.rows,
            "coverage": np.asarray(covered),
            "lower": 1 - np.asarray(self.misses.upper),
            "upper": 1 - np.asarray(self.misses.lower),
            "mean_size": np.asarray(self.sizes),
        }
        return require("pandas", extra="report").DataFrame(columns, index=covered.classes)

    @property
    def _table(self) -> SummaryTable:
        lines = []
        shown = zip(self.rows.tolist(), self.misses.items(), self.sizes.values(), strict=True)
        for count, (name, miss), size in shown:
            ends = f"{100 * (1 - miss.upper):.1f} to {100 * (1 - miss.lower):.1f}%"
            cells = (share_text(1 - miss.estimate), ends, f"{size:.2f}") if count else ("", "", "")
            lines.append((str(name), str(count), *cells))
        notes = {
            "all rows": f"coverage {share_text(self.coverage)}, mean size {self.mean_size:.2f}, "
            f"one label {share_text(self.singles)}, no label {share_text(self.empties)}"
        }
        if self.always:
            notes["in every set, for too few rows"] = ", ".join(map(str, self.always))
        header = ("class", "rows", "coverage", "95% interval", "mean size")
        return SummaryTable(header, lines, notes)


def evaluated_sets(
    sets: Mask,
    labels: Indices,
    classes: NDArray[Any],
    prior: Vector,
    fold: Indices | None = None,
    lowest: Vector | None = None,
) -> SetSummary:
    """Coverage and sizes of sets of labelled rows; of folds, where each had a rule of its own."""
    k, weights = len(classes), 1.0 / np.bincount(labels, minlength=len(classes))[labels]
    missed = ~sets[np.arange(len(labels)), labels]
    size = sets.sum(axis=1)
    counts = np.bincount(labels, minlength=k)
    each = np.zeros(len(labels), dtype=np.intp) if fold is None else fold
    cells, n_folds = each * k + labels, int(each.max(initial=0)) + 1
    ones = np.ones(len(labels))
    sums = [
        np.bincount(cells, values, minlength=n_folds * k).reshape(n_folds, k)
        for values in (ones, ones, missed.astype(np.float64), weights**2)
    ]
    misses = counted_intervals(np.stack(sums, axis=1), classes, refit=None if fold is None else 0.0)
    totals = np.bincount(labels, size, minlength=k)
    sizes = np.divide(totals, counts, out=np.full(k, np.nan), where=counts > 0)
    shares = prior[labels] * weights
    shares = shares / shares.sum()
    always = () if lowest is None else tuple(classes[lowest == -np.inf].tolist())
    return SetSummary(
        counts,
        misses,
        ByClass(sizes, classes),
        ByClass(prior, classes),
        float(shares @ (size == 1)),
        float(shares @ (size == 0)),
        always,
    )


def sets_without_fold(
    probabilities: Matrix, labels: Indices, fold: Indices, task: CoverageTask
) -> Mask:
    """The sets of rows, each from thresholds that were calibrated without its fold."""
    rows, sets = calibration_rows(probabilities, labels), np.empty(probabilities.shape, dtype=bool)
    for each in np.unique(fold).tolist():
        part = fold == each
        sets[part] = in_sets(probabilities[part], thresholds(rows.take(~part), task))
    return sets
