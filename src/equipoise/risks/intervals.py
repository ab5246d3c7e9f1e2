r"""Confidence intervals for class risks, and for robust risks.

Everything is conditional on the labels. Given them, the rows of a test set are independent, and
so are the losses of different classes; with the zero-one loss the errors of class ``i`` are
binomial. The rows must be held out: the classifier was not fitted to them.

.. math::

    n_i^{\mathrm{eff}} = \frac{(\sum w_j)^2}{\sum w_j^2}, \qquad
    s_i^2 = \frac{n_i}{n_i - 1} \, \frac{\sum w_j^2 (\ell_j - R_i)^2}{(\sum w_j)^2}

with sums over the rows of class ``i``: Kish's effective number of rows, and the squared standard
error of the class risk, linearised where the weights differ.

Bounds :math:`L` and :math:`U` at a ``tail`` have :math:`P(R_i < L) \leq \mathrm{tail}` and
:math:`P(R_i > U) \leq \mathrm{tail}`, given the labels: exactly so for the binomial and the
Chernoff-Hoeffding bounds of equally weighted rows, in the limit of many rows otherwise.

Where the rows of each fold ``f`` were predicted by a rule of its own, and the final rule is
tuned on all folds, rows say less about it. They are counted as fewer by the factor

.. math:: \max\Bigl(1 + \rho, \; \frac{K}{K - 1} \sum_f \pi_f^2 (R_{if} - R_i)^2 / s_i^2 \Bigr)

with :math:`\pi_f` the fold's share of the class and :math:`\rho` the evaluation rows per row of a
training part, 0 if one model predicted all folds: what fits to different rows differ by (Nadeau and
Bengio), or the variance between the folds, if larger. Such an interval is never exact.

References
----------
Clopper and Pearson (1934); Hoeffding (1963), Theorem 1; Korn and Graubard (1998) for the binomial
bound at effective counts; Nadeau and Bengio (2003), "Inference for the Generalization Error", for
the variance of cross-validated risks; Bates, Hastie and Tibshirani (2024), "Cross-Validation: What
Does It Estimate and How Well Does It Do It?", for why it is larger than that of one rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betaincinv, rel_entr, stdtrit

from equipoise.arrays import ArrayLike, NDArray, Vector
from equipoise.losses import Loss, as_loss
from equipoise.risks.class_risks import class_frame, present_classes
from equipoise.risks.row_losses import RowLosses, row_losses
from equipoise.sets import as_uncertainty
from equipoise.validation.labels import Names
from equipoise.validation.numbers import check_number
from equipoise.weights.by_class import ByClass, class_html, class_lines
from equipoise.weights.priors import check_prior

# CROSS_FITTED: the smallest coverage of intervals at 95% after cross-fitting in simulations, of
# logistic regression, neighbours and forests, and of trees of depth 3 (docs/studies/coverage.txt).
# Boosting was not among them.
CROSS_FITTED = "cross-fitted, 98% or more held in simulations (shallow trees: 69%)"
# Halvings after which a bracket inside the unit interval is narrower than its rounding error.
_BRACKET_HALVINGS = 60


@dataclass(frozen=True)
class ClassMoments:
    """Per class: risk, effective number of rows, standard error; arrays in class order.

    ``note`` says what makes the number of rows an approximate one, if anything does.
    """

    classes: Names
    risks: Vector
    effective: Vector
    standard_errors: Vector
    note: str


Bounds = Callable[[ClassMoments, float], tuple[Vector, Vector]]


@dataclass(frozen=True)
class RiskInterval:
    """An estimate of a risk and its confidence interval.

    Attributes
    ----------
    estimate, lower, upper, confidence : float
    method : str
        The kind of bound; it begins with ``approximate`` where coverage is not guaranteed.

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

    def __contains__(self, risk: float) -> bool:
        return self.lower <= risk <= self.upper

    @property
    def approximate(self) -> bool:
        """Whether coverage is not guaranteed."""
        return self.method.startswith("approximate")


@dataclass(frozen=True, repr=False)
class RiskIntervals(Mapping[Any, RiskInterval]):
    """A confidence interval for the risk of each class, by class name.

    Attributes
    ----------
    risks, lower, upper : ByClass
    confidence, simultaneous, method : float, bool and str
        As in :func:`class_risk_intervals` and :class:`RiskInterval`.
    limits : callable
        Lower and upper limits of the classes that have rows, from the tail that each may leave.
    loss : str
        The name of the loss.

    Examples
    --------
    >>> y = ["ham"] * 50 + ["spam"] * 4
    >>> intervals = class_risk_intervals(y, ["ham"] * 51 + ["spam"] * 3)
    >>> worst = intervals.worst()
    >>> round(worst.lower, 4), worst.estimate, round(worst.upper, 4)
    (0.0032, 0.25, 0.8059)
    """

    risks: ByClass
    lower: ByClass
    upper: ByClass
    confidence: float
    simultaneous: bool
    method: str
    limits: Callable[[float], tuple[Vector, Vector]] = field(compare=False)
    loss: str = "zero_one"

    @property
    def approximate(self) -> bool:
        """Whether coverage is not guaranteed."""
        return self.method.startswith("approximate")

    def worst(self) -> RiskInterval:
        r"""An interval for the risk of the worst class.

        .. math:: P(L \leq \max_i R_i \leq U) \geq c, \qquad
                  U = \max_i U_i, \quad L = \max_i L_i

        Let :math:`\delta = 1 - c`. The upper bounds :math:`U_i` hold with probability
        :math:`1 - \delta/2` *each*: the class :math:`j` that is truly worst is fixed, and
        :math:`\max_i R_i = R_j \leq U_j \leq U` already when its own bound holds. The lower bounds
        hold with probability :math:`1 - \delta/2` *together* (Sidak), because :math:`L` exceeds
        :math:`\max_i R_i` as soon as a single :math:`L_i` does.

        The estimate is the largest observed class risk. It is too high on average, the more so the
        smaller and the more numerous the classes; the interval allows for that.
        """
        tail = tail_of(self.confidence)
        upper = self.limits(tail)[1]
        lower = self.limits(sidak(tail, len(upper)))[0]
        ends = np.nanmax(np.asarray(self.risks)), lower.max(), upper.max()
        estimate, low, high = map(float, ends)
        return RiskInterval(estimate, low, high, self.confidence, self.method)

    def to_frame(self) -> Any:
        """Risk, lower and upper end, one line a class, as a pandas DataFrame; recalls as well."""
        return class_frame(self.loss, risk=self.risks, lower=self.lower, upper=self.upper)

    def __getitem__(self, name: Any) -> RiskInterval:
        ends = self.risks[name], self.lower[name], self.upper[name]
        return RiskInterval(*ends, self.confidence, self.method)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.risks)

    def __len__(self) -> int:
        return len(self.risks)

    def __repr__(self) -> str:
        return "\n".join([self._title, *class_lines(shares=self._shares, **self._columns)])

    def _repr_html_(self) -> str:
        return class_html(shares=self._shares, caption=self._title, **self._columns)

    @property
    def _title(self) -> str:
        together = ", simultaneous" if self.simultaneous else ""
        return f"confidence {self.confidence:g}{together}, {self.method}"

    @property
    def _columns(self) -> dict[str, ByClass]:
        return {"risk": self.risks, "lower": self.lower, "upper": self.upper}

    @property
    def _shares(self) -> tuple[str, ...]:
        """Risks of the zero-one loss are shares of rows."""
        return tuple(self._columns) if self.loss == "zero_one" else ()


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

    Examples
    --------
    >>> y = ["ham"] * 50 + ["spam"] * 4
    >>> intervals = class_risk_intervals(y, ["ham"] * 51 + ["spam"] * 3)
    >>> intervals
    confidence 0.95, exact (Clopper-Pearson)
    class risk   lower  upper
    ham:    0%      0% 7.112%
    spam:  25% 0.6309% 80.59%
    """
    chosen, tail = as_loss(loss), tail_of(confidence)
    moments = class_moments(row_losses(y_true, y_pred, chosen, classes, sample_weight))
    if simultaneous:
        tail = sidak(2 * tail, len(moments.classes)) / 2
    method, limits = _method(chosen.range, moments)
    ends = (moments.risks, *limits(tail))
    risks, lower, upper = (ByClass(values, moments.classes) for values in ends)
    return RiskIntervals(risks, lower, upper, confidence, simultaneous, method, limits, chosen.name)


def robust_risk_interval(  # noqa: PLR0913  predictions, the set, and how they are counted
    y_true: ArrayLike,
    y_pred: ArrayLike,
    goal: Any = None,
    *,
    confidence: float = 0.95,
    loss: str | Loss = "zero_one",
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_prior: Any = None,
) -> RiskInterval:
    r"""A confidence interval for the robust risk of a classifier, from held-out rows.

    .. math:: P\Bigl( \max_{m \in M} \langle m, L \rangle \leq \max_{m \in M} \langle m, R \rangle
              \leq \max_{m \in M} \langle m, U \rangle \Bigr) \geq c

    The bounds :math:`L_i \leq R_i \leq U_i` of the class risks hold with probability
    :math:`1 - (1 - c) / 2` together on each side (Sidak), and no mass is negative: what holds for
    all class risks at once holds for every maximum over masses. Where the set is the whole simplex
    one class decides, its upper bound need hold alone, and the interval is that of
    :meth:`RiskIntervals.worst`.

    This is the usable form of a bound of the robust risk, as in Theorem 1 of the paper: it is about
    one classifier on held-out rows and not about a whole class of functions, and so has
    no complexity term. Given the labels it is exact for the zero-one loss and guaranteed for the
    margin loss, for any number of rows, as in the table of :func:`class_risk_intervals`; it is
    conservative, the more so the more classes share the mass. It is approximate for unbounded
    losses and where weights differ within a class; ``method`` says so.

    Parameters
    ----------
    y_true, y_pred, loss, classes, sample_weight
        As in :func:`equipoise.risks.class_risks`.
    goal : Uncertainty, str or None
        The set of weightings.
    confidence : float in (0, 1), default=0.95
        The probability :math:`c`.
    class_prior : mapping by class name, or array-like in class order, optional
        Class frequencies of the population, at which the set is taken. If not given they are the
        shares of the rows, and the interval is for the set at these shares; sets that need no
        prior, such as ``WorstClass`` and ``PriorBox``, are the same either way.

    Examples
    --------
    >>> from equipoise.sets import LabelCVaR
    >>> y = ["ham"] * 450 + ["spam"] * 50
    >>> interval = robust_risk_interval(y, ["ham"] * 460 + ["spam"] * 40, LabelCVaR(0.2))
    >>> round(interval.lower, 3), round(interval.estimate, 3), round(interval.upper, 3)
    (0.045, 0.1, 0.183)
    >>> interval.method
    'exact (Clopper-Pearson)'
    """
    chosen, tail = as_loss(loss), tail_of(confidence)
    rows = row_losses(y_true, y_pred, chosen, classes, sample_weight)
    moments, totals = class_moments(rows), rows.total_weights()
    prior = totals / totals.sum()
    if class_prior is not None:
        prior = check_prior(class_prior, rows.classes)
    masses = as_uncertainty(goal).resolve(prior, rows.classes)
    method, limits = _method(chosen.range, moments)
    together = sidak(tail, len(totals))
    lower, upper = limits(together)[0], limits(tail if masses.is_simplex else together)[1]
    estimate, low, high = (float(masses.support(each)) for each in (moments.risks, lower, upper))
    return RiskInterval(estimate, low, high, confidence, method)


def counted_intervals(
    counted: NDArray[np.float64],
    classes: Names,
    confidence: float = 0.95,
    *,
    refit: float | None = None,
    choices: int = 1,
) -> RiskIntervals:
    """Intervals of zero-one risks from sums over rows, as ``counted_moments`` takes them.

    A class without rows has the risk nan, somewhere from 0 to 1. Where the sums tell the errors of
    the final weights on the same rows, the interval reaches as far as one around these does. One
    of several ``choices`` has the confidence that all of them would have together (Bonferroni).
    """
    moments = [counted_moments(counted, refit)]
    places, tail = moments[0].classes, tail_of(confidence)
    if counted.shape[1] > 4:
        _, totals, _, _, errors = counted.sum(axis=0)[:, places]
        moments.append(replace(moments[0], risks=errors / totals))
    method, limits = _method("{0, 1}", *moments, choices=choices)
    every = np.tile([[np.nan], [0.0], [1.0]], len(classes))
    every[:, places] = moments[0].risks, *limits(tail)
    risks, lower, upper = (ByClass(values, classes) for values in every)
    return RiskIntervals(risks, lower, upper, confidence, False, method, limits)


def sidak(probability: float, n_events: int) -> float:
    """The probability of each of independent events that have this probability of any."""
    return float(-np.expm1(np.log1p(-probability) / n_events))


def tail_of(confidence: float) -> float:
    """The probability that an interval may leave on each side."""
    return (1 - check_number(confidence, "confidence", "(0, 1)")) / 2


def class_moments(rows: RowLosses) -> ClassMoments:
    """Moments of the losses within each class, all of which must have rows."""
    totals, counts = rows.total_weights(), rows.row_counts()
    present_classes(rows.classes, totals, "raise")
    risks = rows.weighted_sums(rows.losses) / totals
    # Scaled within the class, so that squares neither overflow nor vanish.
    relative = (1.0 if rows.weights is None else rows.weights) / totals[rows.true]
    effective = totals if rows.weights is None else 1 / rows.sums(relative**2)
    effective, note = _effective_rows(effective, counts)
    squares = rows.sums((relative * (rows.losses - risks[rows.true])) ** 2)
    # One row says nothing about the spread.
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(counts > 1, np.sqrt(squares * counts / (counts - 1)), np.inf)
    return ClassMoments(rows.classes, risks, effective, errors, note)


def counted_moments(counted: NDArray[np.float64], refit: float | None = None) -> ClassMoments:
    r"""Moments of zero-one losses of the classes that have rows, named by their places.

    ``counted`` is of shape ``(n_folds, 4, n_classes)``, sums over the rows of each fold: their
    number, their weight, the weight of errors, and the squares of shares in the weight of the
    class; perhaps a fifth, the weight of errors of the final weights. ``refit`` is the
    :math:`\rho` above; without it one rule decided all folds.
    """
    places = np.flatnonzero(counted[:, 0].sum(axis=0) > 0)
    counts, totals, errors, squares = counted[:, :4, places].transpose(1, 0, 2)
    total, rows = totals.sum(axis=0), counts.sum(axis=0)
    risks, (effective, note) = (
        errors.sum(axis=0) / total,
        _effective_rows(1 / squares.sum(axis=0), rows),
    )
    variances, factor = risks * (1 - risks) / effective, 1.0
    if refit is not None:
        n_folds = np.maximum(np.count_nonzero(totals, axis=0), 2)
        between = (((errors - totals * risks) / total) ** 2).sum(axis=0) * n_folds / (n_folds - 1)
        ratio = np.divide(between, variances, out=np.zeros_like(risks), where=variances > 0)
        factor, note = np.maximum(1 + refit, ratio), CROSS_FITTED
    return ClassMoments(places, risks, effective / factor, np.sqrt(variances * factor), note)


def _effective_rows(effective: Vector, counts: Vector) -> tuple[Vector, str]:
    """Effective numbers of rows, and a note where they are not the numbers themselves."""
    # Weights that are constant within a class cancel from its risk. Cauchy-Schwarz: the effective
    # number of rows reaches the number of rows only then.
    equal = np.isclose(effective, counts, rtol=1e-9)
    return np.where(equal, counts, effective), "" if equal.all() else "effective counts"


def binomial_bounds(moments: ClassMoments, tail: float) -> tuple[Vector, Vector]:
    """Risks at which so many errors or more, or so few or fewer, have probability ``tail``."""
    errors = moments.risks * moments.effective
    right = moments.effective - errors
    # Few errors are many right decisions.
    return _binomial_tail(errors, right, tail), 1 - _binomial_tail(right, errors, tail)


def _binomial_tail(events: Vector, others: Vector, tail: float) -> Vector:
    # P(at least x events) is the regularised incomplete beta function at x, n - x + 1.
    some = events > 0
    bound = betaincinv(np.where(some, events, 1.0), others + 1, tail)
    return np.where(some, bound, 0.0)


def _chernoff_bounds(moments: ClassMoments, tail: float) -> tuple[Vector, Vector]:
    r"""Ends of the :math:`\mu` with :math:`n\,\mathrm{kl}(R, \mu) \leq -\log(\mathrm{tail})`.

    :math:`\mathrm{kl}` is the divergence of two coins; each end is found by bisection between the
    risk and an end of the unit interval.
    """
    mean, budget = moments.risks, -np.log(tail) / moments.effective
    # Both ends at once: lower ones in the first row, upper ones in the second.
    inside, outside = np.array([mean, mean]), np.tile([[0.0], [1.0]], len(mean))
    for _ in range(_BRACKET_HALVINGS):
        middle = (inside + outside) / 2
        within = rel_entr(mean, middle) + rel_entr(1 - mean, 1 - middle) <= budget
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    # The outer ends of the brackets, so that rounding errs on the safe side.
    return outside[0], outside[1]


def _student_bounds(moments: ClassMoments, tail: float) -> tuple[Vector, Vector]:
    """The risk less and plus a Student quantile of standard errors, but at least 0."""
    # With fewer than two effective rows there is no estimate of the spread to rely on.
    enough = moments.effective >= 2
    quantile = stdtrit(np.where(enough, moments.effective, 2.0) - 1, 1 - tail)
    width = np.where(enough, quantile * np.where(enough, moments.standard_errors, 0.0), np.inf)
    return np.maximum(moments.risks - width, 0.0), moments.risks + width


_BY_RANGE: dict[str, tuple[str, str, Bounds]] = {
    "{0, 1}": ("exact", "Clopper-Pearson", binomial_bounds),
    "[0, 1]": ("guaranteed", "Chernoff-Hoeffding", _chernoff_bounds),
    "[0, inf)": ("approximate", "Student t", _student_bounds),
}


def _method(
    of_range: str, *moments: ClassMoments, choices: int = 1
) -> tuple[str, Callable[[float], tuple[Vector, Vector]]]:
    """Words for the tightest bounds that the losses' range and the weights allow, and these."""
    kind, family, bounds = _BY_RANGE[of_range]
    note, limits = moments[0].note, partial(_limits, bounds, moments, choices)
    if not note or kind == "approximate":
        return f"{kind} ({family})", limits
    return f"approximate ({family}, {note})", limits


def _limits(
    bounds: Bounds, moments: Sequence[ClassMoments], choices: int, tail: float
) -> tuple[Vector, Vector]:
    """The widest bounds around moments of the same classes, for one of several choices."""
    lower, upper = zip(*(bounds(each, tail / choices) for each in moments), strict=True)
    return np.min(lower, axis=0), np.max(upper, axis=0)


def binomial_interval(shares: Vector, counts: Vector) -> tuple[Vector, Vector]:
    """Clopper and Pearson's intervals for shares of (effective) counts, at 95% confidence.

    Examples
    --------
    >>> lower, upper = binomial_interval(np.array([0.0]), np.array([50.0]))
    >>> upper.round(4).tolist()
    [0.0711]
    """
    nothing = np.zeros_like(shares)
    moments = ClassMoments(np.arange(len(shares)), shares, counts, nothing, "")
    return binomial_bounds(moments, tail_of(0.95))
