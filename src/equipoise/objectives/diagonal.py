r"""The diagonal of a Hessian, :math:`\sum_j q_j z_{jc}^2` for every score and column.

The weights are :math:`q_j = s_j p_j (1 - p_j)`. With :math:`z = (x - \mu) / \sigma` the sum is
that of squares of the stored values, less products with them and with the shift: sparse rows stay
sparse.
"""

from operator import iadd
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from equipoise.arrays import Matrix, Vector
from equipoise.objectives.matrices import Features


class SquareSums(NamedTuple):
    """Sums over some rows, in the layout of products."""

    squares: Matrix  # of the stored values
    values: Matrix
    totals: Vector  # of the weights, by score

    @classmethod
    def of(cls, features: Features, weights: Matrix, loaded: Any) -> "SquareSums":
        """The sums of one block, with weights ``(n_scores, rows)``."""
        squared = loaded.power(2) if issparse(loaded) else np.square(loaded)
        products = features.adjoint(weights, squared), features.adjoint(weights, loaded)
        return cls(*products, weights.sum(axis=1))

    def plus(self, other: "SquareSums") -> "SquareSums":
        """The sum of both, in the memory of this one."""
        return SquareSums(*map(iadd, self, other))

    def finished(self, features: Features) -> Vector:
        """The diagonal in the units of solvers, flat, in the memory of the squares."""
        out, n = self.squares.reshape(features.size), features.n_features
        coef = features.unfold(out)[:, :n]
        if features.moments is not None:
            shift, scale = features.moments
            values = features.unfold(self.values.reshape(features.size))[:, :n]
            coef += (self.totals[:, None] * shift - 2 * values) * shift
            np.maximum(coef, 0.0, out=coef)  # but for rounding
            coef /= scale**2
        if features.fixed is not None:
            coef[:, features.fixed] = 0.0
        if features.fit_intercept:
            features.unfold(out)[:, -1] *= features.unit**2
        return out
