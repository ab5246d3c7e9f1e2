"""``equipoise evaluate``: what a saved model is worth on a table with labels."""

from typing import Any

import click

from equipoise.cli.output import Voice, percent, shown

EPILOG = """\b
Examples:
  equipoise evaluate mail.skops test.csv
  equipoise evaluate mail.skops test.csv --target spam --confidence 0.99 --json

\b
Exit codes: 0 done, 1 a problem with the data or the files, 2 wrong usage, 130 interrupted.
"""


@click.command(epilog=EPILOG, short_help="Measure a saved model's class risks on a table.")
@click.argument("model", type=click.Path())
@click.argument("table", type=click.Path())
@click.option("-t", "--target", default=None, help="Label column; by default that of the training.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Probability that an interval covers its risk.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def evaluate(**options: Any) -> None:
    """Measure MODEL, a file that 'equipoise fit' wrote, on the rows of TABLE.

    For each class the share of its rows that get another class, with an exact interval; the worst
    class; and the robust risk, the largest weighted risk over the model's uncertainty set. The
    rows must not have been used in training.
    """
    from equipoise.cli.evaluating import Request, evaluated

    voice = Voice(quiet=options.pop("quiet"), as_json=options.pop("as_json"))
    outcome = evaluated(Request(**options), voice)
    voice.warn(outcome.notes)
    voice.tell(_lines(outcome), _result(outcome))


def _lines(outcome: Any) -> list[str]:
    found = outcome.judgement
    worst = found.worst
    robust = (
        "not estimable, because a class has no rows"
        if found.robust is None
        else percent(found.robust)
    )
    return [
        *found.lines(),
        f"Worst class: {shown(found.risks.worst_class())}, {percent(worst.estimate)} "
        f"({percent(worst.lower)} to {percent(worst.upper)}).",
        f"Standard risk: {percent(found.risks.standard())}. Balanced risk: "
        f"{percent(found.risks.balanced())}.",
        f"Robust risk over {shown(outcome.uncertainty)}: {robust}.",
    ]


def _result(outcome: Any) -> dict[str, Any]:
    return {
        "rows": outcome.rows,
        "uncertainty": outcome.uncertainty,
        **outcome.judgement.to_dict(),
        "warnings": list(outcome.notes),
    }
