r"""Gradient descent-ascent with averaging (appendix E of the paper): the reference for any set.

.. math:: \theta_{t+1} = \Pi_A(\theta_t - \eta_t \nabla_\theta L(\theta_t, m_t)), \qquad
          m_{t+1} = \Pi_M(m_t + \zeta_t R(\theta_t)),

with :math:`\eta_t = D_A / (L_A \sqrt t)` and :math:`\zeta_t = D_M / (L_M \sqrt t)`. The averages of
``T`` iterates are within :math:`3 (L_A D_A + L_M D_M) / (2 \sqrt T)` of the saddle value when the
constants are true ones. The paper projects onto the wrong set in its second step; here it is M.
"""

from dataclasses import dataclass, replace

import numpy as np

from equipoise.arrays import Vector, norm
from equipoise.objectives import Evaluation
from equipoise.solvers.base import Iterate, Solver
from equipoise.solvers.curvature import InverseCurvature
from equipoise.solvers.problem import Problem

# LOOK: share of rounds since the last evaluation of the averages, after which they are evaluated.
LOOK = 0.05


@dataclass(frozen=True)
class StepConstants:
    """Diameters of the two sets and Lipschitz constants of the Lagrangian in each argument."""

    theta_diameter: float
    theta_slope: float
    mass_diameter: float
    mass_slope: float

    def bound(self, rounds: int) -> float:
        """How far the averages of some rounds can be from the saddle value."""
        product = self.theta_diameter * self.theta_slope + self.mass_diameter * self.mass_slope
        return 1.5 * product / float(np.sqrt(rounds))


@dataclass(frozen=True, kw_only=True)
class AscentIterate(Iterate):
    """Averages (as the point), the pair that is played next, and what sets the steps."""

    constants: StepConstants
    played: tuple[Vector, Vector]
    sums: tuple[Vector, Vector]
    rounds: int = 0
    looked: int = 0


class DescentAscent(Solver[AscentIterate]):
    """Descent-ascent in a ball of parameters.

    Without constants they are guessed, and the bound above is not promised
    (``equipoise.theory.descent_ascent`` derives true ones from a radius). The ball then has the
    radius that the penalty of the start allows for coefficients of its own units, but 100 at the
    most; the slope in the parameters is ten times that at the start; the slope in the masses is
    that of risks as large, in every class, as the largest where all parameters are zero.
    """

    def __init__(self, constants: StepConstants | None = None) -> None:
        self._constants = constants

    def start(self, problem: Problem, theta: Vector, mass: Vector) -> AscentIterate:
        state = problem.objective.evaluate(theta)
        gradient = problem.gradient(state, mass)
        constants = self._constants or _guess(problem, state, mass, gradient)
        curvature = InverseCurvature(None, theta, 1)
        played, sums = (theta, mass), (0 * theta, 0 * mass)
        return AscentIterate(
            state, mass, gradient, curvature, constants=constants, played=played, sums=sums
        )

    def step(self, problem: Problem, iterate: AscentIterate) -> AscentIterate:
        theta, mass = iterate.played
        state = problem.objective.evaluate(theta)
        gradient = problem.gradient(state, mass)
        rounds = iterate.rounds + 1
        played = _play(problem, iterate, (gradient, state.risks))
        sums = (iterate.sums[0] + theta, iterate.sums[1] + mass)
        moved = replace(iterate, played=played, sums=sums, rounds=rounds, decrease=np.inf)
        if rounds - iterate.looked < max(1, int(LOOK * rounds)):
            return moved
        return _look(problem, moved)


def _play(
    problem: Problem, iterate: AscentIterate, gradients: tuple[Vector, Vector]
) -> tuple[Vector, Vector]:
    """The next pair: a step of each player along its slope, and back into its set."""
    c, root = iterate.constants, (iterate.rounds + 1) ** 0.5
    eta = c.theta_diameter / (c.theta_slope * root)
    zeta = c.mass_diameter / (c.mass_slope * root)
    theta = iterate.played[0] - eta * gradients[0]
    radius = c.theta_diameter / 2
    theta = theta * min(1.0, radius / max(1e-300, norm(theta)))
    return theta, problem.masses.project(iterate.played[1] + zeta * gradients[1])


def _look(problem: Problem, iterate: AscentIterate) -> AscentIterate:
    """Evaluate the averages, so that the loop can certify them."""
    theta, mass = (total / iterate.rounds for total in iterate.sums)
    state = problem.objective.evaluate(theta)
    gradient = problem.gradient(state, mass)
    bound = problem.bound(state, mass, gradient)
    if not np.isfinite(bound):  # no penalty: what the masses miss, and as much again for a slope
        bound = problem.lagrangian(state, mass) - norm(gradient)
    return replace(
        iterate,
        state=state,
        mass=mass,
        gradient=gradient,
        looked=iterate.rounds,
        decrease=problem.value(state) - bound,
    )


def _guess(problem: Problem, state: Evaluation, mass: Vector, gradient: Vector) -> StepConstants:
    """Constants from the start, whose objective bounds the penalty of any solution."""
    radius, risk = 100.0, float(state.risks.max())
    if problem.ridge > 0:
        radius = min(radius, float(np.sqrt(2 * problem.value(state) / problem.ridge)))
    slope = max(norm(gradient), 1e-3)
    corners = [problem.masses.maximize(row) for row in (mass, -mass)]
    spread = max(norm(corners[0] - corners[1]), 1e-12)
    return StepConstants(2 * radius, 10 * slope, spread, float(np.sqrt(len(mass))) * risk)
