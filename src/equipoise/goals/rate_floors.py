r"""Floors of precisions and recalls, and ceilings of false-positive rates, at the least risk.

Log-weights start where the risk is the least, and one after another is moved to where the risk,
and :math:`10^3` for a rate that is short by one, is the least over all its values: as a weight
rises, row after row moves to its class, so that all tables along the way are sums over the first
rows. For two classes this is the best rule.

With ``abstain`` there is one more decision, that no class is predicted: an argmax over one more
column, whose probability and weight are 1 (:mod:`equipoise.goals.weight_search`). Its rows are not
right, and count for no precision. The searches start from the rule that always predicts a class,
from the one that never does, and for two classes from the best pair of thresholds: then no rule has
a lower value. For more classes the rule is no worse than without ``abstain``, and no single weight
improves it; floors of precisions alone are always kept.

With a ``confidence`` :math:`1 - \delta` the rows are parted at random. On the first half rules are
tuned for floors that are raised by some standard errors, and ordered by how well that half shows
their floors. On the second half each floor of a rule is tested exactly: of ``N`` rows that count,
the right ones are :math:`\mathrm{Bin}(N, r)`, given ``N``; those that count are the rows of the
class for a recall, the rows predicted as the class for a precision, and the rows of other classes
for a false-positive rate. A rule passes if every test of a rate at its floor rejects at the level
:math:`\delta` (intersection-union); rules are tested in order until one fails (fixed sequence), and
of those that passed the one of the least risk is returned. A rule that breaks a floor is returned
with probability :math:`\delta` at most.

References
----------
Angelopoulos, Bates, Candes, Jordan and Lei (2021), "Learn then Test".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.stats import binom

from equipoise.arrays import ROUNDING, ArrayLike, Mask, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError, InvalidParameterError, UnattainableError
from equipoise.goals.base import Criterion, Goal, from_logs, log_ratio, prior_among
from equipoise.goals.floors import refuse_floors_of
from equipoise.goals.labelled_predictions import Predictions, confusion_table, decide
from equipoise.goals.weight_search import Counted, SearchedRows
from equipoise.text import share_text
from equipoise.validation.numbers import check_flag, check_interval, check_number, check_numbers
from equipoise.weights.priors import named_prior

# SHORT: cost of a rate that is short of its floor, in units of risk.
SHORT = 1e3
# MOST_SWEEPS: over the classes, at most; each lowers the value or is the last.
MOST_SWEEPS = 20
# CAUTION: standard errors by which floors are raised on the rows that rules are tuned on.
CAUTION = (4.0, 3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0)


@dataclass(frozen=True, eq=False)
class FlooredRates(Criterion):
    """The standard risk, with rates no smaller than floors; 0 leaves one free."""

    floors: dict[str, Vector]
    prior: Vector
    classes: NDArray[Any]
    confidence: float | None = None
    abstain: bool = False

    def value(self, table: Matrix) -> float:
        scaled = table * (self.prior / table.sum(axis=1))[:, None]
        k = len(scaled)
        return float(self._of(Counted(np.diag(scaled), scaled.sum(axis=0)[:k], self.prior)))

    def _of(self, counted: Counted) -> Any:
        return 1 - counted.right.sum(axis=-1) + SHORT * self._short(counted)

    def _of_class(self, counted: Counted) -> NDArray[np.float64]:
        """What each class adds to the value."""
        return np.asarray(SHORT * sum(self._gaps(counted)) - counted.right)

    def _short(self, counted: Counted) -> Any:
        return sum(gap.sum(axis=-1) for gap in self._gaps(counted))

    def _gaps(self, counted: Counted) -> list[NDArray[np.float64]]:
        """By how much the rates of each class are short of their floors."""
        rates = counted.rates
        return [np.maximum(f - ROUNDING - rates[n], 0) for n, f in self.floors.items()]

    def tune(
        self, rows: Predictions, parts: Sequence[Mask], *, pooling: float, seed: int
    ) -> list[Vector]:
        weights = []
        for part in parts:
            subset = rows.take(np.flatnonzero(part))
            theta = self._least(subset) if self.confidence is None else self._tested(subset, seed)
            weights.append(from_logs(theta))
        return weights

    def _least(self, rows: Predictions) -> Vector:
        """The log-weights of the least risk that keep all floors on these rows."""
        theta = self._best(rows)
        if self._keeps(rows, theta):
            return theta
        counted = self._counted(rows, theta)
        asked = [
            f"a {name} of {floor:.6g} for class {label!r} (at best {best:.3g} beside the others)"
            for name, floors in self.floors.items()
            for floor, best, label in zip(
                floors, counted.rates[name], self.classes.tolist(), strict=True
            )
            if floor > best + ROUNDING
        ]
        raise UnattainableError(
            f"No decision weights were found that reach {' and '.join(asked)} on the tuning rows. "
            f"Lower a floor, improve the model, {self._with_abstaining(rows)}or predict sets that "
            "may be empty (PredictionSets)."
        )

    def _with_abstaining(self, rows: Predictions) -> str:
        """The advice to abstain where that attains the floors, and from how many rows."""
        if self.abstain:
            return ""
        theta = replace(self, abstain=True)._best(rows)
        if not self._keeps(rows, theta):
            return ""
        share = share_text(1 - float(self._counted(rows, theta).predicted.sum()))
        return f"set abstain=True, which attains them with {share} of the rows without a class, "

    def _keeps(self, rows: Predictions, theta: Vector) -> bool:
        return bool(self._short(self._counted(rows, theta)) <= ROUNDING)

    def _counted(self, rows: Predictions, theta: Vector) -> Counted:
        predicted = decide(rows.probabilities, from_logs(theta))
        shares = rows.sample_weight / rows.sample_weight.sum()
        k = rows.n_classes
        table = confusion_table(rows.labels, predicted, shares, k, len(theta))
        return Counted(np.diag(table), table.sum(axis=0)[:k], table.sum(axis=1))

    def _best(self, rows: Predictions) -> Vector:
        """The log-weights of the least value that the searches find."""
        theta = log_ratio(self.prior, rows.prior)
        searched = SearchedRows.of(rows, abstain=False)
        theta = self._moved(rows, searched, theta)
        if not self.abstain:
            return theta
        searched = SearchedRows.of(rows, abstain=True)
        # All rows have a class, or none has one.
        starts = [searched.without_abstaining(theta), np.append(np.full(len(theta), -1.0), 0.0)]
        if len(theta) == 2:
            starts.append(searched.least_pair(self._of_class))
        ends = [self._moved(rows, searched, start) for start in starts]
        values = [float(self._of(self._counted(rows, end))) for end in ends]
        best = ends[int(np.argmin(values))]
        # The same order of classes, where it does as well without abstaining.
        lifted = searched.without_abstaining(best[:-1])
        value = float(self._of(self._counted(rows, lifted)))
        return lifted if value <= min(values) + ROUNDING else best

    def _moved(self, rows: Predictions, searched: SearchedRows, theta: Vector) -> Vector:
        """Log-weights moved one after another, until no single one gains: abstaining is last."""
        best = float(self._of(self._counted(rows, theta)))
        bound = sum(self.floors.values()) > 0
        order = [*np.argsort(~bound, kind="stable").tolist(), *range(len(self.prior), len(theta))]
        for _ in range(MOST_SWEEPS):
            before = best
            for i in order:
                value, at = searched.least_along(theta, i, self._of)
                if value < best - ROUNDING:
                    theta = theta + at * (np.arange(len(theta)) == i)
                    best = value
            if best >= before - ROUNDING:
                break
        return np.asarray(theta)

    # With a confidence

    def _tested(self, rows: Predictions, seed: int) -> Vector:
        counts = np.bincount(rows.labels, minlength=rows.n_classes)
        # A stratified part has the shares of all rows but for a row of each class.
        slack = 2 / max(int(counts.min()), 2)
        if rows.sample_weight.max() > (1 + slack) * rows.sample_weight.min():
            raise InvalidInputError(
                "A confidence of floors needs rows of equal weight at the class frequencies of the "
                "population, got unequal weights: leave out sample_weight and class_prior, or the "
                "confidence."
            )
        rows = replace(rows, sample_weight=np.ones(len(rows.labels)))
        half = np.random.default_rng(seed).random(len(rows.labels)) < 1 / 2
        tuning, testing = (rows.take(np.flatnonzero(part)) for part in (half, ~half))
        passed = self._passed(tuning, testing)
        if passed:
            return min(passed, key=lambda rule: float(self._of(self._counted(tuning, rule))))
        assert self.confidence is not None
        tail, advice = 1 - self.confidence, ""
        if not self.abstain and replace(self, abstain=True)._passed(tuning, testing):
            advice = " With abstain=True they do show them: rows may then have no class."
        least = max(
            int(np.ceil(np.log(tail) / np.log(floor)))
            for floors in self.floors.values()
            for floor in floors[floors > 0].tolist()
        )
        raise UnattainableError(
            f"{len(testing.labels)} rows to test on do not show the floors with confidence "
            f"{self.confidence:.6g}: of the rows that a floor counts, at least {least} are needed, "
            "all of them right, and more if some are wrong. Lower a floor or the confidence, give "
            f"more rows, or hold out a larger share of them, such as cv=0.5.{advice}"
        )

    def _passed(self, tuning: Predictions, testing: Predictions) -> list[Vector]:
        """The rules tuned on some rows whose floors others show, tested in a fixed order."""
        assert self.confidence is not None
        rules: list[Vector] = []
        passed: list[Vector] = []
        for caution in CAUTION:
            raised = self._raised(tuning, caution)
            theta = raised._best(tuning)
            if raised._keeps(tuning, theta):
                rules.append(theta)
        for theta in sorted(rules, key=lambda rule: self._tail(tuning, rule)):
            if self._tail(testing, theta) > 1 - self.confidence:
                break
            passed.append(theta)
        return passed

    def _raised(self, rows: Predictions, caution: float) -> FlooredRates:
        """Floors that are higher by standard errors of rates on as many rows as there are here."""
        counted = self._counted(rows, log_ratio(self.prior, rows.prior))
        n = len(rows.labels)
        sizes = {
            "recall": counted.totals,
            "precision": counted.predicted,
            "true-negative rate": 1 - counted.totals,
        }
        raised = {
            name: np.where(
                f > 0,
                f + caution * np.sqrt(f * (1 - f) / np.maximum(n * sizes[name], 1)),
                0.0,
            )
            for name, f in self.floors.items()
        }
        return replace(self, floors={name: np.minimum(f, 1.0) for name, f in raised.items()})

    def _tail(self, rows: Predictions, theta: Vector) -> float:
        """The largest p-value of the tests that a rate is below its floor."""
        counted, n = self._counted(rows, theta), len(rows.labels)
        right, predicted, totals = (
            np.round(n * each) for each in (counted.right, counted.predicted, counted.totals)
        )
        pairs = {
            "recall": (right, totals),
            "precision": (right, predicted),
            "true-negative rate": (n - totals - predicted + right, n - totals),
        }
        tails = [
            binom.sf(pairs[name][0][f > 0] - 1, pairs[name][1][f > 0], f[f > 0])
            for name, f in self.floors.items()
        ]
        return float(np.max(np.concatenate(tails), initial=0.0))


class Floors(Goal):
    """The least standard risk among all weights that keep recalls, precisions or specificities.

    Parameters
    ----------
    recall, precision : float, dict by class, or array-like of shape (n_classes,), default=None
        Smallest recalls and precisions, from 0 to 1; a dict leaves the classes that it does not
        name free. A class that is never predicted keeps its precision.
    false_positive_rate : float, dict by class, or array-like of shape (n_classes,), default=None
        Largest shares of the rows of other classes that are predicted as a class.
    confidence : float in (0, 1), default=None
        The probability with which all floors together shall hold for new rows of the population.
        None keeps them on the tuning rows alone.
    abstain : bool, default=False
        Whether rows may have no class, where that helps to keep a floor: ``predict`` then gives
        None. They count as errors, in recalls too, and for no precision.

    Notes
    -----
    With ``abstain`` a class is predicted where its weighted probability is the largest and reaches
    that of abstaining (``abstain_below``). A class without a floor of its precision and without a
    largest false-positive rate claims what no other does, of two classes all of it: with a floor
    for every class there are rows without one.

    With a confidence a half of the tuning rows tests what the other half has tuned: the returned
    rule breaks a floor with probability ``1 - confidence`` at most over the draw of independent
    rows of the population, for any model. Where the rows cannot show that, there is an
    ``UnattainableError`` with the rows that are needed. For recalls alone
    :class:`~equipoise.RecallFloors` needs fewer rows.

    Examples
    --------
    >>> from equipoise.goals import Floors
    >>> goal = Floors(recall={"ill": 0.8}, precision={"ill": 0.5})
    >>> goal.resolve([0.9, 0.1], ["well", "ill"]).floors["precision"]
    array([0. , 0.5])

    Of the rows in the middle neither class has a precision of 90%:

    >>> from equipoise import tune_weights
    >>> y, eta = [0] * 60 + [1] * 60, [0.1] * 50 + [0.5] * 20 + [0.9] * 50
    >>> tuned = tune_weights(y, eta, Floors(precision=0.9, abstain=True))
    >>> tuned.decide([0.1, 0.5, 0.9]).tolist(), round(tuned.abstained, 3)
    ([0, None, 1], 0.167)
    """

    def __init__(
        self,
        recall: Any = None,
        precision: Any = None,
        false_positive_rate: Any = None,
        confidence: float | None = None,
        abstain: bool = False,
    ) -> None:
        self.recall = recall
        self.precision = precision
        self.false_positive_rate = false_positive_rate
        self.confidence = confidence
        self.abstain = abstain

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> FlooredRates:
        """The standard risk with floors of rates."""
        p, names = named_prior(prior, classes)
        limits = {
            "recall": ("recall", self.recall),
            "precision": ("precision", self.precision),
            "true-negative rate": ("false_positive_rate", self.false_positive_rate),
        }
        confidence = self.confidence
        if confidence is not None:
            confidence = check_number(confidence, "confidence", "(0, 1)")
        floors = {}
        for rate, (name, value) in limits.items():
            if value is None:
                continue
            free = 1.0 if name == "false_positive_rate" else 0.0
            by_class = check_numbers(value, names, name=name, default=free)
            by_class = check_interval(by_class, names, name, "[0, 1]")
            floors[rate] = 1 - by_class if free else by_class
            if confidence is not None and np.any(floors[rate] == 1):
                raise InvalidParameterError(
                    f"{name} must leave room for errors where there is a confidence, got "
                    f"{by_class.tolist()}: no number of rows shows that errors never happen."
                )
        if not floors:
            raise InvalidParameterError(
                "Floors needs recall, precision or false_positive_rate, got none of them."
            )
        abstain = check_flag(self.abstain, "abstain")
        return FlooredRates(floors, p, names, confidence, abstain)

    def resolve_some(self, prior: Vector, classes: NDArray[Any], few: Mask) -> FlooredRates:
        """The same among the classes that have rows enough; no other may have a floor."""
        floored = self.resolve(prior, classes)
        refuse_floors_of(few & (sum(floored.floors.values()) > 0), classes)
        some = {name: floors[~few] for name, floors in floored.floors.items()}
        among = prior_among(prior, classes, ~few)
        return replace(floored, floors=some, prior=among, classes=classes[~few])

    @classmethod
    def examples(cls) -> list[Self]:
        """Floors that are kept on the rows at hand, with and without abstaining."""
        return [
            cls(recall=0.1),
            cls(precision=0.05, false_positive_rate=0.99),
            cls(precision=0.3, abstain=True),
        ]


class PrecisionFloors(Goal):
    """The least standard risk among all weights that keep the precision of some classes.

    Parameters
    ----------
    floors : float, dict by class, or array-like of shape (n_classes,)
        Smallest precisions, as in :class:`Floors`.
    confidence : float in (0, 1), default=None
        As in :class:`Floors`.
    abstain : bool, default=False
        As in :class:`Floors`: whether rows that no class may claim have no class. With a floor for
        every class, such rules always exist.

    Notes
    -----
    Of the rules that keep the floors it is the one of the least overall error, not the one of the
    largest recall. The two differ where a floor is below the precision of the default predictions,
    which keep it then: add a floor of the recall there, with :class:`Floors`.

    Examples
    --------
    >>> from equipoise.goals import PrecisionFloors
    >>> PrecisionFloors({"ill": 0.5}).resolve([0.9, 0.1], ["well", "ill"]).floors
    {'precision': array([0. , 0.5])}
    """

    def __init__(self, floors: Any, confidence: float | None = None, abstain: bool = False) -> None:
        self.floors = floors
        self.confidence = confidence
        self.abstain = abstain

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> FlooredRates:
        """The standard risk with floors of precisions."""
        return self._as_floors.resolve(prior, classes)

    def resolve_some(self, prior: Vector, classes: NDArray[Any], few: Mask) -> FlooredRates:
        """The same among the classes that have rows enough."""
        return self._as_floors.resolve_some(prior, classes, few)

    @property
    def _as_floors(self) -> Floors:
        return Floors(precision=self.floors, confidence=self.confidence, abstain=self.abstain)

    @classmethod
    def examples(cls) -> list[Self]:
        """A floor for every class, kept on the rows at hand."""
        return [cls(0.05)]
