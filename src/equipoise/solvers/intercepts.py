r"""Intercepts that are best against smoothed masses, for fixed coefficients.

For masses between floors and caps, with :math:`x = (m - l) / (u - l)`,

.. math:: \psi(b) = \max_{m \in M} \; \langle m, R(b) \rangle
          - \tfrac{1}{\mu} \sum_i (u_i - l_i) \, D(x_i \,\|\, x_i^t) ,

with the binary relative entropy D to the masses of the last round, is smooth and convex. Intercepts
can make risks as equal as the caps allow; once these are best, what is left for the coefficients is
hardly stiffer than a plain fit. Newton steps need only the k x k matrix of the risks' gradients
along the intercepts, :math:`\bar p_{ij} - \delta_{ij}`.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, xlogy

from equipoise.arrays import Vector, like, to_numpy
from equipoise.objectives import Evaluation, RiskGradients, moves_probabilities, offered
from equipoise.objectives.centering import conjugate_gradients
from equipoise.solvers.problem import Problem

# NEWTON, HALVINGS, PRODUCTS: steps, halvings of one and products for one, at most.
NEWTON, HALVINGS, PRODUCTS = 8, 12, 60
# INEXACT: relative error of a Newton step; REACH: the longest one, in log-odds; SUFFICIENT: share
# of the predicted decrease that it must bring; FLAT: relative difference of values, rounding.
INEXACT, REACH, SUFFICIENT, FLAT = 0.1, 4.0, 1e-4, 1e-14
# SPREAD: log-odds below and above all others between which the level of the masses lies; EXACT: its
# accuracy; ROOT_STEPS: towards it, at most.
SPREAD, EXACT, ROOT_STEPS = 40.0, 1e-14, 1_000


class SmoothedMasses(NamedTuple):
    """Masses that belong to risks, their gradients by the risks, and what the smoothing costs."""

    mass: Vector
    gradients: Vector
    cost: float


def smoothed_masses(
    box: tuple[Vector, Vector], anchor: Vector, mu: float, floor: float, risks: Vector
) -> SmoothedMasses:
    """Masses between floors and caps; those of the anchor count as no nearer than ``floor``.

    Examples
    --------
    >>> box, anchor = (np.zeros(2), np.ones(2)), np.array([0.5, 0.5])
    >>> smoothed_masses(box, anchor, 1.0, 1e-9, np.array([1.0, 1.0])).mass.round(9).tolist()
    [0.5, 0.5]
    """
    lower, width = box[0], box[1] - box[0]
    start = np.divide(anchor - lower, width, out=np.full(len(width), 0.5), where=width > 0)
    start = np.clip(start, floor, 1 - floor)
    odds, room = logit(start) + mu * (risks - risks.max()), 1 - float(lower.sum())

    def excess(level: float) -> float:
        return float(width @ expit(odds - level)) - room

    level, high = float(odds.min()) - SPREAD, float(odds.max()) + SPREAD
    if excess(level) > 0:  # else nothing but rounding is between the masses and their caps
        level = brentq(excess, level, high, xtol=EXACT, maxiter=ROOT_STEPS, disp=False)
    share, rest = expit(odds - level), expit(level - odds)
    apart = xlogy(share, share) - share * np.log(start) + xlogy(rest, rest)
    apart -= rest * np.log1p(-start)
    return SmoothedMasses(
        lower + width * share, mu * width * share * rest, float(width @ apart) / mu
    )


def can_balance(problem: Problem) -> bool:
    """Whether masses lie between floors and caps, and intercepts move probabilities."""
    masses = problem.masses
    if masses.box is None or masses.is_point:
        return False
    return moves_probabilities(problem.objective)


def balanced(
    problem: Problem, state: Evaluation, anchor: Vector, mu: float, floor: float, accuracy: float
) -> tuple[Evaluation, SmoothedMasses]:
    """The state with intercepts within an accuracy of the least smoothed risk, and its masses."""
    objective, box, shift = problem.objective, problem.masses.box, np.zeros(len(anchor))
    assert box is not None
    oracle: RiskGradients = offered(objective, RiskGradients, user="Balanced intercepts")

    def at(risks: Vector) -> tuple[SmoothedMasses, float]:
        smoothed = smoothed_masses(box, anchor, mu, floor, risks)
        return smoothed, float(smoothed.mass @ risks) - smoothed.cost

    risks, gradients = state.risks, None
    here, value = at(risks)
    for _ in range(NEWTON):
        fresh = gradients is None
        if fresh:
            gradients = oracle.risk_gradients(state, shift)[1]
            means = None
        else:  # those of the last point are near enough, and cost far less than new ones
            means = oracle.mean_probabilities(state, shift, here.mass)
        model = InterceptModel(gradients, here, means)
        step = model.step()
        decrease = -float(model.gradient @ step)
        if not decrease > max(accuracy, FLAT * abs(value)):
            break
        step *= min(1.0, REACH / max(float(np.ptp(step)) / 2, 1e-300))
        length = 1.0
        for _ in range(HALVINGS):
            moved = state.risks + objective.growths(state, shift + length * step)
            there, after = at(moved) if np.all(np.isfinite(moved)) else (here, np.inf)
            if after <= value - SUFFICIENT * length * -float(model.gradient @ step):
                break
            length /= 2
        else:
            if fresh:
                break
            gradients = None
            continue
        if length < 1:
            gradients = None
        shift, risks, here, value = shift + length * step, moved, there, after
    return (objective.with_shift(state, shift, risks) if np.any(shift) else state), here


class InterceptModel:
    """Gradient and curvature of the smoothed risk along the intercepts."""

    def __init__(self, gradients: Any, masses: SmoothedMasses, means: Vector | None = None) -> None:
        self._G, self._mass, self._gradients = gradients, masses.mass, masses.gradients
        # Means are of the probabilities, weighted by the masses.
        means = self._across(masses.mass) + masses.mass if means is None else means
        self.gradient, self._spread = means - masses.mass, np.maximum(means, 0.0)
        self._total = max(float(self._gradients.sum()), 1e-300)

    def _times(self, vector: Vector) -> Vector:
        return np.asarray(to_numpy(self._G @ like(vector, self._G)))

    def _across(self, vector: Vector) -> Vector:
        return np.asarray(to_numpy(self._G.T @ like(vector, self._G)))

    def _product(self, change: Vector) -> Vector:
        """Curvature times a change: of the risks, by class means above it, and of the masses."""
        grown = self._times(change)
        pull = self._gradients * (grown - float(self._gradients @ grown) / self._total)
        mean = self._mass * (grown + change)
        return self._across(pull - mean) - mean + self._spread * change

    @property
    def _diagonal(self) -> Vector:
        G = self._G
        both = like(self._gradients - self._mass, G)
        g = np.asarray(to_numpy(G.diagonal()))
        diagonal = np.asarray(to_numpy(both @ (G * G))) + self._spread
        diagonal -= self._mass * (2 * g + 1)  # the square of 1 + g, where G has that of g
        return np.maximum(diagonal, 1e-3 * self._spread + 1e-12 * float(self._spread.max()))

    def step(self) -> Vector:
        """A Newton step by conjugate gradients; equal shifts change nothing."""
        inverse = 1 / self._diagonal
        step = conjugate_gradients(self._product, inverse, -self.gradient, PRODUCTS, INEXACT)
        return np.asarray(step - step.mean())
