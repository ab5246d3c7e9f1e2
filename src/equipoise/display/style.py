"""What all displays share: marks that survive greyscale, and names that fit.

Colours differ in lightness and every series also has its own marker or hatch, so that a grey print
says the same. Names are text: dollar signs start no formula and line breaks no new line.
"""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Matrix

# From dark to light, then again: neighbours differ in lightness, the marker tells the rest apart.
COLORS = ("#1f3b73", "#d1603d", "#4f9d86", "#9a6fb0", "#c99a2e", "#6b6b6b")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GRID = "#c8c8c8"
INK = "#222222"


def height_for(n_lines: float) -> float:
    """Inches for a chart with so many lines of text along its vertical axis."""
    # Labels below and the legend above take the first part; nothing is taller than a page.
    return min(1.1 + 0.21 * max(n_lines, 5.0), 14.0)


def label_axes(ax: Any, x: str, y: str = "", *, grid: str) -> None:
    """Small labels, a quiet grid behind the data, and no box around it."""
    ax.set_xlabel(x, fontsize="small")
    ax.set_ylabel(y, fontsize="small")
    ax.tick_params(labelsize="small", length=3)
    ax.grid(True, axis=grid, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def name_lines(ax: Any, names: Sequence[str], x: str) -> None:
    """Names from the top down along the vertical axis, and a label for the horizontal one."""
    ax.set_yticks(np.arange(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    label_axes(ax, x, grid="x")


def series(place: int, label: str) -> dict[str, Any]:
    """The look of one of several series of points with error bars."""
    look = {"fmt": MARKERS[place % len(MARKERS)], "color": COLORS[place % len(COLORS)]}
    return look | {"label": label, "markersize": 4.5, "capsize": 1.5}


def reach(values: Any, lower: Any, upper: Any) -> Matrix:
    """Error bars of Matplotlib: how far down and how far up an interval reaches."""
    return np.maximum([values - lower, upper - values], 0.0)


def mark(ax: Any, x: Any, y: Any, label: str, **changes: Any) -> Any:
    """Points that stand out from everything else: filled diamonds with an edge."""
    look = {"linestyle": "none", "marker": "D", "color": COLORS[1], "markeredgecolor": INK}
    (points,) = ax.plot(x, y, label=label, zorder=4, **(look | changes))
    return points


def beside(ax: Any, text: str, point: Any, shift: tuple[int, int], look: dict[str, Any]) -> None:
    """Text beside a point of the data, shifted by so many points of the page."""
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
    if len(wrapped) > lines:
        wrapped[lines - 1 :] = [f"…{text[1 - width :].lstrip()}"]
    # A dollar sign would start a formula, and a leading underscore hide the name from a legend.
    escaped = "\n".join(wrapped).replace("$", r"\$")
    return f"\u200b{escaped}" if escaped.startswith("_") else escaped


def all_shown(names: Iterable[Any], *, width: int = 18, lines: int = 2) -> list[str]:
    """Names as text that fits, numbered where shortening made two of them alike."""
    texts = [shown(name, width=width, lines=lines) for name in names]
    counts = [texts[: place + 1].count(text) for place, text in enumerate(texts)]
    return [t if n == 1 else f"{t} ({n})" for t, n in zip(texts, counts, strict=True)]
