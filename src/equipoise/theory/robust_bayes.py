r"""The best rule there is for a whole set of weightings: the question the paper leaves open.

.. math:: \min_f \max_{m \in M} \sum_i m_i R_i(f)
          = \max_{m \in M} g(m), \qquad
          g(m) = 1 - E\Bigl[\max_i \frac{m_i \eta_i(X)}{p_i}\Bigr]

over all randomised rules :math:`f`. :math:`g(m)` is the Bayes risk under masses :math:`m`; it is
concave, and the class risks of the Bayes rule for :math:`m` are a supergradient of it. Its
maximisers are the *least favourable* masses. A rule that is Bayes for them, with ties broken the
right way, attains the robust risk.

Two classes are solved exactly: the rules are thresholds on :math:`\eta`, so it is enough to walk
along them. More classes are a game between masses and rules, solved on the masses and rules seen
so far; each round adds the best answer of either side, and both answers bound the value.

References
----------
Xu, Dan, Khim and Ravikumar (2020), Section 6, asks for this rule.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from equipoise.arrays import Matrix, Vector
from equipoise.decisions import decide
from equipoise.exceptions import InvalidInputError, NotConvergedWarning, warn
from equipoise.sets import MassSet, as_uncertainty
from equipoise.validation.labels import class_names, row_shares
from equipoise.validation.predictions import as_probabilities
from equipoise.weights.by_class import ByClass, class_lines
from equipoise.weights.priors import check_prior, weights_of

# Masses to the class risks of the rule that is Bayes for them.
Oracle = Callable[[Vector], Vector]

# The game is played to this certified gap, or for so many rounds.
_TOLERANCE = 1e-7
_ROUNDS = 500
# New rules are sought between the masses of the game and the best ones so far, nearer to these.
_CAUTION = 0.8
# Halvings that exhaust the digits of a mass in [0, 1].
_HALVINGS = 60


@dataclass(frozen=True, eq=False, repr=False)
class RobustBayes:
    r"""The rule with the smallest robust risk, and the world it is made for.

    Attributes
    ----------
    masses, weights : ByClass
        The least favourable masses :math:`m^*`, and the same as weights :math:`m_i / p_i`.
    decision_weights : ByClass
        The rule: the class with the largest decision weight times probability.
    threshold : float or None
        With two classes, the same as a threshold on the probability of the second; otherwise None.
    tie_share : float or None
        With two classes, the share of the rows at the threshold itself that go to the second.
    risk : float
        The robust risk that the rule attains.
    class_risks : ByClass
        Its class risks. With more than two classes they are those of a mixture of rules that
        differ in rows where the best two classes (nearly) tie.
    gap : float
        No rule has a robust risk below ``risk - gap``.

    Examples
    --------
    >>> found = robust_bayes([0.1, 0.2, 0.3, 0.6], "worst-class", classes=["well", "ill"])
    >>> found.decide([0.25, 0.5]).tolist(), found.gap
    (['well', 'ill'], 0.0)
    """

    masses: ByClass
    weights: ByClass
    decision_weights: ByClass
    threshold: float | None
    tie_share: float | None
    risk: float
    class_risks: ByClass
    gap: float

    def decide(self, probabilities: ArrayLike) -> NDArray[Any]:
        """Classes chosen by the decision weights, the first one in a tie."""
        weights = np.asarray(self.decision_weights, dtype=np.float64)
        matrix = as_probabilities(probabilities, len(weights))
        chosen: NDArray[Any] = self.masses.classes[decide(matrix, weights)]
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
        The class prior that weights in the set count relative to; the mean of the probabilities
        if not given.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows: of a survey, or of a quadrature.
    classes : array-like of shape (n_classes,), optional
        Class names, ``0..k-1`` if not given.

    Examples
    --------
    >>> found = robust_bayes([0.1, 0.2, 0.3, 0.6], "worst-class", classes=["well", "ill"])
    >>> found
    robust Bayes risk 0.321429 (certified to 0.0e+00), threshold 0.3
    class mass weight   risk
    well: 0.5  0.714286 0.321429
    ill:  0.5  1.66667  0.321429
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
    masses = as_uncertainty(uncertainty).resolve(p, names)

    def oracle(mass: Vector) -> Vector:
        chosen = decide(matrix, mass / shares)
        right = weights * matrix[np.arange(len(matrix)), chosen]
        return 1 - np.bincount(chosen, weights=right, minlength=len(shares)) / shares

    two = len(names) == 2
    saddle = _walk(matrix, weights, shares, masses) if two else _play(oracle, masses)
    return _result(saddle, masses, p, shares, names)


def robust_bayes_known(model: Any, uncertainty: Any = None) -> RobustBayes:
    r"""The robust Bayes rule of a model whose Bayes rules are known in closed form.

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
    >>> found = robust_bayes_known(PowerImbalance(p=0.9), "worst-class")
    >>> round(found.risk, 6), round(found.threshold, 6)
    (0.116666, 0.144627)
    """
    if not hasattr(model, "prior") or not hasattr(model, "bayes_class_risks"):
        raise InvalidInputError(
            "model must have prior and bayes_class_risks(weights), as PowerImbalance does, got "
            f"{model!r}; robust_bayes takes the probabilities of a classifier."
        )
    p = np.asarray(model.prior, dtype=np.float64)
    names = np.arange(len(p))
    masses = as_uncertainty(uncertainty).resolve(p, names)

    def oracle(mass: Vector) -> Vector:
        return np.asarray(model.bayes_class_risks(weights_of(mass, p)), dtype=np.float64)

    saddle = _bisect(oracle, masses) if len(p) == 2 else _play(oracle, masses)
    return _result(saddle, masses, p, p, names)


class _Saddle(NamedTuple):
    """Masses, the class risks of the rule against them, and for two classes its threshold."""

    mass: Vector
    risks: Vector
    lower: float
    threshold: float | None = None
    tie_share: float | None = None


def _result(
    saddle: _Saddle, masses: MassSet, prior: Vector, shares: Vector, names: NDArray[Any]
) -> RobustBayes:
    decision = weights_of(saddle.mass, shares)
    threshold, tie_share = saddle.threshold, saddle.tie_share
    if len(names) == 2 and threshold is None:
        threshold, tie_share = float(decision[0] / decision.sum()), 0.0
    risk = float(masses.support(saddle.risks))
    return RobustBayes(
        masses=ByClass(saddle.mass, names),
        weights=ByClass(weights_of(saddle.mass, prior), names),
        decision_weights=ByClass(decision / decision.sum(), names),
        threshold=threshold,
        tie_share=tie_share,
        risk=risk,
        class_risks=ByClass(saddle.risks, names),
        # Rounding can put the bound above the value by a digit in the sixteenth place.
        gap=max(risk - saddle.lower, 0.0),
    )


def _ends(masses: MassSet) -> tuple[float, float]:
    """Least and largest mass of the second of two classes."""
    low, high = masses.maximize(np.array([1.0, 0.0])), masses.maximize(np.array([0.0, 1.0]))
    return float(low[1]), float(high[1])


def _pair(mass: float) -> Vector:
    """Masses of two classes from that of the second."""
    return np.array([1 - mass, mass])


def _walk(matrix: Matrix, weights: Vector, shares: Vector, masses: MassSet) -> _Saddle:
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
    least = _minimizers((1 - high) * first + high * second)[0]
    most = _minimizers((1 - low) * first + low * second)[1]
    equal = _crossing(second - first)
    cut = min(max(equal, float(least)), float(most))
    group, part = int(np.floor(cut)), cut - np.floor(cut)
    mix = np.array([1 - part, part])
    risks = np.array([mix @ np.r_[r, r[-1]][group : group + 2] for r in (first, second)])
    if cut > equal:
        mass = high
    elif cut < equal:
        mass = low
    else:
        mass = min(max(_indifferent(values, group, part, shares), low), high)
    m = _pair(mass)
    lower = 1 - float(weights @ np.max(matrix * (m / shares), axis=1))
    return _Saddle(m, risks, lower, *_threshold(values, group, part, m / shares))


def _minimizers(risks: Vector) -> tuple[int, int]:
    """First and last cut of least risk; values within rounding of it count as equal."""
    best = np.flatnonzero(risks <= risks.min() + 1e-14)
    return int(best[0]), int(best[-1])


def _crossing(difference: Vector) -> float:
    """Where a rising sequence, linear in between, is zero."""
    after = int(np.searchsorted(difference, 0.0))
    if after == 0 or difference[after] == 0:
        return float(after)
    before = after - 1
    return before + float(-difference[before] / (difference[after] - difference[before]))


def _indifferent(values: Vector, group: int, part: float, shares: Vector) -> float:
    """The mass of the second class at which the rule of this cut is Bayes."""
    # A cut between two values is Bayes for all masses between those of their ties.
    ties = values[group if part > 0 else max(group - 1, 0) : group + 1]
    odds = (1 - ties) / shares[0], ties / shares[1]
    return float(np.mean(odds[0] / (odds[0] + odds[1])))


def _threshold(values: Vector, group: int, part: float, decision: Vector) -> tuple[float, float]:
    """Threshold and tie share that send the cut's values to class 0."""
    if part > 0:
        return float(values[group]), 1 - part
    if group == 0 and values[0] <= 0:
        return float(values[0]), 1.0
    threshold = float(decision[0] / decision.sum())
    if group > 0:
        threshold = max(threshold, float(values[group - 1]))
    if group < len(values):
        threshold = min(threshold, float(np.nextafter(values[group], -1)))
    return threshold, 0.0


def _bisect(oracle: Oracle, masses: MassSet) -> _Saddle:
    """Two classes of a known model: the mass at which the class risks are equal."""
    low, high = _ends(masses)
    for end, sign in ((high, 1.0), (low, -1.0)):
        risks = oracle(_pair(end))
        if sign * (risks[1] - risks[0]) >= 0:
            return _Saddle(_pair(end), risks, float(_pair(end) @ risks))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        risks = oracle(_pair(middle))
        low, high = (middle, high) if risks[1] > risks[0] else (low, middle)
    sides = np.array([oracle(_pair(low)), oracle(_pair(high))])
    # An atom of eta at the threshold leaves a jump, which a mixture of both rules fills.
    leads = sides[:, 1] - sides[:, 0]
    share = leads[0] / (leads[0] - leads[1]) if leads[0] > leads[1] else 0.5
    risks = (1 - share) * sides[0] + share * sides[1]
    return _Saddle(_pair(low), risks, float(_pair(low) @ sides[0]))


def _play(oracle: Oracle, masses: MassSet) -> _Saddle:
    """Masses against rules, until the best answers of both sides agree."""
    k = masses.n_classes
    best = np.asarray(masses.project(np.full(k, 1 / k)), dtype=np.float64)
    worlds, rules = [best], [oracle(best)]
    lower, upper, mixed = float(best @ rules[0]), np.inf, rules[0]
    for _ in range(_ROUNDS):
        mass, risks = _equilibrium(np.array(worlds), np.array(rules))
        answer = np.asarray(masses.maximize(risks), dtype=np.float64)
        if float(answer @ risks) < upper:
            upper, mixed = float(answer @ risks), risks
        if upper - lower <= _TOLERANCE:
            break
        asked = _CAUTION * best + (1 - _CAUTION) * mass
        found = oracle(asked)
        if float(asked @ found) > lower:
            lower, best = float(asked @ found), asked
        worlds.append(answer)
        rules.append(found)
    else:
        warn(
            f"the robust Bayes rule is certified to {upper - lower:.1e} only, after {_ROUNDS} "
            "rounds; its gap says so.",
            NotConvergedWarning,
        )
    return _Saddle(best, mixed, lower)


def _equilibrium(worlds: Matrix, rules: Matrix) -> tuple[Vector, Vector]:
    """Optimal mixtures of the masses and of the rules seen so far, by linear programming."""
    payoff = worlds @ rules.T
    s, t = payoff.shape
    solved = linprog(
        np.r_[np.zeros(s), -1.0],
        A_ub=np.hstack([-payoff.T, np.ones((t, 1))]),
        b_ub=np.zeros(t),
        A_eq=np.r_[np.ones(s), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * s + [(None, None)],
        method="highs",
    )
    mass, rule = np.maximum(solved.x[:s], 0), np.maximum(-solved.ineqlin.marginals, 0)
    return mass @ worlds / mass.sum(), rule @ rules / rule.sum()
