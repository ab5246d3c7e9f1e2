"""Steps of SQP by Hessians: when one is formed, of which rows, and what is tried when a step fails.

The first Hessian is that of a sample, the problem on fewer rows, where there is one. A few pairs of
steps and gradient changes are kept on top of each.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from equipoise.arrays import Vector
from equipoise.solvers.curvature import InverseCurvature, NewtonInverse
from equipoise.solvers.damping import (
    MOST,
    RAISE_WHOLE,
    lowered,
    raised,
    until_plausible,
    whole_step,
)
from equipoise.solvers.problem import Problem
from equipoise.solvers.sqp import (
    Attempt,
    Misfit,
    QuadraticModel,
    SqpIterate,
    StepStrategy,
    quadratic_model,
)

# PAIRS: steps and gradient changes that are kept on top of a Hessian. Without them 90 of 216 fits
# take other numbers of passes, 1% more in the mean (docs/studies/safeguards.txt).
PAIRS = 10
# PARAMETERS_PER_EVALUATION: a Hessian costs one evaluation for each so many parameters (products of
# k d numbers a row, at the speed of BLAS; docs/architecture.md).
PARAMETERS_PER_EVALUATION = 30
# FRESH_CONTRACTION: of the predicted decrease by one step with a fresh Hessian.
FRESH_CONTRACTION = 0.05
# RELIABLE: share of the tolerance that the last steps must be below.
RELIABLE = 0.1
# DOUBTED: Hessians of the sample in a row whose first step differs, after which out-of-core rows
# are read for the next. Without it a fit takes 2.9 times as many passes
# (docs/studies/safeguards.txt).
DOUBTED = 2
# LOST: steps in a row that differ from their model, after which whole steps are damped and
# corrected rather than cut, as many times. Without it one fit more of 216 does not converge
# (docs/studies/safeguards.txt).
LOST = 30

# Which Hessians are those of a sample of the rows.
Sampled = Literal["first", "far", "always"]


@dataclass(frozen=True)
class HessianRecord:
    """The last Hessian, and how steps have fared since."""

    age: int = -1  # steps since it was formed; below zero before the first
    sampled: bool = False  # whether it is that of the sample
    cut: bool = False  # whether only a part of the last step was taken
    misled: int = 0  # steps in a row that differ from their model
    doubt: int = 0  # Hessians of the sample in a row whose first step differs


class NewtonSteps(StepStrategy):
    """A new Hessian where it costs less than the steps that it is likely to save.

    The first is that of a ``sample``; those that follow are ``sampled`` as long as it is ``"far"``
    to the solution, or ``"always"``, and exact otherwise. ``tol`` is the relative accuracy of the
    solution.
    """

    # Far from the solution two steps by Hessians can take turns above each other's objective.
    near = 1e-4
    eager = True

    def __init__(
        self, tol: float, sample: Problem | None = None, sampled: Sampled = "first"
    ) -> None:
        self._tol, self._sample = tol, sample
        self._far = sample is not None and sampled == "far"
        self._always = sample is not None and sampled == "always"

    def begin(self, problem: Problem, theta: Vector) -> tuple[InverseCurvature, HessianRecord]:
        # The first Hessian waits for the first step, and costs nothing where it need not.
        return InverseCurvature(None, theta, PAIRS), HessianRecord()

    def attempts(self, problem: Problem, iterate: SqpIterate) -> Iterator[Attempt]:
        if iterate.record.age < 0:
            iterate = self._renewed(
                problem, iterate, iterate.mass, sampled=self._sample is not None
            )
        model = quadratic_model(problem, iterate)
        if self._pays(problem, iterate, model):
            sampled = self._is_sampled(iterate, model)
            iterate = self._renewed(problem, iterate, model.mass, sampled=sampled)
            model = quadratic_model(problem, iterate)
        flat = problem.objective.flat
        if iterate.record.misled >= LOST and not (self._always or flat):
            attempt = whole_step(problem, self._renewed(problem, iterate, iterate.mass), self.near)
            if attempt is not None:
                yield attempt
            iterate = self._renewed(problem, replace(iterate, damping=0.0), model.mass)
            model = quadratic_model(problem, iterate)
        if flat:
            iterate, model = until_plausible(problem, iterate, model)
        yield Attempt(iterate, model)
        if _has_aged(iterate):
            iterate = self._renewed(problem, iterate, model.mass)
            model = quadratic_model(problem, iterate)
            if flat:
                iterate, model = until_plausible(problem, iterate, model)
            yield Attempt(iterate, model)
        # Ten rows of a margin loss may have no curvature at all where a step begins: without this,
        # a check of scikit-learn stalls after one.
        while flat and iterate.damping < MOST:
            iterate = raised(iterate)
            yield Attempt(iterate, quadratic_model(problem, iterate))

    def learn(self, attempt: Attempt, moved: SqpIterate, misfit: Misfit) -> SqpIterate:
        record, damping = attempt.iterate.record, attempt.iterate.damping
        misled, doubt = record.misled + 1 if misfit.unfaithful else 0, record.doubt
        if record.sampled and record.age == 0:
            doubt = doubt + 1 if misfit.unfaithful else 0
        if attempt.taken is None:
            damping = lowered(damping)
        else:
            damping, misled = lowered(damping, RAISE_WHOLE), record.misled + 1
            if misled == 2 * LOST:  # neither way is better for all problems: they take turns
                damping, misled = 0.0, 0
        age = record.age + 1
        record = replace(record, age=age, cut=misfit.cut, misled=misled, doubt=doubt)
        return replace(moved, record=record, damping=damping)

    def _renewed(
        self, problem: Problem, iterate: SqpIterate, mass: Vector, *, sampled: bool = False
    ) -> SqpIterate:
        """The iterate with a fresh Hessian, and nothing learnt on top of it."""
        record, rows = iterate.record, self._sample if sampled and self._sample else problem
        base = NewtonInverse(rows, iterate.state.theta, mass, damping=iterate.damping)
        iterate.curvature.clear(base)
        return replace(iterate, record=replace(record, age=0, sampled=sampled))

    def _is_sampled(self, iterate: SqpIterate, model: QuadraticModel) -> bool:
        """Whether the next Hessian is that of the sample."""
        record: HessianRecord = iterate.record
        if self._always:
            return record.doubt < DOUBTED
        return self._far and model.decrease > self.near * iterate.objective

    def _pays(self, problem: Problem, iterate: SqpIterate, model: QuadraticModel) -> bool:
        """Whether a new Hessian costs less than the steps that it is likely to save.

        Where rows of a rare column are all certain, a Hessian knows nothing of where they begin to
        matter, and whole steps are cut. So near the solution the next one knows no more: what the
        short step taught must not be given up for it.
        """
        record, objective = iterate.record, iterate.objective
        if record.age < 1 or model.decrease <= 0:
            return False
        if record.age == 1 and record.cut and model.decrease < self.near * objective:
            return False
        if model.decrease >= iterate.decrease:
            return True
        left = np.log(max(model.decrease / (RELIABLE * self._tol * objective), 1.0))
        price = _price(model)
        if self._sample is not None and self._is_sampled(iterate, model):
            price *= self._sample.objective.n_rows / problem.objective.n_rows
        contraction = model.decrease / iterate.decrease
        saved: float = left / -np.log(contraction) - left / -np.log(FRESH_CONTRACTION)
        return bool(saved > price)


def _has_aged(iterate: SqpIterate) -> bool:
    """Whether steps have been taken, or learnt from, since the last Hessian."""
    return iterate.record.age > 0 or iterate.curvature.n_pairs > 0


def _price(model: QuadraticModel) -> float:
    """What a Hessian costs in evaluations."""
    return len(model.direction) / PARAMETERS_PER_EVALUATION
