"""The work of a comparison: folds, fits, verdicts, costs, and a recommendation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from equipoise.arrays import Indices as Rows
from equipoise.report.boosting import FIT_UNITS, boosting_findings, tune_units
from equipoise.report.choices import Choice, make_choices, make_worlds
from equipoise.report.folds import MANY_ROWS, make_design
from equipoise.report.judge import Court, cost_matrix, resampled_costs
from equipoise.report.linear import PATH_UNITS, AlphaPath, Findings, linear_findings
from equipoise.report.recommend import recommend
from equipoise.report.results import Results
from equipoise.report.snippet import Source, refit_lines
from equipoise.report.steps import Steps, Told
from equipoise.sets import alpha_grid
from equipoise.tables import LabelledTable as Table


@dataclass(frozen=True, eq=False)
class Wishes:
    """What to compare and how: see :func:`equipoise.report.compare`."""

    models: Sequence[str]
    uncertainties: Mapping[str, Any] | None
    cv: int
    seed: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """Predictions of every choice, and what was learnt on the way."""

    predicted: dict[str, Rows]
    path: AlphaPath | None
    notes: tuple[str, ...]
    gaps: tuple[float, ...]
    sampled: tuple[tuple[str, int], ...]


def run(table: Table, wishes: Wishes, source: Source, told: Told | None, began: float) -> Results:
    """Compare on a table."""
    court = Court(table, make_design(table, wishes.cv, wishes.seed))
    prior = table.prior[court.deciding]
    worlds = make_worlds(wishes.uncertainties, prior)
    choices = make_choices(wishes.models, worlds)
    fitted = _fit(court, choices, prior, told, wishes.seed)
    predicted = [fitted.predicted[choice.label] for choice in choices]
    verdicts = tuple(court.verdict(each) for each in predicted)
    costs = cost_matrix(verdicts, worlds)
    resampled = resampled_costs(court, predicted, worlds, seed=wishes.seed)
    found = recommend(costs, resampled)
    return Results(
        title=_title(source),
        court=court,
        choices=choices,
        verdicts=verdicts,
        worlds=tuple(worlds),
        costs=costs,
        path=fitted.path,
        recommendation=found,
        code=refit_lines(choices[found.place], source, int(table.counts.min()), wishes.seed),
        notes=fitted.notes,
        gaps=fitted.gaps,
        sampled=fitted.sampled,
        seed=wishes.seed,
        seconds=perf_counter() - began,
    )


def _title(source: Source) -> str:
    if source.path is None:
        return "Which class weights?"
    return f"Which class weights for {Path(source.path).name}?"


def _fit(
    court: Court, choices: tuple[Choice, ...], prior: Any, told: Told | None, seed: int
) -> Fitted:
    table, design = court.table, court.design
    linear = [choice for choice in choices if choice.model == "linear"]
    boosting = [choice for choice in choices if choice.model == "boosting"]
    steps = Steps(design.n_folds * (_linear_units(linear) + _boosting_units(boosting)), told)
    predicted: dict[str, Rows] = {}
    parts: list[Findings] = []
    path, sampled = None, []
    if linear:
        found, path = linear_findings(table, design, linear, alpha_grid(prior, 12), steps, seed)
        parts.append(found)
        if len(table.y) - len(design.judged) > MANY_ROWS:
            sampled.append(("the slider", path.n_rows))
    if boosting:
        found, size = boosting_findings(table, design, boosting, steps, seed)
        parts.append(found)
        if len(table.y) > MANY_ROWS:
            sampled.append(("gradient boosting", size))
    for part in parts:
        predicted |= part.predicted
    steps.end()
    notes = {
        kind: f"{label}: {text}" for part in parts for (label, kind), text in part.notes.items()
    }
    # One of each kind is enough to be warned.
    return Fitted(
        predicted,
        path,
        tuple(notes.values()),
        tuple(g for p in parts for g in p.gaps),
        tuple(sampled),
    )


def _linear_units(choices: list[Choice]) -> float:
    return len(choices) + PATH_UNITS if choices else 0.0


def _boosting_units(choices: list[Choice]) -> float:
    return FIT_UNITS + sum(map(tune_units, choices)) if choices else 0.0
