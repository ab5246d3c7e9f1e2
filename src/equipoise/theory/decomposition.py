r"""Excess risk in two parts: what more data would cure, and what they would not.

.. math:: R_{q'}(\hat f_q) - R_{q'}(f^*_{q'}) =
          \underbrace{R_{q'}(\hat f_q) - R_{q'}(f^*_q)}_{\text{estimation}} +
          \underbrace{R_{q'}(f^*_q) - R_{q'}(f^*_{q'})}_{\text{irreducible}}

for the plug-in rule :math:`\hat f_q(x) = \arg\max_i q_i \hat\eta_i(x)`, made for :math:`q` and
judged under :math:`q'`. The identity holds for any number of classes. For two, with
:math:`t_q = q_0 / (q_0 + q_1)` and :math:`\eta` the probability of the second class,

.. math::

    |\text{estimation}| &\le (q'_0 + q'_1) \bigl( \|\eta - \hat\eta\|_{L_1(P_X)}
        + |t_{q'} - t_q| \, P(\hat f_q \ne f^*_q) \bigr) \\
    \text{irreducible} &= (q'_0 + q'_1) \int |\eta - t_{q'}| \, 1\{f^*_q \ne f^*_{q'}\} \, dP_X \\
        &\le (q'_0 + q'_1) \, |t_q - t_{q'}| \,
        P(\min(t_q, t_{q'}) \le \eta \le \max(t_q, t_{q'}))

Conventions
-----------
Integrals over :math:`P_X` are weighted sums over rows: over quadrature points they are exact up to
the quadrature, over a sample they are estimates.

References
----------
Xu, Dan, Khim and Ravikumar (2020), Propositions 1 (:math:`q = q'`), 2 and 3, and Appendix B. The
paper's rates are those of the :math:`L_1` distance, which stands here itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from equipoise.arrays import Matrix, Vector
from equipoise.decisions import decide
from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.risks import ClassRisks
from equipoise.validation.labels import row_shares
from equipoise.validation.numbers import check_count, check_number, check_numbers
from equipoise.validation.predictions import as_probabilities, check_true
from equipoise.weights.priors import check_prior, scaled_weights

# Percentiles of finitely many resamples are a little too close: 0.93 to 0.94 of 95% intervals held
# in simulations. Tails of this share of the nominal ones make it at least 95%.
CAUTION = 0.5

_PARTS = ("excess", "estimation", "irreducible")


class KnownRegression(Protocol):
    """A distribution with known class probabilities that can be integrated over."""

    @property
    def prior(self) -> Vector:
        """Class priors."""

    def quadrature(self, n_points: int) -> tuple[Matrix, Vector]:
        """Points and weights that stand for the distribution of the features."""

    def predict_proba(self, X: Matrix) -> Matrix:
        """True class probabilities."""


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are found: resamples of the rows, and the share of them in the interval.

    Examples
    --------
    >>> Bootstrap(n_resamples=200, random_state=0)
    Bootstrap(n_resamples=200, confidence=0.95, random_state=0)
    """

    n_resamples: int = 500
    confidence: float = 0.95
    random_state: Any = None

    def __post_init__(self) -> None:
        check_count(self.n_resamples, "n_resamples")
        check_number(self.confidence, "confidence", "(0, 1)")


@dataclass(frozen=True, eq=False, repr=False)
class ExcessRisk:
    r"""The excess risk of a rule made for one weighting and judged under another, in parts.

    Attributes
    ----------
    excess, estimation, irreducible : float
        The excess risk and its two parts. The estimation error can be negative, where a wrong
        probability happens to help under :math:`q'`; the irreducible error cannot, if the risks
        are those of the true probabilities.
    made_for, judged_under : ndarray of shape (n_classes,)
        The weights :math:`q` and :math:`q'`.
    l1 : float
        :math:`\|\eta - \hat\eta\|_{L_1(P_X)}`, for more classes half the sum over them.
    disagreement : float
        :math:`P(\hat f_q \ne f^*_q)`.
    estimation_bound, irreducible_bound : float
        The bounds of Propositions 3 (and 1, where the weightings agree) and 2; NaN with more than
        two classes.
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
    made_for: Vector
    judged_under: Vector
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
        ends = [f"{name} {low:.4g} to {up:.4g}" for name, (low, up) in self._intervals().items()]
        return "\n".join([text, *ends])

    def _intervals(self) -> Mapping[str, tuple[float, float]]:
        return {} if self.intervals is None else self.intervals

    @property
    def excess_bound(self) -> float:
        """The sum of the two bounds."""
        return self.estimation_bound + self.irreducible_bound

    def to_dict(self) -> dict[str, float]:
        """The numbers by name, with ``_lower`` and ``_upper`` ends where there are intervals."""
        names = (*_PARTS, "l1", "disagreement", "estimation_bound", "irreducible_bound")
        found = {name: float(getattr(self, name)) for name in names}
        for name, (lower, upper) in self._intervals().items():
            found |= {f"{name}_lower": lower, f"{name}_upper": upper}
        return found


def excess_risk(
    truth: ArrayLike,
    estimate: ArrayLike,
    made_for: Any,
    judged_under: Any,
    *,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
) -> ExcessRisk:
    r"""Excess risk of the plug-in rule where the true probabilities are known at points.

    .. math:: R_{q'}(\hat f_q) - R_{q'}(f^*_{q'}) =
              [R_{q'}(\hat f_q) - R_{q'}(f^*_q)] + [R_{q'}(f^*_q) - R_{q'}(f^*_{q'})]

    Parameters
    ----------
    truth, estimate : array-like of shape (n, n_classes), or (n,) for two classes
        True class probabilities at the points, and those that the rule goes by.
    made_for, judged_under : "standard", "balanced", dict by class, or array
        The weightings :math:`q` and :math:`q'`.
    class_prior : array, optional
        Class priors; the mean of the true probabilities if not given.
    sample_weight : array-like of shape (n,), optional
        Weights of the points, such as those of a quadrature.

    Returns
    -------
    ExcessRisk

    Examples
    --------
    >>> from equipoise.theory import excess_risk
    >>> found = excess_risk([0.2, 0.4, 0.9], [0.2, 0.6, 0.9], "standard", (1, 4))
    >>> round(found.estimation, 4), round(found.irreducible, 4)
    (-0.1333, 0.1333)
    """
    eta = as_probabilities(truth)
    weights = row_shares(sample_weight, len(eta))
    p = weights @ eta if class_prior is None else check_prior(class_prior, np.arange(eta.shape[1]))
    q, judged = _pair(made_for, judged_under, p)
    rules = _rules(eta, _matching(estimate, eta), q, judged)
    return _exact(eta, rules, weights, q, judged)


def model_excess_risk(
    model: KnownRegression,
    estimate: Any,
    made_for: Any,
    judged_under: Any,
    *,
    n_points: int = 20_000,
) -> ExcessRisk:
    """Excess risk of the plug-in rule of a classifier under a model that is known.

    Parameters
    ----------
    model : object with ``prior``, ``quadrature(n_points)`` and ``predict_proba(X)``
        Such as :class:`equipoise.datasets.PowerImbalance`.
    estimate : fitted classifier with ``predict_proba``, or callable
        Gives class probabilities for rows (for two classes those of the second are enough).
    made_for, judged_under : "standard", "balanced", dict by class, or array
        The weightings of the rule and of its judge.
    n_points : int, default=20,000
        Points of the quadrature.

    Returns
    -------
    ExcessRisk

    Examples
    --------
    >>> from equipoise.theory import model_excess_risk
    >>> from equipoise.datasets import PowerImbalance
    >>> model = PowerImbalance(p=0.9)
    >>> found = model_excess_risk(model, lambda X: X[:, 0] ** 7, "standard", "balanced")
    >>> exact = model.weighted_risk(model.bayes_threshold_x("standard"), "balanced")
    >>> bool(abs(found.irreducible - (exact - model.bayes_risk("balanced"))) < 1e-4)
    True
    """
    if not hasattr(model, "quadrature") or not hasattr(model, "predict_proba"):
        raise InvalidInputError(
            "model must have prior, quadrature(n_points) and predict_proba(X), as PowerImbalance "
            f"does, got {model!r}; excess_risk takes probabilities at points."
        )
    if not hasattr(estimate, "predict_proba") and not callable(estimate):
        raise InvalidInputError(
            "estimate must be a fitted classifier with predict_proba, or a callable that gives "
            f"probabilities for rows, got {estimate!r}."
        )
    X, weights = model.quadrature(n_points)
    found = estimate.predict_proba(X) if hasattr(estimate, "predict_proba") else estimate(X)
    return excess_risk(
        model.predict_proba(X),
        found,
        made_for,
        judged_under,
        class_prior=model.prior,
        sample_weight=weights,
    )


def estimated_excess_risk(
    reference: ArrayLike,
    estimate: ArrayLike,
    made_for: Any,
    judged_under: Any,
    *,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    bootstrap: Bootstrap | None = None,
) -> ExcessRisk:
    r"""Excess risk of the plug-in rule where calibrated probabilities stand for the true ones.

    Like :func:`excess_risk` with ``reference`` for the truth, and with percentile intervals from
    resampled rows. The intervals are for the rules that these probabilities make on new rows. They
    do not know how far the reference is from the truth: calibrate it, on other rows.

    Parameters
    ----------
    reference, estimate : array-like of shape (n, n_classes), or (n,) for two classes
        Calibrated class probabilities, and those that the rule goes by. Give the same twice to
        ask for the irreducible error alone.
    made_for, judged_under : "standard", "balanced", dict by class, or array
        The weightings of the rule and of its judge.
    y : array-like of int of shape (n,), optional
        Class positions of the rows (0 for the first column). With them risks are counted, which
        is right even where the reference is not calibrated; without them they are expected under
        the reference, which is less noisy.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    bootstrap : Bootstrap, optional
        Number of resamples (500), confidence (0.95) and seed.

    Returns
    -------
    ExcessRisk
        With ``intervals``.

    Examples
    --------
    >>> reference = [0.2, 0.4, 0.9] * 20
    >>> how = Bootstrap(n_resamples=50, random_state=0)
    >>> found = estimated_excess_risk(reference, reference, "standard", (1, 4), bootstrap=how)
    >>> round(found.irreducible, 4), found.intervals["irreducible"][0] < found.irreducible
    (0.1333, True)
    """
    how = Bootstrap() if bootstrap is None else bootstrap
    if not isinstance(how, Bootstrap):
        raise InvalidParameterError(
            f"bootstrap must be a Bootstrap, such as Bootstrap(n_resamples=500), got {how!r}."
        )
    eta = as_probabilities(reference)
    weights = row_shares(sample_weight, len(eta))
    outcome = eta if y is None else np.eye(eta.shape[1])[check_true(y, eta, name="y")]
    p = weights @ outcome
    if np.any(p <= 0):
        raise InvalidInputError(
            f"every class must occur, got shares {p.tolist()}: leave out columns without rows."
        )
    q, judged = _pair(made_for, judged_under, p)
    rules = _rules(eta, _matching(estimate, eta), q, judged)
    found = _exact(eta, rules, weights, q, judged)
    costs = _costs(outcome, rules, judged)
    # The weights have mean one under the outcome, in each resample as in the sample.
    scale = outcome @ judged
    excess, estimation, irreducible = map(float, weights @ costs / float(weights @ scale))
    ends = _resampled(costs, scale, weights, how)
    return replace(
        found,
        excess=excess,
        estimation=estimation,
        irreducible=irreducible,
        intervals=MappingProxyType(dict(zip(_PARTS, ends, strict=True))),
    )


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
    best_made_for: ClassRisks | ArrayLike,
    best_judged_under: ClassRisks | ArrayLike,
    judged_under: Any,
    *,
    class_prior: Any = None,
) -> ClassExcess:
    r"""The same identity where rules come from a class of functions :math:`F`.

    .. math:: R_{q'}(\hat f_q) - R_{q'}(f_{q'}) =
              [R_{q'}(\hat f_q) - R_{q'}(f_q)] + [R_{q'}(f_q) - R_{q'}(f_{q'})]

    with :math:`f_q` the best function of the class under :math:`q` and :math:`\hat f_q` the one
    fitted to data. The second part is irreducible and not negative. Nothing follows for the first
    from the convergence of :math:`R_q(\hat f_q)`: two functions can tie under :math:`q` and be far
    apart under :math:`q'`. (Appendix B of the paper prints a bound that would need this.)

    Parameters
    ----------
    fitted, best_made_for, best_judged_under : ClassRisks, or array of class risks
        Class risks of :math:`\hat f_q`, :math:`f_q` and :math:`f_{q'}`.
    judged_under : "standard", "balanced", dict by class, or array
        The weighting :math:`q'`.
    class_prior : dict by class or array, optional
        Class priors; those of ``fitted`` if it is a ClassRisks.

    Returns
    -------
    ClassExcess

    Examples
    --------
    >>> from equipoise.theory import excess_risk_in_class
    >>> found = excess_risk_in_class([1, 0], [0, 1], [0, 1], (1.8, 0.2), class_prior=[0.5, 0.5])
    >>> round(found.estimation, 3), round(found.irreducible, 3)
    (0.8, 0.0)
    """
    if isinstance(fitted, ClassRisks):
        first = fitted if class_prior is None else fitted.with_prior(class_prior)
    elif class_prior is None:
        raise InvalidParameterError("class_prior must be given where class risks are plain arrays.")
    else:
        first = ClassRisks(fitted, class_prior)
    p = np.asarray(first.prior, dtype=np.float64)
    mass = p * scaled_weights(judged_under, p, first.classes, name="judged_under")
    made, judged = (
        float(mass @ check_numbers(risks, first.classes, name=name))
        for risks, name in (
            (best_made_for, "best_made_for"),
            (best_judged_under, "best_judged_under"),
        )
    )
    mine = float(mass @ np.asarray(first))
    return ClassExcess(mine - judged, mine - made, made - judged)


class _ThreeRules(NamedTuple):
    """Decisions of the fitted rule, of the best one for q, and of the best one for q'."""

    fitted: Any
    best: Any
    judge: Any
    estimate: Matrix


def _pair(made_for: Any, judged_under: Any, prior: Vector) -> tuple[Vector, Vector]:
    return (
        scaled_weights(made_for, prior, name="made_for"),
        scaled_weights(judged_under, prior, name="judged_under"),
    )


def _matching(estimate: ArrayLike, eta: Matrix) -> Matrix:
    found = as_probabilities(estimate, name="estimate")
    if found.shape != eta.shape:
        raise InvalidInputError(
            f"estimate must have the shape of the true probabilities, {eta.shape}, got "
            f"{found.shape}."
        )
    return found


def _rules(eta: Matrix, estimate: Matrix, q: Vector, judged: Vector) -> _ThreeRules:
    return _ThreeRules(decide(estimate, q), decide(eta, q), decide(eta, judged), estimate)


def _costs(outcome: Matrix, rules: _ThreeRules, judged: Vector) -> Matrix:
    """Excess, estimation and irreducible error of each row."""
    # A decision saves the weight of its own class; what it does not save is its risk.
    saved = outcome * judged
    rows = np.arange(len(saved))
    mine, best, judge = (saved[rows, rule] for rule in (rules.fitted, rules.best, rules.judge))
    return np.column_stack([judge - mine, best - mine, judge - best])


def _resampled(
    costs: Matrix, scale: Vector, weights: Vector, bootstrap: Bootstrap
) -> list[tuple[float, float]]:
    """Intervals of weighted means over resampled rows, between cautious percentiles."""
    rng, n = check_random_state(bootstrap.random_state), len(scale)
    table = weights[:, None] * np.column_stack([costs, scale])
    sums = np.empty((bootstrap.n_resamples, table.shape[1]))
    for place in range(len(sums)):
        sums[place] = np.bincount(rng.randint(n, size=n), minlength=n) @ table
    # A resample whose weight vanishes says nothing.
    kept = sums[sums[:, -1] > 0]
    tail = CAUTION * (1 - bootstrap.confidence) / 2
    ends = np.quantile(kept[:, :-1] / kept[:, -1:], [tail, 1 - tail], axis=0)
    return [(float(lower), float(upper)) for lower, upper in ends.T]


def _exact(
    eta: Matrix, rules: _ThreeRules, weights: Vector, q: Vector, judged: Vector
) -> ExcessRisk:
    excess, estimation, irreducible = weights @ _costs(eta, rules, judged)
    l1 = float(weights @ np.abs(eta - rules.estimate).sum(axis=1)) / 2
    disagreement = float(weights @ (rules.fitted != rules.best))
    bounds = _bounds(eta, weights, (q, judged), (l1, disagreement))
    return ExcessRisk(
        excess=float(excess),
        estimation=float(estimation),
        irreducible=float(irreducible),
        made_for=q,
        judged_under=judged,
        l1=l1,
        disagreement=disagreement,
        estimation_bound=bounds[0],
        irreducible_bound=bounds[1],
    )


def _bounds(
    eta: Matrix, weights: Vector, pair: tuple[Vector, Vector], distances: tuple[float, float]
) -> tuple[float, float]:
    """Propositions 3 and 2; Proposition 1 is 3 with equal thresholds."""
    if eta.shape[1] != 2:
        return np.nan, np.nan
    thresholds = [float(q[0] / q.sum()) for q in pair]
    shift, total = abs(thresholds[1] - thresholds[0]), float(pair[1].sum())
    between = (eta[:, 1] >= min(thresholds)) & (eta[:, 1] <= max(thresholds))
    l1, disagreement = distances
    return total * (l1 + shift * disagreement), total * shift * float(weights @ between)
