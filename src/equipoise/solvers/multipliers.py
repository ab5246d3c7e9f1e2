r"""The method of multipliers: a smooth problem in :math:`\theta` alone, for very many classes.

With masses :math:`m_t` kept from the last round,

.. math:: \phi_t(\theta) = \max_{m \in M} \; \langle m, R(\theta) \rangle
          - \tfrac{1}{2\mu} \|m - m_t\|^2 + \tfrac{\rho}{2} \|w\|^2

is smooth, and its maximiser is one projection. L-BFGS minimises it until its gradient is small
beside what the masses still miss; then :math:`m_{t+1}` is that maximiser (Rockafellar 1976). Only
weighted gradients are formed, never one gradient per class.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from equipoise.arrays import Vector, norm
from equipoise.objectives import Evaluation
from equipoise.solvers.base import Iterate, Solver
from equipoise.solvers.curvature import InverseCurvature
from equipoise.solvers.problem import Problem

# Rounds end when the gradient's part of the gap is below this share of the masses' part.
INNER = 0.003
# Where the memory took a gradient for small that was not, rounds go on to so much less.
TIGHTER = 0.01
# The smoothing relaxes by this factor when a round closes less than 3/4 of the masses' gap.
GROWTH = 2.0
# Pairs of steps and gradient changes that are kept.
MEMORY = 15
SUFFICIENT = 1e-4
# Values that differ by so little may differ by rounding alone.
FLAT = 1e-12
TRIALS = 20


@dataclass(frozen=True, kw_only=True)
class MultiplierIterate(Iterate):
    """An iterate of the smooth problem around the masses of the round."""

    anchor: Vector
    mu: float = 0.0
    value: float = np.inf
    last_gap: float = np.inf


class Multipliers(Solver[MultiplierIterate]):
    """Method of multipliers with L-BFGS inside."""

    def start(self, problem: Problem, theta: Vector, mass: Vector) -> MultiplierIterate:
        curvature = InverseCurvature(None, theta, MEMORY, problem.objective.share)
        state = problem.objective.evaluate(theta)
        # The first round has no smoothing at all: a plain fit under the starting masses.
        iterate = MultiplierIterate(state, mass, theta, curvature=curvature, anchor=mass)
        return self._at(problem, iterate, state)

    def step(self, problem: Problem, iterate: MultiplierIterate) -> MultiplierIterate:
        direction = self._direction(iterate)
        moved = self._search(problem, iterate, direction)
        if moved is None and iterate.curvature.n_pairs:
            iterate.curvature.clear()
            moved = self._search(problem, iterate, self._direction(iterate))
        if moved is None:
            return self._next_round(problem, replace(iterate, stuck=iterate.mu > 0))
        step = moved.state.theta - iterate.state.theta
        iterate.curvature.update(step, moved.gradient - iterate.gradient)
        masses, gradient = _gaps(problem, moved)
        enough = INNER * TIGHTER**moved.doubts * masses
        return self._next_round(problem, moved) if gradient <= enough else moved

    def _direction(self, iterate: MultiplierIterate) -> Any:
        if iterate.curvature.n_pairs:
            return -iterate.curvature.apply(iterate.gradient)
        return -iterate.gradient / max(1e-300, norm(iterate.gradient))

    def _search(
        self, problem: Problem, iterate: MultiplierIterate, direction: Vector
    ) -> MultiplierIterate | None:
        slope, length = float(iterate.gradient @ direction), 1.0
        if not slope < 0:
            return None
        for _ in range(TRIALS):
            state = problem.objective.evaluate(iterate.state.theta + length * direction)
            value, _ = self._smooth(problem, iterate, state)
            if value <= iterate.value + SUFFICIENT * length * slope:
                return self._at(problem, iterate, state, length * direction)
            if value <= iterate.value + FLAT * abs(iterate.value):
                # Rounding hides the decrease; the slope at the end of the step does not.
                moved = self._at(problem, iterate, state, length * direction)
                if float(moved.gradient @ direction) <= (2 * SUFFICIENT - 1) * slope:
                    return moved
            del state  # what it keeps would stay in memory beside that of the next trial
            rise = value - iterate.value - slope * length
            best = -0.5 * slope * length**2 / rise if np.isfinite(rise) else 0.0
            length = float(np.clip(best, 0.1 * length, 0.5 * length))
        return None

    def _smooth(
        self, problem: Problem, iterate: MultiplierIterate, state: Evaluation
    ) -> tuple[float, Vector]:
        """The smooth objective and its masses."""
        if not np.all(np.isfinite(state.risks)):
            return np.inf, iterate.anchor
        if iterate.mu == 0:
            return problem.lagrangian(state, iterate.anchor), iterate.anchor
        mass = problem.masses.project(iterate.anchor + iterate.mu * state.risks)
        moved = mass - iterate.anchor
        return problem.lagrangian(state, mass) - float(moved @ moved) / (2 * iterate.mu), mass

    def _at(
        self,
        problem: Problem,
        iterate: MultiplierIterate,
        state: Evaluation,
        step: Vector | None = None,
    ) -> MultiplierIterate:
        value, mass = self._smooth(problem, iterate, state)
        gradient = problem.gradient(state, mass)
        size = max(1e-300, norm(state.theta))
        length = np.inf if step is None else norm(step) / size
        moved = replace(
            iterate, state=state, mass=mass, gradient=gradient, value=value, step=length
        )
        return replace(moved, decrease=sum(_gaps(problem, moved)))

    def _next_round(self, problem: Problem, iterate: MultiplierIterate) -> MultiplierIterate:
        masses, _ = _gaps(problem, iterate)
        mu = iterate.mu
        if mu == 0:
            spread = max(float(np.std(iterate.state.risks)), 1e-300)
            mu = 1 / (problem.masses.n_classes * spread)
        elif masses > max(0.25 * iterate.last_gap, FLAT * abs(iterate.value)):
            mu *= GROWTH
        fresh = replace(iterate, anchor=iterate.mass, mu=mu, last_gap=masses)
        return replace(self._at(problem, fresh, iterate.state), stuck=iterate.stuck)


def _gaps(problem: Problem, iterate: MultiplierIterate) -> tuple[float, float]:
    """What the masses miss, and what the gradient may still gain."""
    state, gradient = iterate.state, iterate.gradient
    value = problem.lagrangian(state, iterate.mass)
    bound = problem.bound(state, iterate.mass, gradient)
    if not problem.has_bounds and iterate.curvature.n_pairs:
        # No bound: the gain of the step that the memory would take.
        bound = value - 0.5 * float(gradient @ iterate.curvature.apply(gradient))
    return problem.value(state) - value, value - bound
