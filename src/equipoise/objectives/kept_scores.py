"""What is kept of the scores of one point, rows times scores: in memory for the last point alone.

Conventions
-----------
``kept[place]`` : of a block of rows, from memory or computed again. Arrays have shape ``(scores,
rows)`` and are read at ``[:, block]``, tensors have shape ``(rows, scores)``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import ref


class ScoreRoom:
    """Memory for what is kept of the scores at one point, used again for every other.

    ``make`` allocates it; where ``fits`` is false there is none.
    """

    def __init__(self, make: Callable[[], Any], *, fits: bool) -> None:
        self._make, self.fits = make, fits
        self._owner: Callable[[], KeptScores | None] = _nobody
        self.values: Any = None

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        # Sent elsewhere, it is empty: what it holds can be computed again there.
        return partial(ScoreRoom, fits=self.fits), (self._make,)

    def of(self, owner: "KeptScores") -> Any:
        """The memory, which from now on belongs to another point."""
        if self.values is None:
            self.values = self._make()
        # Owners hold the objective, which holds its memory.
        self._owner = ref(owner)
        return self.values

    def belongs_to(self, scores: "KeptScores") -> bool:
        """Whether what the memory holds is of this point."""
        return self._owner() is scores


def _nobody() -> None:
    """The owner of memory that is not used yet."""


class KeptScores:
    """What is kept at one point; ``compute`` does so for a place."""

    def __init__(self, room: ScoreRoom, compute: Callable[[Any], Any]) -> None:
        self._room, self._compute = room, compute

    def write(self) -> Any:
        """Memory to fill, one block after another; None where there is none."""
        return self._room.of(self) if self._room.fits else None

    def changed(self, change: Callable[[Any], Any]) -> tuple["KeptScores", Any]:
        """What is kept after a change of every row, and the memory in which to make the change.

        The memory is None where none holds what is to be changed. Of the point before the change
        everything would be computed again.
        """
        out, held = KeptScores(self._room, lambda place: change(self[place])), None
        if self._room.belongs_to(self):
            held = self._room.of(out)
        return out, held

    def __getitem__(self, place: Any) -> Any:
        return self._room.values[place] if self._room.belongs_to(self) else self._compute(place)
