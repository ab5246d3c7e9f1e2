r"""Sets of labels that hold the true one with a given probability, under a chosen weighting.

The set of a row is :math:`C(x) = \{i : w_i \eta_i(x) \geq T_i\}`. Among all sets of the same
mean size those with :math:`w_i = m_i / p_i` and one threshold have the largest coverage under the
masses :math:`m` (Neyman and Pearson), for exact probabilities :math:`\eta` at the class
frequencies :math:`p`. What follows holds for any scores :math:`s_i(x)`.

**Together.** With :math:`n_i` calibration rows of class ``i``, of which :math:`N_i(t)` have a score
of their own class of at most :math:`t`,

.. math:: T_i = \inf \Bigl\{t : \sum_l \frac{m_l}{n_l} N_l(t) + \frac{m_i}{n_i} > \alpha\Bigr\}

gives :math:`\sum_i m_i P(Y \notin C(X) \mid Y = i) \leq \alpha`, over draws of the calibration rows
with these counts, where the rows of a class and the new one are exchangeable given those of other
classes; :math:`m`, :math:`w` and the model must not depend on the features of calibration rows.
Proof: for a new row of class ``i``, let it take the index of one random calibration row of that
class. The rows then have the law of the calibration rows, for every ``i``. Let :math:`h` be the
threshold at which their weighted share of smaller or equal scores exceeds :math:`\alpha`, which is
symmetric in the rows of each class. The rows without the one that was replaced are calibration
rows, so the share is at most the left side above, and :math:`T_i \leq h`. The new row is
equally likely to have any of the indices of its class, and so is missed with the probability
:math:`E[N_i(h^-) / n_i]` at most, where :math:`N_i(h^-)` are scores below :math:`h`. By the common
law the expectations are of one :math:`h`, and :math:`\sum_i m_i N_i(h^-) / n_i \leq \alpha` always,
as the share at every :math:`t < h` is at most :math:`\alpha`.

A class without calibration rows is in every set, or it counts as missed, which leaves
:math:`\alpha` less its mass to the others, and has their threshold.

With :math:`m = p` and class frequencies that are those of the calibration rows, all rows weigh the
same and :math:`T_i = T` is the order statistic of split conformal sets: the statement is then one
about all rows, which needs no counts, and :math:`T` is that of classes that were not seen as well.

**By class.** :math:`T_i` is the own scores' order statistic :math:`r_i = \lfloor \alpha_i (n_i + 1)
\rfloor`, which gives :math:`P(Y \notin C(X) \mid Y = i) \leq r_i / (n_i + 1)` (Vovk). Under every
mass of a set :math:`M` the error is then at most :math:`\max_{m \in M} \sum_i m_i r_i / (n_i + 1)`,
as long as the :math:`r_i` depend on numbers of rows alone.

With a confidence both are about the rule at hand, for independent rows
(:mod:`equipoise.risks.tolerance`): the threshold is beyond the largest :math:`t` whose error is
allowed only if too few rows have scores up to :math:`t`, and these are binomial counts.

References
----------
Vovk (2012), "Conditional validity of inductive conformal predictors"; Sadinle, Lei and Wasserman
(2019), "Least ambiguous set-valued classifiers with bounded error levels"; Podkopaev and Ramdas
(2021), "Distribution-free uncertainty quantification for classification under label shift";
Barber, Candes, Ramdas and Tibshirani (2021), "Predictive inference with the jackknife+".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from equipoise.arrays import ROUNDING, Indices, Mask, Matrix, Vector
from equipoise.decisions.coverage_levels import HELD, ranks_within, whole_ranks
from equipoise.risks.intervals import sidak
from equipoise.risks.tolerance import allowed_misses, allowed_weighted_error
from equipoise.sets import MassSet
from equipoise.weights.priors import weights_of


@dataclass(frozen=True, eq=False)
class CoverageTask:
    """The largest errors of the classes: each its own, or their mean under ``masses``.

    ``errors`` are the levels by class, where ``masses`` is given the same for all. Where
    ``robust`` is given, they are rounded so that the largest mean over that set is no more than
    ``error``. ``prior`` are the class frequencies on whose scale the probabilities are, and
    ``tail`` the probability that the rule may break what it promises; None is a mean over rules.
    ``unseen`` are classes whose frequency is 0 because no row of them was seen; None are none.
    """

    errors: Vector
    prior: Vector
    masses: Vector | None = None
    robust: MassSet | None = None
    error: float = 0.0
    tail: float | None = None
    unseen: Mask | None = None

    @property
    def counts_rows(self) -> bool:
        """Whether all rows count the same, so that unseen classes need no row of their own."""
        if self.unseen is None or self.masses is None:
            return False
        return bool(np.allclose(self.masses, self.prior, rtol=0, atol=ROUNDING))

    @property
    def decision_weights(self) -> Vector:
        """Factors of the probabilities, 1 where each class has a level of its own."""
        if self.masses is None:
            return np.ones_like(self.errors)
        ratios = np.where(self.prior > 0, weights_of(self.masses, self.prior), 0.0)
        if self.unseen is not None:
            ratios[self.unseen] = ratios.max()
        return ratios

    def ranks(self, counts: Indices) -> Indices:
        """The order statistic of each class that is its threshold, 0 for none."""
        if self.tail is None:
            if self.robust is None:
                return whole_ranks(self.errors, counts)
            return ranks_within(self.errors, counts, self.robust, self.error)
        each = sidak(self.tail, max(1, int(np.count_nonzero(counts))))
        return allowed_misses(counts, self.errors, each) + 1

    def allowed(self, counts: Indices) -> Vector:
        """The weighted share of scores that a threshold of each class must exceed."""
        assert self.masses is not None
        seen = counts > 0
        if not np.any(seen & (self.masses > 0)):
            return np.full(len(counts), -np.inf)
        lost = mass_to_lose(self.masses, seen, float(self.errors[0]))
        error = float(self.errors[0]) - lost
        if self.tail is None:
            allowed = error - self.masses / np.maximum(counts, 1)
        else:
            masses = np.where(seen, self.masses, 0.0)
            weighted_error = allowed_weighted_error(masses, counts, error, self.tail)
            allowed = np.full(len(counts), weighted_error)
        others = allowed[seen].min() if lost > 0 or self.counts_rows else -np.inf
        return np.where(seen, allowed, others)


def mass_to_lose(masses: Vector, seen: Mask, error: float) -> float:
    """The mass of classes without rows, if they may all be missed; 0 if they are in every set.

    The first leaves less error to the others: that is done whose sets are the smaller, where
    classes are held for ``1 / (1 + HELD * epsilon / alpha)`` of the rows.

    Examples
    --------
    >>> masses, seen = np.array([0.5, 0.48, 0.01, 0.01]), np.array([True, True, False, False])
    >>> mass_to_lose(masses, seen, 0.1), mass_to_lose(masses[::-1], seen, 0.1)
    (0.02, 0.0)
    """
    unseen = ~seen & (masses > 0)
    lost, k_unseen = float(masses[unseen].sum()), np.count_nonzero(unseen)
    k_seen = np.count_nonzero(seen & (masses > 0))
    missed = (k_seen + k_unseen) / (1 + HELD * (1 - lost / error))
    return lost if lost < error and missed < k_seen / (1 + HELD) + k_unseen else 0.0


def same_task(one: CoverageTask, other: CoverageTask) -> bool:
    """Whether both ask for the same levels of classes, or under the same weighting."""
    pairs = ((one.errors, other.errors), (one.masses, other.masses))
    return all(a is b or np.array_equal(a, b) for a, b in pairs)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Rows to calibrate on: the probability of the true class, its index, and its fold.

    The rows of a fold have the same model; there is one fold where one model predicted all.
    """

    own: Vector
    labels: Indices
    fold: Indices
    n_classes: int

    @property
    def counts(self) -> Indices:
        """Rows of each class."""
        return np.bincount(self.labels, minlength=self.n_classes)

    def shares_missed(self, thresholds: Vector) -> Vector:
        """Shares of the rows of each class whose sets leave their class out."""
        missed = self.own < np.asarray(thresholds)[self.labels]
        misses = np.bincount(self.labels, missed, minlength=self.n_classes)
        return np.asarray(misses / np.maximum(self.counts, 1))

    def as_dict(self) -> dict[str, Vector | Indices]:
        """The columns by name."""
        return {"own": self.own, "labels": self.labels, "fold": self.fold}

    def take(self, rows: Mask) -> Calibration:
        """Some of the rows."""
        return replace(self, own=self.own[rows], labels=self.labels[rows], fold=self.fold[rows])


def calibration_rows(
    probabilities: Matrix, labels: Indices, fold: Indices | None = None
) -> Calibration:
    """The rows of one table of probabilities, or of the tables of several folds."""
    label_probabilities = probabilities[np.arange(len(labels)), labels]
    fold = np.zeros(len(labels), dtype=np.intp) if fold is None else fold
    return Calibration(label_probabilities, labels, fold, int(probabilities.shape[1]))


def thresholds(rows: Calibration, task: CoverageTask) -> Vector:
    """Probabilities from which on a class is in the set; minus infinity for every row.

    Examples
    --------
    >>> rows = Calibration(np.linspace(0.05, 0.95, 19), np.zeros(19, int), np.zeros(19, int), 2)
    >>> thresholds(rows, CoverageTask(np.array([0.1, 0.1]), np.array([0.5, 0.5]))).round(3)
    array([ 0.1, -inf])
    """
    counts = rows.counts
    if task.masses is None:
        lowest = _by_class(rows, task.ranks(counts))
    else:
        lowest = _together(rows, task, counts)
    if task.unseen is not None and not task.counts_rows:
        lowest = np.where(task.unseen, -np.inf, lowest)
    # A little lower, so that the rounding of another batch of rows leaves nothing out.
    return np.asarray(lowest * (1 - ROUNDING))


def _by_class(rows: Calibration, ranks: Indices) -> Vector:
    counts = rows.counts
    order = np.lexsort((rows.own, rows.labels))
    first = np.cumsum(counts) - counts
    at = np.clip(first + ranks - 1, 0, len(order))
    cutoffs = np.append(rows.own[order], np.inf)[at]
    return np.where(ranks <= 0, -np.inf, np.where(ranks > counts, np.inf, cutoffs))


def _together(rows: Calibration, task: CoverageTask, counts: Indices) -> Vector:
    assert task.masses is not None
    weights, allowed = task.decision_weights, task.allowed(counts)
    scores = weights[rows.labels] * rows.own
    order = np.argsort(scores, kind="stable")
    shares = np.cumsum((task.masses / np.maximum(counts, 1))[rows.labels][order])
    at = np.searchsorted(shares, allowed + ROUNDING, side="right")
    cutoffs = np.append(scores[order], np.inf)[at]
    return _on_probabilities(np.where(allowed < 0, -np.inf, cutoffs), weights, task.masses)


def _on_probabilities(found: Vector, weights: Vector, masses: Vector) -> Vector:
    """Thresholds of scores as those of probabilities; a class without mass is never in a set."""
    lowered = np.divide(found, weights, out=np.full(len(found), np.inf), where=weights > 0)
    return np.where((masses > 0) & (weights == 0), -np.inf, lowered)


def in_sets(probabilities: Matrix, lowest: Vector) -> Mask:
    """Which classes are in the set of each row, from their thresholds."""
    return np.asarray(probabilities >= lowest)


def in_cross_sets(tables: Sequence[Matrix], rows: Calibration, task: CoverageTask) -> Mask:
    """Which classes are in the set of each row, compared with each fold by the fold's model.

    Examples
    --------
    >>> rows = Calibration(np.linspace(0.05, 0.95, 19), np.zeros(19, int), np.arange(19) % 2, 2)
    >>> task = CoverageTask(np.array([0.1, 0.1]), np.array([0.5, 0.5]))
    >>> in_cross_sets([np.array([[0.1, 0.9], [0.04, 0.96]])] * 2, rows, task)
    array([[ True,  True],
           [False,  True]])
    """
    counts, weights = rows.counts, task.decision_weights
    if task.masses is None:
        steps, least = np.ones(rows.n_classes), task.ranks(counts) - 0.5
    else:
        steps, least = task.masses / np.maximum(counts, 1), task.allowed(counts) + ROUNDING
    total = np.zeros_like(tables[0])
    for index, table in enumerate(tables):
        part = rows.take(rows.fold == index)
        scores, own_scores = table * weights * (1 + ROUNDING), weights[part.labels] * part.own
        for i in range(rows.n_classes):
            among = part.labels == i if task.masses is None else slice(None)
            order = np.argsort(own_scores[among], kind="stable")
            shares = np.append(0.0, np.cumsum(steps[part.labels[among]][order]))
            at = np.searchsorted(own_scores[among][order], scores[:, i], side="right")
            total[:, i] += shares[at]
    if task.masses is None:
        return np.asarray(total > least)
    never, always = task.masses == 0, (task.masses > 0) & ((weights == 0) | (least < 0))
    return np.asarray(((total > least) | always) & ~never)


def equal_rows_of_weights(weights: Vector, labels: Indices, seed: int) -> Mask:
    """Rows of unequal weight within a class, drawn so that those kept count one each.

    Given the largest weight of a class, the rows that are drawn are independent ones of the
    weighted population, less its rows of larger weights, if no two weights of a class are equal;
    the row of the largest weight itself is left out. Weights of few values come close to that.

    Examples
    --------
    >>> equal_rows_of_weights(np.array([2.0, 2.0, 1.0]), np.array([0, 0, 1]), 0)
    array([ True,  True,  True])
    """
    kept, rng = np.ones(len(weights), dtype=bool), np.random.default_rng(seed)
    for label in np.unique(labels).tolist():
        rows = np.flatnonzero(labels == label)
        class_weights = weights[rows]
        if class_weights.min() < class_weights.max():
            kept[rows] = rng.random(len(class_weights)) * class_weights.max() < class_weights
            kept[rows[np.argmax(class_weights)]] = False
    return kept
