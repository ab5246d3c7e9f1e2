"""``equipoise predict``: the classes of new rows."""

from typing import Any

import click

from equipoise.cli.output import Voice

EPILOG = """\b
Examples:
  equipoise predict mail.skops new.csv --out classes.csv
  equipoise predict mail.skops new.csv.gz --proba --keep id --out classes.csv.gz
  equipoise predict mail.skops new.parquet --out - | head

\b
Exit codes: 0 done, 1 a problem with the data or the files, 2 wrong usage, 130 interrupted.
"""


@click.command(epilog=EPILOG, short_help="Apply a saved model to the rows of a table.")
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
    show_default=True,
    help="Probabilities in the model's world, where the weights of the worst case hold and which "
    "agrees with the predictions, or on the scale of the training table.",
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="Column to copy; repeatable.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as one JSON object.")
def predict(**options: Any) -> None:
    """Apply MODEL, a file that 'equipoise fit' wrote, to the rows of TABLE.

    The table is read and the predictions are written a few rows at a time, so that files larger
    than memory work. The output has one row for each row of the table, in its order; it appears
    under its name only when it is complete.
    """
    if options["out"] == "-" and options["as_json"]:
        raise click.UsageError("--json prints to stdout, where the predictions go with --out -.")
    from equipoise.cli.predicting import Request, predicted

    voice = Voice(quiet=options.pop("quiet"), as_json=options.pop("as_json"))
    request = Request(**options)
    outcome = predicted(request, voice)
    voice.warn(outcome.notes)
    place = "stdout" if request.out == "-" else request.out
    lines = [f"Wrote {outcome.rows:,} predictions to {place}."]
    result = {
        "rows": outcome.rows,
        "predicted": [{"class": name, "rows": rows} for name, rows in outcome.predicted.items()],
        "out": request.out,
        "warnings": list(outcome.notes),
    }
    voice.tell(lines, result, err=request.out == "-")
