"""What is kept of the scores of one point, classes times rows: in memory for the last point alone.

Conventions
-----------
``kept[:, block]`` : of a block of rows, from memory or computed again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Matrix, Vector
from equipoise.losses.base import ScoreKernel

# MOST_BYTES: of what is kept; of more, everything is computed again where it is read.
MOST_BYTES = 1 << 30


class ScoreRoom:
    """Memory for what is kept of the scores at one point, used again for every other."""

    def __init__(self, n_scores: int, n_rows: int, dtype: Any, most_bytes: int = MOST_BYTES):
        self.shape, self._dtype = (n_scores, n_rows), np.dtype(dtype)
        self.fits = n_scores * n_rows * self._dtype.itemsize <= most_bytes
        self.owner: KeptScores | None = None

    def of(self, owner: "KeptScores") -> Matrix:
        """The memory, which from now on belongs to another point."""
        if self.owner is None:
            self.values = np.empty(self.shape, self._dtype)
        self.owner = owner
        return self.values


class KeptScores:
    """What is kept at one point; ``compute`` does so for a block of rows."""

    def __init__(self, room: ScoreRoom, compute: Callable[[slice], Matrix]) -> None:
        self._room, self._compute = room, compute

    def write(self) -> Matrix | None:
        """Memory to fill, one block after another; None where there is none."""
        return self._room.of(self) if self._room.fits else None

    def __getitem__(self, place: tuple[slice, slice]) -> Matrix:
        if self._room.owner is self:
            return self._room.values[place]
        start, stop, _ = place[1].indices(self._room.shape[1])
        return self._compute(slice(start, stop))[place[0]]


@dataclass(frozen=True)
class ShiftedScores:
    """What is kept after a shift of the scores, computed where it is read."""

    kernel: ScoreKernel
    kept: "KeptScores | ShiftedScores"
    shift: Vector

    def __getitem__(self, place: tuple[slice, slice]) -> Matrix:
        return self.kernel.moved(self.kept[place], self.shift)
