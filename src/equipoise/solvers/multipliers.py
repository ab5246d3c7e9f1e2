r"""The method of multipliers: a smooth problem in :math:`\theta` alone, for very many classes.

With masses :math:`m_t` kept from the last round,

.. math:: \phi_t(\theta) = \max_{m \in M} \; \langle m, R(\theta) \rangle
          - \tfrac{1}{2\mu} \|m - m_t\|^2 + \tfrac{\rho}{2} \|w\|^2

is smooth, and its maximiser is one projection. L-BFGS minimises it until its gradient is small
beside what the masses still miss; then :math:`m_{t+1}` is that maximiser (Rockafellar 1976). Only
weighted gradients are formed, never one gradient per class.

The first round is a plain fit under the masses of the start. Where the set has the uniform masses,
under which all risks are equal without features, these are the start; and where intercepts can make
all risks equal at the end of the round, one more round is enough: see ``level.py``.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from equipoise.arrays import Vector, norm
from equipoise.objectives import Diagonals, Evaluation
from equipoise.solvers.base import FLOOR, Iterate, Solver
from equipoise.solvers.curvature import DiagonalInverse, InverseCurvature
from equipoise.solvers.intercepts import balanced, can_balance
from equipoise.solvers.level import Leveling
from equipoise.solvers.problem import Problem

# INNER: rounds end when the gradient's part of the gap is below this share of the masses' part.
INNER = 0.003
# FIRST: share of the objective that the coefficients may still gain, at which the first round ends
# where equal risks are tried; LATER: its factor after each failure; TRIES: failures after which
# equal risks are given up.
FIRST, LATER, TRIES = 0.005, 0.1, 5
# TIGHTER: factor of INNER after a gradient that the memory had taken for small.
TIGHTER = 0.01
# BALANCED: smoothing parameter mu, relative to the objective, where intercepts are made best first;
# NEAR: a round ends when the coefficients may gain less than this share of the masses' gap; LOOSE:
# accuracy of intercepts, relative to the predicted decrease; FLOORS: nearest that masses of a round
# count to floors and caps, relative to the gap, and its range.
BALANCED, NEAR, LOOSE = 5.0, 0.1, 0.01
FLOORS = 0.01, 1e-15, 1e-3
# GROWTH: of the smoothing parameter mu, when a round closes less than 3/4 of the masses' gap.
GROWTH = 2.0
# MEMORY: pairs of steps and gradient changes; FEWEST: where one of them is as long as a share of
# KEPT, numbers that all pairs together may take (1 GiB).
MEMORY, FEWEST, KEPT = 15, 4, 1 << 27
# LONGER: the longest step, relative to the last, as shares of the whole one.
LONGER = 2.0
# SUFFICIENT: share of the predicted decrease that a step must bring; FLAT: relative difference of
# values that is rounding; TRIALS: lengths of a step.
SUFFICIENT, FLAT, TRIALS = 1e-4, 1e-12, 20


@dataclass(frozen=True, kw_only=True)
class MultiplierIterate(Iterate):
    """An iterate of the smooth problem around the masses of the round, ``anchor``."""

    anchor: Vector
    leveling: Leveling  # handed on from step to step
    mu: float = 0.0
    value: float = np.inf
    last_gap: float = np.inf
    gaps: tuple[float, float] = (np.inf, np.inf)  # of the masses, and of the gradient
    level: bool = False  # whether risks are kept equal
    tries: int = 0  # how often they could not be made equal
    balance: bool = False  # whether intercepts are made best against the masses first
    steps: int = 0  # since the start, or since risks are kept equal
    length: float = 1.0  # of the last step, as a share of the whole one
    floor: float = FLOORS[-1]  # of the round: how near its masses count to floors and caps


class Seen(NamedTuple):
    """The smooth objective at a point, and its masses."""

    state: Evaluation
    value: float
    mass: Vector


class Multipliers(Solver[MultiplierIterate]):
    """Method of multipliers with L-BFGS inside."""

    def start(self, problem: Problem, theta: Vector, mass: Vector) -> MultiplierIterate:
        memory = max(FEWEST, min(MEMORY, KEPT // (3 * len(theta))))
        curvature = InverseCurvature(None, theta, memory, problem.objective.share, scaled=True)
        state = problem.objective.evaluate(theta)
        # The first round has no smoothing at all: a plain fit under the starting masses. For a
        # single weighting it is all there is to do: equal risks are of no use.
        level = may_be_equal(problem)
        balance = can_balance(problem) and not level
        tries = TRIES if problem.masses.is_point or balance else 0
        if level and not bool((theta != 0).any()):
            mass = np.full(len(mass), 1 / len(mass))
        iterate = MultiplierIterate(
            state,
            mass,
            theta,
            curvature=curvature,
            anchor=mass,
            leveling=Leveling(),
            tries=tries,
            balance=balance,
        )
        if balance:
            iterate = replace(iterate, mu=BALANCED / max(FLOOR, problem.value(state)))
        return self._at(problem, iterate, self._seen(problem, iterate, state))

    def step(self, problem: Problem, iterate: MultiplierIterate) -> MultiplierIterate:
        _precondition(problem, iterate)
        direction = self._direction(iterate)
        moved = self._search(problem, iterate, direction)
        if moved is None and iterate.curvature.n_pairs:
            iterate.curvature.clear()
            moved = self._search(problem, iterate, self._direction(iterate))
        if moved is None:
            stuck = iterate.mu > 0 and not iterate.level
            left = replace(iterate, stuck=stuck, level=False, tries=iterate.tries + iterate.level)
            return self._next_round(problem, left)
        moved = replace(moved, steps=iterate.steps + 1)
        step = moved.state.theta - iterate.state.theta
        iterate.curvature.update(step, moved.gradient - iterate.gradient)
        if moved.level:
            return moved
        gain = 0.5 * float(moved.gradient @ moved.curvature.apply(moved.gradient))
        if moved.balance:
            over = gain <= NEAR * TIGHTER**moved.doubts * moved.gaps[0]
            return self._next_round(problem, moved) if over else moved
        masses, gradient = moved.gaps if problem.has_bounds else _gaps(problem, moved)
        over = gradient <= INNER * TIGHTER**moved.doubts * masses
        early = moved.mu == 0 and gain <= FIRST * LATER**moved.tries * abs(moved.value)
        if (over or early) and moved.tries < TRIES:
            mu = moved.mu or self._first_mu(problem, moved)
            level = replace(moved, level=True, mu=mu, anchor=moved.mass, steps=0)
            seen = self._seen(problem, level, moved.state)
            if np.isfinite(seen.value):
                # Those of the plain fit have the curvature of other masses.
                moved.curvature.clear()
                return self._at(problem, level, seen)
            # Balanced intercepts take over at once where they can.
            over = over or can_balance(problem)
            moved = replace(moved, tries=TRIES if can_balance(problem) else moved.tries + 1)
        return self._next_round(problem, moved) if over else moved

    def _direction(self, iterate: MultiplierIterate) -> Any:
        if iterate.curvature.n_pairs or iterate.curvature.base:
            return -iterate.curvature.apply(iterate.gradient)
        return -iterate.gradient / max(1e-300, norm(iterate.gradient))

    def _search(
        self, problem: Problem, iterate: MultiplierIterate, direction: Vector
    ) -> MultiplierIterate | None:
        slope, length = float(iterate.gradient @ direction), min(1.0, LONGER * iterate.length)
        if not slope < 0:
            return None
        for _ in range(TRIALS):
            state = problem.objective.evaluate(iterate.state.theta + length * direction)
            seen = self._seen(problem, iterate, state, -slope)
            if seen.value <= iterate.value + SUFFICIENT * length * slope:
                return replace(self._at(problem, iterate, seen), length=length)
            if seen.value <= iterate.value + FLAT * abs(iterate.value):
                # Rounding hides the decrease; the directional derivative does not.
                moved = self._at(problem, iterate, seen)
                if float(moved.gradient @ direction) <= (2 * SUFFICIENT - 1) * slope:
                    return moved
            # Else their memory would be held beside that of the next trial.
            value = seen.value
            del state, seen
            rise = value - iterate.value - slope * length
            best = -0.5 * slope * length**2 / rise if np.isfinite(rise) else 0.0
            length = float(np.clip(best, 0.1 * length, 0.5 * length))
        return None

    def _seen(
        self,
        problem: Problem,
        iterate: MultiplierIterate,
        state: Evaluation,
        decrease: float = np.inf,
    ) -> Seen:
        """The smooth objective and its masses, where risks are to be equal at other intercepts."""
        if not np.all(np.isfinite(state.risks)):
            return Seen(state, np.inf, iterate.anchor)
        if iterate.level:
            leveled = iterate.leveling.at(problem, state)
            if leveled is None:
                return Seen(state, np.inf, iterate.anchor)
            state, mass = leveled
            return Seen(state, problem.value(state), mass)
        if iterate.balance:
            gap = min(sum(iterate.gaps), abs(problem.value(state)))
            accuracy, around = LOOSE * min(decrease, gap), (iterate.anchor, iterate.mu)
            state, masses = balanced(problem, state, *around, iterate.floor, accuracy)
            return Seen(state, problem.lagrangian(state, masses.mass) - masses.cost, masses.mass)
        if iterate.mu == 0:
            return Seen(state, problem.lagrangian(state, iterate.anchor), iterate.anchor)
        mass = problem.masses.project(iterate.anchor + iterate.mu * state.risks)
        moved = mass - iterate.anchor
        smoothed = float(moved @ moved) / (2 * iterate.mu)
        return Seen(state, problem.lagrangian(state, mass) - smoothed, mass)

    def _at(self, problem: Problem, iterate: MultiplierIterate, seen: Seen) -> MultiplierIterate:
        """The iterate at a point, from the one before it."""
        state, value, mass = seen
        step = norm(state.theta - iterate.state.theta)
        length = step / max(1e-300, norm(state.theta)) if step > 0 else np.inf
        gradient = problem.gradient(state, mass)
        moved = replace(
            iterate, state=state, mass=mass, gradient=gradient, value=value, step=length
        )
        gaps = _gaps(problem, moved)
        return replace(moved, gaps=gaps, decrease=sum(gaps))

    def _next_round(self, problem: Problem, iterate: MultiplierIterate) -> MultiplierIterate:
        if iterate.tries >= TRIES and can_balance(problem):
            iterate = replace(iterate, balance=True)
        (masses, _), mu = iterate.gaps, iterate.mu
        if iterate.balance:
            mu = BALANCED / max(FLOOR, problem.value(iterate.state))
        elif mu == 0:
            mu = self._first_mu(problem, iterate)
        elif masses > max(0.25 * iterate.last_gap, FLAT * abs(iterate.value)):
            mu *= GROWTH
        share, least, most = FLOORS
        # Kept for the whole round: the smooth objective must not change below a step.
        floor = share * sum(iterate.gaps) / max(FLOOR, problem.value(iterate.state))
        floor = min(max(floor, least), most)
        fresh = replace(iterate, anchor=iterate.mass, mu=mu, floor=floor, last_gap=masses)
        seen = self._seen(problem, fresh, iterate.state)
        return replace(self._at(problem, fresh, seen), stuck=iterate.stuck)

    def _first_mu(self, problem: Problem, iterate: MultiplierIterate) -> float:
        spread = max(float(np.std(iterate.state.risks)), 1e-300)
        return 1 / (problem.masses.n_classes * spread)


def may_be_equal(problem: Problem) -> bool:
    """Whether all risks are equal under masses of the set where there are no features."""
    box, k = problem.masses.box, problem.masses.n_classes
    if box is None or not can_balance(problem):
        return False
    return bool(box[0].max() < 1 / k < box[1].min())


def _precondition(problem: Problem, iterate: MultiplierIterate) -> None:
    """Put the Hessian's diagonal below the pairs, after 0, 1, 3, 7, ... steps.

    Classes of a power law have curvatures as different as their masses, along every column.
    """
    objective, steps = problem.objective, iterate.steps
    if not (problem.masses.is_point or iterate.level or iterate.balance):
        return
    if steps & (steps + 1) == 0 and isinstance(objective, Diagonals):
        diagonal = objective.hessian_diagonal(iterate.state, iterate.mass)
        if diagonal is not None:
            iterate.curvature.rebase(DiagonalInverse(diagonal, problem.ridges))


def _gaps(problem: Problem, iterate: MultiplierIterate) -> tuple[float, float]:
    """The gap due to the masses, and the gap due to the gradient."""
    state, gradient = iterate.state, iterate.gradient
    value = problem.lagrangian(state, iterate.mass)
    bound = problem.bound(state, iterate.mass, gradient)
    if not problem.has_bounds and iterate.curvature.n_pairs:
        # No bound: the gain of the step that the memory would take.
        bound = value - 0.5 * float(gradient @ iterate.curvature.apply(gradient))
    return problem.value(state) - value, value - bound
