"""What pages show and the build computes: the first page's code and picture, a first report.

Everything is written into ``docs/generated``, and kept until the code it comes from changes.
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

INK = {"light": "#222222", "dark": "#ced6dd"}
GRID = {"light": "#d5d9dd", "dark": "#3c4652"}
# What is too dark to be seen on dark ground, and what takes its place.
LIGHTER = {"#1f3b73": "#8ab4f8", "#d1603d": "#f0885f"}


def compute(app: Any) -> None:
    """Make what is missing or older than the code it comes from."""
    source, target = Path(app.srcdir), Path(app.srcdir, "generated")
    target.mkdir(exist_ok=True)
    for script, made, make in [
        (source / "ten_lines.py", target / "ten_lines.txt", _draw),
        (source / "first_report.sh", target / "first_report.txt", _report),
    ]:
        if not made.exists() or made.stat().st_mtime < script.stat().st_mtime:
            made.write_text(make(script, target), encoding="utf-8")


def _draw(script: Path, folder: Path) -> str:
    """Run a script that draws: its picture on light and on dark ground, and what it prints."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    printed = io.StringIO()
    with plt.style.context("equipoise.display.quiet"), redirect_stdout(printed):
        runpy.run_path(str(script))
        figure = plt.gcf()
        figure.set_size_inches(5.2, 2.9)
        for ground in INK:
            _repaint(figure, ground)
            figure.savefig(folder / f"{script.stem}-{ground}.svg", transparent=True)
        plt.close(figure)
    return printed.getvalue()


def _repaint(figure: Any, ground: str) -> None:
    """Text, lines and marks of a figure in colours that can be seen on that ground."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_color(INK[ground])
    for ax in figure.axes:
        ax.tick_params(color=INK[ground], grid_color=GRID[ground])
        for spine in ax.spines.values():
            spine.set_color(INK[ground])
    if ground == "dark":
        for mark in figure.findobj(Line2D):
            mark.set_color(LIGHTER.get(to_hex(mark.get_color()), mark.get_color()))
        for bars in figure.findobj(LineCollection):
            bars.set_color([LIGHTER.get(to_hex(c), c) for c in bars.get_color()])


def _report(script: Path, folder: Path) -> str:
    """Run the command of a script on the bundled data: the page it writes, and what it prints."""
    from equipoise.datasets import load_thyroid

    place = folder / "extra"
    place.mkdir(exist_ok=True)
    load_thyroid(as_frame=True).frame.to_csv(place / "thyroid.csv", index=False)
    command = shlex.split(script.read_text("utf-8").replace("\\\n", " "), comments=True)
    ran = subprocess.run(
        [sys.executable, "-m", "equipoise.cli", *command[1:]],
        cwd=place, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    (place / "thyroid.csv").unlink()
    # Long lines end where those of a terminal would.
    return (
        "\n".join(
            line if len(line) <= 96 else textwrap.fill(line, 96) for line in ran.stdout.splitlines()
        )
        + "\n"
    )
