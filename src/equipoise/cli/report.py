"""``equipoise report``: the whole story of a table as one page."""

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.main import TABLE_OPTIONS, Output, command, goal_option
from equipoise.text import printable, short_name

if TYPE_CHECKING:
    from equipoise.report import Comparison

EPILOG = """\b
Examples:
  equipoise report mail.csv --target spam --out mail.html
  equipoise report cards.parquet -t fraud -o cards.html --drop card_id --seed 7
  equipoise report mail.csv -t spam -o mail.html -g balanced -g "LabelCVaR(alpha=0.2)"
  equipoise report mail.csv -t spam -o mail.html --json | jq .recommendation
"""

_STEPS = 1000


@command(EPILOG, *TABLE_OPTIONS)
@click.option("-o", "--out", required=True, type=click.Path(), help="Page to write (.html).")
@click.option(
    "--model",
    "models",
    type=click.Choice(["linear", "boosting"]),
    multiple=True,
    help="Compare this kind of model only; both by default.",
)
@goal_option(
    multiple=True,
    help="Set of class weightings to compare beside standard, as in 'equipoise fit'; repeatable. "
    "Balanced weights, lcvar:0.1 and the worst class by default.",
)
def report(
    *,
    table: str,
    target: str,
    out: str,
    models: tuple[str, ...],
    goal: tuple[Any, ...],
    seed: int,
    output: Output,
    **reading: Any,
) -> None:
    """Compare class weights on TABLE and write one self-contained HTML page.

    Standard, balanced and robust classifiers, linear and gradient boosting, are judged on rows
    that they have not seen. The page says whom each of them fails, what each weighting costs under
    the others, which one to take and why, and how far the numbers can be trusted.
    """
    from equipoise.extras import require
    from equipoise.files import check_place
    from equipoise.report import compare_file

    check_place(out, table)
    # Known at the end of long work, this would be a pity.
    require("jinja2", extra="report")
    with output.progress(_STEPS, "Reading") as reach:
        found = compare_file(
            table,
            target,
            models=models or ("linear", "boosting"),
            uncertainties=_sets(goal) if goal else None,
            random_state=seed,
            **reading,
            progress=lambda share, what: reach(round(share * _STEPS), what),
        )
    found.save(out)
    result = found.to_dict()
    shown = {"page": out, "recommended": found.recommended, **result}
    output.show(_lines(found, result, out), shown, result["data"]["warnings"])


def _sets(goals: tuple[Any, ...]) -> dict[str, Any]:
    """Uncertainty sets by the words or texts that stand for them."""
    from equipoise.goals import format_goal
    from equipoise.sets import WORDS, Uncertainty

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
    return [
        f"{data['rows']:,} rows, {data['columns']} columns, {len(data['classes'])} classes.",
        "Share of errors on rows that no fit has seen; regret in percentage points:",
        *found.lines(),
        f"Recommended: {short_name(found.recommended)}.",
        *(printable(text) for text in result["recommendation"]["price"]),
        f"Wrote {out}.",
    ]
