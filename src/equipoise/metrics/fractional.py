r"""Metrics of decisions: ratios of two classes with the weights they amount to, means over many.

.. math::

    \mathcal{L} = \frac{a_0 + a_{11} TP + a_{10} FP + a_{01} FN + a_{00} TN}
                       {b_0 + b_{11} TP + b_{10} FP + b_{01} FN + b_{00} TN}

is a linear-fractional metric of two classes. Of many, with :math:`h_i` the rows of class ``i``
decided right, :math:`n_i` all its rows, and :math:`d_i` the rows decided to be of it, there are the
macro F-beta and the geometric mean:

.. math::

    F_\beta = \frac{1}{k} \sum_i \frac{(1 + \beta^2) h_i}{\beta^2 n_i + d_i}, \qquad
    G = \Bigl( \prod_i \frac{h_i}{n_i} \Bigr)^{1/k}

Of two classes ``"accuracy"``, :math:`TP + TN`, ``"balanced_accuracy"`` (``"arithmetic_mean"``),
``"f1"`` and ``"jaccard"``, :math:`TP / (TP + FP + FN)`, can be given by name. F-beta and
weighted accuracies have a parameter: see :func:`fbeta` and :func:`weighted_accuracy`.

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

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from equipoise.arrays import ArrayLike, Indices, Vector
from equipoise.exceptions import ClassMismatchError, InvalidInputError, InvalidParameterError
from equipoise.risks.class_risks import Absent, present_classes
from equipoise.text import did_you_mean
from equipoise.validation.labels import (
    as_labels,
    check_length,
    check_sample_weight,
    class_names,
    classes_of,
    positions,
    predicted_positions,
)
from equipoise.validation.numbers import check_number
from equipoise.validation.predictions import check_table

# Share of the size of its terms, 450 machine epsilons, below which a sum of coefficients is zero.
_CANCELLED = 1e-13


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


def _coefficients(values: Any, part: str) -> Coefficients:
    known = Coefficients._fields
    if isinstance(values, Mapping) and set(values) <= set(known):
        values = [values.get(field, 0.0) for field in known]
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (len(known),) or not np.isfinite(numbers).all():
        raise InvalidParameterError(
            f"{part} must be five finite numbers ({', '.join(known)}) or a dict by these names, "
            f"got {values!r}."
        )
    return Coefficients(*numbers.tolist())


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
        Whether class 1 is decided above the threshold; False where the rule flips.

    Examples
    --------
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
        value = float(self.ratio(tp, fp, tp + fn, tn + fp))
        if not np.isfinite(value):
            raise InvalidInputError(
                f"the denominator of {self.name} is 0 for the table {[[tn, fp], [fn, tp]]}, "
                f"{_remedy(tp + fn)}"
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
        cells = _cells(y_true, y_pred, pos_label)
        weights = check_sample_weight(sample_weight, len(cells))
        return self.value(np.bincount(cells, weights=weights, minlength=4).reshape(2, 2))

    def ratio(self, tp: Any, fp: Any, positives: float, negatives: float) -> Any:
        """The metric of arrays of TP and FP, in the same unit as the totals of the classes.

        Nan or infinite where the denominator is 0.
        """
        table = tp, fp, positives, negatives
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.divide(self.numerator.total(*table), self.denominator.total(*table))

    def with_positive_denominator(self, positive_share: float) -> LinearFractional:
        """The same metric with a denominator above 0 for all tables with this share of positives.

        Numerator and denominator may change their signs; a denominator that can be 0 is refused.
        """
        share = check_number(positive_share, "positive_share", "[0, 1]")
        values = self.denominator.total(*_corners(share))
        tiny = _CANCELLED * float(np.abs(values).max())
        if float(values.min()) > tiny:
            return self
        if float(values.max()) < -tiny:
            # Taken from 0, so that no zero is negative.
            a, b = ([0.0 - v for v in part] for part in (self.numerator, self.denominator))
            return LinearFractional(Coefficients(*a), Coefficients(*b), self.name)
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

        The rule flips where :math:`q_0 + q_1 < 0`.
        """
        metric = self.with_positive_denominator(positive_share)
        a, b = metric.numerator, metric.denominator
        q0 = _sum((b.fp - b.tn) * value, -a.fp, a.tn)
        q1 = _sum((b.fn - b.tp) * value, -a.fn, a.tp)
        slope, mean = _sum(q0, q1), _sum((1 - positive_share) * q0, positive_share * q1)
        scale = abs(mean) or 1.0
        # Without a slope the optimal decision is the same for every probability.
        threshold = q0 / slope if slope else float(np.copysign(np.inf, q0) if q0 else np.nan)
        return EquivalentWeighting(threshold, (q0 / scale, q1 / scale), above=slope >= 0)

    def can_flip(self, positive_share: float) -> bool:
        """Whether some value of the metric makes the optimal rule decide class 1 below."""
        metric = self.with_positive_denominator(positive_share)
        # A ratio of linear functions is largest and smallest at corners of the rectangle of
        # tables, and the slope is linear in the value: the ends of its range tell.
        ends = np.quantile(metric.ratio(*_corners(positive_share)), [0, 1]).tolist()
        return not all(metric.weighting(value, positive_share).above for value in ends)


def weighted_accuracy(negative: float, positive: float) -> LinearFractional:
    r"""Accuracy with a weight for each class.

    .. math:: \frac{q_1 TP + q_0 TN}{q_1 (TP + FN) + q_0 (TN + FP)}

    One minus the paper's weighted risk with the weights :math:`q_0` of the negative and :math:`q_1`
    of the positive class, scaled to mean one.

    Examples
    --------
    >>> round(weighted_accuracy(1, 19).value([[90, 5], [2, 3]]), 6)
    0.773684
    """
    q0 = check_number(negative, "negative", "[0, inf)")
    q1 = check_number(positive, "positive", "[0, inf)")
    right, every = Coefficients(tp=q1, tn=q0), Coefficients(tp=q1, fn=q1, tn=q0, fp=q0)
    return LinearFractional(right, every, f"accuracy with weights ({q0:g}, {q1:g})")


def arithmetic_mean(positive_share: float) -> LinearFractional:
    r"""The mean of the two recalls, balanced accuracy: :math:`TP / (2\pi) + TN / (2 (1 - \pi))`.

    Its coefficients depend on the share of positives, so that it is made for one population.

    Examples
    --------
    >>> round(arithmetic_mean(0.05).value([[90, 5], [2, 3]]), 6)
    0.773684
    """
    share = check_number(positive_share, "positive_share", "[0, 1]")
    if share in (0, 1):
        raise InvalidInputError(
            "balanced accuracy needs rows of both classes, got a share of positives of "
            f"{share:g}: the recall of a class without rows is undefined."
        )
    recalls = Coefficients(tp=1 / (2 * share), tn=1 / (2 * (1 - share)))
    return LinearFractional(recalls, Coefficients(constant=1), "balanced accuracy")


def fbeta(beta: float = 1.0) -> LinearFractional:
    r"""F-beta, the harmonic mean of precision and recall with recall weighted by beta squared.

    .. math:: \frac{(1 + \beta^2) TP}{(1 + \beta^2) TP + FP + \beta^2 FN}

    The threshold of the optimal rule is :math:`F^* / (1 + \beta^2)`. Precision has the weight
    :math:`1 / (1 + \beta^2)` in the mean.

    Examples
    --------
    >>> fbeta(2).denominator
    Coefficients(constant=0.0, tp=5.0, fp=1.0, fn=4.0, tn=0.0)
    """
    square = check_number(beta, "beta", "(0, inf)") ** 2
    denominator = Coefficients(tp=1 + square, fp=1, fn=square)
    return LinearFractional(Coefficients(tp=1 + square), denominator, f"F{beta:g}")


Metric = str | LinearFractional | Callable[[float], LinearFractional]
# Metrics by name, or what makes one from the share of positives.
METRICS: dict[str, Metric] = {
    "accuracy": LinearFractional(Coefficients(tp=1, tn=1), Coefficients(constant=1), "accuracy"),
    "arithmetic_mean": arithmetic_mean,
    "balanced_accuracy": arithmetic_mean,
    "f1": fbeta(1),
    "jaccard": LinearFractional(Coefficients(tp=1), Coefficients(tp=1, fp=1, fn=1), "Jaccard"),
}


def as_metric(metric: Metric, positive_share: float) -> LinearFractional:
    """A metric from its name, from a function of the share of positives, or from a metric.

    Examples
    --------
    >>> as_metric("balanced_accuracy", 0.25).numerator.tp
    2.0
    """
    known = METRICS.get(metric) if isinstance(metric, str) else metric
    if isinstance(known, LinearFractional):
        return known
    if callable(known):
        return known(positive_share)
    names = ", ".join(repr(name) for name in METRICS)
    raise InvalidParameterError(
        f"metric must be one of {names}, a LinearFractional, or a function that makes one from the "
        f"share of positives, got {metric!r}{did_you_mean(metric, METRICS)}."
    )


def macro_fbeta(
    table: ArrayLike,
    beta: float = 1.0,
    *,
    classes: ArrayLike | None = None,
    absent: Absent = "raise",
) -> float:
    r"""The mean over the classes of their F-beta.

    Parameters
    ----------
    table : array-like of shape (n_classes, n_classes)
        Counts or weights of rows, by true class (rows) and decision (columns).
    beta : float, default=1.0
        How many times as much recall counts as precision.
    classes : array-like of shape (n_classes,), optional
        Names for the messages.
    absent : {"raise", "drop"}, default="raise"
        Whether a class without a row is an error, or left out of the mean. Rows that are predicted
        as this class stay errors of their own classes.

    Examples
    --------
    >>> macro_fbeta([[2, 0], [1, 1]])
    0.7333333333333334
    """
    square = check_number(beta, "beta", "(0, inf)") ** 2
    hits, decided, totals = _present(table, classes, absent)
    return float(((1 + square) * hits / (square * totals + decided)).mean())


def geometric_mean(
    table: ArrayLike, *, classes: ArrayLike | None = None, absent: Absent = "raise"
) -> float:
    r"""The geometric mean of the recalls; 0 as soon as one class is always missed.

    Parameters
    ----------
    table, classes, absent
        As in :func:`macro_fbeta`.

    Examples
    --------
    >>> geometric_mean([[4, 0], [3, 1]])
    0.5
    """
    hits, _, totals = _present(table, classes, absent)
    # Roots first: a product of a thousand recalls would vanish.
    return float(np.prod((hits / totals) ** (1 / len(totals))))


def _present(
    table: ArrayLike, classes: ArrayLike | None, absent: Absent
) -> tuple[Vector, Vector, Vector]:
    """Right decisions, all decisions and all rows of the classes that have rows."""
    cells = check_table(table)
    names, totals = class_names(classes, len(cells)), cells.sum(axis=1)
    some = present_classes(names, totals, absent, of="the table")
    return np.diag(cells)[some], cells.sum(axis=0)[some], totals[some]


def _cells(y_true: ArrayLike, y_pred: ArrayLike, pos_label: Any) -> Indices:
    """Cell of the table of each row: 2 where it is positive, and 1 more where it is decided so."""
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
    return np.asarray(2 * true + positive, dtype=np.intp)


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
    return 0.0 if abs(total) <= _CANCELLED * max(map(abs, terms)) else total
