r"""Every candidate evaluated on rows that it has not seen, by every goal.

.. math:: C_{f g} = \text{value of goal } g \text{ for candidate } f, \qquad
          \text{regret}_{f g} = C_{f g} - \min_h C_{h g}

Values are risks, or one minus a metric. One of the candidates is recommended by its regrets: see
:mod:`equipoise.report.recommendation`. One that has failed altogether is not, and none that costs
more overall errors than a given price. Classes of too few rows are shown and left out of these
values.

Candidates are what the printed code makes: a plain classifier, or a ``RobustClassifier`` around it.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.frozen import FrozenEstimator

from equipoise.arrays import Mask, Matrix, Vector
from equipoise.decisions import Evaluated
from equipoise.decisions.alphas import alpha_grid
from equipoise.decisions.summary import FEW_ROWS
from equipoise.exceptions import EquipoiseError
from equipoise.goals import Criterion, Goal, SetGoal
from equipoise.report.candidate_fits import CandidateFits
from equipoise.report.design import Candidate, Decided, Design
from equipoise.report.recommendation import Recommendation, regrets_of
from equipoise.report.sampled import SampledBlocks
from equipoise.risks import ClassRisks, RiskInterval, RiskIntervals
from equipoise.risks.intervals import counted_intervals
from equipoise.sets import LabelCVaR
from equipoise.weights.by_class import ByClass

CONFIDENCE = 0.95
# HARDLY_ANY, NONE: recalls of a class of FEW_ROWS rows or more below which a candidate has failed,
# and below which it has failed altogether, so that any other candidate is better.
HARDLY_ANY, NONE = 0.05, 0.01
# LEVELS, FEW_LEVELS: of alpha along the path, and where there are more than MANY_CLASSES classes;
# TOO_MANY_CLASSES: for a readable slider.
LEVELS, FEW_LEVELS, MANY_CLASSES, TOO_MANY_CLASSES = 9, 5, 10, 30


@dataclass(frozen=True, eq=False)
class AlphaPath:
    """What the recommended model predicts along a grid of alpha, with an entry for each value.

    Its decisions alone are tuned for the levels, not its training. ``weights`` are the worst-case
    weights of the classes; where ``caps_bind`` is false, the worst class decides alone. ``start``
    is the level that comes nearest to what is recommended.
    """

    alphas: Vector
    evaluated: tuple[Evaluated, ...]
    weights: Matrix
    caps_bind: Mask
    start: int


def tune_along(fits: CandidateFits, chosen: Decided) -> AlphaPath:
    """The path of the recommended model."""
    design = fits.design
    n_levels = LEVELS if len(design.table.classes) <= MANY_CLASSES else FEW_LEVELS
    alphas, held_out = alpha_grid(design.prior, n_levels), fits.held_out(chosen.candidate)
    found, worst = [], []
    for alpha in alphas.tolist():
        goal = LabelCVaR(alpha)
        fits.tell(f"{chosen.candidate.model}, alpha {alpha:.2g}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(fits.judged(fits.tuned(held_out, SetGoal(goal))[1]))
        masses = goal.resolve(design.prior).maximize(_risks(design, found[-1]))
        worst.append(np.zeros(len(design.table.classes)))
        worst[-1][design.deciding] = np.asarray(masses) / design.prior
    own = _risks(design, chosen.evaluated)
    far = [float(np.abs(_risks(design, each) - own).max()) for each in found]
    return AlphaPath(
        alphas=alphas,
        evaluated=tuple(found),
        weights=np.array(worst),
        caps_bind=np.array(
            [not LabelCVaR(alpha).resolve(design.prior).is_simplex for alpha in alphas.tolist()]
        ),
        start=int(np.argmin(far)),
    )


def _risks(design: Design, evaluated: Evaluated) -> Vector:
    """Risks of the classes that decide."""
    return np.asarray(1 - np.diag(rates(evaluated))[design.deciding])


def rates(evaluated: Evaluated) -> Matrix:
    """By true class, the share of the held-out rows that are predicted as each class."""
    table = evaluated.counts
    totals = table.sum(axis=1, keepdims=True)
    return np.asarray(table / np.where(totals > 0, totals, 1.0))


# What these predictions say.


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
    candidates: Sequence[Candidate], goals: Mapping[str, Goal], fits: CandidateFits,
    *, price: float | None, blocks: SampledBlocks | None = None,
) -> Findings:  # fmt: skip
    """Evaluate every candidate on rows it has not seen, and recommend one.

    When interrupted, it goes on with the candidates that are finished, if there are any. All rows
    of ``blocks`` that are not in the table are evaluated as well.
    """
    design, seed = fits.design, fits.seed
    # What the goals cannot evaluate is refused before any training.
    criteria, of_all = _criteria(design, goals)
    decided, left = _decide_all(candidates, fits)
    if blocks is not None:
        fits.tell("all rows")
        design, decided = blocks.counted(design, decided)
        criteria, of_all = _criteria(design, goals)
    among = [replace(each.evaluated, few=~design.deciding) for each in decided]
    costs = np.array([[each.value(criterion) for criterion in criteria] for each in among])
    # Of shape (n_groups, n_candidates, n_goals).
    without = np.array(
        [[each.values_without(criterion) for criterion in criteria] for each in among]
    ).transpose(2, 0, 1)
    risks = _evaluated(design, decided)
    standard = np.array([each.risks.standard() for each in risks])
    found = Recommendation.among(
        costs, without, standard, allowed=_allowed(risks, standard, price),
        plain=np.array([each.candidate.goal is None for each in decided]),
    )  # fmt: skip
    chosen, path = decided[found.place], None
    slides = not left and len(design.table.classes) <= TOO_MANY_CLASSES and blocks is None
    if slides and not isinstance(fits.learners[chosen.candidate.model], FrozenEstimator):
        path = tune_along(fits, chosen)
    fits.end()
    along = () if path is None else tuple(held_out_risks(design, e) for e in path.evaluated)
    every = [[each.evaluated.value(criterion) for criterion in of_all] for each in decided]
    largest = max(len(train) for train, _ in fits.folds.parts)
    trained = [n for n, each in fits.learners.items() if not isinstance(each, FrozenEstimator)]
    return Findings(
        design=design,
        candidates=tuple(each.candidate for each in decided),
        goals=goals,
        price=price,
        path=path,
        sampled=dict.fromkeys(trained, largest) if largest < fits.trainable else {},
        notes=tuple(fits.notes.values()),
        risks=risks,
        path_risks=along,
        costs=costs,
        costs_of_all=np.array(every),
        recommendation=found,
        seed=seed,
        unfinished=left,
        rows_seen=None if blocks is None else blocks.rows_seen,
    )


def _criteria(design: Design, goals: Mapping[str, Goal]) -> tuple[list[Criterion], list[Criterion]]:
    """What the goals ask for, among the classes that decide and among all that are evaluated."""
    table, few = design.table, (~design.deciding, ~design.estimable)
    some, every = (
        [goal.resolve_some(table.prior, table.classes, one) for goal in goals.values()]
        for one in few
    )
    return some, every


def _decide_all(
    candidates: Sequence[Candidate], fits: CandidateFits
) -> tuple[list[Decided], tuple[str, ...]]:
    """What all candidates predict, and those that an interrupt has left undone."""
    decided: list[Decided] = []
    for at, candidate in enumerate(candidates):
        try:
            fits.tell(candidate.label)
            decided.append(fits.decided(candidate))
        except EquipoiseError as reason:
            # A goal that cannot be reached by one model may be by another.
            if candidate.goal is None:
                raise
            fits.notes[candidate.label] = f"{candidate.label} was left out: {reason}"
        except KeyboardInterrupt:
            if not decided:
                raise
            return decided, tuple(each.label for each in candidates[at:])
    return decided, ()


def _allowed(risks: Sequence[HeldOutRisks], standard: Vector, price: float | None) -> Mask:
    """Candidates that are not hopeless, within a price; what nothing keeps is not asked for."""
    allowed = np.array([not each.hopeless for each in risks])
    if price is not None:
        cheap = standard <= standard.min() + price / 100 + 1e-12
        allowed = allowed & cheap if np.any(allowed & cheap) else cheap
    return allowed if np.any(allowed) else np.ones_like(allowed)


def _evaluated(design: Design, decided: Sequence[Decided]) -> tuple[HeldOutRisks, ...]:
    """Risks of all candidates; those that predict every row alike are found."""
    found, first = [], dict[bytes, int]()
    for place, each in enumerate(decided):
        own = each.evaluated.predicted.tobytes()
        same = first.setdefault(own, place)
        alike = None if same == place else same
        found.append(held_out_risks(design, each.evaluated, each.n_candidates, alike))
    return tuple(found)


def held_out_risks(
    design: Design, evaluated: Evaluated, choices: int = 1, same_as: int | None = None
) -> HeldOutRisks:
    """Risks of the classes, with intervals, and what else rows of a class are predicted as."""
    table, sums = design.table, evaluated.sums
    judged, deciding = np.flatnonzero(design.estimable), np.flatnonzero(design.deciding)
    intervals, worst = (
        counted_intervals(
            sums[:, :, places], places, CONFIDENCE, refit=design.tested_per_trained,
            choices=choices,
        )
        for places in (judged, deciding)
    )  # fmt: skip
    risks = ByClass(worst.risks.to_numpy(), table.classes[deciding])
    taken, shares = {}, rates(evaluated)
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
    hopeless = bool(found) or bool(np.any((right < NONE) & (design.tested >= FEW_ROWS)))
    # Folds judge all rows but those with too many identical ones, which excuse nothing.
    rows = design.tested if design.n_folds == 1 else design.table.counts
    hardly = (right < HARDLY_ANY) & (rows >= FEW_ROWS) & design.estimable
    hardly[never] = False
    for name in design.table.classes[hardly].tolist()[:1]:
        others = f" and {hardly.sum() - 1} other classes" if hardly.sum() > 1 else ""
        found.append(f"it gets hardly any row of class {name!r}{others} right")
    return tuple(found), hopeless
