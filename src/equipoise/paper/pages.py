"""What a report becomes on disk: CSV, SVG, PNG and Markdown."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from equipoise.paper.figures import render
from equipoise.paper.fits import WAYS
from equipoise.paper.store import write_bytes, write_text
from equipoise.paper.study import Claim, Plan, Record, Report, Study, Verdict

_QUICK = (
    "**Quick version**: small samples, few seeds and short training. It shows directions, not "
    "numbers to quote."
)
_FULL = "Full version."


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; numbers are right-aligned by being numbers."""
    cells = [[_cell(value) for value in row] for row in rows]
    rule = (
        [_rule(column) for column in zip(*cells, strict=True)] if cells else ["---"] * len(header)
    )
    return "\n".join(_line(row) for row in [list(header), rule, *cells])


def figure(name: str, caption: str) -> str:
    """A figure of the study, by the name it has in the report."""
    return f"![{caption}]({name}.svg)\n\n*{caption}*"


def sections(*parts: str) -> str:
    """Paragraphs, tables and figures with a blank line between them."""
    return "\n\n".join(part.strip() for part in parts if part)


def claims_table(claims: Sequence[Claim]) -> str:
    """Claims, one a row, with a verdict for each way of fitting that any of them has."""
    ways = [way for way in WAYS if any(way in claim.verdicts for claim in claims)]
    rows = [
        [claim.text, claim.where, *(_verdict(claim.verdicts.get(way)) for way in ways)]
        for claim in claims
    ]
    return table(["claim", "where", *(WAYS[way] for way in ways)], rows)


def write_report(study: Study, plan: Plan, report: Report, folder: Path, note: str = "") -> Path:
    """Write everything a study found; the page is written last."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, records in report.tables.items():
        write_text(folder / f"{name}.csv", _csv(records))
    for name, drawing in report.figures.items():
        for suffix, content in render(drawing).items():
            write_bytes(folder / f"{name}.{suffix}", content)
    page = folder / "README.md"
    write_text(page, _page(study, plan, report, note))
    return page


def run_line(plan: Plan) -> str:
    """One sentence on how the numbers of a page were made."""
    return f"{_QUICK if plan.quick else _FULL} First seed: {plan.seed}."


def _page(study: Study, plan: Plan, report: Report, note: str) -> str:
    command = f"`equipoise reproduce {study.name}{' --quick' if plan.quick else ''}`"
    parts = [
        f"# {study.title}",
        f"Made by {command}. {run_line(plan)}",
        f"**Left out**: {note}" if note else "",
        report.page,
        "## Claims, one by one" if report.claims else "",
        claims_table(report.claims) if report.claims else "",
        _files(report.tables),
    ]
    return sections(*parts) + "\n"


def _files(tables: Mapping[str, Sequence[Record]]) -> str:
    links = ", ".join(f"[{name}.csv]({name}.csv)" for name in tables)
    return f"## Data\n\n{links}" if links else ""


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    return f"{'held' if verdict.held else '**did not hold**'}: {verdict.numbers}"


def _csv(records: Sequence[Record]) -> str:
    columns = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: _number(value) for name, value in record.items()})
    return text.getvalue()


def _number(value: Any) -> Any:
    # Eight digits are more than any seed leaves unchanged.
    return f"{value:.8g}" if isinstance(value, float) else value


def _cell(value: Any) -> str:
    return (f"{value:.4f}" if isinstance(value, float) else str(value)).replace("|", "\\|")


def _rule(column: Sequence[str]) -> str:
    numeric = all(not text or text.lstrip("-*")[:1].isdigit() for text in column)
    return "---:" if numeric and any(column) else "---"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
