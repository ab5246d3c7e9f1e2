"""What a study is: units of work, and a report made of their records.

A *unit* is the smallest piece that is stored and never computed twice. It is a function and its
settings, and yields *records*, flat dictionaries of numbers and words. A *study* plans its units
and turns their records into a report: claims with findings, tables, figures and a page.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from equipoise.paper.records import Record, RecordsByKind
from equipoise.paper.splits import Sources

Fitted = TypeVar("Fitted")

# The ways in which a model is fitted; equipoise.paper.fits says what each does.
WAYS = {
    "exact": "solved exactly",
    "text": "trained as the text says",
    "scripts": "trained as the scripts do",
}

# Raise it when units compute something else: what was stored before then counts no more.
REVISION = 3


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

    @property
    def ways(self) -> Mapping[str, str]:
        """The ways of fitting, in words; the quick version trains for fewer epochs and says so."""
        if not self.quick:
            return WAYS
        return {
            way: words if way == "exact" else f"{words}, but for fewer epochs"
            for way, words in WAYS.items()
        }

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
    needs : str
        The data that it reads, by their name in :class:`Sources`: ``compute`` then takes the
        sources first. A study reads one kind of data at most.
    """

    kind: str
    compute: Callable[..., list[Record]]
    settings: Mapping[str, Any]
    needs: str = ""

    @property
    def key(self) -> str:
        """A name that differs for other settings."""
        text = json.dumps([REVISION, self.kind, dict(self.settings)], sort_keys=True)
        return f"{self.kind}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    def run(self, sources: Sources) -> list[Record]:
        """Compute the records."""
        first = (sources,) if self.needs else ()
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
        By way of fitting: ``"exact"``, ``"text"`` or ``"scripts"``.
    reading : str
        How we read it, where the words leave room.
    others : mapping of str to findings by way
        Other readings that are as reasonable, and what became of the claim under them.
    """

    where: str
    text: str
    findings: Mapping[str, Finding]
    reading: str = ""
    others: Mapping[str, Mapping[str, Finding]] = field(default_factory=dict)

    @property
    def is_the_papers(self) -> bool:
        """Whether the paper makes it."""
        return not self.where.startswith("beyond")

    def hangs_on_reading(self, way: str) -> bool:
        """Whether another reading changes the finding."""
        return any(
            way in findings and findings[way].held != self.findings[way].held
            for findings in self.others.values()
        )


@dataclass(frozen=True)
class Statement(Generic[Fitted]):
    """A claim before it is checked: ``check`` finds whether it holds for one way of fitting.

    The others are as in :class:`Claim`, with checks in place of findings.
    """

    where: str
    text: str
    check: Callable[[Fitted], Finding]
    reading: str = ""
    others: Mapping[str, Callable[[Fitted], Finding]] = field(default_factory=dict)

    def checked(self, by_way: Mapping[str, Fitted]) -> Claim:
        """The claim with a finding for each way of fitting."""
        others = {
            words: {way: check(each) for way, each in by_way.items()}
            for words, check in self.others.items()
        }
        findings = {way: self.check(each) for way, each in by_way.items()}
        return Claim(self.where, self.text, findings, self.reading, others)


@dataclass(frozen=True)
class StudyReport:
    """What a study found.

    Attributes
    ----------
    claims : sequence of Claim
    page : str
        Markdown; figures and tables are named in it by their files.
    figures : mapping of str to matplotlib figures
        Written as SVG and PNG under these names.
    """

    claims: Sequence[Claim]
    page: str
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
    tables : mapping of str to str
        The records as CSV files: the name of each and the kinds that it holds, one kind or, with
        ``{way}`` in it, one for each way of fitting. Pages can be made from them alone.
    """

    name: str
    title: str
    units: Callable[[StudyPlan], Sequence[Unit]]
    report: Callable[[StudyPlan, RecordsByKind], StudyReport]
    tables: Mapping[str, str]


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
