r"""The Kullback-Leibler ball: :math:`\sum_i m_i \log(m_i / c_i) \le \text{radius}`."""

import numpy as np
from scipy.special import wrightomega

from equipoise.arrays import Vector
from equipoise.sets.divergence import AtMultiplier, Divergence, meet_radius, on_worst

_EPS = float(np.finfo(np.float64).eps)
_MAX_STEPS = 100

# Coefficients of (x e^x - e^x + 1) / x^2, highest power first.
_SERIES = (1 / 840, 1 / 144, 1 / 30, 1 / 8, 1 / 3, 1 / 2)


class KullbackLeibler(Divergence):
    """Relative entropy of the masses with respect to the centre."""

    name = "kl"
    needs_support = True

    def distance(self, masses: Vector, center: Vector) -> float:
        r"""The divergence :math:`\sum_i m_i \log(m_i / c_i)`."""
        # Only classes with mass: 0 log 0 = 0.
        held = masses > 0
        logs = np.log(masses[held] / center[held])
        return _entropy(logs, masses[held], center[held]) + float(center[~held].sum())

    def maximize(self, risks: Vector, center: Vector, radius: float) -> Vector:
        r"""Exponential tilting: :math:`m_i \propto c_i \exp(r_i / \mu)`."""
        worst = on_worst(risks, center)
        if self.distance(worst, center) <= radius:
            return worst
        # By Hoeffding's lemma the divergence is at most 1 / (8 mu^2) for risks in [-1, 0].
        return meet_radius(lambda mu: _tilt(risks, center, mu), radius, (8 * radius) ** -0.5)

    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        r"""Penalised: :math:`m_i + \mu \log(m_i / c_i) = v_i - \tau`, a Wright omega function.

        Jeffreys' divergence is at least the squared L1 distance, so the divergence is at most
        :math:`(\operatorname{osc}(v - c) / 2 \mu)^2`.
        """
        penalised = _Penalised(point, center)
        start = float(np.ptp(point - center)) / (2 * radius**0.5)
        return meet_radius(penalised.trial, radius, start)


def _tilt(risks: Vector, center: Vector, mu: float) -> AtMultiplier:
    exponents = risks / mu
    growth = float(center @ np.expm1(exponents))
    # Near mu = inf only the difference from one holds digits, near mu = 0 only the sum does.
    log_sum = np.log1p(growth) if growth > -1 / 2 else np.log(center @ np.exp(exponents))
    logs = exponents - log_sum
    masses = center * np.exp(logs)
    masses /= masses.sum()
    variance = float(masses @ (risks - masses @ risks) ** 2)
    return AtMultiplier(masses, _entropy(logs, masses, center), -variance / mu**3)


class _Penalised:
    r"""Masses :math:`\arg\min_m \frac12 \|m - v\|^2 + \mu \, KL(m, c)` on the simplex."""

    def __init__(self, point: Vector, center: Vector) -> None:
        self.point = point
        self.center = center
        self.log_center = np.log(center)
        # Where v - shift = c for the lowest class no mass is below the centre's: the sum is >= 1.
        self.lowest = float((point - center).min())
        self.shift = self.lowest

    def trial(self, mu: float) -> AtMultiplier:
        masses = self._solve_shift(mu)
        rest = self.point - self.shift - masses
        # log(m / c) has two expressions; each loses its digits where the other keeps them.
        safe = np.where(masses > mu, masses, self.center)
        logs = np.where(masses > mu, np.log(safe / self.center), rest / mu)
        return AtMultiplier(
            masses / masses.sum(),
            _entropy(logs, masses, self.center),
            -_spread(logs, masses / (masses + mu)),
        )

    def _solve_shift(self, mu: float) -> Vector:
        """Newton from the left: the sum of masses is convex and decreasing in the shift."""
        base = self.log_center - np.log(mu)
        # The rounding of the arguments alone moves the sum by rates @ (size + |shift|) ulps.
        size = np.abs(self.point) + mu * np.abs(base)
        for _ in range(_MAX_STEPS):
            masses: Vector = mu * wrightomega((self.point - self.shift) / mu + base)
            rates = masses / (masses + mu)
            excess = float(masses.sum()) - 1
            if abs(excess) <= _EPS * (2 + float(rates @ (size + abs(self.shift)))):
                break
            self.shift = max(self.shift + excess / float(rates.sum()), self.lowest)
        return masses


def _spread(values: Vector, scale: Vector) -> float:
    """The weighted sum of squared deviations from the weighted mean."""
    used = scale > 0
    mean = values[used] @ scale[used] / scale[used].sum()
    return float((values[used] - mean) ** 2 @ scale[used])


def _entropy(logs: Vector, masses: Vector, center: Vector) -> float:
    r"""The sum of :math:`m \log(m/c) - m + c`, term by term without cancellation.

    With ``x = log(m/c)`` the term is :math:`c (x e^x - e^x + 1) = c (x^2/2 + x^3/3 + \dots)`.
    """
    small = np.abs(logs) < 1e-2
    x = np.where(small, logs, 0.0)
    series = center * x**2 * np.polyval(_SERIES, x)
    large = masses * np.where(masses > 0, logs, 0.0) - masses + center
    return float(np.where(small, series, large).sum())
