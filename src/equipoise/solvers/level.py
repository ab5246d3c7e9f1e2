r"""Intercepts at which all class risks are equal, and the masses that belong to them.

For fixed coefficients the largest class risk is smallest, over the intercepts, where all risks are
equal. With :math:`\bar p_{ij}` the mean probability of class j over rows of class i, the gradients
of the risks are :math:`G = \bar P - I`, and the masses under which these cancel,

.. math:: \sum_i m_i \, \bar p_{ij} = m_j ,

the stationary distribution of a Markov chain, are never negative. So the value there is a smooth
convex function of the coefficients, whose gradient is that of the risk under these masses: while
they lie in the set, the minimax problem is a smooth one, and no harder than a plain fit.

Risks are compared in margins, :math:`t_i = \log(e^{R_i} - 1)`: the risk of a class whose rows share
one margin is linear in its intercept there, however small it is. With
:math:`D_i = dR_i / dt_i = 1 - e^{-R_i}` a Newton step s towards equal margins solves

.. math:: G s = D (\bar t - t), \qquad \bar t = \langle m, D t \rangle / \langle m, D 1 \rangle .

Both systems are solved by products with G: in units of :math:`1 - \bar p_{ii}` the chain forgets
its start in a few steps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Vector, is_tensor, like, norm, rounding, to_numpy
from equipoise.objectives import Evaluation, RiskGradients, moves_probabilities, offered
from equipoise.solvers.problem import Problem
from equipoise.solvers.systems import gmres, refined

# STEPS: Newton steps at most. In log-odds: REACH, the longest step; SETTLED, a step after which the
# next would be of its square, rounding.
STEPS, REACH, SETTLED = 30, 8.0, 1e-5
# LINEAR: a risk from which the margin is the risk itself, to all digits; LEAST: one whose margin is
# still a number.
LINEAR, LEAST = 40.0, 1e-300
# SHRINKING: of each step by the gradients of another point, relative to the last.
SHRINKING = 0.5
# PRODUCTS: for one solution, at most (11 to 18 are usual, 60 where classes form groups). Relative
# residuals in the end: ROUGHLY, of a step by the gradients of another point; NEARLY, of others;
# EXACT, of masses, in units of the gradients' rounding; WRONG, above which there is no solution.
# NOISE: of right sides, in units of rounding.
PRODUCTS, ROUGHLY, NEARLY, EXACT, WRONG, NOISE = 100, 0.05, 1e-8, 100.0, 1e-3, 10.0
# PRODUCTS_OF_MATRICES: classes up to which an inverse is kept on a device, renewed by products: one
# takes as long there as ten launches. CLOSE: its error, in the Frobenius norm, after which one more
# product is the last.
PRODUCTS_OF_MATRICES, CLOSE = 4_000, 1e-2
# INSIDE: distance of masses from the set that is rounding, relative to the largest mass.
INSIDE = 1e-6


@dataclass(frozen=True)
class MeanProbabilities:
    """Gradients of all risks along the intercepts at one point, and the masses that cancel them.

    ``inverse`` is nearly that of the gradients, less what makes them singular: numbers a class, one
    over the probability to leave it, or a matrix.
    """

    gradients: Any
    inverse: Any
    mass: Vector

    @classmethod
    def at(cls, gradients: Any, last: "MeanProbabilities | None") -> "MeanProbabilities | None":
        """From those of another point; None where there are no masses."""
        k = len(gradients)
        near = np.full(k, 1 / k) if last is None else last.mass
        inverse = _nearly_inverse(gradients, None if last is None else last.inverse)
        wrong, exact = to_numpy(like(near, gradients) @ gradients), EXACT * rounding(gradients)
        across = inverse.T if inverse.ndim == 2 else inverse
        change = _solved(gradients.T, across, -wrong, exact, norm(near))
        if change is None:
            return None
        mass = near + change
        return cls(gradients, inverse, mass / mass.sum())

    def step(self, risks: Vector, accuracy: float = NEARLY) -> Vector | None:
        """A Newton step from risks to equal ones; equal shifts change nothing."""
        risks = np.maximum(risks, LEAST)
        slopes = -np.expm1(-risks)
        margins = np.where(risks < LINEAR, np.log(np.expm1(np.minimum(risks, LINEAR))), risks)
        weights = self.mass * slopes
        below = slopes * (float(weights @ margins) / float(weights.sum()) - margins)
        step = _solved(self.gradients, self.inverse, below, accuracy, norm(risks))
        return None if step is None else step - step.mean()


def _nearly_inverse(gradients: Any, near: Any) -> Any:
    """Where products of matrices cost nothing a matrix, from one that is near (Schulz 1933)."""
    k = len(gradients)
    if not is_tensor(gradients) or gradients.device.type == "cpu" or k > PRODUCTS_OF_MATRICES:
        least = float(np.finfo(np.float32).tiny)
        return like(-1 / np.maximum(-to_numpy(gradients.diagonal()), least), gradients)
    system, before = gradients - 1 / k, np.inf
    while near is not None and near.shape == system.shape:
        error = system @ near
        error.diagonal().sub_(1.0)
        size = float((error * error).sum()) ** 0.5
        if not size <= SHRINKING * before:
            break
        near, before = near - near @ error, size
        if size <= CLOSE:
            return near
    return system.inverse()


def _solved(
    system: Any, inverse: Any, right_side: Vector, accuracy: float, size: float
) -> Vector | None:
    """A solution by an approximate inverse, of a right side of numbers of some size, or None."""
    if norm(right_side) <= NOISE * rounding(system) * size:
        return np.zeros(len(right_side))
    wanted = like(right_side, system)
    if inverse.ndim == 2:
        solution, left = refined(system, inverse, wanted, accuracy)
    else:
        found, left = gmres(lambda vector: system @ (inverse * vector), wanted, accuracy, PRODUCTS)
        solution = inverse * found
    return to_numpy(solution) if left <= max(WRONG, accuracy) else None


class Leveling:
    """Makes risks equal at one point after another, each time from what the last one taught."""

    def __init__(self) -> None:
        self._last: MeanProbabilities | None = None

    def at(self, problem: Problem, state: Evaluation) -> tuple[Evaluation, Vector] | None:
        """The state with risks that are equal, and the masses; None where there is none in the set.

        The gradients are a matrix of classes times classes: they are formed once the risks are
        nearly equal, and before that only where the last ones lead nowhere.
        """
        if not moves_probabilities(problem.objective):
            return None
        objective = problem.objective
        oracle: RiskGradients = offered(objective, RiskGradients, user="Equal risks")
        shift = self._approach(problem, state)
        for _ in range(STEPS):
            growths, gradients = oracle.risk_gradients(state, shift)
            self._last = MeanProbabilities.at(gradients, self._last)
            # No risk is less than the mean of what a probability lacks to one, which keeps its
            # digits where the risk has lost them.
            risks = np.maximum(state.risks + growths, -to_numpy(gradients.diagonal()))
            step = None if self._last is None else self._last.step(risks)
            if self._last is None or step is None or not np.all(np.isfinite(step)):
                self._last = None
                return None
            longest = float(np.abs(step).max())
            shift = shift + min(1.0, REACH / max(longest, REACH)) * step
            if longest <= SETTLED:
                mass = np.asarray(problem.masses.project(self._last.mass))
                if float(np.abs(mass - self._last.mass).max()) > INSIDE * float(mass.max()):
                    return None
                risks = state.risks + objective.growths(state, shift)
                return objective.with_shift(state, shift, risks), mass
        return None

    def _approach(self, problem: Problem, state: Evaluation) -> Vector:
        """A shift towards equal risks, by the gradients at the last point."""
        shift, risks, before = np.zeros(len(state.risks)), state.risks, REACH / SHRINKING
        while self._last is not None and before > SETTLED:
            step = self._last.step(risks, ROUGHLY)
            if step is None or not float(np.abs(step).max()) <= SHRINKING * before:
                break
            shift, before = shift + step, float(np.abs(step).max())
            risks = state.risks + problem.objective.growths(state, shift)
        return shift
