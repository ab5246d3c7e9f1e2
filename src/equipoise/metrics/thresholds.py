r"""The best threshold for a linear-fractional metric, exactly, by one sort.

.. math:: \max_t \mathcal{L}(1\{s(x) > t\})

Between two neighbouring scores the decisions, and so the metric, do not change: it is enough to
look at one threshold between each two distinct scores, below them all and above them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import ArrayLike, Indices, Mask, Matrix, NDArray, Vector
from equipoise.exceptions import InvalidInputError
from equipoise.metrics.fractional import EquivalentWeighting, LinearFractional, Metric, as_metric
from equipoise.validation.labels import check_sample_weight


@dataclass(frozen=True, eq=False)
class BestThreshold:
    r"""A threshold, and the value of the metric that it attains.

    Attributes
    ----------
    threshold, above : float, bool
        Class 1 is predicted where the score is above it; below it, if ``above`` is False.
    value : float
        The metric on the rows searched.
    lower, upper : float
        Thresholds from ``lower`` on and below ``upper`` make the same decisions on these rows.
    table : ndarray of shape (2, 2)
        Weight of the rows by true class (first) and decision (second).
    metric : LinearFractional

    Examples
    --------
    >>> best = best_threshold([0.1, 0.2, 0.6, 0.9], [False, True, False, True], domain=(0, 1))
    >>> best.lower, best.upper, best.table.tolist()
    (0.1, 0.2, [[1.0, 1.0], [0.0, 2.0]])
    """

    threshold: float
    value: float
    lower: float
    upper: float
    above: bool
    table: Matrix
    metric: LinearFractional

    @property
    def positive_share(self) -> float:
        """Share of class 1 in the rows searched."""
        return float(self.table[1].sum() / self.table.sum())

    @property
    def weighting(self) -> EquivalentWeighting:
        """The class weights for which a known probability is cut at its best threshold.

        Its threshold lies between ``lower`` and ``upper`` for the true probabilities; for other
        scores the distance tells how far they are from being calibrated.
        """
        return self.metric.weighting(self.value, self.positive_share)

    def decide(self, scores: ArrayLike) -> Mask:
        """Whether class 1 is decided for each of these scores."""
        above: Mask = np.asarray(scores, dtype=np.float64) > self.threshold
        return above if self.above else ~above


def best_threshold(
    scores: ArrayLike,
    positive: ArrayLike,
    sample_weight: ArrayLike | None = None,
    metric: Metric = "f1",
    *,
    domain: tuple[float, float] = (-np.inf, np.inf),
    either_side: bool = False,
) -> BestThreshold:
    r"""The threshold :math:`t` that maximises a metric of the rule :math:`1\{s(x) > t\}`.

    It lies in the middle between two scores; of several best thresholds it is the lowest.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores or probabilities of class 1: the larger the likelier.
    positive : array-like of shape (n,)
        Whether each row is of class 1. Numbers between 0 and 1 are probabilities of it, and the
        metric is then that of the expected table: ``best_threshold(eta, eta)`` is the optimum for
        a known or calibrated regression function, see :func:`optimal_rule`.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.
    metric : str, LinearFractional or callable, default="f1"
        Anything that :func:`as_metric` takes.
    domain : pair of floats, optional
        Thresholds from the first number on and below the second. With ``(0, 1)``, which suits
        probabilities, no threshold is infinite.
    either_side : bool, default=False
        Whether rules that predict class 1 *at or below* the threshold are searched too.

    Examples
    --------
    >>> best = best_threshold([0.1, 0.2, 0.6, 0.9], [False, True, False, True], domain=(0, 1))
    >>> round(best.threshold, 6), best.value
    (0.15, 0.8)
    >>> best.decide([0.12, 0.3]).tolist()
    [False, True]
    """
    low, high = (float(end) for end in domain)
    if not low < high:
        raise InvalidInputError(f"domain must be two numbers in ascending order, got {domain!r}.")
    checked = _check_rows(scores, positive, sample_weight)
    rows, cuts, (tp, fp), totals = _sweep(*checked, (low, high))
    share = totals[0] / sum(totals)
    chosen = as_metric(metric, share).with_positive_denominator(share)
    sides = [chosen.ratio(tp, fp, *totals)]
    if either_side and chosen.can_flip(share):
        sides.append(chosen.ratio(totals[0] - tp, totals[1] - fp, *totals))
    # The first of equal ones: the lowest threshold, and above it.
    side, best = divmod(int(np.argmax(sides)), len(cuts))
    cut, hits, alarms = int(cuts[best]), float(tp[best]), float(fp[best])
    lower = max(float(rows[cut - 1]), low) if cut > 0 else low
    upper = min(float(rows[cut]), high) if cut < len(rows) else high
    table = np.array([[totals[1] - alarms, alarms], [totals[0] - hits, hits]])
    table = table[:, ::-1] if side else table
    # In the middle, as long as that still parts the two in the scores' own precision.
    middle = float(rows.dtype.type(lower / 2 + upper / 2))
    threshold = middle if lower <= middle < upper or np.isinf(middle) else lower
    value = float(sides[side][best])
    return BestThreshold(threshold, value, lower, upper, side == 0, table, chosen)


def optimal_rule(
    eta: ArrayLike, metric: Metric = "f1", sample_weight: ArrayLike | None = None
) -> BestThreshold:
    r"""The best of all decision rules where :math:`\eta(x) = P(Y = 1 | X = x)` is known.

    .. math:: \max_f \mathcal{L}(f) \quad\text{over all}\quad f(x) \in \{0, 1\}

    No labels are needed: the metric is that of the expected table. By Koyejo et al. (2014) the
    optimum is :math:`1\{\eta > \delta\}` or, where the rule flips, :math:`1\{\eta < \delta\}`; both
    are searched. The rows stand for the population, each with its weight; ``weighting.threshold``
    is :math:`\delta`.

    Parameters
    ----------
    eta : array-like of shape (n,)
        Probabilities of class 1, known or calibrated.
    metric, sample_weight
        As in :func:`best_threshold`.

    Examples
    --------
    >>> rule = optimal_rule([0.1, 0.2, 0.6, 0.9])
    >>> round(rule.value, 6), round(rule.weighting.threshold, 6)
    (0.789474, 0.394737)
    """
    array = np.asarray(eta)
    return best_threshold(array, array, sample_weight, metric, either_side=True)


def _sweep(
    scores: NDArray[Any],
    positive: NDArray[Any],
    weights: Vector | None,
    domain: tuple[float, float],
) -> tuple[NDArray[Any], Indices, tuple[Vector, Vector], tuple[float, float]]:
    """Sorted scores, cuts, TP and FP of the rows from each cut on, and the totals of both."""
    order = np.argsort(scores)
    ordered = scores[order]
    cuts = _cuts(ordered, domain)
    positive = positive[order]
    if weights is None and positive.dtype == np.bool_:
        # Counts: half the work, and exact.
        tp, positives = _above(positive, cuts)
        fp, negatives = len(scores) - cuts - tp, len(scores) - positives
    else:
        each = np.ones(1) if weights is None else weights[order]
        tp, positives = _above(each * positive, cuts)
        fp, negatives = _above(each * (1 - positive.astype(np.float64, copy=False)), cuts)
    return ordered, cuts, (tp, fp), (float(positives), float(negatives))


def _cuts(ordered: NDArray[Any], domain: tuple[float, float]) -> Indices:
    """Where thresholds of the domain can part the sorted scores, equal ones never."""
    # Scores up to the first end are above no threshold, those from the second on above all.
    first = int(np.searchsorted(ordered, domain[0], side="right"))
    last = int(np.searchsorted(ordered, domain[1], side="left"))
    inside = ordered[first:last]
    between = np.flatnonzero(inside[1:] != inside[:-1]) + (first + 1)
    return np.concatenate([[first], between, [last] if last > first else []]).astype(np.intp)


def _above(values: NDArray[Any], cuts: Indices) -> tuple[NDArray[Any], Any]:
    """Sums of the values from each cut on, and of all of them."""
    running = np.cumsum(values)
    total = running[-1]
    above = total - running[cuts - 1]
    # Nothing lies below the first row, where the index wraps around.
    above[cuts == 0] = total
    return above, total


def _check_rows(
    scores: ArrayLike, positive: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], Vector | None]:
    values, flags = np.asarray(scores), np.asarray(positive)
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    if values.ndim != 1 or len(values) == 0:
        raise InvalidInputError(
            "scores must be one number for each of at least one row, got an array of shape "
            f"{values.shape}; of probabilities of two classes give the second column."
        )
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise InvalidInputError(f"scores must be finite, got {values[row]} in row {row}.")
    if flags.shape != values.shape:
        raise InvalidInputError(
            f"positive must have one entry for each of the {len(values)} scores, got an array of "
            f"shape {flags.shape}."
        )
    if flags.dtype.kind not in "biuf" or not (flags.min() >= 0 and flags.max() <= 1):
        raise InvalidInputError(
            "positive must say for each row whether it is of class 1 (True or 1, False or 0) or "
            f"how probably (between 0 and 1), got {flags[:3].tolist()}, ...; for labels give "
            "y == pos_label."
        )
    certain = flags.astype(np.bool_, copy=False)
    flags = certain if np.array_equal(certain, flags) else flags
    if sample_weight is None:
        return values, flags, None
    weights = check_sample_weight(sample_weight, len(values))
    used = slice(None) if weights.min() > 0 else weights > 0
    return values[used], flags[used], weights[used]
