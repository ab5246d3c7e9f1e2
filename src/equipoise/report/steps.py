"""How far a comparison has come, told to whoever wants to know."""

from collections.abc import Callable

# Called with the share of the work that is done, from 0 to 1, and what comes next.
Told = Callable[[float, str], None]


class Steps:
    """Counts units of work and tells of them."""

    def __init__(self, total: float, told: Told | None) -> None:
        self._total, self._done, self._told = max(total, 1.0), 0.0, told

    def begin(self, what: str) -> None:
        """Tell what comes next."""
        if self._told is not None:
            self._told(min(self._done / self._total, 1.0), what)

    def did(self, units: float) -> None:
        """Count work as done."""
        self._done += units

    def end(self) -> None:
        """Tell that all is done."""
        if self._told is not None:
            self._told(1.0, "done")
