r"""Linear-fractional metrics of two classes: ten numbers, and the weighting they amount to.

.. math::

    \mathcal{L} = \frac{a_0 + a_{11} TP + a_{10} FP + a_{01} FN + a_{00} TN}
                       {b_0 + b_{11} TP + b_{10} FP + b_{01} FN + b_{00} TN}

Conventions
-----------
Class 1 is the positive one. :math:`TP = P(Y = 1, f = 1)`, :math:`FP = P(Y = 0, f = 1)`,
:math:`FN = P(Y = 1, f = 0)` and :math:`TN = P(Y = 0, f = 0)` are shares of all rows.
A ``table`` has the true classes as rows and the decisions as columns, ``[[TN, FP], [FN, TP]]``, and
may hold counts: it is scaled to sum to one. ``positive_share`` is :math:`\pi = P(Y = 1)`.

References
----------
Koyejo, Natarajan, Ravikumar and Dhillon (2014); Xu, Dan, Khim and Ravikumar (2020), App. A.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.validation.labels import (
    as_labels,
    check_length,
    classes_of,
    positions,
    predicted_positions,
)
from equipoise.validation.numbers import check_number
from equipoise.validation.row_weights import check_sample_weight

# Sums of coefficients that cancel up to this share of their size are zero.
_ROUNDING = 1e-13


class Coefficients(NamedTuple):
    """A constant, and what a row adds by its true class and its decision.

    Examples
    --------
    >>> Coefficients(tp=2).at(positives=0.25, negatives=0.75)
    (0.0, 2.0, 0.0)
    """

    constant: float = 0.0
    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0

    def at(self, positives: float, negatives: float) -> tuple[float, float, float]:
        r"""The same as :math:`c_0 + c_1 TP + c_2 FP`, given the weight of either class."""
        rest = self.constant * (positives + negatives) + self.fn * positives + self.tn * negatives
        return rest, self.tp - self.fn, self.fp - self.tn

    def signed(self, sign: float) -> "Coefficients":
        """All five times a sign."""
        # Adding 0 makes plain zeros of negative ones.
        return Coefficients(*(sign * value + 0.0 for value in self))


@dataclass(frozen=True)
class EquivalentWeighting:
    r"""The class weights :math:`q` whose Bayes rule is the optimal one of a metric.

    Attributes
    ----------
    threshold : float
        Koyejo's :math:`\delta = q_0 / (q_0 + q_1)`. Infinite where the optimal decision does not
        depend on the probability, nan where every decision is optimal.
    weights : tuple of two floats
        :math:`(q_0, q_1)` with :math:`p_0 q_0 + p_1 q_1 = 1`; minus one where that sum is
        negative, unscaled where it is zero.
    above : bool
        Whether class 1 is decided where its probability is above the threshold; False where the
        rule flips, and it is decided below.

    Examples
    --------
    >>> from equipoise.metrics import fbeta
    >>> weighting = fbeta(1).weighting(value=0.6, positive_share=0.2)
    >>> round(weighting.threshold, 6), weighting.is_weighting
    (0.3, True)
    """

    threshold: float
    weights: tuple[float, float]
    above: bool

    @property
    def is_weighting(self) -> bool:
        """Whether these are class weights: neither is negative, and the rule does not flip."""
        return self.above and min(self.weights) >= 0

    @property
    def sentence(self) -> str:
        """What the optimal rule is, and whether a weighting of the classes gives it."""
        q0, q1 = self.weights
        if np.isnan(self.threshold):
            return "Every decision is optimal: the metric does not depend on it."
        if not self.above:
            return (
                f"The rule flips: the metric is largest when class 1 is decided where its "
                f"probability is below {self.threshold:.6g}, which no weighting of the classes "
                f"does (q = ({q0:.6g}, {q1:.6g}))."
            )
        if min(q0, q1) < 0:
            decided = "every row" if q0 < 0 else "no row"
            return (
                f"The metric is largest when class 1 is decided for {decided}: one of the weights "
                f"is negative (q = ({q0:.6g}, {q1:.6g})), so that no weighting of the classes "
                "rewards it."
            )
        return (
            f"Class 1 is decided where its probability is above {self.threshold:.6g}, as with the "
            f"class weights q = ({q0:.6g}, {q1:.6g})."
        )


@dataclass(frozen=True)
class LinearFractional:
    r"""A ratio of two linear functions of the shares of TP, FP, FN and TN; larger is better.

    Parameters
    ----------
    numerator, denominator : Coefficients, mapping or five numbers
        A constant and the factors of TP, FP, FN and TN. A mapping leaves out what is zero, as in
        ``{"tp": 2, "fp": 1, "fn": 1}``.
    name : str
        What messages call it.

    Examples
    --------
    F1, from its coefficients:

    >>> f1 = LinearFractional({"tp": 2}, {"tp": 2, "fp": 1, "fn": 1}, name="F1")
    >>> f1.value([[90, 5], [2, 3]])  # rows are true classes, columns decisions
    0.46153846153846156
    >>> f1.score(["no", "no", "yes", "yes"], ["no", "yes", "yes", "yes"])
    0.8
    """

    numerator: Coefficients
    denominator: Coefficients
    name: str = "the metric"

    def __post_init__(self) -> None:
        for part in ("numerator", "denominator"):
            object.__setattr__(self, part, _coefficients(getattr(self, part), part))
        if not any(self.denominator):
            raise InvalidParameterError(
                f"denominator must have a coefficient other than 0, got {self.denominator}."
            )

    def value(self, table: ArrayLike) -> float:
        """The metric of a 2 x 2 table, rows by true class and columns by decision."""
        (tn, fp), (fn, tp) = _check_table(table).tolist()
        positives, negatives = tp + fn, tn + fp
        value = float(self.ratio(tp, fp, positives, negatives))
        if not np.isfinite(value):
            raise InvalidInputError(
                f"the denominator of {self.name} is 0 for the table {[[tn, fp], [fn, tp]]}, "
                f"{_remedy(positives)}"
            )
        return value

    def score(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The metric of predicted labels.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            Labels of two classes, or of more with ``pos_label``.
        pos_label : label, optional
            The positive class, all others being negative: the second of two, sorted, if not given.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.
        """
        true, decided = _two_classes(y_true, y_pred, pos_label)
        weights = None if sample_weight is None else check_sample_weight(sample_weight, len(true))
        table = np.bincount(2 * true + decided, weights=weights, minlength=4).reshape(2, 2)
        return self.value(table)

    def ratio(self, tp: Any, fp: Any, positives: float, negatives: float) -> Any:
        """The metric of arrays of TP and FP, in the same unit as the totals of the classes.

        Nan or infinite where the denominator is 0.
        """
        a, a_tp, a_fp = self.numerator.at(positives, negatives)
        b, b_tp, b_fp = self.denominator.at(positives, negatives)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.divide(a + a_tp * tp + a_fp * fp, b + b_tp * tp + b_fp * fp)

    def bounds(self, positive_share: float) -> tuple[float, float]:
        """The smallest and the largest value over all tables with this share of positives."""
        # A linear-fractional function has its extremes at corners of the rectangle of tables.
        values = self.with_positive_denominator(positive_share).ratio(*_corners(positive_share))
        return float(values.min()), float(values.max())

    def with_positive_denominator(self, positive_share: float) -> "LinearFractional":
        """The same metric with a denominator above 0 for all tables with this share of positives.

        A denominator that is below 0 for all of them changes its sign, and so does the numerator.
        One that can be 0 is refused.
        """
        share = check_number(positive_share, "positive_share", "[0, 1]")
        tp, fp, positives, negatives = _corners(share)
        b, b_tp, b_fp = self.denominator.at(positives, negatives)
        values = b + b_tp * tp + b_fp * fp
        tiny = _ROUNDING * float(np.abs(values).max())
        if float(values.min()) > tiny:
            return self
        if float(values.max()) < -tiny:
            return LinearFractional(
                self.numerator.signed(-1), self.denominator.signed(-1), self.name
            )
        nobody = bool(abs(values[0]) <= tiny)
        where = "when no row is decided positive" if nobody else "for some decisions"
        raise InvalidInputError(
            f"{self.name} has no optimum: its denominator is 0 {where}, {_remedy(share)}"
        )

    def weighting(self, value: float, positive_share: float) -> EquivalentWeighting:
        r"""The class weights whose Bayes rule is optimal, given the optimal value.

        .. math::

            q_0 = (b_{10} - b_{00}) \mathcal{L}^* - a_{10} + a_{00}, \quad
            q_1 = (b_{01} - b_{11}) \mathcal{L}^* - a_{01} + a_{11}, \quad
            \delta = \frac{q_0}{q_0 + q_1}

        Class 1 is decided where its probability is above :math:`\delta` if :math:`q_0 + q_1 > 0`,
        and below if it is negative.
        """
        metric = self.with_positive_denominator(positive_share)
        a, b = metric.numerator, metric.denominator
        q0 = _sum((b.fp - b.tn) * value, -a.fp, a.tn)
        q1 = _sum((b.fn - b.tp) * value, -a.fn, a.tp)
        slope, mean = _sum(q0, q1), _sum((1 - positive_share) * q0, positive_share * q1)
        scale = abs(mean) or 1.0
        threshold = float(np.divide(q0, slope)) if slope else _endless(q0)
        return EquivalentWeighting(threshold, (q0 / scale, q1 / scale), above=slope >= 0)

    def can_flip(self, positive_share: float) -> bool:
        """Whether some value of the metric makes the optimal rule decide class 1 below."""
        # The slope is linear in the value, so that the ends of the range tell.
        ends = self.bounds(positive_share)
        return not all(self.weighting(value, positive_share).above for value in ends)


def _coefficients(values: Any, part: str) -> Coefficients:
    known = Coefficients._fields
    if isinstance(values, Mapping) and set(values) <= set(known):
        values = [values.get(field, 0.0) for field in known]
    try:
        numbers = [float(value) for value in values]
        if len(numbers) == len(known) and np.isfinite(numbers).all():
            return Coefficients(*numbers)
    except (TypeError, ValueError):
        pass
    raise InvalidParameterError(
        f"{part} must be five finite numbers ({', '.join(known)}) or a dict by these names, "
        f"got {values!r}."
    )


def _check_table(table: ArrayLike) -> Matrix:
    cells = np.asarray(table, dtype=np.float64)
    if cells.shape != (2, 2) or not np.isfinite(cells).all() or cells.min() < 0:
        raise InvalidInputError(
            "table must be 2 x 2, rows by true class and columns by decision, with finite values "
            f"of at least 0, got {cells.tolist()}."
        )
    if not cells.any():
        raise InvalidInputError("table must hold at least one row, got only zeros.")
    return cells


def _two_classes(y_true: ArrayLike, y_pred: ArrayLike, pos_label: Any) -> tuple[Indices, Indices]:
    """Whether each row is, and is decided to be, of the positive class."""
    truth, decided = as_labels(y_true, name="y_true"), as_labels(y_pred, name="y_pred")
    check_length(decided, len(truth), name="y_pred")
    classes = classes_of(truth)
    # Text beside numbers is a mistake, which joining the two would hide.
    predicted_positions(decided[:1], classes)
    classes = classes_of(np.concatenate([classes, classes_of(decided)]))
    names = classes.tolist()
    if pos_label is None:
        if len(names) != 2:
            raise ClassMismatchError(
                f"y_true and y_pred must hold labels of two classes, got {names}; pos_label= "
                "names the positive one, and all others are negative."
            )
        pos_label = names[1]
    elif pos_label not in names and len(names) > 1:
        raise ClassMismatchError(f"pos_label must be one of the labels {names}, got {pos_label!r}.")
    place = names.index(pos_label) if pos_label in names else -1
    is_positive = (positions(labels, classes) == place for labels in (truth, decided))
    true, positive = (flags.astype(np.intp) for flags in is_positive)
    return true, positive


def _corners(share: float) -> tuple[Vector, Vector, float, float]:
    """TP and FP where all or nothing of either class is decided positive, and both totals."""
    rest = 1 - share
    return np.array([0.0, share, 0.0, share]), np.array([0.0, 0.0, rest, rest]), share, rest


def _remedy(positives: float) -> str:
    if positives <= 0:
        return "and there are no rows of the positive class: choose rows that have some."
    return (
        "and nothing defines it there: give the denominator a positive constant, or choose a "
        "metric such as F-beta, whose denominator counts the positives that are missed."
    )


def _sum(*terms: float) -> float:
    total = float(sum(terms))
    return 0.0 if abs(total) <= _ROUNDING * max(map(abs, terms)) else total


def _endless(q0: float) -> float:
    """The threshold where the optimal decision is the same for every probability."""
    return float(np.nan if q0 == 0 else np.copysign(np.inf, q0))
