r"""One-sided confidence bounds for class risks, by the range of the loss.

.. math::

    n_i^{\mathrm{eff}} = \frac{(\sum w_j)^2}{\sum w_j^2}, \qquad
    s_i^2 = \frac{n_i}{n_i - 1} \, \frac{\sum w_j^2 (\ell_j - R_i)^2}{(\sum w_j)^2}

with sums over the rows of class ``i``: Kish's effective number of rows, and the squared standard
error of the class risk, linearised where the weights differ.

Each bound :math:`U` has :math:`P(R_i > U) \leq \mathrm{tail}`, and each :math:`L` has
:math:`P(R_i < L) \leq \mathrm{tail}`, given the labels: exactly so for the binomial and the
Chernoff-Hoeffding bounds of equally weighted rows, in the limit of many rows otherwise.

References
----------
Clopper and Pearson (1934); Hoeffding (1963), Theorem 1; Korn and Graubard (1998) for the binomial
bound at effective counts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, rel_entr, stdtrit

from equipoise.arrays import Vector
from equipoise.losses import Loss
from equipoise.risks.class_risks import present_classes
from equipoise.risks.row_losses import RowLosses
from equipoise.validation.labels import Names

# Halvings after which a bracket inside the unit interval is narrower than its rounding error.
_HALVINGS = 60


@dataclass(frozen=True)
class ClassMoments:
    """Per class: risk, effective number of rows, standard error; arrays in class order."""

    classes: Names
    risks: Vector
    effective: Vector
    standard_errors: Vector
    equal_weights: bool


def class_moments(rows: RowLosses) -> ClassMoments:
    """Moments of the losses within each class, all of which must have rows."""
    totals = rows.total_weights()
    present_classes(rows.classes, totals, "raise")
    risks = rows.weighted_sums(rows.losses) / totals
    counts, effective = rows.row_counts(), _effective(rows, totals)
    # Weights that are constant within a class cancel from its risk. Cauchy-Schwarz: the effective
    # number of rows reaches the number of rows only then.
    equal = np.isclose(effective, counts, rtol=1e-9)
    return ClassMoments(
        classes=rows.classes,
        risks=risks,
        effective=np.where(equal, counts, effective),
        standard_errors=_standard_errors(rows, risks, totals, counts),
        equal_weights=bool(equal.all()),
    )


def _effective(rows: RowLosses, totals: Vector) -> Vector:
    if rows.weights is None:
        return totals
    # Scaled within the class, so that squares neither overflow nor vanish.
    relative = rows.weights / totals[rows.true]
    return 1 / rows.sums(relative**2)


def _standard_errors(rows: RowLosses, risks: Vector, totals: Vector, counts: Vector) -> Vector:
    relative = (1.0 if rows.weights is None else rows.weights) / totals[rows.true]
    squares = rows.sums((relative * (rows.losses - risks[rows.true])) ** 2)
    # One row says nothing about the spread.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 1, np.sqrt(squares * counts / (counts - 1)), np.inf)


Bound = Callable[[ClassMoments, float], Vector]


@dataclass(frozen=True)
class BoundMethod:
    """A pair of one-sided bounds, the words for it, and whether it only holds approximately."""

    name: str
    approximate: bool
    lower: Bound
    upper: Bound


def binomial_lower(moments: ClassMoments, tail: float) -> Vector:
    """The risk at which so many errors or more have probability ``tail``; 0 without an error."""
    errors = moments.risks * moments.effective
    return _binomial_tail(errors, moments.effective - errors, tail)


def binomial_upper(moments: ClassMoments, tail: float) -> Vector:
    """The risk at which so few errors or fewer have probability ``tail``; 1 if all are errors."""
    errors = moments.risks * moments.effective
    # Few errors are many successes.
    return 1 - _binomial_tail(moments.effective - errors, errors, tail)


def _binomial_tail(events: Vector, others: Vector, tail: float) -> Vector:
    # P(at least x events) is the regularised incomplete beta function at x, n - x + 1.
    some = events > 0
    bound = betaincinv(np.where(some, events, 1.0), others + 1, tail)
    return np.where(some, bound, 0.0)


def chernoff_lower(moments: ClassMoments, tail: float) -> Vector:
    r"""The smallest :math:`\mu` with :math:`n\,\mathrm{kl}(R, \mu) \leq -\log(\mathrm{tail})`."""
    return _chernoff(moments, tail, np.zeros_like(moments.risks))


def chernoff_upper(moments: ClassMoments, tail: float) -> Vector:
    r"""The largest :math:`\mu` with :math:`n\,\mathrm{kl}(R, \mu) \leq -\log(\mathrm{tail})`."""
    return _chernoff(moments, tail, np.ones_like(moments.risks))


def _chernoff(moments: ClassMoments, tail: float, outside: Vector) -> Vector:
    r"""Bisection between the risk and an end of the unit interval.

    ``mean`` stands for :math:`R`; :math:`\mathrm{kl}` is the divergence of two coins.
    """
    mean, budget = moments.risks, -np.log(tail) / moments.effective
    inside = mean
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        within = _coin_divergence(mean, middle) <= budget
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    # The outer end of the bracket, so that rounding errs on the safe side.
    return outside


def _coin_divergence(left: Vector, right: Vector) -> Vector:
    divergence: Vector = rel_entr(left, right) + rel_entr(1 - left, 1 - right)
    return divergence


def student_lower(moments: ClassMoments, tail: float) -> Vector:
    """The risk less a Student quantile of standard errors, but at least 0."""
    return np.maximum(moments.risks - _student_width(moments, tail), 0.0)


def student_upper(moments: ClassMoments, tail: float) -> Vector:
    """The risk plus a Student quantile of standard errors."""
    return moments.risks + _student_width(moments, tail)


def _student_width(moments: ClassMoments, tail: float) -> Vector:
    # With fewer than two effective rows there is no estimate of the spread to rely on.
    enough = moments.effective >= 2
    quantile = stdtrit(np.where(enough, moments.effective, 2.0) - 1, 1 - tail)
    return np.where(enough, quantile * np.where(enough, moments.standard_errors, 0.0), np.inf)


_BY_RANGE = {
    "{0, 1}": ("Clopper-Pearson", binomial_lower, binomial_upper),
    "[0, 1]": ("Chernoff-Hoeffding", chernoff_lower, chernoff_upper),
    "[0, inf)": ("Student t", student_lower, student_upper),
}


def bound_method(loss: Loss, moments: ClassMoments) -> BoundMethod:
    """The tightest bounds that the range of the loss and the weights allow."""
    family, lower, upper = _BY_RANGE[loss.range]
    if loss.range == "[0, inf)":
        return BoundMethod(f"approximate ({family})", True, lower, upper)
    if not moments.equal_weights:
        return BoundMethod(f"approximate ({family}, effective counts)", True, lower, upper)
    kind = "exact" if loss.range == "{0, 1}" else "guaranteed"
    return BoundMethod(f"{kind} ({family})", False, lower, upper)
