"""The scalar root behind the balls: derivatives, safeguards, and few trials."""

import numpy as np
import pytest

from equipoise.sets import PriorBall, f_divergences
from equipoise.sets.f_divergences import PenalisedKL, meet_radius, penalised_chi2, tilt

RNG = np.random.default_rng(0)
CENTER, RISKS = RNG.dirichlet(np.ones(6)), -RNG.random(6)
POINT = np.sort(RNG.normal(size=6))[::-1]

PATHS = {
    "kl maximum": lambda mu: tilt(RISKS, CENTER, mu),
    "kl projection": PenalisedKL(POINT, CENTER).trial,
    "chi2 projection": lambda mu: penalised_chi2(POINT - CENTER, CENTER, mu),
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("mu", [0.05, 0.3, 4.0])
def test_slopes_are_derivatives(path, mu):
    step = 1e-5 * mu
    _, divergences, slopes = zip(*(path(mu + way) for way in (-step, 0, step)), strict=True)
    rise = divergences[2] - divergences[0]
    assert slopes[1] == pytest.approx(rise / (2 * step), rel=1e-5)


def cliff(mu):
    """Flat, a steep fall at 3, flat again: Newton alone leaves on either side."""
    rest = np.exp(-40 * np.abs(mu - 3))
    divergence = rest / (1 + rest) if mu > 3 else 1 / (1 + rest)
    return (np.array([mu]), divergence, -40 * rest / (1 + rest) ** 2)


@pytest.mark.parametrize("start", [0.01, 2.0, 3.0, 4.0, 500.0])
@pytest.mark.parametrize("radius", [0.1, 0.5, 0.999])
def test_a_cliff_is_found_from_either_side(start, radius):
    trials = []
    (mu,) = meet_radius(lambda mu: trials.append(mu) or cliff(mu), radius, start)
    assert len(trials) < 100
    assert mu == pytest.approx(3 + np.log(1 / radius - 1) / 40, rel=1e-12)


@pytest.mark.parametrize("kind", ["kl", "chi2"])
def test_newton_needs_few_trials(kind, monkeypatch):
    trials = []

    def counted(trial, radius, start):
        return meet_radius(lambda mu: trials.append(mu) or trial(mu), radius, start)

    monkeypatch.setattr(f_divergences, "meet_radius", counted)
    for _ in range(50):
        ball = PriorBall(0.05, kind).resolve(RNG.dirichlet(np.ones(6)))
        ball.project(RNG.normal(size=6))
    assert len(trials) <= 10 * 50
