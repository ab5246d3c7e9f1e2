"""Figure 2: class risks on the synthetic model, from mild to strong imbalance."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.datasets import PowerImbalance
from equipoise.paper import figures, pages
from equipoise.paper.aggregate import mean_of
from equipoise.paper.distances import distance_section
from equipoise.paper.fits import WAYS
from equipoise.paper.methods import BALANCED, STANDARD, lcvar, lhcvar
from equipoise.paper.study import Plan, Record, Report, Results, Study, Unit
from equipoise.paper.synthetic_claims import synthetic_claims
from equipoise.paper.synthetic_fits import exact_units, scale_of, trained_units
from equipoise.theory import robust_bayes_known

METHODS = [STANDARD, BALANCED, lcvar(0.05), lcvar(0.1), lhcvar(0.05)]
PANELS = {
    "risk[0]": "class 0 (frequent)",
    "risk[1]": "class 1 (rare)",
    "worst_class_risk": "worst class",
}
# The goals whose best rules are drawn, and their dashes.
_BAYES: dict[str, Any] = {
    "standard": (0, (6, 2)),
    "balanced": (0, (1, 2)),
    "worst-class": (0, (4, 2, 1, 2)),
}
_KINDS = {"exact": "synthetic-exact", "text": "synthetic-text", "scripts": "synthetic-scripts"}

_LEAD = """\
X is uniform on [0, 1] and `P(Y = 1 given x) = x^(p/(1-p))`, so that P(Y = 0) = p. {rows:,} training
rows and as many test rows for each p; risks are shares of wrong test rows, mean ± standard
deviation over {seeds} seeds. The scripts train on {script_rows:,} rows with nine further columns
that say nothing.

LHCVaR with κ = 1 is the worst-class problem whatever c, and LCVaR(0.05) is too as long as the rare
class has more than 5% of the rows; beyond that its cap is there, but the optimum does not reach
it. The two therefore coincide at every p. The Bayes lines are the best of all rules for the
standard, the balanced and the worst-class risk, with the risk of class 0 corrected (the paper
prints `1 - (1 + p) 2^(-1/p)` for `1 - ((1 + p)/p) 2^(-1/p)`).
"""
_CROSSING = """\
LCVaR(0.1) caps the mass of the rare class at (1 - p)/0.1. Once the optimum reaches that cap, the
rare class no longer carries enough: {where}
"""


def _units(plan: Plan) -> list[Unit]:
    return [
        *exact_units(_KINDS["exact"], plan, METHODS),
        *trained_units(_KINDS["text"], plan, METHODS, "text"),
        *trained_units(_KINDS["scripts"], plan, METHODS, "synthetic-scripts"),
    ]


def _report(plan: Plan, results: Results) -> Report:
    scale = scale_of(plan)
    by_way = {way: results[kind] for way, kind in _KINDS.items()}
    lead = _LEAD.format(rows=scale.n_rows, seeds=scale.n_seeds, script_rows=scale.script_rows)
    parts = [lead]
    drawings = {}
    for way, records in by_way.items():
        name = f"class-risks-{way}"
        drawings[name] = _figure(records)
        caption = f"Class risks on test rows, {WAYS[way]}; bars: one standard deviation"
        parts += [f"## {WAYS[way].capitalize()}", pages.figure(name, caption), _table(records)]
        if way == "exact":
            parts += [_certificate(records), _CROSSING.format(where=_crossing(records))]
    section, drawing = distance_section({way: by_way[way] for way in ("text", "scripts")})
    drawings["distance"] = drawing
    return Report(
        claims=synthetic_claims(by_way),
        page=pages.sections(*parts, section),
        tables={"class-risks": [record for records in by_way.values() for record in records]},
        figures=drawings,
    )


def _figure(records: Sequence[Record]) -> Any:
    drawing, axes = figures.figure(11.5, 3.9, columns=3)
    shares = _p_values(records)
    for ax, (field, title) in zip(axes, PANELS.items(), strict=True):
        for method in METHODS:
            spreads = [mean_of(records, field, p=p, method=method.label) for p in shares]
            means, sds = [found.mean for found in spreads], [found.sd for found in spreads]
            ax.errorbar(1 - shares, means, yerr=sds, capsize=2, **figures.style(method.label))
        for goal, dash in _BAYES.items():
            lines = [_bayes(p, field, goal) for p in shares]
            ax.plot(
                1 - shares,
                lines,
                color="0.45",
                linewidth=1.2,
                linestyle=dash,
                label=f"Bayes, {goal}",
            )
        ax.set(title=title, xlabel="share of class 1, 1 - p", ylabel="test risk")
        figures.from_zero(ax)
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return drawing


def _bayes(p: float, field: str, goal: str) -> float:
    """Class risks of the best of all rules for a goal."""
    if goal == "worst-class":  # both classes have the same risk
        return robust_bayes_known(PowerImbalance(p), goal).risk
    risks = PowerImbalance(p).bayes_class_risks(goal)
    return float({"risk[0]": risks[0], "risk[1]": risks[1]}.get(field, risks.max()))


def _table(records: Sequence[Record]) -> str:
    labels = [method.label for method in METHODS]
    rows = [
        [
            f"{p:.2f}",
            *(f"{mean_of(records, 'worst_class_risk', p=p, method=label):.4f}" for label in labels),
            *(_bayes(p, "worst", goal) for goal in _BAYES),
        ]
        for p in _p_values(records)
    ]
    header = ["p", *labels, *(f"Bayes, {goal}" for goal in _BAYES)]
    return pages.sections("Risk of the worst class:", pages.table(header, rows))


def _certificate(records: Sequence[Record]) -> str:
    gap = max(record["gap"] for record in records)
    return (
        f"Every fit is certified: the largest gap between objective and lower bound is {gap:.1e}."
    )


def _crossing(records: Sequence[Record]) -> str:
    """Where LCVaR(0.1) stops being better than balanced weights."""
    lost = [
        p
        for p in _p_values(records)
        if mean_of(records, "worst_class_risk", p=p, method="LCVaR(0.1)").mean
        >= mean_of(records, "worst_class_risk", p=p, method="Balanced").mean
    ]
    if not lost:
        return "this does not happen at any of these p."
    found = ", ".join(f"{p:.2f}" for p in lost)
    return f"its worst class is no better than that of balanced weights at p = {found}."


def _p_values(records: Sequence[Record]) -> Any:
    return np.array(sorted({record["p"] for record in records}))


STUDY = Study(
    "synthetic", "Synthetic model: class risks under imbalance (Figure 2)", _units, _report
)
