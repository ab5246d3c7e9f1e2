"""The report on the bundled data: ``python -m equipoise.demo [PAGE]``.

Fits standard, balanced and robust classifiers, prints the class risks side by side with what each
choice costs, and writes the page that ``equipoise report`` would.
"""

import sys
from pathlib import Path
from typing import Any

from equipoise.datasets import load_thyroid
from equipoise.report import Comparison, compare

PAGE = "equipoise-demo.html"

INTRODUCTION = """\
Whom does a classifier fail, and what does it cost to change that?

{rows:,} patients (UCI Thyroid Disease, bundled) in {classes} classes. A linear model and gradient
boosting, each made for four ideas of how much the classes matter:

  standard      every patient counts the same
  balanced      every class counts the same
  CVaR          the worst weighting in which no patient counts more than a set number of times
  worst class   the worst weighting of all: the class with the largest risk decides
"""

RISKS = """\
Share of wrong decisions for patients that no fit has seen, by class; the regret is the most that a
choice costs, over the four ideas, against the best choice for that idea (percentage points):
"""

CLOSING = """\
The classes are small ({smallest} patients in the smallest): the page has intervals for all of these
numbers, the price of each choice under the other weightings, and a slider over alpha.
"""


def table(summary: dict[str, Any]) -> list[str]:
    """Class risks of all choices side by side, as lines of text."""
    names = [each["name"] for each in summary["data"]["classes"]]
    header = ["made for", *names, "all", "worst class", "regret"]
    rows = [
        [
            one["label"],
            *(f"{100 * each['risk']:.1f}%" for each in one["classes"]),
            f"{100 * one['standard']:.1f}%",
            f"{100 * one['worst']:.1f}%",
            f"{100 * one['largest_regret']:.1f}",
        ]
        for one in summary["choices"]
    ]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  " + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
        for row in [header, *rows]
    ]


def plain(text: str) -> str:
    """A sentence without the marks that set names apart on a page."""
    return text.replace("\u2068", "").replace("\u2069", "")


def tell(found: Comparison, page: Path) -> None:
    """Print what was found, and where the page is."""
    summary = found.to_dict()
    classes, advice = summary["data"]["classes"], summary["recommendation"]
    print(INTRODUCTION.format(rows=summary["data"]["rows"], classes=len(classes)))
    print(RISKS)
    print("\n".join(table(summary)))
    print(f"\nRecommended: {found.recommended}.")
    print("\n".join(plain(text) for text in [*advice["reasons"], *advice["price"]]))
    print()
    print(CLOSING.format(smallest=min(each["rows"] for each in classes)))
    print(f"The page: {page}")


def main(page: str = PAGE) -> None:
    """Compare on the bundled data, print the table, write the page."""
    thyroid = load_thyroid(as_frame=True)
    found = compare(thyroid.data, thyroid.target)
    tell(found, found.save(page))


if __name__ == "__main__":
    main(*sys.argv[1:2])
