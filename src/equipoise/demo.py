"""The report on the bundled data: ``python -m equipoise.demo [PAGE]``.

Evaluates plain and tuned classifiers, prints their errors by class side by side, and writes the
page that ``equipoise report`` would.
"""

import sys
from typing import Any

from equipoise.datasets import load_thyroid
from equipoise.report import compare
from equipoise.text import printable, share_text, text_table

PAGE = "equipoise-demo.html"

INTRODUCTION = """\
{rows:,} patients (UCI Thyroid Disease, bundled) in {classes} classes. A linear model, a forest and
gradient boosting, with default predictions and with decisions tuned for balanced accuracy and for
the worst class. Errors on held-out rows, by class:
"""

CLOSING = """\
The smallest class has {smallest} patients: the page has intervals for all of these numbers, recall
and precision by class, the confusion matrix, and the code of each choice.
"""


def risk_table(summary: dict[str, Any]) -> list[str]:
    """Class risks of all candidates side by side, as lines of text."""
    names = [each["name"] for each in summary["data"]["classes"]]
    rows = []
    for one in summary["candidates"]:
        risks = [*(each["risk"] for each in one["classes"]), one["overall"], one["worst"]]
        rows.append([f"  {one['label']}", *map(share_text, risks)])
    return text_table(["  candidate", *names, "all", "worst class"], rows, right=True, gap="  ")


def main(page: str = PAGE) -> None:
    """Compare on the bundled data, print what was found, write the page."""
    thyroid = load_thyroid(as_frame=True)
    comparison = compare(thyroid.data, thyroid.target)
    written, summary = comparison.save(page), comparison.to_dict()
    classes, advice = summary["data"]["classes"], summary["recommendation"]
    print(INTRODUCTION.format(rows=summary["data"]["rows"], classes=len(classes)))
    print(*risk_table(summary), sep="\n")
    print(f"\nRecommended: {comparison.recommended}.")
    for reason in advice["reasons"]:
        print(printable(f"{reason['heading']}: {reason['text']}"))
    print()
    print(CLOSING.format(smallest=min(each["rows"] for each in classes)))
    print(f"The page: {written}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
