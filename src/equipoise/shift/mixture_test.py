r"""Whether new rows are a mixture of the known classes: a test of overidentifying moments.

Under label shift every function :math:`g` of a row has the mean :math:`\sum_i \pi_i \mu_i` over the
new rows, with its means :math:`\mu_i` over the classes. Probabilities of the classes determine
:math:`\pi`; their squares and the largest are further functions, whose means the mixture must then
explain.
With the covariance :math:`V` of all means, from new and from held-out rows,

.. math:: J = \min_{\sum_i \pi_i = 1} d(\pi)^\top V^{-1} d(\pi), \qquad
          d(\pi) = \bar g - \sum_i \pi_i \bar\mu_i,

is compared with Hotelling's :math:`T^2`, and not with :math:`\chi^2` as of many rows (Hansen 1982):
with few held-out rows of a class :math:`V` is uncertain, and has the degrees of freedom that
Krishnamoorthy and Yu (2004) give a sum of covariance matrices of several samples.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import f

from equipoise.arrays import Matrix, Vector
from equipoise.exceptions import UnidentifiableError
from equipoise.shift.calibration import CalibratedProbabilities
from equipoise.shift.new_rows import NewRows, weighted_mean

# SAME: directions of the moments that vary less than this, relative to the largest, are left out:
# single rows make up their variance, and no normal distribution holds (tests/test_shift.py).
SAME = 1e-4
# RANK: singular values of the class means below this share of the largest are zero.
RANK = 1e-6
# BETWEEN: probabilities of its own class in rows between two classes.
BETWEEN = (0.25, 0.5, 0.75)
# NOISE: squared differences between class means, in units of their sampling variance, up to which
# classes are not told apart.
NOISE = 2.0
# MUCH: share of the largest coefficient from which a class takes part in what cannot be told apart.
MUCH = 0.3


def label_shift_p_value(calibration: CalibratedProbabilities, rows: NewRows, pi: Vector) -> float:
    """The p-value of 'the new rows are a mixture of the known classes'."""
    k, n, counts = len(pi), rows.n_rows, calibration.counts
    # Between the estimate and equal frequencies, so that rare classes keep a part in the moments.
    at = (pi + 1 / k) / 2
    new, known = _moments(rows.table, at), _moments(calibration.held_out_likelihoods, at)
    means = np.array([known[calibration.labels == i].mean(axis=0) for i in range(k)])
    # The variance that the mixture has: that of few new rows would be too small by chance.
    scales, away = pi / n + pi**2 / counts, means - pi @ means
    variance = rows.sampling_variance(new) + (pi / n * away.T) @ away
    spreads = [_deviations(known[calibration.labels == i], means[i], i, at) for i in range(k)]
    for scale, spread in zip(scales, spreads, strict=True):
        variance += scale * spread.T @ spread
    values, vectors = np.linalg.eigh(variance)
    kept = values > SAME * values[-1]
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    explained, sizes, _ = np.linalg.svd(((means[1:] - means[0]) @ whiten).T)
    unexplained = whiten @ explained[:, np.count_nonzero(sizes > RANK * sizes[0]) :]
    free = unexplained.shape[1]
    if not free:
        return float("nan")
    difference = (weighted_mean(new, rows.counts) - means[0]) @ unexplained
    inverse = 0.0
    for scale, spread, count in zip(scales, spreads, counts, strict=True):
        own = scale * (spread @ unexplained).T @ (spread @ unexplained)
        inverse += (np.sum(own**2) + np.trace(own) ** 2) / count / (free + free**2)
    rest = max(1 / inverse - free + 1, 1.0)
    statistic = difference @ difference * rest / (rest + free - 1) / free
    return float(f.sf(statistic, free, rest))


def _deviations(moments: Matrix, mean: Vector, label: int, at: Vector) -> Matrix:
    """Differences of the rows of a class to their mean, so that their squares sum to a variance.

    There is one row more for every other class, spread over rows between the two: the rows at hand
    may have shown none of these, which occur among the new ones.
    """
    own, others = np.eye(len(at))[label], np.delete(np.eye(len(at)), label, axis=0)
    between = np.vstack([share * own + (1 - share) * others for share in BETWEEN])
    further = (_moments(between / at, at) - mean) / np.sqrt(len(BETWEEN))
    return np.asarray(np.vstack([moments - mean, further]) / np.sqrt(len(moments) + 1))


def _moments(table: Matrix, at: Vector) -> Matrix:
    """Probabilities of the classes but one, the largest of a row, and all squares."""
    probabilities = table * at
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    certain = np.column_stack([probabilities.max(axis=1), probabilities**2])
    return np.hstack([probabilities[:, 1:], certain])


def refuse_indistinct(calibration: CalibratedProbabilities) -> None:
    """Refuse classes that held-out rows do not tell apart: only their sum could be estimated."""
    table = calibration.held_out_likelihoods
    probabilities = table / table.sum(axis=1, keepdims=True)
    k, counts = len(calibration.classes), calibration.counts
    parts = [probabilities[calibration.labels == i] for i in range(k)]
    means = np.array([part.mean(axis=0) for part in parts])
    noise = np.array([np.sum(part.var(axis=0)) for part in parts]) / counts
    directions, sizes, _ = np.linalg.svd(means)
    last = np.abs(directions[:, -1])
    rounding = k * np.finfo(float).eps * sizes[0]
    if sizes[-1] ** 2 > max(NOISE * (last**2 @ noise), rounding**2):
        return
    involved = calibration.classes[last >= MUCH * last.max()].tolist()
    raise UnidentifiableError(
        f"The model does not tell classes {', '.join(map(repr, involved))} apart: on "
        f"{len(table):,} held-out rows their mean probabilities differ by no more than sampling "
        "noise, so that their frequencies cannot be estimated. Merge them, or use a better model."
    )
