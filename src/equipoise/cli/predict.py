"""``equipoise predict``: the classes of new rows, a chunk of them at a time."""

import gzip
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.main import Output, command
from equipoise.text import listing, percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from equipoise.persistence import SavedModel
    from equipoise.shift import AdaptedClassifier

EPILOG = """\b
Examples:
  equipoise predict mail.equipoise new.csv --out classes.csv
  equipoise predict mail.equipoise new.csv.gz --proba --keep id --out classes.csv.gz
  equipoise predict mail.equipoise new.parquet --out - | head
"""


# _FORMULA: text that a spreadsheet runs as a formula; a number with a sign is not one.
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]*(e[+-]?\d+)?$)", re.IGNORECASE)


@command(EPILOG)
@click.argument("model", type=click.Path())
@click.argument("table", type=click.Path())
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(allow_dash=True),
    help="CSV file to write, gzipped if it ends in .gz; - for stdout.",
)
@click.option("--proba", is_flag=True, help="Also write a probability for each class.")
@click.option(
    "--scale",
    type=click.Choice(["model", "population"]),
    default="model",
    help="Probabilities as predict_proba returns them (of a robust linear fit, for the weights of "
    "its worst case), or for the class frequencies of the training table. With tuned decisions "
    "the prediction need not be the class of the largest probability.",
)
@click.option(
    "--keep", multiple=True, metavar="COLUMN", help="Column to copy as it is; repeatable."
)
@click.option(
    "--adapt",
    type=click.Path(),
    metavar="LABELLED",
    help="Predict for the class frequencies of TABLE, estimated with LABELLED: a table with the "
    "label column, of rows that the model was not trained on. TABLE is read twice.",
)
def predict(  # noqa: PLR0913  one for each option
    *,
    model: str,
    table: str,
    out: str,
    proba: bool,
    scale: str,
    keep: tuple[str, ...],
    adapt: str | None,
    output: Output,
) -> None:
    """Apply MODEL, a file that 'equipoise fit' wrote, to the rows of TABLE.

    The table is read and the predictions are written a few rows at a time, so that files larger
    than memory work. The output has one row for each row of the table, in its order, and in a table
    of one column for each blank line, which is a missing value. The output appears under its name
    only when it is complete. Texts and names of columns are written as they are: a spreadsheet runs
    those that begin with =, +, - or @ as formulas unless they are imported as text, and a warning
    says so where there are any.
    """
    if out == "-" and output.as_json:
        raise click.UsageError("--json prints to stdout, where the predictions go with --out -.")
    from equipoise.files import check_place
    from equipoise.persistence import load_model

    if out != "-":
        check_place(out, table, model)
    saved = load_model(model)
    adapted = None if adapt is None else adapted_model(saved, table, adapt, output)
    counts: Counter[Any] = Counter()
    formula = None
    with (
        _stream(out) as stream,
        table_chunks(saved, table, output, "Predicting", copied=keep) as chunks,
    ):
        for chunk in chunks:
            frame = _predictions(chunk, saved, keep, scale if proba else None, adapted)
            text: str = frame.to_csv(index=False, header=not counts, lineterminator="\n")
            stream.write(text.encode("utf-8"))
            formula = formula or _formula(frame)
            counts.update(frame["prediction"].tolist())
    result: dict[str, Any] = {
        "rows": counts.total(),
        "predicted": [{"class": name, "rows": rows} for name, rows in counts.items()],
        "out": out,
    }
    place = "stdout" if out == "-" else out
    lines = [f"Wrote {counts.total():,} predictions to {place}."]
    notes = list(saved.notes)
    if adapted is not None:
        estimate = adapted.estimate
        frequencies = [f"{name} {percent(share)}" for name, share in estimate.mean.items()]
        lines.append(f"Estimated class frequencies: {', '.join(frequencies)}.")
        result["class_frequencies"] = list(estimate.mean.values())
        notes += [*adapted.notes, *([] if estimate.is_mixture else [estimate.verdict])]
    if formula is not None:
        notes.append(
            f"A spreadsheet would run {listing([formula])} as a formula: import the header "
            "and the columns of texts as text."
        )
    output.show(lines, result, notes, err=out == "-")


@contextmanager
def table_chunks(
    saved: "SavedModel", path: str, output: Output, label: str, **columns: Any
) -> Iterator[Iterator[Any]]:
    """The rows of a table with the training columns, some at a time, with a progress bar."""
    from equipoise.exceptions import InvalidInputError
    from equipoise.tables import read_chunks

    if saved.facts.columns is None:
        raise InvalidInputError(
            "The model was saved without training facts, so that its columns are not known: "
            "use it in Python (equipoise.load_model), or save it with facts."
        )
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    with output.progress(size, label) as reach:
        chunks = read_chunks(path, saved.facts.columns, progress=reach, **columns)
        with closing(chunks):
            yield chunks


def labelled_rows(
    saved: "SavedModel",
    table: str,
    target: str,
    predict: Callable[[Any], Any],
    output: Output,
    label: str,
) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Labels of a table, and what the model predicts for its rows, a chunk of them at a time."""
    import numpy as np

    from equipoise.tables import labels_like

    classes = saved.facts.class_names()
    texts = (target,) if classes.dtype == object else ()
    with table_chunks(saved, table, output, label, texts=texts) as chunks:
        pairs = [(labels_like(chunk, target, classes), predict(chunk)) for chunk in chunks]
    truth, predicted = map(np.concatenate, zip(*pairs, strict=True))
    return truth, predicted


def adapted_model(
    saved: "SavedModel", table: str, labelled: str, output: Output
) -> "AdaptedClassifier":
    """The model for the class frequencies of a table, calibrated on a table with labels."""
    from equipoise.decisions.classifiers import last_step
    from equipoise.estimators.adapting import fitted_goal, halves
    from equipoise.goals import as_goal
    from equipoise.shift import calibrate
    from equipoise.shift.adapted import adapted_to
    from equipoise.shift.prior_estimate import estimate_of_rows

    target, classes = saved.facts.target, saved.facts.class_names()
    if target is None:
        raise click.UsageError("The model file names no label column, which --adapt needs.")
    y, probabilities = labelled_rows(
        saved, labelled, target, saved.predict_proba, output, "Calibrating"
    )
    held_out, shown = (probabilities, y), None
    goal = as_goal(fitted_goal(last_step(saved.model)))
    if goal.confidence is not None:
        held_out, shown = halves(held_out, seed=0)
    known = calibrate(held_out[1], held_out[0], classes=classes)
    with table_chunks(saved, table, output, "Estimating") as chunks:
        rows = known.new_rows(map(saved.predict_proba, chunks))
    estimate = estimate_of_rows(known, rows, model=saved.model)
    return adapted_to(estimate, goal, shown, random_state=0)


@contextmanager
def _stream(out: str) -> Iterator[Any]:
    """The stream that the predictions are written to."""
    from equipoise.files import atomic_write

    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with atomic_write(out) as file:
        if not out.lower().endswith(".gz"):
            yield file
            return
        # No name and no time in it: equal predictions make equal files.
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
            yield packed


def _predictions(
    chunk: Any,
    saved: "SavedModel",
    keep: tuple[str, ...],
    scale: str | None,
    adapted: "AdaptedClassifier | None" = None,
) -> Any:
    """Kept columns, predictions, and probabilities on a scale if there is one."""
    from equipoise.exceptions import InvalidInputError, in_a_sentence
    from equipoise.extras import require
    from equipoise.tables import find_column
    from equipoise.tables.read import as_read

    kept, chunk = {}, chunk.copy(deep=False)
    for name in keep:
        column = find_column(chunk, name)
        kept[name] = chunk[column]
        with in_a_sentence(f"The column {listing([name])} cannot be copied", TypeError):
            kept[name].unique()
        chunk[column] = as_read(chunk[column])
    table: Any = None
    if adapted is not None:
        labels, table = adapted.from_probabilities(saved.predict_proba(chunk))
        columns = {"prediction": labels}
    else:
        columns = {"prediction": saved.predict(chunk)}
        of_scale = {"model": saved.predict_proba, "population": saved.population_proba}
        table = table if scale is None else of_scale[scale](chunk)
    if scale is not None:
        for label, column in zip(saved.facts.classes, table.T, strict=True):
            columns[f"probability[{label}]"] = column
    if taken := [name for name in keep if name in columns]:
        raise InvalidInputError(
            f"The column {listing(taken)} cannot be kept, because one of the output has that name: "
            "rename it first."
        )
    return require("pandas", extra="cli").DataFrame(kept | columns, index=chunk.index)


def _formula(frame: Any) -> str | None:
    """A text, of the header or of a cell, that a spreadsheet would run."""
    texts = frame.select_dtypes(exclude="number")
    cells = (text for name in texts for text in texts[name].dropna().unique())
    candidates = map(str, chain(frame.columns, cells))
    return next((text for text in candidates if _FORMULA.match(text)), None)
