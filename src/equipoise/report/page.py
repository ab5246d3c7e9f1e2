"""From a summary to one self-contained page: style, script and data are all inside it.

Nothing is computed here that the summary does not hold; it is put where it is drawn, with positions
in percent of an axis.
"""

import base64
import hashlib
from importlib.resources import files
from itertools import pairwise
from math import ceil, floor
from typing import Any

from equipoise.extras import require
from equipoise.report.candidates import PLAIN, goal_name, model_name, value_text
from equipoise.text import in_words, points, quoted, share_text

# SHOWN_CLASSES: rows of a table of classes at most, those of the largest risks; MATRIX: classes of
# a confusion matrix that can be read, as the report promises.
SHOWN_CLASSES, MATRIX = 60, 30
# SHADES: of a cell, from none to full, as style.css has them.
SHADES = 8
# _STEPS: lengths of the steps of an axis of shares, so that ticks are round.
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
# _LONG: characters of a label, beyond which its middle is left out.
_LONG = 48


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
        "percent": share_text,
        "recall": lambda risk: share_text(1 - risk),
        "count": "{:,.0f}".format,
        "position": _position,
        "shade": lambda value: min(int(SHADES * value + 0.5), SHADES),
        "short": _short,
    }
    environment.globals |= {
        "points": points,
        "value_text": value_text,
        "described_model": model_name,
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


def _short(text: str) -> str:
    """A long label without its middle, and without half words where there are others."""
    if len(text) <= _LONG:
        return text
    return f"{text[: _LONG // 2].rsplit(' ', 1)[0]} … {text[-_LONG // 2 :].split(' ', 1)[-1]}"


def _view(summary: dict[str, Any]) -> dict[str, Any]:
    """What the template draws beside the summary."""
    candidates, classes = summary["candidates"], summary["data"]["classes"]
    advice = summary["recommendation"]
    best = candidates[advice["candidate"]]
    first = candidates[summary["cards"][0]["candidate"]]
    left = summary["design"]["unfinished"]
    risks = {each["class"]: each for each in best["classes"]}
    shown = list(range(len(classes)))
    if len(classes) > SHOWN_CLASSES:
        worst = sorted(risks, key=lambda label: -risks[label]["risk"])[:SHOWN_CLASSES]
        shown = sorted(worst)
    shown_cards = _cards(summary)
    others = {each["candidate"]: each for each in reversed(shown_cards)}
    others.pop(advice["candidate"], None)
    kept = [at for at, each in enumerate(candidates) if each["same_as"] is None]
    new_classes = (summary["new_rows"] or {}).get("classes", ())
    return {
        "headline": _headline(summary, best),
        "best": best,
        "first": first,
        "described": [
            {"model": model_name(each["model"]), "tuned": _tuned(each)} for each in candidates
        ],
        "shown_cards": shown_cards,
        "others": list(reversed(others.values())),
        "unfinished": in_words(map(quoted, left)) if left else "",
        "shown": sorted(shown, key=lambda label: -classes[label]["rows"]),
        "of_best": risks,
        "of_first": {each["class"]: each for each in first["classes"]},
        "kept": kept,
        "alike": [
            [each["label"] for each in candidates if each["same_as"] == at]
            for at in range(len(candidates))
        ],
        "marks": _marks(candidates),
        "chart": _chart(summary, kept, shown_cards),
        "matrix": _matrix(summary),
        "curve": _curve(summary),
        "largest_share": max(each["share"] for each in classes),
        "largest_new": max((each["value"] for each in new_classes), default=1.0),
    }


def _cards(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """The cards as they are shown: the one of the user's goal first, with numbers.

    ``tie`` is the number of an earlier card with the same candidate.
    """
    advice, cards = summary["recommendation"], summary["cards"]
    order = sorted(
        range(len(cards)), key=lambda at: not (summary["goals"] and at == advice["card"])
    )
    shown: list[dict[str, Any]] = []
    for at in order:
        same = [each["number"] for each in shown if each["candidate"] == cards[at]["candidate"]]
        advised = at == advice["card"] and not advice["no_answer"]
        marks = {"number": len(shown) + 1, "advised": advised, "tie": same[0] if same else None}
        shown.append({**cards[at], **marks, "is_first": at == 0})
    return shown


def _headline(summary: dict[str, Any], best: dict[str, Any]) -> str:
    """The advice as an instruction."""
    if summary["recommendation"]["no_answer"]:
        return "No model tried is an answer"
    model = model_name(best["model"])
    article = {"random forest": "a ", "linear model": "a "}.get(model, "")
    tuned = _tuned(best)
    return f"Use {article}{model}{' as it is' if best['tuned_for'] == PLAIN else f', {tuned}'}"


def _tuned(candidate: dict[str, Any]) -> str:
    """What the decisions of a candidate are tuned for, in words."""
    word = candidate["tuned_for"]
    return "default predictions" if word == PLAIN else f"tuned for {goal_name(word)}"


def _marks(candidates: list[dict[str, Any]]) -> list[dict[str, int]]:
    """The shape of a mark says what a candidate is tuned for; its colour and core, the model."""
    goals = list(dict.fromkeys(each["tuned_for"] for each in candidates))
    models = list(dict.fromkeys(each["model"] for each in candidates))
    return [
        {"shape": goals.index(each["tuned_for"]) % 6, "model": models.index(each["model"]) % 6}
        for each in candidates
    ]


def _chart(summary: dict[str, Any], kept: list[int], cards: list[dict[str, Any]]) -> dict[str, Any]:
    """Overall error against the error of the worst class: points, intervals, and the frontier."""
    candidates, numbers = summary["candidates"], dict[int, list[str]]()
    for card in cards:
        same = candidates[card["candidate"]]["same_as"]
        position = card["candidate"] if same is None else same
        numbers.setdefault(position, []).append(str(card["number"]))
    named = sorted(numbers)
    ends = [candidates[at][f"overall{end}"] for at in named for end in ("_lower", "_upper")]
    across = _scale([candidates[at]["overall"] for at in kept] + ends)
    ends = [candidates[at][f"worst{end}"] for at in named for end in ("_lower", "_upper")]
    up = _scale([candidates[at]["worst"] for at in kept] + ends)
    points_drawn = []
    for at in kept:
        each = candidates[at]
        x = {end: across["at"](each[f"overall{end}"]) for end in ("", "_lower", "_upper")}
        y = {end: round(100 - up["at"](each[f"worst{end}"]), 3) for end in ("", "_lower", "_upper")}
        points_drawn.append(
            {
                "candidate": at,
                "x": x,
                "y": y,
                "cards": ", ".join(numbers.get(at, [])),
                "frontier": each["frontier"],
            }
        )
    line = sorted(
        ((each["x"][""], each["y"][""]) for each in points_drawn if each["frontier"]),
        key=lambda point: (point[0], point[1]),
    )
    return {
        "points": sorted(points_drawn, key=lambda each: bool(each["cards"])),
        "line": [{"from": one, "to": other} for one, other in pairwise(line)],
        "x_ticks": across["ticks"],
        "y_ticks": up["ticks"],
    }


def _scale(values: list[float]) -> dict[str, Any]:
    """An axis of shares around some values, with a little room, and ticks at round ones."""
    low, high = min(values), max(values)
    room = max(0.06 * (high - low), 0.004)
    low, high = max(low - room, 0.0 if low > 0 else -room), min(high + room, 1.0 + room)
    step = next((size for size in _STEPS if high - low <= 5 * size), 0.25)
    marks = [step * each for each in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]

    def at(value: float) -> float:
        return _position(value - low, high - low)

    return {
        "at": at,
        "ticks": [{"at": at(mark), "text": f"{100 * mark:g}%"} for mark in marks if mark <= 1],
    }


def _position(value: float, top: float) -> float:
    """A share of an axis in percent."""
    return round(100 * min(max(value / top, 0.0), 1.0), 3) if top > 0 else 0.0


def _matrix(summary: dict[str, Any]) -> dict[str, Any]:
    """The confusion matrix, most frequent classes first; of many those of the largest risks."""
    classes, counts = summary["data"]["classes"], summary["confusion"]
    risks = {
        each["class"]: each["risk"]
        for each in summary["candidates"][summary["recommendation"]["candidate"]]["classes"]
    }
    kept = sorted(risks, key=lambda label: -risks[label])[:MATRIX]
    order = sorted(kept, key=lambda label: (-classes[label]["rows"], label))
    rows = []
    for label in order:
        total = sum(counts[label])
        cells = [
            {"count": counts[label][other], "share": counts[label][other] / total if total else 0.0}
            for other in order
        ]
        rows.append({"class": label, "cells": cells, "total": total})
    return {"order": order, "rows": rows, "hidden": len(risks) - len(order)}


def _curve(summary: dict[str, Any]) -> dict[str, Any]:
    """The reliability diagram: positions in percent."""
    curve = summary["reliability"]
    columns = zip(
        *(curve[name] for name in ("predicted", "observed", "lower", "upper", "rows")), strict=True
    )
    drawn = [
        {
            "x": _position(x, 1.0),
            "y": 100 - _position(y, 1.0),
            "from": 100 - _position(low, 1.0),
            "to": 100 - _position(high, 1.0),
            "predicted": x,
            "observed": y,
            "lower": low,
            "upper": high,
            "rows": rows,
        }
        for x, y, low, high, rows in columns
    ]
    ticks = [{"at": 25.0 * at, "text": f"{25 * at}%"} for at in range(5)]
    return {"points": drawn, "ticks": ticks, "class": curve["class"]}
