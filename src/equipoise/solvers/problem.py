r"""The problem that every solver solves.

.. math:: \min_\theta \; \max_{m \in M} \; \sum_i m_i R_i(\theta) + \tfrac{\rho}{2} \|w\|^2

with :math:`w` the coefficients in :math:`\theta`; intercepts carry no penalty.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from equipoise.arrays import Vector, norm
from equipoise.objectives import Evaluation, Objective
from equipoise.sets import MassSet

# TYPICAL_CURVATURE: of a risk along an intercept, for estimates alone: that of a class with a
# probability of 5%.
TYPICAL_CURVATURE = 0.05
# INTERCEPT_REACH: how far away better intercepts may lie, in log-odds, when a gradient that is left
# in them is charged; SMALL: the longest step in the intercepts whose charge is valid, in log-odds.
INTERCEPT_REACH, SMALL = 1e3, 0.1
# PRODUCTS: with the Hessian, for one step; LONGEST: length of a direction, relative to its
# curvature, from which rounding has left none.
PRODUCTS, LONGEST = 300, 1e10


class NewtonStep(NamedTuple):
    """A Newton step, and the most that it could gain."""

    direction: Vector
    image: Vector  # the Hessian times the direction
    left: Vector  # gradients at the end of it
    gain: float
    products: int


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

    @cached_property
    def _reaches(self) -> Any:
        """Factors of squared gradients in what they may gain: by the ridge, or an estimate."""
        held = self.ridges > 0
        return 0.5 * (held / (self.ridges + ~held) + ~held / TYPICAL_CURVATURE)

    @cached_property
    def least(self) -> float:
        """A lower bound of every objective, as no loss is negative: the offsets of the risks."""
        added = np.broadcast_to(self.objective.offsets, (self.masses.n_classes,))
        return float(self.masses.support(added))

    def penalty(self, theta: Vector) -> float:
        return 0.5 * float(self.ridges @ (theta * theta))

    def penalty_gradient(self, theta: Vector) -> Vector:
        """Gradient of the penalty."""
        return self.ridges * theta

    def value(self, state: Evaluation) -> float:
        """The robust risk plus the penalty; infinite where a risk is not a number."""
        if state not in self._values:
            value = np.inf
            if np.all(np.isfinite(state.risks)):
                value = float(self.masses.support(state.risks)) + self._penalty_at(state)
            self._values[state] = value
        return self._values[state]

    def _penalty_at(self, state: Evaluation) -> float:
        if state not in self._penalties:
            self._penalties[state] = self.penalty(state.theta)
        return self._penalties[state]

    @cached_property
    def _penalties(self) -> WeakKeyDictionary[Evaluation, float]:
        return WeakKeyDictionary()

    @cached_property
    def _values(self) -> WeakKeyDictionary[Evaluation, float]:
        """Objectives of living states, which solvers and the loop use several times."""
        return WeakKeyDictionary()

    def lagrangian(self, state: Evaluation, mass: Vector) -> float:
        """The weighted risk plus the penalty."""
        return float(mass @ state.risks) + self._penalty_at(state)

    def gradient(self, state: Evaluation, mass: Vector) -> Vector:
        """Gradient of the Lagrangian: one pass over the data."""
        return self.objective.gradient(state, mass) + self.penalty_gradient(state.theta)

    @property
    def has_bounds(self) -> bool:
        """Whether a gradient bounds the gap: there is a penalty, and the risks are convex."""
        return self.ridge > 0 and self.objective.convex

    def bound(self, state: Evaluation, mass: Vector, gradient: Vector) -> float:
        r"""A lower bound of the Lagrangian at fixed masses, if the intercepts are optimal.

        It is :math:`\rho`-strongly convex in the coefficients, so where its gradient by the
        intercepts vanishes, :math:`L - \|\nabla_w L\|^2 / (2 \rho)` bounds it from below. Where it
        does not, this is an estimate of the gain by better intercepts.
        """
        if not self.has_bounds:
            return -np.inf
        return self.lagrangian(state, mass) - float((gradient * gradient) @ self._reaches)

    def certify(self, state: Evaluation, mass: Vector, target: float = 0.0) -> float:
        r"""A valid lower bound of the optimum: intercepts re-optimised, then ``bound``.

        Gradients that are left in the intercepts are removed by a step :math:`d`: the residuals
        :math:`r_j - W_j d` belong to another point of the dual, which costs no more than
        :math:`d^\top H d`, since :math:`(1 - t) \log(1 - t) \le t^2 - t`.
        """
        if not self.has_bounds:
            return -np.inf
        if self.exact is not self:
            return self.exact.certify(self.exactly(state), mass, target)
        left = 0.1 * target
        # A longer gradient would cost the Newton step products with the whole Hessian.
        state = self.objective.center(state, mass, 0.1 * left / INTERCEPT_REACH)
        gradient = self.gradient(state, mass)
        inverse = self.objective.intercept_inverse(state, mass)
        step = self.newton_step(state, mass, gradient, inverse, INTERCEPT_REACH, left)
        # Risks are sums of logarithms of scores that rounding may move both ways.
        bound = self.bound(state, mass, step.left) - step.gain
        bound -= 2 * self.objective.blur(state.theta)
        # Where the intercepts are not optimal there is no bound, and NaN is not a bound.
        valid = np.isfinite(bound) and float(abs(step.direction).max()) <= SMALL
        return bound if valid else -np.inf

    @cached_property
    def exact(self) -> "Problem":
        """The same problem with the digits that certificates need."""
        sharper = self.objective.sharper()
        return self if sharper is None else replace(self, objective=sharper)

    def rougher(self) -> "Problem":
        """The same problem in fewer digits, where the objective offers that."""
        rougher = self.objective.rougher()
        if rougher is None:
            return self
        rougher.n_evaluations = self.objective.n_evaluations
        return replace(self, objective=rougher)

    def exactly(self, state: Evaluation) -> Evaluation:
        """A state of the exact problem at the same point."""
        if self.exact is self:
            return state
        self.exact.objective.n_evaluations = self.objective.n_evaluations
        exact = self.exact.objective.evaluate(state.theta)
        self.objective.n_evaluations = self.exact.objective.n_evaluations
        return exact

    def newton_step(
        self,
        state: Evaluation,
        mass: Vector,
        gradient: Vector,
        inverse: Callable[[Vector], Vector],
        reach: float,
        target: float,
    ) -> NewtonStep:
        r"""The Newton step in all parameters without a penalty, by conjugate gradients.

        Gradients that a step :math:`d` removes gain at most :math:`d^\top H d` where the quadratic
        model holds; those that are left gain, by convexity, at most their length times the
        ``reach``. Steps are refined until this is a tenth of the ``target``. ``inverse`` applies an
        approximate inverse Hessian.
        """
        direction = image = along = 0 * self.ridges
        free, before = self.ridges == 0, 1.0
        rounding = self.objective.rounding * self.lagrangian(state, mass)
        step = NewtonStep(direction, image, gradient, np.inf, 0)
        for products in range(PRODUCTS):
            left = gradient + image
            size = norm(left[free])
            if size <= norm(gradient[free]):  # rounding may make steps useless
                gain = abs(float(direction @ image)) + (reach * size if size > rounding else 0.0)
                step = NewtonStep(direction, image, left, gain, products)
            if size <= max(0.1 * target / reach, rounding):
                break
            better = free * inverse(free * left)
            now = float(left @ better)
            along = better + now / before * along
            bent = self.objective.hessian_product(state, mass, along)
            curvature = float(along @ bent)
            if not now * norm(along) < LONGEST * curvature:
                break
            direction = direction - now / curvature * along
            image, before = image - now / curvature * bent, now
        return step._replace(products=products)

    def thin(self, rows_per_class: int) -> "Problem":
        """The same problem on at most ``rows_per_class`` rows of each class."""
        return Problem(self.objective.thin(rows_per_class), self.masses, self.ridge)
