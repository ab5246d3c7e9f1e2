"""Figures: one look for all studies, readable without colour."""

import io
from typing import Any

from equipoise.extras import require

# Colours that differ in brightness as well, and a marker and a dash of its own for every method.
_STYLES: dict[str, dict[str, Any]] = {
    "Standard": {"color": "#000000", "linestyle": "-", "marker": "o"},
    "Balanced": {"color": "#E69F00", "linestyle": "--", "marker": "s"},
    "LCVaR": {"color": "#0072B2", "linestyle": "-", "marker": "^"},
    "LHCVaR": {"color": "#CC3311", "linestyle": ":", "marker": "D"},
    "PriorBox": {"color": "#117733", "linestyle": "-.", "marker": "P"},
}
_PNG_DPI = 120


def figure(width: float, height: float, *, rows: int = 1, columns: int = 1, **axes: Any) -> Any:
    """A figure and its axes (an array unless there is one), without any global state."""
    new = require("matplotlib.figure", extra="plot").Figure(
        figsize=(width, height), layout="constrained"
    )
    return new, new.subplots(rows, columns, **axes)


def style(label: str, **changes: Any) -> dict[str, Any]:
    """Line style of a method by the beginning of its label."""
    found = next((look for name, look in _STYLES.items() if label.startswith(name)), {})
    return {"label": label, "markersize": 5, "linewidth": 1.4, **found, **changes}


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
