"""The numbers of a comparison as columns."""

from typing import Any


def class_columns(summary: dict[str, Any]) -> dict[str, list[Any]]:
    """One entry for each choice and class: risk, interval, and what it is taken for."""
    classes = summary["data"]["classes"]
    lines = [(one, each) for one in summary["choices"] for each in one["classes"]]
    named = [classes[each["class"]] for _, each in lines]
    return {
        "model": [one["model"] for one, _ in lines],
        "weighting": [one["weighting"] for one, _ in lines],
        "class": [known["name"] for known in named],
        "rows": [known["tested"] for known in named],
        "decides": [known["deciding"] for known in named],
        "risk": [each["risk"] for _, each in lines],
        "lower": [each["lower"] for _, each in lines],
        "upper": [each["upper"] for _, each in lines],
        "taken_for": [_name(classes, each["taken_for"]) for _, each in lines],
    }


def choice_columns(summary: dict[str, Any]) -> dict[str, list[Any]]:
    """One entry for each choice: summaries, and the risk under every weighting."""
    choices, classes, costs = summary["choices"], summary["data"]["classes"], summary["costs"]
    columns: dict[str, list[Any]] = {
        name: [one[name] for one in choices]
        for name in ("model", "weighting", "standard", "balanced", "worst")
    }
    columns["worst_class"] = [_name(classes, one["worst_class"]) for one in choices]
    for place, world in enumerate(costs["worlds"]):
        columns[f"risk[{world['name']}]"] = [row[place] for row in costs["risk"]]
    columns["largest_regret"] = [one["largest_regret"] for one in choices]
    chosen = summary["recommendation"]["choice"]
    columns["recommended"] = [place == chosen for place in range(len(choices))]
    return columns


def _name(classes: list[dict[str, Any]], place: int | None) -> str | None:
    return None if place is None else str(classes[place]["name"])
