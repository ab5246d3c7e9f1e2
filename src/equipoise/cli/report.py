"""``equipoise report``: the trade-off between classes as one page."""

from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.main import MEMORY_OPTION, TABLE_OPTIONS, Output, command, goal_option
from equipoise.text import in_words, printable, share_text, short_name

if TYPE_CHECKING:
    from equipoise.report import Comparison

EPILOG = """\b
Examples:
  equipoise report mail.csv --target spam --out mail.html
  equipoise report cards.parquet -t fraud -o cards.html --drop card_id --seed 7
  equipoise report mail.csv -t spam -o mail.html --goal f1_macro --price 1
  equipoise report mail.csv -t spam -o mail.html --model forest --save mail.equipoise
  equipoise report visits.csv -t ill -o visits.html --group patient
  equipoise report visits.csv -t ill -o visits.html --new this_year.csv
  equipoise report scores.csv -t spam -o mail.html --probabilities "mine=p_ham,p_spam"
  equipoise report mail.csv -t spam -o mail.html --json | jq .recommendation
"""

_STEPS = 1000


@command(EPILOG, *TABLE_OPTIONS)
@click.option("-o", "--out", required=True, type=click.Path(), help="Page to write (.html).")
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="Model to compare: linear, forest, boosting, or MODULE:OBJECT, a classifier of your own. "
    "Repeatable; ours by default.",
)
@goal_option(
    multiple=True,
    help="What the model is for, as in 'equipoise fit'; the first one given is advised on. Without "
    "it the page advises to tune for balanced accuracy where the rows show a gain.",
)
@click.option(
    "--probabilities",
    "columns",
    multiple=True,
    metavar="NAME=COLUMN,...",
    help="Compare probabilities in the columns of TABLE instead, by a model that has not seen the "
    "rows: a column for each class in sorted order, or one for the second of two. Repeatable.",
)
@click.option(
    "--new",
    type=click.Path(),
    metavar="FILE",
    help="Unlabelled rows of the population that the model is for, with the columns of TABLE: the "
    "page says what their class frequencies are, and what error every candidate will have.",
)
@click.option(
    "--price",
    type=click.FloatRange(0, 100),
    help="Points of overall error that tuning may cost at most, such as 1.",
)
@click.option(
    "--group", metavar="COLUMN", help="Rows with equal values, such as a patient's, stay together."
)
@click.option(
    "--time", metavar="COLUMN", help="Rows are in the order of this column: train on earlier ones."
)
@MEMORY_OPTION
@click.option("--quick", is_flag=True, help="Train on 10,000 rows at most, and hold out one part.")
@click.option(
    "--save",
    type=click.Path(),
    help="Also fit the recommended model, and save it (.equipoise or .skops).",
)
def report(  # noqa: PLR0913  one argument for each option
    *,
    table: str,
    target: str,
    out: str,
    models: tuple[str, ...],
    columns: tuple[str, ...],
    goal: tuple[Any, ...],
    new: str | None,
    price: float | None,
    group: str | None,
    time: str | None,
    quick: bool,
    memory: str | None,
    save: str | None,
    seed: int,
    output: Output,
    **reading: Any,
) -> None:
    """Compare models on TABLE and write one self-contained HTML page.

    Linear models, forests and gradient boosting are evaluated on held-out rows, with default
    predictions and with decisions tuned for balanced accuracy, the worst class and your goals. The
    page shows the trade-off between overall and class errors, advises one model, and says how far
    the numbers can be trusted. A table that does not fit in memory is read in parts: models are
    fitted to a sample, and evaluated on all other rows.
    """
    from equipoise.extras import require
    from equipoise.files import check_place
    from equipoise.persistence.saved_model import check_suffix
    from equipoise.report import compare_file, compare_predictions_file

    if out == "-":
        raise click.BadParameter(
            "a page is written to a file, not to stdout: give --out a name.", param_hint="--out"
        )
    for path in (out, save):
        if path is not None:
            check_place(path, table, *([new] if new else []))
    if not out.lower().endswith((".html", ".htm")):
        raise click.BadParameter(f"a page must end in .html, got {out!r}.", param_hint="--out")
    if save is not None and not save.endswith(".skops"):
        check_suffix(save)
    # Missing parts are reported before the work.
    require("jinja2", extra="report")
    chosen, probabilities = _models(models), _columns(columns)
    if probabilities and (models or save or quick or group or time or new or reading["drop"]):
        raise click.UsageError(
            "--probabilities are compared as they are: leave out --model, --save, --quick, "
            "--group, --time, --new and --drop."
        )
    options: dict[str, Any] = {"goals": list(goal) or None, "price": price, "random_state": seed}
    with output.progress(_STEPS, "Reading") as reach:
        options["progress"] = lambda share, what: reach(round(share * _STEPS), what)
        if probabilities:
            text_labels = reading["text_labels"]
            comparison = compare_predictions_file(
                table, target, probabilities, text_labels=text_labels, **options
            )
        else:
            options |= {"quick": quick, "memory": memory, "group": group, "time": time, "new": new}
            comparison = compare_file(table, target, chosen, **reading, **options)
    comparison.save(out)
    if save is not None:
        comparison.save_model(save)
    result = comparison.to_dict()
    shown = {"page": out, "recommended": comparison.recommended, **result}
    output.show(_lines(comparison, result, out, save), shown, result["data"]["warnings"])


def _models(names: tuple[str, ...]) -> Any:
    """Names of ours, or classifiers by name where some are the user's."""
    from equipoise.tables import MODEL_KINDS

    if not any(":" in name for name in names):
        for name in names:
            if name not in MODEL_KINDS:
                raise click.BadParameter(
                    f"{name!r} is not one of {', '.join(MODEL_KINDS)}, nor a MODULE:OBJECT.",
                    param_hint="--model",
                )
        return names or None
    if any(":" not in name for name in names):
        raise click.BadParameter(
            "models of your own, as MODULE:OBJECT, replace the built-in ones; give only one.",
            param_hint="--model",
        )
    return {name: _imported(name) for name in names}


def _columns(texts: tuple[str, ...]) -> dict[str, list[str]]:
    """Columns of probabilities by the name of their model."""
    by_model = {}
    for text in texts:
        name, sign, names = text.partition("=")
        if not name or not sign or not all(names.split(",")):
            raise click.BadParameter(
                f"{text!r} is not NAME=COLUMN,COLUMN,...", param_hint="--probabilities"
            )
        by_model[name] = names.split(",")
    return by_model


def _imported(name: str) -> Any:
    """The classifier that a name MODULE:OBJECT stands for; a class or function is called."""
    import sys
    from pkgutil import resolve_name

    sys.path.insert(0, "")
    try:
        loaded: Any = resolve_name(name)
        return loaded() if callable(loaded) and not hasattr(loaded, "get_params") else loaded
    except (ImportError, AttributeError, TypeError, ValueError) as reason:
        raise click.BadParameter(
            f"{name!r} cannot be imported: {reason}.", param_hint="--model"
        ) from reason
    finally:
        sys.path.remove("")


def _lines(
    comparison: "Comparison", result: dict[str, Any], out: str, save: str | None
) -> list[str]:
    data, advice = result["data"], result["recommendation"]
    answer = f"Recommended: {short_name(comparison.recommended)}."
    reasons = (f"{each['heading']}: {each['text']}" for each in advice["reasons"])
    said = advice["failed"], *reasons, advice["few"], *_of_new_rows(result)
    return [
        f"{data['rows']:,} rows, {data['columns']} columns, {len(data['classes'])} classes.",
        "Errors on held-out rows:",
        *comparison.lines(),
        answer,
        *(printable(text) for text in said if text),
        *([f"The same model: {printable(result['command'])}"] if result["command"] else []),
        f"Wrote {out}.",
        *([f"Saved {save}, {_rows_of_fit(result)}."] if save else []),
    ]


def _of_new_rows(result: dict[str, Any]) -> list[str]:
    """Class frequencies of the new rows, and what the test of the assumption says."""
    new_rows, classes = result["new_rows"], result["data"]["classes"]
    if new_rows is None:
        return []
    if new_rows["refused"]:
        return [f"Nothing can be said of the new rows. {new_rows['refused']}"]
    pairs = zip(classes, new_rows["classes"], strict=True)
    shares = [f"{short_name(each['name'])} {share_text(new['value'])}" for each, new in pairs]
    return [f"Class frequencies of the new rows: {in_words(shares, 12)}.", new_rows["verdict"]]


def _rows_of_fit(result: dict[str, Any]) -> str:
    seen = result["design"]["rows_seen"]
    if seen is None:
        return "fitted to all rows"
    return f"fitted to {seen['trained'] + seen['tuned']:,} of {result['data']['rows']:,} rows"
