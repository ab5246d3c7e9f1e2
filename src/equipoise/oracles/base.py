r"""What a solver may ask of the data.

A solver never touches data. It asks an oracle for class risks, class gradients and curvature of

.. math:: R_i(\theta) = \sum_{j : y_j = i} c_j \, \ell(\theta x_j, i), \qquad \sum_{j : y_j = i} c_j = 1.

Conventions
-----------
``theta`` : float64 array of shape ``(n_scores, n_features + fit_intercept)``; the last column
    holds the intercepts. ``n_scores`` is 1 for two classes and ``n_classes`` otherwise.
``mass`` : float64 array of shape ``(n_classes,)``.
``State`` : a point with everything computed there that later questions need again.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.priors import Vector

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """A parameter, the class risks there, and the probabilities that derivatives reuse."""

    theta: Matrix
    risks: Vector
    probabilities: Any


class Oracle(ABC):
    """Class risks of a linear model and their derivatives."""

    n_classes: int
    n_rows: int
    shape: tuple[int, int]

    @abstractmethod
    def evaluate(self, theta: Matrix) -> State:
        """Class risks at ``theta``: one pass over the data."""

    @abstractmethod
    def class_gradients(self, state: State) -> NDArray[np.float64]:
        """Gradients of all class risks, shape ``(n_classes, *shape)``: one pass."""

    @abstractmethod
    def gradient(self, state: State, mass: Vector) -> Matrix:
        """Gradient of the weighted risk, shape ``shape``: one pass."""

    @abstractmethod
    def hessian(self, state: State, mass: Vector) -> Matrix:
        """Hessian of the weighted risk over ``theta`` flattened (gauge included)."""

    @abstractmethod
    def hessian_product(self, state: State, mass: Vector, direction: Matrix) -> tuple[Matrix, Vector]:
        """Hessian of the weighted risk times a direction, and all class slopes along it."""

    @abstractmethod
    def diagonal_blocks(self, state: State, mass: Vector) -> NDArray[np.float64]:
        """The Hessian's diagonal blocks, one for each row of ``theta``."""

    @abstractmethod
    def thin(self, rows_per_class: int) -> "Oracle":
        """The same problem on at most so many rows of each class (a fixed random choice)."""
