r"""Every candidate judged on rows that it has not seen, under every set of weightings.

.. math:: C_{f Q} = \max_{q \in Q} \sum_i q_i p_i R_i(f), \qquad
          \text{regret}_{f Q} = C_{f Q} - \min_g C_{g Q}

The recommended candidate is the one whose largest regret over the sets of weightings is the
smallest, or the plainest of those that come within half a percentage point of it. Classes of too
few rows are shown and left out of these costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.report.design import Candidate, Design, make_candidates, make_weightings
from equipoise.report.held_out import HeldOutPredictions, Progress, held_out_predictions
from equipoise.risks import ClassRisks, RiskInterval, RiskIntervals
from equipoise.risks.intervals import counted_intervals, counted_worst
from equipoise.sets import Uncertainty
from equipoise.tables import LabelledTable
from equipoise.weights.by_class import ByClass

CONFIDENCE = 0.95
# Regrets that differ by less are called the same.
SAME = 0.005


@dataclass(frozen=True, eq=False)
class HeldOutRisks:
    """What the rows judged say about one candidate.

    ``intervals`` are those of the classes that are judged, by class index; ``risks`` those of the
    classes that decide, by name, and ``worst`` is the worst of them. ``taken_for`` has the class
    that each class with an error is most often taken for, and the share of its rows.
    """

    intervals: RiskIntervals
    risks: ClassRisks
    worst: RiskInterval
    taken_for: dict[int, tuple[int, float]]


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The place of the candidate to take, and what speaks for it.

    ``plain`` is the candidate that errs least over all rows, ``largest_regrets`` the most that
    each costs beyond the best one, ``stability`` the share of resamplings of the judged rows that
    recommend the same; the others recommend ``rivals``, the most frequent first.
    """

    place: int
    plain: int
    largest_regrets: Vector
    stability: float
    rivals: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Findings:
    """All numbers of a comparison.

    ``risks`` has an entry for each candidate, ``path_risks`` one for each level of alpha, ``costs``
    and ``regrets`` a row for each candidate and a column for each set of weightings.
    """

    design: Design
    candidates: tuple[Candidate, ...]
    weightings: Mapping[str, Uncertainty]
    predictions: HeldOutPredictions
    risks: tuple[HeldOutRisks, ...]
    path_risks: tuple[HeldOutRisks, ...]
    costs: Matrix
    regrets: Matrix
    recommendation: Recommendation
    seed: int


def find(
    table: LabelledTable,
    models: Sequence[str],
    uncertainties: Mapping[str, Any] | None,
    *,
    cv: int = 5,
    seed: int,
    progress: Progress | None,
) -> Findings:
    """Fit every candidate, judge it on rows it has not seen, and recommend one."""
    design = Design.for_table(table, cv, seed)
    weightings = make_weightings(uncertainties, table.prior[design.deciding])
    candidates = make_candidates(models, weightings)
    predictions = held_out_predictions(design, candidates, seed, progress)
    predicted = [predictions.by_label[candidate.label] for candidate in candidates]
    along = () if predictions.path is None else predictions.path.predicted
    risks = tuple(held_out_risks(design, each) for each in predicted)
    costs = cost_matrix(risks, weightings)
    resampled = resampled_costs(design, predicted, weightings, seed=seed)
    return Findings(
        design=design,
        candidates=candidates,
        weightings=weightings,
        predictions=predictions,
        risks=risks,
        path_risks=tuple(held_out_risks(design, each) for each in along),
        costs=costs,
        regrets=regrets_of(costs),
        recommendation=recommend(costs, resampled),
        seed=seed,
    )


def held_out_risks(design: Design, predicted: Indices) -> HeldOutRisks:
    """Judge the classes predicted for all rows."""
    rows, table, sums = design.judged, design.table, design.error_sums(predicted)
    weights, true, said = table.weights_at(rows), table.labels[rows], predicted[rows]
    judged = np.flatnonzero(design.estimable)
    intervals = counted_intervals(sums[:, :, judged], judged, CONFIDENCE, refit=design.refit)
    worst = counted_worst(sums[:, :, design.deciding], CONFIDENCE, refit=design.refit)
    deciding = np.flatnonzero(design.deciding).tolist()
    risks = ByClass([intervals.risks[label] for label in deciding], table.classes[deciding])
    taken, k = {}, len(table.classes)
    cells = np.bincount(true * k + said, weights=weights, minlength=k * k).reshape(k, k)
    for label in judged.tolist():
        shares = cells[label] / cells[label].sum()
        shares[label] = 0.0
        if shares.any():
            taken[label] = (int(shares.argmax()), float(shares.max()))
    return HeldOutRisks(intervals, ClassRisks(risks, design.prior), worst, taken)


def cost_matrix(risks: Sequence[HeldOutRisks], weightings: Mapping[str, Uncertainty]) -> Matrix:
    """Risk of every candidate (rows) under every set of weightings (columns)."""
    return np.array([[each.risks.robust(q) for q in weightings.values()] for each in risks])


def regrets_of(costs: Any) -> Any:
    """Costs minus the smallest of their column."""
    return costs - costs.min(axis=-2, keepdims=True)


def resampled_costs(
    design: Design,
    predicted: Sequence[Indices],
    weightings: Mapping[str, Uncertainty],
    *,
    times: int = 200,
    seed: int = 0,
) -> Matrix:
    """Costs if other rows had been judged: a bootstrap within each class, ``times`` matrices."""
    rng = np.random.default_rng(seed)
    deciding = np.flatnonzero(design.deciding).tolist()
    by_class = [_resampled_class(design, predicted, label, times, rng) for label in deciding]
    names = design.table.classes[deciding]
    sets = [uncertainty.resolve(design.prior, names) for uncertainty in weightings.values()]
    flat = np.stack(by_class, axis=-1).reshape(-1, len(deciding))
    costs = np.array([[float(masses.support(row)) for masses in sets] for row in flat])
    return costs.reshape(times, len(predicted), len(sets))


def _resampled_class(
    design: Design, predicted: Sequence[Indices], label: int, times: int, rng: np.random.Generator
) -> Matrix:
    """Risks of one class, shape (times, n_candidates).

    Rows on which the same candidates err are alike, so that only their numbers are drawn.
    """
    rows = design.judged[design.table.labels[design.judged] == label]
    errors = np.array([said[rows] != label for said in predicted])
    patterns, place = np.unique(errors, axis=1, return_inverse=True)
    weights = design.table.weights_at(rows)
    counts = np.bincount(place.ravel(), weights=weights)
    n_rows = len(rows)
    if weights is not None:
        # Weighted rows carry the information of fewer equal ones (Kish).
        n_rows = max(1, round(float(weights.sum() ** 2 / np.sum(weights**2))))
    drawn = rng.multinomial(n_rows, counts / counts.sum(), size=times)
    return np.asarray(drawn @ patterns.T / n_rows)


def recommend(costs: Matrix, resampled: Matrix) -> Recommendation:
    """The candidate for these costs, and how often resampled costs say the same."""
    largest = regrets_of(costs).max(axis=1)
    place = _plainest(largest)
    others = np.array([_plainest(each) for each in regrets_of(resampled).max(axis=2)])
    times = np.bincount(others, minlength=len(costs))
    rivals = [int(other) for other in np.argsort(-times, kind="stable") if times[other]]
    return Recommendation(
        place=place,
        plain=int(costs[:, 0].argmin()),
        largest_regrets=largest,
        stability=float(times[place] / len(others)),
        rivals=tuple(other for other in rivals if other != place),
    )


def _plainest(largest: Vector) -> int:
    """The first candidate, they are sorted from plain to elaborate, that is as good as the best."""
    return int(np.flatnonzero(largest <= largest.min() + SAME)[0])
