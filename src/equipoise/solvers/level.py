r"""Intercepts at which all class risks are equal, and the masses that belong to them.

For fixed coefficients the largest class risk is smallest, over the intercepts, where all risks are
equal. With :math:`\bar p_{ij}` the mean probability of class j over rows of class i, their slopes
are :math:`\bar p_{ij} - \delta_{ij}`, and the masses under which these cancel,

.. math:: \sum_i m_i \, \bar p_{ij} = m_j ,

the stationary distribution of a Markov chain, are never negative. So the value there is a smooth
convex function of the coefficients, whose gradient is that of the risk under these masses: while
they lie in the set, the minimax problem is a smooth one, and no harder than a plain fit.
"""

import numpy as np

from equipoise.arrays import Matrix, Vector
from equipoise.objectives import Evaluation
from equipoise.solvers.problem import Problem

# Newton steps, how far one may go and where it is too far to go at all; and when the next would be
# too short to matter: what it leaves of the differences is its square.
STEPS, REACH, TOO_FAR, SETTLED = 30, 2.0, 20.0, 1e-5
# Masses outside the set by less are in it.
INSIDE = 1e-12


def can_level(problem: Problem) -> bool:
    """Whether there is an intercept for every class, and slopes of risks are to be had."""
    objective = problem.objective
    if not objective.has_slopes or not objective.features.fit_intercept:
        return False
    return objective.features.n_scores == objective.n_classes


def leveled(problem: Problem, state: Evaluation) -> tuple[Evaluation, Vector] | None:
    """The state with risks that are equal, and the masses; None where there is none in the set."""
    objective, shift = problem.objective, np.zeros(len(state.risks))
    if not can_level(problem):
        return None
    for _ in range(STEPS):
        growths, slopes = objective.class_slopes(state, shift)
        if not (np.all(np.isfinite(growths)) and np.all(np.isfinite(slopes))):
            return None
        step, mass = _newton(slopes, state.risks + growths)
        if not (np.all(np.abs(step) <= TOO_FAR) and np.all(mass >= -INSIDE)):
            return None
        shift += np.clip(step, -REACH, REACH)
        if float(np.abs(step).max()) <= SETTLED:
            own = np.asarray(problem.masses.project(mass))
            if float(np.abs(own - mass).max()) > INSIDE:
                return None
            risks = state.risks + objective.growths(state, shift)
            return objective.with_shift(state, shift, risks), own
    return None


def _newton(slopes: Matrix, risks: Vector) -> tuple[Vector, Vector]:
    """A step in the intercepts towards equal risks, and the masses under which slopes cancel."""
    k = len(risks)
    # Equal shifts change nothing: the step has none. The last unknown is the common risk.
    system = np.zeros((k + 1, k + 1))
    system[:k, :k], system[:k, k], system[k, :k] = slopes, -1.0, 1.0
    try:
        step = np.linalg.solve(system, np.append(-risks, 0.0))[:k]
        mass = np.linalg.solve(system.T, np.append(np.zeros(k), -1.0))[:k]
    except np.linalg.LinAlgError:
        return np.full(k, np.nan), np.full(k, np.nan)
    return step, mass
