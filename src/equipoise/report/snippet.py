"""The few lines of Python that fit the chosen model to the whole table."""

from dataclasses import dataclass
from typing import Any

from equipoise.report.choices import Choice
from equipoise.sets import FixedWeights


@dataclass(frozen=True)
class Source:
    """Where the table came from.

    Attributes
    ----------
    path : str or None
        A file, or None for data from Python.
    target : str or None
        Its label column.
    drop : tuple of str
        Columns left out.
    text_labels : bool
        Whether numbers were read as names of classes.
    is_frame : bool
        Whether data from Python were a DataFrame.
    """

    path: str | None = None
    target: str | None = None
    drop: tuple[str, ...] = ()
    text_labels: bool = False
    is_frame: bool = True


def refit_lines(choice: Choice, source: Source, rarest: int, seed: int) -> str:
    """Python code that ends in a fitted ``model``; ``rarest`` is the size of the smallest class."""
    name, given = _uncertainty(choice.uncertainty)
    imports = [f"from equipoise import {name}"] if name else []
    loading = _from_file(source) if source.path is not None else _from_python(source)
    options = f", random_state={seed}, rarest={rarest}" if choice.model == "boosting" else ""
    model = f"model = model_for(X, {choice.model!r}, goal={given}{options})"
    return "\n".join([*imports, *loading, model, "model.fit(X, y)"]) + "\n"


def _uncertainty(uncertainty: Any) -> tuple[str | None, str]:
    """What to import, and the argument."""
    if isinstance(uncertainty, FixedWeights) and isinstance(uncertainty.weights, str):
        return None, repr(uncertainty.weights)
    return type(uncertainty).__name__, repr(uncertainty)


def _from_file(source: Source) -> list[str]:
    labels = ", text_labels=True" if source.text_labels else ""
    return [
        "from equipoise.tables import model_for, read_table, split_target",
        "",
        f"table = read_table({source.path!r}){_dropped(source.drop)}",
        f"X, y = split_target(table, {source.target!r}{labels})",
    ]


def _dropped(names: tuple[str, ...]) -> str:
    return f".drop(columns={list(names)!r})" if names else ""


def _from_python(source: Source) -> list[str]:
    frame = [] if source.is_frame else ["import pandas as pd"]
    lines = [*frame, "from equipoise.tables import columns_of, conform, model_for", ""]
    if not source.is_frame:
        lines.append("X = pd.DataFrame(X).rename(columns=lambda place: f'x{place}')")
    return [*lines, "X = conform(X, columns_of(X))  # numbers and texts, as the models read them"]
