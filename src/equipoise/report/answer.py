r"""The frontier, three cards along it and one for the user's goal, and which of them is advised.

Each card holds the simplest candidate within one standard error of the best by its measure: see
:func:`equipoise.decisions.select`. The first card is for plain models alone. Plain models are
simpler than tuned ones, and of these the one with the fewest errors overall comes first. The card
of the user's goal is advised. Without a goal it is the middle card, 'every class counts the same',
if the held-out rows show a gain: with error rates :math:`R_i` of the first card's candidate and
:math:`S_i` of the middle one,

.. math:: t_i = (R_i - S_i) / s_i > z_{1 - 0.05 / k} \text{ for a class } i, \qquad
          \sum_i (R_i - S_i) / k \geq \sum_i p_i (S_i - R_i)

with standard errors :math:`s_i` of the paired differences over the rows of the class, adjusted for
the number :math:`k` of classes (Bonferroni): some class gains, and the mean recall rises by at
least as many points as the overall error. Otherwise it is the first card. Classes of fewer than
``FEW_ROWS`` held-out rows take no part in any of this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from equipoise.arrays import ROUNDING, Mask, Vector
from equipoise.decisions import select
from equipoise.goals import Goal, as_goal
from equipoise.report.candidates import CARD_OF_GOAL, goal_text
from equipoise.report.evaluations import CONFIDENCE, EvaluatedCandidate

FIRST, MIDDLE, LAST = range(3)
CARD_NAMES = ("Fewest errors overall", "Every class counts the same", "No class left behind")
_GOALS_OF_CARDS = ("standard", "balanced_accuracy", "worst_class")


@dataclass(frozen=True, eq=False)
class Card:
    """The candidate that serves a goal, and those that these rows cannot tell from it."""

    name: str
    goal: Goal
    index: int
    close: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PairedDifferences:
    """What one candidate gains over another on the same rows, class by class; nan if not counted.

    ``certain`` are classes that gain, adjusted for the number of classes.
    """

    gains: Vector
    errors: Vector

    @property
    def certain(self) -> Mask:
        """Classes whose gain is above noise."""
        k = np.count_nonzero(~np.isnan(self.gains))
        limit = ndtri(1 - (1 - CONFIDENCE) / k)
        certain = (self.gains > ROUNDING) & (self.gains > limit * self.errors)
        return np.asarray(certain)


@dataclass(frozen=True, eq=False)
class Answer:
    """All candidates, the cards, and the position of the card that is advised."""

    evaluations: Sequence[EvaluatedCandidate]
    cards: Sequence[Card]
    advised: int
    shows_gain: bool

    @property
    def card(self) -> Card:
        """The card that is advised."""
        return self.cards[self.advised]

    @property
    def best(self) -> EvaluatedCandidate:
        """The candidate that is advised."""
        return self.evaluations[self.card.index]

    @property
    def first(self) -> EvaluatedCandidate:
        """The candidate of the first card."""
        return self.evaluations[self.cards[FIRST].index]

    @cached_property
    def frontier(self) -> Mask:
        """Candidates to which no other is better in overall error or in the worst class.

        One that is no worse in both and better in one dominates; of equal ones the first stays.
        """
        points = np.array(
            [
                (each.overall().estimate, each.intervals.risks[each.worst()])
                for each in self.evaluations
            ]
        )
        kept = np.ones(len(points), dtype=bool)
        for at, point in enumerate(points):
            no_worse = np.all(points <= point + ROUNDING, axis=1)
            better = np.any(points < point - ROUNDING, axis=1)
            kept[at] = not np.any(no_worse & (better | (np.arange(len(points)) < at)))
        return kept


def is_constant(evaluation: EvaluatedCandidate) -> bool:
    """Whether a candidate is no better than always predicting the most frequent class.

    That is so if it has as many errors, and if the mean class error may be that of chance.
    """
    k, totals = np.count_nonzero(~evaluation.few), evaluation.evaluated.counts.sum(axis=1)
    constant = 1 - totals.max() / totals.sum()
    return bool(
        evaluation.overall().estimate >= constant - ROUNDING
        and evaluation.balanced().upper >= 1 - 1 / k - ROUNDING
    )


def never_right(evaluation: EvaluatedCandidate) -> Mask:
    """Classes that count and of which no held-out row is right."""
    return np.asarray(~evaluation.few & (np.diag(evaluation.shares) == 0))


def answer(
    evaluations: Sequence[EvaluatedCandidate],
    goals: Mapping[str, Goal],
    classes: object,
    price: float | None = None,
) -> Answer:
    """The cards for three usual goals and the user's, and the one that is advised.

    ``price`` is the limit of the overall error, in points above the smallest.
    """
    built_in = [as_goal(word) for word in _GOALS_OF_CARDS]
    overall = np.array([each.value(built_in[FIRST], classes)[0] for each in evaluations])
    tuned = np.array([each.candidate.goal is not None for each in evaluations])
    # By simplicity: the plain ones as they come, then the tuned ones by what they cost overall.
    order = np.lexsort((np.where(tuned, overall, 0.0), tuned))
    limit = np.inf if price is None else overall.min() + price / 100 + ROUNDING
    cards: list[Card] = []

    def add(name: str, goal: Goal, allowed: Mask) -> None:
        found = [evaluations[i].value(goal, classes) for i in order]
        values, without = np.array([v for v, _ in found]), np.array([w for _, w in found])
        chosen = select(values, without, allowed[order])
        close = tuple(order[list(chosen.close)].tolist())
        cards.append(Card(name, goal, close[0], close))

    add(CARD_NAMES[FIRST], built_in[FIRST], ~tuned)
    for name, goal in zip(CARD_NAMES[MIDDLE:], built_in[MIDDLE:], strict=True):
        add(name, goal, overall <= limit)
    advised = None
    for name, goal in goals.items():
        position = CARD_OF_GOAL.get(goal_text(goal), len(cards))
        if position == len(cards):
            add(name, goal, overall <= limit)
        advised = position if advised is None else advised
    plain, middle = (evaluations[cards[at].index] for at in (FIRST, MIDDLE))
    gain = shows_gain(plain, middle)
    if advised is None:
        advised = MIDDLE if gain else FIRST
    return Answer(evaluations, cards, advised, gain)


def shows_gain(before: EvaluatedCandidate, after: EvaluatedCandidate) -> bool:
    """Whether some class gains, and the classes' mean gain is at least the overall cost."""
    paired = paired_differences(before, after)
    cost = after.overall().estimate - before.overall().estimate
    return bool(paired.certain.any() and np.nanmean(paired.gains) >= cost - ROUNDING)


def paired_differences(before: EvaluatedCandidate, after: EvaluatedCandidate) -> PairedDifferences:
    """Error rates of one candidate minus those of another, with their standard errors."""
    old, new, k = before.evaluated, after.evaluated, len(before.few)
    labels, weights = old.labels, old.weights
    totals = np.bincount(labels, weights, minlength=k)
    difference = (old.predicted != labels).astype(np.float64) - (new.predicted != labels)
    gains = np.bincount(labels, weights * difference, minlength=k) / np.where(totals > 0, totals, 1)
    deviations = weights * (difference - gains[labels]) / totals[labels]
    # One entry for several rows alike: their squares add up.
    squares = deviations**2 / (1 if old.times is None else old.times)
    variances = np.bincount(labels, squares, minlength=k)
    if old.clusters is not None:
        cells = np.unique(old.clusters * k + labels, return_inverse=True)
        sums = np.bincount(cells[1], deviations)
        variances = np.bincount(cells[0] % k, sums**2, minlength=k)
    gains[before.few] = np.nan
    return PairedDifferences(gains, np.sqrt(variances))
