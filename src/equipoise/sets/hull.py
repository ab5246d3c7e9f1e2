r"""Convex hulls: one of several weightings is right, or a mixture of them.

.. math:: M = \Bigl\{ \sum_j \lambda_j v_j : \lambda \ge 0, \; \textstyle\sum_j \lambda_j = 1
          \Bigr\}.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from equipoise.arrays import Vector, fresh, like, to_numpy
from equipoise.exceptions import InvalidParameterError
from equipoise.sets.base import (
    MassSet,
    Uncertainty,
    check_masses,
    frozen,
)
from equipoise.weights.priors import mass_of_weighting

# From farther away the nearest mass is the best vertex, up to the rounding of the vertices.
_FAR = 1e12


@dataclass(frozen=True, eq=False)
class Hull(MassSet):
    """The convex hull of given masses.

    Parameters
    ----------
    vertices : array-like of shape (n_vertices, n_classes)
        Probability vectors, one a row.

    Examples
    --------
    >>> Hull([[0.9, 0.1], [0.5, 0.5]]).maximize([0.2, 0.6]).tolist()
    [0.5, 0.5]
    """

    vertices: NDArray[np.float64]

    def __post_init__(self) -> None:
        rows = [check_masses(row, f"vertices[{index}]") for index, row in enumerate(self.vertices)]
        object.__setattr__(self, "vertices", frozen(np.array(rows)))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.vertices.shape[1])

    @cached_property
    def is_simplex(self) -> bool:
        """Whether every corner of the simplex is among the vertices."""
        return bool(np.all(self.vertices.max(axis=0) >= 1 - 1e-12))

    @cached_property
    def bounds(self) -> tuple[Vector, Vector]:
        """The least and the largest mass of each class: at a vertex."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    def maximize(self, risks: Any) -> Any:
        r"""The best vertex, the first of them where several tie."""
        vector, xp = self._risks(risks)
        vertices = like(self.vertices, vector, xp)
        # A class without mass counts nothing, even where its risk is infinite.
        values = xp.sum(vertices * xp.where(vertices > 0, vector, 0.0), axis=1)
        return fresh(self.vertices[int(xp.argmax(values))], vector, xp)

    def project(self, point: Any) -> Any:
        r"""The mass :math:`\arg\min_{m \in M} \|m - v\|_2`."""
        vector, xp = self._point(point)
        target = to_numpy(vector)
        if np.abs(target).max() > _FAR:
            return self.maximize(vector)
        return like(_mixture(self.vertices - target) @ self.vertices, vector, xp)


def _mixture(offsets: NDArray[np.float64]) -> Vector:
    r"""Mixture of the rows nearest to the origin.

    .. math:: \min_\lambda \; \|\lambda Y\|^2 \quad \text{subject to} \quad
              \lambda \ge 0, \; \textstyle\sum_j \lambda_j = 1.

    Non-negative least squares on :math:`\|x Y\|^2 + (1 - \sum_j x_j)^2` finds it: with
    :math:`x = s \lambda` and the best ``s`` this is :math:`d / (1 + d)` for
    :math:`d = \|\lambda Y\|^2`.
    """
    scale = float(np.abs(offsets).max())
    if scale == 0:
        return np.full(len(offsets), 1 / len(offsets))
    system = np.vstack([offsets.T / scale, np.ones(len(offsets))])
    target = np.append(np.zeros(offsets.shape[1]), 1.0)
    mixture: Vector = nnls(system, target, maxiter=100 + 10 * len(offsets))[0]
    return mixture / float(mixture.sum())


class WeightHull(Uncertainty):
    r"""One of several weightings is right, or a mixture: the hull of their masses.

    Parameters
    ----------
    weightings : list of weightings
        Each ``"standard"``, ``"balanced"``, a dict by class, or an array; each is scaled so that
        :math:`\sum_i p_i q_i = 1`.

    Examples
    --------
    >>> from equipoise.sets import WeightHull
    >>> mass_set = WeightHull(["standard", "balanced"]).resolve([0.9, 0.1])
    >>> mass_set.maximize([0.2, 0.6])
    array([0.5, 0.5])
    """

    def __init__(self, weightings: Any) -> None:
        self.weightings = weightings

    @classmethod
    def examples(cls) -> list[Self]:
        """The segment between two weightings."""
        return [cls(["standard", "balanced"])]

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Hull:
        """The hull of the masses ``p * q``, one for each weighting."""
        p, names = self._prior(prior, classes)
        if not isinstance(self.weightings, list | tuple | np.ndarray) or len(self.weightings) == 0:
            raise InvalidParameterError(
                f"weightings must be a list of at least one weighting, got {self.weightings!r}."
            )
        masses = [
            mass_of_weighting(weighting, p, names, name=f"weightings[{index}]")
            for index, weighting in enumerate(self.weightings)
        ]
        return Hull(np.array(masses))
