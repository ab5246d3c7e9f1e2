"""Figure 2: class risks on the synthetic model, from mild to strong imbalance."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Vector
from equipoise.datasets import PowerImbalance
from equipoise.paper import drawing, pages
from equipoise.paper.fits import SyntheticSize, synthetic_units
from equipoise.paper.methods import BALANCED, STANDARD, lcvar, lhcvar
from equipoise.paper.records import Record, RecordsByKind, distinct, mean_of, means_over
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
    "worst_class": (0, (4, 2, 1, 2)),
}
_WHERE = "Section 5, Synthetic"
_ROBUST = ("LCVaR(0.05)", "LHCVaR(c=0.05, κ=1)")
_BASELINES = ("Standard", "Balanced")
# A loss of risk that one might call little.
_LITTLE = 0.05

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
_DISTANCE_CAPTION = "Training risk above the optimum; bars: one standard deviation over seeds"
_CROSSING = """\
LCVaR(0.1) caps the mass of the rare class at (1 - p)/0.1. Once the optimum reaches that cap, the
rare class no longer carries enough: {where}
"""


def _units(plan: StudyPlan) -> list[Unit]:
    return [
        *synthetic_units("synthetic-exact", plan, METHODS),
        *synthetic_units("synthetic-text", plan, METHODS, "text"),
        *synthetic_units("synthetic-scripts", plan, METHODS, "synthetic-scripts"),
    ]


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    size = SyntheticSize.of(plan)
    by_way = {way: results[f"synthetic-{way}"] for way in WAYS}
    parts = [_LEAD.format(rows=size.n_rows, seeds=size.n_seeds, script_rows=size.script_rows)]
    drawings = {}
    for way, records in by_way.items():
        name = f"class-risks-{way}"
        drawings[name] = _figure(records)
        caption = f"Class risks on test rows, {plan.ways[way]}; bars: one standard deviation"
        title = f"## {plan.ways[way].capitalize()}"
        parts += [title, pages.figure(name, caption), _table(records)]
        if way == "exact":
            parts += [_certificate(records), _CROSSING.format(where=_crossing(records))]
    trained = {way: by_way[way] for way in ("text", "scripts")}
    drawings["distance"] = pages.distance_figure(trained, plan.ways)
    parts += [
        "## How far from the optimum training stops",
        pages.DISTANCE_NOTE,
        pages.figure("distance", _DISTANCE_CAPTION),
        pages.distance_table(trained, plan.ways),
    ]
    return StudyReport(
        claims=_claims(by_way),
        page=pages.sections(*parts),
        figures=drawings,
    )


def _figure(records: Sequence[Record]) -> Any:
    picture, axes = drawing.figure(11.5, 3.9, columns=3)
    shares = _p_values(records)
    for ax, (field, title) in zip(axes, PANELS.items(), strict=True):
        for method in METHODS:
            spreads = [mean_of(records, field, p=p, method=method.label) for p in shares]
            drawing.error_bars(ax, 1 - shares, spreads, **drawing.style(method.label))
        for goal, dash in _BAYES.items():
            look = {"color": "0.45", "linewidth": 1.2, "linestyle": dash}
            risks = [_bayes(p, field, goal) for p in shares]
            ax.plot(1 - shares, risks, label=f"Bayes, {goal.replace('_', '-')}", **look)
        ax.set(title=title, xlabel="share of class 1, 1 - p", ylabel="test risk")
        drawing.from_zero(ax)
    drawing.legend_below(picture, axes[0], ncols=4)
    return picture


def _bayes(p: float, field: str, goal: str) -> float:
    """Class risks of the best of all rules for a goal."""
    if goal == "worst_class":  # both classes have the same risk
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
    header = ["p", *labels, *(f"Bayes, {goal.replace('_', '-')}" for goal in _BAYES)]
    return pages.sections("Risk of the worst class:", pages.table(header, rows))


def _certificate(records: Sequence[Record]) -> str:
    gap = max(record["gap"] for record in records)
    return (
        f"Every fit is certified: the largest gap between objective and lower bound is {gap:.1e}."
    )


def _crossing(records: Sequence[Record]) -> str:
    """Where LCVaR(0.1) stops being better than balanced weights."""
    capped, balanced = (
        means_over("p", records, "worst_class_risk", method=label)
        for label in ("LCVaR(0.1)", "Balanced")
    )
    lost = _p_values(records)[capped >= balanced]
    if not len(lost):
        return "this does not happen at any of these p."
    words = ", ".join(f"{p:.2f}" for p in lost)
    return f"its worst class is no better than that of balanced weights at p = {words}."


def _p_values(records: Sequence[Record]) -> Vector:
    return np.array(sorted(distinct(records, "p")))


@dataclass(frozen=True)
class RiskCurves:
    """Mean risks over seeds, by method: one value per p, p growing.

    The risk of the worst class is the mean over seeds of each seed's, here as in every table.
    """

    p: Vector
    class_0: Mapping[str, Vector]
    class_1: Mapping[str, Vector]
    worst: Mapping[str, Vector]

    def between(self, label: str) -> Vector:
        """Distance between the two class risks."""
        return np.abs(self.class_0[label] - self.class_1[label])


def _claims(by_way: Mapping[str, Sequence[Record]]) -> list[Claim]:
    curves = {way: _curves(records) for way, records in by_way.items() if records}
    return [*(each.checked(curves) for each in _CLAIMS), _bayes_formula(curves["exact"].p)]


def _curves(records: Sequence[Record]) -> RiskCurves:
    class_0, class_1, worst = (
        {
            label: means_over("p", records, field, method=label)
            for label in distinct(records, "method")
        }
        for field in PANELS
    )
    return RiskCurves(_p_values(records), class_0, class_1, worst)


def _lower_worst_risk(curves: RiskCurves) -> Finding:
    baselines = np.minimum(curves.worst["Standard"], curves.worst["Balanced"])
    margins = np.min([baselines - curves.worst[label] for label in _ROBUST], axis=0)
    least = int(margins.argmin())
    return Finding(
        bool(np.all(margins > 0)),
        f"below both at {np.sum(margins > 0)} of {len(margins)} p; smallest margin "
        f"{margins[least]:.4f} at p = {curves.p[least]:.2f}",
    )


def _close_class_risks(curves: RiskCurves) -> Finding:
    robust = np.max([curves.between(label) for label in _ROBUST], axis=0)
    baselines = np.minimum(curves.between("Standard"), curves.between("Balanced"))
    return Finding(
        bool(np.all(robust < baselines)),
        f"class risks differ by {_range(robust)} (robust), "
        f"{_range(curves.between('Standard'))} (standard), "
        f"{_range(curves.between('Balanced'))} (balanced)",
    )


@dataclass(frozen=True)
class GainAndPrice:
    """What the robust fit gains on one class over a baseline, and pays on the other; by p."""

    gain: Vector
    price: Vector
    risk: Vector

    @property
    def words(self) -> str:
        """Both at the mildest and at the strongest imbalance."""
        gain, price, shares = self.gain, self.price, self.gain / self.risk
        return (
            f"gain {gain[0]:.4f} to {gain[-1]:.4f} ({shares[0]:.0%} to {shares[-1]:.0%} of the "
            f"risk), price {price[0]:.4f} to {price[-1]:.4f}"
        )


def _against_balanced(curves: RiskCurves) -> GainAndPrice:
    label = _ROBUST[0]
    gain = curves.class_0["Balanced"] - curves.class_0[label]
    price = curves.class_1[label] - curves.class_1["Balanced"]
    return GainAndPrice(gain, price, curves.class_0["Balanced"])


def _against_standard(curves: RiskCurves) -> GainAndPrice:
    label = _ROBUST[0]
    gain = curves.class_1["Standard"] - curves.class_1[label]
    price = curves.class_0[label] - curves.class_0["Standard"]
    return GainAndPrice(gain, price, curves.class_1["Standard"])


Trade = Callable[[RiskCurves], GainAndPrice]


def _from_end_to_end(trade: Trade) -> Callable[[RiskCurves], Finding]:
    """Whether the gain grows and the price falls from the mildest to the strongest imbalance."""

    def check(curves: RiskCurves) -> Finding:
        tradeoff = trade(curves)
        held = tradeoff.gain[-1] > tradeoff.gain[0] and tradeoff.price[-1] < tradeoff.price[0]
        return Finding(bool(held), tradeoff.words)

    return check


def _as_shares(trade: Trade) -> Callable[[RiskCurves], Finding]:
    """The same with the gain as a share of the baseline's risk."""

    def check(curves: RiskCurves) -> Finding:
        tradeoff = trade(curves)
        shares = tradeoff.gain / tradeoff.risk
        held = shares[-1] > shares[0] and tradeoff.price[-1] < tradeoff.price[0]
        return Finding(bool(held), tradeoff.words)

    return check


def _at_every_step(trade: Trade) -> Callable[[RiskCurves], Finding]:
    """The same from each p to the next."""

    def check(curves: RiskCurves) -> Finding:
        tradeoff = trade(curves)
        up, down = np.diff(tradeoff.gain) > 0, np.diff(tradeoff.price) < 0
        return Finding(
            bool(np.all(up & down)),
            f"the gain grows in {up.sum()} and the price falls in {down.sum()} of {len(up)} steps",
        )

    return check


def _falls_with_imbalance(curves: RiskCurves) -> Finding:
    risks = [curves.worst[label] for label in _ROBUST]
    return Finding(
        all(bool(np.all(np.diff(each) < 0)) for each in risks),
        f"{risks[0][0]:.4f} at p = {curves.p[0]:.2f}, {risks[0][-1]:.4f} at {curves.p[-1]:.2f}",
    )


def _worst_and_other(curves: RiskCurves, baseline: str) -> tuple[Vector, Vector]:
    """How far the risk of the baseline's worst class falls, and how far the other's rises."""
    label = _ROBUST[0]
    worst_is_0 = curves.class_0[baseline] >= curves.class_1[baseline]
    fall_0 = curves.class_0[baseline] - curves.class_0[label]
    fall_1 = curves.class_1[baseline] - curves.class_1[label]
    return np.where(worst_is_0, fall_0, fall_1), -np.where(worst_is_0, fall_1, fall_0)


def _loses_less(*baselines: str) -> Callable[[RiskCurves], Finding]:
    """Against each baseline: the fall of its worst class risk exceeds the rise of the other's."""

    def check(curves: RiskCurves) -> Finding:
        tradeoffs = {name: _worst_and_other(curves, name) for name in baselines}
        held = all(bool(np.all(gain > price)) for gain, price in tradeoffs.values())
        words = [
            f"against {name.lower()}: worst class gains {_range(gain)}, the other loses "
            f"{_range(price)}"
            for name, (gain, price) in tradeoffs.items()
        ]
        return Finding(held, "; ".join(words))

    return check


def _loses_at_most(limit: float) -> Callable[[RiskCurves], Finding]:
    """Whether the other class never loses more than so much, whatever is gained."""

    def check(curves: RiskCurves) -> Finding:
        losses = {name: _worst_and_other(curves, name)[1].max() for name in _BASELINES}
        words = ", ".join(f"{loss:.3f} against {name.lower()}" for name, loss in losses.items())
        return Finding(bool(max(losses.values()) <= limit), f"at most {words}")

    return check


def _wide_cap_wins(curves: RiskCurves) -> Finding:
    margins = (
        np.minimum(curves.worst["Standard"], curves.worst["Balanced"]) - curves.worst["LCVaR(0.1)"]
    )
    lost = ", ".join(f"{p:.2f}" for p in curves.p[margins <= 0])
    return Finding(
        bool(np.all(margins > 0)),
        f"not at p = {lost}" if lost else f"smallest margin {margins.min():.4f}",
    )


def _bayes_formula(p_values: Vector) -> Claim:
    truth = np.array([PowerImbalance(p).bayes_class_risks("standard")[0] for p in p_values])
    printed = 1 - (1 + p_values) * 0.5 ** (1 / p_values)
    finding = Finding(
        bool(np.allclose(truth, printed)),
        f"at p = {p_values[0]:.2f} the formula gives {printed[0]:.4f}, the truth is {truth[0]:.4f}",
    )
    text = "the Bayes rule has class-0 risk `1 - (1 + p) 2^(-1/p)`"
    return Claim("Section 5, data", text, {"exact": finding})


def _range(values: Vector) -> str:
    return f"{values.min():.3f} to {values.max():.3f}"


_ENDS = (
    "differences of the class risks of LCVaR(0.05), at the mildest and at the strongest imbalance"
)


def _trade_statement(text: str, trade: Trade) -> Statement[RiskCurves]:
    """A claim about gain and price, whose finding hangs on how they are measured."""
    others = {
        "the gain as a share of the baseline's risk, the price as before": _as_shares(trade),
        "as in our reading, and at every step of p": _at_every_step(trade),
    }
    return Statement(_WHERE, text, _from_end_to_end(trade), _ENDS, others)


_CLAIMS: list[Statement[RiskCurves]] = [
    Statement(
        _WHERE,
        "LCVaR and LHCVaR have a lower worst-class risk than the standard and the balanced "
        "classifier at every p",
        _lower_worst_risk,
    ),
    Statement(
        _WHERE,
        "their two class risks are close to each other, those of the baselines far apart",
        _close_class_risks,
    ),
    _trade_statement(
        "the stronger the imbalance, the more they gain on class 0 over the balanced classifier, "
        "at an ever smaller price on class 1",
        _against_balanced,
    ),
    _trade_statement(
        "the same against the standard classifier, with the classes exchanged", _against_standard
    ),
    Statement(_WHERE, "their worst-class risk falls as the imbalance grows", _falls_with_imbalance),
    Statement(
        _WHERE,
        "they improve the highest class risk much and lose little on the other class",
        _loses_less(*_BASELINES),
        "at every p and against both baselines the worst class gains more than the other loses",
        {
            "the same against the standard classifier alone": _loses_less("Standard"),
            f"no class loses more than {_LITTLE:g}, whatever is gained": _loses_at_most(_LITTLE),
        },
    ),
    Statement(
        "beyond the paper",
        "LCVaR(0.1), too, has a lower worst-class risk than both baselines at every p",
        _wide_cap_wins,
    ),
]


STUDY = Study(
    "synthetic",
    "Synthetic model: class risks under imbalance (Figure 2)",
    _units,
    _report,
    {"class-risks": "synthetic-{way}"},
)
