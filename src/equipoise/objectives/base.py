r"""The contract of every objective: class risks and derivatives on data that no solver sees.

Conventions
-----------
``theta`` : flat float64 vector of length ``size``. Its layout belongs to the features; ``unfold``
    shows it as ``(n_scores, n_features + fit_intercept)`` with the intercepts last.
``mass`` : float64 vector with one entry per class.
``state`` : a point with what was computed there and is needed again.
``shift`` : a change of the intercepts, one a score, in raw units; minus infinity takes a class out.
Where the rows are, and in which precision, is the objective's business: parameters, risks,
gradients and Hessians are float64 arrays in memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from equipoise.arrays import Matrix, Vector, to_numpy
from equipoise.losses.base import ScoreKernel
from equipoise.objectives.centering import ShiftMoments, center_shift
from equipoise.objectives.matrices import Features

# FEW_DIGITS_PATIENCE: iterations without progress, after which passes in float32 end;
# SINGLE_ROUNDING: of gradients in single precision, relative to the objective.
FEW_DIGITS_PATIENCE, SINGLE_ROUNDING = 5, 1e-7
T = TypeVar("T")
O = TypeVar("O", bound="Objective")  # noqa: E741  an objective


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A parameter, the class risks there, and what is kept of the scores for derivatives."""

    theta: Vector
    risks: Vector
    kept: Any


class Objective(ABC):
    """Class risks of a linear model, and their derivatives by its parameters.

    The features lay out a parameter and know its units; the kernel is the loss.
    """

    n_rows: int
    # Added to the class risks.
    offsets: Vector | float = 0.0
    # Rows of the sample that thinned problems are taken from; 0 where they come from all rows.
    sample_rows: int = 0
    # A pass over fewer rows costs no less.
    coarse_rows: int = 0
    # Newton steps in the intercepts end where they promise less than this share of the risk.
    no_gain: float = -np.inf
    # The precision of the returned coefficients and intercepts.
    precision: Any = np.float64
    # Iterations without progress after which a solve ends; None for the default.
    patience: int | None = None

    def __init__(self, features: Features, kernel: ScoreKernel, n_classes: int) -> None:
        self.features, self.kernel, self.n_classes = features, kernel, n_classes
        self.n_rows, self.size = features.n_rows, features.size
        self.n_evaluations = 0  # how often the risks were evaluated
        self.flat = kernel.flat  # whether the loss has no curvature at some scores
        self.convex = kernel.convex  # whether the class risks are
        # Rounding of gradients, relative to the objective: shifts are rounded, then taken off.
        shift, scale = features.moments or (0.0, 1.0)
        self.rounding = 1e-15 * (1 + float(np.max(np.abs(shift) / scale)))

    def blur(self, theta: Vector) -> float:
        """The largest change of a score by rounding where large values cancel."""
        return self.features.blur(theta)

    @abstractmethod
    def evaluate(self, theta: Vector) -> Evaluation:
        """Class risks at ``theta``: one pass over the data."""

    @abstractmethod
    def gradient(self, state: Evaluation, mass: Vector) -> Vector:
        """Gradient of the weighted risk: one pass at most."""

    @abstractmethod
    def hessian_product(self, state: Evaluation, mass: Vector, direction: Vector) -> Vector:
        """The Hessian of the weighted risk times a direction: one pass."""

    def share(self, work: Callable[[slice], T], pieces: Iterable[slice]) -> Iterable[T]:
        """Results of work on pieces of parameters, in their order; perhaps by threads."""
        return map(work, pieces)

    @abstractmethod
    def thin(self, rows_per_class: int) -> "Objective":
        """The same problem on about ``rows_per_class`` rows of each class, always the same ones.

        Their shares are those of all rows that they stand for.
        """

    @abstractmethod
    def growths(self, state: Evaluation, shift: Vector) -> Vector:
        """Growth of the class risks by a shift of the scores."""

    @abstractmethod
    def moments_at(self, state: Evaluation, shift: Vector, mass: Vector) -> ShiftMoments:
        """Growth of the risks, gradient and Hessian of the weighted risk after a shift.

        The Hessian is a matrix, or with more than ``MANY_INTERCEPTS`` its diagonal.
        """

    @abstractmethod
    def shifted(self, state: Evaluation, shift: Vector, theta: Vector, risks: Vector) -> Evaluation:
        """The state after a shift of the scores, with the parameter and the risks there."""

    def intercept_inverse(self, state: Evaluation, mass: Vector) -> Callable[[Vector], Vector]:
        """An approximate inverse Hessian in the intercepts of a centered state."""
        return lambda gradients: gradients

    def intercept_product(
        self, state: Evaluation, shift: Vector, mass: Vector
    ) -> Callable[[Vector], Vector] | None:
        """Products with the Hessian of the weighted risk in the intercepts, after a shift.

        None where each would be a pass over data that are not in memory.
        """
        return None

    def _like(self, other: O) -> O:
        """Another objective over rows of this one, with the same offsets."""
        other.offsets = self.offsets
        return other

    def vector(self, values: Vector) -> Vector:
        """A parameter in the memory of the objective, for solvers to start from."""
        return values

    def exactly(self, state: Evaluation) -> Evaluation:
        """The state with risks as exact as certificates need them."""
        return state

    def rougher(self) -> "Objective | None":
        """The same problem, evaluated in fewer digits and less time; None where there is none."""
        return None

    def sharper(self) -> "Objective | None":
        """The same problem, evaluated more exactly; None where that is not possible."""
        return None

    @property
    def has_every_intercept(self) -> bool:
        """Whether every class has an intercept."""
        return self.features.fit_intercept and self.features.n_scores == self.n_classes

    @cached_property
    def squares(self) -> Vector:
        """Weights of the squared parameters that sum to the coefficients' squared norm.

        Intercepts have weight 0.
        """
        features, row = self.features, np.zeros(self.features.width)
        row[: features.n_features] = 1.0 if features.scale is None else (1 / features.scale) ** 2
        return self.vector(features.fold(np.tile(row, (features.n_scores, 1))))

    def pack(self, coef: Matrix, intercept: Vector) -> Vector:
        """Coefficients and intercepts as a parameter."""
        intercept = self.features.at_origin(coef, intercept)
        columns = [coef, intercept[:, None]] if self.features.fit_intercept else [coef]
        return self.features.standard(self.features.fold(np.hstack(columns)))

    def unpack(self, theta: Vector) -> tuple[Matrix, Vector]:
        """A parameter as coefficients ``(n_scores, n_features)`` and intercepts."""
        raw = self.features.unfold(self.features.raw(theta))
        coef = np.ascontiguousarray(raw[:, : self.features.n_features])
        intercept = raw[:, -1].copy() if self.features.fit_intercept else np.zeros(len(raw))
        return coef, self.features.at_zero(coef, intercept)

    def model(self, theta: Vector) -> tuple[Matrix, Vector]:
        """A parameter as coefficients and intercepts in the precision that they are returned in."""
        return self.features.model(to_numpy(theta), self.precision)

    def apart(self, theta: Vector) -> Vector:
        """The parameter without what all scores have in common: the same risks, less penalty."""
        return self.vector(self.features.apart(to_numpy(theta)))

    def returned(self, theta: Vector, enough: float) -> Evaluation | None:
        """The state of what ``model`` returns; None where rounding moves no score by ``enough``."""
        coef, intercept = self.model(theta)
        if self.features.spill(coef, intercept, self.precision) < enough:
            return None
        return self.exactly(self.evaluate(self.vector(self.pack(coef, intercept))))

    def center(self, state: Evaluation, mass: Vector, left: float = 0.0) -> Evaluation:
        """The state with intercepts that minimise the weighted risk, coefficients unchanged.

        They may leave a gradient of the length ``left``.
        A class without mass may leave the model: its intercept has then gone to minus infinity.
        """
        if not self.features.fit_intercept:
            return state
        shift, growths = center_shift(self, state, mass, left)
        risks = state.risks + growths
        if np.any(np.isinf(shift)) and np.count_nonzero(mass) == 1:
            # The only class left is certain, however small it was.
            risks[mass > 0] = np.broadcast_to(self.offsets, risks.shape)[mass > 0]
        return self.with_shift(state, shift, risks)

    def with_shift(self, state: Evaluation, shift: Vector, risks: Vector) -> Evaluation:
        """The state after a shift of the intercepts, with the risks there."""
        step = np.where(np.isfinite(shift), shift, 0.0) / self.features.unit
        return self.shifted(state, shift, self._with_step(state.theta, step), risks)

    def _with_step(self, theta: Vector, step: Vector) -> Vector:
        """A parameter after a step in its intercepts."""
        whole = np.zeros((self.features.n_scores, self.features.width))
        whole[:, -1] = step
        return theta + self.features.fold(whole)
