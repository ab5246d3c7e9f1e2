r"""How many errors on held-out rows show, with a confidence, that a class risk is below a level.

Given the labels, the errors of class ``i`` are binomial: :math:`N_i \sim \mathrm{Bin}(n_i, a_i)`.
Of single classes the largest count :math:`e` with :math:`P(\mathrm{Bin}(n, \alpha) \leq e) \leq
\delta` is exact. For the mean over classes of masses :math:`m` the largest :math:`c` is taken with

.. math:: \sup_{a:\, \langle m, a \rangle \geq \alpha}
          P\Bigl(\sum_i \frac{m_i}{n_i} N_i \leq c\Bigr)
          \leq \exp\Bigl(\lambda c + \max_{a:\, \langle m, a \rangle \geq \alpha} \sum_i n_i
          \log\bigl(1 - a_i (1 - e^{-\lambda m_i / n_i})\bigr)\Bigr) \leq \delta

for the best :math:`\lambda` (Chernoff). The inner maximum is bounded by its Lagrange dual, which
bounds it for any multiplier.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from equipoise.arrays import ROUNDING, Indices, Matrix, Vector

# _TILTS: values of lambda that are tried, evenly spaced logarithms; any of them gives a bound, and
# neighbours differ by a seventh.
_TILTS = 100
# _HALVINGS: of the bracket of the logarithm of a multiplier, to a tenth of a billionth.
_HALVINGS = 40


def allowed_misses(counts: Indices, errors: Vector, tail: float) -> Indices:
    """The most misses of each class that show its error to be below a level; -1 where none do.

    Examples
    --------
    >>> allowed_misses(np.array([28, 29, 100]), np.full(3, 0.1), 0.05)
    array([-1,  0,  4])
    """
    misses = binom.ppf(tail, counts, errors)
    # The quantile is the first count with a probability of at least the tail.
    misses -= binom.cdf(misses, counts, errors) > tail
    return np.where(errors >= 1, counts, misses).astype(np.intp)


def allowed_weighted_error(masses: Vector, counts: Indices, error: float, tail: float) -> float:
    """The largest weighted error on the rows that shows the true one to be below a level.

    Negative where no rows do. A class without rows must have no mass.

    Examples
    --------
    >>> even = allowed_weighted_error(np.ones(2) / 2, np.array([500, 500]), 0.1, 0.05)
    >>> bool(0.07 < even < 0.085)
    True
    """
    some = masses > 0
    m, n = masses[some], counts[some].astype(np.float64)
    steps = m / n
    tilts = np.geomspace(1e-2 / steps.max(), 1e2 / steps.min(), _TILTS)
    return float(np.max((np.log(tail) - _largest_logarithms(m, n, error, tilts)) / tilts))


def _largest_logarithms(m: Vector, n: Vector, error: float, tilts: Vector) -> Vector:
    """Upper bounds of the logarithms of the moment generating function at minus each tilt."""
    b = -np.expm1(-tilts[:, None] * m / n)

    def rates(log_multipliers: Vector) -> Matrix:
        free = 1 / b - n / (np.exp(log_multipliers)[:, None] * m)
        return np.asarray(np.clip(free, 0.0, 1.0))

    # At the low end all rates are 0, at the high one all are 1.
    low = np.log(np.min(n * b / m, axis=1)) - 1
    high = np.log(np.max(n / m / np.maximum(1 / b - 1, ROUNDING), axis=1)) + 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = rates(middle) @ m < error
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    a = rates(high)
    logs = np.sum(n * np.log1p(-np.minimum(a, 1 - ROUNDING) * b), axis=1)
    return np.asarray(logs + np.exp(high) * (a @ m - error))
