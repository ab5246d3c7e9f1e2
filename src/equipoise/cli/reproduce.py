"""``equipoise reproduce``: the paper's figures and tables."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from equipoise.cli.main import Output, command
from equipoise.paper.registry import NAMES, STUDIES
from equipoise.text import text_table

if TYPE_CHECKING:
    from equipoise.paper import Reproduction, StudyStep

# The name of each study, its figures and tables in the paper, and its subject.
_STUDY_LINES = text_table(
    ["study", "makes", "about"],
    [[each.name, ", ".join(each.parts), each.about] for each in STUDIES.values()],
    gap="  ",
)

_LISTED = "\n  ".join(_STUDY_LINES)

EPILOG = f"""\b
Studies, to be named as on the left or by what they make:
  {_LISTED}

\b
Examples:
  equipoise reproduce --quick
  equipoise reproduce figure-2 --quick
  equipoise reproduce covertype --data covtype.data.gz --out results
"""


def _list_studies(context: Any, _parameter: Any, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        for line in _STUDY_LINES:
            click.echo(line)
        context.exit()


@command(EPILOG, has_json=False)
@click.argument("studies", nargs=-1, metavar="[STUDY]...", type=click.Choice(NAMES))
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_studies,
    help="List the studies and the figures and tables that they make, and end.",
)
@click.option("--quick", is_flag=True, help="The one-minute version: directions, not numbers.")
@click.option(
    "-o", "--out", type=click.Path(file_okay=False), default="results", help="Folder to write to."
)
@click.option(
    "--data",
    type=click.Path(),
    default=None,
    help="Covertype: a file (covtype.data, .gz or .npz) or its folder. By default the folder that "
    "EQUIPOISE_DATA names, and else scikit-learn's copy, which is downloaded. Fashion-MNIST is "
    "looked for in the same folders, and where Debian's dataset-fashion-mnist puts it.",
)
# Studies derive further seeds, which must fit into 32 bits.
@click.option("--seed", type=click.IntRange(0, 10**9), default=0, help="First seed.")
@click.option(
    "--from-records",
    is_flag=True,
    help="Compute nothing: write pages and figures from the CSV files of an earlier run.",
)
def reproduce(*, studies: tuple[str, ...], output: Output, **options: Any) -> None:
    """Run the studies of the paper, all or those named.

    Each writes its data (CSV), figures (SVG and PNG) and a page (Markdown) into a folder of its
    own; README.md says, claim by claim, what held and what did not. Finished pieces are kept: after
    an interruption the same command continues where it stopped.
    """
    from equipoise.paper import reproduce as run

    bars: dict[str, Any] = {}
    with ExitStack() as stack:

        def reach(step: "StudyStep") -> None:
            if step.study not in bars:
                # Ends the line of the study before.
                stack.close()
                bar = output.progress(step.total, f"{step.study:<18}")
                bars[step.study] = stack.enter_context(bar)
            bars[step.study](step.done)

        summary = run(studies or None, progress=reach, **options)
    notes = [f"{each.study}: {each.left_out}" for each in summary.outcomes if each.left_out]
    output.show(_lines(summary, quick=options["quick"]), {}, notes)


def _lines(summary: "Reproduction", *, quick: bool) -> list[str]:
    claims = [claim for claim in summary.claims() if claim.is_the_papers]
    if not claims and summary.claims():
        beyond = [claim.findings["exact"].held for claim in summary.claims()]
        return [
            f"{sum(beyond)} of {len(beyond)} claims held when solved exactly; none is the paper's.",
            f"Which ones: {summary.page}",
        ]
    held = sum(claim.findings["exact"].held for claim in claims)
    hang = sum(claim.hangs_on_reading("exact") for claim in claims)
    reading = f"; {hang} of these findings depend on how the claim is read" if hang else ""
    training = "a shortened form of the paper's training" if quick else "the paper's training"
    return [
        f"{held} of the paper's {len(claims)} claims held when solved exactly{reading}.",
        f"Which ones, and how {training} fared: {summary.page}",
    ]
