"""What a study is: units of work, and a report made of their records.

A *unit* is the smallest piece that is stored and never computed twice. It is a function and its
settings, and yields *records*, flat dictionaries of numbers and words. A *study* plans its units
and turns their records into a report: claims with findings, tables, figures and a page.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from equipoise.arrays import Vector
from equipoise.paper.splits import Sources

Record = dict[str, Any]
# Records by kind of unit; a kind whose data are missing has none.
RecordsByKind = Mapping[str, Sequence[Record]]
Fitted = TypeVar("Fitted")

# The ways in which a model is fitted; equipoise.paper.fits says what each does.
WAYS = {
    "exact": "solved exactly",
    "text": "trained as the text says",
    "scripts": "trained as the scripts do",
}

# Raise it when units compute something else: what was stored before then counts no more.
REVISION = 2


@dataclass(frozen=True)
class StudyPlan:
    """How a study is run.

    Attributes
    ----------
    quick : bool
        Whether to run the one-minute version.
    seed : int
        The first seed; studies that repeat use the following ones as well.
    """

    quick: bool = False
    seed: int = 0

    def seeds(self, n_seeds: int) -> list[int]:
        """The seeds of a study that repeats."""
        return list(range(self.seed, self.seed + n_seeds))


@dataclass(frozen=True)
class Unit:
    """A piece of work: ``compute(**settings)`` gives its records.

    Attributes
    ----------
    kind : str
        Name under which a study finds the records.
    compute : callable
        Nothing but the settings (and data that never change) may decide what it returns.
    settings : mapping
        Keyword arguments, made of what JSON can hold.
    needs_covertype : bool
        Whether it reads Covertype: ``compute`` then takes the sources first.
    """

    kind: str
    compute: Callable[..., list[Record]]
    settings: Mapping[str, Any]
    needs_covertype: bool = False

    @property
    def key(self) -> str:
        """A name that differs for other settings."""
        text = json.dumps([REVISION, self.kind, dict(self.settings)], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def run(self, sources: Sources) -> list[Record]:
        """Compute the records."""
        first = (sources,) if self.needs_covertype else ()
        return self.compute(*first, **self.settings)


@dataclass(frozen=True)
class Finding:
    """Whether a claim held, and the numbers that say so."""

    held: bool
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A statement and what became of it.

    Attributes
    ----------
    where : str
        Where the paper makes it; "beyond the paper" if it does not.
    text : str
        The claim, in our words.
    findings : mapping of str to Finding
        By way of fitting (see :data:`WAYS`).
    """

    where: str
    text: str
    findings: Mapping[str, Finding]

    @property
    def is_the_papers(self) -> bool:
        """Whether the paper makes it."""
        return not self.where.startswith("beyond")


def checked_claims(
    claims: Iterable[tuple[str, str, Callable[[Fitted], Finding]]], by_way: Mapping[str, Fitted]
) -> list[Claim]:
    """Claims (where, text, check) with a finding for each way of fitting."""
    return [
        Claim(where, text, {way: check(each) for way, each in by_way.items()})
        for where, text, check in claims
    ]


@dataclass(frozen=True)
class StudyReport:
    """What a study found.

    Attributes
    ----------
    claims : sequence of Claim
    page : str
        Markdown; figures and tables are named in it by their files.
    tables : mapping of str to records
        Written as CSV under these names.
    figures : mapping of str to matplotlib figures
        Written as SVG and PNG under these names.
    """

    claims: Sequence[Claim]
    page: str
    tables: Mapping[str, Sequence[Record]] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A figure or table of the paper, or a question next to it.

    Attributes
    ----------
    name, title : str
    units : callable
        The units of a :class:`StudyPlan`, in the order in which they are computed.
    report : callable
        A :class:`StudyReport` from the plan and the records.
    """

    name: str
    title: str
    units: Callable[[StudyPlan], Sequence[Unit]]
    report: Callable[[StudyPlan, RecordsByKind], StudyReport]


@dataclass(frozen=True)
class StudyOutcome:
    """What became of a study.

    Attributes
    ----------
    study, title : str
    claims : tuple of Claim
        None where the study could not run.
    left_out : str
        Why some or all of it could not run; empty if all did.
    """

    study: str
    title: str
    claims: tuple[Claim, ...]
    left_out: str = ""


@dataclass(frozen=True)
class Reproduction:
    """What became of the studies of a run.

    Attributes
    ----------
    outcomes : tuple of StudyOutcome
    page : Path
        The page over these and earlier studies.
    """

    outcomes: tuple[StudyOutcome, ...]
    page: Path

    def claims(self) -> list[Claim]:
        """The claims of all studies."""
        return [claim for outcome in self.outcomes for claim in outcome.claims]


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over seeds; no deviation for a single one."""

    mean: float
    sd: float
    count: int

    def __format__(self, spec: str) -> str:
        digits = spec or ".4f"
        if self.count < 2:
            return format(self.mean, digits)
        return f"{self.mean:{digits}} ± {self.sd:{digits}}"


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation (n - 1) of numbers."""
    array = np.asarray(values, dtype=np.float64)
    sd = float(array.std(ddof=1)) if len(array) > 1 else 0.0
    return Spread(float(array.mean()), sd, len(array))


def select(records: Sequence[Record], **wanted: object) -> list[Record]:
    """The records that have these values."""
    return [
        record
        for record in records
        if all(record.get(name) == value for name, value in wanted.items())
    ]


def mean_of(records: Sequence[Record], field: str, **wanted: object) -> Spread:
    """Mean and spread of one field of the records that have these values."""
    return spread([float(record[field]) for record in select(records, **wanted)])


def means_over(by: str, records: Sequence[Record], field: str, **wanted: object) -> Vector:
    """Means of one field, one for each value of the field ``by``, growing."""
    values = sorted(distinct(records, by))
    return np.array([mean_of(records, field, **{by: value, **wanted}).mean for value in values])


def counted(records: Sequence[Record], field: str, **wanted: object) -> str:
    """The words in a field: the word, or how many records have each."""
    words = [str(record[field]) for record in select(records, **wanted)]
    kinds = list(dict.fromkeys(words))
    if len(kinds) == 1:
        return kinds[0]
    return ", ".join(f"{word} in {words.count(word)}" for word in kinds)


def distinct(records: Sequence[Record], field: str) -> list[Any]:
    """The values of a field, in the order of their first record."""
    return list(dict.fromkeys(record[field] for record in records if field in record))
