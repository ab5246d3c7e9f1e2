"""Runs studies: unit by unit, keeping what is finished so that a stopped study can go on."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from equipoise.exceptions import InvalidParameterError
from equipoise.extras import require
from equipoise.paper.pages import (
    read_results,
    summary_page,
    write_records,
    write_report,
    write_text,
)
from equipoise.paper.records import Record, RecordsByKind, rounded
from equipoise.paper.registry import NAMES, PARTS, STUDIES, load_study
from equipoise.paper.splits import Sources
from equipoise.paper.study import Claim, Finding, Reproduction, Study, StudyOutcome, StudyPlan, Unit
from equipoise.text import listing
from equipoise.validation.numbers import check_count

# What is in the folder is made again by running the studies.
_IGNORE = "# Finished pieces of work, kept so that they are not computed twice.\n*\n"


@dataclass(frozen=True)
class StudyStep:
    """How far a study is: ``done`` of ``total`` units, and which one was just finished."""

    study: str
    done: int
    total: int
    unit: str = ""


Progress = Callable[[StudyStep], None]


def reproduce(
    names: str | Iterable[str] | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    out: str | os.PathLike[str] = "results",
    data: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    from_records: bool = False,
) -> Reproduction:
    """Run studies of the paper, and write their data, figures and pages.

    Every finished unit of work is kept under ``out``: after an interruption the same call computes
    only what is missing. Units of other settings (``quick``, ``seed``) are kept apart.

    Parameters
    ----------
    names : str or iterable of str, optional
        Which studies, by the names in :data:`STUDIES` or by those of the paper (``"figure-2"``,
        ``"table-1"``); all by default.
    quick : bool, default=False
        Whether to run the one-minute version, which shows directions only.
    seed : int, default=0
        The first seed.
    out : path-like, default="results"
        Folder for a page per study and ``README.md``, which says claim by claim what held.
    data : path-like, optional
        Covertype, as :func:`equipoise.datasets.fetch_covtype` takes it, or a folder with
        Fashion-MNIST. Where data cannot be had, what needs them is left out with a reason; a study
        that was asked for by name and can do nothing without them fails.
    progress : callable, optional
        Called with a :class:`StudyStep` at the start of every study and after every unit.
    from_records : bool, default=False
        Whether to compute nothing, and make pages and figures again from the CSV files that an
        earlier run left under ``out``; by default of all the studies that have any.

    Returns
    -------
    Reproduction
        The claims of the studies of this run, and where the pages are.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     done = reproduce("figure-1", quick=True, out=folder)
    >>> [claim.findings["exact"].held for claim in done.claims()]
    [True, True, True, True]
    """
    chosen = _chosen(names)
    plan = StudyPlan(quick=quick, seed=check_count(seed, "seed", 0))
    require("matplotlib.figure", extra="plot")
    folder = Path(out)
    store, sources = UnitStore(folder / ".units"), Sources(data)
    store.open()
    outcomes = []
    for name in chosen:
        runner = _Runner(plan, store, sources, progress or (lambda step: None))
        if not from_records:
            outcomes.append(runner.run(load_study(name), folder, required=names is not None))
        elif names is not None or (folder / name / "README.md").is_file():
            outcomes.append(runner.again(load_study(name), folder))
        write_text(folder / "README.md", summary_page(plan, _all_outcomes(plan, store)))
    return Reproduction(tuple(outcomes), folder / "README.md")


def _chosen(names: str | Iterable[str] | None) -> list[str]:
    """Names of studies, each once."""
    if names is None:
        return list(STUDIES)
    chosen = [PARTS.get(each, each) for each in ([names] if isinstance(names, str) else names)]
    unknown = [name for name in chosen if name not in STUDIES]
    if unknown:
        raise InvalidParameterError(
            f"names must be studies ({', '.join(NAMES)}), got {unknown[0]!r}."
        )
    return list(dict.fromkeys(chosen))


@dataclass(frozen=True)
class UnitStore:
    """A folder with one JSON file per finished unit."""

    folder: Path

    def open(self) -> None:
        """Make the folder, or fail now rather than after an hour of work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / ".gitignore", _IGNORE)

    def get(self, unit: Unit) -> list[Record] | None:
        """The records of a finished unit; None if it must be computed."""
        try:
            stored = json.loads(self._file(unit).read_text(encoding="utf-8"))
            records: list[Record] = stored["records"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return records

    def put(self, unit: Unit, records: list[Record]) -> None:
        """Keep the records of a unit."""
        content = {"kind": unit.kind, "settings": dict(unit.settings), "records": records}
        write_text(self._file(unit), json.dumps(content, indent=1) + "\n")

    def _file(self, unit: Unit) -> Path:
        return self.folder / f"{unit.key}.json"


@dataclass(frozen=True)
class _Runner:
    plan: StudyPlan
    store: UnitStore
    sources: Sources
    progress: Progress

    def run(self, study: Study, folder: Path, *, required: bool) -> StudyOutcome:
        units = list(study.units(self.plan))
        reason = self._missing_data(units)
        if reason and required and all(unit.needs for unit in units):
            raise FileNotFoundError(reason)
        results: dict[str, list[Record]] = {unit.kind: [] for unit in units}
        possible = [unit for unit in units if not (reason and unit.needs)]
        self.progress(StudyStep(study.name, 0, len(possible)))
        for done, unit in enumerate(possible, start=1):
            results[unit.kind] += self._records(unit)
            self.progress(StudyStep(study.name, done, len(possible), unit.key))
        if not possible:
            return self._kept(StudyOutcome(study.name, study.title, (), reason))
        write_records(study, results, folder / study.name)
        return self._reported(study, results, folder, reason)

    def again(self, study: Study, folder: Path) -> StudyOutcome:
        """The pages of a study that was run before, from its records."""
        results = read_results(study, self.plan, folder / study.name)
        self.progress(StudyStep(study.name, 0, 1))
        missing = [kind for kind, records in results.items() if not records]
        reason = f"there are no records of {listing(missing)}." if missing else ""
        outcome = self._reported(study, results, folder, reason)
        self.progress(StudyStep(study.name, 1, 1, "pages"))
        return outcome

    def _reported(
        self, study: Study, results: RecordsByKind, folder: Path, reason: str
    ) -> StudyOutcome:
        report = write_report(study, self.plan, results, folder / study.name, reason)
        return self._kept(StudyOutcome(study.name, study.title, tuple(report.claims), reason))

    def _missing_data(self, units: Sequence[Unit]) -> str:
        """Why units that need data cannot run; empty if they can or are finished."""
        wanting = [unit for unit in units if unit.needs and self.store.get(unit) is None]
        try:
            for name in dict.fromkeys(unit.needs for unit in wanting):
                getattr(self.sources, name)  # loads them
        except FileNotFoundError as error:
            return str(error)
        return ""

    def _records(self, unit: Unit) -> list[Record]:
        stored = self.store.get(unit)
        if stored is None:
            stored = unit.run(self.sources)
            self.store.put(unit, stored)
        return rounded(stored)

    def _kept(self, outcome: StudyOutcome) -> StudyOutcome:
        self.store.put(_outcome_unit(outcome.study, self.plan), [asdict(outcome)])
        return outcome


def _outcome_unit(name: str, plan: StudyPlan) -> Unit:
    """The entry of the store that holds what a study found."""
    return Unit(f"{name}-outcome", lambda sources: [], asdict(plan))


def _all_outcomes(plan: StudyPlan, store: UnitStore) -> list[StudyOutcome]:
    """What studies found under this plan, in this run and in earlier ones."""
    stored = [store.get(_outcome_unit(name, plan)) for name in STUDIES]
    return [
        StudyOutcome(**{**record, "claims": tuple(map(_claim, record["claims"]))})
        for records in stored
        for record in records or []
    ]


def _claim(record: Record) -> Claim:
    others = {words: _findings(findings) for words, findings in record.get("others", {}).items()}
    return Claim(**{**record, "findings": _findings(record["findings"]), "others": others})


def _findings(stored: Record) -> dict[str, Finding]:
    return {way: Finding(**finding) for way, finding in stored.items()}
