"""How figures are drawn: one look for all studies, readable without colour."""

import io
from collections.abc import Sequence
from typing import Any

from equipoise.extras import require
from equipoise.paper.records import Spread

# Colours that differ in brightness as well, and a marker and a dash of its own for every method.
_STYLES: dict[str, dict[str, Any]] = {
    "Standard": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "Balanced": {"color": "#E69F00", "linestyle": "--", "marker": "s"},
    "LCVaR(0.1)": {"color": "#56B4E9", "linestyle": "-.", "marker": "v"},
    "LCVaR": {"color": "#0072B2", "linestyle": "-", "marker": "^"},
    # LHCVaR often lies on LCVaR: a larger, hollow marker leaves both visible.
    "LHCVaR": {
        "color": "#CC3311",
        "linestyle": ":",
        "marker": "D",
        "markersize": 9,
        "markerfacecolor": "none",
    },
    "PriorBox": {"color": "#117733", "linestyle": "-.", "marker": "P"},
    "Told the prior": {"color": "0.45", "linestyle": (0, (6, 2)), "marker": ""},
}
_PNG_DPI = 120


def figure(width: float, height: float, *, rows: int = 1, columns: int = 1, **axes: Any) -> Any:
    """A figure and its axes (an array unless there is one), without any global state."""
    new = require("matplotlib.figure", extra="plot").Figure(
        figsize=(width, height), layout="constrained"
    )
    drawn = new.subplots(rows, columns, **axes)
    for ax in new.axes:
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
    return new, drawn


def from_zero(ax: Any, top: float | None = None) -> None:
    """A vertical axis from just below zero, so that markers at zero are whole."""
    high = ax.get_ylim()[1] if top is None else top
    ax.set_ylim(-0.02 * high, high)


def style(label: str, **changes: Any) -> dict[str, Any]:
    """Line style of a method by the beginning of its label."""
    base_style = next((look for name, look in _STYLES.items() if label.startswith(name)), {})
    return {"label": label, "markersize": 5, "linewidth": 1.4, **base_style, **changes}


def error_bars(ax: Any, x: Any, spreads: Sequence[Spread], **look: Any) -> None:
    """Means over seeds, with bars of one standard deviation."""
    means, sds = [spread.mean for spread in spreads], [spread.sd for spread in spreads]
    ax.errorbar(x, means, yerr=sds, capsize=2, **look)


def legend_below(drawing: Any, ax: Any, ncols: int) -> None:
    """One legend for all panels, below them, with what one of them shows."""
    handles, labels = ax.get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=ncols, frameon=False)


def render(drawing: Any) -> dict[str, bytes]:
    """The figure as SVG and PNG, the same bytes every time."""
    matplotlib = require("matplotlib", extra="plot")
    agg = require("matplotlib.backends.backend_agg", extra="plot")
    agg.FigureCanvasAgg(drawing)
    files: dict[str, dict[str, Any]] = {
        "svg": {"metadata": {"Date": None}},
        "png": {"dpi": _PNG_DPI},
    }
    contents = {}
    with matplotlib.rc_context({"svg.hashsalt": "equipoise"}):
        for suffix, options in files.items():
            buffer = io.BytesIO()
            drawing.savefig(buffer, format=suffix, **options)
            contents[suffix] = buffer.getvalue()
    return contents
