"""``equipoise fit``: a model from a table."""

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.output import Voice, percent, shown

if TYPE_CHECKING:
    from equipoise.sets import Uncertainty

EPILOG = """\b
Examples:
  equipoise fit mail.csv --target spam --out mail.skops
  equipoise fit cards.parquet -t fraud -u prior-box:yes=0.001..0.05 -o cards.skops
  equipoise fit mail.csv -t spam --model boosting -u worst-class -o mail.skops --json

\b
Uncertainty sets (--uncertainty):
  standard, balanced            one weighting
  weights:ham=1,spam=5          one weighting, class by class
  worst-class                   any weighting: the worst class decides
  lcvar:0.1                     no class counts more than 1/0.1 times its share
  lhcvar:c=0.5,kappa=2          the same, with a level for each class
  weight-box:spam=1..10         weights between bounds
  prior-box:fraud=0.001..0.05   class frequencies between bounds
  prior-ball:kl=0.1             class frequencies near those of the table (kl, chi2, tv, l2)
  FILE.json                     the rest, as {"set": "WeightHull", "weightings": [...]}

\b
Shell completion (bash_source, zsh_source or fish_source):
  eval "$(_EQUIPOISE_COMPLETE=bash_source equipoise)"

\b
Exit codes: 0 done, 1 a problem with the data or the files, 2 wrong usage, 130 interrupted.
"""


_FORMS = (
    *("standard", "balanced", "worst-class", "weights:", "lcvar:", "lhcvar:"),
    *("weight-box:", "prior-box:", "prior-ball:"),
)


def _complete(_context: Any, _parameter: Any, incomplete: str) -> list[str]:
    return [form for form in _FORMS if form.startswith(incomplete)]


def _parsed(_context: Any, parameter: Any, value: str) -> "Uncertainty":
    from equipoise.cli.uncertainty import parse_uncertainty
    from equipoise.exceptions import InvalidInputError

    try:
        return parse_uncertainty(value)
    except InvalidInputError as error:
        raise click.BadParameter(str(error), param=parameter) from error


@click.command(epilog=EPILOG, short_help="Fit a model to a table and save it.")
@click.argument("table", type=click.Path())
@click.option("-t", "--target", required=True, help="Column that holds the class of each row.")
@click.option("-o", "--out", required=True, type=click.Path(), help="Model file to write (.skops).")
@click.option(
    "--model",
    "kind",
    type=click.Choice(["linear", "boosting"]),
    default="linear",
    show_default=True,
    help="Logistic regression, or gradient boosting with robust decisions.",
)
@click.option(
    "-u",
    "--uncertainty",
    default="lcvar:0.1",
    show_default=True,
    callback=_parsed,
    shell_complete=_complete,
    help="Set of class weightings to be good under; see below.",
)
@click.option(
    "--C",
    "strength",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="Inverse strength of the linear model's penalty.",
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Column to leave out; repeatable.")
@click.option("--text-labels", is_flag=True, help="Every distinct number in the target is a class.")
@click.option(
    "--hold-out",
    "share",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.2,
    show_default=True,
    help="Share of the rows set aside to measure class risks before the final fit; 0 for none.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of everything random.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def fit(**options: Any) -> None:
    """Fit a robust classifier to TABLE and save it as a model file.

    TABLE is a CSV file (gzipped or not) or a Parquet file. Text columns become categories, missing
    values are allowed, and the model file holds the training facts beside the weights. It cannot
    execute code when it is loaded.
    """
    from equipoise.cli.fitting import Request, fitted

    voice = Voice(quiet=options.pop("quiet"), as_json=options.pop("as_json"))
    request = Request(**options)
    outcome = fitted(request, voice)
    voice.warn(outcome.facts.notes)
    voice.tell(_lines(request, outcome), _result(request, outcome))


def _lines(request: Any, outcome: Any) -> list[str]:
    facts, found = outcome.facts, outcome.judgement
    lines = [
        f"{sum(facts.counts):,} rows, {len(facts.columns)} columns, {len(facts.classes)} classes; "
        f"{facts.model} model, {facts.uncertainty}."
    ]
    if found is not None:
        worst = found.worst
        lines += [
            f"Class risks on {percent(request.share)} of the rows, set aside and not seen:",
            *found.lines(),
            f"Worst class: {shown(found.risks.worst_class())}, {percent(worst.estimate)} "
            f"({percent(worst.lower)} to {percent(worst.upper)}).",
        ]
    return [*lines, f"Saved {request.out}, fitted to all rows."]


def _result(request: Any, outcome: Any) -> dict[str, Any]:
    facts, found = outcome.facts, outcome.judgement
    return {
        "model_file": request.out,
        "model": facts.model,
        "uncertainty": facts.uncertainty,
        "target": facts.target,
        "rows": sum(facts.counts),
        "columns": [column.name for column in facts.columns],
        "counts": [
            {"class": name, "rows": rows}
            for name, rows in zip(facts.classes, facts.counts, strict=True)
        ],
        "held_out": None if found is None else found.to_dict(),
        "seed": facts.seed,
        "warnings": list(facts.notes),
    }
