"""``equipoise report``: the whole story of a table as one page."""

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.output import Bar, Voice, percent, shown, table

if TYPE_CHECKING:
    from equipoise.report import Comparison

EPILOG = """\b
Examples:
  equipoise report mail.csv --target spam --out mail.html
  equipoise report cards.parquet -t fraud -o cards.html --drop card_id --seed 7
  equipoise report mail.csv -t spam -o mail.html --json | jq .recommendation

\b
Exit codes: 0 done, 1 a problem with the data or the files, 2 wrong usage, 130 interrupted.
"""

_STEPS = 1000


@click.command(epilog=EPILOG, short_help="Tell the whole story of a table as a page.")
@click.argument("path", metavar="TABLE", type=click.Path())
@click.option("-t", "--target", required=True, help="Column that holds the class of each row.")
@click.option("-o", "--out", required=True, type=click.Path(), help="Page to write (.html).")
@click.option(
    "--model",
    "models",
    type=click.Choice(["linear", "boosting"]),
    multiple=True,
    help="Compare this kind of model only; both by default.",
)
@click.option("--drop", multiple=True, metavar="COLUMN", help="Column to leave out; repeatable.")
@click.option("--text-labels", is_flag=True, help="Every distinct number in the target is a class.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of everything random.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def report(  # noqa: PLR0913  one argument for each option
    *,
    path: str,
    target: str,
    out: str,
    models: tuple[str, ...],
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
    from equipoise.cli.paths import check_output
    from equipoise.extras import require
    from equipoise.report import compare_file

    check_output(out, path)
    # Known at the end of long work, this would be a pity.
    require("jinja2", extra="report")
    voice = Voice(quiet=quiet, as_json=as_json)
    with voice.progress(_STEPS, "Reading") as bar:
        found = compare_file(
            path,
            target,
            models=models or ("linear", "boosting"),
            drop=drop,
            text_labels=text_labels,
            random_state=seed,
            progress=_told(bar),
        )
    found.save(out)
    result = found.to_dict()
    voice.warn(result["data"]["warnings"])
    voice.tell(
        _lines(found, result, out), {"page": out, "recommended": found.recommended, **result}
    )


def _told(bar: Bar) -> Any:
    def told(share: float, what: str) -> None:
        bar.reach(round(share * _STEPS), what)

    return told


def _lines(found: "Comparison", result: dict[str, Any], out: str) -> list[str]:
    data = result["data"]
    names = [each["name"] for each in data["classes"]]
    header = ["made for", "standard", "balanced", "worst class", "which", "largest regret"]
    rows = [
        [
            shown(one["label"]),
            percent(one["standard"]),
            percent(one["balanced"]),
            percent(one["worst"]),
            shown(names[one["worst_class"]]),
            f"{100 * one['largest_regret']:.1f}",
        ]
        for one in result["choices"]
    ]
    return [
        f"{data['rows']:,} rows, {data['columns']} columns, {len(names)} classes.",
        "Share of errors on rows that no fit has seen; regret in percentage points:",
        *table(header, rows),
        f"Recommended: {shown(found.recommended)}.",
        *(shown_text(text) for text in result["recommendation"]["price"]),
        f"Wrote {out}.",
    ]


def shown_text(text: str) -> str:
    """A sentence without the marks that set names apart on a page."""
    from equipoise.cli.output import printable

    return printable(text.replace("\u2068", "").replace("\u2069", ""))
