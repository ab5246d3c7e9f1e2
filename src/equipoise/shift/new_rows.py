"""New rows as likelihoods of the classes, in bounded memory: a stratified sample of large numbers.

Conventions
-----------
``table`` : float64, shape ``(n_rows, n_classes)``, likelihoods of the classes for a row, up to a
    factor of the row.
``counts`` : how many rows each of them stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.objectives.sampling import evenly

# MOST_KEPT: rows that are kept. An estimate from these is known to 0.2 points or better.
MOST_KEPT = 100_000


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows of the new population: all of them, or of each most likely class as many as fit.

    ``strata`` are the most likely classes of the rows that are kept, ``totals`` the numbers of all
    rows by most likely class.

    Examples
    --------
    >>> rows = NewRows.of(np.eye(2)[[0] * 90 + [1] * 10])
    >>> few = rows.thinned(20)
    >>> len(few.table), few.totals.tolist(), np.bincount(few.strata, few.counts).tolist()
    (20, [90, 10], [90.0, 10.0])
    """

    table: Matrix
    strata: Indices
    totals: Indices

    @classmethod
    def of(cls, table: Matrix) -> NewRows:
        strata = table.argmax(axis=1)
        return cls(table, strata, np.bincount(strata, minlength=table.shape[1]))

    @property
    def n_rows(self) -> int:
        """Rows of the new population, also those that are not kept."""
        return int(self.totals.sum())

    @property
    def kept_by_class(self) -> Indices:
        return np.bincount(self.strata, minlength=len(self.totals))

    @property
    def is_whole(self) -> bool:
        return len(self.strata) == self.n_rows

    @property
    def counts(self) -> Indices:
        """How many rows each row that is kept stands for; whole numbers with the right sums."""
        kept = self.kept_by_class
        if self.is_whole:
            return np.ones(len(self.strata), dtype=np.intp)
        order = np.argsort(self.strata, kind="stable")
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(kept) - kept, kept)
        base, rest = np.divmod(self.totals, np.maximum(kept, 1))
        return np.asarray(base[self.strata] + (rank < rest[self.strata]))

    def and_also(self, other: NewRows, most: int = MOST_KEPT) -> NewRows:
        """These rows and others; of more than ``most`` a sample of both."""
        if not self.n_rows or not other.n_rows:
            return (self if self.n_rows else other).thinned(most)
        joined = NewRows(
            np.concatenate([self.table, other.table]),
            np.concatenate([self.strata, other.strata]),
            self.totals + other.totals,
        )
        if self.is_whole and other.is_whole:
            return joined.thinned(most)
        return self._drawn_with(other, joined, most)

    def _drawn_with(self, other: NewRows, joined: NewRows, most: int) -> NewRows:
        """Of each class the same share of the rows of both, so that neither counts too much."""
        rate = evenly(joined.totals, most) / np.maximum(joined.totals, 1)
        for part in (self, other):
            kept = part.kept_by_class / np.maximum(part.totals, 1)
            rate = np.where(part.totals > 0, np.minimum(rate, kept), rate)
        rng = np.random.default_rng(joined.n_rows)
        drawn = []
        for part, first in ((self, 0), (other, len(self.strata))):
            wanted = np.minimum(np.ceil(rate * part.totals), part.kept_by_class).astype(np.intp)
            drawn.append(first + _some(part.strata, wanted, rng))
        rows = np.concatenate(drawn)
        return replace(joined, table=joined.table[rows], strata=joined.strata[rows])

    def thinned(self, most: int) -> NewRows:
        """At most ``most`` rows: of each most likely class as many, or all that there are."""
        if len(self.strata) <= most:
            return self
        wanted = evenly(self.kept_by_class, most)
        rows = _some(self.strata, wanted, np.random.default_rng(0))
        return replace(self, table=self.table[rows], strata=self.strata[rows])

    def sampling_variance(self, values: Matrix) -> Matrix:
        """Covariance of the mean of values over all rows, of which only some are kept."""
        k = values.shape[1]
        covariance = np.zeros((k, k))
        if self.is_whole:
            return covariance
        kept = self.kept_by_class
        for i in np.flatnonzero((kept < self.totals) & (kept > 1)):
            class_covariance = np.cov(values[self.strata == i].T)
            share = self.totals[i] / self.n_rows
            covariance += share**2 * (1 / kept[i] - 1 / self.totals[i]) * class_covariance
        return covariance


def _some(strata: Indices, wanted: Indices, rng: np.random.Generator) -> Indices:
    """Rows drawn at random, so many of each class, in their order."""
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    sizes = np.bincount(strata, minlength=len(wanted))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.sort(order[rank < np.repeat(wanted, sizes)])


def weighted_mean(values: Matrix, counts: Vector | Indices) -> Vector:
    """The mean of values over all rows."""
    return np.asarray(counts @ values / counts.sum())
