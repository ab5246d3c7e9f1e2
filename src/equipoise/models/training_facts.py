"""What a model was trained on and how: plain values that stand beside the weights."""

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from equipoise.exceptions import InvalidInputError
from equipoise.goals import format_goal
from equipoise.sets.alphas import default_uncertainty
from equipoise.tables import Column
from equipoise.weights.by_class import ByClass

# Raised when a file of this form could no longer be read as one of the last.
FORMAT = 2

_PACKAGES = ("equipoise", "numpy", "scipy", "scikit-learn", "skops")
_KINDS = ("number", "text", "truth", "date", "empty")


def versions() -> dict[str, str]:
    """Versions of what makes predictions."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class HeldOut:
    """Class risks on rows that an equal model, fitted to the others, had not seen.

    Attributes
    ----------
    rows, risks, lower, upper : tuple, in the order of ``classes``
        Rows of each class, their share of errors and its confidence interval; a class without
        rows has None for the last three.
    confidence : float
        Probability that an interval covers its risk.
    share : float
        Share of the rows that were set aside.

    Examples
    --------
    >>> HeldOut((8, 2), (0.25, 0.5), (0.03, 0.01), (0.65, 0.99), confidence=0.95, share=0.2).risks
    (0.25, 0.5)
    """

    rows: tuple[int, ...]
    risks: tuple[float | None, ...]
    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]
    confidence: float
    share: float


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """What a model was trained on and how; None is what nobody has said.

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
    held_out : HeldOut or None
        What an equal model did on rows it had not seen.
    created : str
        When, in UTC.
    versions : dict
        Versions of the packages.
    notes : tuple of str
        What the table and the fit warned of.

    Examples
    --------
    >>> TrainingFacts(classes=("ham", "spam"), model="linear", counts=(40, 20)).rows["spam"]
    20
    """

    classes: tuple[int | float | bool | str, ...]
    model: str
    goal: str | None = None
    target: str | None = None
    columns: tuple[Column, ...] | None = None
    counts: tuple[int, ...] | None = None
    seed: int | None = None
    held_out: HeldOut | None = None
    created: str = field(default_factory=_now)
    versions: Mapping[str, str] = field(default_factory=versions)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _is_possible(self):
            raise InvalidInputError("The training facts contradict themselves.")

    @classmethod
    def from_model(cls, model: Any) -> "TrainingFacts":
        """What a fitted model knows itself: its classes, its kind and its goal."""
        check_is_fitted(model)
        last = model[-1] if isinstance(model, Pipeline) else model
        classes = tuple(np.asarray(last.classes_).tolist())
        if not _are_classes(classes):
            raise InvalidInputError(
                "Classes of a saved model must be numbers, truth values or texts, all of one type, "
                f"got {type(classes[0]).__name__}: turn the labels into texts before the fit."
            )
        asked = last.get_params(deep=False)
        goals = [asked[name] for name in ("goal", "uncertainty") if name in asked]
        goal = (
            format_goal(default_uncertainty() if goals[0] is None else goals[0]) if goals else None
        )
        return cls(classes=classes, model=type(last).__name__, goal=goal)

    @property
    def rows(self) -> ByClass | None:
        """Rows of each class, by name."""
        return None if self.counts is None else ByClass(np.array(self.counts), self.class_names())

    def class_names(self) -> NDArray[Any]:
        """Class names as an array like the labels of the training rows."""
        kinds: dict[type, Any] = {int: np.int64, float: np.float64, bool: np.bool_}
        names = np.empty(len(self.classes), dtype=kinds.get(type(self.classes[0]), object))
        names[:] = self.classes
        return names

    def to_json(self) -> str:
        """The facts as a JSON text, the same for the same facts."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "TrainingFacts":
        """Facts from the text of :meth:`to_json`; anything else is an error in one sentence."""
        try:
            values = json.loads(text)
            return _from_dict(values)
        except (InvalidInputError, MemoryError):
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidInputError(
                f"The training facts cannot be read ({type(error).__name__})."
            ) from error


def _from_dict(values: Any) -> TrainingFacts:
    number = values.pop("format")
    if number != FORMAT:
        raise InvalidInputError(
            f"it is of format {str(number)[:20]} and this version of equipoise reads format "
            f"{FORMAT}: load it with the version that wrote it, or fit and save the model again."
        )
    known = {item.name for item in fields(TrainingFacts)}
    given = {name: value for name, value in values.items() if name in known}
    if given["columns"] is not None:
        given["columns"] = tuple(Column(**column) for column in given["columns"])
    for name in ("classes", "counts", "notes"):
        given[name] = None if given[name] is None else tuple(given[name])
    if given["held_out"] is not None:
        parts: dict[str, Any] = given["held_out"]
        lists = {name: tuple(part) for name, part in parts.items() if isinstance(part, list)}
        given["held_out"] = HeldOut(**{**parts, **lists})
    return TrainingFacts(**given)


def _is_possible(facts: TrainingFacts) -> bool:
    """Whether training could have left these facts."""
    columns = facts.columns or ()
    names = [column.name for column in columns]
    known = [text for text in (facts.target, facts.goal) if text is not None]
    texts = (*known, facts.model, facts.created, *names, *facts.notes)
    return (
        all(type(text) is str for text in texts)
        and all(column.kind in _KINDS for column in columns)
        and len(set(names)) == len(names)
        and type(facts.seed) in (int, type(None))
        and _are_classes(facts.classes)
        and (facts.counts is None or _are_counts(facts.counts, len(facts.classes)))
        and isinstance(facts.versions, Mapping)
        and (facts.held_out is None or _are_risks(facts.held_out, len(facts.classes)))
    )


def _are_classes(classes: tuple[Any, ...]) -> bool:
    return (
        len({type(name) for name in classes}) == 1
        and type(classes[0]) in (int, float, bool, str)
        and len(set(classes)) == len(classes) >= 2
        and all(-(2**63) <= name < 2**63 for name in classes if type(name) is int)
        and all(math.isfinite(name) for name in classes if type(name) is float)
    )


def _are_counts(counts: tuple[Any, ...], n_classes: int) -> bool:
    return len(counts) == n_classes and all(type(n) is int and 0 <= n < 2**53 for n in counts)


def _are_risks(held_out: HeldOut, n_classes: int) -> bool:
    columns = (held_out.risks, held_out.lower, held_out.upper)
    return (
        _are_counts(held_out.rows, n_classes)
        and all(len(column) == n_classes for column in columns)
        and all(risk is None or 0 <= risk <= 1 for column in columns for risk in column)
        and 0 < held_out.confidence < 1
        and 0 < held_out.share < 1
    )
