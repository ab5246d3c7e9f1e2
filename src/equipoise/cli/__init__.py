"""The command line, ``equipoise COMMAND``. Nothing is imported until a command is used."""

import signal
import sys
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``equipoise`` command."""
    # However it is ended, open files are closed and half a file is removed, as after an interrupt.
    for name in {"SIGTERM", "SIGHUP"} & set(dir(signal)):
        number = getattr(signal, name)
        # After nohup, for example, the signal is ignored, and stays so.
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)
    try:
        from equipoise.cli.main import main as commands
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        # Not MissingExtraError: its module would load scikit-learn to say one sentence.
        sys.exit("Error: the command line needs click: pip install 'equipoise[cli]'")
    commands()


def _interrupt(number: int, _frame: Any) -> None:
    # A second signal must not end the cleaning up.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt(number)
