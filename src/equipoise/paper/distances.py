"""How far from the optimum a training stops."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equipoise.paper import figures, pages
from equipoise.paper.aggregate import distinct, mean_of, spread
from equipoise.paper.fits import WAYS
from equipoise.paper.study import Record

NOTE = """\
Cross-entropy on the training rows: the objective that training ends at, less the optimum of the
same objective on the same rows (the exact fit, with a penalty so weak that the true optimum is at
most a little lower). Mean ± standard deviation over all runs.
"""


def with_excess(records: Sequence[Record]) -> list[Record]:
    """The records with the distance of their training risk from the optimum."""
    return [{**record, "excess": record["train_risk"] - record["optimum"]} for record in records]


def distance_table(by_way: Mapping[str, Sequence[Record]]) -> str:
    """One row per way and method: the optimum, where training ends, and the difference."""
    rows = []
    for way, records in by_way.items():
        for label in distinct(records, "method"):
            found = [record for record in with_excess(records) if record["method"] == label]
            optimum, end = (
                spread([r[name] for r in found]).mean for name in ("optimum", "train_risk")
            )
            rows.append(
                [WAYS[way], label, optimum, end, f"{spread([r['excess'] for r in found]):.4f}"]
            )
    return pages.table(["", "method", "optimum", "training ends at", "above the optimum by"], rows)


def distance_section(by_way: Mapping[str, Sequence[Record]]) -> tuple[str, Any]:
    """The distances over p, as the section of a page and its figure."""
    drawing = _figure(by_way)
    caption = "Training risk above the optimum; bars: one standard deviation over seeds"
    parts = [
        "## How far from the optimum training stops",
        NOTE,
        pages.figure("distance", caption),
        distance_table(by_way),
    ]
    return pages.sections(*parts), drawing


def _figure(by_way: Mapping[str, Sequence[Record]]) -> Any:
    drawing, axes = figures.figure(8.5, 3.8, columns=len(by_way), sharey=True)
    for ax, (way, records) in zip(np.atleast_1d(axes), by_way.items(), strict=True):
        extended = with_excess(records)
        p_values = sorted({record["p"] for record in records})
        for label in distinct(records, "method"):
            spreads = [mean_of(extended, "excess", p=p, method=label) for p in p_values]
            means, sds = [found.mean for found in spreads], [found.sd for found in spreads]
            look = figures.style(str(label))
            ax.errorbar([1 - p for p in p_values], means, yerr=sds, capsize=2, **look)
        ax.set(title=WAYS[way], xlabel="share of class 1, 1 - p")
        figures.from_zero(ax)
    np.atleast_1d(axes)[0].set_ylabel("cross-entropy above the optimum")
    handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return drawing
