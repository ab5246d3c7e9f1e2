"""One weighting, known for certain, or one of several, or a mixture of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.optimize import nnls

from equipoise.arrays import ArrayLike, Matrix, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.sets.base import (
    MassSet,
    Uncertainty,
    check_masses,
    check_point,
    check_risks,
    frozen,
    weighted,
)
from equipoise.weights.priors import mass_of_weighting, named_prior

# Size of a point from which on its nearest mass is the best vertex, up to the rounding of vertices.
_FAR_FROM_HULL = 1e12


@dataclass(frozen=True, eq=False)
class Hull(MassSet):
    r"""The convex hull :math:`\{ \sum_j \lambda_j v_j : \lambda \ge 0, \sum_j \lambda_j = 1 \}`.

    Parameters
    ----------
    vertices : array-like of shape (n_vertices, n_classes)
        Probability vectors, one a row; the hull of one is a point.

    Examples
    --------
    >>> Hull([[0.9, 0.1], [0.5, 0.5]]).maximize([0.2, 0.6]).tolist()
    [0.5, 0.5]
    """

    vertices: Matrix

    def __post_init__(self) -> None:
        rows = [check_masses(row, f"vertices[{index}]") for index, row in enumerate(self.vertices)]
        object.__setattr__(self, "vertices", frozen(np.array(rows)))

    @property
    def n_classes(self) -> int:
        return int(self.vertices.shape[1])

    @property
    def corners(self) -> Matrix:
        return self.vertices

    @cached_property
    def bounds(self) -> tuple[Vector, Vector]:
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    def maximize(self, risks: ArrayLike) -> Vector:
        """The best vertex, the first of them where several tie."""
        vector = check_risks(risks, self.n_classes)
        return np.array(self.vertices[int(np.argmax(weighted(self.vertices, vector)))])

    def project(self, point: ArrayLike) -> Vector:
        vector = check_point(point, self.n_classes)
        if len(self.vertices) == 1 or np.abs(vector).max() > _FAR_FROM_HULL:
            return self.maximize(vector)
        return np.asarray(_mixture(self.vertices - vector) @ self.vertices)


def _mixture(offsets: Matrix) -> Vector:
    r"""Mixture of the rows nearest to the origin.

    .. math:: \min_\lambda \; \|\lambda Y\|^2 \quad \text{subject to} \quad
              \lambda \ge 0, \; \textstyle\sum_j \lambda_j = 1.

    Non-negative least squares on :math:`\|x Y\|^2 + (1 - \sum_j x_j)^2` finds it: with
    :math:`x = s \lambda` and the best ``s`` this is :math:`d / (1 + d)` for
    :math:`d = \|\lambda Y\|^2`.
    """
    scale = float(np.abs(offsets).max()) or 1.0
    system = np.vstack([offsets.T / scale, np.ones(len(offsets))])
    target = np.append(np.zeros(offsets.shape[1]), 1.0)
    mixture: Vector = nnls(system, target, maxiter=100 + 10 * len(offsets))[0]
    return mixture / float(mixture.sum())


class FixedWeights(Uncertainty):
    r"""One weighting :math:`q`, scaled so that :math:`\sum_i p_i q_i = 1`.

    Parameters
    ----------
    weights : "standard", "balanced", dict by class, or array
        ``"standard"`` weighs all classes alike, :math:`q_i = 1`; ``"balanced"`` gives all classes
        the same mass, :math:`q_i = 1/(k p_i)`.

    Examples
    --------
    >>> FixedWeights({"common": 1, "rare": 9}).resolve([0.9, 0.1], ["common", "rare"]).vertices
    array([[0.5, 0.5]])
    """

    def __init__(self, weights: Any) -> None:
        self.weights = weights

    @property
    def weighting(self) -> Any:
        return self.weights

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls("standard"), cls("balanced")]

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Hull:
        p, names = named_prior(prior, classes)
        mass = mass_of_weighting(self.weights, p, names, name="weights")
        return Hull(mass[np.newaxis])


class WeightHull(Uncertainty):
    r"""The convex hull of several weightings: one of them is right, or a mixture.

    Parameters
    ----------
    weightings : list of weightings
        Each ``"standard"``, ``"balanced"``, a dict by class, or an array; each is scaled so that
        :math:`\sum_i p_i q_i = 1`.

    Examples
    --------
    >>> mass_set = WeightHull(["standard", "balanced"]).resolve([0.9, 0.1])
    >>> mass_set.maximize([0.2, 0.6])
    array([0.5, 0.5])
    """

    def __init__(self, weightings: Any) -> None:
        self.weightings = weightings

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(["standard", "balanced"])]

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> Hull:
        p, names = named_prior(prior, classes)
        if not isinstance(self.weightings, list | tuple | np.ndarray) or len(self.weightings) == 0:
            raise InvalidParameterError(
                f"weightings must be a list of at least one weighting, got {self.weightings!r}."
            )
        masses = [
            mass_of_weighting(weighting, p, names, name=f"weightings[{index}]")
            for index, weighting in enumerate(self.weightings)
        ]
        return Hull(np.array(masses))
