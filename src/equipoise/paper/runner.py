"""Runs studies: unit by unit, keeping what is finished."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from equipoise.exceptions import InvalidParameterError
from equipoise.extras import require
from equipoise.paper.pages import write_report
from equipoise.paper.registry import STUDIES, load_study
from equipoise.paper.sources import Sources
from equipoise.paper.store import Store, write_text
from equipoise.paper.study import Claim, Plan, Record, Study, Unit, Verdict
from equipoise.paper.summary import Outcome, Summary, summary_page


@dataclass(frozen=True)
class Step:
    """How far a study is: ``done`` of ``total`` units, and which one was just finished."""

    study: str
    done: int
    total: int
    unit: str = ""


Progress = Callable[[Step], None]


def reproduce(
    names: str | Iterable[str] | None = None,
    *,
    quick: bool = False,
    seed: int = 0,
    out: str | os.PathLike[str] = "results",
    data: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Run studies of the paper, and write their data, figures and pages.

    Every finished unit of work is kept under ``out``: run again after an interruption, and only
    what is missing is computed. Units of other settings (``quick``, ``seed``) are kept apart.

    Parameters
    ----------
    names : str or iterable of str, optional
        Which studies, by the names in :data:`STUDIES`; all by default.
    quick : bool, default=False
        Whether to run the one-minute version, which shows directions only.
    seed : int, default=0
        The first seed.
    out : path-like, default="results"
        Folder for a page per study and ``README.md``, which says claim by claim what held.
    data : path-like, optional
        Covertype, as :func:`equipoise.datasets.fetch_covtype` takes it. Where it cannot be had,
        what needs it is left out with a reason; a study that was asked for by name and can do
        nothing without it fails.
    progress : callable, optional
        Called with a :class:`Step` at the start of every study and after every unit.

    Returns
    -------
    Summary
        The claims of the studies of this run, and where the pages are.
    """
    chosen = _chosen(names)
    plan = Plan(quick=quick, seed=_checked_seed(seed))
    require("matplotlib.figure", extra="plot")
    folder = Path(out)
    store, sources = Store(folder / ".units"), Sources(data)
    store.open()
    outcomes = []
    for name in chosen:
        runner = _Runner(plan, store, sources, progress or (lambda step: None))
        outcomes.append(runner.run(load_study(name), folder, required=names is not None))
        write_text(folder / "README.md", summary_page(plan, _all_outcomes(plan, store)))
    return Summary(tuple(outcomes), folder / "README.md")


@dataclass(frozen=True)
class _Runner:
    plan: Plan
    store: Store
    sources: Sources
    progress: Progress

    def run(self, study: Study, folder: Path, *, required: bool) -> Outcome:
        units = list(study.units(self.plan))
        reason = self._missing_data(units)
        if reason and required and all(unit.needs_covertype for unit in units):
            raise FileNotFoundError(reason)
        results: dict[str, list[Record]] = {unit.kind: [] for unit in units}
        possible = [unit for unit in units if not (reason and unit.needs_covertype)]
        self.progress(Step(study.name, 0, len(possible)))
        for done, unit in enumerate(possible, start=1):
            results[unit.kind] += self._records(unit)
            self.progress(Step(study.name, done, len(possible), unit.key))
        if not possible:
            return self._kept(Outcome(study.name, study.title, (), reason))
        report = study.report(self.plan, results)
        write_report(study, self.plan, report, folder / study.name, reason)
        return self._kept(Outcome(study.name, study.title, tuple(report.claims), reason))

    def _missing_data(self, units: Sequence[Unit]) -> str:
        """Why units that need Covertype cannot run; empty if they can or are finished."""
        wanting = [unit for unit in units if unit.needs_covertype and self.store.get(unit) is None]
        if not wanting:
            return ""
        try:
            self.sources.covertype  # noqa: B018  loads it
        except FileNotFoundError as error:
            return str(error)
        return ""

    def _records(self, unit: Unit) -> list[Record]:
        stored = self.store.get(unit)
        if stored is None:
            stored = unit.run(self.sources)
            self.store.put(unit, stored)
        return stored

    def _kept(self, outcome: Outcome) -> Outcome:
        record = {**asdict(outcome), "claims": [asdict(claim) for claim in outcome.claims]}
        self.store.put(_outcome_unit(outcome.study, self.plan), [record])
        return outcome


def _outcome_unit(name: str, plan: Plan) -> Unit:
    """The entry of the store that holds what a study found."""
    return Unit(f"{name}-outcome", lambda sources: [], asdict(plan))


def _all_outcomes(plan: Plan, store: Store) -> list[Outcome]:
    """What studies found under this plan, in this run and in earlier ones."""
    found = []
    for name in STUDIES:
        stored = store.get(_outcome_unit(name, plan))
        if stored:
            claims = tuple(_claim(record) for record in stored[0]["claims"])
            found.append(Outcome(name, stored[0]["title"], claims, stored[0]["left_out"]))
    return found


def _claim(record: Record) -> Claim:
    verdicts = {way: Verdict(**verdict) for way, verdict in record["verdicts"].items()}
    return Claim(record["where"], record["text"], verdicts)


def _chosen(names: str | Iterable[str] | None) -> list[str]:
    if names is None:
        return list(STUDIES)
    chosen = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in chosen if name not in STUDIES]
    if unknown:
        raise InvalidParameterError(
            f"names must be studies ({', '.join(STUDIES)}), got {unknown[0]!r}."
        )
    return list(dict.fromkeys(chosen))


def _checked_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InvalidParameterError(f"seed must be an integer of at least 0, got {seed!r}.")
    return seed
