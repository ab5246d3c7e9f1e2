r"""How much mass lies near the decision threshold, and how fast risks can fall for it.

.. math:: P(|\eta(X) - t_q| \le t) \le C \, t^\alpha \quad\text{for all } t > 0,
          \qquad t_q = \frac{q_0}{q_0 + q_1}

A large exponent :math:`\alpha` means that few rows are hard to decide under the weighting
:math:`q`. It is estimated by Hill's method from the rows nearest to the threshold: for a power law
the logarithms of the relative distances are exponential with rate :math:`\alpha`.

References
----------
Xu, Dan, Khim and Ravikumar (2020), Appendix A.2 (the shifted margin condition, and its rates).
Hill (1975), "A simple general approach to inference about the tail of a distribution".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.special import betaincinv, gammaincinv

from equipoise.arrays import ArrayLike, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.risks.population import in_population
from equipoise.validation.labels import row_shares
from equipoise.validation.numbers import check_count, check_number
from equipoise.validation.predictions import as_probabilities, probability_eps
from equipoise.weights.priors import scaled_weights

# _LEAST_TAIL: rows near the threshold that an exponent is estimated from, at least.
_LEAST_TAIL = 10
# _LAST_DIGITS: distances from the threshold of fewer units in the last place count as zero.
_LAST_DIGITS = 4
_TINY = float(np.finfo(np.float64).tiny)
# Exponent, constant, each followed by its interval, and the constant that holds everywhere.
_Law = tuple[float, tuple[float, float], float, tuple[float, float], float]


@dataclass(frozen=True)
class MarginCondition:
    r"""An estimate of the shifted margin condition.

    Attributes
    ----------
    threshold : float
        The threshold :math:`t_q`.
    exponent, exponent_interval : float, and pair of float
        The estimate of :math:`\alpha`; 0 where more rows stand at the threshold itself than any
        power allows, infinity where the nearest rows all have the same distance. For a power
        law the interval covers with more than ``confidence``.
    constant, constant_interval : float, and pair of float
        The estimate of :math:`C` near the threshold, where :math:`P(|\eta - t_q| \le t)` is about
        :math:`C t^\alpha`.
    global_constant : float
        The smallest :math:`C` with which the condition holds, with this exponent, at the edge of
        the neighbourhood and at every row beyond it.
    at_threshold : float
        Share of the rows at the threshold itself.
    distance, n_tail : float, int
        The neighbourhood: the distance within which rows are used for the exponent, and their
        number.
    confidence : float
        Probability that an interval covers.

    Examples
    --------
    >>> found = margin_condition((np.arange(1000) + 0.5) / 1000)
    >>> found.threshold, found.n_tail, round(found.exponent, 2)
    (0.5, 16, 0.98)
    >>> rates = found.rates(smoothness=1, n_features=2)
    >>> rates["mismatched"] < rates["matched"]
    True
    """

    threshold: float
    exponent: float
    exponent_interval: tuple[float, float]
    constant: float
    constant_interval: tuple[float, float]
    global_constant: float
    at_threshold: float
    distance: float
    n_tail: int
    confidence: float

    def rates(self, smoothness: float, n_features: int) -> dict[str, float]:
        r"""Exponents :math:`r` in rates :math:`(\log n / n)^r` of local polynomials' errors.

        Each is :math:`\beta / (2 \beta + d)`, for probabilities of smoothness :math:`\beta`, times
        :math:`1 + \alpha` where a rule is evaluated under its own weighting
        (``matched``), :math:`\alpha` under another one, beside the irreducible error, which does
        not decay (``mismatched``), and :math:`\min(1, \alpha)`, what the paper states for both
        together (``printed``).
        """
        beta, alpha = check_number(smoothness, "smoothness", "(0, inf)"), self.exponent
        base = beta / (2 * beta + check_count(n_features, "n_features"))
        factors = {"matched": 1 + alpha, "mismatched": alpha, "printed": min(1.0, alpha)}
        return {name: factor * base for name, factor in factors.items()}


def margin_condition(
    probabilities: ArrayLike,
    weights: Any = "standard",
    *,
    class_prior: Any = None,
    sample_weight: ArrayLike | None = None,
    n_tail: int | None = None,
    confidence: float = 0.95,
) -> MarginCondition:
    r"""Estimate exponent and constant of the shifted margin condition from probabilities.

    .. math:: \hat\alpha = \Bigl( \sum_{D_j \le D} w_j \log \frac{D}{D_j} \Big/
              \sum_{D_j \le D} w_j \Bigr)^{-1}, \qquad D_j = |\eta(x_j) - t_q|

    and :math:`\hat C = D^{-\hat\alpha} \sum_{D_j < D} w_j / \sum_j w_j`, with :math:`D` the
    distance of the nearest row outside the tail.

    Parameters
    ----------
    probabilities : array-like of shape (n,) or (n, 2)
        Probabilities of the second class, true or estimated; of estimated ones the condition is
        their own.
    weights : "standard", "balanced", dict by class, or pair, default="standard"
        The weighting :math:`q`.
    class_prior : pair, optional
        Class frequencies of the population, where those of the rows, the mean of the probabilities,
        differ: rows and odds are carried over, and the weights count relative to these.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    n_tail : int, optional
        How many rows count as near the threshold; :math:`n^{2/5}` if not given. Fewer are less
        biased by what happens further out, and noisier; with :math:`n^{2/3}` the intervals of a
        density that is steep at the threshold no longer cover.
    confidence : float in (0, 1), default=0.95
        Probability that each of the two intervals covers.

    Examples
    --------
    >>> from equipoise.datasets import PowerImbalance
    >>> model = PowerImbalance(p=0.8)
    >>> X, _ = model.sample(20_000, random_state=0)
    >>> found = margin_condition(model.eta(X[:, 0]), "balanced")
    >>> bool(found.exponent_interval[0] < 1 < found.exponent_interval[1])
    True
    """
    matrix = as_probabilities(probabilities)
    if matrix.shape[1] != 2:
        raise InvalidInputError(
            f"the margin condition is about two classes, got {matrix.shape[1]} columns."
        )
    row_weights = row_shares(sample_weight, len(matrix))
    row_weights, matrix = in_population(class_prior, row_weights, matrix)
    level = check_number(confidence, "confidence", "(0, 1)")
    q = scaled_weights(weights, row_weights @ matrix)
    threshold = float(q[0] / q.sum())
    used = row_weights > 0
    distances, row_weights = np.abs(matrix[used, 1] - threshold), row_weights[used]
    n = len(distances)
    tail = max(_LEAST_TAIL, ceil(n ** (2 / 5))) if n_tail is None else n_tail
    if check_count(tail, "n_tail", _LEAST_TAIL) >= n:
        raise InvalidInputError(
            f"the margin condition needs more rows than n_tail = {tail}, got {n}."
        )
    order = np.argsort(distances, kind="stable")
    distances, row_weights = distances[order], row_weights[order]
    # The smallest normal float stands for none at all.
    rounding = max(_LAST_DIGITS * probability_eps(probabilities) * threshold, _TINY)
    edge, here = float(distances[tail]), int(np.count_nonzero(distances <= rounding))
    law: _Law
    if edge <= rounding or here > np.sqrt(tail):
        # A row or two at the threshold is chance; a power law allows none, so more have exponent 0.
        law = 0.0, (0.0, 0.0), 1.0, (1.0, 1.0), 1.0
    elif distances[0] == edge:
        # No row is nearer than the nearest of many: any power bounds that.
        law = np.inf, (np.inf, np.inf), np.nan, (np.nan, np.nan), np.nan
    else:
        law = _power_law(np.maximum(distances, rounding), row_weights, int(tail), level)
    at_threshold = float(row_weights[:here].sum() / row_weights.sum())
    return MarginCondition(threshold, *law, at_threshold, edge, int(tail), level)


def _power_law(distances: Vector, weights: Vector, tail: int, confidence: float) -> _Law:
    shares = np.cumsum(weights) / weights.sum()
    edge, share = float(distances[tail]), float(shares[tail - 1])
    # Half the nominal tails: room for what a law that is no pure power adds.
    tails = np.array([1 - confidence, 3 + confidence]) / 4
    # Hill's estimate; for a power law the sum of logarithms is gamma distributed.
    exponent = 1 / float(np.average(np.log(edge / distances[:tail]), weights=weights[:tail]))
    k = _effective(weights[:tail])
    between = exponent * gammaincinv(k, tails) / k
    # The mass within the edge, as an order statistic, is beta distributed.
    n = _effective(weights)
    ends = betaincinv(share * n + 1, (1 - share) * n, tails)
    # Exponent and share are independent: the logarithms of their limits combine by recovered
    # variances, as squares do.
    depth = -np.log(edge)
    reach = np.hypot(np.log(ends / share), depth * (between - exponent))
    middle = np.log(share) + exponent * depth
    every = np.log(shares[tail:]) - exponent * np.log(distances[tail:])
    with np.errstate(over="ignore"):
        constants = np.exp([middle, middle - reach[0], middle + reach[1], every.max()])
    constant, lower, upper, largest = constants.tolist()
    return exponent, (float(between[0]), float(between[1])), constant, (lower, upper), largest


def _effective(weights: Vector) -> float:
    """Kish: unequal weights tell as much as so many equal ones."""
    return float(weights.sum() ** 2 / (weights**2).sum())
