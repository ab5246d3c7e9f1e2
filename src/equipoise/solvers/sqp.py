r"""Sequential quadratic programming for the minimax problem.

Linearise the class risks, keep the curvature :math:`B` of the Lagrangian, and the step is a tiny
concave quadratic programme in the masses:

.. math:: m^+ = \arg\max_{m \in M} \; \langle m, R \rangle
          - \tfrac12 (G^\top m + \rho w)^\top B^{-1} (G^\top m + \rho w), \qquad
          \theta^+ = \theta - B^{-1} (G^\top m^+ + \rho w).

With exact curvature this converges quadratically; with the last few gradients it is to the robust
problem what L-BFGS is to the plain one. Where curvature comes from, and what is tried when a step
fails, is a strategy: :class:`~equipoise.solvers.sqp_memory.StepMemory` or
:class:`~equipoise.solvers.sqp_newton.NewtonSteps`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from equipoise.arrays import Matrix, Vector, norm
from equipoise.objectives import ClassGradients, Evaluation, offered
from equipoise.sets.mass_program import MassProgram, mass_program
from equipoise.solvers.base import Iterate, Solver
from equipoise.solvers.curvature import InverseCurvature
from equipoise.solvers.problem import Problem

# RECENT: objectives of the last iterates, the largest of which a step near the solution may reach:
# full steps raise the largest class risk for a moment there (the Maratos effect; Grippo et al.
# 1986). Without it 58 of 216 fits take other numbers of passes, 5% more in the mean
# (docs/studies/safeguards.txt).
RECENT = 5
# SUFFICIENT: share of the predicted decrease that a step must bring (Armijo's rule).
SUFFICIENT = 1e-4
# HIDDEN: decreases below this share of the objective are rounding of a sum of many losses; the
# gradient still shrinks along such steps. ROUNDED: by what such a step may raise the objective.
HIDDEN, ROUNDED = 1e-12, 1e-13
# TRIALS: lengths of a step; 2^-15 of a step is none. CUTS: of a length to the next, at least and at
# most, between which a parabola says (Nocedal and Wright 2006, section 3.5).
TRIALS, CUTS = 15, (0.1, 0.5)
# MASS_ACCURACY: of the programme in the masses, as a share of the decrease it predicts; LEAST_MASS:
# the same relative to the objective, where rounding ends it.
MASS_ACCURACY, LEAST_MASS = 1e-3, 1e-13
# WHOLE: a step of at least this share of the model's is a whole one.
WHOLE = 0.9
# FAITHFUL: gradients change along a step by at least this share of the model's change where the
# curvature is good: by two thirds where losses are exponentials, which fade by e along a step.
FAITHFUL = 0.3


@dataclass(frozen=True, kw_only=True)
class SqpIterate(Iterate):
    """An iterate with its class gradients and the objectives of the last few.

    ``program`` is the programme in the masses, warm from its last solution; ``record`` is what the
    strategy remembers, ``damping`` what it adds to the curvature.
    """

    class_gradients: Matrix
    recent: tuple[float, ...]
    program: MassProgram
    record: Any
    damping: float = 0.0

    @property
    def objective(self) -> float:
        return self.recent[-1]


class QuadraticModel(NamedTuple):
    """The optimum of the quadratic model: masses, the step, and the decrease it predicts."""

    mass: Vector
    gradient: Vector
    direction: Vector
    decrease: float


class Taken(NamedTuple):
    """Where a step ended."""

    state: Evaluation
    gradients: Matrix


class Attempt(NamedTuple):
    """A model to take a step by; ``taken`` where the strategy has taken it already."""

    iterate: SqpIterate
    model: QuadraticModel
    taken: Taken | None = None


class Misfit(NamedTuple):
    """How a step differs from its model: only a part was taken, or gradients hardly changed."""

    cut: bool
    unfaithful: bool


class StepStrategy(ABC):
    """Where the curvature of a step comes from, and what is tried when it fails."""

    # Share of the objective below which a predicted decrease is near the solution.
    near: float
    # Whether gradients of a whole step are worth forming with its risks: it is likely to be taken.
    eager: bool

    @abstractmethod
    def begin(self, problem: Problem, theta: Vector) -> tuple[InverseCurvature, Any]:
        """What is known of the curvature at the start, and a fresh record."""

    @abstractmethod
    def attempts(self, problem: Problem, iterate: SqpIterate) -> Iterator[Attempt]:
        """Models to try one after the other, until a step by one decreases the objective."""

    @abstractmethod
    def learn(self, attempt: Attempt, moved: SqpIterate, misfit: Misfit) -> SqpIterate:
        """The iterate after a step, with the record of it."""


class MinimaxSqp(Solver[SqpIterate]):
    """Minimax SQP by a strategy."""

    def __init__(self, strategy: StepStrategy) -> None:
        self._strategy = strategy

    def start(self, problem: Problem, theta: Vector, mass: Vector) -> SqpIterate:
        state, gradients = class_oracle(problem).evaluate_with_gradients(theta)
        curvature, record = self._strategy.begin(problem, theta)
        return SqpIterate(
            state,
            mass,
            curvature.combine(mass, gradients) + problem.penalty_gradient(theta),
            class_gradients=gradients,
            recent=(problem.value(state),),
            program=mass_program(problem.masses, mass),
            curvature=curvature,
            record=record,
        )

    def step(self, problem: Problem, iterate: SqpIterate) -> SqpIterate:
        for attempt in self._strategy.attempts(problem, iterate):
            taken = attempt.taken or self._search(problem, attempt)
            if taken is not None:
                return self._moved(problem, attempt, taken)
        mass, gradient, _, decrease = attempt.model
        stuck = replace(attempt.iterate, mass=mass, gradient=gradient, decrease=decrease)
        return replace(stuck, stuck=True)

    def _search(self, problem: Problem, attempt: Attempt) -> Taken | None:
        """Backtrack from the whole step; None where no length decreases the objective."""
        iterate, model = attempt.iterate, attempt.model
        before, oracle = iterate.objective, class_oracle(problem)
        hidden = abs(model.decrease) <= HIDDEN * before
        if not (model.decrease > 0 or hidden):
            return None
        limit = reference(iterate, model, self._strategy.near) + ROUNDED * before * hidden
        length = 1.0
        for _ in range(TRIALS):
            theta, gradients = iterate.state.theta + length * model.direction, None
            if self._strategy.eager and length == 1:
                state, gradients = oracle.evaluate_with_gradients(theta)
            else:
                state = problem.objective.evaluate(theta)
            value = problem.value(state)
            if value <= limit - SUFFICIENT * length * model.decrease:
                if gradients is None:
                    spent = iterate.class_gradients  # no step is taken from there again
                    gradients = oracle.class_gradients(state, spent)
                return Taken(state, gradients)
            # Else its memory would be held beside that of the next trial.
            del state, gradients
            rise = value - before + model.decrease * length
            best = 0.5 * model.decrease * length**2 / rise if np.isfinite(rise) else 0.0
            length = float(np.clip(best, CUTS[0] * length, CUTS[1] * length))
        return None

    def _moved(self, problem: Problem, attempt: Attempt, taken: Taken) -> SqpIterate:
        """The iterate after a step, whose pair the curvature keeps."""
        (iterate, model, _), (state, gradients) = attempt, taken
        gradient = iterate.curvature.combine(model.mass, gradients)
        gradient += problem.penalty_gradient(state.theta)
        step, change = state.theta - iterate.state.theta, gradient - model.gradient
        iterate.curvature.update(step, change)
        size, along = norm(step), -float(step @ model.gradient)
        cut = size < WHOLE * norm(model.direction)
        moved = replace(
            iterate,
            state=state,
            mass=model.mass,
            gradient=gradient,
            decrease=model.decrease,
            step=size / max(1e-300, norm(state.theta)),
            class_gradients=gradients,
            recent=(*iterate.recent, problem.value(state))[-RECENT:],
        )
        misfit = Misfit(cut, cut or float(step @ change) < FAITHFUL * along)
        return self._strategy.learn(attempt, moved, misfit)


def class_oracle(problem: Problem) -> ClassGradients:
    """The objective, which must offer class gradients."""
    oracle: ClassGradients = offered(problem.objective, ClassGradients, user="SQP")
    return oracle


def reference(iterate: SqpIterate, model: QuadraticModel, near: float) -> float:
    """The objective that a step must be below: near the solution the worst of the last few."""
    close = model.decrease < near * iterate.objective
    return max(iterate.recent) if close else iterate.objective


def quadratic_model(
    problem: Problem, iterate: SqpIterate, growths: Vector | float = 0.0
) -> QuadraticModel:
    """The quadratic model at an iterate; class risks may grow by more than their gradients say."""
    G, state, curvature = iterate.class_gradients, iterate.state, iterate.curvature
    penalty_gradient = problem.penalty_gradient(state.theta)
    A, c = curvature.gram(G, penalty_gradient)
    value = problem.value(state)
    # The masses matter as exactly as a part of the progress that is still to be made.
    least = LEAST_MASS * value
    left = max(MASS_ACCURACY * min(value, iterate.decrease), least)
    while True:
        mass = iterate.program.solve(A, state.risks + growths - c, MASS_ACCURACY * left)
        gradient = curvature.combine(mass, G)
        gradient += penalty_gradient
        direction = -curvature.apply(gradient)
        predicted = problem.lagrangian(state, mass) + 0.5 * float(gradient @ direction)
        model = QuadraticModel(mass, gradient, direction, value - predicted)
        if model.decrease >= left or left == least:
            return model
        # A start may be nearer to the solution than its objective says.
        left = max(MASS_ACCURACY * min(left, model.decrease), least)
