"""The report on the bundled data: ``python -m equipoise.demo [PAGE]``.

Fits plain, class-weighted and robust classifiers, prints the class risks side by side with what
each choice costs, and writes the page that ``equipoise report`` would.
"""

import sys
from typing import Any

from equipoise.datasets import load_thyroid
from equipoise.report import compare
from equipoise.text import printable, text_table

PAGE = "equipoise-demo.html"

INTRODUCTION = """\
Whom does a classifier fail, and what does it cost to change that?

{rows:,} patients (UCI Thyroid Disease, bundled) in {classes} classes. A linear model, a forest and
gradient boosting, each as it comes, with class-weighted training, and made good for

  CVaR          the worst weighting in which no patient counts more than a set number of times
  worst class   the worst weighting of all: the class with the largest risk decides
"""

RISKS = """\
Share of wrong decisions for patients that no fit has seen, by class. Judged by the errors in all,
by those of the mean class, by CVaR and by the worst class, the regret is the most that a choice
costs against the best one (percentage points):
"""

CLOSING = """\
The classes are small ({smallest} patients in the smallest): the page has intervals for all of these
numbers, the price of each choice under the other weightings, and a slider over alpha.
"""


def risk_table(summary: dict[str, Any]) -> list[str]:
    """Class risks of all choices side by side, as lines of text."""
    names = [each["name"] for each in summary["data"]["classes"]]
    rows = []
    for choice in summary["choices"]:
        risks = [*(each["risk"] for each in choice["classes"]), choice["standard"], choice["worst"]]
        regret = f"{100 * choice['largest_regret']:.1f}"
        rows.append([f"  {choice['label']}", *(f"{risk:.1%}" for risk in risks), regret])
    header = ["  made for", *names, "all", "worst class", "regret"]
    return text_table(header, rows, right=True, gap="  ")


def main(page: str = PAGE) -> None:
    """Compare on the bundled data, print what was found, write the page."""
    thyroid = load_thyroid(as_frame=True)
    found = compare(thyroid.data, thyroid.target)
    written, summary = found.save(page), found.to_dict()
    classes, advice = summary["data"]["classes"], summary["recommendation"]
    print(INTRODUCTION.format(rows=summary["data"]["rows"], classes=len(classes)))
    print(RISKS)
    print(*risk_table(summary), sep="\n")
    print(f"\nRecommended: {found.recommended}.")
    print(*map(printable, [*advice["reasons"], *advice["price"], advice["sanity"]]), sep="\n")
    print()
    print(CLOSING.format(smallest=min(each["rows"] for each in classes)))
    print(f"The page: {written}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
