r"""Draws of the class frequencies, given likelihoods of unlabelled rows.

.. math:: p(\pi \mid x) \propto p(\pi) \prod_r \sum_i \pi_i L_i(x_r)

Gibbs sampling draws the classes of the rows and the frequencies in turn. The prior is a mean over
Dirichlet distributions: how far the frequencies are from equal ones, or from those of the held-out
rows, is drawn as well.

Likelihoods are known up to an error. On held-out rows of known class the scores

.. math:: s_j(x) = L_j(x) / \sum_i \pi_i L_i(x)

must have a mean of 1 under :math:`\pi`; where :math:`\sum_i \pi_i \bar s_{ij} = 1 + c_j` instead,
the score of the new rows is off by :math:`n c`, and with the covariance :math:`V` of the draws the
frequencies by :math:`n V c`. A draw of :math:`c` from its sampling distribution moves every draw.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, softmax

from equipoise.arrays import Indices, Matrix, Vector
from equipoise.shift.new_rows import NewRows, weighted_mean

# STRENGTHS: of the Dirichlet distributions, in rows of a class, that the prior is a mean of: from
# 'nearly all rows are of few classes' to 'all classes are about as frequent as expected'.
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
# DRAWS: draws that are kept. N_CHAINS, BURN_IN: chains that run together, and their first sweeps,
# which are not kept.
DRAWS, N_CHAINS, BURN_IN = 1000, 20, 20
# LEAST: frequencies below count as this, so that logarithms are finite.
LEAST = 1e-300
# STEP, LEAPS: of a Hamiltonian move, in standard deviations at the mode.
STEP, LEAPS = 0.4, 6
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


class HeldOutScores(NamedTuple):
    """Mean scores of the held-out rows minus one, by class, and the covariance of that error."""

    error: Vector
    covariance: Matrix


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
    rows: NewRows, alphas: Matrix, rng: np.random.Generator, n_draws: int = DRAWS
) -> Draws:
    """Draws of the class frequencies; ``alphas`` are Dirichlet parameters, a prior on each line."""
    swept = rows.thinned(MOST_SWEPT)
    target = Target.of(swept)
    moves = Moves.at_mode(target)
    pi = np.tile(moves.mode, (N_CHAINS, 1))
    means, kept = [], []
    for sweep in range(BURN_IN + -(-n_draws // N_CHAINS)):
        if swept is rows:
            numbers = target.assigned(pi, rng)
            alpha = _chosen(alphas, _log_multinomial(numbers, alphas), rng)
            pi = softmax(_log_gamma(alpha + numbers, rng), axis=1)
        else:
            # Moves alone go far enough, and classes of rows that stand for many take long to draw.
            alpha = _chosen(alphas, _log_dirichlet(pi, alphas), rng)
        logs = np.log(np.maximum(pi, LEAST))
        # The sum of the gamma variables is independent of the frequencies, and of the rows.
        logs += _log_gamma(alpha.sum(axis=1, keepdims=True) * np.ones((len(logs), 1)), rng)
        pi = softmax(moves.moved(target, logs, alpha, rng), axis=1)
        if sweep >= BURN_IN:
            expected = alpha + target.expected(pi)
            means.append(expected / expected.sum(axis=1, keepdims=True))
            kept.append(pi)
    draws = Draws(np.concatenate(means).mean(axis=0), np.concatenate(kept))
    return draws if swept is rows else _recentred(rows, swept, draws)


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
        self, target: Target, logs: Matrix, alpha: Matrix, rng: np.random.Generator
    ) -> Matrix:
        def slopes(at: Matrix) -> Matrix:
            pi = softmax(at, axis=1)
            gradient = alpha - np.exp(at) + target.expected(pi) - target.n * pi
            return np.asarray(gradient @ self.factor)

        def energy(at: Matrix, momentum: Matrix) -> Vector:
            fit = target.log_likelihood(softmax(at, axis=1))
            prior = (alpha * at - np.exp(at)).sum(axis=1)
            return np.asarray((momentum**2).sum(axis=1) / 2 - fit - prior)

        momentum = rng.standard_normal(logs.shape)
        step = STEP * rng.uniform(0.5, 1.0, size=(len(logs), 1))
        at, slope = logs, slopes(logs)
        before = energy(logs, momentum)
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(LEAPS):
                momentum = momentum + step / 2 * slope
                at = at + step * momentum @ self.factor.T
                slope = slopes(at)
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


def _recentred(rows: NewRows, swept: NewRows, draws: Draws) -> Draws:
    """Draws moved by the difference of the scores of the sample and of all rows."""
    n, at = rows.n_rows, draws.mean
    of_all = weighted_mean(scores(rows.table, at), rows.counts)
    of_swept = weighted_mean(scores(swept.table, at), swept.counts)
    step = n * np.cov(draws.samples.T) @ (of_all - of_swept)
    return Draws(onto_simplex((at + step)[None])[0], onto_simplex(draws.samples + step))


def scores(table: Matrix, pi: Vector) -> Matrix:
    """Likelihoods of the classes relative to that of the mixture."""
    return np.asarray(table / (table @ pi)[:, None])


def onto_simplex(samples: Matrix) -> Matrix:
    """Frequencies that are at least zero, scaled to sum to one."""
    positive = np.maximum(samples, 0.0)
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def held_out_scores(table: Matrix, labels: Indices, pi: Vector) -> HeldOutScores:
    """How far scores of held-out rows, mixed as the frequencies say, are from a mean of one."""
    k = table.shape[1]
    values = scores(table, pi)
    error, covariance = -np.ones(k), np.zeros((k, k))
    counts = np.bincount(labels, minlength=k)
    for i in range(k):
        class_scores = values[labels == i]
        error += pi[i] * class_scores.mean(axis=0)
        class_scores = class_scores - class_scores.mean(axis=0)
        covariance += (
            pi[i] ** 2 * (class_scores.T @ class_scores) / (max(counts[i] - 1, 1) * counts[i])
        )
    return HeldOutScores(error, covariance)


def moved_by_error(
    draws: Draws, rows: NewRows, found: HeldOutScores, rng: np.random.Generator
) -> Draws:
    """Draws moved by the error of the likelihoods that the held-out rows show.

    The error is drawn around half of what is seen: the mean of what the model says, none, and of
    what the rows say. Where only a sample of the new rows is kept, its error is drawn as well.
    """
    step = np.cov(draws.samples.T) * rows.n_rows
    covariance = found.covariance + rows.sampling_variance(scores(rows.table, draws.mean))
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = rng.standard_normal(draws.samples.shape) @ factor.T
    samples = draws.samples - (found.error / 2 + noise) @ step
    mean = draws.mean - step @ found.error / 2
    return Draws(onto_simplex(mean[None])[0], onto_simplex(samples))
