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
from reprlib import repr as shortened
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.validation.labels import (
    as_labels,
    check_length,
    check_sample_weight,
    classes_of,
    positions,
    predicted_positions,
)
from equipoise.validation.numbers import check_number

# Sums of coefficients that cancel up to this share of their size are zero.
_ROUNDING = 1e-13


class Coefficients(NamedTuple):
    """A constant, and what a row adds by its true class and its decision.

    Examples
    --------
    >>> Coefficients(constant=1, tp=2).total(0.25, 0.5, positives=0.25, negatives=0.75)
    1.5
    """

    constant: float = 0.0
    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0

    def total(self, tp: Any, fp: Any, positives: float, negatives: float) -> Any:
        """The sum over all rows, from TP, FP and the totals of the classes in the same unit."""
        rest = self.constant * (positives + negatives) + self.fn * positives + self.tn * negatives
        return rest + (self.tp - self.fn) * tp + (self.fp - self.tn) * fp

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
        if np.isnan(self.threshold):
            return "Every decision is optimal: the metric does not depend on it."
        side = f"where its probability is {'above' if self.above else 'below'} {self.threshold:.6g}"
        how = "as with the class weights"
        if not self.above:
            how = "the rule flips, which no weighting of the classes does:"
        elif min(self.weights) < 0:
            side = "for every row" if self.weights[0] < 0 else "for no row"
            how = "which no weighting of the classes rewards:"
        weights = "q = ({:.6g}, {:.6g})".format(*self.weights)
        return f"The metric is largest when class 1 is decided {side}, {how} {weights}."


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
        (tn, fp), (fn, tp) = check_table(table, 2).tolist()
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
        """The metric of predicted labels of two classes, or of more with ``pos_label``.

        That is the positive class, all others being negative: the second of two, sorted, if not
        given.
        """
        true, decided = _two_classes(y_true, y_pred, pos_label)
        weights = None if sample_weight is None else check_sample_weight(sample_weight, len(true))
        table = np.bincount(2 * true + decided, weights=weights, minlength=4).reshape(2, 2)
        return self.value(table)

    def ratio(self, tp: Any, fp: Any, positives: float, negatives: float) -> Any:
        """The metric of arrays of TP and FP, in the same unit as the totals of the classes.

        Nan or infinite where the denominator is 0.
        """
        table = tp, fp, positives, negatives
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.divide(self.numerator.total(*table), self.denominator.total(*table))

    def with_positive_denominator(self, positive_share: float) -> "LinearFractional":
        """The same metric with a denominator above 0 for all tables with this share of positives.

        Numerator and denominator may change their signs; a denominator that can be 0 is refused.
        """
        share = check_number(positive_share, "positive_share", "[0, 1]")
        values = self.denominator.total(*_corners(share))
        tiny = _ROUNDING * float(np.abs(values).max())
        if float(values.min()) > tiny:
            return self
        if float(values.max()) < -tiny:
            signed = self.numerator.signed(-1), self.denominator.signed(-1)
            return LinearFractional(*signed, self.name)
        nobody = abs(values[0]) <= tiny
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
        # Without a slope the optimal decision is the same for every probability.
        endless = np.copysign(np.inf, q0) if q0 else np.nan
        threshold = q0 / slope if slope else float(endless)
        return EquivalentWeighting(threshold, (q0 / scale, q1 / scale), above=slope >= 0)

    def can_flip(self, positive_share: float) -> bool:
        """Whether some value of the metric makes the optimal rule decide class 1 below."""
        metric = self.with_positive_denominator(positive_share)
        # A ratio of linear functions is largest and smallest at corners of the rectangle of
        # tables, and the slope is linear in the value: the ends of its range tell.
        values = metric.ratio(*_corners(positive_share))
        ends = float(values.min()), float(values.max())
        return not all(metric.weighting(value, positive_share).above for value in ends)


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


def check_table(table: ArrayLike, n_classes: int | None = None) -> Matrix:
    """A table of at least one row, with a row and a column for each of so many classes."""
    cells = np.asarray(table, dtype=np.float64)
    k = len(cells) if n_classes is None and cells.ndim else n_classes
    if cells.shape != (k, k) or not np.isfinite(cells).all() or np.any(cells < 0):
        which = "class" if n_classes is None else f"of {n_classes} classes"
        raise InvalidInputError(
            f"table must have a row and a column for each {which}, rows by true class and columns "
            f"by decision, with finite values of at least 0, got {shortened(cells.tolist())}."
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
    true, positive = (positions(labels, classes) == place for labels in (truth, decided))
    return true.astype(np.intp), positive.astype(np.intp)


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
