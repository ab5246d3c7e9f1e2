"""What a solver hands back: a point, its certificate, how it ended, and how it got there."""

from dataclasses import dataclass
from enum import Enum

from equipoise.arrays import Vector


class Status(Enum):
    """How a solve ended, with the sentence that the user reads."""

    CONVERGED = "The certified gap reached the tolerance."
    STATIONARY = "The optimality conditions hold to the tolerance (no bound without a penalty)."
    STALLED = "Rounding stopped the progress before the gap reached the tolerance."
    MAX_ITER = "The iterations ran out before the gap reached the tolerance."

    @property
    def converged(self) -> bool:
        return self in (Status.CONVERGED, Status.STATIONARY)


@dataclass(frozen=True)
class HistoryRecord:
    """One line of the history of a solve."""

    iteration: int
    evaluations: int
    objective: float
    gap: float
    seconds: float


@dataclass(frozen=True)
class Solution:
    """The best point found, the masses that certify it, and the record of the solve."""

    theta: Vector
    risks: Vector
    mass: Vector
    objective: float
    lower_bound: float
    last_step: float
    n_iter: int
    n_evaluations: int
    status: Status
    history: tuple[HistoryRecord, ...]

    @property
    def gap(self) -> float:
        return self.objective - self.lower_bound
