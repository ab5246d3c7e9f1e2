"""What an objective may offer beside its contract: small protocols that solvers name.

A solver lists the protocols that it requires; the error about a missing one is made from them.
"""

from typing import Any, Protocol, runtime_checkable

from equipoise.arrays import Matrix, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.losses.base import TrainedLoss
from equipoise.objectives.base import Evaluation, Objective


class Inverse(Protocol):
    """An approximate inverse of a Hessian."""

    def apply(self, rows: Matrix) -> Any:
        """The inverse times each row."""


@runtime_checkable
class ClassGradients(Protocol):
    """Gradients of all class risks, ``(n_classes, size)``."""

    def evaluate_with_gradients(self, theta: Vector) -> tuple[Evaluation, Matrix]:
        """``evaluate`` and ``class_gradients`` in one pass."""

    def class_gradients(self, state: Evaluation, spent: Matrix | None = None) -> Matrix:
        """One pass at most; the result may be written into the memory of ``spent`` gradients."""


@runtime_checkable
class Hessians(Protocol):
    """The Hessian of the weighted risk, ``(size, size)``."""

    def hessian(self, theta: Vector, mass: Vector, *, single: bool = False) -> Matrix:
        """Regular on the directions that change the model.

        With ``single``, products may be formed in single precision.
        """


@runtime_checkable
class Diagonals(Protocol):
    """The diagonal of the Hessian of the weighted risk."""

    def hessian_diagonal(self, state: Evaluation, mass: Vector) -> Any:
        """Two products with the rows at most; None where the loss keeps no probabilities."""


@runtime_checkable
class ScoreInverses(Protocol):
    """An inverse of the Hessian's diagonal blocks, one block a score."""

    def score_inverse(self, state: Evaluation, mass: Vector, ridges: Vector) -> Inverse | None:
        """Of the weighted risk plus a penalty; None where it would cost more than it saves."""


@runtime_checkable
class RiskGradients(Protocol):
    """Gradients of all class risks along the intercepts, where every class has one."""

    @property
    def keeps_probabilities(self) -> bool:
        """Whether these are mean probabilities, less one for the class itself."""

    def risk_gradients(self, state: Evaluation, shift: Vector) -> tuple[Vector, Any]:
        """Growth of the class risks after a shift, and their gradients, classes times classes.

        The gradients stay in the memory of the objective.
        """

    def mean_probabilities(self, state: Evaluation, shift: Vector, mass: Vector) -> Vector:
        """Mean probabilities after a shift, weighted by the masses: two products."""


def moves_probabilities(objective: Objective) -> bool:
    """Whether every class has an intercept, along which risks have gradients: probabilities."""
    if not isinstance(objective, RiskGradients):
        return False
    return objective.has_every_intercept and objective.keeps_probabilities


@runtime_checkable
class OtherLosses(Protocol):
    """The same rows with another loss."""

    def with_loss(self, loss: TrainedLoss) -> Objective:
        """An objective of the same risks under another loss."""


def offered(objective: object, capability: type, *, user: str) -> Any:
    """The objective, as one with a capability that its ``user`` requires.

    Examples
    --------
    >>> offered(object(), Hessians, user="A Newton step")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    equipoise.exceptions.InvalidParameterError: A Newton step requires Hessians (hessian) of ...
    """
    if isinstance(objective, capability):
        return objective
    methods = ", ".join(sorted(name for name in vars(capability) if not name.startswith("_")))
    raise InvalidParameterError(
        f"{user} requires {capability.__name__} ({methods}) of the objective, which "
        f"{type(objective).__name__} does not offer."
    )
