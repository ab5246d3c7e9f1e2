"""``equipoise report``: the whole story of a table as one page."""

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.output import (
    EXIT_CODES,
    GoalText,
    Output,
    check_output,
    drop_option,
    json_option,
    labels_option,
    quiet_option,
    seed_option,
    target_option,
)
from equipoise.text import percent, printable, short_name, text_table, without_isolates

if TYPE_CHECKING:
    from equipoise.report import Comparison

EPILOG = f"""\b
Examples:
  equipoise report mail.csv --target spam --out mail.html
  equipoise report cards.parquet -t fraud -o cards.html --drop card_id --seed 7
  equipoise report mail.csv -t spam -o mail.html -g balanced -g "LabelCVaR(alpha=0.2)"
  equipoise report mail.csv -t spam -o mail.html --json | jq .recommendation

{EXIT_CODES}"""

_STEPS = 1000


@click.command(epilog=EPILOG, short_help="Tell the whole story of a table as a page.")
@click.argument("path", metavar="TABLE", type=click.Path())
@target_option
@click.option("-o", "--out", required=True, type=click.Path(), help="Page to write (.html).")
@click.option(
    "--model",
    "models",
    type=click.Choice(["linear", "boosting"]),
    multiple=True,
    help="Compare this kind of model only; both by default.",
)
@click.option(
    "-g",
    "--goal",
    "-u",
    "--uncertainty",
    "goals",
    type=GoalText(),
    multiple=True,
    help="Set of class weightings to compare beside standard, as in 'equipoise fit'; repeatable. "
    "Balanced weights, lcvar:0.1 and the worst class by default.",
)
@drop_option
@labels_option
@seed_option
@quiet_option
@json_option
def report(  # noqa: PLR0913  one argument for each option
    *,
    path: str,
    target: str,
    out: str,
    models: tuple[str, ...],
    goals: tuple[Any, ...],
    drop: tuple[str, ...],
    text_labels: bool,
    seed: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare class weights on TABLE and write one self-contained HTML page.

    Standard, balanced and robust classifiers, linear and gradient boosting, are judged on rows
    that they have not seen. The page says whom each of them fails, what each weighting costs under
    the others, which one to take and why, and how far the numbers can be trusted.
    """
    from equipoise.extras import require
    from equipoise.report import compare_file

    check_output(out, path)
    # Known at the end of long work, this would be a pity.
    require("jinja2", extra="report")
    output = Output(quiet=quiet, as_json=as_json)
    with output.progress(_STEPS, "Reading") as bar:
        found = compare_file(
            path,
            target,
            models=models or ("linear", "boosting"),
            uncertainties=_sets(goals) if goals else None,
            drop=drop,
            text_labels=text_labels,
            random_state=seed,
            progress=lambda share, what: bar.reach(round(share * _STEPS), what),
        )
    found.save(out)
    result = found.to_dict()
    output.warn(result["data"]["warnings"])
    output.show(
        _lines(found, result, out), {"page": out, "recommended": found.recommended, **result}
    )


def _sets(goals: tuple[Any, ...]) -> dict[str, Any]:
    """Uncertainty sets by the words or texts that stand for them."""
    from equipoise.goals import WORDS, format_goal
    from equipoise.sets import Uncertainty

    words = {format_goal(recipe): word for word, recipe in WORDS.items()}
    for goal in goals:
        if not isinstance(goal, Uncertainty):
            raise click.BadParameter(
                f"the report compares sets of class weightings, and {format_goal(goal)} is none; "
                "'equipoise fit' takes it.",
                param_hint="--goal",
            )
    return {words.get(format_goal(goal), format_goal(goal)): goal for goal in goals}


def _lines(found: "Comparison", result: dict[str, Any], out: str) -> list[str]:
    data = result["data"]
    names = [each["name"] for each in data["classes"]]
    header = ["made for", "standard", "balanced", "worst class", "which", "largest regret"]
    rows = [
        [
            short_name(one["label"]),
            percent(one["standard"]),
            percent(one["balanced"]),
            percent(one["worst"]),
            short_name(names[one["worst_class"]]),
            f"{100 * one['largest_regret']:.1f}",
        ]
        for one in result["choices"]
    ]
    return [
        f"{data['rows']:,} rows, {data['columns']} columns, {len(names)} classes.",
        "Share of errors on rows that no fit has seen; regret in percentage points:",
        *text_table(header, rows, right=True, gap="  "),
        f"Recommended: {short_name(found.recommended)}.",
        *(printable(without_isolates(text)) for text in result["recommendation"]["price"]),
        f"Wrote {out}.",
    ]
