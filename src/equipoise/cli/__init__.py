"""The command line, ``equipoise COMMAND``. Nothing is imported until a command is used."""

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``equipoise`` command."""
    try:
        from equipoise.cli.main import main as commands
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        # Not MissingExtraError: its module would load scikit-learn to say one sentence.
        sys.exit("Error: the command line needs click: pip install 'equipoise[cli]'")
    commands()
