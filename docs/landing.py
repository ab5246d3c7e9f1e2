"""The first page's code, run: what it prints, and its picture on light and on dark ground."""

from __future__ import annotations

import io
import runpy
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

INK = {"light": "#222222", "dark": "#ced6dd"}
GRID = {"light": "#c8c8c8", "dark": "#48566b"}
# What is too dark to be seen on dark ground, and what takes its place.
LIGHTER = {"#1f3b73": "#8ab4f8", "#d1603d": "#f0885f"}


def draw_landing(app: Any) -> None:
    """Write ``landing.txt`` and two pictures, unless they are newer than the code."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    source, folder = Path(app.srcdir, "ten_lines.py"), Path(app.srcdir, "generated")
    text = folder / "landing.txt"
    if text.exists() and text.stat().st_mtime > source.stat().st_mtime:
        return
    folder.mkdir(exist_ok=True)
    printed = io.StringIO()
    with redirect_stdout(printed):
        runpy.run_path(str(source))
    figure = plt.gcf()
    for ground in ("light", "dark"):
        _repaint(figure, ground)
        figure.savefig(folder / f"landing-{ground}.svg", transparent=True, bbox_inches="tight")
    plt.close(figure)
    text.write_text(printed.getvalue(), encoding="utf-8")


def _repaint(figure: Any, ground: str) -> None:
    """Text, lines and marks of a figure in colours that can be seen on that ground."""
    from matplotlib.colors import to_hex
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_color(INK[ground])
    for ax in figure.axes:
        ax.tick_params(colors=INK[ground], grid_color=GRID[ground])
        for spine in ax.spines.values():
            spine.set_color(INK[ground])
    if ground == "dark":
        for artist in figure.findobj(lambda a: hasattr(a, "set_color") and hasattr(a, "get_color")):
            color = artist.get_color()
            if isinstance(color, str) and to_hex(color) in LIGHTER:
                artist.set_color(LIGHTER[to_hex(color)])
