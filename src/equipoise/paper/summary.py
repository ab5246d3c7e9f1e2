"""The page over all studies: claim by claim, what held and what did not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.paper.fits import WAYS
from equipoise.paper.pages import claims_table, run_line, sections, table
from equipoise.paper.study import Claim, Plan

_TITLE = "# The paper, reproduced"
_LEAD = """\
Xu, Dan, Khim and Ravikumar, *Class-Weighted Classification: Trade-offs and Robust Approaches*
(2020): its figures and tables, made again. Each model is fitted up to three ways: *solved exactly*,
with a certificate that it is the optimum; *trained as the text says*, by the gradient descent that
the paper describes; and *trained as the scripts do*, by that of the authors' published scripts,
where they differ. A claim that holds for the method holds for its optimum; one that holds for the
training alone is about the training.
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a study.

    Attributes
    ----------
    study, title : str
    claims : tuple of Claim
        None where the study could not run.
    left_out : str
        Why some or all of it could not run; empty if all did.
    """

    study: str
    title: str
    claims: tuple[Claim, ...]
    left_out: str = ""


@dataclass(frozen=True)
class Summary:
    """What became of the studies of a run.

    Attributes
    ----------
    outcomes : tuple of Outcome
    page : Path
        The page over these and earlier studies.
    """

    outcomes: tuple[Outcome, ...]
    page: Path

    def claims(self) -> Iterator[tuple[str, Claim]]:
        """Every claim with the name of its study."""
        for outcome in self.outcomes:
            for claim in outcome.claims:
                yield outcome.study, claim


def summary_page(plan: Plan, outcomes: Sequence[Outcome]) -> str:
    """The Markdown of the page."""
    parts = [_TITLE, _LEAD, run_line(plan), "## Count", _counts(outcomes)]
    for outcome in outcomes:
        parts += [f"## {outcome.title}", _body(outcome)]
    return sections(*parts) + "\n"


def _body(outcome: Outcome) -> str:
    left_out = f"**Left out**: {outcome.left_out}" if outcome.left_out else ""
    if not outcome.claims:
        return left_out
    link = f"Figures, tables and data: [{outcome.study}]({outcome.study}/README.md)."
    return sections(link, left_out, claims_table(outcome.claims))


def _counts(outcomes: Sequence[Outcome]) -> str:
    rows = [
        [
            f"[{outcome.study}]({outcome.study}/README.md)" if outcome.claims else outcome.study,
            *(_count([each for each in outcome.claims if each.is_the_papers], way) for way in WAYS),
        ]
        for outcome in outcomes
    ]
    return table(["the paper's claims that held", *WAYS.values()], rows)


def _count(claims: Sequence[Claim], way: str) -> str:
    held = [claim.verdicts[way].held for claim in claims if way in claim.verdicts]
    return f"{sum(held)} of {len(held)}" if held else ""
