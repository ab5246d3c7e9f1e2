"""What a model was trained on and how: plain values that stand beside the weights."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import NDArray
from equipoise.decisions.classifiers import last_step
from equipoise.exceptions import InvalidInputError, in_a_sentence
from equipoise.goals import format_goal
from equipoise.persistence.archive import parsed
from equipoise.sets import LabelCVaR, as_uncertainty
from equipoise.tables import COLUMN_KINDS, Column, LabelledTable, StreamedTable
from equipoise.text import in_words

# FORMAT: of model files; raised whenever files of the previous format cannot be read any more.
FORMAT = 5

# Limits of classes, columns, and characters of goals and versions, which bound the work of loading.
_MOST_CLASSES, _MOST_COLUMNS = 1 << 13, 1 << 16
_LONGEST_GOAL, _LONGEST_VERSION = 1 << 17, 100


def _versions() -> dict[str, str]:
    """Versions of the packages that predictions depend on."""
    versions = {"python": platform.python_version()}
    for package in ("equipoise", "numpy", "scipy", "scikit-learn"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return versions


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """What a model was trained on and how; None where it is not known.

    Attributes
    ----------
    classes : tuple of int, float, bool or str
        Class names, in the order of the model's.
    model : str
        Kind of the model.
    goal : str or None
        What the model is for, as :func:`equipoise.goals.parse_goal` reads it.
    target : str or None
        Name of the label column.
    columns : tuple of Column or None
        The feature columns, in the order the model reads them.
    counts : tuple of int or None
        Rows of each class.
    seed : int or None
    held_out : dict or None
        Class risks on rows that an equal model, fitted to the others, had not seen: lists in the
        order of ``classes`` of their ``rows``, ``risks`` and the ends of intervals, ``lower`` and
        ``upper`` (None for a class without rows); the intervals' ``confidence``; and the ``share``
        of the rows that were set aside.
    created : str
        When, in UTC.
    versions : dict
        Versions of the packages.
    notes : tuple of str
        What the table and the fit warned of.

    Examples
    --------
    >>> TrainingFacts(classes=("ham", "spam"), model="linear", counts=(40, 20)).seed is None
    True
    """

    classes: tuple[int | float | bool | str, ...]
    model: str
    goal: str | None = None
    target: str | None = None
    columns: tuple[Column, ...] | None = None
    counts: tuple[int, ...] | None = None
    seed: int | None = None
    held_out: Mapping[str, Any] | None = None
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: Mapping[str, str] = field(default_factory=_versions)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns, k = self.columns or (), len(self.classes)
        names = [column.name for column in columns]
        known = [text for text in (self.target, self.goal) if text is not None]
        texts = (*known, self.model, self.created, *names, *self.notes)
        # Whether training could have left them.
        if not (
            all(type(text) is str for text in texts)
            and all(column.kind in COLUMN_KINDS for column in columns)
            and len(set(names)) == len(names) <= _MOST_COLUMNS
            and len(self.goal or "") <= _LONGEST_GOAL
            and type(self.seed) in (int, type(None))
            and _are_classes(self.classes)
            and (self.counts is None or _are_counts(self.counts, k))
            and isinstance(self.versions, Mapping)
            and all(type(v) is str and len(v) <= _LONGEST_VERSION for v in self.versions.values())
            and (self.held_out is None or _are_risks(self.held_out, k))
        ):
            raise InvalidInputError("The training facts contradict themselves, or are too long.")

    @classmethod
    def from_model(cls, model: Any) -> TrainingFacts:
        """What a fitted model knows itself: its classes, its kind and its goal."""
        check_is_fitted(model)
        last = last_step(model)
        classes = tuple(np.asarray(last.classes_).tolist())
        if not _are_classes(classes):
            raise InvalidInputError(
                f"A saved model has {_MOST_CLASSES} classes at most, numbers, truth values or "
                f"texts, all of one type, got {len(classes)} of type {type(classes[0]).__name__}: "
                "turn the labels into texts before the fit."
            )
        asked, text = last.get_params(deep=False), None
        if hasattr(last, "alpha_"):
            text = format_goal(LabelCVaR(float(last.alpha_)))
        elif "goal" in asked:
            text = format_goal(as_uncertainty(None) if asked["goal"] is None else asked["goal"])
        return cls(classes=classes, model=type(last).__name__, goal=text)

    def class_names(self) -> NDArray[Any]:
        """Class names as an array like the labels of the training rows."""
        return np.array(self.classes, dtype=object if isinstance(self.classes[0], str) else None)

    def to_json(self) -> bytes:
        """The facts as a JSON text, the same for the same facts."""
        values = {"format": FORMAT, **asdict(self)}
        return json.dumps(values, indent=2, ensure_ascii=False).encode()

    def other_versions(self) -> str:
        """A sentence about packages whose versions here are not those of the training, or none."""
        other = {name: v for name, v in _versions().items() if self.versions.get(name, v) != v}
        if not other:
            return ""
        then, now = (in_words(f"{n} {v[n]}" for n in other) for v in (self.versions, other))
        return f"The model was saved with {then} and runs with {now}: its predictions may differ."

    @classmethod
    def from_json(cls, text: bytes) -> TrainingFacts:
        """Facts from the text of :meth:`to_json`; anything else is an error in one sentence."""
        with in_a_sentence("The training facts cannot be read", Exception):
            values = parsed(text, "The text of the facts")
            number = values.pop("format")
            if number != FORMAT:
                raise InvalidInputError(
                    f"it is of format {str(number)[:20]} and this version of equipoise reads "
                    f"format {FORMAT}: load it with the version that wrote it, or fit and save the "
                    "model again."
                )
            known = {item.name for item in fields(cls)}
            facts = {name: value for name, value in values.items() if name in known}
            if facts["columns"] is not None:
                facts["columns"] = tuple(Column(**column) for column in facts["columns"])
            for name in ("classes", "counts", "notes"):
                facts[name] = None if facts[name] is None else tuple(facts[name])
            return cls(**facts)


def facts_for(
    table: LabelledTable | StreamedTable,
    target: str | None,
    kind: str,
    goal: str | None,
    seed: int | None,
    **more: Any,
) -> TrainingFacts:
    """The facts of a model that was fitted to a table; ``more`` are others of their attributes.

    Examples
    --------
    >>> from equipoise.tables import labelled_table
    >>> table = labelled_table([[0.0], [1.0], [2.0]], ["ham", "spam", "spam"])
    >>> facts = facts_for(table, "label", "forest", "worst_class", seed=0)
    >>> facts.classes, facts.counts, [column.name for column in facts.columns]
    (('ham', 'spam'), (1, 2), ['x0'])
    """
    notes = (*table.warnings, *more.pop("notes", ()))
    return TrainingFacts(
        target=target,
        columns=table.columns,
        classes=tuple(table.classes.tolist()),
        counts=tuple(table.counts.tolist()),
        model=kind,
        goal=goal,
        seed=seed,
        notes=notes,
        **more,
    )


def _are_classes(classes: tuple[Any, ...]) -> bool:
    return (
        len({type(name) for name in classes}) == 1
        and type(classes[0]) in (int, float, bool, str)
        and 2 <= len(set(classes)) == len(classes) <= _MOST_CLASSES
        and all(-(2**63) <= name < 2**63 for name in classes if type(name) is int)
        and all(math.isfinite(name) for name in classes if type(name) is float)
    )


def _are_counts(counts: Sequence[Any], n_classes: int) -> bool:
    return len(counts) == n_classes and all(type(n) is int and 0 <= n < 2**53 for n in counts)


def _are_risks(held_out: Mapping[str, Any], n_classes: int) -> bool:
    names = ("rows", "confidence", "share", "risks", "lower", "upper")
    rows, confidence, share, *risks = (held_out[name] for name in names)
    return (
        set(held_out) == set(names)
        and _are_counts(rows, n_classes)
        and all(len(column) == n_classes for column in risks)
        and all(risk is None or 0 <= risk <= 1 for column in risks for risk in column)
        and 0 < confidence < 1
        and 0 < share < 1
    )
