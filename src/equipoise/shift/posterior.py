r"""Draws of the class frequencies, given likelihoods of unlabelled rows.

.. math:: p(\pi \mid x) \propto p(\pi) \prod_r \sum_i \pi_i L_i(x_r)

Gibbs sampling draws the classes of the rows and the frequencies in turn. The prior is a mean over
Dirichlet distributions: how far the frequencies are from equal ones, or from those of the held-out
rows, is drawn as well.

Likelihoods are known up to an error, which held-out rows show (``likelihood_errors``): they are
first made right on average at the estimated frequencies. What is left is uncertain: if the mean
scores of new rows are too large by :math:`c_j`, the log-likelihood is too large by
:math:`n c^\top \pi`. Every chain draws a ``c`` of its own from its sampling distribution and takes
that off, so that no chain learns ``c`` from the new rows, which say nothing of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, softmax

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.shift.likelihood_errors import LabelledLikelihoods, matching_factors, scores
from equipoise.shift.new_rows import NewRows, weighted_mean

# STRENGTHS: of the Dirichlet distributions, in rows of a class, that the prior is a mean of: from
# 'nearly all rows are of few classes' to 'all classes are about as frequent as expected'.
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
# DRAWS: draws that are kept. N_CHAINS, BURN_IN: chains that run together, each with an error of the
# likelihoods of its own, and their first sweeps, which are not kept.
DRAWS, N_CHAINS, BURN_IN = 1000, 100, 20
# LEAST: frequencies below count as this, so that logarithms are finite.
LEAST = 1e-300
# STEP, LEAPS: of a Hamiltonian move, in standard deviations at the mode.
STEP, LEAPS = 0.4, 6
# MOST_ASSIGNED: rows up to which the classes of all rows are drawn; of more, moves alone go far
# enough, and take a sixth of the time (26 classes, 2,000 rows).
MOST_ASSIGNED = 400
# VALUES: of classes drawn at a time, so that they stay in a processor's cache.
VALUES = 1 << 17
# MOST_SWEPT: rows that a sweep looks at; of more a stratified sample stands for all.
MOST_SWEPT = 4000
# EM_STEPS, EM_TOLERANCE: of the fixed-point iteration, and its change that ends it.
EM_STEPS, EM_TOLERANCE = 2000, 1e-7


class Draws(NamedTuple):
    """Draws of the class frequencies, and their mean."""

    mean: Vector
    samples: Matrix


def maximum_likelihood(table: Matrix, counts: Vector | Indices, pseudo: float = 0.0) -> Vector:
    """The class frequencies of the largest likelihood (Saerens, Latinne and Decaestecker 2002).

    Examples
    --------
    >>> maximum_likelihood(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3, 1])).round(6).tolist()
    [0.75, 0.25]
    """
    columns, total = np.ascontiguousarray(table.T), counts.sum()
    k = len(columns)
    frequencies = np.full(k, 1 / k)
    for _ in range(EM_STEPS):
        scale = counts / (frequencies @ columns)
        new = (frequencies * (columns @ scale) + pseudo) / (total + k * pseudo)
        done = np.abs(new - frequencies).max() < EM_TOLERANCE
        frequencies = new
        if done:
            break
    return np.asarray(frequencies)


def posterior_draws(
    rows: NewRows,
    alphas: Matrix,
    rng: np.random.Generator,
    n_draws: int = DRAWS,
    held_out: LabelledLikelihoods | None = None,
) -> Draws:
    """Draws of the class frequencies; ``alphas`` are Dirichlet parameters, a prior on each line.

    Without ``held_out`` rows, likelihoods are taken as right.
    """
    swept = rows.thinned(MOST_SWEPT)
    if held_out is not None:
        factors = matching_factors(swept, held_out)
        held_out = LabelledLikelihoods(held_out.table * factors, held_out.labels)
        rows, swept = (replace(each, table=each.table * factors) for each in (rows, swept))
    target = Target.of(swept)
    moves = Moves.at_mode(target)
    slopes = target.n * _score_errors(rows, swept, held_out, moves.mode, rng)
    pi = np.tile(moves.mode, (N_CHAINS, 1))
    kept = []
    for sweep in range(BURN_IN + -(-n_draws // N_CHAINS)):
        if target.n <= MOST_ASSIGNED:
            pi = _by_classes_of_rows(target, alphas, pi, slopes, rng)
        alpha = _chosen(alphas, _log_dirichlet(pi, alphas), rng)
        logs = np.log(np.maximum(pi, LEAST))
        # The sum of the gamma variables is independent of the frequencies, and of the rows.
        logs += _log_gamma(alpha.sum(axis=1, keepdims=True) * np.ones((len(logs), 1)), rng)
        pi = softmax(moves.moved(target, logs, alpha, slopes, rng), axis=1)
        if sweep >= BURN_IN:
            kept.append(pi)
    samples = np.concatenate(kept)
    return Draws(samples.mean(axis=0), samples)


def _score_errors(
    rows: NewRows,
    swept: NewRows,
    held_out: LabelledLikelihoods | None,
    at: Vector,
    rng: np.random.Generator,
) -> Matrix:
    """What each chain takes the mean scores to be too large by, at these frequencies.

    The difference of the rows that are swept to all that are kept is known. The error of those that
    are kept, where not all are, and that of the likelihoods are drawn.
    """
    of_all = scores(rows.table, at)
    error = weighted_mean(scores(swept.table, at), swept.counts)
    error = error - weighted_mean(of_all, rows.counts)
    covariance = rows.sampling_variance(of_all)
    if held_out is not None:
        shown = held_out.mean_scores(at)
        error, covariance = error + shown.mean - 1, covariance + shown.covariance
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(error + rng.standard_normal((N_CHAINS, len(at))) @ factor.T)


def _by_classes_of_rows(
    target: Target, alphas: Matrix, pi: Matrix, slopes: Matrix, rng: np.random.Generator
) -> Matrix:
    """Draws of the classes of all rows and then of the frequencies, accepted by the slopes."""
    numbers = target.assigned(pi, rng)
    alpha = _chosen(alphas, _log_multinomial(numbers, alphas), rng)
    proposed = softmax(_log_gamma(alpha + numbers, rng), axis=1)
    accepted = rng.exponential(size=len(pi)) > ((proposed - pi) * slopes).sum(axis=1)
    return np.where(accepted[:, None], proposed, pi)


class Target(NamedTuple):
    """Likelihoods of the rows, of shape (n_classes, n_rows), and how many rows each stands for."""

    columns: Matrix
    counts: Indices
    n: int

    @classmethod
    def of(cls, rows: NewRows) -> Target:
        return cls(np.ascontiguousarray(rows.table.T), rows.counts, rows.n_rows)

    def log_likelihood(self, pi: Matrix) -> Vector:
        """For every line of frequencies."""
        return np.asarray(np.log(pi @ self.columns) @ self.counts)

    def expected(self, pi: Matrix) -> Matrix:
        """Expected numbers of rows by class, given their likelihoods."""
        return np.asarray(pi * ((self.counts / (pi @ self.columns)) @ self.columns.T))

    def assigned(self, pi: Matrix, rng: np.random.Generator) -> Matrix:
        """Numbers of rows by class, each row in a class drawn by its probabilities."""
        step = max(1, VALUES // max(self.columns.size, 1))
        parts = [pi[i : i + step] for i in range(0, len(pi), step)]
        return np.concatenate([self._single(part, rng) for part in parts])

    def _single(self, pi: Matrix, rng: np.random.Generator) -> Matrix:
        sums = np.cumsum(self.columns[:, None, :] * pi.T[:, :, None], axis=0)
        uniform = rng.random(sums.shape[1:]) * sums[-1]
        above = np.count_nonzero(sums[:-1] < uniform, axis=2)
        every = np.full((1, len(pi)), self.columns.shape[1])
        return np.asarray(
            -np.diff(np.concatenate([every, above, 0 * every]), axis=0).T, dtype=float
        )


class Moves(NamedTuple):
    r"""Hamiltonian moves of the logarithms of gamma variables :math:`g`, with frequencies

    :math:`\pi_i = g_i / \sum_j g_j`, scaled by the curvature at the mode: where classes overlap,
    they go as far in one step as many draws of the rows' classes.
    """

    mode: Vector
    factor: Matrix

    @classmethod
    def at_mode(cls, target: Target) -> Moves:
        mode = maximum_likelihood(target.columns.T, target.counts, pseudo=1.0)
        shares = target.columns * mode[:, None]
        shares /= shares.sum(axis=0)
        shares -= (shares @ target.counts / max(target.n, 1))[:, None]
        precision = np.eye(len(mode)) + (shares * target.counts) @ shares.T
        return cls(mode, np.linalg.inv(np.linalg.cholesky(precision)).T)

    def moved(
        self,
        target: Target,
        logs: Matrix,
        alpha: Matrix,
        slopes: Matrix,
        rng: np.random.Generator,
    ) -> Matrix:
        def gradients(at: Matrix) -> Matrix:
            pi = softmax(at, axis=1)
            gradient = alpha - np.exp(at) + target.expected(pi) - target.n * pi
            gradient -= pi * (slopes - (pi * slopes).sum(axis=1, keepdims=True))
            return np.asarray(gradient @ self.factor)

        def energy(at: Matrix, momentum: Matrix) -> Vector:
            pi = softmax(at, axis=1)
            fit = target.log_likelihood(pi) - (pi * slopes).sum(axis=1)
            prior = (alpha * at - np.exp(at)).sum(axis=1)
            return np.asarray((momentum**2).sum(axis=1) / 2 - fit - prior)

        momentum = rng.standard_normal(logs.shape)
        step = STEP * rng.uniform(0.5, 1.0, size=(len(logs), 1))
        at, slope = logs, gradients(logs)
        before = energy(logs, momentum)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(LEAPS):
                momentum = momentum + step / 2 * slope
                at = at + step * momentum @ self.factor.T
                slope = gradients(at)
                momentum = momentum + step / 2 * slope
            accepted = rng.exponential(size=len(logs)) > energy(at, momentum) - before
        return np.where(accepted[:, None], at, logs)


def _log_gamma(shapes: Matrix, rng: np.random.Generator) -> Matrix:
    """Logarithms of gamma variables, also of shapes so small that these would be zero."""
    boost = np.log(rng.random(shapes.shape)) / shapes
    return np.asarray(np.log(rng.standard_gamma(shapes + 1)) + boost)


def _log_multinomial(numbers: Matrix, alphas: Matrix) -> Matrix:
    """Log-probabilities of numbers by class under each Dirichlet-multinomial distribution."""
    each = gammaln(numbers[:, None] + alphas).sum(axis=2) - gammaln(alphas).sum(axis=1)
    totals = alphas.sum(axis=1)
    return np.asarray(each + gammaln(totals) - gammaln(numbers.sum(axis=1)[:, None] + totals))


def _log_dirichlet(pi: Matrix, alphas: Matrix) -> Matrix:
    """Log-densities of frequencies under each Dirichlet distribution."""
    logs = np.log(np.maximum(pi, LEAST))
    scale = gammaln(alphas.sum(axis=1)) - gammaln(alphas).sum(axis=1)
    return np.asarray(logs @ (alphas - 1).T + scale)


def _chosen(alphas: Matrix, logs: Matrix, rng: np.random.Generator) -> Matrix:
    """For every chain one of the distributions, drawn by these log-probabilities."""
    gumbel = -np.log(rng.exponential(size=logs.shape))
    return np.asarray(alphas[np.argmax(logs + gumbel, axis=1)])
