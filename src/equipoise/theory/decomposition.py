r"""Excess risk as estimation error, which falls with more data, plus irreducible error.

.. math:: R_{q'}(\hat f_q) - R_{q'}(f^*_{q'}) =
          \underbrace{R_{q'}(\hat f_q) - R_{q'}(f^*_q)}_{\text{estimation}} +
          \underbrace{R_{q'}(f^*_q) - R_{q'}(f^*_{q'})}_{\text{irreducible}}

for the plug-in rule :math:`\hat f_q(x) = \arg\max_i q_i \hat\eta_i(x)`, fitted for :math:`q` and
evaluated under :math:`q'`. For two classes, with :math:`t_q = q_0 / (q_0 + q_1)` and :math:`\eta`
the probability of the second class,

.. math::

    |\text{estimation}| &\le (q'_0 + q'_1) \bigl( \|\eta - \hat\eta\|_{L_1(P_X)}
        + |t_{q'} - t_q| \, P(\hat f_q \ne f^*_q) \bigr) \\
    \text{irreducible} &= (q'_0 + q'_1) \int |\eta - t_{q'}| \, 1\{f^*_q \ne f^*_{q'}\} \, dP_X
        \le (q'_0 + q'_1) \, |t_q - t_{q'}| \, P(f^*_q \ne f^*_{q'})

where the rules differ only if :math:`\eta` lies between the thresholds. The identity holds for any
number of classes, and the bounds do pair by pair (the paper has two classes). Classes ``a`` and
``c`` have the threshold :math:`t_q^{ac} = q_a / (q_a + q_c)` of
:math:`\eta_c / (\eta_a + \eta_c)`. With

.. math::

    d_{ac} = (q'_a + q'_c) \, |t_q^{ac} - t_{q'}^{ac}|, \qquad
    B(f, g) = E[ d_{f(X) g(X)} (\eta_{f(X)} + \eta_{g(X)}) ],

the weight :math:`q'_c \eta_c - q'_a \eta_a` that a decision for ``a`` in place of ``c`` loses is
:math:`(q'_a + q'_c)` times :math:`\eta_c - t_{q'}^{ac} (\eta_a + \eta_c)`, so that

.. math::

    |\text{estimation}| \le \max_{a \ne c} (q'_a + q'_c) \, \|\eta - \hat\eta\|
        + B(\hat f_q, f^*_q), \qquad
    \text{irreducible} \le B(f^*_q, f^*_{q'}),

with half the sum over classes of :math:`L_1` distances as the norm: no single class, and no mean of
two, is further off.

Conventions
-----------
Integrals over :math:`P_X` are weighted sums over rows: over quadrature points they are exact up to
the quadrature, over a sample they are estimates.

References
----------
Xu, Dan, Khim and Ravikumar (2020), Propositions 1 (:math:`q = q'`), 2 and 3, and Appendix B. The
paper's rates are those of the :math:`L_1` distance, which is computed here; the bounds for
more than two classes are not in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from equipoise.arrays import ArrayLike, Indices, Matrix, Vector
from equipoise.decisions import decide
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.risks import ClassRisks
from equipoise.risks.intervals import tail_of
from equipoise.risks.population import in_population
from equipoise.validation.labels import row_shares
from equipoise.validation.numbers import check_count, check_numbers
from equipoise.validation.predictions import as_probabilities, check_true
from equipoise.weights.priors import mass_of_weighting, scaled_weights

# _CAUTIOUS: tails of the percentile intervals, as a share of the nominal ones. With nominal tails
# 93% to 94% of 95% intervals covered in simulations, with half of them at least 95%.
_CAUTIOUS = 0.5

_PARTS = ("excess", "estimation", "irreducible")


@dataclass(frozen=True, eq=False, repr=False)
class ExcessRisk:
    r"""The excess risk of a rule for one weighting under another, in parts.

    Attributes
    ----------
    excess, estimation, irreducible : float
        The whole and its parts. The estimation error can be negative, where a wrong probability
        happens to help under :math:`q'`; the irreducible error cannot, if the risks are those of
        the true probabilities.
    fitted_for, evaluated_under : ndarray of shape (n_classes,)
        The weights :math:`q` and :math:`q'`.
    l1, disagreement : float
        :math:`\|\eta - \hat\eta\|_{L_1(P_X)}`, for more classes half the sum over them, and
        :math:`P(\hat f_q \ne f^*_q)`.
    estimation_bound, irreducible_bound : float
        The bounds of Propositions 3 (and 1, where the weightings agree) and 2, and the same for
        more than two classes.
    intervals : mapping by part, or None
        Lower and upper end for each of the first three numbers, where they were estimated.

    Examples
    --------
    >>> found = excess_risk([0.2, 0.4, 0.9], [0.2, 0.6, 0.9], "standard", (1, 4))
    >>> round(found.to_dict()["l1"], 6), round(found.disagreement, 6)
    (0.066667, 0.333333)
    """

    excess: float
    estimation: float
    irreducible: float
    fitted_for: Vector
    evaluated_under: Vector
    l1: float
    disagreement: float
    estimation_bound: float
    irreducible_bound: float
    intervals: Mapping[str, tuple[float, float]] | None = None

    def __repr__(self) -> str:
        estimation, irreducible = (
            f"{name} {getattr(self, name):.4g} (at most {getattr(self, name + '_bound'):.4g})"
            for name in _PARTS[1:]
        )
        text = f"excess risk {self.excess:.4g} = {estimation} + {irreducible}"
        ends = (self.intervals or {}).items()
        return "\n".join([text, *(f"{name} {low:.4g} to {up:.4g}" for name, (low, up) in ends)])

    def to_dict(self) -> dict[str, float]:
        """The numbers by name, with ``_lower`` and ``_upper`` ends where there are intervals."""
        names = (*_PARTS, "l1", "disagreement", "estimation_bound", "irreducible_bound")
        numbers = {name: float(getattr(self, name)) for name in names}
        for name, (lower, upper) in (self.intervals or {}).items():
            numbers |= {f"{name}_lower": lower, f"{name}_upper": upper}
        return numbers


def excess_risk(  # noqa: PLR0913  probabilities, rows, and how they are resampled
    truth: ArrayLike,
    estimate: ArrayLike,
    fitted_for: Any,
    evaluated_under: Any,
    *,
    y: ArrayLike | None = None,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 0,
    confidence: float = 0.95,
    random_state: Any = None,
) -> ExcessRisk:
    r"""Excess risk of the plug-in rule, at points or rows whose probabilities are known.

    Calibrated probabilities of a sample can stand for the true ones. The intervals are then for the
    rules that these probabilities make on new rows. They do not know how far the probabilities are
    from the truth: calibrate them, on other rows.

    Parameters
    ----------
    truth, estimate : array-like of shape (n, n_classes), or (n,) for two classes
        True or calibrated class probabilities, and those that the rule goes by. Give the same twice
        to ask for the irreducible error alone.
    fitted_for, evaluated_under : "standard", "balanced", dict by class, or array
        The weightings :math:`q` and :math:`q'`.
    y : array-like of int of shape (n,), optional
        Class positions of the rows (0 for the first column). With them risks are counted, which
        is right even where ``truth`` is not calibrated; without them they are expected under it,
        which is less noisy.
    class_prior : array, optional
        Class frequencies of the population, where those of the points, of ``y`` or the mean of the
        true probabilities, differ: points and odds are carried over, and weights count relative to
        these. There are no intervals then, since the odds would differ by resample.
    sample_weight : array-like of shape (n,), optional
        Weights of the points, such as those of a quadrature.
    n_resamples : int, default=0
        Resamples of the rows, for percentile intervals: 500 are enough.
    confidence : float in (0, 1), default=0.95
        Share of them in the interval.
    random_state : int, RandomState or None, default=None
        Seed of the resamples.

    Examples
    --------
    >>> truth, estimate = [0.2, 0.4, 0.9] * 20, [0.2, 0.6, 0.9] * 20
    >>> found = excess_risk(truth, estimate, "standard", (1, 4), n_resamples=100, random_state=0)
    >>> round(found.estimation, 4), round(found.irreducible, 4)
    (-0.1333, 0.1333)
    >>> found.intervals["irreducible"][0] < found.irreducible
    True

    Of a model that is known, exact up to the quadrature:

    >>> from equipoise.datasets import PowerImbalance
    >>> model = PowerImbalance(p=0.9)
    >>> X, w = model.quadrature(20_000)
    >>> found = excess_risk(model.eta(X[:, 0]), X[:, 0] ** 7, (1, 1), (1, 9), sample_weight=w)
    >>> exact = model.weighted_risk(model.bayes_threshold_x((1, 1)), (1, 9))
    >>> bool(abs(found.irreducible - (exact - model.bayes_risk((1, 9)))) < 1e-4)
    True
    """
    n, tail = check_count(n_resamples, "n_resamples", 0), _CAUTIOUS * tail_of(confidence)
    if n > 0 and class_prior is not None:
        raise InvalidParameterError(
            f"n_resamples must be 0 where class_prior is given, got {n}: intervals are for rows as "
            "they were drawn."
        )
    eta, rule = as_probabilities(truth), as_probabilities(estimate, name="estimate")
    if rule.shape != eta.shape:
        raise InvalidInputError(
            f"estimate must have the shape of the true probabilities, {eta.shape}, got "
            f"{rule.shape}."
        )
    weights = row_shares(sample_weight, len(eta))
    outcome = eta if y is None else np.eye(eta.shape[1])[check_true(y, eta, name="y")]
    shares = weights @ outcome
    if np.any(shares <= 0):
        raise InvalidInputError(
            f"every class must occur, got shares {shares.tolist()}: leave out columns without rows."
        )
    weights, outcome, eta, rule = in_population(class_prior, weights, outcome, eta, rule)
    parts, costs = _decomposed(eta, rule, outcome, weights, (fitted_for, evaluated_under))
    if n == 0:
        return parts
    # The weights have mean one under the outcome, in each resample as in the sample.
    columns = np.column_stack([costs, outcome @ parts.evaluated_under])
    sums = _resampled(columns, weights, n, random_state)
    ends = np.quantile(sums[:, :-1] / sums[:, -1:], [tail, 1 - tail], axis=0)
    intervals = dict(zip(_PARTS, map(tuple, ends.T.tolist()), strict=True))
    return replace(parts, intervals=MappingProxyType(intervals))


class ClassExcess(NamedTuple):
    """Excess risk inside a class of functions: the whole, and its two parts.

    Examples
    --------
    >>> excess_risk_in_class([1, 0], [0, 1], [0, 1], "balanced", class_prior=[0.5, 0.5])
    ClassExcess(excess=0.0, estimation=0.0, irreducible=0.0)
    """

    excess: float
    estimation: float
    irreducible: float


def excess_risk_in_class(
    fitted: ClassRisks | ArrayLike,
    best_fitted_for: ClassRisks | ArrayLike,
    best_evaluated_under: ClassRisks | ArrayLike,
    evaluated_under: Any,
    *,
    class_prior: Any = None,
) -> ClassExcess:
    r"""The same identity where rules come from a class of functions.

    With :math:`f_q` the best function of the class under :math:`q` in place of :math:`f^*_q`, and
    :math:`\hat f_q` the one fitted to data. The second part is irreducible and not negative.
    Nothing follows for the first from the convergence of :math:`R_q(\hat f_q)`: two functions can
    tie under :math:`q` and be far apart under :math:`q'`. (Appendix B of the paper prints a bound
    that would need this.)

    Parameters
    ----------
    fitted, best_fitted_for, best_evaluated_under : ClassRisks, or array of class risks
        Class risks of :math:`\hat f_q`, :math:`f_q` and :math:`f_{q'}`.
    evaluated_under
        As in :func:`excess_risk`.
    class_prior : dict by class or array, optional
        Class frequencies of the population; those of ``fitted`` if it is a ClassRisks.

    Examples
    --------
    >>> found = excess_risk_in_class([1, 0], [0, 1], [0, 1], (1.8, 0.2), class_prior=[0.5, 0.5])
    >>> round(found.estimation, 3), round(found.irreducible, 3)
    (0.8, 0.0)
    """
    if isinstance(fitted, ClassRisks):
        first = fitted.with_prior(class_prior)
    elif class_prior is None:
        raise InvalidParameterError("class_prior must be given where class risks are plain arrays.")
    else:
        first = ClassRisks(fitted, class_prior)
    mass = mass_of_weighting(
        evaluated_under, np.asarray(first.prior), first.classes, name="evaluated_under"
    )
    best = {"best_fitted_for": best_fitted_for, "best_evaluated_under": best_evaluated_under}
    made, evaluated = (
        float(mass @ check_numbers(risks, first.classes, name=name)) for name, risks in best.items()
    )
    mine = float(mass @ np.asarray(first))
    return ClassExcess(mine - evaluated, mine - made, made - evaluated)


def _decomposed(
    eta: Matrix, found: Matrix, outcome: Matrix, weights: Vector, pair: tuple[Any, Any]
) -> tuple[ExcessRisk, Matrix]:
    """The excess risk in parts, and for each row what it adds to them, under the outcome."""
    q = scaled_weights(pair[0], weights @ outcome, name="fitted_for")
    evaluated = scaled_weights(pair[1], weights @ outcome, name="evaluated_under")
    rules = decide(found, q), decide(eta, q), decide(eta, evaluated)
    # A decision saves the weight of its own class; what it does not save is its risk.
    saved, rows = outcome * evaluated, np.arange(len(outcome))
    mine, best, judge = (saved[rows, rule] for rule in rules)
    costs = np.column_stack([judge - mine, best - mine, judge - best])
    excess, estimation, irreducible = (weights @ costs).tolist()
    l1 = float(weights @ np.abs(eta - found).sum(axis=1)) / 2
    disagreement = float(weights @ (rules[0] != rules[1]))
    # Propositions 3 and 2; Proposition 1 is 3 with equal thresholds.
    shifts = _pair_shifts(q, evaluated)

    def shifted(first: Indices, second: Indices) -> float:
        pairs = shifts[first, second] * (eta[rows, first] + eta[rows, second])
        return float(weights @ pairs)

    largest = float(np.sort(evaluated)[-2:].sum())
    bounds = largest * l1 + shifted(rules[0], rules[1]), shifted(rules[1], rules[2])
    parts = excess, estimation, irreducible
    return ExcessRisk(*parts, q, evaluated, l1, disagreement, *bounds), costs


def _pair_shifts(q: Vector, evaluated: Vector) -> Matrix:
    """The numbers :math:`d_{ac}`: distances of the thresholds of each pair, times its weights."""
    sums, evaluated_sums = (np.add.outer(each, each) for each in (q, evaluated))
    # Where neither class counts, a threshold may be anywhere.
    shifts = np.ones_like(sums)
    both = (sums > 0) & (evaluated_sums > 0)
    thresholds = (
        np.divide(each[:, None], total, out=np.zeros_like(total), where=both)
        for each, total in ((q, sums), (evaluated, evaluated_sums))
    )
    shifts[both] = np.abs(np.subtract(*thresholds))[both]
    np.fill_diagonal(shifts, 0.0)
    return np.asarray(evaluated_sums * shifts)


def _resampled(columns: Matrix, weights: Vector, n_resamples: int, random_state: Any) -> Matrix:
    """Weighted sums of the columns over resampled rows, where the last one does not vanish."""
    rng, n = check_random_state(random_state), len(columns)
    table = weights[:, None] * columns
    draws = (np.bincount(rng.randint(n, size=n), minlength=n) for _ in range(n_resamples))
    sums = np.array([counts @ table for counts in draws])
    return np.asarray(sums[sums[:, -1] > 0])
