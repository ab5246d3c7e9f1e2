"""The work behind ``equipoise evaluate``: labels and predictions, a chunk of rows at a time."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from equipoise.cli.judgement import Judgement, judge
from equipoise.cli.output import Voice
from equipoise.cli.uncertainty import bind_classes, parse_uncertainty
from equipoise.models import load_model
from equipoise.tables import labels_like, read_chunks


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    model: str
    table: str
    target: str | None
    confidence: float


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    rows: int
    uncertainty: str
    judgement: Judgement
    notes: tuple[str, ...]


def evaluated(request: Request, voice: Voice) -> Outcome:
    """Judge a saved model by a table with labels."""
    saved = load_model(request.model)
    target = saved.facts.target if request.target is None else request.target
    classes = saved.facts.class_names()
    texts = (target,) if classes.dtype == object else ()
    truth, guess = [], []
    size = Path(request.table).stat().st_size if Path(request.table).is_file() else 0
    with voice.progress(size, "Evaluating") as bar:
        parts = read_chunks(request.table, saved.facts.columns, texts=texts, progress=bar.reach)
        with closing(parts) as chunks:
            for chunk in chunks:
                truth.append(labels_like(chunk, target, classes))
                guess.append(saved.predict(chunk))
    y_true, y_pred = np.concatenate(truth), np.concatenate(guess)
    recipe = bind_classes(parse_uncertainty(saved.facts.uncertainty), classes)
    found = judge(y_true, y_pred, classes, recipe, confidence=request.confidence)
    return Outcome(len(y_true), saved.facts.uncertainty, found, (*saved.notes, *_absent(found)))


def _absent(found: Judgement) -> list[str]:
    if not found.absent:
        return []
    names = ", ".join(map(repr, found.absent[:5])) + (", ..." if len(found.absent) > 5 else "")
    return [f"The table has no rows of class {names}: nothing is known about that risk."]
