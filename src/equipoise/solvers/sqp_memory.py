"""Steps of SQP by the memory of the last ones alone: no Hessian of all parameters is formed."""

from collections.abc import Iterator
from dataclasses import replace

from equipoise.arrays import Vector
from equipoise.objectives import ScoreInverses
from equipoise.solvers.curvature import InverseCurvature
from equipoise.solvers.problem import Problem
from equipoise.solvers.sqp import Attempt, Misfit, SqpIterate, StepStrategy, quadratic_model

# PAIRS: steps and gradient changes that are kept; FEWER_PAIRS: where a parameter has as many
# numbers as MANY_PARAMETERS, and the products with all pairs cost as much as a pass.
PAIRS, FEWER_PAIRS, MANY_PARAMETERS = 10, 5, 1 << 18


class StepMemory(StepStrategy):
    """Steps and gradient changes, on top of the Hessian's diagonal blocks where these are offered.

    The blocks are formed anew after 0, 1, 3, 7, ... steps. Of 80 classes they halve the number of
    evaluations (tests/test_solvers.py). The record is the number of steps since the start.
    """

    # The largest risk may rise far from the solution: the memory learns from each step.
    near = 1e-2
    eager = False

    def begin(self, problem: Problem, theta: Vector) -> tuple[InverseCurvature, int]:
        pairs = PAIRS if len(theta) < MANY_PARAMETERS else FEWER_PAIRS
        return InverseCurvature(None, theta, pairs, problem.objective.share), 0

    def attempts(self, problem: Problem, iterate: SqpIterate) -> Iterator[Attempt]:
        objective, steps = problem.objective, iterate.record
        if steps & (steps + 1) == 0 and isinstance(objective, ScoreInverses):
            blocks = objective.score_inverse(iterate.state, iterate.mass, problem.ridges)
            if blocks is not None:
                iterate.curvature.clear(blocks)
        yield Attempt(iterate, quadratic_model(problem, iterate))

    def learn(self, attempt: Attempt, moved: SqpIterate, misfit: Misfit) -> SqpIterate:
        return replace(moved, record=attempt.iterate.record + 1)
