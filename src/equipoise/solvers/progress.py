"""One line that moves while a solve runs."""

import sys
from shutil import get_terminal_size
from time import perf_counter
from typing import TextIO

from equipoise.solvers.solution import HistoryRecord


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
