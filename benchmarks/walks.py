"""The ways of one plug-in fit, and of one page, through the library, counted as they run.

python benchmarks/walks.py

Every call of a Python function is looked at. A class is counted if one of its own methods runs,
its constructor included, wherever the method is written; a file if any of its code runs. What is
left out, with everything that it calls: sets, losses and validation, which are values and checks,
and blocks, which are asked only whether the rows are in them.
Risks and their intervals are made from sums when they are asked for, and so are no part of a fit.

Of a page the hops are counted, from the file to the page. A hop is a function of ours that is
entered from another file and takes or returns the rows, predictions for them, a stage of the
comparison (the labelled table, the findings, the summary) or the page. A method of a frozen value
reads that value and is none. Fits and the tuning of decisions have walks of their own: only their
entry counts.
"""

import inspect
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import equipoise
from equipoise import PlugInClassifier
from equipoise.datasets import load_thyroid
from equipoise.report import compare_file

ROOT = Path(equipoise.__file__).parent
LEFT_OUT = ("sets", "losses", "validation", "blocks")
# Anything shorter has a line for every class, and not for every row.
FEWEST_ROWS = 50


def room_of(frame: FrameType) -> str | None:
    """The room of a frame's file, None for the code of others."""
    return room_of_file(frame.f_code.co_filename)


@cache
def room_of_file(name: str) -> str | None:
    return Path(name).relative_to(ROOT).parts[0] if Path(name).is_relative_to(ROOT) else None


def owner_of(frame: FrameType) -> type | None:
    """The class of ours whose method a frame is."""
    if not frame.f_code.co_varnames[: frame.f_code.co_argcount]:
        return None
    first = frame.f_code.co_varnames[0]
    value = frame.f_locals.get(first) if first in ("self", "cls") else None
    kind = value if isinstance(value, type) else type(value)
    return kind if kind.__module__.split(".")[0] == "equipoise" else None


def walk(
    action: Callable[[], Any], left_out: tuple[str, ...]
) -> tuple[dict[str, None], dict[str, None]]:
    """Names of the classes, and of the files, in the order in which they are met."""
    classes: dict[str, None] = {}
    files: dict[str, None] = {}
    inside: list[FrameType] = []

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and inside and inside[-1] is frame:
            inside.pop()
        if event != "call" or inside:
            return
        room, owner = room_of(frame), owner_of(frame)
        if room in left_out or (owner and owner.__module__.split(".")[1] in left_out):
            inside.append(frame)
            return
        if owner:
            classes.setdefault(owner.__name__)
        if room:
            files.setdefault(str(Path(frame.f_code.co_filename).relative_to(ROOT)))

    sys.setprofile(look)
    try:
        action()
    finally:
        sys.setprofile(None)
    return classes, files


def plug_in() -> None:
    X, y = load_thyroid(return_X_y=True)
    model = PlugInClassifier(LogisticRegression(max_iter=1000))
    rows = np.arange(0, len(y), 4)
    classes, files = walk(lambda: model.fit(X[rows], y[rows]), LEFT_OUT)
    print(f"\nPlugInClassifier.fit: {len(classes)} classes in {len(files)} files")
    print("  classes: " + ", ".join(classes))
    print("  files:   " + ", ".join(files))


PAGE_ROOMS = ("cli", "tables", "report")


def carries_rows(value: Any) -> bool:
    """Whether a value holds rows, something for each of them, or a stage of a comparison."""
    if isinstance(value, str):
        return value.startswith("<!DOCTYPE")
    if isinstance(value, tuple | list):
        return any(map(carries_rows, value))
    if isinstance(value, dict):
        return "recommendation" in value or any(map(carries_rows, value.values()))
    if hasattr(value, "shape"):
        return len(value.shape) > 0 and value.shape[0] >= FEWEST_ROWS
    stage = type(value).__module__.startswith("equipoise.") and not isinstance(value, type)
    return stage and any(map(carries_rows, getattr(value, "__dict__", {}).values()))


def hops(action: Callable[[], Any], left_out: tuple[str, ...]) -> dict[str, None]:
    """Names of the functions that hand rows, or what was made of them, from file to file."""
    found: dict[str, None] = {}
    inside: list[FrameType] = []

    def look(frame: FrameType, event: str, result: Any) -> None:
        if event == "return" and inside and inside[-1] is frame:
            inside.pop()
        if event not in ("call", "return") or inside or room_of(frame) is None:
            return
        room, owner = room_of(frame), owner_of(frame)
        caller = frame.f_back
        while caller is not None and room_of(caller) is None:
            caller = caller.f_back
        crosses = caller is None or caller.f_code.co_filename != frame.f_code.co_filename
        name = frame.f_code.co_qualname
        if room in left_out:
            inside.extend([frame] * (event == "call"))
            return
        new = f"{room}: {name}" not in found
        if new and crosses and "<" not in name and not (owner and is_dataclass(owner)):
            arguments = inspect.getargvalues(frame).locals if event == "call" else {}
            if carries_rows(result) or any(map(carries_rows, list(arguments.values()))):
                found.setdefault(f"{room}: {name}")
        if event == "call" and room not in PAGE_ROOMS:
            inside.append(frame)

    sys.setprofile(look)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


def page() -> None:
    thyroid = load_thyroid(as_frame=True)
    rows = thyroid.data.assign(target=thyroid.target).iloc[::5]
    with TemporaryDirectory() as folder:
        rows.to_csv(f"{folder}/thyroid.csv", index=False)

        def one_page() -> None:
            compared = compare_file(f"{folder}/thyroid.csv", "target", models=["linear"])
            compared.save(f"{folder}/page.html")

        found = hops(one_page, LEFT_OUT)
        print(f"\nA row of a CSV file, to the page: {len(found)} hops")
        print(*(f"  {name}" for name in found), sep="\n")


if __name__ == "__main__":
    plug_in()
    page()
