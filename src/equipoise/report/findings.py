r"""Every candidate judged on rows that it has not seen, by every goal.

.. math:: C_{f g} = \text{value of goal } g \text{ for candidate } f, \qquad
          \text{regret}_{f g} = C_{f g} - \min_h C_{h g}

Values are risks, or one minus a metric. One of the candidates is recommended by its regrets: see
:mod:`equipoise.report.recommendation`. One that has failed altogether is not, and none that costs
more errors in all than a given price. Classes of too few rows are shown and left out of these
values.

Candidates are what the printed code makes: a plain classifier, or a ``RobustClassifier`` around it.
Each fold is judged by fits and decision weights that have not seen it. The fits are shared.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from equipoise.arrays import Indices, Mask, Matrix, Vector
from equipoise.decisions.left_out import decide_by_folds
from equipoise.estimators import RobustClassifier, RobustPathCV
from equipoise.estimators.robust_classifier import TRAININGS
from equipoise.exceptions import EquipoiseError
from equipoise.goals import Criterion, Goal, as_goal
from equipoise.report.design import FOLDS, PLAIN, Candidate, Decided, Design
from equipoise.report.fit_memory import FitMemory
from equipoise.report.recommendation import Recommendation, Ties, regrets_of
from equipoise.report.sampled import SampledBlocks
from equipoise.risks import ClassRisks, RiskInterval, RiskIntervals
from equipoise.risks.intervals import counted_intervals
from equipoise.sets import LabelCVaR, alpha_grid
from equipoise.tables import TUNED_ROWS, LabelledTable
from equipoise.validation.folds import TRAINS_ONLY
from equipoise.weights.by_class import ByClass

CONFIDENCE = 0.95
# A class of so many rows is failed where fewer than this share of those judged are right, and
# failed altogether below the second share: then any other candidate is better.
MANY_ROWS, HARDLY_ANY, NONE = 30, 0.05, 0.01
# Levels of alpha along the path; fewer where classes are many, and none where tuning takes long.
LEVELS, FEW_LEVELS, MANY_CLASSES, TOO_MANY_CLASSES = 9, 5, 10, 30
# How often the rows judged are drawn anew to see whether the answer stays.
RESAMPLES = 200


# What every candidate decides for rows that its fits have not seen.


def decide_held_out(design: Design, candidate: Candidate, learner: Any, seed: int) -> Decided:
    """Fit a candidate, and decide the rows that are judged.

    The learner is one of a ``FitMemory``, by the numbers of rows.
    """
    if candidate.goal is None:
        chances = _chances(design, learner, None)
        plain = np.ones(chances.shape[1])
        return Decided(candidate, _spread_out(design, np.argmax(chances, axis=1)), rule=plain)
    made = candidate.around(learner, cv=FOLDS, seed=seed)
    # In the folds of the page.
    inside = "estimator__cv" if isinstance(made, RobustPathCV) else "cv"
    made.set_params(**{inside: design.parts})
    return Decided(candidate, *_fit_and_decide(design, made, learner, seed))


def _fit_and_decide(
    design: Design, made: Any, learner: Any, seed: int
) -> tuple[Indices, Vector | None, int, Vector | Matrix]:
    """What a ``RobustClassifier`` decides for each fold by weights that were tuned without it."""
    table, known = design.table, isinstance(learner, FrozenEstimator)
    used = design.order if known else np.arange(len(table.labels))
    weights = table.weights_at(used)
    options = {} if weights is None else {"sample_weight": weights}
    fitted = made.fit(used[:, None], table.y[used], **options)
    if isinstance(fitted, RobustPathCV):
        fitted = fitted.estimator_
    tuned, training = fitted.tuned_, getattr(fitted, "training_weights_", None)
    own = None if training is None else np.asarray(training, dtype=np.float64)
    said = decide_by_folds(
        _chances(design, learner, own), tuned.rule, tuned.fold_weights,
        [] if known else design.parts, table.labels[design.order], seed,
    )  # fmt: skip
    return _spread_out(design, said), own, tuned.n_candidates, tuned.rule


def _spread_out(design: Design, said: Indices) -> Indices:
    predicted = np.full(len(design.fold), TRAINS_ONLY, dtype=np.intp)
    predicted[design.order] = said
    return predicted


def _chances(design: Design, learner: Any, training: Vector | None) -> Matrix:
    """Probabilities of the rows judged, fold by fold, of a learner trained with class weights."""
    if isinstance(learner, FrozenEstimator):
        return np.asarray(learner.predict_proba(design.order[:, None]))
    table = design.table
    return np.asarray(learner.held_out(design.parts, table.labels, training, table.weights))


@dataclass(frozen=True, eq=False)
class AlphaPath:
    """What the recommended model decides along a grid of alpha: a row for each value.

    Its decisions alone are made for the levels, not its training. ``weights`` are the worst-case
    weights of the classes; where ``caps_bind`` is false, the worst class decides alone. ``start``
    is the level that comes nearest to what is recommended.
    """

    alphas: Vector
    predicted: Indices
    weights: Matrix
    caps_bind: Mask
    start: int


def decide_along(
    design: Design, chosen: Decided, learner: Any, memory: FitMemory, seed: int
) -> AlphaPath:
    """The path of the recommended model."""
    n_levels = LEVELS if len(design.table.classes) <= MANY_CLASSES else FEW_LEVELS
    alphas, training = alpha_grid(design.prior, n_levels), chosen.training
    as_it_is = training is None or np.all(training == training[0])
    found, worst = [], []
    for alpha in alphas.tolist():
        goal = LabelCVaR(alpha)
        memory.tell(f"{chosen.candidate.model}, alpha {alpha:.2g}")
        trained: Any = PLAIN if as_it_is else training
        made = RobustClassifier(learner, goal, training=trained, rare="keep", random_state=seed)
        made.set_params(cv=design.parts, min_rows=TUNED_ROWS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(_fit_and_decide(design, made, learner, seed)[0])
        masses = goal.resolve(design.prior).maximize(_risks(design, found[-1]))
        worst.append(np.zeros(len(design.table.classes)))
        worst[-1][design.deciding] = np.asarray(masses) / design.prior
    own = _risks(design, chosen.predicted)
    far = [float(np.abs(_risks(design, each) - own).max()) for each in found]
    return AlphaPath(
        alphas=alphas,
        predicted=np.array(found),
        weights=np.array(worst),
        caps_bind=np.array(
            [not LabelCVaR(alpha).resolve(design.prior).is_simplex for alpha in alphas.tolist()]
        ),
        start=int(np.argmin(far)),
    )


def _risks(design: Design, predicted: Indices) -> Vector:
    """Risks of the classes that decide."""
    table = shares_of_decisions(design, predicted)
    return np.asarray(1 - np.diag(table)[design.deciding])


def shares_of_decisions(design: Design, predicted: Indices) -> Matrix:
    """By true class, the share of the rows judged that each class is decided for."""
    rows, k = design.judged, len(design.table.classes)
    cells = np.bincount(
        design.table.labels[rows] * k + predicted[rows],
        weights=design.table.weights_at(rows),
        minlength=k * k,
    ).reshape(k, k)
    totals = cells.sum(axis=1, keepdims=True)
    return np.asarray(cells / np.where(totals > 0, totals, 1.0))


# What these decisions say.


@dataclass(frozen=True, eq=False)
class HeldOutRisks:
    """What the rows judged say about one candidate.

    ``intervals`` are those of the classes that are judged, by class index; ``risks`` those of the
    classes that decide, by name, and ``worst`` is the worst of them. ``taken_for`` has the class
    that each class with an error is most often taken for, and the share of its rows. ``failures``
    says how the candidate has failed, if it has; one that is ``hopeless`` failed altogether, and
    is not recommended; ``same_as`` is the place of an earlier one that decides every row alike.
    """

    intervals: RiskIntervals
    risks: ClassRisks
    worst: RiskInterval
    taken_for: dict[int, tuple[int, float]]
    failures: tuple[str, ...] = ()
    hopeless: bool = False
    same_as: int | None = None


@dataclass(frozen=True, eq=False)
class Findings:
    """All numbers of a comparison.

    ``sampled`` says which models were fitted to a sample, and its size, ``notes`` what the fits
    warned of. ``risks`` has an entry for each candidate, ``path_risks`` one for each level of
    alpha, ``costs`` and ``regrets`` a row for each candidate and a column for each goal;
    ``costs_of_all`` are the costs if classes of few rows decided, too. Candidates that an
    interrupt has left undone are ``unfinished``. ``rows_seen`` says how many rows in blocks were
    trained on, tuned on and judged.
    """

    design: Design
    candidates: tuple[Candidate, ...]
    goals: Mapping[str, Goal]
    price: float | None
    path: AlphaPath | None
    sampled: dict[str, int]
    notes: tuple[str, ...]
    risks: tuple[HeldOutRisks, ...]
    path_risks: tuple[HeldOutRisks, ...]
    costs: Matrix
    costs_of_all: Matrix
    recommendation: Recommendation
    seed: int
    unfinished: tuple[str, ...] = field(default=())
    rows_seen: dict[str, int] | None = None

    @property
    def regrets(self) -> Matrix:
        """What each candidate costs beyond the best one, goal by goal."""
        return np.asarray(regrets_of(self.costs))


def find(
    design: Design, candidates: Sequence[Candidate], learners: Mapping[str, Any],
    goals: Mapping[str, Goal], memory: FitMemory, *, price: float | None,
    blocks: SampledBlocks | None = None,
) -> Findings:  # fmt: skip
    """Judge every candidate on rows it has not seen, and recommend one.

    When interrupted, it goes on with the candidates that are finished, if there are any. All rows
    of ``blocks`` that are not in the table are judged as well.
    """
    table, seed = design.table, memory.seed
    # What the goals cannot judge is refused before any training.
    criteria, of_all = _criteria(design, goals)
    decided, left = _decide_all(design, candidates, learners, memory, seed)
    if blocks is not None:
        design, decided = blocks.counted(design, decided, learners, memory)
        criteria, of_all = _criteria(design, goals)
    costs = np.array([_costs(design, each, criteria, design.deciding) for each in decided])
    risks = _judged(design, decided)
    standard = np.array([each.risks.standard() for each in risks])
    found = Recommendation.among(
        costs, *_drawn_anew(design, decided, criteria, seed=seed), standard,
        allowed=_allowed(risks, standard, price),
        plain=np.array([each.candidate.goal is None for each in decided]),
    )  # fmt: skip
    chosen, path = decided[found.place], None
    slides = not left and len(table.classes) <= TOO_MANY_CLASSES and blocks is None
    if slides and not isinstance(learners[chosen.candidate.model], FrozenEstimator):
        path = decide_along(design, chosen, learners[chosen.candidate.model], memory, seed)
    memory.end()
    along = () if path is None else tuple(held_out_risks(design, each) for each in path.predicted)
    return Findings(
        design=design,
        candidates=tuple(_settled(table, each) for each in decided),
        goals=goals,
        price=price,
        path=path,
        sampled=dict(memory.largest),
        notes=tuple(memory.notes.values()),
        risks=risks,
        path_risks=along,
        costs=costs,
        costs_of_all=np.array([_costs(design, each, of_all, design.estimable) for each in decided]),
        recommendation=found,
        seed=seed,
        unfinished=left,
        rows_seen=None if blocks is None else blocks.rows_seen,
    )


def _criteria(design: Design, goals: Mapping[str, Goal]) -> tuple[list[Criterion], list[Criterion]]:
    """What the goals ask for, among the classes that decide and among all that are judged."""
    table, few = design.table, (~design.deciding, ~design.estimable)
    some, every = (
        [goal.resolve_some(table.prior, table.classes, one) for goal in goals.values()]
        for one in few
    )
    return some, every


def _settled(table: LabelledTable, decided: Decided) -> Candidate:
    """The candidate with the training that was chosen for it: a word, or weights by class."""
    candidate, weights = decided.candidate, decided.training
    if candidate.goal is None or weights is None:
        return candidate
    for word, power in TRAININGS.items():
        own = table.prior**-power
        if np.allclose(weights, own / (table.prior @ own), rtol=1e-9):
            return replace(candidate, training=word)
    names, values = table.classes.tolist(), [float(f"{each:.4g}") for each in weights]
    return replace(candidate, training=dict(zip(names, values, strict=True)))


def _decide_all(
    design: Design, candidates: Sequence[Candidate], learners: Mapping[str, Any],
    memory: FitMemory, seed: int,
) -> tuple[list[Decided], tuple[str, ...]]:  # fmt: skip
    """What all candidates decide, and those that an interrupt has left undone."""
    decided: list[Decided] = []
    for at, candidate in enumerate(candidates):
        try:
            memory.tell(candidate.label)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = decide_held_out(design, candidate, learners[candidate.model], seed)
        except EquipoiseError as reason:
            # A goal that cannot be reached by one model may be by another.
            if candidate.goal is None:
                raise
            memory.notes[candidate.label] = f"{candidate.label} was left out: {reason}"
            continue
        except KeyboardInterrupt:
            if not decided:
                raise
            return decided, tuple(each.label for each in candidates[at:])
        memory.note(candidate.label, caught)
        decided.append(found)
    return decided, ()


def _allowed(risks: Sequence[HeldOutRisks], standard: Vector, price: float | None) -> Mask:
    """Candidates that are not hopeless, within a price; what nothing keeps is not asked for."""
    allowed = np.array([not each.hopeless for each in risks])
    if price is not None:
        cheap = standard <= standard.min() + price / 100 + 1e-12
        allowed = allowed & cheap if np.any(allowed & cheap) else cheap
    return allowed if np.any(allowed) else np.ones_like(allowed)


def _costs(
    design: Design, decided: Decided, criteria: Sequence[Criterion], some: Mask
) -> list[float]:
    """The values of the goals, among some of the classes."""
    return _values(shares_of_decisions(design, decided.predicted), design, criteria, some)


def _values(
    shares: Matrix, design: Design, criteria: Sequence[Criterion], some: Mask
) -> list[float]:
    prior = design.table.prior[some] / design.table.prior[some].sum()
    # Decisions for other classes come last, and are errors.
    among = shares[some][:, np.argsort(~some, kind="stable")] * prior[:, None]
    return [each.of_table(among) for each in criteria]


def _judged(design: Design, decided: Sequence[Decided]) -> tuple[HeldOutRisks, ...]:
    """Risks of all candidates; those that decide every row alike are found."""
    found, first = [], dict[bytes, int]()
    for place, each in enumerate(decided):
        own = each.predicted.tobytes()
        same = first.setdefault(own, place)
        found.append(
            held_out_risks(design, each.predicted, each.n_choices, None if same == place else same)
        )
    return tuple(found)


def held_out_risks(
    design: Design, predicted: Indices, choices: int = 1, same_as: int | None = None
) -> HeldOutRisks:
    """Judge the classes predicted for all rows."""
    table, sums = design.table, design.error_sums(predicted)
    judged, deciding = np.flatnonzero(design.estimable), np.flatnonzero(design.deciding)
    intervals, worst = (
        counted_intervals(
            sums[:, :, places], places, CONFIDENCE, refit=design.refit, choices=choices
        )
        for places in (judged, deciding)
    )
    risks = ByClass(worst.risks.to_numpy(), table.classes[deciding])
    taken, shares = {}, shares_of_decisions(design, predicted)
    for label in judged.tolist():
        others = shares[label].copy()
        others[label] = 0.0
        if others.any():
            taken[label] = (int(others.argmax()), float(others.max()))
    of_classes = ClassRisks(risks, design.prior)
    failures, hopeless = _failures(design, shares, of_classes)
    return HeldOutRisks(intervals, of_classes, worst.worst(), taken, failures, hopeless, same_as)


def _failures(design: Design, shares: Matrix, risks: ClassRisks) -> tuple[tuple[str, ...], bool]:
    """How a candidate is no better than a constant, or fails a class; and whether altogether."""
    found, k = [], int(np.count_nonzero(design.deciding))
    constant = 1 - float(design.prior.max())
    if risks.standard() >= constant - 1e-12 and risks.balanced() >= 1 - 1 / k - 1e-12:
        found.append("it does no better than always deciding the most frequent class")
    never = np.flatnonzero(design.deciding & ~shares[design.estimable].any(axis=0))
    names = design.table.classes[never].tolist()
    if names:
        more = f" and {len(names) - 1} other classes" if len(names) > 1 else ""
        found.append(f"it never decides for class {names[0]!r}{more}")
    right = np.diag(shares)
    hopeless = bool(found) or bool(np.any((right < NONE) & (design.tested >= MANY_ROWS)))
    # Folds judge all rows but those with too many identical ones, which excuse nothing.
    rows = design.tested if design.n_folds == 1 else design.table.counts
    hardly = (right < HARDLY_ANY) & (rows >= MANY_ROWS) & design.estimable
    hardly[never] = False
    for name in design.table.classes[hardly].tolist()[:1]:
        others = f" and {hardly.sum() - 1} other classes" if hardly.sum() > 1 else ""
        found.append(f"it gets hardly any row of class {name!r}{others} right")
    return tuple(found), hopeless


def resampled_costs(
    design: Design, decided: Sequence[Decided], criteria: Sequence[Criterion], *,
    times: int = RESAMPLES, seed: int = 0,
) -> Matrix:  # fmt: skip
    """Costs if other rows had been judged: a bootstrap within each class, ``times`` matrices."""
    rng, k = np.random.default_rng(seed), len(design.table.classes)
    shares = np.zeros((times, len(decided), k, k))
    for label in np.flatnonzero(design.deciding).tolist():
        rows = design.judged[design.table.labels[design.judged] == label]
        said = np.array([each.predicted[rows] for each in decided])
        # Rows that all candidates decide alike are alike, so that only their numbers are drawn.
        patterns, place = np.unique(said, axis=1, return_inverse=True)
        weights = design.table.weights_at(rows)
        counts = np.bincount(place.ravel(), weights=weights)
        n_rows = int(design.tested[label])
        if weights is not None and design.table.weights is not None:
            # Weighted rows carry the information of fewer equal ones (Kish).
            n_rows = max(1, round(float(weights.sum() ** 2 / np.sum(weights**2))))
        drawn = rng.multinomial(n_rows, counts / counts.sum(), size=times) / n_rows
        for at, line in enumerate(patterns):
            shares[:, at, label] = drawn @ np.eye(k)[line]
    return np.array(
        [[_values(one, design, criteria, design.deciding) for one in each] for each in shares]
    )


def _drawn_anew(
    design: Design, decided: Sequence[Decided], criteria: Sequence[Criterion], *, seed: int
) -> tuple[Matrix, Ties | None]:
    """Costs if other rows had been judged, and what tells apart candidates that are as good.

    The worst case over a set hangs on a class or two, and so on chance: of candidates that it
    cannot tell apart, the others tell which errs less. In a metric, and in several goals together,
    all classes are counted already.
    """
    if len(criteria) > 1 or criteria[0].measures == "metric":
        return resampled_costs(design, decided, criteria, seed=seed), None
    by_class = as_goal("balanced_accuracy").resolve(design.prior)
    again = resampled_costs(design, decided, [*criteria, by_class], seed=seed)
    own = np.array([_costs(design, each, [by_class], design.deciding) for each in decided])
    return again[:, :, :-1], Ties(own[:, 0], again[:, :, -1])
