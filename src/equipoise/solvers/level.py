r"""Intercepts at which all class risks are equal, and the masses that belong to them.

For fixed coefficients the largest class risk is smallest, over the intercepts, where all risks are
equal. With :math:`\bar p_{ij}` the mean probability of class j over rows of class i, the gradients
of the risks are :math:`\bar p_{ij} - \delta_{ij}`, and the masses under which these cancel,

.. math:: \sum_i m_i \, \bar p_{ij} = m_j ,

the stationary distribution of a Markov chain, are never negative. So the value there is a smooth
convex function of the coefficients, whose gradient is that of the risk under these masses: while
they lie in the set, the minimax problem is a smooth one, and no harder than a plain fit.
"""

from importlib import import_module
from typing import Any

import numpy as np

from equipoise.arrays import Vector, is_tensor, library, like, to_numpy
from equipoise.objectives import Evaluation, RiskGradients, offered
from equipoise.solvers.problem import Problem

# STEPS: Newton steps at most. In log-odds: REACH, the longest step; TOO_FAR, steps from which equal
# risks are given up; SETTLED, a step after which the next would be of its square, rounding.
STEPS, REACH, TOO_FAR, SETTLED = 30, 2.0, 20.0, 1e-5
# NEAR: the longest first step, in log-odds, by the inverse of another point; SHRINKING: of each
# further step, relative to the last.
NEAR, SHRINKING = 0.5, 0.5
# CORRECTIONS: of a solution by the inverse of another point, at most; NEARLY and EXACT: their
# relative size in the end, for a step and for masses; ROUNDING: where smaller ones do not shrink.
CORRECTIONS, NEARLY, EXACT, ROUNDING, TINY = 15, 1e-8, 1e-13, 1e-9, 1e-300
# CLOSE: error of an inverse, in the Frobenius norm, after which one more product is the last.
CLOSE = 1e-2
# INSIDE: distance of masses from the set that is rounding.
INSIDE = 1e-12


def can_level(problem: Problem) -> bool:
    """Whether every class has an intercept, and gradients of all risks along them are offered."""
    objective = problem.objective
    return isinstance(objective, RiskGradients) and objective.has_every_intercept


class Leveling:
    """Makes risks equal at one point after another, each time from what the last one taught."""

    def __init__(self) -> None:
        self._inverse: Any = None

    def at(self, problem: Problem, state: Evaluation) -> tuple[Evaluation, Vector] | None:
        """The state with risks that are equal, and the masses; None where there is none in the set.

        The gradients are a matrix of classes times classes: they are formed once the risks are
        nearly equal, and before that only where the last ones lead nowhere.
        """
        if not can_level(problem):
            return None
        objective = problem.objective
        oracle: RiskGradients = offered(objective, RiskGradients, user="Equal risks")
        shift, k = self._approach(problem, state), objective.n_classes
        for _ in range(STEPS):
            growths, gradients = oracle.risk_gradients(state, shift)
            # Equal shifts change nothing: a step has none. The last unknown is the common risk,
            # less the mean.
            system = getattr(gradients, "new_zeros", np.zeros)((k + 1, k + 1))
            system[:k, :k], system[:k, k], system[k, :k] = gradients, -1.0, 1.0
            if is_tensor(system):  # where products cost nothing, an inverse need not grow old
                self._inverse = _inverse_of(system, self._inverse)
            step = self._solved(system, _differences(state.risks + growths), NEARLY)
            if step is None or not np.all(np.abs(step) <= TOO_FAR):
                return None
            shift += np.clip(step, -REACH, REACH)
            if float(np.abs(step).max()) <= SETTLED:
                mass = self._solved(system, np.append(np.zeros(k), -1.0), EXACT, across=True)
                if mass is None:
                    return None
                projected = np.asarray(problem.masses.project(mass))
                if float(np.abs(projected - mass).max()) > INSIDE:
                    return None
                risks = state.risks + objective.growths(state, shift)
                return objective.with_shift(state, shift, risks), projected
        return None

    def _approach(self, problem: Problem, state: Evaluation) -> Vector:
        """A shift towards equal risks, by the inverse of the last point."""
        shift, risks, before = np.zeros(len(state.risks)), state.risks, 2 * NEAR
        while self._inverse is not None and before > SETTLED:
            differences = like(_differences(risks), self._inverse)
            step = to_numpy(self._inverse @ differences)[:-1]
            size = float(np.abs(step).max())
            if not size <= SHRINKING * before:
                break
            shift, before = shift + step, size
            risks = state.risks + problem.objective.growths(state, shift)
        return shift

    def _solved(
        self, system: Any, side: Vector, accuracy: float, *, across: bool = False
    ) -> Vector | None:
        """The solution of a system, or its transpose, without its last entry; None if singular."""
        right_side = like(side, system)
        for _ in range(2):
            if self._inverse is not None:
                pair = (system.T, self._inverse.T) if across else (system, self._inverse)
                solution = _corrected(*pair, right_side, accuracy)
                if solution is not None:
                    return to_numpy(solution)[:-1]
            self._inverse = _inverse_of(system, self._inverse)
        self._inverse = None
        return None


def _differences(risks: Vector) -> Vector:
    """How far risks are below their mean, and the sum of a step: zero."""
    return np.append(risks.mean() - risks, 0.0)


def _inverse_of(system: Any, near: Any) -> Any:
    """The inverse of a matrix; on a device from one that is near, by products alone (Schulz).

    None where the matrix is singular. An elimination has as many steps as there are rows, each of
    which waits for the last: on a device it takes far longer than some products.
    """
    before = np.inf
    while near is not None and is_tensor(system):
        error = system @ near
        error.diagonal().sub_(1.0)
        size = float((error * error).sum()) ** 0.5
        if not size <= SHRINKING * before:
            break
        near, before = near - near @ error, size
        if size <= CLOSE:
            return near
    linalg = import_module(library(system)).linalg
    try:
        return linalg.inv(system)
    except linalg.LinAlgError:
        return None


def _corrected(system: Any, inverse: Any, side: Any, accuracy: float) -> Any:
    """The solution of a system by an approximate inverse; None where it does not converge."""
    out, before = inverse @ side, 2.0
    for _ in range(CORRECTIONS):
        change = inverse @ (side - system @ out)
        out = out + change
        size = float((change @ change) / (out @ out + TINY)) ** 0.5
        if size <= accuracy:
            return out
        if not size <= SHRINKING * before:
            return out if size <= ROUNDING else None
        before = size
    return None
