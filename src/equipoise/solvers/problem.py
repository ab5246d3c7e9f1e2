r"""The problem that every solver solves.

.. math:: \min_\theta \; \max_{m \in M} \; \sum_i m_i R_i(\theta) + \tfrac{\rho}{2} \|w\|^2

with :math:`w` the coefficients in :math:`\theta`; intercepts carry no penalty.
"""

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from equipoise.arrays import Vector
from equipoise.objectives import Evaluation, Objective
from equipoise.sets import MassSet

# Slopes in the intercepts that a bound forgives: what they are worth is far below any tolerance.
CENTERED = 1e-8
# Of a risk along an intercept.
TYPICAL_CURVATURE = 0.05


@dataclass(frozen=True)
class Problem:
    """Class risks, a set of masses, and the strength of the penalty."""

    objective: Objective
    masses: MassSet
    ridge: float

    @cached_property
    def ridges(self) -> Vector:
        """The penalty's curvature along each parameter: zero for intercepts."""
        return self.ridge * self.objective.squares

    def penalty(self, theta: Vector) -> float:
        return 0.5 * float(self.ridges @ (theta * theta))

    def pull(self, theta: Vector) -> Vector:
        """Gradient of the penalty."""
        return self.ridges * theta

    def value(self, state: Evaluation) -> float:
        """The robust risk plus the penalty; infinite where a risk is not a number."""
        if state not in self._values:
            value = np.inf
            if np.all(np.isfinite(state.risks)):
                value = float(self.masses.support(state.risks)) + self.penalty(state.theta)
            self._values[state] = value
        return self._values[state]

    @cached_property
    def _values(self) -> WeakKeyDictionary[Evaluation, float]:
        """Objectives of living states: solvers and the loop ask again and again."""
        return WeakKeyDictionary()

    def lagrangian(self, state: Evaluation, mass: Vector) -> float:
        """The weighted risk plus the penalty."""
        return float(mass @ state.risks) + self.penalty(state.theta)

    def gradient(self, state: Evaluation, mass: Vector) -> Vector:
        """Gradient of the Lagrangian: one pass over the data."""
        return self.objective.gradient(state, mass) + self.pull(state.theta)

    def bound(self, state: Evaluation, mass: Vector, gradient: Vector) -> float:
        r"""A value that the Lagrangian at fixed masses never falls below, at best intercepts.

        It is :math:`\rho`-strongly convex in the coefficients, so where its gradient by the
        intercepts vanishes, :math:`L - \|\nabla_w L\|^2 / (2 \rho)` bounds it from below. Where it
        does not, this is an estimate: what better intercepts would gain is only guessed.
        """
        if self.ridge == 0:
            return -np.inf
        held = self.ridges > 0
        slack = 0.5 * float(np.sum(gradient[held] ** 2 / self.ridges[held]))
        guess = 0.5 * float(np.sum(gradient[~held] ** 2)) / TYPICAL_CURVATURE
        return self.lagrangian(state, mass) - slack - guess

    def certify(self, state: Evaluation, mass: Vector) -> float:
        """A valid lower bound of the optimum: intercepts re-optimised, then ``bound``."""
        if self.ridge == 0:
            return -np.inf
        centered = self.objective.center(state, mass)
        gradient = self.gradient(centered, mass)
        # Where the intercepts could not be found there is no bound, and NaN is none either.
        if not float(np.abs(gradient[self.ridges == 0]).sum()) <= CENTERED:
            return -np.inf
        return self.bound(centered, mass, gradient)

    def thin(self, rows_per_class: int) -> "Problem":
        """The same problem on at most so many rows of each class."""
        return Problem(self.objective.thin(rows_per_class), self.masses, self.ridge)
