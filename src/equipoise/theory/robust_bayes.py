r"""The best rule there is for a whole set of weightings: the question the paper leaves open.

.. math:: \min_f \max_{m \in M} \sum_i m_i R_i(f)
          = \max_{m \in M} g(m), \qquad
          g(m) = 1 - E\Bigl[\max_i \frac{m_i \eta_i(X)}{p_i}\Bigr]

over all randomised rules :math:`f`. :math:`g(m)` is the Bayes risk under masses :math:`m`; it is
concave, and the class risks of the Bayes rule for :math:`m` are a supergradient of it. Its
maximisers are the *least favourable* masses. Rules that are Bayes for them differ only where
classes tie; a mixture of such rules attains the robust risk, and often no single one does.

Two classes are solved exactly: the rules are thresholds on :math:`\eta`, so it is enough to walk
along them. Rows of more classes are smoothed (:mod:`equipoise.theory.tied_rules`).

References
----------
Xu, Dan, Khim and Ravikumar (2020), Section 6, asks for this rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, Indices, Matrix, NDArray, Vector
from equipoise.decisions import decide
from equipoise.exceptions import InvalidInputError, NotConvergedWarning, warn
from equipoise.sets import MassSet, as_uncertainty
from equipoise.theory.tied_rules import tied_rules
from equipoise.validation.labels import class_names, row_shares
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.by_class import ByClass, class_lines
from equipoise.weights.priors import check_prior, weights_of

# Decision weights to the class risks of the rule that goes by them.
Oracle = Callable[[Vector], Vector]
# Masses, the rules against them with their shares, the class risks of the mixture, and a lower
# bound of the robust risk of any rule.
Saddle = tuple[Vector, Matrix, Vector, Vector, float]

# The certified gap that is asked for, and the one that is reported as missed.
_TOLERANCE, _MISSED = 1e-7, 2e-7
# Halvings that exhaust the digits of a mass in [0, 1], and what rounding takes of a threshold's.
_HALVINGS = 60
_LOST_DIGITS = 8 * float(np.finfo(np.float64).eps)
# Masses this close are the same.
_SAME = 1e-14


@dataclass(frozen=True, eq=False, repr=False)
class RobustBayes:
    r"""The rule with the smallest robust risk, and the world that it is the best for.

    Attributes
    ----------
    masses, weights : ByClass
        The least favourable masses :math:`m^*`, and the same as weights :math:`m_i / p_i`.
    rules, rule_shares : ndarray of shape (n_rules, n_classes), and of shape (n_rules,)
        The rules that are mixed, as decision weights that sum to one: each decides for the class
        with the largest weight times probability, and how often each of them decides.
    risk, class_risks, gap : float, ByClass, float
        The robust risk that the mixture attains, and its class risks. No rule has a robust risk
        below ``risk - gap``.

    Examples
    --------
    >>> found = robust_bayes([0.1, 0.2, 0.3, 0.6], "worst_class", classes=["well", "ill"])
    >>> found.decide([0.25, 0.5]).tolist(), found.gap
    (['well', 'ill'], 0.0)
    >>> found.decision_shares([0.25, 0.3]).round(3)  # rows at the threshold are drawn for
    array([[1.   , 0.   ],
           [0.286, 0.714]])
    """

    masses: ByClass
    weights: ByClass
    rules: Matrix
    rule_shares: Vector
    risk: float
    class_risks: ByClass
    gap: float

    @property
    def threshold(self) -> float | None:
        """With two classes, the second is decided where its probability is above this."""
        return float(self.rules[-1, 0]) if self.rules.shape[1] == 2 else None

    @property
    def tie_share(self) -> float | None:
        """With two classes, the probability of predicting the second at the threshold itself."""
        return float(self.rule_shares[:-1].sum()) if self.rules.shape[1] == 2 else None

    def decision_shares(self, probabilities: ArrayLike) -> Matrix:
        """The probability of predicting each class, for each row of probabilities."""
        matrix = as_probabilities(probabilities, self.rules.shape[1])
        shares, rows = np.zeros_like(matrix), np.arange(len(matrix))
        for rule, share in zip(self.rules, self.rule_shares, strict=True):
            shares[rows, _decided(matrix, rule)] += share
        return shares

    def decide(self, probabilities: ArrayLike, *, random_state: Any = None) -> NDArray[Any]:
        """A class for each row, drawn with its decision shares, most of which are 0 or 1.

        ``random_state`` is an argument of :func:`numpy.random.default_rng`.
        """
        upto = self.decision_shares(probabilities).cumsum(axis=1)
        draws = np.random.default_rng(random_state).random((len(upto), 1)) * upto[:, -1:]
        chosen: NDArray[Any] = self.masses.classes[(draws >= upto[:, :-1]).sum(axis=1)]
        return chosen

    def __repr__(self) -> str:
        title = f"robust Bayes risk {self.risk:.6g} (certified to {self.gap:.1e})"
        if self.threshold is not None:
            title += f", threshold {self.threshold:.6g}"
        lines = class_lines(mass=self.masses, weight=self.weights, risk=self.class_risks)
        return "\n".join([title, *lines])


def robust_bayes(
    probabilities: ArrayLike,
    uncertainty: Any = None,
    *,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
) -> RobustBayes:
    r"""The robust Bayes rule for an estimated regression function, or one known at points.

    .. math:: \max_{m \in M} \; 1 - \sum_j w_j \max_i \frac{m_i \eta_i(x_j)}{\bar\eta_i},
              \qquad \bar\eta_i = \sum_j w_j \eta_i(x_j)

    Labels are not needed: the probabilities are taken to be right, so calibrate them first, and
    use rows that they were not fitted on.

    Parameters
    ----------
    probabilities : array-like of shape (n, n_classes), or (n,) for two classes
        Class probabilities :math:`\eta_i(x_j)`.
    uncertainty : uncertainty set, or one of the names that estimators take
        The set of weightings; ``LabelCVaR(0.1)`` if not given.
    class_prior : dict by class or array, optional
        Class frequencies of the population, which weights in the set count relative to, where
        those of the rows, the mean of the probabilities, differ. Rules decide by probabilities as
        they were given.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows: of a survey, or of a quadrature.
    classes : array-like of shape (n_classes,), optional
        Class names, ``0..k-1`` if not given.

    Examples
    --------
    >>> robust_bayes([0.1, 0.2, 0.3, 0.6], "worst_class", classes=["well", "ill"])
    robust Bayes risk 0.321429 (certified to 0.0e+00), threshold 0.3
    class mass weight   risk
    well:  50% 0.7143 0.3214
    ill:   50%  1.667 0.3214
    """
    matrix = as_probabilities(probabilities)
    weights = row_shares(sample_weight, len(matrix))
    names = class_names(classes, matrix.shape[1])
    shares = weights @ matrix
    if np.any(shares <= 0):
        absent = names[shares <= 0].tolist()
        raise InvalidInputError(
            f"every class needs a positive probability in some row, {absent} has none: leave out "
            "such columns."
        )
    p = shares / shares.sum() if class_prior is None else check_prior(class_prior, names)
    masses = as_uncertainty(uncertainty, name="uncertainty").resolve(p, names)

    def oracle(rule: Vector) -> Vector:
        chosen = _decided(matrix, rule)
        right = weights * matrix[np.arange(len(matrix)), chosen]
        return 1 - np.bincount(chosen, weights=right, minlength=len(shares)) / shares

    if len(names) == 2:
        return _result(masses, p, names, _walk(matrix, weights, shares, masses))
    m, rules, rule_shares = tied_rules(matrix, weights, masses, _TOLERANCE)
    risks = rule_shares @ np.array([oracle(rule) for rule in rules])
    lower = 1 - float(weights @ np.max(matrix * weights_of(m, shares), axis=1))
    return _result(masses, p, names, (m, rules, rule_shares, risks, lower))


def robust_bayes_known(model: Any, uncertainty: Any = None) -> RobustBayes:
    r"""The robust Bayes rule of a model of two classes whose Bayes rules are known in closed form.

    .. math:: \max_{m \in M} \sum_i m_i R_i(f^*_m)

    Parameters
    ----------
    model : object with ``prior`` and ``bayes_class_risks(weights)``
        Such as :class:`equipoise.datasets.PowerImbalance`.
    uncertainty
        As in :func:`robust_bayes`.

    Examples
    --------
    >>> from equipoise.datasets import PowerImbalance
    >>> found = robust_bayes_known(PowerImbalance(p=0.9), "worst_class")
    >>> round(found.risk, 6), round(found.threshold, 6)
    (0.116666, 0.144627)
    """
    if not hasattr(model, "prior") or not hasattr(model, "bayes_class_risks"):
        raise InvalidInputError(
            "model must have prior and bayes_class_risks(weights), as PowerImbalance does, got "
            f"{model!r}; robust_bayes takes the probabilities of a classifier."
        )
    p = np.asarray(model.prior, dtype=np.float64)
    if len(p) != 2:
        raise InvalidInputError(
            f"model must be of two classes, got {len(p)}: for more give robust_bayes the "
            "probabilities at points of a quadrature, with their weights."
        )
    names = np.arange(2)
    masses = as_uncertainty(uncertainty, name="uncertainty").resolve(p, names)

    return _result(masses, p, names, _bisect(model.bayes_class_risks, masses, p))


def _result(masses: MassSet, prior: Vector, names: NDArray[Any], saddle: Saddle) -> RobustBayes:
    mass, rules, rule_shares, risks, lower = saddle
    risk = float(masses.support(risks))
    # Rounding can put the bound above the value by a digit in the sixteenth place.
    gap = max(risk - lower, 0.0)
    if gap > _MISSED:
        warn(
            f"the robust Bayes rule is certified to {gap:.1e} only; its gap says so.",
            NotConvergedWarning,
        )
    return RobustBayes(
        masses=ByClass(mass, names),
        weights=ByClass(weights_of(mass, prior), names),
        rules=rules,
        rule_shares=rule_shares,
        risk=risk,
        class_risks=ByClass(risks, names),
        gap=gap,
    )


def _rule(mass: Vector, shares: Vector) -> Vector:
    """Decision weights, summing to one, that are Bayes for masses."""
    weights = weights_of(mass, shares)
    return np.asarray(weights / weights.sum())


def _decided(matrix: Matrix, rule: Vector) -> Indices:
    """Classes that decision weights choose: of two by their threshold, which no product rounds."""
    if len(rule) > 2:
        return decide(matrix, rule)
    return np.asarray(matrix[:, 1] > rule[0], dtype=np.intp)


def _cuts(thresholds: ArrayLike) -> Matrix:
    """Decision weights of two classes from thresholds on the probability of the second."""
    cuts = np.asarray(thresholds, dtype=np.float64)
    return np.column_stack([cuts, 1 - cuts])


def _ends(masses: MassSet) -> list[float]:
    """Least and largest mass of the second of two classes."""
    return [float(masses.maximize(first)[1]) for first in np.eye(2)]


def _pair(mass: float) -> Vector:
    """Masses of two classes from that of the second."""
    return np.array([1 - mass, mass])


def _walk(matrix: Matrix, weights: Vector, shares: Vector, masses: MassSet) -> Saddle:
    r"""Two classes: all thresholds, with fractions of ties in between.

    Cut ``g`` sends the ``g`` smallest distinct values of :math:`\eta_1` to class 0. Along the
    cuts :math:`R_0` falls, :math:`R_1` rises, and every weighted risk is convex. The best cut is
    where the class risks are equal, unless the Bayes rules for the ends of the set lie to one side.
    """
    values, place = np.unique(matrix[:, 1], return_inverse=True)
    steps = [np.bincount(place.ravel(), weights=weights * matrix[:, i] / shares[i]) for i in (0, 1)]
    first = 1 - np.r_[0.0, np.cumsum(steps[0])]
    second = np.r_[0.0, np.cumsum(steps[1])]
    first[-1], second[-1] = 0.0, 1.0
    low, high = _ends(masses)
    # The mass of the second class at which each value ties, from large to small.
    odds = (1 - values) / shares[0], values / shares[1]
    ties = odds[0] / (odds[0] + odds[1])
    least, most = np.count_nonzero(ties > high + _SAME), np.count_nonzero(ties >= low - _SAME)
    cuts = np.arange(len(first))
    equal = float(np.interp(0.0, second - first, cuts))
    cut = min(max(equal, float(least)), float(most))
    group, part = int(cut), cut - int(cut)
    if cut == equal:
        # A cut between two values is Bayes for all masses between those of their ties.
        mass = float(np.mean(ties[group if part > 0 else max(group - 1, 0) : group + 1]))
        m = _pair(min(max(mass, low), high))
    else:
        m = _pair(high if cut > equal else low)
    risks = np.array([np.interp(cut, cuts, each) for each in (first, second)])
    lower = 1 - float(weights @ np.max(matrix * weights_of(m, shares), axis=1))
    below = np.nextafter(np.r_[values, np.inf][group], -1)
    if part > 0:
        return m, _cuts([below, values[group]]), np.array([1 - part, part]), risks, lower
    threshold = max(_rule(m, shares)[0], values[group - 1] if group > 0 else -np.inf)
    return m, _cuts([min(threshold, below)]), np.ones(1), risks, lower


def _bisect(oracle: Oracle, masses: MassSet, prior: Vector) -> Saddle:
    """Two classes of a known model: the mass at which the class risks are equal, or nearest."""
    low, high = _ends(masses)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        risks = oracle(_rule(_pair(middle), prior))
        low, high = (middle, high) if risks[1] > risks[0] else (low, middle)
    rules = np.array([_rule(_pair(mass), prior) for mass in (high, low)])
    sides = np.array([oracle(rule) for rule in rules])
    # An atom of eta at the threshold leaves a jump, which a mixture of both rules fills.
    leads = sides[:, 1] - sides[:, 0]
    share = leads[1] / (leads[1] - leads[0]) if leads[1] > leads[0] else 0.5
    share = min(max(share, 0.0), 1.0)
    shares = np.array([share, 1 - share])
    # The atom stands between the two thresholds, wherever its own digits end.
    around = _cuts(rules[:, 0] * (1 + np.array([-_LOST_DIGITS, _LOST_DIGITS])))
    return _pair(low), around, shares, shares @ sides, float(_pair(low) @ sides[1])
