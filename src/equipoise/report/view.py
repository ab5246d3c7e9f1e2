"""What a page shows and where: texts with their decimals, positions in percent.

Nothing is computed here that :mod:`equipoise.report.summary` does not hold; it is put into the
shape that the template writes down.
"""

from typing import Any

from equipoise.report.words import number, percent

# A page shows so many classes at most: those that the recommended choice fails most.
SHOWN_CLASSES = 60

# Shades of a cell, from none to full.
_SHADES = 8
_TOPS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def page_view(summary: dict[str, Any]) -> dict[str, Any]:
    """Everything the template writes down."""
    shown = shown_classes(summary)
    classes = _classes(summary, shown)
    return {
        "title": summary["title"],
        "data": summary["data"],
        "design": summary["design"],
        "recommendation": _recommendation(summary),
        "classes": classes,
        "remarks": any(each["note"] for each in classes),
        "hidden_classes": len(summary["data"]["classes"]) - len(shown),
        "choices": _choices(summary),
        "risks": _risks(summary, shown),
        "lines": _risk_lines(summary, shown),
        "costs": _costs(summary),
        "path": _path(summary, shown) if summary["path"] is not None else None,
        "trust": summary["trust"],
        "code": summary["code"],
    }


def shown_classes(summary: dict[str, Any]) -> list[int]:
    """Places of the classes to show, in class order."""
    classes = summary["data"]["classes"]
    if len(classes) <= SHOWN_CLASSES:
        return list(range(len(classes)))
    chosen = summary["choices"][summary["recommendation"]["choice"]]
    risk = {each["class"]: each["risk"] for each in chosen["classes"]}
    worst = sorted(risk, key=risk.__getitem__, reverse=True)[:SHOWN_CLASSES]
    return sorted(worst)


def _recommendation(summary: dict[str, Any]) -> dict[str, Any]:
    found, choices = summary["recommendation"], summary["choices"]
    chosen, plain = choices[found["choice"]], choices[found["plain"]]
    tiles = [
        ("Errors over all rows", "standard", percent),
        ("Errors in the worst class", "worst", percent),
        ("Largest regret, in points", "largest_regret", _points),
    ]
    return {
        **found,
        "headline": headline(chosen),
        "about": chosen["about"],
        "same": found["choice"] == found["plain"],
        "plain_label": plain["label"],
        "tiles": [
            {"name": name, "value": text(chosen[key]), "plain": text(plain[key])}
            for name, key, text in tiles
        ],
    }


def headline(choice: dict[str, Any]) -> str:
    """The recommended choice as an instruction."""
    model = {"linear": "a linear model", "boosting": "gradient boosting"}[choice["model"]]
    if choice["weighting"] in ("standard", "balanced"):
        return f"Use {model} with {choice['weighting']} weights"
    if choice["weighting"] == "worst class":
        return f"Use {model}, made robust for the worst class"
    return f"Use {model}, made robust with {choice['uncertainty']}"


def _points(difference: float) -> str:
    return f"{100 * difference:.1f}"


def _classes(summary: dict[str, Any], shown: list[int]) -> list[dict[str, Any]]:
    classes = summary["data"]["classes"]
    largest = max(each["share"] for each in classes)
    return [
        {
            **classes[place],
            "rows_text": number(classes[place]["rows"]),
            "tested_text": number(classes[place]["tested"]),
            "share_text": percent(classes[place]["share"]),
            "width": _position(classes[place]["share"], largest),
        }
        for place in shown
    ]


def _choices(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Names and marks; drawn at first are the recommended, the plainest and the balanced ones."""
    found = summary["recommendation"]
    worlds = [world["name"] for world in summary["costs"]["worlds"]]
    model = summary["choices"][found["choice"]]["model"]
    views = []
    for place, choice in enumerate(summary["choices"]):
        alike = choice["model"] == model and choice["weighting"] in ("standard", "balanced")
        views.append(
            {
                "place": place,
                "label": choice["label"],
                "about": choice["about"],
                "recommended": place == found["choice"],
                "drawn": place in (found["choice"], found["plain"]) or alike,
                "mark": worlds.index(choice["weighting"]) % 6,
                "filled": choice["model"] == "boosting",
            }
        )
    return views


def _risks(summary: dict[str, Any], shown: list[int]) -> dict[str, Any]:
    """Marks and bars of the class risks, class by class."""
    found = [_by_class(choice) for choice in summary["choices"]]
    classes = summary["data"]["classes"]
    judged = [place for place in shown if classes[place]["estimable"]]
    top = _top(max(each[place]["upper"] for each in found for place in judged))
    return {
        "ticks": _ticks(top),
        "classes": [
            {
                "name": classes[place]["name"],
                "rows": number(classes[place]["tested"]),
                "deciding": classes[place]["deciding"],
                "marks": [_mark(each[place], top) for each in found],
            }
            for place in judged
        ],
    }


def _by_class(choice: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {each["class"]: each for each in choice["classes"]}


def _mark(each: dict[str, Any], top: float) -> dict[str, Any]:
    return {
        "at": _position(each["risk"], top),
        "from": _position(each["lower"], top),
        "width": round(_position(each["upper"], top) - _position(each["lower"], top), 3),
        "text": percent(each["risk"]),
        "ends": f"{percent(each['lower'])} to {percent(each['upper'])}",
    }


def _risk_lines(summary: dict[str, Any], shown: list[int]) -> list[dict[str, Any]]:
    """The same as a table."""
    classes, lines = summary["data"]["classes"], []
    for place in shown:
        for choice in summary["choices"]:
            each = _by_class(choice).get(place)
            if each is None:
                continue
            taken = each["taken_for"]
            lines.append(
                {
                    "class": classes[place]["name"],
                    "choice": choice["label"],
                    "risk": each["risk"],
                    "risk_text": percent(each["risk"]),
                    "lower": each["lower"],
                    "ends": f"{percent(each['lower'])} to {percent(each['upper'])}",
                    "taken": None if taken is None else classes[taken]["name"],
                    "taken_share": each["taken_share"] or 0.0,
                    "taken_text": percent(each["taken_share"] or 0.0),
                }
            )
    return lines


def _costs(summary: dict[str, Any]) -> dict[str, Any]:
    costs = summary["costs"]
    top_risk = max(max(row) for row in costs["risk"]) or 1.0
    top_regret = max(max(row) for row in costs["regret"]) or 1.0
    rows = []
    for place, choice in enumerate(summary["choices"]):
        cells = [
            {
                "risk": risk,
                "regret": regret,
                "risk_text": percent(risk),
                "regret_text": "best" if regret == 0 else f"+{100 * regret:.1f}",
                "risk_shade": _shade(risk / top_risk),
                "regret_shade": _shade(regret / top_regret),
                "best": regret == 0,
            }
            for risk, regret in zip(costs["risk"][place], costs["regret"][place], strict=True)
        ]
        largest = costs["largest_regret"][place]
        rows.append(
            {
                "label": choice["label"],
                "recommended": place == summary["recommendation"]["choice"],
                "cells": cells,
                "largest": largest,
                "largest_text": f"{100 * largest:.1f}",
                "largest_shade": _shade(largest / top_regret),
            }
        )
    return {"worlds": costs["worlds"], "rows": rows}


def _path(summary: dict[str, Any], shown: list[int]) -> dict[str, Any]:
    """The slider: every position, and the picture at the first one shown."""
    path, classes = summary["path"], summary["data"]["classes"]
    columns = [at for at, place in enumerate(path["classes"]) if place in set(shown)]
    start = len(path["alpha"]) // 2
    top = _top(max(max(row[at] for at in columns) for row in path["upper"]))
    x, y = _scale(path["standard"]), _scale(path["worst"])
    steps = [_step(path, classes, place) for place in range(len(path["alpha"]))]
    bars = [
        {
            "name": classes[path["classes"][at]]["name"],
            "risk": [_position(row[at], top) for row in path["risk"]],
            "from": [_position(row[at], top) for row in path["lower"]],
            "to": [_position(row[at], top) for row in path["upper"]],
            "text": [percent(row[at]) for row in path["risk"]],
            "weight": [_times(row[at]) for row in path["weight"]],
        }
        for at in columns
    ]
    dots = [
        (_position(a - x["low"], x["width"]), round(100 - _position(b - y["low"], y["width"]), 3))
        for a, b in zip(path["standard"], path["worst"], strict=True)
    ]
    return {
        "start": start,
        "last": len(steps) - 1,
        "steps": steps,
        "bars": bars,
        "dots": dots,
        "x_ticks": x["ticks"],
        "y_ticks": y["ticks"],
        "bar_ticks": _ticks(top),
    }


def _step(path: dict[str, Any], classes: list[dict[str, Any]], place: int) -> dict[str, Any]:
    alpha = path["alpha"][place]
    return {
        "alpha": f"{alpha:.2g}",
        "cap": f"{1 / alpha:.3g}",
        "free": not path["caps_bind"][place],
        "standard": percent(path["standard"][place]),
        "balanced": percent(path["balanced"][place]),
        "worst": percent(path["worst"][place]),
        "worst_class": classes[path["worst_class"][place]]["name"],
    }


def _times(weight: float) -> str:
    return f"{weight:.2g}" if weight < 10 else f"{weight:.0f}"


def _position(value: float, top: float) -> float:
    """A share of an axis in percent."""
    return round(100 * min(max(value / top, 0.0), 1.0), 3) if top > 0 else 0.0


def _top(value: float) -> float:
    """The end of an axis of shares."""
    return next((top for top in _TOPS if value <= top), 1.0)


def _ticks(top: float) -> list[dict[str, Any]]:
    return [{"at": round(25.0 * step, 3), "text": f"{25 * top * step:.3g}%"} for step in range(5)]


def _scale(values: list[float]) -> dict[str, Any]:
    """An axis around some shares, with a little room at both ends."""
    low, high = min(values), max(values)
    room = max(0.12 * (high - low), 0.004)
    low, high = max(low - room, 0.0), min(high + room, 1.0)
    ticks = [
        {"at": round(100 * step / 3, 3), "text": percent(low + (high - low) * step / 3)}
        for step in range(4)
    ]
    return {"low": low, "width": high - low, "ticks": ticks}


def _shade(share: float) -> int:
    return min(int(_SHADES * share + 0.5), _SHADES)
