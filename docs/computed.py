"""What pages show and the build computes: the output of the first example, a first report.

Everything is written into ``docs/generated``, and kept until the script that prints it changes.
"""

from __future__ import annotations

import io
import runpy
import shlex
import subprocess
import sys
import textwrap
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def compute(app: Any) -> None:
    """Compute what is missing, or older than the script that prints it."""
    source, target = Path(app.srcdir), Path(app.srcdir, "generated")
    target.mkdir(exist_ok=True)
    for script, output, run in [
        (source / "first_example.py", target / "first_example.txt", _printed),
        (source / "first_report.sh", target / "first_report.txt", _report),
    ]:
        if not output.exists() or output.stat().st_mtime < script.stat().st_mtime:
            output.write_text(run(script, target), encoding="utf-8")


def _printed(script: Path, _folder: Path) -> str:
    """Run a script, and return what it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        runpy.run_path(str(script))
    return printed.getvalue()


def _report(script: Path, folder: Path) -> str:
    """Run the command of a script on the bundled data; return what it prints beside its page."""
    from equipoise.datasets import load_thyroid

    pages = folder / "extra"
    pages.mkdir(exist_ok=True)
    load_thyroid(as_frame=True).frame.to_csv(pages / "thyroid.csv", index=False)
    command = shlex.split(script.read_text("utf-8").replace("\\\n", " "), comments=True)
    done = subprocess.run(
        [sys.executable, "-m", "equipoise.cli", *command[1:]],
        cwd=pages,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    (pages / "thyroid.csv").unlink()
    # Long lines end where those of a terminal would.
    lines = [textwrap.fill(line, 96) for line in done.stdout.splitlines()]
    return "\n".join([*lines, ""])
