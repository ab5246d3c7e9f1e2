r"""How rich linear functions with bounded coefficients are, as bounds of risks need it.

.. math::

    \hat{\mathfrak{R}}(\mathcal{F}) = \frac{1}{n} E_\sigma \sup_{f \in \mathcal{F}}
    \sum_{j=1}^n \sigma_j f(x_j)
    = \frac{\Lambda}{n} E_\sigma \Bigl\| \sum_{j=1}^n \sigma_j x_j \Bigr\|_2
    \qquad\text{for}\qquad
    \mathcal{F} = \{ x \mapsto \langle w, x \rangle : \|w\|_2 \leq \Lambda \}

with fair signs :math:`\sigma_j` is the empirical Rademacher complexity. (The paper leaves out
:math:`1/n`, without which :math:`C(\mathcal{F}) / \sqrt{n}` makes no sense.) By the inequalities of
Jensen and Khintchine it is known up to a factor:

.. math::

    \frac{1}{\sqrt{2}} \, U \leq \hat{\mathfrak{R}}(\mathcal{F}) \leq U, \qquad
    U = \frac{\Lambda}{n} \sqrt{\textstyle\sum_j \|x_j\|_2^2}

Bounds of risks take :math:`U`, which is exact where the rows are orthogonal to each other.

Where a linear classifier has one such function for each class, with no other restriction, this is
the complexity of :math:`\Pi_1(\mathcal{F})`, the set of the scores of single classes. An intercept
is one more coefficient: give the rows a column of ones.

References
----------
Mohri, Rostamizadeh and Talwalkar (2012), chapters 3 to 5 and 8; Latala and Oleszkiewicz (1994) for
the lower bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from equipoise.arrays import ArrayLike
from equipoise.validation.labels import as_labels, check_length, classes_of, positions
from equipoise.validation.numbers import check_number


def class_rademacher(X: Any, y: ArrayLike, radius: float = 1.0) -> dict[Any, float]:
    r"""The bound :math:`U` of the complexity on the rows of each class, by class name.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        The rows :math:`x_j`.
    y : array-like of shape (n_rows,)
        Their labels.
    radius : float, default=1.0
        The bound :math:`\Lambda` of the norm of the coefficients. In bounds of risks it must be
        fixed before the rows are seen.

    Examples
    --------
    >>> class_rademacher([[3.0], [4.0], [3.0], [3.0]], ["a", "b", "b", "b"], radius=6.0)["a"]
    18.0
    """
    scale = check_number(radius, "radius", "[0, inf)")
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    names = as_labels(y, name="y")
    check_length(names, rows.shape[0], name="y", of="X")
    classes = classes_of(names)
    squares = rows.multiply(rows).sum(axis=1) if issparse(rows) else np.square(rows).sum(axis=1)
    labels = positions(names, classes)
    sums = np.bincount(labels, weights=np.asarray(squares, dtype=np.float64).ravel())
    bounds = scale * np.sqrt(sums) / np.bincount(labels)
    return dict(zip(classes.tolist(), bounds.tolist(), strict=True))
