"""What all displays share: marks that survive greyscale, and names that fit.

Colours differ in lightness and every series also has its own marker or hatch, so that a grey print
says the same. Names are text: dollar signs start no formula and line breaks no new line.
"""

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Matrix
from equipoise.extras import require

# From dark to light, then again: neighbours differ in lightness, the marker tells the rest apart.
COLORS = ("#1f3b73", "#d1603d", "#4f9d86", "#9a6fb0", "#c99a2e", "#6b6b6b")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GRID = "#c8c8c8"
INK = "#222222"
# Small text and the smallest that can be read, in points; height of a line and width of a letter.
SMALL, SMALLEST, LINE, LETTER = 8.3, 5.0, 1.25, 0.62
# With more classes than this, names have one line each.
FEW = 12


def height_for(n_lines: float) -> float:
    """Inches for a chart with ``n_lines`` lines of text along its vertical axis."""
    # Labels below, legend and title above take the first part; nothing is taller than a page.
    return min(1.35 + 0.21 * max(n_lines, 5.0), 14.0)


def size_for(names: Any, lines: float) -> tuple[float, float]:
    """Width and height of a chart with ``lines`` lines of text a name."""
    return (4.8 if len(names) <= FEW else 6.4), height_for(len(names) * lines)


def name_figure(figure: Any, title: str) -> None:
    """A title above everything, wrapped to the width of the figure."""
    lines = textwrap.wrap(title, int(12 * figure.get_figwidth()))
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize="medium", color=INK)


def in_percent(*axes: Any) -> None:
    """Shares as percentages along axes such as ``ax.xaxis``."""
    ticker = require("matplotlib.ticker", extra="plot")
    for axis in axes:
        # There are no shares above one, whatever the room beside them.
        shown = ticker.FuncFormatter(lambda x, _: f"{100 * x:.6g}%" if x < 1 + 1e-9 else "")
        axis.set_major_formatter(shown)


def room_for(ax: Any, n: int, axis: str = "y") -> float:
    """The size in points of a line of text for each of ``n`` along an axis, or their width."""
    size = ax.figure.get_size_inches() * ax.get_position().size
    return float(72 * size[1] / n / LINE if axis == "y" else 72 * size[0] / n)


def label_axes(ax: Any, x: str, y: str = "", *, grid: str) -> None:
    """Small labels, a quiet grid behind the data, and no box around it."""
    ax.set_xlabel(x, fontsize="small")
    ax.set_ylabel(y, fontsize="small")
    ax.tick_params(labelsize="small", length=3)
    ax.grid(True, axis=grid, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def name_lines(
    ax: Any, names: Sequence[Any], x: str, *, notes: Sequence[str] = (), lines: int = 2
) -> None:
    """Names from the top down along the vertical axis, and a label for the horizontal one.

    Each has as many lines as there is room for, and a note below or beside it; where there is not
    room for one line, letters are smaller, and where these could not be read, names are left out.
    """
    room = room_for(ax, len(names))
    n_lines = min(lines, int(room / SMALL) - bool(notes))
    wide = n_lines <= 1 and room_for(ax, 1, "x") > 4 * 72
    texts = all_shown(names, width=28 if wide else 18, lines=max(1, n_lines))
    if notes:
        between = "\n" if n_lines > 0 else ", "
        texts = [f"{text}{between}{note}" for text, note in zip(texts, notes, strict=True)]
    kept = slice(None, None, max(1, math.ceil(SMALLEST / room)))
    label_axes(ax, x, grid="x")
    ax.set_yticks(np.arange(len(names))[kept], texts[kept])
    ax.tick_params(axis="y", labelsize=max(SMALLEST, min(SMALL, room)))
    ax.set_ylim(len(names) - 0.5, -0.5)


def lines_for(names: Iterable[Any], *, notes: int = 0) -> float:
    """Lines of text that each of some names takes; of many names it is one."""
    texts = all_shown(names)
    return 0.8 * (notes + max(t.count("\n") + 1 for t in texts)) if len(texts) <= FEW else 0.9


def name_columns(ax: Any, names: Sequence[Any]) -> None:
    """Names along the horizontal axis, turned where they would run into each other."""
    texts = all_shown(names, width=11, lines=3)
    letters = max(len(line) for text in texts for line in text.split("\n"))
    turned = letters * LETTER * SMALL > room_for(ax, len(names), "x")
    if turned:
        texts = all_shown(names, width=24, lines=1)
    ax.set_xticks(np.arange(len(names)), texts)
    look = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if turned else {}
    for label in ax.get_xticklabels():
        label.set(**look)


def series(index: int, label: str) -> dict[str, Any]:
    """The look of one of several series of points with error bars."""
    look = {"fmt": MARKERS[index % len(MARKERS)], "color": COLORS[index % len(COLORS)]}
    return look | {"label": label, "markersize": 4.5, "capsize": 1.5}


def line(index: int, label: str) -> dict[str, Any]:
    """The look of one of several series of points that are joined."""
    look = {"color": COLORS[index % len(COLORS)], "marker": MARKERS[index % len(MARKERS)]}
    return look | {"label": label, "markersize": 4, "linewidth": 1.6}


def reach(values: Any, lower: Any, upper: Any) -> Matrix:
    """Error bars of Matplotlib: how far down and how far up an interval reaches."""
    return np.maximum([values - lower, upper - values], 0.0)


def mark(ax: Any, x: Any, y: Any, label: str, **changes: Any) -> Any:
    """Points that stand out from everything else: filled diamonds with an edge."""
    look = {"linestyle": "none", "marker": "D", "color": COLORS[1], "markeredgecolor": INK}
    (points,) = ax.plot(x, y, label=label, zorder=4, **(look | changes))
    return points


def beside(ax: Any, text: str, point: Any, shift: tuple[int, int], look: dict[str, Any]) -> None:
    """Text beside a point of the data, shifted by points of the page."""
    ax.annotate(text, point, shift, textcoords="offset points", color=INK, **look)


def bars(ax: Any, places: Any, widths: Any, look: dict[str, Any]) -> Any:
    """Horizontal bars with an edge; ``look`` must tell them apart without colour."""
    return ax.barh(places, widths, **({"edgecolor": INK, "linewidth": 0.8} | look))


def legend_above(ax: Any, handles: Any, *, share: float = 0.85) -> Any:
    """A legend above the axes, where it hides nothing; they take this share of the width."""
    lines = [line for handle in handles for line in handle.get_label().split("\n")]
    width = share * ax.figure.get_figwidth() * min(1.0, ax.get_position().width / 0.775)
    return ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=max(1, int(width / (0.5 + 0.078 * max(map(len, lines))))),
        fontsize="small",
        frameon=False,
        handlelength=1.6,
        columnspacing=1.2,
    )


def shown(name: Any, *, width: int = 18, lines: int = 2) -> str:
    """A name as text that fits: wrapped, its middle left out where it is too long."""
    text = " ".join(str(name).split()) or "(no name)"
    wrapped = textwrap.wrap(text, width)
    if len(wrapped) > lines == 1:
        wrapped = [f"{text[: width // 2].rstrip()}…{text[width // 2 + 1 - width :].lstrip()}"]
    elif len(wrapped) > lines:
        wrapped[lines - 1 :] = [f"…{text[1 - width :].lstrip()}"]
    # A dollar sign would start a formula, and a leading underscore hide the name from a legend.
    escaped = "\n".join(wrapped).replace("$", r"\$")
    return f"\u200b{escaped}" if escaped.startswith("_") else escaped


def all_shown(names: Iterable[Any], *, width: int = 18, lines: int = 2) -> list[str]:
    """Names as text that fits, numbered where shortening made two of them alike."""
    texts = [shown(name, width=width, lines=lines) for name in names]
    counts = [texts[: index + 1].count(text) for index, text in enumerate(texts)]
    return [t if n == 1 else f"{t} ({n})" for t, n in zip(texts, counts, strict=True)]
