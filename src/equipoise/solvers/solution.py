"""What a solver hands back: a point, its certificate, how it ended, and how it got there.

And the one line that moves while it is under way.
"""

import sys
from dataclasses import dataclass
from enum import Enum
from shutil import get_terminal_size
from time import perf_counter
from typing import TextIO

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


class Progress:
    """Writes the current state of a solve over itself on a terminal, and the end everywhere.

    It also keeps the clock that the history is written by.
    """

    def __init__(self, verbose: int = 0, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._on = verbose > 0
        self._moving = self._on and self._stream.isatty()
        # A line as long as the terminal is wide would scroll.
        self._width = get_terminal_size().columns - 1
        self._began = perf_counter()

    def seconds(self) -> float:
        """Time since the solve was asked for."""
        return perf_counter() - self._began

    def show(self, record: HistoryRecord, target: float) -> None:
        if self._moving:
            line = _line(record, target)[: self._width]
            self._stream.write("\r" + line.ljust(self._width))
            self._stream.flush()

    def end(self, record: HistoryRecord, target: float, sentence: str) -> None:
        if self._on:
            start, width = ("\r", self._width) if self._moving else ("", 0)
            self._stream.write(f"{start}{_line(record, target).ljust(width)}\n{sentence}\n")
            self._stream.flush()


def _line(record: HistoryRecord, target: float) -> str:
    return (
        f"iteration {record.iteration}, {record.evaluations} evaluations: "
        f"objective {record.objective:.6g}, gap {record.gap:.1e} (target {target:.1e})"
    )
