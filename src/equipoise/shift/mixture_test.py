r"""Whether new rows are a mixture of the known classes: a test of overidentifying moments.

Under label shift every function :math:`g` of a row has the mean :math:`\sum_i \pi_i \mu_i` over the
new rows, with its means :math:`\mu_i` over the classes. Probabilities of the classes determine
:math:`\pi`; their squares and the largest are further functions, whose means the mixture must then
explain.
With the covariance :math:`V` of all means, from new and from held-out rows,

.. math:: J = \min_{\sum_i \pi_i = 1} d(\pi)^\top V^{-1} d(\pi), \qquad
          d(\pi) = \bar g - \sum_i \pi_i \bar\mu_i,

is compared with a distribution of :math:`\chi^2` (Hansen 1982).
"""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from equipoise.arrays import Matrix, Vector
from equipoise.exceptions import UnidentifiableError
from equipoise.shift.calibration import CalibratedProbabilities
from equipoise.shift.new_rows import NewRows, weighted_mean

# SAME: directions of the moments that vary less than this, relative to the largest, are left out.
SAME = 1e-8
# NOISE: squared differences between class means, in units of their sampling variance, up to which
# classes are not told apart.
NOISE = 2.0
# MUCH: share of the largest coefficient from which a class takes part in what cannot be told apart.
MUCH = 0.3


def label_shift_p_value(calibration: CalibratedProbabilities, rows: NewRows, pi: Vector) -> float:
    """The p-value of 'the new rows are a mixture of the known classes'.

    Examples
    --------
    >>> from equipoise.shift import calibrate
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 500)
    >>> held_out = calibrate(y, 1 / (1 + np.exp(-rng.normal(6.0 * y - 3, 2))))
    >>> rows = NewRows.of(held_out.likelihoods(np.tile([[0.5, 0.5]], (100, 1))))
    >>> label_shift_p_value(held_out, rows, np.array([0.5, 0.5])) < 0.001
    True
    """
    k, n = len(pi), rows.n_rows
    # Between the estimate and equal frequencies, so that rare classes keep a part in the moments.
    at = (pi + 1 / k) / 2
    new, known = _moments(rows.table, at), _moments(calibration.held_out_likelihoods, at)
    means = np.array([known[calibration.labels == i].mean(axis=0) for i in range(k)])
    mean = weighted_mean(new, rows.counts)
    # The variance that the mixture has: that of few new rows would be too small by chance.
    variance = rows.sampling_variance(new)
    for i in range(k):
        # One further row for every other class, which could be of either: the rows at hand may have
        # shown none, and would vary too little.
        either = _moments(np.delete(np.eye(k) + np.eye(k)[i], i, axis=0), at) - means[i]
        centred, away = known[calibration.labels == i] - means[i], means[i] - pi @ means
        count = len(centred)
        spread = (centred.T @ centred + either.T @ either) / (count + 1)
        variance += pi[i] / n * (spread + np.outer(away, away)) + pi[i] ** 2 * spread / count
    values, vectors = np.linalg.eigh(variance)
    kept = values > SAME * values[-1]
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    target = (mean - means[0]) @ whiten
    design = ((means[1:] - means[0]) @ whiten).T
    solved, _, rank, _ = np.linalg.lstsq(design, target, rcond=1e-6)
    free = int(np.count_nonzero(kept)) - int(rank)
    statistic = float(np.sum((target - design @ solved) ** 2))
    return float(chi2.sf(statistic, free)) if free else float("nan")


def _moments(table: Matrix, at: Vector) -> Matrix:
    """Probabilities of the classes but one, the largest of a row, and all squares."""
    probabilities = table * at
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    certain = np.column_stack([probabilities.max(axis=1), probabilities**2])
    return np.hstack([probabilities[:, 1:], certain])


def refuse_indistinct(calibration: CalibratedProbabilities) -> None:
    """Refuse classes that held-out rows do not tell apart: only their sum could be estimated.

    Examples
    --------
    >>> from equipoise.shift import calibrate
    >>> from equipoise.exceptions import UnidentifiableError
    >>> try:
    ...     refuse_indistinct(calibrate([0, 1] * 50, [[0.5, 0.5]] * 100))
    ... except UnidentifiableError as error:
    ...     print(str(error)[:46])
    The model does not tell classes 0, 1 apart: on
    """
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
