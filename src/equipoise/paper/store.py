"""Finished units on disk: a study that was stopped goes on where it was."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from equipoise.paper.study import Record, Unit

# What is in the folder is made again by running the studies.
_IGNORE = "# Finished pieces of work, kept so that they are not computed twice.\n*\n"


@dataclass(frozen=True)
class Store:
    """A folder with one JSON file per finished unit."""

    folder: Path

    def open(self) -> None:
        """Make the folder, or fail now rather than after an hour of work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / ".gitignore", _IGNORE)

    def get(self, unit: Unit) -> list[Record] | None:
        """The records of a finished unit; None if it must be computed."""
        try:
            stored = json.loads(self._file(unit).read_text(encoding="utf-8"))
            records: list[Record] = stored["records"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return records

    def put(self, unit: Unit, records: list[Record]) -> None:
        """Keep the records of a unit."""
        content = {"kind": unit.kind, "settings": dict(unit.settings), "records": records}
        write_text(self._file(unit), json.dumps(content, indent=1) + "\n")

    def _file(self, unit: Unit) -> Path:
        return self.folder / f"{unit.key}.json"


def write_text(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
