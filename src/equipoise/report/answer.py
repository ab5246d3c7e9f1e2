r"""The frontier, three cards along it and one for the user's goal, and which of them is advised.

The first card holds the plain model with the fewest errors, every other one the best by its measure
of the candidates tuned for it; with a price, or where none could be tuned, the best of all that the
price allows (``docs/studies/advice_rules.txt``). The card of the user's goal is advised. Without a
goal it is the middle card, 'every class counts the same', if the held-out rows show a gain over the
first: with error rates :math:`R_i` of the first card's candidate and :math:`S_i` of the middle one,

.. math:: t_i = (R_i - S_i) / s_i > z_{1 - 0.05 / k} \text{ for a class } i, \qquad
          \sum_i (R_i - S_i) / k \geq \sum_i p_i (S_i - R_i)

with standard errors :math:`s_i` of the paired differences over the rows of the class, adjusted for
the number :math:`k` of classes (Bonferroni): some class gains, and the mean recall rises by at
least as many points as the overall error. Otherwise it is the first card. A card that no goal asked
for, and on which no class gains over the first, holds the plain model too. Classes of fewer than
``FEW_ROWS`` held-out rows take no part in any of this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from equipoise.analysis.dominance import undominated
from equipoise.arrays import ROUNDING, Mask, Vector
from equipoise.goals import Goal, as_goal
from equipoise.report.candidates import BALANCED, CARD_OF_GOAL, PLAIN, WORST, goal_text
from equipoise.report.evaluations import CONFIDENCE, EvaluatedCandidate

FIRST, MIDDLE, LAST = range(3)
CARD_NAMES = ("Fewest errors overall", "Every class counts the same", "No class left behind")
# What candidates are tuned for that serve the first three cards.
_TUNED_FOR = (PLAIN, BALANCED, WORST)


@dataclass(frozen=True, eq=False)
class Card:
    """The candidate that serves a goal."""

    name: str
    goal: Goal
    index: int


@dataclass(frozen=True, eq=False)
class PairedDifferences:
    """What one candidate gains over another on the same rows, class by class; nan if not counted.

    ``rows`` are the weights of the classes' rows.
    """

    gains: Vector
    errors: Vector
    rows: Vector

    @property
    def certain(self) -> Mask:
        """Classes whose gain is above noise, adjusted for the number of classes."""
        k = np.count_nonzero(~np.isnan(self.gains))
        limit = ndtri(1 - (1 - CONFIDENCE) / k)
        certain = (self.gains > ROUNDING) & (self.gains > limit * self.errors)
        return np.asarray(certain)

    @property
    def worth_it(self) -> bool:
        """Whether some class gains, and the classes' mean gain is at least the overall cost."""
        counted = ~np.isnan(self.gains)
        gains, rows = self.gains[counted], self.rows[counted]
        return bool(self.certain.any() and gains.mean() >= -(gains @ rows) / rows.sum() - ROUNDING)


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

    @property
    def ties(self) -> list[int]:
        """Other candidates for the same purpose that differ from the advised one in no class."""
        word = self.best.candidate.tuned_for
        return [
            at
            for at, each in enumerate(self.evaluations)
            if each is not self.best
            and each.candidate.tuned_for == word
            and not paired_differences(self.best, each).certain.any()
            and not paired_differences(each, self.best).certain.any()
        ]

    @cached_property
    def frontier(self) -> Mask:
        """Candidates to which no other is better in overall error or in the worst class."""
        return undominated(
            [
                (each.overall().estimate, each.intervals.risks[each.worst()])
                for each in self.evaluations
            ]
        )


def is_constant(evaluation: EvaluatedCandidate) -> bool:
    """Whether a candidate is no better than always predicting the most frequent class.

    That is so if it has as many errors, and if the mean class error may be that of chance.
    """
    few, counts = evaluation.few, evaluation.evaluated.counts
    totals = counts.sum(axis=1)[~few]
    no_fewer_errors = np.diag(counts)[~few].sum() <= totals.max() + ROUNDING * totals.sum()
    return bool(no_fewer_errors and evaluation.balanced().upper >= 1 - 1 / len(totals) - ROUNDING)


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
    overall = np.array([each.value(as_goal("standard"), classes) for each in evaluations])
    tuned_for = np.array([each.candidate.tuned_for for each in evaluations])
    limit = np.inf if price is None else overall.min() + price / 100 + ROUNDING
    served = {name: CARD_OF_GOAL.get(goal_text(goal)) for name, goal in goals.items()}

    def card(name: str, goal: Goal, word: str) -> Card:
        tuned = tuned_for == word
        free = word == PLAIN or (price is None and tuned.any())
        pool = np.flatnonzero(tuned if free else overall <= limit).tolist()
        values = [evaluations[at].value(goal, classes) for at in pool]
        return Card(name, goal, pool[np.argmin(values)])

    cards = [card(CARD_NAMES[FIRST], as_goal("standard"), PLAIN)]
    plain = evaluations[cards[FIRST].index]
    for at in (MIDDLE, LAST):
        usual = card(CARD_NAMES[at], as_goal(_TUNED_FOR[at]), _TUNED_FOR[at])
        asked = at in served.values()
        gains = asked or paired_differences(plain, evaluations[usual.index]).certain.any()
        cards.append(usual if gains else replace(usual, index=cards[FIRST].index))
    shows_gain = paired_differences(plain, evaluations[cards[MIDDLE].index]).worth_it
    positions = []
    for name, position in served.items():
        positions.append(len(cards) if position is None else position)
        if position is None:
            cards.append(card(name, goals[name], name))
    advised = next(iter(positions), MIDDLE if shows_gain else FIRST)
    return Answer(evaluations, cards, advised, shows_gain)


def paired_differences(before: EvaluatedCandidate, after: EvaluatedCandidate) -> PairedDifferences:
    """Error rates of one candidate minus those of another, with their standard errors."""
    old, new, k = before.evaluated, after.evaluated, len(before.few)
    labels, weights = old.labels, old.weights
    totals = np.bincount(labels, weights, minlength=k).astype(np.float64)
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
    return PairedDifferences(gains, np.sqrt(variances), totals)
