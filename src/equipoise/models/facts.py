"""What a model was trained on and how: plain values that stand beside the weights."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.exceptions import InvalidInputError
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
    """

    rows: tuple[int, ...]
    risks: tuple[float | None, ...]
    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]
    confidence: float
    share: float


@dataclass(frozen=True)
class TrainingFacts:
    """What a model was trained on and how.

    Attributes
    ----------
    target : str
        Name of the label column.
    columns : tuple of Column
        The feature columns, in the order the model reads them.
    classes : tuple of int or str
        Class names, in the order of the model's.
    counts : tuple of int
        Rows of each class.
    model : str
        Kind of the model.
    goal : str
        What the model is for, as :func:`equipoise.goals.parse_goal` reads it.
    seed : int
    held_out : HeldOut or None
        What an equal model did on rows it had not seen.
    created : str
        When, in UTC.
    versions : dict
        Versions of the packages.
    notes : tuple of str
        What the table and the fit warned of.
    """

    target: str
    columns: tuple[Column, ...]
    classes: tuple[int | str, ...]
    counts: tuple[int, ...]
    model: str
    goal: str
    seed: int
    held_out: HeldOut | None = None
    created: str = field(default_factory=_now)
    versions: Mapping[str, str] = field(default_factory=versions)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    @property
    def rows(self) -> ByClass:
        """Rows of each class, by name."""
        return ByClass(np.array(self.counts), self.class_names())

    def class_names(self) -> NDArray[Any]:
        """Class names as an array like the labels of the training table."""
        whole = all(type(name) is int for name in self.classes)
        names = np.empty(len(self.classes), dtype=np.int64 if whole else object)
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
            f"The training facts are of format {number!r} and this version reads format {FORMAT}: "
            "use the version of equipoise that wrote the model."
        )
    known = {item.name for item in fields(TrainingFacts)}
    given = {name: value for name, value in values.items() if name in known}
    given["columns"] = tuple(Column(**column) for column in given["columns"])
    for name in ("classes", "counts", "notes"):
        given[name] = tuple(given[name])
    if given["held_out"] is not None:
        parts: dict[str, Any] = given["held_out"]
        lists = {name: tuple(part) for name, part in parts.items() if isinstance(part, list)}
        given["held_out"] = HeldOut(**{**parts, **lists})
    return TrainingFacts(**given)


def _check(facts: TrainingFacts) -> None:
    """Refuse facts that nobody's training could have left."""
    names = [column.name for column in facts.columns]
    texts = (facts.target, facts.model, facts.goal, facts.created, *names, *facts.notes)
    sound = (
        all(type(text) is str for text in texts)
        and all(column.kind in _KINDS for column in facts.columns)
        and len(set(names)) == len(names)
        and type(facts.seed) is int
        and all(type(name) in (int, str) for name in facts.classes)
        and len({type(name) for name in facts.classes}) == 1
        and len(set(facts.classes)) == len(facts.classes) == len(facts.counts) >= 2
        and all(type(count) is int and 0 <= count < 2**53 for count in facts.counts)
        and all(-(2**63) <= name < 2**63 for name in facts.classes if type(name) is int)
        and isinstance(facts.versions, Mapping)
        and (facts.held_out is None or _is_sound(facts.held_out, len(facts.classes)))
    )
    if not sound:
        raise InvalidInputError("The training facts contradict themselves.")


def _is_sound(held_out: HeldOut, n_classes: int) -> bool:
    risks = (*held_out.risks, *held_out.lower, *held_out.upper)
    columns = (held_out.rows, held_out.risks, held_out.lower, held_out.upper)
    return (
        all(len(column) == n_classes for column in columns)
        and all(type(count) is int and 0 <= count < 2**53 for count in held_out.rows)
        and all(risk is None or 0 <= risk <= 1 for risk in risks)
        and 0 < held_out.confidence < 1
        and 0 < held_out.share < 1
    )
