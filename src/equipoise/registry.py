"""Things of one kind by name: what the command line, saved models, tests and documentation go by.

A set, a loss, a goal, an objective or a solver is one file and one line in its room's registry.
"""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from equipoise.exceptions import InvalidParameterError
from equipoise.text import not_among

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Named entries of one kind, in the order in which they were registered.

    Parameters
    ----------
    kind : str
        What the entries are, for messages: ``"loss"``.
    *entries : classes or objects
        A class is known by its name, an object by its attribute ``name``.

    Examples
    --------
    >>> from equipoise.losses import LOSSES
    >>> LOSSES["zero_one"].reads
    'labels'
    """

    def __init__(self, kind: str, *entries: T) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        for entry in entries:
            self.register(entry)

    def register(self, entry: T) -> T:
        """Add an entry under its own name; it can be used as a decorator."""
        name = entry.__name__ if isinstance(entry, type) else getattr(entry, "name", None)
        if not isinstance(name, str):
            raise InvalidParameterError(f"a {self.kind} must have a name, got {entry!r}.")
        if self._entries.get(name, entry) is not entry:
            raise InvalidParameterError(
                f"{name!r} is already the name of another {self.kind}: {self._entries[name]!r}."
            )
        self._entries[name] = entry
        return entry

    def remove(self, name: str) -> None:
        """Forget an entry."""
        del self._entries[name]

    def find(self, name: object) -> T:
        """The entry of that name; the error lists all names, and says which may be meant."""
        if isinstance(name, str) and name in self._entries:
            return self._entries[name]
        raise InvalidParameterError(not_among(self.kind, name, self._entries))

    def __getitem__(self, name: str) -> T:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Registry({self.kind!r}: {', '.join(self._entries)})"
