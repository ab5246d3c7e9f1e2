"""Damping of SQP: curvature added along every parameter where a model has too little of its own.

Models of losses without curvature (hinges far from their corners) predict too large a decrease. And
along directions that matter to classes without mass alone, the Lagrangian has next to no curvature:
whole steps are far too long, and cutting a step leaves next to nothing of it in all other
directions.
"""

from dataclasses import replace

import numpy as np

from equipoise.arrays import norm, to_numpy
from equipoise.solvers.problem import Problem
from equipoise.solvers.sqp import (
    HIDDEN,
    SUFFICIENT,
    Attempt,
    QuadraticModel,
    SqpIterate,
    Taken,
    class_oracle,
    quadratic_model,
    reference,
)

# LEAST, MOST: the first damping and the last. Features are scaled: their curvature, where a loss
# has any, is about one.
LEAST, MOST = 1e-7, 1e2
# RAISE: from one damping to the next, and back after a step; RAISE_WHOLE: the same for whole steps.
RAISE, RAISE_WHOLE = 10.0, 4.0
# LONGER: a correction makes a step at most so many times as long: else it is no correction.
LONGER = 2.0


def raised(iterate: SqpIterate, factor: float = RAISE) -> SqpIterate:
    """The iterate with more damping, and without pairs on top of its Hessian."""
    damping = max(LEAST, factor * iterate.damping)
    iterate.curvature.damp(damping)
    return replace(iterate, damping=damping)


def lowered(damping: float, factor: float = RAISE) -> float:
    """The damping after a step that was taken."""
    return damping / factor if damping > LEAST else 0.0


def until_plausible(
    problem: Problem, iterate: SqpIterate, model: QuadraticModel
) -> tuple[SqpIterate, QuadraticModel]:
    """Damp until the predicted decrease is at most the objective: risks are not negative."""
    while model.decrease > iterate.objective and iterate.damping < MOST:
        iterate = raised(iterate)
        model = quadratic_model(problem, iterate)
    return iterate, model


def whole_step(problem: Problem, iterate: SqpIterate, near: float) -> Attempt | None:
    """A whole step, damped as much as it takes; None where none decreases the objective."""
    while iterate.damping < MOST:
        attempt = _corrected(problem, iterate, quadratic_model(problem, iterate), near)
        if attempt is not None:
            return attempt
        iterate = raised(iterate, RAISE_WHOLE)
    return None


def _corrected(
    problem: Problem, iterate: SqpIterate, model: QuadraticModel, near: float
) -> Attempt | None:
    """The whole step if it decreases the objective, or else the same corrected once.

    The correction takes class risks from the end of the step, where those of classes without mass
    have risen: the model has no curvature of theirs (Maratos; Nocedal and Wright 2006, section
    15.5).
    """
    if not model.decrease > HIDDEN * iterate.objective:
        return None
    enough = reference(iterate, model, near) - SUFFICIENT * model.decrease
    start, oracle, step = iterate.state.theta, class_oracle(problem), model.direction
    state, gradients = oracle.evaluate_with_gradients(start + step)
    if problem.value(state) > enough and np.all(np.isfinite(state.risks)):
        growths = state.risks - to_numpy(iterate.class_gradients @ step) - iterate.state.risks
        model = quadratic_model(problem, iterate, growths)._replace(decrease=model.decrease)
        if not norm(model.direction) <= LONGER * norm(step):
            return None
        state, gradients = oracle.evaluate_with_gradients(start + model.direction)
    taken = Taken(state, gradients)
    return Attempt(iterate, model, taken) if problem.value(state) <= enough else None
