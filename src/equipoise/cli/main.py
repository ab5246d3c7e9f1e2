"""What all commands share: the group that loads them when used, their output, options and errors.

Results go to stdout, everything else to stderr. Every error ends in one sentence and an
exit code: 1 for a problem with data or files, 2 for wrong usage, 130 for an interruption (128 and
the signal's number for other signals).
``--debug``, before or after the command, shows the traceback instead.
"""

import json
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from time import monotonic
from typing import Any, TextIO

import click
from click.shell_completion import CompletionItem

from equipoise import __version__
from equipoise.text import printable

_DEBUG = "equipoise.debug"

# _SECONDS, _SHARE: seconds since the last line about progress, and share of the work done since,
# before the next line where stderr is not a terminal.
_SECONDS, _SHARE = 10.0, 0.1 - 1e-9

# Each is a function of a file of its name.
COMMANDS = {
    "fit": "Fit a model to a table and save it.",
    "predict": "Apply a saved model to the rows of a table.",
    "evaluate": "Measure a saved model's class risks on a table.",
    "report": "Compare models on a table, and write a page.",
    "reproduce": "Reproduce the paper's figures and tables.",
}

_EXIT_CODES = """

\b
Exit codes: 0 done, 1 a problem with the data or the files, 2 wrong usage, 130 interrupted.
"""


class Commands(click.Group):
    """The commands of :data:`COMMANDS`; listing them imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        loaded: click.Command = getattr(import_module(f"equipoise.cli.{cmd_name}"), cmd_name)
        return loaded

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as error:
            kept = " What was finished is kept." if ctx.invoked_subcommand == "reproduce" else ""
            click.echo(f"Interrupted.{kept}", err=True)
            ctx.exit(128 + (error.args[0] if error.args else signal.SIGINT))
        except Exception as error:
            # Where nobody reads the output any more, click ends the run quietly.
            if ctx.meta.get(_DEBUG) or isinstance(error, BrokenPipeError):
                raise
            raise click.ClickException(_sentence(error)) from error


def _sentence(error: Exception) -> str:
    """An error as one line for a person."""
    from equipoise.exceptions import EquipoiseError

    if isinstance(error, OSError) and error.strerror and error.filename:
        text = f"{error.strerror}: '{error.filename}'"
    elif isinstance(error, EquipoiseError | OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error} (this is a bug; --debug shows where it happened)"
    return _line(text)


def _show_warning(message: Warning | str, *_details: Any, **_more: Any) -> None:
    """A warning without file names and source lines."""
    click.echo(f"Warning: {_line(str(message))}", err=True)


def _line(text: str) -> str:
    """A text on one line of a terminal."""
    from equipoise.exceptions import bounded

    return printable(bounded(" ".join(text.split())))


def _encodable(text: str, stream: TextIO) -> str:
    """The text, with escapes for what the stream cannot encode, such as bytes in file names."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


class Output:
    """Prints for a person, for a script (one JSON object), or, if quiet, nothing but errors."""

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.as_json = as_json
        self.talks = not quiet and not as_json

    def show(
        self, lines: list[str], result: dict[str, Any], notes: Sequence[str], *, err: bool = False
    ) -> None:
        """Print the result and the warnings: lines for a person, an object for a script."""
        if self.as_json:
            text = json.dumps({**result, "warnings": notes}, default=lambda number: number.item())
            # NaN and infinity, which JSON does not have, become null.
            click.echo(json.dumps(json.loads(text, parse_constant=lambda _: None)))
        elif self.talks:
            for note in notes:
                click.echo(f"Warning: {printable(note)}", err=True)
            for line in lines:
                click.echo(_encodable(line, sys.stderr if err else sys.stdout), err=err)

    @contextmanager
    def progress(self, length: int, label: str) -> Iterator[Callable[..., None]]:
        """A function that moves a bar on a terminal; elsewhere it prints lines of long work."""
        at_terminal, length = sys.stderr.isatty(), max(1, length)
        began = monotonic()
        last = [began, 0.0]  # seconds and share of the last line
        with click.progressbar(
            length=length, label=label, file=sys.stderr, hidden=not self.talks or not at_terminal
        ) as bar:

            def reach(position: int, label: str | None = None) -> None:
                bar.label = bar.label if label is None else label
                bar.update(max(0, position - bar.pos))
                bar.render_progress()
                now, share = monotonic(), bar.pos / length
                late = now - last[0] >= _SECONDS and share - last[1] >= _SHARE and share < 1
                if self.talks and not at_terminal and late:
                    last[:] = now, share
                    click.echo(f"{bar.label}: {share:.0%}, {now - began:.0f} s", err=True)

            yield reach


class GoalText(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A goal as text; anything else is wrong usage."""

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


def goal_option(**more: Any) -> Callable[[Any], Any]:
    """An option for one goal or several."""
    return click.option("-g", "--goal", "goal", type=GoalText(), **more)


def _remember_debug(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUG] = True


_DEBUG_OPTION = click.Option(
    ["--debug"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_remember_debug,
    help="Show the traceback of an error.",
)
_QUIET_OPTION = click.Option(["-q", "--quiet"], is_flag=True, help="Say nothing but errors.")
_JSON_OPTION = click.Option(
    ["--json", "as_json"], is_flag=True, help="Print the result as one JSON object."
)
# Arguments and options of the commands that fit to a table.
TABLE_OPTIONS: tuple[click.Parameter, ...] = (
    click.Argument(["table"], type=click.Path()),
    click.Option(
        ["-t", "--target"], required=True, help="Column that holds the class of each row."
    ),
    click.Option(
        ["--drop"], multiple=True, metavar="COLUMN", help="Column to leave out; repeatable."
    ),
    click.Option(
        ["--text-labels"], is_flag=True, help="Every distinct number in the target is a class."
    ),
    click.Option(
        ["--seed"], type=click.IntRange(0, 2**32 - 1), default=0, help="Seed of everything random."
    ),
)
MEMORY_OPTION = click.option(
    "--memory",
    default=None,
    metavar="SIZE",
    help="Tables that would take more, such as '4 GiB', are read in parts.  [default: half of the "
    "machine's]",
)


def command(
    epilog: str, *options: click.Parameter, has_json: bool = True
) -> Callable[[Callable[..., None]], click.Command]:
    """A command whose function gets an ``output``; ``options`` come before its own."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @wraps(function)
        def run(*, quiet: bool, as_json: bool = False, **values: Any) -> None:
            function(output=Output(quiet=quiet, as_json=as_json), **values)

        made = click.command(epilog=epilog.rstrip() + _EXIT_CODES, params=list(options))(run)
        made.params += [_QUIET_OPTION, *([_JSON_OPTION] if has_json else []), _DEBUG_OPTION]
        return made

    return decorate


@click.group(
    cls=Commands,
    params=[_DEBUG_OPTION],
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="equipoise")
def main() -> None:
    """Class weights you do not have to guess."""
