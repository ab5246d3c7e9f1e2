"""Problems that a safeguard of SQP was made for: without it, each fails here.

``benchmarks/safeguards.py`` removes each from many more problems.
"""

import pytest

import hostile_problems
import random_problems


@pytest.mark.parametrize(
    ("number", "solver", "most"),
    [
        # A step may reach the worst of the last objectives: 713 evaluations without.
        pytest.param(36, "sqp-lbfgs", 50, id="the last objectives"),
        # Decreases below rounding are taken for none of them, and gradients still shrink.
        pytest.param(35, "sqp-lbfgs", 11, id="hidden decreases"),
        # Whole steps that are damped and corrected, where cutting leaves nothing of a step: without
        # either it does not converge.
        pytest.param(30, "sqp-newton", 300, id="damped whole steps"),
    ],
)
def test_hostile_problems_are_solved_in_few_passes(number, solver, most):
    problem = hostile_problems.draw(number)
    model = hostile_problems.fit(problem, "memory", solver).model
    assert model.status_ in ("converged", "stationary") and model.n_evaluations_ <= most


def test_models_that_promise_more_than_there_is_are_damped():
    """Hinges far from their corners have no curvature: 282 evaluations without."""
    problem = random_problems.draw(13, penalty=False)
    model, _ = problem.fit("sqp-newton", max_iter=200)
    assert model.objective_ < 1e-9 and model.n_evaluations_ <= 150
