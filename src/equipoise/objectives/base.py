r"""What a solver may ask of the data.

A solver never touches data. It asks an objective for class risks, class gradients and curvature of

.. math:: R_i(\theta) = \sum_{j : y_j = i} c_j \, \ell(\theta x_j, i), \qquad
          \sum_{j : y_j = i} c_j = 1.

Conventions
-----------
``theta`` : flat float64 vector of length ``size``. Its layout belongs to the features; ``unfold``
    shows it as ``(n_scores, n_features + fit_intercept)`` with the intercepts last.
``mass`` : float64 vector with one entry per class.
``state`` : a point with everything computed there that later questions need again.
``block`` : a ``slice`` of rows; ``loaded``, what ``load`` makes of it for the products.
``scores``, ``residual`` : arrays of shape ``(n_scores, rows)``.
``pulled`` : residuals times rows, in the features' own layout; ``finish`` turns it into a gradient.
Features stay as they came, float32 as float32; all arithmetic is in float64, a block at a time.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from equipoise.arrays import Matrix, Vector


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A parameter, the class risks there, and what is kept of the scores for derivatives."""

    theta: Vector
    risks: Vector
    kept: Any


class Objective(ABC):
    """Class risks of a linear model and their derivatives."""

    n_classes: int
    n_rows: int
    size: int
    n_evaluations: int  # how often the risks were evaluated
    zero_risk: float  # the largest class risk where all parameters are zero
    flat: bool = False  # whether there are places without any curvature
    convex: bool = True  # whether the class risks are
    rounding: float = 1e-15  # relative to the objective, of slopes

    @property
    @abstractmethod
    def squares(self) -> Vector:
        """Weights of the squared parameters that sum to the coefficients' squared norm.

        Intercepts have weight 0.
        """

    @abstractmethod
    def pack(self, coef: Matrix, intercept: Vector) -> Vector:
        """Coefficients and intercepts as a parameter."""

    @abstractmethod
    def unpack(self, theta: Vector) -> tuple[Matrix, Vector]:
        """A parameter as coefficients ``(n_scores, n_features)`` and intercepts."""

    @abstractmethod
    def evaluate(self, theta: Vector) -> Evaluation:
        """Class risks at ``theta``: one pass over the data."""

    @abstractmethod
    def center(self, state: Evaluation, mass: Vector) -> Evaluation:
        """The state with intercepts that minimise the weighted risk, coefficients unchanged.

        A class without mass may leave the model: its intercept has then gone to minus infinity.
        """

    @abstractmethod
    def class_gradients(self, state: Evaluation) -> Matrix:
        """Gradients of all class risks, shape ``(n_classes, size)``: one pass."""

    def evaluate_with_gradients(self, theta: Vector) -> tuple[Evaluation, Matrix]:
        """``evaluate`` and ``class_gradients`` at once, where one pass can serve both."""
        state = self.evaluate(theta)
        return state, self.class_gradients(state)

    @abstractmethod
    def gradient(self, state: Evaluation, mass: Vector) -> Vector:
        """Gradient of the weighted risk: one pass."""

    @abstractmethod
    def bend(self, state: Evaluation, mass: Vector, direction: Vector) -> Vector:
        """The Hessian of the weighted risk times a direction: one pass."""

    @abstractmethod
    def hessian(self, state: Evaluation, mass: Vector, *, single: bool = False) -> Matrix:
        """Hessian of the weighted risk, regular on the directions that change the model.

        With ``single``, products may be formed in single precision.
        """

    @abstractmethod
    def thin(self, rows_per_class: int) -> "Objective":
        """The same problem on at most so many rows of each class (a fixed random choice)."""
