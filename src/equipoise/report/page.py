"""From a summary to one self-contained page: style, script and data are all inside it.

Nothing is computed here that the summary does not hold; it is put where it is drawn, with positions
in percent of an axis.
"""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from equipoise.extras import require

# A page shows so many classes at most: those that the recommended choice fails most.
SHOWN_CLASSES = 60

# Shades of a cell, from none to full.
_SHADES = 8
# Ends of an axis of shares.
_TOPS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def page(summary: dict[str, Any]) -> str:
    """The page about a comparison."""
    jinja2 = require("jinja2", extra="report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_source),
    )
    environment.filters |= {
        "percent": "{:.1%}".format,
        "count": "{:,}".format,
        "points": lambda difference: f"{100 * difference:.1f}",
        "position": _position,
        "shade": lambda value, top: min(int(_SHADES * value / top + 0.5), _SHADES),
    }
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    style, script = _source("style.css"), _source("page.js")
    return str(
        environment.get_template("template.html").render(
            **{**summary, **_view(summary)},
            style=style,
            script=script,
            style_hash=_hash(style),
            script_hash=_hash(script),
        )
    )


def _source(name: str) -> str:
    return files("equipoise.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a content security policy knows an element by: nothing else runs on the page."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _view(summary: dict[str, Any]) -> dict[str, Any]:
    """What the template draws beside the summary."""
    classes, choices, costs = summary["data"]["classes"], summary["choices"], summary["costs"]
    recommended = summary["recommendation"]["choice"]
    by_class = [{each["class"]: each for each in choice["classes"]} for choice in choices]
    shown = list(range(len(classes)))
    if len(classes) > SHOWN_CLASSES:
        risks = by_class[recommended]
        shown = sorted(sorted(risks, key=lambda place: -risks[place]["risk"])[:SHOWN_CLASSES])
    judged = [place for place in shown if classes[place]["estimable"]]
    return {
        "headline": _headline(choices[recommended]),
        "chosen": choices[recommended],
        "plain": choices[summary["recommendation"]["plain"]],
        "shown": shown,
        "judged": judged,
        "by_class": by_class,
        "marks": _marks(summary),
        "top": _top(max(each[place]["upper"] for each in by_class for place in judged)),
        "top_risk": max(map(max, costs["risk"])) or 1.0,
        "top_regret": max(map(max, costs["regret"])) or 1.0,
        "path": None if summary["path"] is None else _path(summary, shown),
        "ticks_up_to": _ticks,
    }


def _headline(choice: dict[str, Any]) -> str:
    """The recommended choice as an instruction."""
    known = {
        "linear": "a linear model",
        "forest": "a random forest",
        "boosting": "gradient boosting",
    }
    model = known.get(choice["model"], choice["model"])
    if choice["failures"]:
        return "No model tried is an answer"
    if choice["goal"] is None:
        return f"Use {model} as it is"
    if choice["made_for"] == "balanced":
        return f"Use {model} with class-weighted training"
    return f"Use {model}, made good for {choice['made_for']}"


def _marks(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Marks of the choices; drawn at first are the recommended, the plainest, the balanced ones."""
    found, choices = summary["recommendation"], summary["choices"]
    kinds = list(dict.fromkeys(choice["made_for"] for choice in choices))
    models = list(dict.fromkeys(choice["model"] for choice in choices))
    model = choices[found["choice"]]["model"]
    return [
        {
            "shape": kinds.index(choice["made_for"]) % 6,
            "filled": models.index(choice["model"]) % 2 == 1,
            "drawn": place in (found["choice"], found["plain"], found["best_plain"])
            or (choice["model"] == model and choice["made_for"] in ("plain", "balanced")),
        }
        for place, choice in enumerate(choices)
    ]


def _path(summary: dict[str, Any], shown: list[int]) -> dict[str, Any]:
    """The slider: every position, and the picture at the first one shown."""
    path, classes = summary["path"], summary["data"]["classes"]
    weights = path["weight"]
    columns = [at for at, place in enumerate(path["classes"]) if place in set(shown)]
    top = _top(max(max(row[at] for at in columns) for row in path["upper"]))
    steps = [
        {
            "alpha": f"{alpha:.2g}",
            "cap": f"{1 / alpha:.3g}",
            "free": not path["caps_bind"][place],
            **{name: f"{path[name][place]:.1%}" for name in ("standard", "balanced", "worst")},
            "worst_class": classes[path["worst_class"][place]]["name"],
        }
        for place, alpha in enumerate(path["alpha"])
    ]
    bars = [
        {
            "name": classes[path["classes"][at]]["name"],
            "risk": [_position(row[at], top) for row in path["risk"]],
            "from": [_position(row[at], top) for row in path["lower"]],
            "to": [_position(row[at], top) for row in path["upper"]],
            "text": [f"{row[at]:.1%}" for row in path["risk"]],
            "weight": [f"{row[at]:.2g}" if row[at] < 10 else f"{row[at]:.0f}" for row in weights],
        }
        for at in columns
    ]
    (across, x_ticks), (up, y_ticks) = _scale(path["standard"]), _scale(path["worst"])
    return {
        "start": path["start"],
        "last": len(steps) - 1,
        "steps": steps,
        "bars": bars,
        "dots": [(x, round(100 - y, 3)) for x, y in zip(across, up, strict=True)],
        "x_ticks": x_ticks,
        "y_ticks": y_ticks,
        "bar_ticks": _ticks(top),
    }


def _position(value: float, top: float) -> float:
    """A share of an axis in percent."""
    return round(100 * min(max(value / top, 0.0), 1.0), 3) if top > 0 else 0.0


def _top(value: float) -> float:
    """The end of an axis of shares."""
    return next((top for top in _TOPS if value <= top), 1.0)


def _ticks(top: float) -> list[dict[str, Any]]:
    return [{"at": round(25.0 * step, 3), "text": f"{25 * top * step:.3g}%"} for step in range(5)]


def _scale(values: list[float]) -> tuple[list[float], list[dict[str, Any]]]:
    """Positions of shares on an axis around them, with a little room at both ends, and ticks."""
    low, high = min(values), max(values)
    room = max(0.12 * (high - low), 0.004)
    low, high = max(low - room, 0.0), min(high + room, 1.0)
    ticks = [
        {"at": round(100 * step / 3, 3), "text": f"{low + (high - low) * step / 3:.1%}"}
        for step in range(4)
    ]
    return [_position(value - low, high - low) for value in values], ticks
