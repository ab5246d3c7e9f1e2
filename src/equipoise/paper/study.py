"""What a study is: units of work, and a report made of their records.

A *unit* is the smallest piece that is stored and never computed twice. It is a function and its
settings, and yields *records*, flat dictionaries of numbers and words. A *study* plans its units
and turns their records into a report: claims with verdicts, tables, figures and a page.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.paper.sources import Sources

Record = dict[str, Any]
# Records by kind of unit; a kind whose data are missing has none.
Results = Mapping[str, Sequence[Record]]

# Raise it when units compute something else: what was stored before then counts no more.
REVISION = 1


@dataclass(frozen=True)
class Plan:
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
class Verdict:
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
    verdicts : mapping of str to Verdict
        By way of fitting (see :data:`equipoise.paper.fits.WAYS`).
    """

    where: str
    text: str
    verdicts: Mapping[str, Verdict]

    @property
    def is_the_papers(self) -> bool:
        """Whether the paper makes it."""
        return not self.where.startswith("beyond")


@dataclass(frozen=True)
class Report:
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
        The units of a :class:`Plan`, in the order in which they are computed.
    report : callable
        A :class:`Report` from the plan and the results.
    """

    name: str
    title: str
    units: Callable[[Plan], Sequence[Unit]]
    report: Callable[[Plan, Results], Report]
