"""The group of commands: loaded when used, with one way of failing.

Whatever goes wrong ends in one sentence on stderr and an exit code: 1 for a problem with data or
files, 2 for wrong usage, 130 for an interruption. ``--debug``, before or after the command, shows
the traceback instead.
"""

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from equipoise import __version__
from equipoise.text import printable

INTERRUPTED = 130
_DEBUG = "equipoise.debug"

# Each is a function of a file of its name.
COMMANDS = {
    "fit": "Fit a model to a table and save it.",
    "predict": "Apply a saved model to the rows of a table.",
    "evaluate": "Measure a saved model's class risks on a table.",
    "report": "Tell the whole story of a table as a page.",
    "reproduce": "Make the paper's figures and tables again.",
}


class Commands(click.Group):
    """The commands of :data:`COMMANDS`; listing them imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"equipoise.cli.{cmd_name}"), cmd_name)
        if all(parameter.name != "debug" for parameter in command.params):
            command.params.append(_debug_option())
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _one_line_warnings():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted. What was finished is kept.", err=True)
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if ctx.meta.get(_DEBUG) or _is_closed_pipe(error):
                raise
            raise click.ClickException(sentence(error)) from error


def sentence(error: Exception) -> str:
    """An error as one line for a person."""
    from equipoise.exceptions import EquipoiseError

    if isinstance(error, OSError) and error.strerror and error.filename:
        text = f"{error.strerror}: '{error.filename}'"
    elif isinstance(error, EquipoiseError | OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error} (this is a bug; --debug shows where it happened)"
    return printable(" ".join(text.split()))


def _is_closed_pipe(error: Exception) -> bool:
    """Whether nobody reads the output any more; click ends such a run quietly."""
    return isinstance(error, OSError) and error.errno == errno.EPIPE


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Warnings without file names and source lines."""

    def show(message: Warning | str, *_details: Any, **_more: Any) -> None:
        click.echo(f"Warning: {printable(' '.join(str(message).split()))}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _debug_option() -> click.Option:
    def remember(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[_DEBUG] = True

    return click.Option(
        ["--debug"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=remember,
        help="Show the traceback of an error.",
    )


@click.group(
    cls=Commands,
    params=[_debug_option()],
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="equipoise")
def main() -> None:
    """Class weights you do not have to guess."""
