"""Descent-ascent obeys the bound of its proposition (appendix E), on games solved by hand."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from equipoise.objectives import Evaluation
from equipoise.sets import LabelCVaR, WorstClass
from equipoise.solvers import Problem
from equipoise.solvers.descent_ascent import DescentAscent, StepConstants

ROUNDS = [1, 2, 5, 20, 100, 1000]


class Game:
    """Class risks given by a formula; there are no data and no intercepts."""

    convex = True

    def __init__(self, n_classes, size, risks, slopes):
        self.n_classes, self.size, self.n_rows, self.n_evaluations = n_classes, size, 0, 0
        self._risks, self._slopes = risks, slopes

    @property
    def squares(self):
        return np.ones(self.size)

    def evaluate(self, theta):
        self.n_evaluations += 1
        return Evaluation(theta, self._risks(theta), None)

    def class_gradients(self, state):
        return self._slopes(state.theta)

    def gradient(self, state, mass):
        return mass @ self._slopes(state.theta)


class GameCase(NamedTuple):
    """A game with true constants; ``least`` is the value of the best answer to fixed masses."""

    name: str
    game: Game
    masses: Any
    constants: StepConstants
    value: float
    least: Any


def linear_game(masses=None, n_classes=4, size=3, seed=0):
    """Risks a_i theta + c_i with sum m_i a_i = 0 for some m: then all c_i + a_i theta* equal v.

    Against m nothing helps, and theta* makes all masses alike, so (theta*, m) is a saddle.
    """
    rng = np.random.default_rng(seed)
    saddle_mass = rng.dirichlet(5 * np.ones(n_classes))
    slopes = rng.normal(size=(n_classes, size))
    slopes -= saddle_mass @ slopes
    radius, value, best = 2.0, 0.7, 0.5 * rng.normal(size=size) / np.sqrt(size)
    offsets = value - slopes @ best
    game = Game(n_classes, size, lambda t: slopes @ t + offsets, lambda t: slopes)
    constants = StepConstants(
        theta_diameter=2 * radius,
        theta_slope=float(np.linalg.norm(slopes, axis=1).max()),
        mass_diameter=np.sqrt(2),
        mass_slope=float(np.linalg.norm(slopes, 2) * radius + np.linalg.norm(offsets)),
    )
    return GameCase(
        "linear",
        game,
        masses or WorstClass().resolve(np.ones(n_classes) / n_classes),
        constants,
        value,
        lambda m: m @ offsets - radius * np.linalg.norm(m @ slopes),
    )


def distance_game():
    """Distances to the corners of a square: the centre is best, at half the diagonal."""
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) + 0.3

    def risks(theta):
        return np.linalg.norm(theta - corners, axis=1)

    def slopes(theta):
        return (theta - corners) / np.maximum(risks(theta), 1e-300)[:, None]

    radius = 2.5
    constants = StepConstants(
        theta_diameter=2 * radius,
        theta_slope=1.0,
        mass_diameter=np.sqrt(2),
        mass_slope=2 * (radius + np.linalg.norm(corners, axis=1).max()),
    )
    return GameCase(
        "distances",
        Game(4, 2, risks, slopes),
        WorstClass().resolve(np.ones(4) / 4),
        constants,
        np.sqrt(2),
        None,
    )


GAMES = [linear_game(), linear_game(n_classes=2, size=1, seed=1), distance_game()]
every_game = pytest.mark.parametrize("case", GAMES, ids=lambda case: case.name)


def played(case, rounds):
    """Averages after so many rounds, by the solver."""
    solver, problem = DescentAscent(case.constants), Problem(case.game, case.masses, 0.0)
    theta = np.zeros(case.game.size)
    iterate = solver.start(problem, theta, case.masses.project(np.eye(case.game.n_classes)[0]))
    for _ in range(rounds):
        iterate = solver.step(problem, iterate)
    assert iterate.rounds == rounds
    return tuple(total / rounds for total in iterate.sums)


def recursion(case, rounds):
    """Algorithm 2 of the paper, with the masses projected onto their own set (see the errata)."""
    c, radius = case.constants, case.constants.theta_diameter / 2
    theta, mass = np.zeros(case.game.size), case.masses.project(np.eye(case.game.n_classes)[0])
    thetas, all_masses = [], []
    for t in range(1, rounds + 1):
        thetas.append(theta)
        all_masses.append(mass)
        state = case.game.evaluate(theta)
        slope = mass @ case.game.class_gradients(state)
        mass = case.masses.project(
            mass + c.mass_diameter / (c.mass_slope * np.sqrt(t)) * state.risks
        )
        theta = theta - c.theta_diameter / (c.theta_slope * np.sqrt(t)) * slope
        length = np.linalg.norm(theta)
        theta = theta * radius / length if length > radius else theta
    return np.mean(thetas, axis=0), np.mean(all_masses, axis=0)


@every_game
@pytest.mark.parametrize("rounds", ROUNDS)
def test_averages_are_within_the_bound_of_the_saddle_value(case, rounds):
    theta, mass = played(case, rounds)
    bound = case.constants.bound(rounds)
    risks = case.game.evaluate(theta).risks
    assert abs(mass @ risks - case.value) <= bound
    # What the proof shows on the way: neither side can gain more by deviating.
    assert case.value - 1e-9 <= case.masses.support(risks) <= case.value + bound
    if case.least is not None:
        assert case.value - bound <= case.least(mass) <= case.value + 1e-9
        assert case.masses.support(risks) - case.least(mass) <= bound


@every_game
@pytest.mark.parametrize("rounds", [1, 7, 60])
def test_the_rounds_are_those_of_the_paper(case, rounds):
    for found, expected in zip(played(case, rounds), recursion(case, rounds), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_masses_stay_in_their_own_set():
    case = linear_game(LabelCVaR(0.8).resolve(np.ones(4) / 4))
    _, mass = played(case, 50)
    assert mass.max() <= 0.25 / 0.8 + 1e-12 and mass.sum() == pytest.approx(1)


def test_parameters_stay_in_their_ball():
    case = linear_game()
    small = StepConstants(0.2, 1e-3, np.sqrt(2), case.constants.mass_slope)
    theta, _ = played(case._replace(constants=small), 40)
    assert np.linalg.norm(theta) <= 0.1 + 1e-12


def test_what_the_masses_miss_is_not_forgotten_without_a_penalty():
    # Against these masses no parameter has a slope; others would still be worse for the first one.
    case = linear_game()
    problem, solver = Problem(case.game, case.masses, 0.0), DescentAscent(case.constants)
    slopes = case.game.class_gradients(case.game.evaluate(np.zeros(case.game.size)))
    balanced = np.linalg.lstsq(
        np.vstack([slopes.T, np.ones(4)]), np.append(np.zeros(3), 1.0), rcond=None
    )[0]
    first = solver.start(problem, np.full(case.game.size, 0.5), balanced)
    iterate = solver.step(problem, first)
    assert np.linalg.norm(iterate.gradient) <= 1e-12
    missed = problem.value(iterate.state) - problem.lagrangian(iterate.state, iterate.mass)
    assert iterate.decrease >= missed > 0.1


def test_the_bound_is_the_propositions():
    # 3 (L_a D_a + L_b D_b) / (2 sqrt T)
    constants = StepConstants(theta_diameter=2, theta_slope=3, mass_diameter=5, mass_slope=7)
    assert constants.bound(9) == pytest.approx(3 * (2 * 3 + 5 * 7) / (2 * 3))
