"""Numbers for balls and hulls: closed forms, degenerate centres, extreme radii."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

from equipoise.exceptions import InvalidInputError, InvalidParameterError
from equipoise.sets import Ball, CappedSimplex, Hull, PriorBall
from equipoise.sets.ball import DIVERGENCES

KINDS = pytest.mark.parametrize("kind", DIVERGENCES)
RNG = np.random.default_rng(0)
RANDOM = [(RNG.dirichlet(np.full(8, size)), RNG.random(8)) for size in (0.1, 0.3, 1, 10) * 10]


def divergence(kind, m, c):
    """The four divergences once more, in their plainest form."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "kl": np.where(m > 0, m * np.log(m / c), 0).sum(),
            "chi2": ((m - c) ** 2 / c).sum(),
            "tv": np.abs(m - c).sum() / 2,
            "l2": np.sqrt(((m - c) ** 2).sum()),
        }[kind]


@KINDS
@pytest.mark.parametrize("radius", [1e-12, 1e-6, 1e-2, 0.3])
def test_the_radius_is_used_up(kind, radius):
    for center, risks in RANDOM:
        ball = PriorBall(radius, kind).resolve(center)
        if isinstance(ball, Ball) and center[risks.argmax()] < 0.5:
            mass = ball.maximize(risks)
            # Up to the rounding of the masses, which a division by the rarest class magnifies.
            rounding = 1e-15 * (radius**0.5 / center.min() if kind == "chi2" else 1)
            slack = 1e-9 * radius + rounding
            assert divergence(kind, mass, center) == pytest.approx(radius, abs=slack)


@pytest.mark.parametrize("radius", [1e-8, 1e-3, 0.1, 1.0])
def test_kl_support_equals_its_dual(radius):
    # min over mu of mu radius + mu log sum c exp(r / mu), at its minimiser by another route.
    for center, risks in RANDOM:

        def dual(log_mu, center=center, risks=risks):
            mu, top = np.exp(log_mu), risks.max()
            return mu * radius + top + mu * np.log(center @ np.exp((risks - top) / mu))

        best = minimize_scalar(dual, bounds=(-12, 12), method="bounded", options={"xatol": 1e-10})
        support = PriorBall(radius).resolve(center).support(risks)
        assert support <= best.fun + 1e-10
        assert support == pytest.approx(best.fun, abs=1e-5 if best.x < -11 else 1e-9)


@pytest.mark.parametrize("radius", [1e-4, 0.1, 1.0, 10.0])
def test_chi2_masses_are_affine_in_the_risks_where_positive(radius):
    for center, risks in RANDOM:
        mass = PriorBall(radius, "chi2").resolve(center).maximize(risks)
        order = np.argsort(risks)
        weight = (mass / center)[order]
        held = weight > 0
        slopes = np.diff(weight[held]) / np.diff(risks[order][held])
        assert np.all(np.diff(weight) >= -1e-12) and np.all(held == (np.cumsum(held) > 0))
        np.testing.assert_allclose(slopes, np.median(slopes) if len(slopes) else 0, rtol=1e-6)


@pytest.mark.parametrize("radius", [0.05, 0.3, 0.9])
def test_tv_support_equals_a_linear_programme(radius):
    for center, risks in RANDOM:
        k = len(center)
        gains = np.hstack([np.eye(k), -np.eye(k)])  # m = c + gain - loss
        found = linprog(
            -np.append(risks, -risks),
            A_ub=np.vstack([-gains, np.append(np.ones(k), np.zeros(k))]),
            b_ub=np.append(center, radius),
            A_eq=[np.append(np.ones(k), -np.ones(k))],
            b_eq=[0],
            options={"primal_feasibility_tolerance": 1e-10},
        )
        support = PriorBall(radius, "tv").resolve(center).support(risks)
        assert support == pytest.approx(center @ risks - found.fun, abs=1e-9)


@KINDS
def test_radius_zero_is_the_centre(kind):
    point = PriorBall(0, kind).resolve([0.7, 0.3])
    assert point.is_point and point.vertices.tolist() == [[0.7, 0.3]]


@KINDS
def test_a_huge_radius_is_the_simplex(kind):
    assert PriorBall(1e6, kind).resolve([0.7, 0.2, 0.1]).is_simplex
    corner = divergence(kind, np.array([0.0, 0.0, 1.0]), np.array([0.7, 0.2, 0.1]))
    assert PriorBall(corner, kind).resolve([0.7, 0.2, 0.1]).is_simplex
    assert not PriorBall(corner * (1 - 1e-9), kind).resolve([0.7, 0.2, 0.1]).is_simplex


@KINDS
def test_a_ball_that_covers_the_simplex_acts_like_it(kind):
    ball = Ball(np.array([0.7, 0.2, 0.1]), 1e6, DIVERGENCES[kind])
    assert ball.is_simplex
    np.testing.assert_array_equal(ball.maximize([0.1, 0.2, 0.3]), [0, 0, 1])
    np.testing.assert_allclose(ball.project([0.0, 9.0, 0.0]), [0, 1, 0], atol=1e-15)


@pytest.mark.parametrize("kind", ["kl", "chi2"])
def test_no_mass_where_the_centre_has_none(kind):
    for radius in (0.1, 1e6):
        ball = PriorBall(radius, kind).resolve([0.6, 0.0, 0.4])
        assert not ball.is_simplex
        for mass in (ball.maximize([0.1, 9.0, 0.3]), ball.project([0.0, 9.0, 0.1])):
            assert mass[1] == 0 and abs(mass.sum() - 1) <= 1e-15
    two = PriorBall(0.1, kind).resolve([0.6, 0.4]).maximize([0.1, 0.3])
    three = PriorBall(0.1, kind).resolve([0.6, 0.0, 0.4]).maximize([0.1, 9.0, 0.3])
    np.testing.assert_allclose(three[[0, 2]], two, atol=1e-15)


@pytest.mark.parametrize("kind", ["tv", "l2"])
def test_mass_may_go_where_the_centre_has_none(kind):
    ball = PriorBall(0.1, kind).resolve([0.6, 0.0, 0.4])
    assert ball.maximize([0.1, 9.0, 0.3])[1] > 0.05
    assert ball.project([0.0, 9.0, 0.1])[1] > 0.05


@KINDS
def test_the_centre_may_be_given(kind):
    ball = PriorBall(0.01, kind, center={"a": 0.5, "b": 0.5}).resolve([0.9, 0.1], ["a", "b"])
    np.testing.assert_allclose(ball.maximize([1.0, 1.0]), [0.5, 0.5])
    assert abs(ball.maximize([0.0, 1.0])[1] - 0.5) < 0.1


@KINDS
def test_a_rare_class_among_common_ones(kind):
    center = np.array([1 - 1e-9, 1e-9])
    ball = Ball(center, 0.1, DIVERGENCES[kind])
    assert divergence(kind, ball.maximize([0.0, 1.0]), center) == pytest.approx(0.1, rel=1e-6)
    assert divergence(kind, ball.project([0.0, 1.0]), center) == pytest.approx(0.1, rel=1e-6)


def test_a_class_rarer_than_rounding():
    center = np.array([1.0, 1e-20])
    mass = Ball(center, 5.0, DIVERGENCES["kl"]).maximize([0.0, 1.0])
    assert divergence("kl", mass, center) == pytest.approx(5, rel=1e-12)


@KINDS
def test_nearly_tied_risks(kind):
    ball = PriorBall(0.1, kind).resolve([0.5, 0.3, 0.2])
    near = ball.maximize([0.5, 0.5 + 1e-15, 0.1])
    assert ball.divergence.distance(near, ball.center) <= 0.1 * (1 + 1e-12)
    assert ball.maximize([0.0, 1e-308, -1.0]) == pytest.approx(ball.maximize([0.0, 0.0, -1.0]))
    tied = ball.support([0.5, 0.5, 0.1])
    assert near @ [0.5, 0.5, 0.1] == pytest.approx(tied, abs=1e-14)


def test_impossible_balls_are_refused():
    with pytest.raises(InvalidInputError, match="risks must be above -inf"):
        PriorBall(0.1).resolve([0.5, 0.5]).maximize([-np.inf, 1.0])
    with pytest.raises(InvalidParameterError, match=r"radius must be a number in \(0, inf\)"):
        Ball(np.array([0.5, 0.5]), 0.0, DIVERGENCES["kl"])


@pytest.mark.parametrize("seed", range(30))
def test_hull_projection_against_its_vertices(seed):
    rng = np.random.default_rng(seed)
    vertices = rng.dirichlet(np.full(6, 0.5), rng.integers(1, 15))
    hull = Hull(np.vstack([vertices, vertices[:1]]))
    point = rng.normal(size=6) * 10 ** rng.uniform(-2, 9)
    nearest = hull.project(point)
    assert np.max((vertices - nearest) @ (point - nearest)) <= 1e-12 * max(1, abs(point).max())
    # Without presolve: that of older versions takes rounding for a contradiction.
    unreduced = {"presolve": False}
    mixture = linprog(np.zeros(len(vertices)), A_eq=vertices.T, b_eq=nearest, options=unreduced)
    assert mixture.status == 0
    assert hull.support(point) == pytest.approx(np.max(vertices @ point), rel=1e-12)


def test_hull_of_all_corners_is_the_simplex():
    hull, simplex = Hull(np.eye(4)), CappedSimplex(np.zeros(4), np.ones(4))
    point = np.array([0.3, -0.2, 0.9, 0.1])
    assert hull.is_simplex and not Hull(np.eye(4)[:3]).is_simplex
    np.testing.assert_allclose(hull.project(point), simplex.project(point), atol=1e-14)
