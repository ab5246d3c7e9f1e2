"""Where commands write: results to stdout, everything else to stderr, files where they may."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from equipoise.text import printable

EXIT_CODES = """\b
Exit codes: 0 done, 1 a problem with the data or the files, 2 wrong usage, 130 interrupted.
"""


class Output:
    """Writes for a person, for a script (one JSON object), or, if quiet, nothing but errors."""

    def __init__(self, *, quiet: bool, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json

    def warn(self, sentences: Sequence[str]) -> None:
        """Warnings for a person; in JSON they are part of the result."""
        if not self.quiet and not self.as_json:
            for sentence in sentences:
                click.echo(f"Warning: {printable(sentence)}", err=True)

    def show(self, lines: Sequence[str], result: dict[str, Any], *, err: bool = False) -> None:
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


def _plain(value: Any) -> Any:
    """A value that JSON can hold: no NaN, no infinity, no NumPy."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_output(out: str, *inputs: str) -> None:
    """Refuse a folder, a place that is not there, and any of the inputs, before any work."""
    from equipoise.exceptions import InvalidInputError
    from equipoise.files import check_place

    place = check_place(out)
    for given in inputs:
        if place.exists() and Path(given).exists() and place.samefile(given):
            raise InvalidInputError(f"{out} is an input: writing would destroy it.")


class GoalText(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A goal as a text; what is none is wrong usage."""

    name = "goal"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from equipoise.exceptions import InvalidInputError
        from equipoise.goals import parse_goal

        try:
            return parse_goal(value)
        except InvalidInputError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        from equipoise.goals import GOAL_WORDS, goal_names

        forms = [*GOAL_WORDS, "lcvar:", *(f"{name}(" for name in goal_names())]
        return [CompletionItem(form) for form in forms if form.startswith(incomplete)]


# Options that several commands have

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object."
)
target_option = click.option(
    "-t", "--target", required=True, help="Column that holds the class of each row."
)
drop_option = click.option(
    "--drop", multiple=True, metavar="COLUMN", help="Column to leave out; repeatable."
)
labels_option = click.option(
    "--text-labels", is_flag=True, help="Every distinct number in the target is a class."
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    help="Seed of everything random.",
)
