"""Figure 3: what alpha and kappa do on the synthetic model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Vector
from equipoise.paper import drawing, pages
from equipoise.paper.fits import SyntheticSize, synthetic_units
from equipoise.paper.methods import BALANCED, Method, lcvar, lhcvar
from equipoise.paper.records import Record, RecordsByKind, distinct, means_over, select
from equipoise.paper.study import (
    WAYS,
    Claim,
    Finding,
    Statement,
    Study,
    StudyPlan,
    StudyReport,
    Unit,
)

ALPHAS = (0.01, 0.05, 0.1, 0.2, 0.5)
# Those of the paper's Table 2; Figure 3 does not say which alphas it shows.
PAPER_ALPHAS = (0.01, 0.05, 0.1)
KAPPAS = (0.5, 0.8, 1.0, 1.2, 2.0)

_LCVAR = [lcvar(alpha) for alpha in ALPHAS]
_LHCVAR = [lhcvar(0.01, kappa) for kappa in KAPPAS]
_LHCVAR_SCRIPTS = [lhcvar(0.01, kappa, inverted=True) for kappa in KAPPAS]
# Beyond the paper: with c = 1 the caps are as tight as the formula allows.
_TIGHT = [lhcvar(1.0, kappa) for kappa in KAPPAS]

_METHODS = {
    "exact": [BALANCED, *_LCVAR, *_LHCVAR, *_TIGHT],
    "text": [BALANCED, *_LCVAR, *_LHCVAR],
    "scripts": [BALANCED, *_LCVAR, *_LHCVAR_SCRIPTS],
}
_READING = (
    "at every p the range over the values is at most the distance between the best of them and "
    "balanced weights"
)
# A range of risks that one might call small.
SMALL = 0.02
_GREYS = ("#000000", "#0072B2", "#CC3311", "#E69F00", "#666666")
_MARKERS = ("o", "s", "^", "D", "v")

_LEAD = """\
{rows:,} training and test rows for each p, {seeds} seeds. Each point is the risk of the worst
class. Where solved exactly, a filled marker says that the optimum reaches a cap, a hollow one that
it does not: there the problem is exactly the worst-class problem, and nothing depends on alpha or
kappa.
"""
_FACTS = """\
LCVaR(alpha) caps the mass of class i at p_i/alpha, LHCVaR at p_i/alpha_i with
`alpha_i = c p_i^(1/κ) / Σ p_j^(1/κ)`. With κ = 1 that cap is 1/c for every class and never binds.
With the paper's c = 0.01 no κ makes it bind anywhere on this model, so that panel (b) of Figure 3
shows one and the same problem several times. The third panel, with c = 1, is not in the paper:
there κ matters.
"""


def _units(plan: StudyPlan) -> list[Unit]:
    return [
        *synthetic_units("ablation-exact", plan, _METHODS["exact"]),
        *synthetic_units("ablation-text", plan, _METHODS["text"], "text"),
        *synthetic_units("ablation-scripts", plan, _METHODS["scripts"], "synthetic-scripts"),
    ]


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    size = SyntheticSize.of(plan)
    by_way = {way: results[f"ablation-{way}"] for way in WAYS}
    parts = [_LEAD.format(rows=size.n_rows, seeds=size.n_seeds), _FACTS]
    drawings = {}
    for way, records in by_way.items():
        name = f"worst-class-risk-{way}"
        drawings[name] = _figure(way, records)
        caption = f"Risk of the worst class on test rows, {plan.ways[way]}"
        parts += [f"## {plan.ways[way].capitalize()}", pages.figure(name, caption)]
        parts += [_table(way, records)]
    trained = {way: by_way[way] for way in ("text", "scripts")}
    distances = pages.distance_table(trained, plan.ways)
    parts += ["## How far from the optimum training stops", distances]
    return StudyReport(
        claims=_claims(by_way),
        page=pages.sections(*parts),
        figures=drawings,
    )


def _panels(way: str) -> dict[str, list[Method]]:
    panels = {"LCVaR, varying alpha": _LCVAR}
    if way == "scripts":
        return panels | {"LHCVaR, c = 0.01, varying κ (exponent κ)": _LHCVAR_SCRIPTS}
    panels["LHCVaR, c = 0.01, varying κ"] = _LHCVAR
    return panels | (
        {"LHCVaR, c = 1, varying κ (not in the paper)": _TIGHT} if way == "exact" else {}
    )


def _figure(way: str, records: Sequence[Record]) -> Any:
    panels = _panels(way)
    picture, axes = drawing.figure(4.2 * len(panels), 4.8, columns=len(panels), sharey=True)
    for ax, (title, methods) in zip(axes, panels.items(), strict=True):
        for place, method in enumerate(methods):
            _line(ax, records, method, place)
        _line(ax, records, BALANCED, 0, color="0.5", linestyle="--", marker="", linewidth=1.4)
        ax.set(title=title, xlabel="share of class 1, 1 - p")
        drawing.from_zero(ax)
        ax.title.set_fontsize(10.5)
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=9, frameon=False
        )
    axes[0].set_ylabel("test risk of the worst class")
    return picture


def _line(ax: Any, records: Sequence[Record], method: Method, place: int, **changes: Any) -> None:
    """One curve; coinciding curves stay visible by markers that fit into each other."""
    p_values = _p_values(records)
    means = _worst(records, method.label)
    look: dict[str, Any] = {"color": _GREYS[place], "linewidth": 1.0, "linestyle": "-"}
    look |= {"marker": _MARKERS[place], "markersize": 15 - 2 * place, "markerfacecolor": "none"}
    look |= changes
    ax.plot(1 - p_values, means, label=_short(method), zorder=3, **look)
    active = [_caps(records, p, method) == "active" for p in p_values]
    if any(active) and look["marker"]:
        full = {**look, "markerfacecolor": look["color"], "linestyle": "none"}
        ax.plot((1 - p_values)[active], means[active], zorder=4, **full)


def _short(method: Method) -> str:
    if method.alpha is not None:
        return f"alpha = {method.alpha:g}"
    return f"κ = {method.kappa:g}" if method.kappa is not None else method.label


def _caps(records: Sequence[Record], p: float, method: Method) -> str:
    """What the caps do in most of the fits; trained ones do not say."""
    states = [record.get("caps", "") for record in select(records, p=p, method=method.label)]
    return max(states, key=states.count) if states else ""


def _table(way: str, records: Sequence[Record]) -> str:
    """Worst-class risk, with an asterisk where a cap is reached."""
    p_values = _p_values(records)
    rows = [
        [
            method.label,
            *(
                f"{risk:.4f}{'*' if _caps(records, p, method) == 'active' else ''}"
                for p, risk in zip(p_values, _worst(records, method.label), strict=True)
            ),
        ]
        for method in _METHODS[way]
    ]
    note = "`*` the optimum reaches a cap" if way == "exact" else ""
    return pages.sections(pages.table(["p", *(f"{p:.2f}" for p in p_values)], rows), note)


def _claims(by_way: dict[str, Sequence[Record]]) -> list[Claim]:
    alphas = [lcvar(alpha).label for alpha in PAPER_ALPHAS]
    wide = [method.label for method in _LCVAR]
    tight = [method.label for method in _TIGHT]

    def kappas(way: str) -> list[str]:
        return [each.label for each in (_LHCVAR_SCRIPTS if way == "scripts" else _LHCVAR)]

    exact = {"exact": by_way["exact"]}
    return [
        _no_dramatic_effect(
            "Section 5, Synthetic",
            "alpha (0.01 to 0.1) has no dramatic effect on the worst-class risk of LCVaR",
            {way: (records, alphas) for way, records in by_way.items()},
        ),
        _no_dramatic_effect(
            "Section 5, Synthetic",
            "kappa has no dramatic effect on the worst-class risk of LHCVaR",
            {way: (records, kappas(way)) for way, records in by_way.items()},
        ),
        _no_dramatic_effect(
            "beyond the paper",
            "the same for alpha from 0.01 to 0.5",
            {way: (records, wide) for way, records in exact.items()},
        ),
        _no_dramatic_effect(
            "beyond the paper",
            "the same for kappa with c = 1",
            {way: (records, tight) for way, records in exact.items()},
        ),
    ]


# Records, and the labels of the methods that differ in one hyper-parameter.
Varied = tuple[Sequence[Record], Sequence[str]]


def _no_dramatic_effect(where: str, text: str, by_way: dict[str, Varied]) -> Claim:
    others = {f"a range of at most {SMALL:g} at every p": _small_range}
    return Statement(where, text, _matters_less, _READING, others).checked(by_way)


def _small_range(varied: Varied) -> Finding:
    """Whether the range over a hyper-parameter stays small in itself."""
    records, labels = varied
    ranges = np.ptp([_worst(records, label) for label in labels], axis=0)
    return Finding(bool(ranges.max() <= SMALL), f"ranges of at most {ranges.max():.4f}")


def _matters_less(varied: Varied) -> Finding:
    """Whether the range over a hyper-parameter stays below the distance to balanced weights."""
    records, labels = varied
    p_values = _p_values(records)
    risks = np.array([_worst(records, label) for label in labels])
    ranges = risks.max(axis=0) - risks.min(axis=0)
    distances = _worst(records, "Balanced") - risks.min(axis=0)
    tightest = int(np.argmax(ranges - distances))
    return Finding(
        bool(np.all(ranges <= np.maximum(distances, 0))),
        f"ranges of {ranges.min():.4f} to {ranges.max():.4f}; at p = {p_values[tightest]:.2f} the "
        f"range is {ranges[tightest]:.4f} and the best {distances[tightest]:.4f} below balanced",
    )


def _p_values(records: Sequence[Record]) -> Vector:
    return np.array(sorted(distinct(records, "p")))


def _worst(records: Sequence[Record], label: str) -> Vector:
    """Risk of the worst class for every p, mean over seeds."""
    return means_over("p", records, "worst_class_risk", method=label)


STUDY = Study(
    "ablation",
    "Synthetic model: alpha and kappa (Figure 3)",
    _units,
    _report,
    {"worst-class-risk": "ablation-{way}"},
)
