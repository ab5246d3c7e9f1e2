"""Every solver in the registry on small problems: CVXPY's optimum, and an honest certificate."""

import warnings
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from equipoise import RobustLogisticRegression
from equipoise.datasets import fetch_covtype
from equipoise.exceptions import InvalidParameterError
from equipoise.objectives import open_objective
from equipoise.sets import FixedWeights, LabelCVaR, PriorBall, WorstClass
from equipoise.solvers import (
    SOLVERS,
    Limits,
    Problem,
    Progress,
    Status,
    choose,
    registry,
    run,
)
from equipoise.solvers.base import Iterate, Solver, solve
from equipoise.solvers.curvature import InverseCurvature
from equipoise.solvers.registry import FEW_PARAMETERS, MANY_NUMBERS, MOST_NUMBERS
from equipoise.solvers.sqp import MinimaxSqp
from equipoise.solvers.sqp_newton import NewtonSteps
from linear_models import optimum, small_data
from set_examples import every_example
from test_covtype import STORED, needs_data
from test_sets_laws import constraints

FAST = [name for name in SOLVERS if name != "descent-ascent"]
# The error that the reference may have itself: CVXPY states supports less well before 1.7.
CVXPY = tuple(int(part) for part in version("cvxpy").split(".")[:2])
REFERENCE = 2e-7 if CVXPY >= (1, 7) else 5e-6

every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_fast_solver = pytest.mark.parametrize("solver", FAST)


class ProblemCase(NamedTuple):
    """A small problem."""

    name: str
    n_classes: int
    ridge: float
    recipe: object
    fit_intercept: bool = True

    @property
    def data(self):
        return small_data(self.n_classes)

    @property
    def prior(self):
        _, labels, weights = self.data
        return np.bincount(labels, weights) / weights.sum()

    def optimum(self):
        return optimum(
            self.data,
            lambda mass: constraints(self.recipe, mass, self.prior),
            self.ridge,
            fit_intercept=self.fit_intercept,
        )

    def solve(self, solver, *, tol=1e-6, max_iter=1000, store=np.asarray, start=None):
        X, labels, weights = self.data
        masses = self.recipe.resolve(self.prior)
        with open_objective(
            store(X),
            labels,
            weights,
            n_classes=self.n_classes,
            fit_intercept=self.fit_intercept,
            ridge=self.ridge,
        ) as objective:
            problem = Problem(objective, masses, self.ridge)
            start = start or (np.zeros(objective.size), masses.project(self.prior))
            return run(problem, solver, start, Limits(tol, max_iter), Progress())


SETS = {
    "standard": FixedWeights("standard"),
    "worst class": WorstClass(),
    "lcvar .5": LabelCVaR(0.5),
    "kl": PriorBall(0.1),
}
PROBLEMS = [
    *(ProblemCase(repr(recipe), 3, 1e-2, recipe) for recipe in every_example()),
    *(
        ProblemCase(f"{name}, {k} classes, ridge {ridge}", k, ridge, SETS[name])
        for name in SETS
        for k, ridge in ((2, 1e-1), (2, 1e-4), (5, 1e-4))
    ),
    ProblemCase("no intercept", 3, 1e-2, SETS["worst class"], fit_intercept=False),
    ProblemCase("no intercept, 2 classes", 2, 1e-2, SETS["lcvar .5"], fit_intercept=False),
]
WITHOUT_PENALTY = [
    ProblemCase(f"{name}, {k} classes", k, 0.0, SETS[name])
    for name in ("standard", "worst class", "lcvar .5")
    for k in (2, 3)
]
ONE = ProblemCase("lcvar .5", 3, 1e-2, SETS["lcvar .5"])


@pytest.mark.parametrize("case", PROBLEMS, ids=lambda case: case.name)
def test_fast_solvers_reach_the_optimum_and_certify_it(case):
    best = case.optimum()
    for solver in FAST:
        found = case.solve(solver)
        assert found.status is Status.CONVERGED, solver
        assert found.gap == found.objective - found.lower_bound
        assert found.gap <= 1e-6 * max(1e-3, found.objective)
        assert found.objective == pytest.approx(best, rel=1e-6 + REFERENCE)
        assert found.objective >= best * (1 - REFERENCE)
        assert found.lower_bound <= best * (1 + REFERENCE)


@pytest.mark.parametrize("case", WITHOUT_PENALTY, ids=lambda case: case.name)
def test_without_a_penalty_optimality_conditions_decide(case):
    best = case.optimum()
    for solver in FAST:
        found = case.solve(solver)
        assert found.status is Status.STATIONARY, solver
        assert found.lower_bound == -np.inf and found.gap == np.inf
        assert found.objective == pytest.approx(best, rel=2e-6)
        assert found.objective >= best * (1 - REFERENCE)


SOME = [*PROBLEMS[:5], *PROBLEMS[len(every_example()) :][:4]]


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.name)
def test_descent_ascent_comes_near_and_stays_honest(case):
    best = case.optimum()
    found = case.solve("descent-ascent", tol=1e-3, max_iter=1500)
    assert found.objective == pytest.approx(best, rel=0.1)
    assert found.objective >= best * (1 - REFERENCE)
    assert found.lower_bound <= best * (1 + REFERENCE)


@every_solver
@pytest.mark.parametrize("max_iter", [1, 2, 4, 7])
def test_out_of_iterations_the_gap_is_still_certified(solver, max_iter):
    for case in (ONE, PROBLEMS[22], PROBLEMS[26]):
        best = case.optimum()
        found = case.solve(solver, tol=1e-12, max_iter=max_iter)
        assert found.n_iter <= max_iter
        assert found.status is Status.MAX_ITER or found.gap <= 1e-12 * found.objective
        assert found.objective >= best * (1 - REFERENCE)
        assert found.lower_bound <= best * (1 + REFERENCE)


@every_solver
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offset", [5.0, 20.0, 100.0])
def test_bounds_hold_from_any_start(solver, n_classes, offset):
    # Far from the solution, where intercepts must be moved a long way to certify anything.
    case = ProblemCase("", n_classes, 1e-2, SETS["worst class"])
    best, rng = case.optimum(), np.random.default_rng(0)
    size = 4 if n_classes == 2 else 12
    start = offset * rng.normal(size=size), np.ones(n_classes) / n_classes
    for max_iter in (1, 3):
        found = case.solve(solver, max_iter=max_iter, start=start)
        assert found.objective >= best * (1 - REFERENCE)
        assert found.lower_bound <= best * (1 + REFERENCE)


@every_solver
def test_a_solve_repeats_itself_bit_for_bit(solver):
    one, other = (ONE.solve(solver, max_iter=50) for _ in range(2))
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_array_equal(one.mass, other.mass)
    assert (one.objective, one.lower_bound) == (other.objective, other.lower_bound)
    assert (one.n_iter, one.n_evaluations) == (other.n_iter, other.n_evaluations)


@every_fast_solver
@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(3000, 40, 4), (9000, 30, 5)])
def test_the_number_of_cores_changes_no_bit(solver, n_rows, n_features, n_classes):
    # Below and above the size from which rows are shared among threads.
    X, labels, weights = small_data(n_classes, n_rows, n_features)
    masses, found = WorstClass().resolve(np.ones(n_classes) / n_classes), []
    for cores in (1, 2):
        with (
            threadpool_limits(cores),
            open_objective(
                X, labels, weights, n_classes=n_classes, fit_intercept=True
            ) as objective,
        ):
            problem, start = Problem(objective, masses, 1e-2), np.zeros(objective.size)
            limits = Limits(1e-6, 5)
            found.append(
                run(problem, solver, (start, masses.project(start[:n_classes])), limits, Progress())
            )
    np.testing.assert_array_equal(found[0].theta, found[1].theta)
    assert found[0].lower_bound == found[1].lower_bound


def test_fits_at_the_same_time_change_no_bit_and_leave_blas_as_it_was():
    X, labels, _ = small_data(5, 9000, 30)
    model = RobustLogisticRegression(WorstClass(), max_iter=3)
    with warnings.catch_warnings(), threadpool_limits(2):
        warnings.simplefilter("ignore", ConvergenceWarning)
        free = threadpool_info()
        alone = clone(model).fit(X, labels).coef_
        fits = (
            delayed(clone(model).fit)(X[: 9000 - cut], labels[: 9000 - cut]) for cut in range(4)
        )
        found = Parallel(4, backend="threading")(fits)
        assert threadpool_info() == free
    np.testing.assert_array_equal(found[0].coef_, alone)


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize(
    ("n_classes", "C", "drawn"), [(30, 1e6, False), (40, 1e8, False), (40, 1e8, True)]
)
def test_many_classes_and_hardly_any_penalty(n_classes, C, drawn):
    # Classes of a few rows that can nearly be separated: masses of any size count.
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(80, 8)), np.arange(80) % n_classes
    if drawn:
        labels[n_classes:] = rng.integers(n_classes, size=80 - n_classes)
    found = RobustLogisticRegression("worst_class", C=C).fit(X, labels)
    assert found.status_ == "converged"


@every_solver
def test_the_solution_describes_one_point(solver):
    X, labels, weights = ONE.data
    masses = ONE.recipe.resolve(ONE.prior)
    found = ONE.solve(solver, max_iter=60)
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        problem = Problem(objective, masses, ONE.ridge)
        state = objective.evaluate(found.theta)
        np.testing.assert_allclose(found.risks, state.risks, rtol=1e-12)
        assert found.objective == pytest.approx(problem.value(state), rel=1e-12)
        coef, _ = objective.unpack(found.theta)
        robust = masses.support(found.risks)
        assert found.objective == pytest.approx(robust + ONE.ridge / 2 * np.sum(coef**2))
    np.testing.assert_allclose(masses.project(found.mass), found.mass, atol=1e-12)
    iterations, evaluations, objectives = (
        [getattr(record, name) for record in found.history]
        for name in ("iteration", "evaluations", "objective")
    )
    assert iterations == list(range(found.n_iter + 1))
    assert evaluations == sorted(evaluations) and evaluations[-1] <= found.n_evaluations
    assert objectives == sorted(objectives, reverse=True) and objectives[-1] == found.objective


@every_fast_solver
def test_sparse_rows_and_a_good_start_lead_to_the_same_optimum(solver):
    cold = ONE.solve(solver)
    sparse = ONE.solve(solver, store=sp.csr_matrix)
    warm = ONE.solve(solver, start=(cold.theta, cold.mass))
    for other in (sparse, warm):
        assert other.status is Status.CONVERGED
        assert other.objective == pytest.approx(cold.objective, rel=1e-6)
    assert warm.n_iter <= 1


@every_fast_solver
def test_masses_certify_the_optimum(solver):
    # At the optimal masses, the plain weighted fit has the same value.
    found = ONE.solve(solver, tol=1e-8)
    plain = optimum(ONE.data, lambda mass: [mass == found.mass], ONE.ridge)
    assert plain == pytest.approx(found.objective, rel=1e-6)


@every_fast_solver
def test_single_precision_data_reach_the_default_tolerance(solver):
    found = ONE.solve(solver, store=lambda X: X.astype(np.float32))
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(ONE.optimum(), rel=2e-6)


@every_fast_solver
def test_offsets_in_single_precision_leave_the_certificate_true(solver):
    X, labels, weights = ONE.data
    offset = np.array([1e4, 0.0, 2e3])
    shifted = (X + offset).astype(np.float32)
    found = ONE.solve(solver, store=lambda X: shifted)
    best = optimum(
        (shifted.astype(np.float64) - offset, labels, weights),
        lambda mass: constraints(ONE.recipe, mass, ONE.prior),
        ONE.ridge,
    )
    assert found.status is Status.CONVERGED
    assert found.lower_bound - REFERENCE <= best <= found.objective + REFERENCE


@pytest.mark.parametrize("solver", ["sqp-newton", "sqp-lbfgs"])
def test_units_of_the_features_do_not_matter_without_a_penalty(solver):
    case = ProblemCase("", 3, 0.0, SETS["worst class"])
    wild = np.array([1e8, 1e-8, 3.0]), np.array([0.0, 1e-7, 1e5])
    found = case.solve(solver, store=lambda X: X * wild[0] + wild[1])
    assert found.status is Status.STATIONARY
    assert found.objective == pytest.approx(case.optimum(), rel=2e-6)


@every_fast_solver
def test_units_of_the_features_do_not_matter_with_a_penalty_either(solver):
    X, labels, weights = ONE.data
    units = np.array([1e6, 1e-6, 1.0])
    found = ONE.solve(solver, store=lambda X: X * units)
    assert found.status is Status.CONVERGED
    # The penalty counts in each feature's own unit: it leaves the first free, forbids the second.
    free = optimum(
        (X[:, [0, 2]] * [1e3, 1], labels, weights),
        lambda mass: constraints(ONE.recipe, mass, ONE.prior),
        ONE.ridge,
    )
    assert found.objective == pytest.approx(free, rel=1e-5)


@pytest.mark.parametrize("unit", [1e-20, 1e-8, 1e8])
def test_newton_steps_do_not_mind_the_unit_of_one_feature(unit):
    # The penalty counts in the feature's own unit: it forbids it, or leaves it free.
    X, labels, weights = ONE.data
    units = np.array([1.0, unit, 1.0])
    found = ONE.solve("sqp-newton", store=lambda X: X * units)
    assert found.status is Status.CONVERGED
    if unit < 1:
        fewer = X[:, [0, 2]], labels, weights
        best = optimum(fewer, lambda mass: constraints(ONE.recipe, mass, ONE.prior), ONE.ridge)
        assert found.objective == pytest.approx(best, rel=2e-6)


@every_fast_solver
@pytest.mark.parametrize("winner", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_that_counts_alone_costs_nothing(solver, winner, n_classes):
    only = FixedWeights({name: float(name == winner) for name in range(n_classes)})
    case = ProblemCase("", n_classes, 1e-2, only)
    found = case.solve(solver)
    assert found.objective <= 1e-6
    assert found.lower_bound <= 1e-15
    np.testing.assert_array_equal(found.mass, np.eye(n_classes)[winner])


@every_fast_solver
def test_features_that_say_nothing(solver):
    case = ProblemCase("", 3, 1e-2, SETS["worst class"])
    for fit_intercept in (True, False):
        found = case._replace(fit_intercept=fit_intercept).solve(solver, store=np.zeros_like)
        assert found.status is Status.CONVERGED
        assert found.objective == pytest.approx(np.log(3), rel=1e-6)


@every_fast_solver
def test_separable_data_with_a_penalty(solver):
    X, labels, weights = small_data(2)
    far = X + 8 * (2 * labels[:, None] - 1)
    case = ProblemCase("", 2, 1e-6, SETS["worst class"])
    found = case.solve(solver, store=lambda X: far)
    best = optimum((far, labels, weights), lambda mass: [], 1e-6)
    assert found.status is Status.CONVERGED
    assert best - 1e-8 <= found.objective <= best + 1e-8


TIGHT = ["lcvar .5, 5 classes, ridge 0.0001", "no intercept", "PriorBall(radius=0.02)"]


@every_fast_solver
@pytest.mark.parametrize("name", TIGHT)
def test_rounding_does_not_hide_the_way_to_a_tight_tolerance(solver, name):
    case = next(case for case in PROBLEMS if case.name == name)
    found = case.solve(solver, tol=1e-11)
    assert found.status is Status.CONVERGED
    assert found.n_evaluations < 300


@pytest.mark.parametrize("solver", ["sqp-newton", "sqp-lbfgs"])
def test_a_tolerance_below_rounding_ends_without_a_warning(solver):
    found = ONE.solve(solver, tol=1e-17, max_iter=40)
    # Only a gap that rounds to nothing is that small.
    assert found.status.converged == (found.gap <= 1e-17 * found.objective)
    assert found.objective == pytest.approx(ONE.optimum(), rel=REFERENCE)
    assert abs(found.gap) <= 1e-13


@every_solver
def test_without_a_bound_the_masses_are_the_last_ones(solver):
    case = ProblemCase("", 3, 0.0, SETS["worst class"])
    found = case.solve(solver, tol=1e-15, max_iter=10 if solver == "multipliers" else 3)
    assert found.status is Status.MAX_ITER and found.lower_bound == -np.inf
    assert np.abs(found.mass - case.prior).max() > 1e-3


class Stumbling:
    """Another objective, with risks that are no numbers at some of its evaluations."""

    def __init__(self, objective, falls, broken):
        self._objective, self._falls, self._broken = objective, falls, broken
        self.n_evaluations = 0

    def __getattr__(self, name):
        return getattr(self._objective, name)

    def evaluate(self, theta):
        self.n_evaluations += 1
        state = self._objective.evaluate(theta)
        if self.n_evaluations not in self._falls:
            return state
        return replace(state, risks=np.full(self.n_classes, self._broken))

    def evaluate_with_gradients(self, theta):
        state = self.evaluate(theta)
        return state, self.class_gradients(state)


@every_fast_solver
@pytest.mark.parametrize("broken", [np.nan, np.inf])
@pytest.mark.parametrize("falls", [{2}, {2, 3, 4}, {3, 5, 6}])
def test_trial_points_that_overflow_are_taken_back(solver, broken, falls):
    X, labels, weights = ONE.data
    masses, best = ONE.recipe.resolve(ONE.prior), ONE.solve(solver)
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        problem = Problem(Stumbling(objective, falls, broken), masses, ONE.ridge)
        start = np.zeros(objective.size), ONE.prior
        found = run(problem, solver, start, Limits(1e-6, 1000), Progress())
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(best.objective, rel=2e-6)
    assert found.n_evaluations > max(falls)


class Leap(Solver):
    """One step to a given point with given masses."""

    def __init__(self, theta, mass):
        self._goal = theta, mass

    def start(self, problem, theta, mass):
        state = problem.objective.evaluate(theta)
        known = InverseCurvature(None, theta, 1)
        return Iterate(state, mass, problem.gradient(state, mass), known)

    def step(self, problem, iterate):
        return self.start(problem, *self._goal)


def test_the_tolerance_is_that_of_the_objective_that_is_returned():
    X, labels, weights = ONE.data
    masses, near = ONE.recipe.resolve(ONE.prior), ONE.solve("sqp-newton", max_iter=3)
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        problem = Problem(objective, masses, ONE.ridge)
        start, goal = (np.zeros(objective.size), ONE.prior), (near.theta, near.mass)
        before = problem.value(objective.evaluate(start[0]))
        gap = near.objective - problem.certify(objective.evaluate(near.theta), near.mass)
        # Enough for the objective before the step, not for that after it.
        limits = Limits(2 * gap / (before + near.objective), 1)
        found = solve(problem, Leap(*goal), start, limits, Progress())
    assert found.gap > limits.target(found.objective)
    assert found.status is Status.MAX_ITER


class OffCenter(Stumbling):
    """Another objective, whose intercepts stay where they are."""

    def center(self, state, mass, left=0.0):
        return state


def test_there_is_no_bound_where_the_intercepts_are_not_found():
    X, labels, weights = ONE.data
    masses, mass = ONE.recipe.resolve(ONE.prior), ONE.prior
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        state = objective.evaluate(np.zeros(objective.size))
        assert Problem(objective, masses, 1e-2).certify(state, mass) > -np.inf
        assert Problem(OffCenter(objective, (), 0), masses, 1e-2).certify(state, mass) == -np.inf


def test_a_bound_pays_for_intercepts_that_are_not_quite_found():
    # By symmetry the best intercept is zero, and the slopes of coefficients hardly see another.
    X, labels, mass = np.array([[-1.0], [1.0]]), np.array([0, 1]), np.ones(2) / 2
    with open_objective(X, labels, np.ones(2), n_classes=2, fit_intercept=True) as objective:
        w, ridge = 20.0, 1 / (1 + np.exp(20.0)) / 20
        problem = Problem(OffCenter(objective, (), 0), WorstClass().resolve(mass), ridge)
        best = problem.lagrangian(objective.evaluate(np.array([w, 0.0])), mass)
        state = objective.evaluate(np.array([w, 0.05]))
        assert np.abs(problem.gradient(state, mass)).max() < 1e-8
        assert 0.99 * best < problem.certify(state, mass) <= best * (1 + 1e-14)


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_the_objective_is_infinite_where_a_risk_is_no_number(broken):
    X, labels, weights = ONE.data
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        problem = Problem(objective, WorstClass().resolve(ONE.prior), 1.0)
        state = objective.evaluate(np.zeros(objective.size))
        assert np.isfinite(problem.value(state))
        assert problem.value(replace(state, risks=np.array([0.1, broken, 0.2]))) == np.inf


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_point_too_far_out_is_infinitely_bad_without_a_warning(n_classes, dtype):
    X, labels, weights = small_data(n_classes)
    with open_objective(
        X.astype(dtype), labels, weights, n_classes=n_classes, fit_intercept=True
    ) as objective:
        problem = Problem(objective, WorstClass().resolve(np.ones(n_classes) / n_classes), 0.0)
        theta = np.finfo(np.float64).max * np.where(np.arange(objective.size) % 2, 1, -1)
        assert problem.value(objective.evaluate(theta)) == np.inf


class Sized(NamedTuple):
    """Nothing but sizes."""

    n_rows: int
    size: int


@pytest.mark.parametrize(
    ("n_classes", "n_rows", "size", "names"),
    [
        (3, 100, FEW_PARAMETERS, ["sqp-newton"]),
        (3, 10**7, 12, ["sqp-newton"]),
        (3, 10**5, FEW_PARAMETERS + 1, ["sqp-lbfgs", "multipliers"]),
        (100, 10**5, MANY_NUMBERS // 100 + 1, ["sqp-lbfgs", "multipliers"]),
        (100, 10**5, MOST_NUMBERS // 100 + 1, ["multipliers"]),
        (1500, 8000, 1500 * 17, ["sqp-lbfgs", "multipliers"]),
    ],
)
def test_the_size_of_the_problem_chooses_the_solvers(n_classes, n_rows, size, names):
    masses = WorstClass().resolve(np.ones(n_classes) / n_classes)
    assert choose(Problem(Sized(n_rows, size), masses, 1.0)) == tuple(names)


@pytest.mark.parametrize("solver", ["auto", "sqp-newton", "sqp-lbfgs"])
def test_what_a_solver_requires_and_an_objective_lacks_is_named(solver):
    masses = WorstClass().resolve(np.ones(3) / 3)
    problem, start = Problem(Sized(100, 12), masses, 1.0), (np.zeros(12), np.ones(3) / 3)
    missing = r"ClassGradients \(class_gradients, evaluate_with_gradients\) of the objective"
    name = "sqp-newton" if solver == "auto" else solver
    with pytest.raises(InvalidParameterError, match=f"solver='{name}' requires {missing}.* Sized"):
        run(problem, solver, start, Limits(1e-6, 10), Progress())


@pytest.mark.parametrize("recipe", [FixedWeights("standard"), FixedWeights("balanced")])
def test_a_single_weighting_needs_no_gradient_of_every_class(recipe):
    masses = recipe.resolve(np.arange(1, 101) / 5050)
    names = choose(Problem(Sized(10**4, FEW_PARAMETERS + 1), masses, 1.0))
    assert names == ("multipliers", "sqp-lbfgs")


@pytest.mark.parametrize("max_iter", [1, 16])
def test_a_solver_that_fails_is_followed_by_the_next(monkeypatch, max_iter):
    monkeypatch.setattr(registry, "choose", lambda _: ("multipliers", "sqp-newton"))
    case = ProblemCase("worst class", 5, 1e-4, SETS["worst class"])
    alone, both = (case.solve(name, max_iter=max_iter) for name in ("multipliers", "auto"))
    assert alone.status is Status.MAX_ITER and alone.failed == ()
    assert both.n_iter <= max_iter and both.objective >= both.lower_bound
    assert len(both.history) == both.n_iter + 1
    assert [line.iteration for line in both.history] == list(range(both.n_iter + 1))
    if max_iter == 1:
        assert both.failed == () and both.message == Status.MAX_ITER.value
    else:
        assert both.status is Status.CONVERGED
        assert both.failed == (("multipliers", Status.MAX_ITER),)
        assert both.message.endswith(f"'multipliers' had failed before: {Status.MAX_ITER.value}")


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
def test_long_tailed_classes_converge():
    rng = np.random.default_rng(0)
    shares = rng.pareto(1.0, 200)
    labels = np.append(np.arange(200), rng.choice(200, 2800, p=shares / shares.sum()))
    X = rng.normal(size=(200, 20))[labels] + rng.normal(size=(3000, 20))
    assert RobustLogisticRegression("worst_class").fit(X, labels).status_ == "converged"


def test_auto_is_the_choice():
    chosen, auto = ONE.solve("sqp-newton"), ONE.solve("auto")
    np.testing.assert_array_equal(chosen.theta, auto.theta)


@pytest.mark.parametrize("name", ["newton", "", None, 3])
def test_an_unknown_name_is_refused_with_the_choices(name):
    with pytest.raises(InvalidParameterError) as error:
        ONE.solve(name)
    for known in ("auto", *SOLVERS):
        assert repr(known) in str(error.value)
    assert f"got {name!r}" in str(error.value)


def test_a_cold_start_on_many_rows_is_warmed_on_few():
    X, labels, weights = small_data(3, n_rows=12_000)
    masses = LabelCVaR(0.5).resolve(np.ones(3) / 3)
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        problem = Problem(objective, masses, 1e-3)
        start = np.zeros(objective.size), np.ones(3) / 3
        warm = run(problem, "sqp-newton", start, Limits(1e-6, 100), Progress())
        used, objective.n_evaluations = objective.n_evaluations, 0
        cold = run(problem, "sqp-newton", start, Limits(1e-6, 100), Progress(), cold=False)
        assert used == warm.n_evaluations <= objective.n_evaluations
    for found in (warm, cold):
        assert found.status is Status.CONVERGED
    assert warm.objective == pytest.approx(cold.objective, rel=1e-6)


@needs_data
@pytest.mark.parametrize("seed", range(4, 8))
def test_columns_that_are_rare_in_a_sample_do_not_lead_astray(seed):
    covtype = fetch_covtype(STORED)
    # Of Covertype's 44 indicator columns several are set in a few hundred rows of half a million.
    rows = np.random.default_rng(seed).permutation(len(covtype.target))[:60_000]
    X = StandardScaler().fit_transform(covtype.data[rows])
    fit = RobustLogisticRegression(WorstClass()).fit(X, covtype.target[rows])
    assert fit.status_ == "converged"
    assert fit.n_evaluations_ <= 60


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_certain_rows_in_wild_units_take_few_steps(seed, C):
    # Where every row is certain, the penalty is all the curvature there is, and in these units it
    # spans twelve orders of magnitude.
    rng = np.random.default_rng(seed)
    y = np.concatenate(
        [np.repeat(np.arange(5), 3), rng.choice(5, 285, p=[0.6, 0.2, 0.1, 0.06, 0.04])]
    )
    Z = 3 * rng.normal(size=(5, 40))[y] + rng.normal(size=(300, 40))
    X = Z @ rng.normal(size=(40, 40)) * 10.0 ** rng.uniform(-3, 3, 40)
    fit = RobustLogisticRegression(LabelCVaR(0.5), C=C).fit(X, y)
    assert fit.status_ == "converged"
    assert fit.n_evaluations_ <= 100


@pytest.mark.filterwarnings("ignore::equipoise.exceptions.FewRowsWarning")
def test_rows_that_are_all_but_certain_do_not_stall():
    # The one of 400 random problems whose curvature was lost in single precision, which its penalty
    # alone would have allowed.
    rng = np.random.default_rng(635)
    n_classes, n_features, n_rows = (
        int(rng.choice(sizes))
        for sizes in ([2, 3, 5, 8, 12], [3, 8, 20, 40], [300, 2_000, 10_000, 40_000])
    )
    shares = rng.dirichlet(np.ones(n_classes) * rng.choice([0.5, 2, 20])) + 0.5 * n_classes / n_rows
    drawn = rng.choice(n_classes, n_rows - 3 * n_classes, p=shares / shares.sum())
    y = np.concatenate([np.repeat(np.arange(n_classes), 3), drawn])
    centres = rng.normal(size=(n_classes, n_features))[y]
    X = centres * rng.choice([0.3, 1, 3]) + rng.normal(size=(n_rows, n_features))
    fit = RobustLogisticRegression(WorstClass(), C=100.0).fit(X, y)
    assert fit.status_ == "converged"


@every_solver
def test_one_solver_may_solve_two_problems_in_turns(solver):
    """All that a solver learns is in its iterates, so that problems do not meet in it."""
    X, labels, weights = small_data(3)
    masses = LabelCVaR(0.5).resolve(np.ones(3) / 3)

    def risks(order):
        found = {0: [], 1: []}
        with (
            open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as one,
            open_objective(-3 * X[:, :2], labels, weights, n_classes=3, fit_intercept=True) as two,
        ):
            problems = Problem(one, masses, 1e-2), Problem(two, masses, 1e-1)
            made = SOLVERS[solver].make(problems[0], 1e-6)
            mass = np.ones(3) / 3
            iterates = [
                made.start(problem, np.zeros(problem.objective.size), mass) for problem in problems
            ]
            for which in order:
                iterates[which] = made.step(problems[which], iterates[which])
                found[which].append(iterates[which].state.risks)
        return found

    together = risks([0, 1] * 6)
    np.testing.assert_array_equal(together[0], risks([0] * 6)[0])
    np.testing.assert_array_equal(together[1], risks([1] * 6)[1])


@contextmanager
def one_problem():
    """A problem on a few hundred rows, and where to start."""
    X, labels, weights = small_data(3, n_rows=300)
    with open_objective(X, labels, weights, n_classes=3, fit_intercept=True) as objective:
        masses = LabelCVaR(0.5).resolve(np.ones(3) / 3)
        yield Problem(objective, masses, 1e-3), (np.zeros(objective.size), np.ones(3) / 3)


class Noted:
    """An objective that takes note of the rows of its Hessians."""

    def __init__(self, objective, formed):
        self._objective, self._formed = objective, formed

    def hessian(self, *args, **settings):
        self._formed.append(self._objective.n_rows)
        return self._objective.hessian(*args, **settings)

    def __getattr__(self, name):
        return getattr(self._objective, name)


@pytest.mark.parametrize(
    ("use", "rows_per_class", "exact"),
    [
        ("first", 40, True),
        ("far", 40, True),
        ("always", 40, False),
        ("always", 20, True),  # its first steps are not as predicted
    ],
)
def test_hessians_are_those_of_the_sample_while_it_serves(use, rows_per_class, exact):
    with one_problem() as (problem, start):
        formed, n_rows = [], problem.objective.n_rows
        whole, sample = (
            replace(each, objective=Noted(each.objective, formed))
            for each in (problem, problem.thin(rows_per_class))
        )
        strategy = NewtonSteps(1e-9, sample, use)
        found = solve(whole, MinimaxSqp(strategy), start, Limits(1e-9, 100), Progress())
    assert found.status is Status.CONVERGED and formed[0] < n_rows
    assert (n_rows in formed) is exact
    if exact:
        first = formed.index(n_rows)
        assert set(formed[:first]) == {formed[0]}
        assert first == 1 if use == "first" else first > 1
        assert use == "always" or set(formed[first:]) == {n_rows}


@pytest.mark.parametrize("rows_per_class", [3, 8])
def test_a_sample_that_says_little_costs_steps_and_not_the_optimum(rows_per_class):
    with one_problem() as (problem, start):
        solver = MinimaxSqp(NewtonSteps(1e-8, problem.thin(rows_per_class), "far"))
        found = solve(problem, solver, start, Limits(1e-8, 100), Progress())
        exact = solve(problem, MinimaxSqp(NewtonSteps(1e-8)), start, Limits(1e-8, 100), Progress())
    assert found.status is exact.status is Status.CONVERGED
    assert found.objective == pytest.approx(exact.objective, rel=2e-8)


def test_many_classes_converge_as_fast_as_blocks_of_their_hessian_allow():
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(80), rng.choice(80, size=7920)])
    X = rng.normal(size=(80, 20))[y] + rng.normal(size=(8000, 20))
    fit = RobustLogisticRegression(WorstClass(), tol=1e-6).fit(X, y)
    # The memory of past steps alone takes 121.
    assert fit.status_ == "converged" and fit.n_evaluations_ <= 60


def test_problems_that_only_give_a_start_are_not_certified(monkeypatch):
    random, sizes, certify = np.random.default_rng(0), [], Problem.certify

    def noted(self, *args):
        sizes.append(self.objective.n_rows)
        return certify(self, *args)

    monkeypatch.setattr(Problem, "certify", noted)
    y = random.choice(3, 60_000, p=[0.6, 0.3, 0.1])
    X = 0.5 * y[:, None] + random.normal(size=(len(y), 3))
    assert RobustLogisticRegression("worst_class").fit(X, y).status_ == "converged"
    assert set(sizes) == {len(y)}


@pytest.mark.parametrize(("n_rows", "seed"), [(400, 1), (800, 0), (800, 1), (1500, 2)])
def test_classes_that_carry_no_mass_do_not_hold_up_the_others(n_rows, seed):
    """All risks end equal, most of them without mass: no curvature knows of these classes."""
    rng, k = np.random.default_rng(seed), 8
    y = rng.choice(k, size=n_rows, p=rng.dirichlet(np.full(k, 5.0)))
    y[:k] = np.arange(k)
    X = rng.normal(size=(n_rows, 5)) + 3 * rng.normal(size=(k, 5))[y]
    clf = RobustLogisticRegression(WorstClass(), C=1e6, max_iter=200).fit(X, y)
    assert clf.status_ == "converged"
    assert np.sum(np.asarray(clf.worst_case_masses_) < 1e-3) >= 3
    # Nothing that another solver finds is below the bound.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = clone(clf).set_params(solver="sqp-lbfgs", max_iter=300).fit(X, y)
    assert clf.lower_bound_ <= other.objective_
    assert clf.objective_ >= other.lower_bound_
