"""The ways of one plug-in fit through the library: classes and files, counted as they run.

python benchmarks/walks.py

Every call of a Python function is looked at. A class is counted if one of its own methods runs,
its constructor included, wherever the method is written; a file if any of its code runs. What is
left out, with everything that it calls: sets, losses and validation, which are values and checks;
and the two rooms that turn the finished decisions into numbers, ``weights`` (values by class) and
``risks`` (their intervals), which are printed apart.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import equipoise
from equipoise import PlugInClassifier
from equipoise.datasets import load_thyroid

ROOT = Path(equipoise.__file__).parent
LEFT_OUT = ("sets", "losses", "validation")
RESULTS = ("weights", "risks")


def room_of(frame: FrameType) -> str | None:
    """The room of a frame's file, None for the code of others."""
    path = Path(frame.f_code.co_filename)
    return path.relative_to(ROOT).parts[0] if path.is_relative_to(ROOT) else None


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
    for part, kind in ((LEFT_OUT + RESULTS, "own rooms"), (LEFT_OUT, "with weights and risks")):
        classes, files = walk(lambda: model.fit(X[rows], y[rows]), part)
        print(f"\nPlugInClassifier.fit, {kind}: {len(classes)} classes in {len(files)} files")
        print("  classes: " + ", ".join(classes))
        print("  files:   " + ", ".join(files))


if __name__ == "__main__":
    plug_in()
