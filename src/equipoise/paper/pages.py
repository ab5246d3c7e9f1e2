"""What studies become on disk: Markdown, CSV, SVG and PNG; and the page over all of them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.files import atomic_write
from equipoise.paper import drawing
from equipoise.paper.methods import Method
from equipoise.paper.records import (
    Record,
    RecordsByKind,
    distinct,
    from_csv,
    mean_of,
    select,
    spread,
    to_csv,
)
from equipoise.paper.study import WAYS, Claim, Finding, Study, StudyOutcome, StudyPlan, StudyReport

_TITLE = "# The paper, reproduced"
_LEAD = """\
Xu, Dan, Khim and Ravikumar, *Class-Weighted Classification: Trade-offs and Robust Approaches*
(2020): its figures and tables, made again, and its theorems, tried on data. Each model is fitted up
to three ways: *solved exactly*, with a certificate that it is the optimum; *trained as the text
says*, by the gradient descent that the paper describes; and *trained as the scripts do*, by that of
the authors' published scripts, where they differ. A claim that holds for the method holds for its
optimum; one that holds for the training alone is about the training.

Some claims leave room for what they mean. Then the table says how we read them, and what they come
to when they are read otherwise; *by our reading* marks a finding that another reading changes.

The last page, on Fashion-MNIST, is not about the paper but about a benchmark of others.
"""
_QUICK = (
    "**Quick version**: small samples, few seeds, and training of 50 to 150 epochs in place of the "
    "600 to 2,000 of the paper and its scripts. It shows directions, not numbers to quote, and "
    "what it says of training is not about theirs."
)
_FULL = "Full version."
DISTANCE_NOTE = """\
Cross-entropy on the training rows: the objective that training ends at, less the optimum of the
same objective on the same rows (the exact fit, with a penalty so weak that the true optimum is at
most a little lower). Mean ± standard deviation over all runs.
"""
_RISKS = ("standard_risk", "worst_class_risk")


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table with four digits; columns of numbers are flush right.

    A column of texts that begin with a digit is one of numbers.
    """
    texts = [[f"{v:.4f}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    # A bar inside a cell starts no other column.
    cells = [[text.replace("|", "\\|") for text in row] for row in texts]
    columns = zip(*cells, strict=True) if cells else [()] * len(header)
    rule = ["---:" if _is_numeric(column) else "---" for column in columns]
    return "\n".join(f"| {' | '.join(line)} |" for line in (list(header), rule, *cells))


def _is_numeric(column: Sequence[str]) -> bool:
    return any(column) and all(not text or text.lstrip("-*")[:1].isdigit() for text in column)


def figure(name: str, caption: str) -> str:
    """A figure of the study, by the name it has in the report."""
    return f"![{caption}]({name}.svg)\n\n*{caption}*"


def sections(*parts: str) -> str:
    """Paragraphs, tables and figures with a blank line between them."""
    return "\n\n".join(part.strip() for part in parts if part)


def risk_headers(who: Iterable[str]) -> list[str]:
    """Titles of the columns of :func:`risk_cells`, once for each way of fitting."""
    return [f"{each}: {risk}" for each in who for risk in ("standard", "worst")]


def risk_cells(records: Sequence[Record], method: Method) -> list[str]:
    """Standard and worst-class risk of a method, mean and deviation."""
    return [f"{mean_of(records, field, method=method.label):.4f}" for field in _RISKS]


def distance_table(by_way: Mapping[str, Sequence[Record]], ways: Mapping[str, str]) -> str:
    """How far from the optimum a training stops: one row per way and method."""
    rows = []
    for way, records in by_way.items():
        for label in distinct(records, "method"):
            optimum, end = (
                mean_of(records, name, method=label).mean for name in ("optimum", "train_risk")
            )
            rows.append([ways[way], label, optimum, end, f"{_excess(records, method=label):.4f}"])
    return table(["", "method", "optimum", "training ends at", "above the optimum by"], rows)


def covertype_distances(
    paper: RecordsByKind, random: RecordsByKind, ways: Mapping[str, str]
) -> list[str]:
    """How far from the optimum training stops on both kinds of splits of Covertype."""
    trained = ("text", "scripts")
    return [
        "## How far from the optimum training stops",
        DISTANCE_NOTE,
        "The paper's split:",
        distance_table({way: paper[way] for way in trained}, ways),
        "Random training rows:",
        distance_table({way: random[way] for way in trained}, ways),
    ]


def distance_figure(by_way: Mapping[str, Sequence[Record]], ways: Mapping[str, str]) -> Any:
    """The distances from the optimum over the p of the synthetic model."""
    picture, axes = drawing.figure(8.5, 3.8, columns=len(by_way), sharey=True)
    for ax, (way, records) in zip(axes, by_way.items(), strict=True):
        p_values = np.array(sorted(distinct(records, "p")))
        for label in distinct(records, "method"):
            spreads = [_excess(records, p=p, method=label) for p in p_values]
            drawing.error_bars(ax, 1 - p_values, spreads, **drawing.style(label))
        ax.set(title=ways[way], xlabel="share of class 1, 1 - p")
        drawing.from_zero(ax)
    axes[0].set_ylabel("cross-entropy above the optimum")
    drawing.legend_below(picture, axes[0], ncols=3)
    return picture


def _excess(records: Sequence[Record], **wanted: object) -> Any:
    return spread([each["train_risk"] - each["optimum"] for each in select(records, **wanted)])


def claims_table(claims: Sequence[Claim], ways: Mapping[str, str] = WAYS) -> str:
    """Claims with a finding for each way of fitting that any of them has.

    Other readings of a claim follow it, a row each.
    """
    used = [way for way in ways if any(way in claim.findings for claim in claims)]
    rows = [row for claim in claims for row in _claim_rows(claim, used)]
    return table(["claim", "where", *(ways[way] for way in used)], rows)


def _claim_rows(claim: Claim, ways: Sequence[str]) -> list[list[str]]:
    reading = f" *(Our reading: {claim.reading}.)*" if claim.reading else ""
    first = [_finding(claim.findings.get(way), claim, way) for way in ways]
    rows = [[f"{claim.text}{reading}", claim.where, *first]]
    for words, findings in claim.others.items():
        cells = [_finding(findings.get(way)) for way in ways]
        rows.append([f"↳ *read otherwise: {words}*", claim.where, *cells])
    return rows


def _finding(finding: Finding | None, claim: Claim | None = None, way: str = "") -> str:
    if finding is None:
        return ""
    hangs = " (by our reading)" if claim is not None and claim.hangs_on_reading(way) else ""
    return f"{'held' if finding.held else '**did not hold**'}{hangs}: {finding.numbers}"


def write_report(
    study: Study, plan: StudyPlan, results: RecordsByKind, folder: Path, note: str = ""
) -> StudyReport:
    """Write what a study makes of its records; the page is written last."""
    report = study.report(plan, results)
    tables = [name for name, kinds in study.tables.items() if _table_records(kinds, results)]
    for name, picture in report.figures.items():
        for suffix, content in drawing.render(picture).items():
            with atomic_write(folder / f"{name}.{suffix}") as stream:
                stream.write(content)
    write_text(folder / "README.md", _page(study, plan, report, tables, note))
    return report


def write_records(study: Study, results: RecordsByKind, folder: Path) -> None:
    """Write the records of a study, from which everything else follows."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, kinds in study.tables.items():
        records = _table_records(kinds, results)
        if records:
            write_text(folder / f"{name}.csv", to_csv(records))


def _table_records(kinds: str, results: RecordsByKind) -> list[Record]:
    """The records of one kind, or of one for each way of fitting."""
    names = dict.fromkeys(kinds.format(way=way) for way in WAYS)
    return [record for name in names for record in results.get(name, [])]


def read_results(study: Study, plan: StudyPlan, folder: Path) -> RecordsByKind:
    """The records that an earlier run of the same plan wrote into its folder."""
    try:
        page = (folder / "README.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        page = ""
    if _run_line(plan) not in page:
        version = "quick" if plan.quick else "full"
        raise FileNotFoundError(
            f"{folder} holds no records of the {version} version with first seed {plan.seed}: run "
            f"the study {study.name} first."
        )
    results: dict[str, list[Record]] = {unit.kind: [] for unit in study.units(plan)}
    for name, kinds in study.tables.items():
        file = folder / f"{name}.csv"
        for record in from_csv(file.read_text(encoding="utf-8")) if file.is_file() else []:
            results[kinds.format(way=record.get("way"))].append(record)
    return results


def write_text(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all."""
    with atomic_write(path) as stream:
        stream.write(text.encode("utf-8"))


def _page(
    study: Study, plan: StudyPlan, report: StudyReport, tables: Iterable[str], note: str
) -> str:
    command = f"`equipoise reproduce {study.name}{' --quick' if plan.quick else ''}`"
    links = ", ".join(f"[{name}.csv]({name}.csv)" for name in tables)
    parts = [
        f"# {study.title}",
        f"Made by {command}. {_run_line(plan)}",
        f"**Left out**: {note}" if note else "",
        report.page,
        "## Claims, one by one" if report.claims else "",
        claims_table(report.claims, plan.ways) if report.claims else "",
        f"## Data\n\n{links}" if links else "",
    ]
    return sections(*parts) + "\n"


def _run_line(plan: StudyPlan) -> str:
    """One sentence on how the numbers of a page were made."""
    return f"{_QUICK if plan.quick else _FULL} First seed: {plan.seed}."


def summary_page(plan: StudyPlan, outcomes: Sequence[StudyOutcome]) -> str:
    """The page over all studies: claim by claim, what held and what did not."""
    parts = [_TITLE, _LEAD, _run_line(plan), "## Count", _counts(outcomes, plan.ways)]
    for outcome in outcomes:
        parts += [f"## {outcome.title}", _body(outcome, plan.ways)]
    return sections(*parts) + "\n"


def _body(outcome: StudyOutcome, ways: Mapping[str, str]) -> str:
    left_out = f"**Left out**: {outcome.left_out}" if outcome.left_out else ""
    if not outcome.claims:
        return left_out
    link = f"Figures, tables and data: {_link(outcome)}."
    return sections(link, left_out, claims_table(outcome.claims, ways))


def _link(outcome: StudyOutcome) -> str:
    return f"[{outcome.study}]({outcome.study}/README.md)" if outcome.claims else outcome.study


def _counts(outcomes: Sequence[StudyOutcome], ways: Mapping[str, str]) -> str:
    rows = [
        [
            _link(outcome),
            *(_count([each for each in outcome.claims if each.is_the_papers], way) for way in ways),
        ]
        for outcome in outcomes
    ]
    return table(["the paper's claims that held", *ways.values()], rows)


def _count(claims: Sequence[Claim], way: str) -> str:
    held = [claim.findings[way].held for claim in claims if way in claim.findings]
    hang = sum(claim.hangs_on_reading(way) for claim in claims if way in claim.findings)
    by_reading = f" ({hang} of these findings by our reading)" if hang else ""
    return f"{sum(held)} of {len(held)}{by_reading}" if held else ""
