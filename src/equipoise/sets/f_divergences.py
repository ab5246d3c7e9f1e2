r"""The Kullback-Leibler and the chi-squared ball, and the multiplier of their constraint.

Along the solutions :math:`m(\mu)` of a problem with penalty :math:`\mu D(m, c)` the divergence
falls from its free value to zero as the multiplier :math:`\mu` grows. The constraint
:math:`D = \text{radius}` is met at one :math:`\mu`.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import wrightomega

from equipoise.arrays import Vector
from equipoise.sets.divergence import Divergence, Squares

# Relative error of the multiplier: that of the masses' way from the centre is no larger.
_MULTIPLIER_TOL = 1e-14
# Multipliers tried: Newton needs about ten. After _PATIENCE every other trial halves the bracket,
# which closes to all digits in some 60 more.
_MAX_TRIALS, _PATIENCE = 200, 30
# Multiplier below which a bracket is closed: exponentials of risks over it have underflowed.
_SMALLEST = 1e-280
# Machine epsilon of float64.
_EPS = float(np.finfo(np.float64).eps)
# Newton steps for the shift of a penalised projection: about ten are needed.
_MAX_STEPS = 100

# Coefficients of (x e^x - e^x + 1) / x^2, highest power first.
_SERIES = (1 / 840, 1 / 144, 1 / 30, 1 / 8, 1 / 3, 1 / 2)

# Masses at one multiplier, their divergence, and its derivative in the multiplier.
AtMultiplier = tuple[Vector, float, float]


def meet_radius(trial: Callable[[float], AtMultiplier], radius: float, start: float) -> Vector:
    r"""The masses at the multiplier where the divergence equals the radius.

    Newton on :math:`D^{-1/2}`, which is nearly linear in :math:`\mu`, as in trust-region methods.
    """
    low, high, mu = 0.0, math.inf, start
    for count in range(_MAX_TRIALS):
        masses, divergence, slope = trial(mu)
        low, high = (mu, high) if divergence > radius else (low, mu)
        new = math.nan
        if slope < 0 < divergence:
            new = mu + 2 * divergence / slope * (1 - math.sqrt(divergence / radius))
        closed = high < math.inf and (high - low <= _MULTIPLIER_TOL * high or high < _SMALLEST)
        if closed or abs(new - mu) <= _MULTIPLIER_TOL * mu:
            break
        outside = not low < new < high
        mu = _between(low, high) if outside or (count > _PATIENCE and count % 2) else new
    return masses


def _between(low: float, high: float) -> float:
    if high == math.inf:
        return 16 * low
    return math.sqrt(low) * math.sqrt(high) if low > 0 else high / 16


class KullbackLeibler(Divergence):
    r"""The relative entropy :math:`\sum_i m_i \log(m_i / c_i)`."""

    name = "kl"
    needs_support = True

    def distance(self, masses: Vector, center: Vector) -> float:
        # Only classes with mass: 0 log 0 = 0.
        held = masses > 0
        logs = np.log(masses[held] / center[held])
        return _entropy(logs, masses[held], center[held]) + float(center[~held].sum())

    def maximize(self, risks: Vector, center: Vector, radius: float) -> Vector:
        r"""Exponential tilting: :math:`m_i \propto c_i \exp(r_i / \mu)`."""
        worst: Vector = np.where(risks == risks.max(), center, 0.0)
        worst = worst / float(worst.sum())
        if self.distance(worst, center) <= radius:
            return worst
        # By Hoeffding's lemma the divergence is at most 1 / (8 mu^2) for risks in [-1, 0].
        return meet_radius(lambda mu: tilt(risks, center, mu), radius, (8 * radius) ** -0.5)

    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        r"""Penalised: :math:`m_i + \mu \log(m_i / c_i) = v_i - \tau`, a Wright omega function.

        Jeffreys' divergence is at least the squared L1 distance, so the divergence is at most
        :math:`(\operatorname{osc}(v - c) / 2 \mu)^2`.
        """
        start = float(np.ptp(point - center)) / (2 * radius**0.5)
        return meet_radius(PenalisedKL(point, center).trial, radius, start)


def tilt(risks: Vector, center: Vector, mu: float) -> AtMultiplier:
    """Masses tilted towards the worst classes, as far as the multiplier lets them."""
    exponents = risks / mu
    growth = float(center @ np.expm1(exponents))
    # Near mu = inf only the difference from one holds digits, near mu = 0 only the sum does.
    log_sum = np.log1p(growth) if growth > -1 / 2 else np.log(center @ np.exp(exponents))
    logs = exponents - log_sum
    masses = center * np.exp(logs)
    masses /= masses.sum()
    variance = float(masses @ (risks - masses @ risks) ** 2)
    return masses, _entropy(logs, masses, center), -variance / mu**3


class PenalisedKL:
    r"""Masses :math:`\arg\min_m \frac12 \|m - v\|^2 + \mu \, KL(m, c)` on the simplex."""

    def __init__(self, point: Vector, center: Vector) -> None:
        self.point = point
        self.center = center
        self.log_center = np.log(center)
        # Where v - shift = c for the lowest class no mass is below the centre's: the sum is >= 1.
        self.lowest = float((point - center).min())
        self.shift = self.lowest

    def trial(self, mu: float) -> AtMultiplier:
        """The masses at one multiplier; the shift is found from the last one's."""
        base = self.log_center - np.log(mu)
        # The rounding of the arguments alone moves the sum by rates @ (size + |shift|) ulps.
        size = np.abs(self.point) + mu * np.abs(base)
        # Newton from the left: the sum of masses is convex and decreasing in the shift.
        for _ in range(_MAX_STEPS):
            masses: Vector = mu * wrightomega((self.point - self.shift) / mu + base)
            rates = masses / (masses + mu)
            excess = float(masses.sum()) - 1
            if abs(excess) <= _EPS * (2 + float(rates @ (size + abs(self.shift)))):
                break
            self.shift = max(self.shift + excess / float(rates.sum()), self.lowest)
        rest = self.point - self.shift - masses
        # log(m / c) has two expressions; each loses its digits where the other keeps them.
        safe = np.where(masses > mu, masses, self.center)
        logs = np.where(masses > mu, np.log(safe / self.center), rest / mu)
        divergence = _entropy(logs, masses, self.center)
        logs, rates = logs[rates > 0], rates[rates > 0]
        slope = -float((logs - logs @ rates / rates.sum()) ** 2 @ rates)
        return masses / masses.sum(), divergence, slope


def _entropy(logs: Vector, masses: Vector, center: Vector) -> float:
    r"""The sum of :math:`m \log(m/c) - m + c`, term by term without cancellation.

    With ``x = log(m/c)`` the term is :math:`c (x e^x - e^x + 1) = c (x^2/2 + x^3/3 + \dots)`.
    """
    small = np.abs(logs) < 1e-2
    x = np.where(small, logs, 0.0)
    series = center * x**2 * np.polyval(_SERIES, x)
    large = masses * np.where(masses > 0, logs, 0.0) - masses + center
    return float(np.where(small, series, large).sum())


class ChiSquared(Squares):
    r"""Pearson's divergence :math:`\sum_i (m_i - c_i)^2 / c_i`."""

    name = "chi2"
    needs_support = True

    def distance(self, masses: Vector, center: Vector) -> float:
        return float(((masses - center) ** 2 / center).sum())

    def scales(self, center: Vector) -> Vector:
        return center

    def budget(self, radius: float) -> float:
        return radius

    def project(self, point: Vector, center: Vector, radius: float) -> Vector:
        r"""Penalised: :math:`m_i = c_i (v_i + \mu + s)_+ / (c_i + \mu)`, the sum fixing ``s``.

        The square root of the divergence is at most the deviation of ``v - c`` over ``mu``.
        """
        order = np.argsort(-point)
        gap, c = (point - center)[order], center[order]
        deviation = float(c @ (gap - c @ gap) ** 2)
        masses = np.empty_like(point)
        start = (deviation / radius) ** 0.5
        masses[order] = meet_radius(lambda mu: penalised_chi2(gap, c, mu), radius, start)
        return masses


def penalised_chi2(gap: Vector, center: Vector, mu: float) -> AtMultiplier:
    """One trial, classes sorted by falling point; all in differences from the centre."""
    share = center / (center + mu)
    dropped = np.append(np.cumsum(center[:0:-1])[::-1], 0.0)
    shift = float(((dropped - np.cumsum(share * gap)) / np.cumsum(share)).min())
    step = np.maximum(share * (gap + shift), -center)
    kept = step > -center
    divergence = float((step**2 / center).sum())
    pull = np.where(kept, step / (center + mu), 0.0)
    share = np.where(kept, share, 0.0)
    slope = 2 * float(step / center @ (share * (pull.sum() / share.sum()) - pull))
    masses = center + step
    return masses / masses.sum(), divergence, slope
