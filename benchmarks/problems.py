"""The data sets of the benchmark: one function each, features standardised."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

Problem = tuple[Any, np.ndarray]


def covertype() -> Problem:
    """All 581,012 rows of UCI Covertype, raw."""
    folder = os.environ.get("EQUIPOISE_DATA")
    path = Path(folder or ".") / "covtype.npz"
    if not path.is_file():
        raise FileNotFoundError("covtype.npz not found: set EQUIPOISE_DATA to the folder it is in.")
    with np.load(path) as stored:
        binary = np.unpackbits(stored["X_bin_packed"], axis=1, count=44)
        return np.hstack([stored["X_quant"].astype(np.float64), binary]), stored["y"].astype(int)


def standardised(X: np.ndarray, y: np.ndarray) -> Problem:
    return StandardScaler(copy=False).fit_transform(X), y


def covertype_rows(n_rows: int, *, random: bool) -> Problem:
    X, y = covertype()
    rows = np.random.default_rng(0).permutation(len(y))[:n_rows] if random else np.arange(n_rows)
    return standardised(X[rows], y[rows])


def seven_classes(shares: list[float] | None = None) -> Problem:
    """50,000 x 54 with seven classes from make_classification."""
    X, y = make_classification(
        50_000, 54, n_informative=20, n_redundant=10, n_classes=7, weights=shares, random_state=0
    )
    return standardised(X, y)


def sparse_text() -> Problem:
    """20,000 x 50,000, 100 non-zeros a row with Zipf column frequencies, 20 planted classes."""
    rng = np.random.default_rng(0)
    n, d, k, row_nnz = 20_000, 50_000, 20, 100
    frequency = 1 / np.arange(10, d + 10)
    columns = rng.choice(d, size=(n, row_nnz), p=frequency / frequency.sum())
    values = rng.exponential(size=(n, row_nnz))
    indptr = np.arange(0, n * row_nnz + 1, row_nnz)
    X = sp.csr_array((values.ravel(), columns.ravel(), indptr), shape=(n, d))
    X.sum_duplicates()
    X = StandardScaler(with_mean=False).fit_transform(sp.csr_matrix(X))
    return X, planted_labels(X, k, rng)


def planted_labels(X: Any, n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Labels drawn from a softmax model whose score noise leaves the classes overlapping."""
    scores = X @ rng.standard_normal((X.shape[1], n_classes))
    scores = 3 * (scores - scores.mean(0)) / scores.std(0) + rng.gumbel(size=scores.shape)
    return np.argmax(scores + np.linspace(0, 1.5, n_classes), axis=1)


def gaussian_classes(n: int, d: int, k: int) -> Problem:
    """Gaussian classes around random centres, the rarest about a third as frequent as the rest."""
    rng = np.random.default_rng(0)
    share = np.linspace(1, 3, k)
    y = np.concatenate([np.arange(k), rng.choice(k, size=n - k, p=share / share.sum())])
    centres = rng.standard_normal((k, d)) * (2.5 / np.sqrt(np.log(k) + 1)) / np.sqrt(d / 20)
    return standardised(centres[y] + rng.standard_normal((n, d)), y)


def power_law(k: int) -> Problem:
    """15,800 x 32, classes of a power law: those of ``many_classes.py``."""
    from many_classes import power_law as rows  # which imports this file

    return rows(k)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "covertype-all": lambda: standardised(*covertype()),
    "covertype-first": lambda: covertype_rows(11_340, random=False),
    "covertype-random": lambda: covertype_rows(11_340, random=True),
    "seven-classes": seven_classes,
    "seven-unequal": lambda: seven_classes([0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.02]),
    "sparse": sparse_text,
    "hundred-classes": lambda: gaussian_classes(100_000, 100, 100),
    "thousand-classes": lambda: gaussian_classes(20_000, 500, 1_000),
    **{f"power-law-{k}": partial(power_law, k) for k in (10, 100, 300, 1_000)},
}
