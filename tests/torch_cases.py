"""Data, and what NumPy says of it, for the tests of ``equipoise.torch``."""

import numpy as np
from scipy.special import log_softmax, softmax

COUNTS = np.array([60, 25, 15])


def draw_logits(seed=0, counts=COUNTS, spread=2.0):
    """Logits and labels with exactly so many rows of each class, shuffled."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return rng.normal(scale=spread, size=(len(labels), len(counts))), labels


def draw_rows(seed=0, counts=COUNTS, n_features=3):
    """Features whose classes overlap, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    centers = rng.normal(size=(len(counts), n_features))
    return centers[labels] + rng.normal(size=(len(labels), n_features)), labels


def robust_value_and_gradient(mass_set, logits, labels):
    """The robust risk of a batch that has all classes, and a gradient of it, by NumPy."""
    k = logits.shape[1]
    losses = -log_softmax(logits, axis=1)[np.arange(len(labels)), labels]
    counts = np.bincount(labels, minlength=k)
    risks = np.bincount(labels, losses, minlength=k) / counts
    masses = mass_set.maximize(risks)
    gradient = (softmax(logits, axis=1) - np.eye(k)[labels]) * (masses / counts)[labels, None]
    return float(mass_set.support(risks)), gradient
