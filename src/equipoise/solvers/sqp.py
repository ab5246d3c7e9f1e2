r"""Sequential quadratic programming for the minimax problem.

Linearise the class risks, keep the curvature :math:`B` of the Lagrangian, and the step is a tiny
concave quadratic programme in the masses:

.. math:: m^+ = \arg\max_{m \in M} \; \langle m, R \rangle
          - \tfrac12 (G^\top m + \rho w)^\top B^{-1} (G^\top m + \rho w), \qquad
          \theta^+ = \theta - B^{-1} (G^\top m^+ + \rho w).

With exact curvature this converges quadratically; with the last few gradients it is to the robust
problem what L-BFGS is to the plain one.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from equipoise.arrays import Matrix, Vector, norm, to_numpy, weighted_sum
from equipoise.objectives import ClassGradients, Evaluation, ScoreInverses, offered
from equipoise.objectives.capabilities import Inverse
from equipoise.sets.mass_program import MassProgram, mass_program
from equipoise.solvers.base import Iterate, Solver
from equipoise.solvers.curvature import InverseCurvature, NewtonInverse
from equipoise.solvers.problem import Problem

# A step may rise above the last objective but not above the worst of so many: full steps near the
# solution raise the largest class risk for a moment (the Maratos effect) and must not be refused.
# Far from it a rise is only a bad step, and with Hessians two such steps can take turns for
# hundreds of iterations: only the memory alone, which learns from each, may rise so early.
RECENT = 5
NEAR, NEAR_WITH_HESSIAN = 1e-2, 1e-4
SUFFICIENT = 1e-4
# A decrease below this share of the objective is hidden by rounding; the gradient still shrinks.
HIDDEN = 1e-12
TRIALS = 15
# Pairs of steps and gradient changes that are kept; fewer where each costs as much as a pass.
MEMORY, FEWER = 10, 5
WIDE = 1 << 18
# What a fresh Hessian costs in evaluations, by the number of parameters; and how much one step with
# it shrinks the promised decrease.
PARAMETERS_PER_EVALUATION = 30
FRESH_CONTRACTION = 0.05
# Along a step slopes change by at least this part of what good curvature says: where losses are
# exponentials, which fade by a factor of e along a whole step, by two thirds.
FAITHFUL = 0.3
# After so many steps in a row that curvature foretold badly, that of a sample is not to be trusted;
# nor is it, where it is all there is at hand, after so many Hessians in a row whose first step was
# such a one. And after so many steps, whole ones are damped and corrected rather than cut, as many
# times.
ASTRAY, DOUBTED, LOST = 4, 2, 30
# Damping, where it is needed, begins with the first of these and ends with the second. Features are
# scaled: their curvature, where a loss has any, is about one.
SLIGHT, STRONG = 1e-7, 1e2
DAMPING_STEP, GENTLE_STEP = 10.0, 4.0
# A correction is not much longer than the step that it corrects.
CORRECTED = 2.0

# Which Hessians are those of a sample of the rows.
Sampled = Literal["first", "far", "always"]


@dataclass(frozen=True, kw_only=True)
class SqpIterate(Iterate):
    """An iterate with the values at the last few points, and what was learnt.

    ``program``, started from where the last one ended, is handed on: steps are taken from the last
    iterate alone.
    """

    class_gradients: Matrix
    recent: tuple[float, ...]
    program: MassProgram
    age: int = 0  # steps since the last Hessian; below zero before the first
    cut: bool = False  # whether only a part of the last step was taken
    misled: int = 0  # steps in a row that were cut, or along which slopes changed far too little
    precise: bool = False  # whether Hessians must be formed in double precision
    damping: float = 0.0  # curvature added along every parameter, where a loss may have none
    sampled: bool = False  # whether the last Hessian is that of a sample
    doubt: int = 0  # how many of these in a row foretold their first step badly
    wait: int = 1  # steps before the next Hessian

    @property
    def has_aged(self) -> bool:
        """Whether steps have been taken, or learnt from, since the last Hessian."""
        return self.age > 0 or self.curvature.n_pairs > 0


class QuadraticModel(NamedTuple):
    """The optimum of the quadratic model: masses, the step, and the decrease it promises."""

    mass: Vector
    gradient: Vector
    direction: Vector
    decrease: float


class MinimaxSqp(Solver[SqpIterate]):
    """Minimax SQP with Hessians (``newton``) or with the memory of past steps alone.

    The first Hessian is that of a ``sample``, the problem on fewer rows, and those that follow are
    ``sampled`` as long as it is ``"far"`` to the solution, or ``"always"``; they are exact
    otherwise, and once the sample has been of no use. A few pairs of steps and gradient changes are
    kept on top; ``tol``, the relative accuracy that will be asked for, decides when a new Hessian
    pays.
    """

    def __init__(
        self,
        *,
        newton: bool,
        tol: float,
        sample: Problem | None = None,
        sampled: Sampled = "first",
    ) -> None:
        self._newton, self._tol, self._sample = newton, tol, sample
        self._far = sample is not None and sampled == "far"
        self._always = sample is not None and sampled == "always"

    def start(self, problem: Problem, theta: Vector, mass: Vector) -> SqpIterate:
        state, gradients = _oracle(problem).evaluate_with_gradients(theta)
        memory = MEMORY if self._newton or len(theta) < WIDE else FEWER
        # The first Hessian waits for the first step, and costs nothing where it need not: the start
        # is known, and timed, without it.
        return SqpIterate(
            state,
            mass,
            weighted_sum(mass, gradients) + problem.pull(theta),
            class_gradients=gradients,
            recent=(problem.value(state),),
            program=mass_program(problem.masses, mass),
            curvature=InverseCurvature(None, theta, memory, problem.objective.share),
            age=-1 if self._newton else 0,
        )

    def _hessian(
        self, problem: Problem, iterate: SqpIterate, mass: Vector, *, sampled: bool
    ) -> NewtonInverse:
        """The inverse Hessian at an iterate, of the sample where there is one and it may be."""
        settings: dict[str, Any] = {"precise": iterate.precise, "damping": iterate.damping}
        if sampled and self._sample is not None:
            problem = self._sample
        return NewtonInverse(problem, iterate.state.theta, mass, **settings)

    def step(self, problem: Problem, iterate: SqpIterate) -> SqpIterate:
        flat = self._newton and problem.objective.flat
        if iterate.age < 0:
            base = self._hessian(problem, iterate, iterate.mass, sampled=True)
            curvature = InverseCurvature(base, iterate.state.theta, MEMORY)
            sampled = self._sample is not None
            iterate = replace(iterate, curvature=curvature, sampled=sampled, age=0)
        if not self._newton and iterate.age & (iterate.age + 1) == 0:  # after 0, 1, 3, 7, ... steps
            inverse = _score_inverse(problem, iterate)
            if inverse is not None:
                iterate.curvature.clear(inverse)
        model = _model(problem, iterate)
        if self._newton and iterate.age > 0 and self._pays(problem, iterate, model):
            iterate = self._with_another(problem, iterate, model)
            model = _model(problem, iterate)
        if self._newton and not (self._always or flat) and iterate.misled >= LOST:
            careful = self._carefully(problem, iterate)
            if careful is not None:
                return careful
            iterate = self._renewed(problem, replace(iterate, damping=0.0), model.mass)
            model = _model(problem, iterate)
        iterate, model = self._damped(problem, iterate, model)
        found = self._search(problem, iterate, model)
        while found is None and (iterate.has_aged or iterate.curvature.single):
            # Rows that are all but certain have less curvature than single precision can hold.
            precise = iterate.precise or not iterate.has_aged
            iterate = self._renewed(problem, replace(iterate, precise=precise), model.mass)
            iterate, model = self._damped(problem, iterate, _model(problem, iterate))
            found = self._search(problem, iterate, model)
        while found is None and flat and iterate.damping < STRONG:
            iterate, model = _more_damped(problem, iterate)
            found = self._search(problem, iterate, model)
        if found is None:
            mass, gradient, _, decrease = model
            return replace(iterate, mass=mass, gradient=gradient, decrease=decrease, stuck=True)
        return _moved(problem, iterate, model, *found)

    def _is_sampled(self, iterate: SqpIterate, model: QuadraticModel) -> bool:
        """Whether the next Hessian is that of the sample."""
        if self._always:
            return iterate.doubt < DOUBTED
        far = model.decrease > NEAR_WITH_HESSIAN * iterate.recent[-1]
        return self._far and far and iterate.misled < ASTRAY

    def _with_another(
        self, problem: Problem, iterate: SqpIterate, model: QuadraticModel
    ) -> SqpIterate:
        """The iterate with another Hessian.

        Where rows are not at hand, and the last was of no use, the next waits for twice as many
        steps, though not for more than it costs itself.
        """
        sampled, wait = self._is_sampled(iterate, model), iterate.wait
        if sampled != iterate.sampled:
            wait = 1
        elif self._always and iterate.age == wait and iterate.misled:
            wait = 2 * wait if sampled or 2 * wait <= _price(model) else wait
        return self._renewed(problem, replace(iterate, wait=wait), model.mass, sampled=sampled)

    def _pays(self, problem: Problem, iterate: SqpIterate, model: QuadraticModel) -> bool:
        """Whether a new Hessian costs less than the steps that it is likely to save.

        Where rows of a rare column are all certain, a Hessian knows nothing of where they begin to
        matter, and whole steps are cut. So near the solution the next one knows no more: what the
        short step taught must not be given up for it. Nor must it for another Hessian where all are
        of little use: between these ever more steps are learnt from.
        """
        if iterate.age < iterate.wait:
            return False
        near = model.decrease < NEAR_WITH_HESSIAN * iterate.recent[-1]
        if model.decrease <= 0 or (near and iterate.age == 1 and iterate.cut):
            return False
        if model.decrease >= iterate.decrease:
            return True
        contraction = model.decrease / iterate.decrease
        left = np.log(max(model.decrease / (0.1 * self._tol * iterate.recent[-1]), 1.0))
        if left == 0:
            return False
        price = _price(model)
        if self._sample is not None and self._is_sampled(iterate, model):
            price *= self._sample.objective.n_rows / problem.objective.n_rows
        return bool(left / -np.log(contraction) > price + left / -np.log(FRESH_CONTRACTION))

    def _damped(
        self, problem: Problem, iterate: SqpIterate, model: QuadraticModel
    ) -> tuple[SqpIterate, QuadraticModel]:
        """Damp until the model promises no more than there is: risks are not negative."""
        if not (self._newton and problem.objective.flat):
            return iterate, model
        while model.decrease > iterate.recent[-1] and iterate.damping < STRONG:
            iterate, model = _more_damped(problem, iterate)
        return iterate, model

    def _renewed(
        self, problem: Problem, iterate: SqpIterate, mass: Vector, *, sampled: bool = False
    ) -> SqpIterate:
        """The iterate with a fresh Hessian, or with nothing learnt yet."""
        base = None
        if self._newton:
            base = self._hessian(problem, iterate, mass, sampled=sampled)
        iterate.curvature.clear(base)
        return replace(iterate, sampled=sampled, age=0)

    def _carefully(self, problem: Problem, iterate: SqpIterate) -> SqpIterate | None:
        """A whole step, damped as much as it takes; None where none decreases the objective.

        Along what only classes without mass can tell, the Lagrangian has next to no curvature:
        whole steps are far too long, and what is left of them once they are cut is next to nothing
        in all other parameters, for hundreds of steps. Damping shortens them along these alone.
        Neither way is the better one for all problems, so they take turns.
        """
        iterate = self._renewed(problem, iterate, iterate.mass)
        while iterate.damping < STRONG:
            model = _model(problem, iterate)
            found = _whole(problem, iterate, model)
            if found is not None:
                moved = _moved(problem, iterate, *found)
                damping = iterate.damping / GENTLE_STEP if iterate.damping > SLIGHT else 0.0
                misled = iterate.misled + 1
                if misled == 2 * LOST:
                    damping, misled = 0.0, 0
                return replace(moved, damping=damping, misled=misled)
            damping = max(SLIGHT, GENTLE_STEP * iterate.damping)
            iterate.curvature.damp(damping)
            iterate = replace(iterate, damping=damping)
        return None

    def _search(
        self, problem: Problem, iterate: SqpIterate, model: QuadraticModel
    ) -> tuple[Evaluation, Matrix] | None:
        """Backtrack from the full step; None where no step decreases the objective."""
        before, length = iterate.recent[-1], 1.0
        hidden = abs(model.decrease) <= HIDDEN * before
        if not (model.decrease > 0 or hidden):
            return None
        near = NEAR_WITH_HESSIAN if self._newton else NEAR
        reference = max(iterate.recent) if model.decrease < near * before else before
        reference += 0.1 * HIDDEN * before if hidden else 0.0
        for _ in range(TRIALS):
            theta = iterate.state.theta + length * model.direction
            gradients = None
            if self._newton and length == 1:  # likely to be taken, and its gradients are small
                state, gradients = _oracle(problem).evaluate_with_gradients(theta)
            else:
                state = problem.objective.evaluate(theta)
            value = problem.value(state)
            if value <= reference - SUFFICIENT * length * model.decrease:
                if gradients is None:
                    spent = iterate.class_gradients  # no step is taken from there again
                    gradients = _oracle(problem).class_gradients(state, spent)
                return state, gradients
            # What this trial keeps would stay in memory beside that of the next.
            del state, gradients
            rise = value - before + model.decrease * length
            best = 0.5 * model.decrease * length**2 / rise if np.isfinite(rise) else 0.0
            length = float(np.clip(best, 0.1 * length, 0.5 * length))
        return None


def _score_inverse(problem: Problem, iterate: SqpIterate) -> Inverse | None:
    objective = problem.objective
    if not isinstance(objective, ScoreInverses):
        return None
    return objective.score_inverse(iterate.state, iterate.mass, problem.ridges)


def _oracle(problem: Problem) -> ClassGradients:
    oracle: ClassGradients = offered(problem.objective, ClassGradients, user="SQP")
    return oracle


def _whole(
    problem: Problem, iterate: SqpIterate, model: QuadraticModel
) -> tuple[QuadraticModel, Evaluation, Matrix] | None:
    """The whole step if it decreases the objective, or else the same corrected once.

    The correction takes class risks as they are at the end of the step, where those without mass
    have bent upwards, of which the model knows nothing.
    """
    before = iterate.recent[-1]
    if not model.decrease > HIDDEN * before:
        return None
    reference = max(iterate.recent) if model.decrease < NEAR_WITH_HESSIAN * before else before
    enough = reference - SUFFICIENT * model.decrease
    start = iterate.state.theta
    state, gradients = _oracle(problem).evaluate_with_gradients(start + model.direction)
    if problem.value(state) > enough and np.all(np.isfinite(state.risks)):
        own = model.direction
        growths = state.risks - to_numpy(iterate.class_gradients @ own) - iterate.state.risks
        model = _model(problem, iterate, growths)._replace(decrease=model.decrease)
        if not norm(model.direction) <= CORRECTED * norm(own):
            return None
        state, gradients = _oracle(problem).evaluate_with_gradients(start + model.direction)
    return (model, state, gradients) if problem.value(state) <= enough else None


def _price(model: QuadraticModel) -> float:
    """What a Hessian costs in evaluations."""
    return len(model.direction) / PARAMETERS_PER_EVALUATION


def _more_damped(problem: Problem, iterate: SqpIterate) -> tuple[SqpIterate, QuadraticModel]:
    """The iterate with more damping and without the steps that went before, and its model."""
    damping = max(SLIGHT, DAMPING_STEP * iterate.damping)
    iterate.curvature.damp(damping)
    iterate = replace(iterate, damping=damping)
    return iterate, _model(problem, iterate)


def _model(problem: Problem, iterate: SqpIterate, growths: Vector | float = 0.0) -> QuadraticModel:
    """The quadratic model at an iterate; class risks may grow by more than their slopes say."""
    G, state, curvature = iterate.class_gradients, iterate.state, iterate.curvature
    pull = problem.pull(state.theta)
    A, c = curvature.gram(G, pull)
    value = problem.value(state)
    # The masses matter as exactly as a part of the progress that is still to be made.
    least = 1e-13 * value
    left = max(1e-3 * min(value, iterate.decrease), least)
    while True:
        mass = iterate.program.solve(A, state.risks + growths - c, 1e-3 * left)
        gradient = curvature.combine(mass, G)
        gradient += pull
        direction = -curvature.apply(gradient)
        promised = problem.lagrangian(state, mass) + 0.5 * float(gradient @ direction)
        model = QuadraticModel(mass, gradient, direction, value - promised)
        if model.decrease >= left or left == least:
            return model
        # A start may be nearer to the solution than anything that was known of it.
        left = max(1e-3 * min(left, model.decrease), least)


def _moved(
    problem: Problem,
    iterate: SqpIterate,
    model: QuadraticModel,
    state: Evaluation,
    gradients: Matrix,
) -> SqpIterate:
    """The iterate after a step, which the curvature learns from."""
    gradient = iterate.curvature.combine(model.mass, gradients)
    gradient += problem.pull(state.theta)
    step = state.theta - iterate.state.theta
    size, change = norm(step), gradient - model.gradient
    cut = size < 0.9 * norm(model.direction)
    misled = cut or float(step @ change) < FAITHFUL * -float(step @ model.gradient)
    iterate.curvature.update(step, change)
    doubt = iterate.doubt
    if iterate.sampled and iterate.age == 0:
        doubt = doubt + 1 if misled else 0
    return replace(
        iterate,
        state=state,
        mass=model.mass,
        gradient=gradient,
        decrease=model.decrease,
        step=size / max(1e-300, norm(state.theta)),
        cut=cut,
        misled=iterate.misled + 1 if misled else 0,
        doubt=doubt,
        class_gradients=gradients,
        recent=(*iterate.recent, problem.value(state))[-RECENT:],
        age=iterate.age + 1,
        damping=iterate.damping / DAMPING_STEP if iterate.damping > SLIGHT else 0.0,
    )
