"""From a summary to one self-contained page: style, script and data are all inside it.

Nothing is computed here that the summary does not hold; it is put where it is drawn, with positions
in percent of an axis.
"""

import base64
import hashlib
import re
from importlib.resources import files
from math import ceil, floor
from typing import Any

from equipoise.extras import require
from equipoise.text import in_words, quoted

# A page shows so many classes at most: those that the recommended choice fails most.
SHOWN_CLASSES = 60

# The heading of what a summary says about classes that do not decide.
_WITH_ALL = "With all classes"
# Names of goals that are no names in a sentence.
_THE = {"worst class": "the worst class"}
# Shades of a cell, from none to full.
_SHADES = 8
# Ends of an axis of shares, and into how many steps of a round length each is divided.
_AXES = {
    0.01: 5, 0.02: 4, 0.05: 5, 0.1: 5, 0.2: 4, 0.3: 3, 0.4: 4, 0.5: 5, 0.6: 3, 0.8: 4, 1.0: 5
}  # fmt: skip
# Lengths of the steps of an axis around some shares.
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
# Longer labels are shortened where there is little room.
_LONG = 48
# Words of at most so many letters are never broken.
_LONG_WORD = 20


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
        "short": _short,
        "pieces": _pieces,
    }
    environment.tests["is_long"] = lambda piece: (
        max(map(len, piece.split()), default=0) > _LONG_WORD
    )
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


def _pieces(text: str) -> list[str]:
    """A name where it may be broken: between words, and after the joints inside of long ones."""
    longest = max(map(len, text.split()), default=0)
    return re.split(r"(?<=[_.-])(?=\w)", text) if longest > _LONG_WORD else [text]


def _short(text: str) -> str:
    """A long label without its middle, and without half words where there are others."""
    if len(text) <= _LONG:
        return text
    return f"{text[: _LONG // 2].rsplit(' ', 1)[0]} … {text[-_LONG // 2 :].split(' ', 1)[-1]}"


def _view(summary: dict[str, Any]) -> dict[str, Any]:
    """What the template draws beside the summary."""
    classes, choices, found = summary["data"]["classes"], summary["choices"], _places(summary)
    recommended = found["choice"]
    by_class = [{each["class"]: each for each in choice["classes"]} for choice in choices]
    shown = list(range(len(classes)))
    if len(classes) > SHOWN_CLASSES:
        risks = by_class[recommended]
        shown = sorted(sorted(risks, key=lambda place: -risks[place]["risk"])[:SHOWN_CLASSES])
    judged = [place for place in shown if classes[place]["estimable"]]
    kept = [place for place, choice in enumerate(choices) if choice["same_as"] is None]
    models = dict.fromkeys(choices[place]["model"] for place in [recommended, *kept])
    first = list(dict.fromkeys(found.values()))
    columns, left = _columns(summary), summary["design"]["unfinished"]
    return {
        "headline": _headline(choices[recommended]),
        "chosen": choices[recommended],
        "best_plain": choices[found["best_plain"]],
        "found": found,
        "recommended": None if choices[recommended]["failures"] else recommended,
        "few": _few(summary),
        "unfinished": in_words(map(quoted, left)) if left else "",
        "shown": shown,
        "judged": judged,
        "by_class": by_class,
        "kept": kept,
        "first": first,
        "groups": {
            model: [place for place in kept if choices[place]["model"] == model] for model in models
        },
        "alike": [
            [
                each["made_for"] if each["model"] == choice["model"] else each["label"]
                for each in choices
                if each["same_as"] == place
            ]
            for place, choice in enumerate(choices)
        ],
        "notes": _notes(choices),
        "marks": _marks(choices),
        "axis": _axis(max(by_class[one][place]["upper"] for one in first for place in judged)),
        "axes": [_axis(top) for top in _AXES],
        "columns": columns,
        "top_risk": max(max(column["risk"]) for column in columns) or 1.0,
        "top_regret": max(map(max, summary["costs"]["regret"])) or 1.0,
        "path": None if summary["path"] is None else _path(summary, shown),
    }


def _places(summary: dict[str, Any]) -> dict[str, int]:
    """The choices to look at first; one that decides as an earlier one is that one."""
    found: dict[str, int] = {}
    for name in ("choice", "best_plain", "plain"):
        place = summary["recommendation"][name]
        same = summary["choices"][place]["same_as"]
        found[name] = place if same is None else same
    return found


def _few(summary: dict[str, Any]) -> list[str]:
    """Which classes do not decide for want of rows, and what would change if they did."""
    said = []
    for text, estimable in (("Too few to decide", True), ("Too few to be evaluated", False)):
        own = [
            (each["name"], each["tested" if estimable else "rows"])
            for each in summary["data"]["classes"]
            if not each["deciding"] and each["estimable"] == estimable
        ]
        few = [f"{quoted(name)} ({n:,} {'row' if n == 1 else 'rows'})" for name, n in own]
        said += [f"{text}: {in_words(few)}."] if few else []
    return said + [each["text"] for each in summary["trust"] if each["heading"] == _WITH_ALL]


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
    return f"Use {model}, tuned for {_THE.get(choice['made_for'], choice['made_for'])}"


def _notes(choices: list[dict[str, Any]]) -> list[str]:
    """Which choices are not rows of their own, and which have failed."""
    said = []
    for place, choice in enumerate(choices):
        same = [quoted(each["label"]) for each in choices if each["same_as"] == place]
        verb = "decides" if len(same) == 1 else "decide"
        said += (
            [f"{in_words(same)} {verb} every row as {quoted(choice['label'])} does."]
            if same
            else []
        )
    failed: dict[str, list[str]] = {}
    for choice in choices:
        if choice["failures"] and choice["same_as"] is None:
            failed.setdefault(in_words(choice["failures"]), []).append(quoted(choice["label"]))
    return said + [f"{in_words(names)} failed: {why}." for why, names in failed.items()]


def _marks(choices: list[dict[str, Any]]) -> list[dict[str, int]]:
    """The shape of a mark says what a choice is made for; its colour and core say the model."""
    kinds = list(dict.fromkeys(choice["made_for"] for choice in choices))
    models = list(dict.fromkeys(choice["model"] for choice in choices))
    return [
        {"shape": kinds.index(choice["made_for"]) % 6, "model": models.index(choice["model"]) % 6}
        for choice in choices
    ]


def _columns(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """What the choices cost: by every goal, and the usual summaries that are no goal."""
    costs, choices = summary["costs"], summary["choices"]
    usual = {
        name: [choice[kind] for choice in choices]
        for kind, name in (
            ("standard", "overall errors"), ("worst", "worst class"), ("balanced", "balanced")
        )
    }  # fmt: skip
    goals = [
        {
            "name": world["name"],
            "risk": [row[at] for row in costs["risk"]],
            "regret": [row[at] for row in costs["regret"]],
        }
        for at, world in enumerate(costs["worlds"])
    ]
    known = list(usual.values())

    def order(column: dict[str, Any]) -> int:
        near = (place for place, each in enumerate(known) if _alike(column["risk"], each))
        return next(near, len(known))

    beside = [
        {"name": name, "risk": risk, "regret": None}
        for name, risk in usual.items()
        if not any(_alike(risk, goal["risk"]) for goal in goals)
    ]
    return sorted(goals, key=order) + beside


def _alike(one: list[float], other: list[float]) -> bool:
    return all(abs(a - b) < 1e-9 for a, b in zip(one, other, strict=True))


def _path(summary: dict[str, Any], shown: list[int]) -> dict[str, Any]:
    """The slider: every position, and the picture at the first one shown."""
    path, classes = summary["path"], summary["data"]["classes"]
    weights = path["weight"]
    columns = [at for at, place in enumerate(path["classes"]) if place in set(shown)]
    top = _axis(max(max(row[at] for at in columns) for row in path["upper"]))["top"]
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
    chosen = summary["choices"][summary["recommendation"]["choice"]]
    (across, x_ticks), (up, y_ticks) = (
        _scale([*path[name], chosen[name]]) for name in ("standard", "worst")
    )
    dots = [(x, round(100 - y, 3)) for x, y in zip(across, up, strict=True)]
    return {
        "start": path["start"],
        "last": len(steps) - 1,
        "steps": steps,
        "bars": bars,
        "dots": dots[:-1],
        "chosen": dots[-1],
        "x_ticks": x_ticks,
        "y_ticks": y_ticks,
        "bar_ticks": [{"at": 50.0 * half, "text": f"{50 * top * half:.3g}%"} for half in range(3)],
    }


def _position(value: float, top: float) -> float:
    """A share of an axis in percent."""
    return round(100 * min(max(value / top, 0.0), 1.0), 3) if top > 0 else 0.0


def _axis(value: float) -> dict[str, Any]:
    """An axis of shares up to a value: its end, its number of steps, and their ticks."""
    top = next((top for top in _AXES if value <= top), 1.0)
    steps = _AXES[top]
    ticks = [
        {"at": round(100 * step / steps, 3), "text": f"{100 * top * step / steps:.3g}%"}
        for step in range(steps + 1)
    ]
    return {"top": top, "steps": steps, "ticks": ticks}


def _scale(values: list[float]) -> tuple[list[float], list[dict[str, Any]]]:
    """Positions of shares on an axis around them, with a little room, and ticks at round ones."""
    low, high = min(values), max(values)
    room = max(0.1 * (high - low), 0.004)
    low, high = max(low - room, 0.0), min(high + room, 1.0)
    step = next(size for size in _STEPS if high - low <= 5 * size)
    ticks = [
        {
            "at": round(100 * (step * each - low) / (high - low), 3),
            "text": f"{100 * step * each:g}%",
        }
        for each in range(ceil(low / step), floor(high / step) + 1)
    ]
    return [_position(value - low, high - low) for value in values], ticks
