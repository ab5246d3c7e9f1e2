"""What commands say, and where: results to stdout, everything else to stderr."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

_LONGEST_NAME = 60


class Voice:
    """Speaks to a person, to a script (one JSON object), or, if quiet, only of what went wrong."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet = quiet
        self.as_json = as_json

    def warn(self, sentences: Sequence[str]) -> None:
        """Warnings for a person; in JSON they are part of the result."""
        if not self.quiet and not self.as_json:
            for sentence in sentences:
                click.echo(f"Warning: {printable(sentence)}", err=True)

    def tell(self, lines: Sequence[str], result: dict[str, Any], *, err: bool = False) -> None:
        """The result: lines for a person, an object for a script."""
        if self.as_json:
            click.echo(json.dumps(_plain(result), ensure_ascii=True, allow_nan=False))
        elif not self.quiet:
            for line in lines:
                click.echo(line, err=err)

    @contextmanager
    def progress(self, length: int, label: str) -> Iterator["Bar"]:
        """A bar on a terminal, and nothing at all in a pipe."""
        if self.quiet or self.as_json or not sys.stderr.isatty():
            yield Bar(None)
            return
        with click.progressbar(length=max(1, length), label=label, file=sys.stderr) as bar:
            yield Bar(bar)


class Bar:
    """A progress bar, or the absence of one."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def reach(self, position: int, label: str | None = None) -> None:
        """Move to a position."""
        if self._bar is not None:
            if label is not None:
                self._bar.label = label
            self._bar.update(max(0, position - self._bar.pos))
            self._bar.render_progress()


def printable(text: str) -> str:
    """A text that cannot move the cursor or colour the terminal."""
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def shown(name: Any) -> str:
    """A class name in one line of a table."""
    text = printable(str(name))
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 3]}..."


def percent(value: float | None) -> str:
    """A share as a percentage."""
    return "-" if value is None else f"{100 * value:.3g}%"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, *rows):
        cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return lines


def _plain(value: Any) -> Any:
    """A value that JSON can hold: no NaN, no infinity, no NumPy."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
