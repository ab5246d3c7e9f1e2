"""The work behind ``equipoise predict``: a chunk of rows in, a chunk of predictions out."""

import gzip
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.cli.output import Voice
from equipoise.cli.paths import check_output
from equipoise.exceptions import InvalidInputError
from equipoise.extras import require
from equipoise.models import SavedModel, atomic_write, load_model
from equipoise.tables import read_chunks


@dataclass(frozen=True)
class Request:
    """What the command line asked for."""

    model: str
    table: str
    out: str
    proba: bool
    scale: str
    keep: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of it: rows written, and how often each class was predicted."""

    rows: int
    predicted: dict[Any, int]
    notes: tuple[str, ...]


def predicted(request: Request, voice: Voice) -> Outcome:
    """Predict every row of the table into the output."""
    if request.out != "-":
        check_output(request.out, request.table, request.model)
    saved = load_model(request.model)
    counts: Counter[Any] = Counter()
    size = Path(request.table).stat().st_size if Path(request.table).is_file() else 0
    with _output(request.out) as stream, voice.progress(size, "Predicting") as bar:
        columns = saved.facts.columns
        parts = read_chunks(request.table, columns, texts=request.keep, progress=bar.reach)
        with closing(parts) as chunks:
            for chunk in chunks:
                frame = _predictions(chunk, saved, request)
                text: str = frame.to_csv(index=False, header=not counts, lineterminator="\n")
                stream.write(text.encode("utf-8"))
                counts.update(frame["prediction"].tolist())
    return Outcome(sum(counts.values()), dict(counts), saved.notes)


@contextmanager
def _output(out: str) -> Iterator[Any]:
    if out == "-":
        stdout = sys.stdout.buffer
        yield stdout
        stdout.flush()
        return
    with atomic_write(out) as file:
        if not out.endswith(".gz"):
            yield file
            return
        # Without a name and a time in it, equal predictions are equal files.
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
            yield packed


def _predictions(chunk: Any, saved: SavedModel, request: Request) -> Any:
    pandas = require("pandas", extra="cli")
    kept = _kept(chunk, request.keep)
    frame = pandas.DataFrame({**kept, "prediction": saved.predict(chunk)}, index=chunk.index)
    if request.proba:
        found = _probabilities(chunk, saved, request.scale)
        for place, name in enumerate(saved.facts.classes):
            frame[f"probability[{name}]"] = found[:, place]
    return frame


def _kept(chunk: Any, keep: tuple[str, ...]) -> dict[str, Any]:
    names = {str(name): name for name in chunk.columns}
    for name in keep:
        if name not in names:
            shown = ", ".join(map(repr, list(names)[:20]))
            raise InvalidInputError(f"There is no column {name!r} to keep; there are {shown}.")
        if name == "prediction":
            raise InvalidInputError("The column 'prediction' cannot be kept: rename it first.")
    return {name: chunk[names[name]] for name in keep}


def _probabilities(chunk: Any, saved: SavedModel, scale: str) -> Any:
    if scale == "model":
        return saved.predict_proba(chunk)
    return saved.predict_population_proba(chunk)
