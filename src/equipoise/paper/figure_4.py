"""Figure 4: histograms of the class risks on Covertype, from the fits of Table 1."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equipoise.paper import drawing
from equipoise.paper.methods import Method
from equipoise.paper.records import Record, mean_of

CLASSES = range(1, 8)
CAPTION = (
    "Class risks under each method, means over seeds; the dashed line: the risk of the worst "
    "class, as in the table"
)
NOTE = """\
The risk of the worst class is that of each fit's own worst class, and its mean over seeds where
there are several, in tables, figures and claims alike. Where different classes are the worst in
different runs it lies above the largest of the mean class risks.
"""


def class_risks_of(records: Sequence[Record], method: Method) -> list[float]:
    """The risk of each class under a method, mean over seeds."""
    return [mean_of(records, f"risk[{each}]", method=method.label).mean for each in CLASSES]


def figure_4(
    by_way: Mapping[str, Sequence[Record]],
    rows: Mapping[str, Mapping[str, Method]],
    ways: Mapping[str, str],
) -> Any:
    """A line of histograms for each way of fitting, one for each row of Table 1."""
    names = list(next(iter(rows.values())))
    shape = {"rows": len(by_way), "columns": len(names)}
    picture, axes = drawing.figure(11, 6.6, **shape, sharex=True, sharey=True)
    for line, (way, records) in zip(axes, by_way.items(), strict=True):
        for ax, name in zip(line, names, strict=True):
            _histogram(ax, records, rows[way][name])
        line[0].set_ylabel(f"{ways[way]}\n\nnumber of classes")
    for ax, name in zip(axes[0], names, strict=True):
        ax.set_title(name)
    for ax in axes[-1]:
        ax.set_xlabel("class risk on test rows")
    return picture


def on_random_rows(records: Sequence[Record], methods: Sequence[Method]) -> Any:
    """The same for random training rows, a histogram for each method."""
    picture, axes = drawing.figure(11, 2.7, columns=len(methods), sharex=True, sharey=True)
    for ax, method in zip(axes, methods, strict=True):
        _histogram(ax, records, method)
        ax.set_title(method.label, fontsize=10)
        ax.set_xlabel("class risk on test rows")
    axes[0].set_ylabel("number of classes")
    return picture


def _histogram(ax: Any, records: Sequence[Record], method: Method) -> None:
    """Class risks in bins of 0.05, with the risk of the worst class marked."""
    ax.hist(
        class_risks_of(records, method), bins=np.linspace(0, 1, 21), color="0.75", edgecolor="0.3"
    )
    ax.set_ylim(0, 6)
    worst = mean_of(records, "worst_class_risk", method=method.label).mean
    ax.axvline(worst, color="#CC3311", linestyle="--", linewidth=1.6)
    side = "right" if worst > 0.5 else "left"
    shift = -4 if side == "right" else 4
    ax.annotate(
        f"{worst:.3f}",
        (worst, 1.0),
        xytext=(shift, -4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha=side,
        va="top",
        color="#CC3311",
    )
