r"""Confidence intervals for class risks, and for the risk of the worst class.

Everything is conditional on the labels. Given them, the rows of a test set are independent, and
so are the losses of different classes; with the zero-one loss the errors of class ``i`` are
binomial. The classifier must not have seen the rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.losses import Loss, as_loss
from equipoise.risks.one_sided import bound_method, class_moments
from equipoise.risks.row_losses import row_losses
from equipoise.validation.numbers import check_number
from equipoise.weights.by_class import ByClass, class_lines


@dataclass(frozen=True)
class RiskInterval:
    """An estimate of a risk and its confidence interval.

    Attributes
    ----------
    estimate, lower, upper : float
    confidence : float
        Probability that the interval covers the risk.
    method : str
        How it was found; it begins with ``approximate`` where coverage is not guaranteed.
    approximate : bool

    Examples
    --------
    >>> interval = class_risk_intervals([0] * 9 + [1], [0] * 10)[0]
    >>> 0.3 in interval, round(interval.upper, 4), interval.method
    (True, 0.3363, 'exact (Clopper-Pearson)')
    """

    estimate: float
    lower: float
    upper: float
    confidence: float
    method: str
    approximate: bool

    def __contains__(self, risk: float) -> bool:
        return self.lower <= risk <= self.upper


@dataclass(frozen=True, repr=False)
class RiskIntervals(Mapping[Any, RiskInterval]):
    """A confidence interval for the risk of each class, by class name.

    Attributes
    ----------
    risks, lower, upper : ByClass
    confidence : float
        Probability that an interval covers its risk; that all do, if ``simultaneous``.
    simultaneous : bool
    method : str
        How they were found; it begins with ``approximate`` where coverage is not guaranteed.
    approximate : bool

    Examples
    --------
    >>> intervals = class_risk_intervals([0] * 9 + [1], [0] * 10, simultaneous=True)
    >>> intervals.simultaneous, round(intervals.upper[0], 4)
    (True, 0.3846)
    """

    risks: ByClass
    lower: ByClass
    upper: ByClass
    confidence: float
    simultaneous: bool
    method: str
    approximate: bool

    def __getitem__(self, name: Any) -> RiskInterval:
        ends = self.risks[name], self.lower[name], self.upper[name]
        return RiskInterval(*ends, self.confidence, self.method, self.approximate)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.risks)

    def __len__(self) -> int:
        return len(self.risks)

    def __repr__(self) -> str:
        together = ", simultaneous" if self.simultaneous else ""
        lines = class_lines(risk=self.risks, lower=self.lower, upper=self.upper)
        title = f"confidence {self.confidence:g}{together}, {self.method}"
        return "\n".join([title, *lines])


def class_risk_intervals(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    confidence: float = 0.95,
    simultaneous: bool = False,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> RiskIntervals:
    r"""Confidence intervals for the risks of all classes.

    .. math:: P(L_i \leq R_i \leq U_i) \geq c \;\text{ for each } i, \quad\text{or}\quad
              P(L_i \leq R_i \leq U_i \text{ for all } i) \geq c

    ========================  =====================================================
    loss                      interval, with equal weights within each class
    ========================  =====================================================
    ``zero_one``              exact: Clopper and Pearson
    ``margin``                guaranteed for values in [0, 1]: Chernoff and Hoeffding
    unbounded                 approximate: Student's t; needs many rows
    ========================  =====================================================

    Where weights differ within a class, the first two are taken at Kish's effective number of
    rows and are approximate; ``method`` says so. Weights that are constant within each class
    cancel and change nothing. Weights are never counts of repeated rows: repeat the rows instead.

    Simultaneous intervals have confidence :math:`c^{1/k}` each (Sidak). Classes are independent
    given the labels, so the probability that all cover is the product, at least :math:`c`.

    Parameters
    ----------
    y_true, y_pred, loss, classes, sample_weight
        As in :func:`equipoise.risks.class_risks`.
    confidence : float in (0, 1), default=0.95
        The probability :math:`c`.
    simultaneous : bool, default=False
        Whether it is the probability that all intervals cover, or that any given one does.

    Returns
    -------
    RiskIntervals

    Examples
    --------
    >>> y = ["ham"] * 50 + ["spam"] * 4
    >>> intervals = class_risk_intervals(y, ["ham"] * 51 + ["spam"] * 3)
    >>> intervals
    confidence 0.95, exact (Clopper-Pearson)
    class risk lower      upper
    ham:  0    0          0.0711217
    spam: 0.25 0.00630946 0.80588
    """
    chosen, tail = as_loss(loss), tail_of(confidence)
    moments = class_moments(
        row_losses(y_true, y_pred, loss=chosen, classes=classes, sample_weight=sample_weight)
    )
    if simultaneous:
        tail = sidak(2 * tail, len(moments.classes)) / 2
    method = bound_method(chosen, moments)
    ends = (moments.risks, method.lower(moments, tail), method.upper(moments, tail))
    risks, lower, upper = (ByClass(values, moments.classes) for values in ends)
    return RiskIntervals(
        risks, lower, upper, confidence, simultaneous, method.name, method.approximate
    )


def worst_class_interval(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    confidence: float = 0.95,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> RiskInterval:
    r"""A confidence interval for the risk of the worst class.

    .. math:: P(L \leq \max_i R_i \leq U) \geq c, \qquad
              U = \max_i U_i, \quad L = \max_i L_i

    Let :math:`\delta = 1 - c`. The upper bounds :math:`U_i` hold with probability
    :math:`1 - \delta/2` *each*: the class :math:`j` that is truly worst is fixed, and
    :math:`\max_i R_i = R_j \leq U_j \leq U` already when its own bound holds. The lower bounds
    hold with probability :math:`1 - \delta/2` *together* (Sidak), because :math:`L` exceeds
    :math:`\max_i R_i` as soon as a single :math:`L_i` does.

    The estimate is the largest observed class risk. It is too high on average, the more so the
    smaller and the more numerous the classes; the interval allows for that.

    Parameters
    ----------
    y_true, y_pred, confidence, loss, classes, sample_weight
        As in :func:`class_risk_intervals`, also for when the interval is approximate.

    Returns
    -------
    RiskInterval

    Examples
    --------
    >>> y = ["ham"] * 50 + ["spam"] * 4
    >>> interval = worst_class_interval(y, ["ham"] * 51 + ["spam"] * 3)
    >>> round(interval.lower, 4), interval.estimate, round(interval.upper, 4)
    (0.0032, 0.25, 0.8059)
    """
    chosen, tail = as_loss(loss), tail_of(confidence)
    moments = class_moments(
        row_losses(y_true, y_pred, loss=chosen, classes=classes, sample_weight=sample_weight)
    )
    method = bound_method(chosen, moments)
    lower = method.lower(moments, sidak(tail, len(moments.classes))).max()
    upper = method.upper(moments, tail).max()
    estimate = float(moments.risks.max())
    return RiskInterval(
        estimate, float(lower), float(upper), confidence, method.name, method.approximate
    )


def sidak(probability: float, n_events: int) -> float:
    """The probability of each of independent events that have this probability of any."""
    return float(-np.expm1(np.log1p(-probability) / n_events))


def tail_of(confidence: float) -> float:
    """The probability that an interval may leave on each side."""
    return (1 - check_number(confidence, "confidence", "(0, 1)")) / 2
