r"""Every choice judged on rows that it has not seen, under every idea of how much classes matter.

.. math:: C_{f Q} = \max_{q \in Q} \sum_i q_i p_i R_i(f), \qquad
          \text{regret}_{f Q} = C_{f Q} - \min_g C_{g Q}

Classes of fewer rows than :data:`DECIDING_ROWS` are shown and left out of these: one error more
or less in a handful of rows would decide which choice is the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Indices as Rows
from equipoise.arrays import Matrix, Vector
from equipoise.estimators.base import FEW_ROWS
from equipoise.report.folds import Design
from equipoise.risks import (
    ClassRisks,
    RiskInterval,
    RiskIntervals,
    class_risk_intervals,
    worst_class_interval,
)
from equipoise.sets import Uncertainty
from equipoise.tables import LabelledTable as Table
from equipoise.weights.by_class import ByClass

DECIDING_ROWS = FEW_ROWS
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the rows judged say about one choice.

    Attributes
    ----------
    intervals : RiskIntervals
        Risks of the classes that are judged, with their intervals.
    risks : ClassRisks
        Risks of the classes that decide, with their share of the population.
    worst : RiskInterval
        The risk of the worst of these.
    taken_for : tuple
        For each class judged: the place of the class it is most often taken for, and the share
        of its rows; None where there is no error.
    """

    intervals: RiskIntervals
    risks: ClassRisks
    worst: RiskInterval
    taken_for: tuple[tuple[int, float] | None, ...]


@dataclass(frozen=True, eq=False)
class Court:
    """The rows that are judged, and the classes that decide."""

    table: Table
    design: Design

    @cached_property
    def rows(self) -> Rows:
        """The rows that are judged and whose class can be."""
        judged = self.design.judged
        return judged[self.design.estimable[self.table.labels[judged]]]

    @cached_property
    def tested(self) -> Rows:
        """Rows judged of each class."""
        return np.bincount(self.table.labels[self.rows], minlength=len(self.table.classes))

    @cached_property
    def deciding(self) -> NDArray[np.bool_]:
        """Classes with rows enough to decide; all that are judged where fewer than two have."""
        enough = self.tested >= DECIDING_ROWS
        return enough if np.count_nonzero(enough) >= 2 else self.tested > 0

    @cached_property
    def prior(self) -> Vector:
        """Shares of the classes that decide, among themselves."""
        prior = self.table.prior[self.deciding]
        return np.asarray(prior / prior.sum())

    def verdict(self, predicted: Rows) -> Verdict:
        """Judge the classes predicted for all rows."""
        rows, weights = self.rows, self.table.weights_at(self.rows)
        true, said = self.table.labels[rows], predicted[rows]
        intervals = class_risk_intervals(true, said, confidence=CONFIDENCE, sample_weight=weights)
        decide = self.deciding[true]
        worst = worst_class_interval(
            true[decide],
            said[decide],
            confidence=CONFIDENCE,
            sample_weight=None if weights is None else weights[decide],
        )
        return Verdict(self._named(intervals), self._risks(intervals), worst, self._taken(said))

    def _named(self, found: RiskIntervals) -> RiskIntervals:
        names = self.table.classes[found.risks.classes]
        return replace(
            found,
            risks=ByClass(np.asarray(found.risks), names),
            lower=ByClass(np.asarray(found.lower), names),
            upper=ByClass(np.asarray(found.upper), names),
        )

    def _risks(self, found: RiskIntervals) -> ClassRisks:
        risks = np.array([found.risks[place] for place in np.flatnonzero(self.deciding).tolist()])
        return ClassRisks(ByClass(risks, self.table.classes[self.deciding]), self.prior)

    def _taken(self, said: Rows) -> tuple[tuple[int, float] | None, ...]:
        k, true = len(self.table.classes), self.table.labels[self.rows]
        weights = self.table.weights_at(self.rows)
        # A prediction of no class at all would have no place in the table.
        cells = np.bincount(true * k + said, weights=weights, minlength=k * k).reshape(k, k)
        found: list[tuple[int, float] | None] = []
        for label in np.flatnonzero(self.tested > 0):
            row = cells[label] / cells[label].sum()
            row[label] = 0.0
            other = int(row.argmax())
            found.append((other, float(row[other])) if row[other] > 0 else None)
        return tuple(found)


def cost_matrix(verdicts: Sequence[Verdict], worlds: Mapping[str, Uncertainty]) -> Matrix:
    """Risk of every choice (rows) under every set of weightings (columns)."""
    return np.array(
        [[verdict.risks.robust(world) for world in worlds.values()] for verdict in verdicts]
    )


def regrets_of(costs: Any) -> Any:
    """Costs minus the smallest of their column."""
    return costs - costs.min(axis=-2, keepdims=True)


def resampled_costs(
    court: Court,
    predicted: Sequence[Rows],
    worlds: Mapping[str, Uncertainty],
    *,
    times: int = 200,
    seed: int = 0,
) -> Matrix:
    """Costs of the choices if other rows had been judged: a bootstrap within each class.

    Returns
    -------
    costs : ndarray of shape (times, n_choices, n_worlds)
    """
    rng = np.random.default_rng(seed)
    risks = np.stack(
        [
            _resampled_class(court, predicted, label, times, rng)
            for label in np.flatnonzero(court.deciding).tolist()
        ],
        axis=-1,
    )
    names = court.table.classes[court.deciding]
    sets = [world.resolve(court.prior, names) for world in worlds.values()]
    flat = risks.reshape(-1, risks.shape[-1])
    costs = np.array([[float(masses.support(row)) for masses in sets] for row in flat])
    return costs.reshape(times, len(predicted), len(sets))


def _resampled_class(
    court: Court, predicted: Sequence[Rows], label: int, times: int, rng: np.random.Generator
) -> Matrix:
    """Risks of one class, shape (times, n_choices).

    Rows on which the same choices err are alike, so that only their numbers are drawn.
    """
    rows = court.rows[court.table.labels[court.rows] == label]
    errors = np.array([said[rows] != label for said in predicted])
    patterns, place = np.unique(errors, axis=1, return_inverse=True)
    weights = court.table.weights_at(rows)
    counts = np.bincount(place.ravel(), weights=weights)
    n_rows = len(rows)
    if weights is not None:
        # Weighted rows carry the information of fewer equal ones (Kish).
        n_rows = max(1, round(float(weights.sum() ** 2 / np.sum(weights**2))))
    drawn = rng.multinomial(n_rows, counts / counts.sum(), size=times)
    return np.asarray(drawn @ patterns.T / n_rows)
