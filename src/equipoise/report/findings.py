r"""Every candidate judged on rows that it has not seen, under every set of weightings.

.. math:: C_{f Q} = \max_{q \in Q} \sum_i q_i p_i R_i(f), \qquad
          \text{regret}_{f Q} = C_{f Q} - \min_g C_{g Q}

The recommended candidate is the one whose largest regret over the sets of weightings is the
smallest, or the plainest of those that come within half a percentage point of it. Classes of too
few rows are shown and left out of these costs.

The linear model is fitted for every set of weightings, and along alpha. The booster is fitted once
for each fold; its probabilities for the rows it has not seen serve all sets. A single weighting is
known, and decides by the paper's rule. For the other sets, a linear fit has small cross-entropies
rather than few errors: the decision weights that a fold is judged by, of both models, are tuned on
the other folds.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline

from equipoise.analysis import RobustPath, robust_path
from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.estimators import RobustLogisticRegression, tune_weights
from equipoise.exceptions import EquipoiseWarning, InactiveCapsWarning
from equipoise.goals import as_goal
from equipoise.report.design import (
    MANY_ROWS,
    TRAINS_ONLY,
    Candidate,
    Design,
    make_candidates,
    make_weightings,
)
from equipoise.risks import ClassRisks, RiskInterval, RiskIntervals
from equipoise.risks.intervals import counted_intervals
from equipoise.sets import LabelCVaR, Uncertainty, WorstClass, alpha_grid, as_uncertainty
from equipoise.tables import LabelledTable, booster_for, preprocessor
from equipoise.weights.by_class import ByClass

CONFIDENCE = 0.95
# Regrets that differ by less are called the same.
SAME = 0.005
# Called with the share of the work that is done, from 0 to 1, and what comes next.
Progress = Callable[[float, str], None]

# Levels of alpha along the path.
LEVELS = 9
# Work of a path of fits, each started from the last, of a booster's fit, and of the tuning for one
# set of weightings, in linear fits.
PATH_UNITS, BOOST_UNITS, TUNE_UNITS = 8.0, 6.0, 2.0
# Certified relative gap of the fits: shares of errors know nothing finer.
TOLERANCE = 1e-4
# No class is called impossible: weights that turn a decision against it would have no bound.
_LEAST = 1e-9


# What every candidate predicts for rows that its fits have not seen.


@dataclass(frozen=True, eq=False)
class AlphaPath:
    """Predictions along a grid of alpha: a row of each array for each value.

    Decisions of the levels below 1 are ``tuned``, unless there are too many classes for that.
    Caps of these bind until the set is that of all weightings, those of a fit may be slack before.
    The worst-case weights of the classes are the mean over the folds; ``n_rows`` are the training
    rows of each path at most, ``gap`` is the largest certified relative gap of the candidates.
    """

    alphas: Vector
    predicted: Indices
    weights: Matrix
    caps_bind: Mask
    n_rows: int
    gap: float
    tuned: bool


class FitRecord:
    """What the fits predict, by label, how far they have come, in units, what they warned of."""

    def __init__(self, total: float, progress: Progress | None) -> None:
        self._total, self._done = max(total, 1.0), 0.0
        self._progress = progress or (lambda share, what: None)
        self._notes: dict[str, str] = {}
        self.predicted: dict[str, Indices] = {}

    @contextmanager
    def step(self, what: str, units: float, label: str) -> Iterator[None]:
        """A piece of work; of each kind of the library's warnings one is enough to be warned."""
        self._progress(min(self._done / self._total, 1.0), what)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        self._done += units
        for warning in caught:
            kind = warning.category
            if issubclass(kind, EquipoiseWarning) and not issubclass(kind, InactiveCapsWarning):
                self._notes.setdefault(kind.__name__, f"{label}: {warning.message}")

    def end(self) -> tuple[str, ...]:
        """Say that all is done."""
        self._progress(1.0, "done")
        return tuple(self._notes.values())


def held_out_predictions(
    design: Design, candidates: Sequence[Candidate], seed: int, progress: Progress | None
) -> tuple[list[Indices], AlphaPath | None, dict[str, int], tuple[str, ...]]:
    """Fit every candidate to the training parts, and predict the rows that are judged.

    The class index predicted for every row by each candidate, -1 for rows that only train, and
    ``path``, ``sampled`` and ``notes`` of the findings.
    """
    linear = [each for each in candidates if each.model == "linear"]
    boosting = [each for each in candidates if each.model == "boosting"]
    tuned = sum(not each.is_known for each in candidates)
    tuned += LEVELS - 1 if linear and design.can_tune_levels else 0
    units = len(linear) + PATH_UNITS if linear else 0.0
    units += (BOOST_UNITS if boosting else 0.0) + TUNE_UNITS * tuned
    record = FitRecord(design.n_folds * units, progress)
    for each in candidates:
        record.predicted[each.label] = np.full(len(design.fold), TRAINS_ONLY, dtype=np.intp)
    path, sampled = None, {}
    is_large = np.count_nonzero(design.fold == TRAINS_ONLY) > MANY_ROWS
    if linear:
        path = _linear(design, linear, record, seed)
        if is_large:
            sampled["the slider"] = path.n_rows
    if boosting:
        size = _boosting(design, boosting, record, seed)
        if is_large:
            sampled["gradient boosting"] = size
    return list(record.predicted.values()), path, sampled, record.end()


@dataclass(frozen=True, eq=False)
class LinearFits:
    """Linear models fitted to one training part, along alpha and by candidate, and rows to predict.

    The path is fitted to ``n_rows`` of the part.
    """

    rows: Indices
    features: Any
    path: RobustPath
    n_rows: int
    own: dict[str, RobustLogisticRegression]


def _linear(
    design: Design, candidates: Sequence[Candidate], record: FitRecord, seed: int
) -> AlphaPath:
    """Predictions of the linear model, along alpha and of every candidate."""
    alphas = alpha_grid(design.table.prior[design.deciding], LEVELS)
    parts = [
        _linear_fits(design, part, alphas, candidates, record, seed) for part in design.parts()
    ]
    tunes = design.can_tune_levels
    wanted: list[tuple[str, Uncertainty | None, list[RobustLogisticRegression]]] = []
    for each in candidates:
        uncertainty = None if each.is_known else each.uncertainty
        wanted.append((each.label, uncertainty, [part.own[each.label] for part in parts]))
    for place, alpha in enumerate(alphas.tolist()):
        uncertainty = LabelCVaR(alpha) if tunes and place else None
        fits = [part.path.estimators[place] for part in parts]
        wanted.append((f"linear, alpha {alpha:.2g}", uncertainty, fits))
    along = np.full((LEVELS, len(design.fold)), TRAINS_ONLY, dtype=np.intp)
    found: dict[tuple[Any, ...], Indices] = {}
    for at, (label, uncertainty, fits) in enumerate(wanted, start=-len(candidates)):
        key = repr(uncertainty), *map(id, fits)
        if key not in found:
            units = 0.0 if uncertainty is None else TUNE_UNITS * design.n_folds
            with record.step(f"{label}: decisions", units, label):
                found[key] = _linear_decisions(design, uncertainty, parts, fits, seed)
        target = record.predicted[label] if at < 0 else along[at]
        target[design.judged] = found[key]
    own = [model for part in parts for model in part.own.values()]
    return AlphaPath(
        alphas=alphas,
        predicted=along,
        weights=np.mean(
            [[each.worst_case_weights_ for each in part.path.estimators] for part in parts], axis=0
        ),
        caps_bind=(
            np.array([not LabelCVaR(a).resolve(design.prior).is_simplex for a in alphas.tolist()])
            if tunes
            else np.any([part.path.caps_bind for part in parts], axis=0)
        ),
        n_rows=max(part.n_rows for part in parts),
        gap=max(model.duality_gap_ / max(model.objective_, 1e-3) for model in own),
        tuned=tunes,
    )


def _linear_fits(
    design: Design, part: tuple[str, Indices, Indices], alphas: Vector,
    candidates: Sequence[Candidate], record: FitRecord, seed: int,
) -> LinearFits:  # fmt: skip
    """Fits to a training part; those along alpha to a sample of it where it is large."""
    table, (name, train, test) = design.table, part
    with record.step(f"linear, along alpha ({name})", PATH_UNITS, "along alpha"):
        made = preprocessor(table.columns, "linear").fit(table.X.iloc[train])
        rows, new = made.transform(table.X.iloc[train]), made.transform(table.X.iloc[test])
        kept = stratified_sample(table.labels, train, MANY_ROWS, seed)
        path = robust_path(
            rows[np.searchsorted(train, kept)],
            table.y[kept],
            LabelCVaR(alpha=1.0),
            values=alphas.tolist(),
            estimator=RobustLogisticRegression(tol=TOLERANCE),
            sample_weight=table.weights_at(kept),
        )
    solved, own = _solved(path) if len(kept) == len(train) else {}, {}
    for candidate in candidates:
        with record.step(f"{candidate.label} ({name})", 1.0, candidate.label):
            model = solved.get(repr(candidate.uncertainty))
            if model is None:
                model = RobustLogisticRegression(candidate.uncertainty, tol=TOLERANCE)
                model.fit(rows, table.y[train], sample_weight=table.weights_at(train))
            own[candidate.label] = model
    return LinearFits(test, new, path, len(kept), own)


def _linear_decisions(
    design: Design, uncertainty: Uncertainty | None, parts: Sequence[LinearFits],
    fits: Sequence[RobustLogisticRegression], seed: int,
) -> Indices:  # fmt: skip
    """Decisions for the rows judged, tuned for a set, or those of the fits as they are."""
    probabilities = np.zeros((len(design.fold), len(design.table.classes)))
    for part, fit in zip(parts, fits, strict=True):
        probabilities[part.rows] = fit.predict_proba(part.features)
    if uncertainty is None:
        return np.asarray(np.argmax(probabilities[design.judged], axis=1))
    return decisions(design, uncertainty, probabilities, seed)


def _solved(path: RobustPath) -> dict[str, RobustLogisticRegression]:
    """The fits of a path by the sets whose problems they solve."""
    solved = {repr(fit.uncertainty): fit for fit in path.estimators}
    for fit in path.estimators:
        # From the smallest prior downwards nothing is capped any more.
        if as_uncertainty(fit.uncertainty).resolve(np.asarray(fit.class_prior_)).is_simplex:
            solved.setdefault(repr(WorstClass()), fit)
    return solved | {repr(as_uncertainty("standard")): path.estimators[0]}


def _boosting(design: Design, candidates: Sequence[Candidate], record: FitRecord, seed: int) -> int:
    """Predictions of the booster for every candidate; how many rows it was fitted to at most."""
    table, largest = design.table, 0
    probabilities = np.zeros((len(table.labels), len(table.classes)))
    for part, train, test in design.parts():
        with record.step(f"boosting ({part})", BOOST_UNITS, "boosting"):
            fitted = stratified_sample(table.labels, train, MANY_ROWS, seed)
            probabilities[test] = _probabilities(table, fitted, test, seed)
        largest = max(largest, len(fitted))
    for candidate in candidates:
        units = 0.0 if candidate.is_known else TUNE_UNITS * design.n_folds
        with record.step(f"{candidate.label}: decisions", units, candidate.label):
            record.predicted[candidate.label][design.judged] = decisions(
                design, candidate.uncertainty, probabilities, seed
            )
    return largest


def _probabilities(table: LabelledTable, train: Indices, rows: Indices, seed: int) -> Matrix:
    booster = booster_for(table.columns, random_state=seed, rarest=int(table.counts.min()))
    model = make_pipeline(preprocessor(table.columns, "boosting"), booster)
    weights = table.weights_at(train)
    options = {} if weights is None else {f"{model.steps[-1][0]}__sample_weight": weights}
    model.fit(table.X.iloc[train], table.labels[train], **options)
    # Every class is in every training part: the columns are those of the classes.
    found = np.maximum(model.predict_proba(table.X.iloc[rows]), _LEAST)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def decisions(
    design: Design, uncertainty: Uncertainty, probabilities: Matrix, seed: int = 0
) -> Indices:
    """Decisions for the rows judged, by weights that their labels had no part in.

    The probabilities are those of all rows, by models that have not seen them; the largest decides
    where the rows are too few to tune on.
    """
    table, goal, rows = design.table, as_goal(uncertainty), design.tuned_on
    weights = np.ones(len(table.classes))
    if goal.is_known:
        weights = np.asarray(goal.resolve(table.prior, table.classes).known(table.prior))
    elif design.can_tune:
        tuned = tune_weights(
            table.y[rows],
            probabilities[rows],
            uncertainty,
            classes=table.classes,
            sample_weight=table.weights_at(rows),
            folds=design.tuning_folds,
            class_prior=table.prior,
            rare="keep",
            random_state=seed,
        )
        weights = np.asarray(tuned.weights, dtype=np.float64)
        if design.n_folds > 1:
            weights = np.asarray(tuned.fold_weights)[tuned.folds]
    return np.asarray(np.argmax(probabilities[design.judged] * weights, axis=1))


def stratified_sample(labels: Indices, rows: Indices, size: int, seed: int) -> Indices:
    """At most about so many of the rows, the same share of every class, at least one of each."""
    if len(rows) <= size:
        return rows
    rng = np.random.default_rng(seed)
    by_class = [rows[labels[rows] == label] for label in np.unique(labels[rows])]
    sizes = [int(np.ceil(size / len(rows) * len(own))) for own in by_class]
    parts = [rng.choice(own, n, replace=False) for own, n in zip(by_class, sizes, strict=True)]
    return np.sort(np.concatenate(parts))


# What these predictions say.


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

    ``path`` is that of the linear model, ``sampled`` says what was fitted to a sample, and its
    size, ``notes`` what the fits warned of. ``risks`` has an entry for each candidate,
    ``path_risks`` one for each level of alpha, ``costs`` and ``regrets`` a row for each candidate
    and a column for each set of weightings.
    """

    design: Design
    candidates: tuple[Candidate, ...]
    weightings: Mapping[str, Uncertainty]
    path: AlphaPath | None
    sampled: dict[str, int]
    notes: tuple[str, ...]
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
    predicted, path, sampled, notes = held_out_predictions(design, candidates, seed, progress)
    along = () if path is None else path.predicted
    risks = tuple(held_out_risks(design, each) for each in predicted)
    costs = np.array([[each.risks.robust(q) for q in weightings.values()] for each in risks])
    resampled = resampled_costs(design, predicted, weightings, seed=seed)
    return Findings(
        design=design,
        candidates=candidates,
        weightings=weightings,
        path=path,
        sampled=sampled,
        notes=notes,
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
    deciding = np.flatnonzero(design.deciding)
    intervals, worst = (
        counted_intervals(sums[:, :, places], places, CONFIDENCE, refit=design.refit)
        for places in (judged, deciding)
    )
    risks = ByClass(worst.risks.to_numpy(), table.classes[deciding])
    taken, k = {}, len(table.classes)
    cells = np.bincount(true * k + said, weights=weights, minlength=k * k).reshape(k, k)
    for label in judged.tolist():
        shares = cells[label] / cells[label].sum()
        shares[label] = 0.0
        if shares.any():
            taken[label] = (int(shares.argmax()), float(shares.max()))
    return HeldOutRisks(intervals, ClassRisks(risks, design.prior), worst.worst(), taken)


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
