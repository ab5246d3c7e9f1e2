"""What is expected of unlabelled rows: class frequencies, and errors of every candidate."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Matrix, NDArray
from equipoise.decisions import HeldOut, Training
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.trained import class_probabilities
from equipoise.exceptions import EquipoiseError
from equipoise.report.answer import Answer
from equipoise.report.design import Design
from equipoise.report.evaluations import Evaluator
from equipoise.shift import PriorEstimate, calibrate
from equipoise.shift.prior_estimate import estimate_of_rows
from equipoise.tables import LabelledTable
from equipoise.tables.columns import as_frame, conform
from equipoise.text import in_words, quoted

# Unlabelled rows part by part, given the columns of the table.
NewTables = Callable[[Any], Iterator[Any]]


def check_new_rows(tables: NewTables, table: LabelledTable, *, ours: bool) -> None:
    """Refuse new rows that cannot be read, or without the columns of our models, before fits."""
    first = next(iter(tables(table.columns)), None)
    if ours and first is not None:
        conform(as_frame(first), table.columns)


def on_new_rows(
    tables: NewTables, advice: Answer, design: Design, evaluator: Evaluator
) -> dict[str, Any]:
    """The section 'On your new rows', with nothing but dicts, lists, texts and numbers.

    Class frequencies are estimated by the advised model, calibrated on its held-out rows. What
    cannot be estimated is refused in a sentence, which takes the place of the section.
    """
    if not design.evaluated.all():
        lost = in_words(map(quoted, design.table.classes[~design.evaluated].tolist()))
        return {
            "refused": f"Too few rows of {lost} to be held out: class frequencies cannot be "
            "estimated. Collect more, or leave such rows out of the table."
        }
    name = advice.best.candidate.model
    try:
        estimate = _estimated(tables, advice.best.held_out, design, evaluator, name)
    except EquipoiseError as reason:
        return {"refused": str(reason)}
    ends = [np.asarray(each) for each in (estimate.mean, estimate.lower, estimate.upper)]
    errors = [
        estimate.overall_error(np.asarray(each.intervals.risks), each.evaluated.counts.sum(axis=1))
        for each in advice.evaluations
    ]
    adapted = estimate.adapt("accuracy").overall_error()
    return {
        "refused": "",
        "rows": estimate.n_rows,
        "model": name,
        "confidence": estimate.confidence,
        "p_value": None if np.isnan(estimate.p_value) else float(estimate.p_value),
        "is_mixture": estimate.is_mixture,
        "verdict": estimate.verdict,
        "classes": [_ends(*each) for each in zip(*ends, strict=True)],
        "candidates": [_ends(each.estimate, each.lower, each.upper) for each in errors],
        "adapted": _ends(adapted.estimate, adapted.lower, adapted.upper),
    }


def _estimated(
    tables: NewTables, held_out: HeldOut, design: Design, evaluator: Evaluator, name: str
) -> PriorEstimate:
    predictions, table = held_out.predictions, design.table
    labels = table.classes[predictions.labels]
    known = calibrate(labels, predictions.probabilities, classes=table.classes)
    evaluator.tell("new rows")
    models = evaluator.models[name]
    rng = np.random.default_rng(evaluator.seed)
    rows = known.new_rows(
        _dealt_out(models, part, evaluator.training, table.classes, rng)
        for part in tables(table.columns)
    )
    return estimate_of_rows(known, rows, model=models[0])


def _dealt_out(
    models: Sequence[Any],
    part: Any,
    training: Training,
    classes: NDArray[Any],
    rng: np.random.Generator,
) -> Matrix:
    """Every row by the model of a fold at random, as the held-out rows are.

    A model that is fitted to all rows would be more certain than those of the held-out rows, and
    rows would look unlike any mixture of them.
    """
    tables = np.array(
        [
            rescaled(class_probabilities(model, part, classes), training.factors_for(model))
            for model in models
        ]
    )
    n = tables.shape[1]
    return np.asarray(tables[rng.integers(len(models), size=n), np.arange(n)])


def _ends(value: float, lower: float, upper: float) -> dict[str, float]:
    return {"value": float(value), "lower": float(lower), "upper": float(upper)}
