r"""The robust Bayes rule over rows of more than two classes: smoothed, sharpened, then mixed.

.. math:: \max_{m \in M} g_T(m), \qquad
          g_T(m) = 1 - \sum_j w_j \, T s_j \log \sum_i \exp \frac{m_i c_{ij}}{T s_j},
          \qquad c_{ij} = \frac{\eta_i(x_j)}{\bar\eta_i}

by Newton steps, while the temperature :math:`T` falls; :math:`s_j`, the largest
:math:`m_i c_{ij}` of a row, makes it relative. The gradient of :math:`g_T` holds the class risks of
a *soft* rule, which decides a row for each class by its share of the sum, so every temperature has
a certificate. The curvature vanishes in rows that are decided, and in the end few are not.

The rows that stay undecided tie. Rules that decide them one way or the other go by nearly the same
masses, nudged; the soft rule is itself a mixture of such rules, with nudges from the Gumbel
distribution, and least squares find one of at most a rule more than there are classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.sparse.csgraph import minimum_spanning_tree

from equipoise.arrays import Matrix, Vector
from equipoise.decisions import decide
from equipoise.sets import MassSet
from equipoise.sets.mass_program import MassProgram, mass_program
from equipoise.weights.priors import weights_of

# Temperatures, without a unit: the first, what is left of one at the next, and how many there are
# at most. At the last, 4e-10, shares have six digits.
_FIRST, _COOLING, TEMPERATURES = 0.25, 0.4, 23
# Newton steps at a temperature, and halvings of one: those for a step a million times too long.
_STEPS, _HALVINGS = 50, 20
# Steps end where the soft rule's risk exceeds its bound by this part of the temperature, or of the
# tolerance; a temperature is the last where its certificate is this part of the tolerance.
_SETTLED, _CLOSE, _SHARP = 1e-2, 0.05, 0.1
# A step is too long where the slope along it has turned round by more than this part.
_TURNED = 0.25
# Quadratic programmes are solved to this part of what a step to the certificate may gain.
_EXACT = 1e-3
# Rows this far below the mean in their largest term are smoothed as if they were not.
_FLAT = 1e-6
# A soft rule that takes a decision less often than this does not take it; and it has no curvature
# where all decisions but one are as rare as that.
_RARE, _DECIDED = 1e-7, 1e-14
# Weights are nudged by this part of themselves: far above what rounding leaves of a tie, and so
# little that the risk hardly knows: it grows by this part of what the rows within it weigh.
_NUDGE = 1e-7
# Nudges per class that are drawn first: the soft rule's risks usually lie between those of their
# rules. Rules that are added one by one where they do not, per class.
_DRAWN, _ADDED = 4, 4


class Soft(NamedTuple):
    """A soft rule for masses: its probability of each class in each row, and its risks."""

    shares: Matrix
    risks: Vector


class Smoothed:
    """The gradient and the Hessian of the smoothed Bayes risk."""

    def __init__(self, rows: Matrix, weights: Vector, mass: Vector, temperature: float) -> None:
        top = np.max(rows * mass, axis=1)
        self._rows, self._weights = rows, weights
        self._scale = temperature * np.maximum(top, _FLAT * float(weights @ top))

    def at(self, mass: Vector) -> Soft:
        """The soft rule for masses; its class risks are the gradient."""
        terms = self._rows * mass
        terms -= terms.max(axis=1, keepdims=True)
        terms /= self._scale[:, None]
        shares = np.exp(terms, out=terms)
        shares /= shares.sum(axis=1, keepdims=True)
        right = np.einsum("j,ji,ji->i", self._weights, shares, self._rows)
        return Soft(shares, np.asarray(1 - right, dtype=np.float64))

    def curvature(self, shares: Matrix) -> Matrix:
        """The second derivatives, less their sign."""
        soft = np.flatnonzero(1 - shares.max(axis=1) > _DECIDED)
        rows = self._rows[soft]
        products = shares[soft] * rows
        scaled = products * (self._weights[soft] / self._scale[soft])[:, None]
        matrix = -(products.T @ scaled)
        matrix[np.diag_indices(len(matrix))] += (scaled * rows).sum(axis=0)
        return np.asarray(matrix)


def tied_rules(
    probabilities: Matrix, weights: Vector, masses: MassSet, tolerance: float
) -> tuple[Vector, Matrix, Vector]:
    """Least favourable masses; the rules that are mixed against them, and their shares."""
    frequencies = weights @ probabilities
    rows, k = probabilities / frequencies, len(frequencies)
    mass = np.asarray(masses.project(np.full(k, 1 / k)), dtype=np.float64)
    program, least = mass_program(masses, mass), np.inf
    best = mass, Soft(rows, np.ones(k)), _FIRST
    for temperature in _FIRST * _COOLING ** np.arange(TEMPERATURES):
        smoothed = Smoothed(rows, weights, mass, temperature)
        enough = max(_SETTLED * temperature, _CLOSE * tolerance)
        mass, soft = _best(smoothed, masses, program, mass, enough, temperature)
        lower = 1 - float(weights @ np.max(rows * mass, axis=1))
        certificate = float(masses.support(soft.risks)) - lower
        if certificate < least:  # at the last, rounding of large curvatures may spoil the steps
            best, least = (mass, soft, temperature), certificate
        if certificate <= _SHARP * tolerance:
            break
    mass, soft, temperature = best
    change = _change_to_ties(rows, mass, soft.shares)
    drawn = np.random.default_rng(0).gumbel(size=(_DRAWN * k, k)) - change / temperature
    tied = _Tied(probabilities, weights, weights_of(mass, frequencies) * np.exp(change))
    return mass, *_mixture(tied, masses, mass, soft.risks, drawn, _CLOSE * tolerance)


def _best(
    smoothed: Smoothed,
    masses: MassSet,
    program: MassProgram,
    mass: Vector,
    enough: float,
    temperature: float,
) -> tuple[Vector, Soft]:
    """Newton steps to the best masses at a temperature."""
    soft = smoothed.at(mass)
    for _ in range(_STEPS):
        excess = float(masses.support(soft.risks) - mass @ soft.risks)
        if excess <= enough:
            break
        A = smoothed.curvature(soft.shares)
        exact = _EXACT * temperature * excess**2
        step = program.solve(A, soft.risks + A @ mass, exact) - mass
        slope, length = float(soft.risks @ step), 1.0
        for _ in range(_HALVINGS):
            # Values differ by less than their rounding long before slopes do.
            after = smoothed.at(mass + length * step)
            if float(after.risks @ step) >= -_TURNED * slope:
                break
            length /= 2
        mass, soft = mass + length * step, after
    return mass, soft


def _change_to_ties(rows: Matrix, mass: Vector, shares: Matrix) -> Vector:
    """A small change of the logarithms of masses, after which decisions tie to the last digit.

    Ties of pairs of classes that form a tree can all be exact. The tree is the one of the ties that
    the soft rule shares most evenly; in any other it is nearly decided, or they follow.
    """
    k, terms = len(mass), rows * mass
    shared = np.where(terms > 0, shares, 0.0)
    some = np.flatnonzero(np.count_nonzero(shared > _RARE, axis=1) > 1)
    first = shared[some].argmax(axis=1)
    place, other = np.nonzero(shared[some] > _RARE)
    place, other = place[other != first[place]], other[other != first[place]]
    row, one = some[place], first[place]
    # Of several ties of the same two classes, the last that is written is the most even.
    even = shared[row, one] * shared[row, other]
    order = np.argsort(even, kind="stable")
    pairs = np.minimum(one, other)[order], np.maximum(one, other)[order]
    costs, tie = np.zeros((k, k)), np.zeros((k, k), dtype=np.intp)
    costs[pairs], tie[pairs] = 1 - np.log(even[order]), row[order]
    low, high = minimum_spanning_tree(costs).nonzero()
    row, place = tie[low, high], np.arange(len(low))
    system = np.zeros((len(low), k))
    system[place, low], system[place, high] = 1.0, -1.0
    apart = np.log(terms[row, high] / terms[row, low])
    return np.asarray(np.linalg.lstsq(system, apart, rcond=None)[0])


class _Tied:
    """Class risks of the rules whose weights are nudged off a tie; few rows ask for a look."""

    def __init__(self, probabilities: Matrix, weights: Vector, rule: Vector) -> None:
        second, top = np.partition(probabilities * rule, -2, axis=1)[:, -2:].T
        near = second >= top * (1 - 4 * _NUDGE)
        rows = weights[:, None] * probabilities / (weights @ probabilities)
        self._risks = 1 - _right(probabilities[~near], rows[~near], rule)
        self._near, self._rows, self._rule = probabilities[near], rows[near], rule

    def nudged(self, nudge: Vector) -> Vector:
        """The rule after a nudge, of the length that nudges have."""
        size = float(np.abs(nudge).max())
        rule = self._rule * np.exp(_NUDGE * nudge / size) if size > 0 else self._rule
        return np.asarray(rule / rule.sum())

    def risks(self, rule: Vector) -> Vector:
        return np.asarray(self._risks - _right(self._near, self._rows, rule))


def _right(probabilities: Matrix, rows: Matrix, rule: Vector) -> Vector:
    """What the rows take off the class risks, with the decisions of a rule."""
    chosen = decide(probabilities, rule)
    right = np.bincount(chosen, rows[np.arange(len(rows)), chosen], minlength=len(rule))
    return np.asarray(right, dtype=np.float64)


def _mixture(
    tied: _Tied, masses: MassSet, mass: Vector, goal: Vector, nudges: Matrix, tolerance: float
) -> tuple[Matrix, Vector]:
    """Rules, and shares, whose mixture has class risks as good as the goal.

    The squares of what is missing, by mass, are least: so the rule to add is nudged by just that.
    """
    rules = np.array([tied.nudged(nudge) for nudge in nudges])
    rule_risks = np.array([tied.risks(rule) for rule in rules])
    roots, limit = np.sqrt(mass), float(masses.support(goal)) + tolerance
    for _ in range(_ADDED * len(mass)):
        system = np.vstack([roots[:, None] * (rule_risks - goal).T, np.ones(len(rule_risks))])
        shares = nnls(system, np.append(np.zeros(len(mass)), 1.0), maxiter=30 * len(rule_risks))[0]
        used = np.flatnonzero(shares)
        rules, rule_risks, shares = rules[used], rule_risks[used], shares[used] / shares.sum()
        risks = shares @ rule_risks
        rule = tied.nudged(risks - goal)
        new = tied.risks(rule)
        if float(masses.support(risks)) <= limit or np.any(np.all(rule_risks == new, axis=1)):
            break
        rules, rule_risks = np.vstack([rules, rule]), np.vstack([rule_risks, new])
    return rules[: len(shares)], shares
