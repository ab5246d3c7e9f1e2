r"""Empirical Rademacher complexity of linear functions with bounded coefficients.

.. math::

    \hat{\mathfrak{R}}(\mathcal{F}) = \frac{1}{n} E_\sigma \sup_{f \in \mathcal{F}}
    \sum_{j=1}^n \sigma_j f(x_j)
    = \frac{\Lambda}{n} E_\sigma \Bigl\| \sum_{j=1}^n \sigma_j x_j \Bigr\|_*
    \qquad\text{for}\qquad
    \mathcal{F} = \{ x \mapsto \langle w, x \rangle : \|w\| \leq \Lambda \}

with fair signs :math:`\sigma_j` and the dual norm. (The paper leaves out :math:`1/n`, without which
:math:`C(\mathcal{F}) / \sqrt{n}` makes no sense.)

Where a linear classifier has one such function for each class, with no other restriction, this is
the complexity of :math:`\Pi_1(\mathcal{F})`, the set of the scores of single classes. An intercept
is one more coefficient: give the rows a column of ones.

Exact are up to 15 rows, where all signs are gone through, and in the Euclidean norm rows that are
orthogonal to each other, which have the closed form :math:`\Lambda \sqrt{\sum \|x_j\|^2} / n`.
Everything else is the mean over drawn signs, with its standard error and proven bounds.

References
----------
Mohri, Rostamizadeh and Talwalkar (2012), chapters 3 to 5 and 8; Latala and Oleszkiewicz (1994) for
the lower bounds, Massart (2000) for the upper one of the largest coordinate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from equipoise.arrays import ArrayLike, Matrix
from equipoise.validation.labels import as_labels, check_length, classes_of, positions
from equipoise.validation.numbers import check_count, check_number, check_word

Norm = Literal["l2", "l1", "linf"]

# All signs of more rows take too long; of so few rows by itself too much memory.
_ENUMERATED = 15
_GRAM_ROWS = 1000
# The order of the dual of each norm of coefficients.
_DUALS = {"l2": 2, "l1": np.inf, "linf": 1}
# Drawn signs held in memory at a time.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class RademacherComplexity:
    """A complexity, how well it is known, and bounds that hold for certain.

    As a number, ``float(complexity)``, it is its upper bound: what a bound of a risk needs.

    Attributes
    ----------
    value, standard_error : float
        The complexity, or an estimate of it; the error is 0 where the value is exact.
    lower, upper : float
        Proven bounds of the complexity on these rows; both are the value where that is exact.
    method : str
        Begins with ``exact`` or ``Monte Carlo``.

    Examples
    --------
    >>> complexity = linear_rademacher([[3.0, 0.0], [0.0, 4.0]], radius=2.0)
    >>> float(complexity), complexity.exact
    (5.0, True)
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    method: str

    def __float__(self) -> float:
        return self.upper

    @property
    def exact(self) -> bool:
        """Whether the value is exact up to rounding."""
        return self.method.startswith("exact")


def linear_rademacher(
    X: Any,
    radius: float = 1.0,
    *,
    norm: Norm = "l2",
    n_draws: int = 200,
    random_state: Any = None,
) -> RademacherComplexity:
    r"""The empirical Rademacher complexity of a ball of linear functions.

    ===========  ================  =======================================================
    ``norm``     dual norm         ``upper``, times :math:`\Lambda / n`
    ===========  ================  =======================================================
    ``"l2"``     Euclidean         :math:`\sqrt{\sum_j \|x_j\|_2^2}`
    ``"linf"``   sum of moduli     :math:`\sum_d \sqrt{\sum_j x_{jd}^2}`
    ``"l1"``     largest modulus   :math:`\max_d \sqrt{2 \log(2D) \sum_j x_{jd}^2}`, or that of
                                   ``"l2"`` if less
    ===========  ================  =======================================================

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows :math:`x_j`.
    radius : float, default=1.0
        The bound :math:`\Lambda` of the norm of the coefficients. In bounds of risks it must be
        fixed before the rows are seen.
    norm : {"l2", "l1", "linf"}, default="l2"
        The norm of the coefficients.
    n_draws : int, default=200
        How many signs are drawn for each row where the expectation is not exact.
    random_state : None, int, numpy.random.Generator, ...
        An argument of :func:`numpy.random.default_rng`.

    Examples
    --------
    >>> complexity = linear_rademacher([[3.0, 0.0], [0.0, 4.0]])
    >>> complexity.value, complexity.method
    (2.5, 'exact (orthogonal rows)')
    """
    scale = check_number(radius, "radius", "[0, inf)")
    dual = _DUALS[check_word(norm, "norm", tuple(_DUALS))]
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    n = int(rows.shape[0])
    lower, upper = _bounds(rows, norm)
    if norm == "l2" and _are_orthogonal(rows):
        value, error, method = upper, 0.0, "exact (orthogonal rows)"
    elif n <= _ENUMERATED:
        norms = np.linalg.norm(_all_signs(n) @ rows, dual, axis=1)
        value, error, method = float(norms.mean()), 0.0, "exact (all signs)"
    else:
        sums = _random_sums(rows, check_count(n_draws, "n_draws", 2), random_state)
        norms = np.linalg.norm(sums, dual, axis=1)
        value, error = float(norms.mean()), float(norms.std(ddof=1) / np.sqrt(n_draws))
        method = f"Monte Carlo ({n_draws} draws)"
    if method.startswith("exact"):
        lower = upper = value
    value, error, lower, upper = (scale / n * number for number in (value, error, lower, upper))
    return RademacherComplexity(value, error, lower, upper, method)


def class_rademacher(
    X: Any,
    y: ArrayLike,
    radius: float = 1.0,
    *,
    norm: Norm = "l2",
    n_draws: int = 200,
    random_state: Any = None,
) -> dict[Any, RademacherComplexity]:
    """The complexity on the rows of each class, by class name.

    As in :func:`linear_rademacher`, for the rows of each of the labels ``y``.

    Examples
    --------
    >>> by_class = class_rademacher([[3.0], [4.0], [5.0]], ["a", "b", "b"])
    >>> by_class["a"].value, by_class["b"].value
    (3.0, 2.5)
    """
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    names = as_labels(y, name="y")
    check_length(names, rows.shape[0], name="y", of="X")
    classes = classes_of(names)
    labels, rng = positions(names, classes), np.random.default_rng(random_state)
    return {
        name: linear_rademacher(
            rows[labels == place], radius, norm=norm, n_draws=n_draws, random_state=rng
        )
        for place, name in enumerate(classes.tolist())
    }


def _bounds(rows: Any, norm: Norm) -> tuple[float, float]:
    """Bounds of the mean dual norm of the sum of the rows with random signs."""
    squares = rows.multiply(rows) if issparse(rows) else rows * rows
    roots = np.sqrt(np.asarray(squares.sum(axis=0), dtype=np.float64).ravel())
    size = upper = float(np.linalg.norm(roots, _DUALS[norm]))
    if norm == "l1":
        massart = size * np.sqrt(2 * np.log(2 * len(roots)))
        upper = float(min(massart, np.linalg.norm(roots)))
    # The mean of a norm is at least the root of its mean square over that of 2 (Khintchine).
    return size / float(np.sqrt(2)), upper


def _are_orthogonal(rows: Any) -> bool:
    n, n_features = rows.shape
    if n > min(n_features, _GRAM_ROWS):
        return False
    products = rows @ rows.T
    gram = np.asarray(products.todense() if issparse(products) else products)
    return bool(np.count_nonzero(gram - np.diag(np.diag(gram))) == 0)


def _all_signs(n: int) -> Matrix:
    """Every sequence of signs that begins with plus; the others have the same norms."""
    bits = np.arange(2 ** (n - 1))[:, np.newaxis] >> np.arange(n - 1)
    signs = 1.0 - 2.0 * (bits & 1)
    return np.hstack([np.ones((len(signs), 1)), signs])


def _random_sums(rows: Any, n_draws: int, random_state: Any) -> Matrix:
    """Sums of the rows with random signs, one for each draw."""
    rng = np.random.default_rng(random_state)
    n, n_features = rows.shape
    sums, step = np.zeros((n_draws, n_features)), max(1, _BLOCK // n_draws)
    for start in range(0, n, step):
        block = rows[start : start + step]
        signs = rng.integers(0, 2, size=(block.shape[0], n_draws), dtype=np.int8)
        sums += (block.T @ (2.0 * signs - 1.0)).T
    return sums
