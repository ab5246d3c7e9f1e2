"""Remarks that the paper makes in passing and that no other study tries."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.paper import drawing, pages
from equipoise.paper.appendix_d import never_broken
from equipoise.paper.methods import lcvar
from equipoise.paper.ramps import P
from equipoise.paper.records import Record, RecordsByKind, distinct, means_over, select
from equipoise.paper.remark_checks import (
    CLOSED,
    FIXED_P,
    KERNEL,
    LIPSCHITZ,
    LOCAL,
    MARGIN,
    NEIGHBOURS,
    SCALED,
    SHOWN_PRIOR,
    TRAINED,
    duals,
    estimators,
    imbalance,
    kappas,
    levels,
    lipschitz,
)
from equipoise.paper.study import Claim, Finding, Study, StudyPlan, StudyReport, Unit

# Rates of the L1 distance: n^(-beta / (2 beta + d)) with a smoothness of two, or of one.
_RATES = {LOCAL: 2 / 5, KERNEL: 1 / 3, NEIGHBOURS: 1 / 3}
_LEVELS = (CLOSED, TRAINED, SCALED)
_LEVEL_SETS = [lcvar(0.25), lcvar(0.05)]
_P_VALUES = (0.80, 0.82, 0.84, 0.86, 0.88, 0.90, 0.92, 0.94, 0.96, 0.98)
_KAPPAS = (0.1, 0.5, 1.0, 2.0, 10.0, 1000.0)
_SUMS = (1.0, 0.5)
# Records have eight digits.
_ROUNDING = 1e-7
_LOOKS = (
    {"color": "#0072B2", "marker": "^", "linestyle": "-"},
    {"color": "#E69F00", "marker": "s", "linestyle": "--"},
    {"color": "#CC3311", "marker": "D", "linestyle": ":"},
)

_LEAD = """\
What the paper says in passing, where it can be computed: on the synthetic model with p = {p:g}, at
known probabilities, or at numbers drawn at random.

What is no claim to compute: that plug-in rules need little mass near t_q even where rows there are
not hard to tell apart (Appendix A.2; `margin` shows the exponents for two thresholds), and that
rows as they come and rows by class 'yield similar results' (Section 2; `bounds` has both).
"""
_ESTIMATORS_LEAD = """\
## Other estimators (Appendix A)

Mean L1 distance over {seeds} seeds. Local polynomials of degree 1 can use a smoothness of two, for
a rate of n^(-0.4); kernel regression (degree 0) and nearest neighbours (n^(2/3) of them) one of
one, for n^(-0.33).
"""
_LEVELS_LEAD = """\
## The level in closed form, or trained (Appendix G.1)

Mean distance from the optimal training risk at the end, over {seeds} starts; {rows:,} rows, rates
from 0.1 to 0.001 for all. The trained level has masses p_i/alpha_i for the classes above it, whose
sum may exceed one: its steps are then longer, and it ends nearer to the optimum. With masses scaled
to sum to one it does not.
"""
_IMBALANCE_LEAD = """\
## What imbalance does to the synthetic model (Section 5)

Bayes class risks of the standard rule; the share of points with a probability within 1/4 of one
half; the least worst-class risk of any rule; and the same where class frequencies alone change and
the classes look as they do at p = {fixed:g}.
"""
_KAPPA_LEAD = """\
## c and κ (Section 5)

Levels of LHCVaR at the prior {prior}, and the largest mass of each class:
"""
_LIPSCHITZ_LEAD = """\
## Lipschitz losses of two classes (after Theorem 1)

Mean widths of the bound for conditional sampling, for the functions of the study `bounds`. The
margin loss of f_1 = -f_0 has a slope of 2 in f_1, and `lipschitz=2` needs no 4k:
"""


def _numbers(plan: StudyPlan) -> tuple[tuple[int, ...], int, int, tuple[int, ...]]:
    """Numbers of rows of the estimates and their seeds; rows and epochs of the training."""
    if plan.quick:
        return (1_000, 4_000, 16_000), 4, 2_000, (100, 300)
    return (1_000, 4_000, 16_000, 64_000), 20, 5_000, (100, 300, 1_000, 3_000)


def _units(plan: StudyPlan) -> list[Unit]:
    sizes, n_seeds, n_rows, epochs = _numbers(plan)
    seeds, starts = plan.seeds(n_seeds), plan.seeds(5)
    training = {"n_rows": n_rows, "epochs": list(epochs), "seeds": starts}
    return [
        *(Unit("remarks-estimators", estimators, {"n_rows": n, "seeds": seeds}) for n in sizes),
        *(
            Unit("remarks-levels", levels, {"method": method.spec(), **training})
            for method in _LEVEL_SETS
        ),
        *(
            Unit("remarks-lipschitz", lipschitz, {"n_rows": n, "seeds": seeds})
            for n in (1_000, 10_000, 100_000)
        ),
        *(Unit("remarks-imbalance", imbalance, {"p": p}) for p in _P_VALUES),
        *(
            Unit("remarks-duals", duals, {"n_classes": k, "seeds": seeds})
            for k in (2, 10, 100, 10_000, 100_000)
        ),
        *(
            Unit("remarks-kappas", kappas, {"kappa": kappa, "c": c})
            for c in _SUMS
            for kappa in _KAPPAS
        ),
    ]


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    _, n_seeds, n_rows, _ = _numbers(plan)
    caption = (
        "Left: the L1 distance of three estimates. Right: how far above the optimum training ends, "
        "by how the level is found"
    )
    return StudyReport(
        claims=_claims(results),
        page=pages.sections(
            _LEAD.format(p=P),
            pages.figure("remarks", caption),
            _ESTIMATORS_LEAD.format(seeds=n_seeds),
            _estimators_table(results["remarks-estimators"]),
            _LEVELS_LEAD.format(seeds=5, rows=n_rows),
            _levels_table(results["remarks-levels"]),
            _IMBALANCE_LEAD.format(fixed=FIXED_P),
            _imbalance_table(results["remarks-imbalance"]),
            _KAPPA_LEAD.format(prior=SHOWN_PRIOR),
            _kappa_table(results["remarks-kappas"]),
            _LIPSCHITZ_LEAD,
            _lipschitz_table(results["remarks-lipschitz"]),
        ),
        figures={"remarks": _figure(results)},
    )


def _sizes(records: Sequence[Record]) -> list[int]:
    return sorted(distinct(records, "n_rows"))


def _distances(records: Sequence[Record], name: str) -> Any:
    return means_over("n_rows", select(records, estimator=name), "l1")


def _above(records: Sequence[Record], label: str, level: str) -> Any:
    return means_over("epochs", select(records, set=label, level=level), "above")


def _estimators_table(records: Sequence[Record]) -> str:
    columns = [_distances(records, name) for name in _RATES]
    rows = [
        [f"{n}", *(f"{column[place]:.5f}" for column in columns)]
        for place, n in enumerate(_sizes(records))
    ]
    return pages.table(["rows", *_RATES], rows)


def _levels_table(records: Sequence[Record]) -> str:
    pairs = [(method.label, level) for method in _LEVEL_SETS for level in _LEVELS]
    columns = [_above(records, *pair) for pair in pairs]
    rows = [
        [f"{count}", *(float(column[place]) for column in columns)]
        for place, count in enumerate(sorted(distinct(records, "epochs")))
    ]
    return pages.table(["epochs", *(f"{label}: {level}" for label, level in pairs)], rows)


def _imbalance_table(records: Sequence[Record]) -> str:
    names = ("risk[0]", "risk[1]", "near", "worst", "worst_of_fixed_classes")
    rows = [[f"{each['p']:.2f}", *(each[name] for name in names)] for each in records]
    header = ["p", "class 0", "class 1", "near one half", "worst class", "frequencies alone"]
    return pages.table(header, rows)


def _kappa_table(records: Sequence[Record]) -> str:
    fields = ("alpha", "largest_mass")
    rows = [
        [
            f"{each['c']:g}",
            f"{each['kappa']:g}",
            *(" / ".join(f"{each[f'{name}[{i}]']:.3f}" for i in range(3)) for name in fields),
        ]
        for each in records
    ]
    return pages.table(["c", "κ", "levels", "largest masses"], rows)


def _lipschitz_table(records: Sequence[Record]) -> str:
    pairs = [(label, loss) for label in distinct(records, "set") for loss in (MARGIN, LIPSCHITZ)]
    columns = [
        means_over("n_rows", select(records, set=label, loss=loss), "width")
        for label, loss in pairs
    ]
    rows = [
        [f"{n}", *(float(column[place]) for column in columns)]
        for place, n in enumerate(_sizes(records))
    ]
    return pages.table(["rows", *(f"{label}: {loss}" for label, loss in pairs)], rows)


def _figure(results: RecordsByKind) -> Any:
    picture, (left, right) = drawing.figure(11, 4.4, columns=2)
    records, trained = results["remarks-estimators"], results["remarks-levels"]
    for name, look in zip(_RATES, _LOOKS, strict=True):
        left.plot(_sizes(records), _distances(records, name), label=name, **look)
    for method, dash in zip(_LEVEL_SETS, ("-", "--"), strict=True):
        for level, look in zip(_LEVELS, _LOOKS, strict=True):
            epochs = sorted(distinct(trained, "epochs"))
            label = f"{method.label}, {level}"
            above = _above(trained, method.label, level)
            right.plot(epochs, above, label=label, **{**look, "linestyle": dash})
    left.set(xscale="log", yscale="log", xlabel="rows n", ylabel="L1 distance from η")
    right.set(xscale="log", yscale="log", xlabel="epochs", ylabel="above the optimum")
    for ax in (left, right):
        ax.legend(frameon=False, fontsize=9)
    return picture


def _of_theory(results: RecordsByKind) -> list[tuple[str, str, Finding]]:
    return [
        (
            "Section 4, after Theorem 1",
            "for two classes generalisation follows for other Lipschitz losses, with twice the "
            "slope in place of 4k: the bound holds with probability at least 0.95",
            never_broken(select(results["remarks-lipschitz"], loss=LIPSCHITZ)),
        ),
        (
            "Section 4.2",
            "LCVaR is the CVaR of the risk of a row's class",
            _gaps(results["remarks-duals"], "cvar_gap"),
        ),
        (
            "Propositions 4 and 5",
            "compactness or a bounded loss makes the dual hold; with finitely many classes it "
            "holds for any finite risks",
            _gaps(results["remarks-duals"], "dual_gap"),
        ),
        (
            "Section 4.2",
            "that there are finitely many classes is crucial for the dual of LHCVaR: with more and "
            "more of them it fails",
            _fails_with_classes(results["remarks-duals"]),
        ),
        (
            "Appendix A",
            "kernel regression and nearest neighbours do as well in place of local polynomials: "
            "their L1 distances fall at least as fast as their smoothness promises",
            _have_rates(results["remarks-estimators"]),
        ),
    ]


def _of_experiments(results: RecordsByKind) -> list[tuple[str, str, Finding]]:
    return [
        (
            "Section 5",
            "κ > 1 makes the levels smoother, even ones as κ → ∞; κ < 1 sharper, with the "
            "smallest levels for the rarest class; c is their sum",
            _temperature(results["remarks-kappas"]),
        ),
        (
            "Section 5, data",
            "when p is high, class 0 has a lower Bayes risk than class 1",
            _is_lower(results["remarks-imbalance"]),
        ),
        (
            "Section 5, Synthetic",
            "the worst-class risk falls with imbalance because more mass lies far from the "
            "decision boundary",
            _fewer_near(results["remarks-imbalance"]),
        ),
        (
            "Section 5, Synthetic",
            "and that need not be so in general: where class frequencies alone change it stays",
            _stays(results["remarks-imbalance"]),
        ),
    ]


def _claims(results: RecordsByKind) -> list[Claim]:
    findings = [*_of_theory(results), *_of_experiments(results)]
    claims = [Claim(where, text, {"exact": finding}) for where, text, finding in findings]
    trained = results["remarks-levels"]
    return [
        *claims,
        Claim(
            "Appendix G.1",
            "the level in closed form converges faster than a level that is trained",
            {"exact": _is_faster(trained, TRAINED)},
            "nearer to the optimum after any number of epochs at the same learning rates",
            {"the masses scaled to sum to one": {"exact": _is_faster(trained, SCALED)}},
        ),
    ]


def _gaps(records: Sequence[Record], field: str) -> Finding:
    largest = max(each[field] for each in records)
    words = f"largest relative difference {largest:.0e} in {len(records)} cases"
    return Finding(largest < _ROUNDING, words)


def _fails_with_classes(records: Sequence[Record]) -> Finding:
    """Whether primal and dual part as a continuum of classes is approached."""
    most = max(distinct(records, "n_classes"))
    gap = max(each["value_gap"] for each in records)
    values = {each["n_classes"]: each["value"] for each in records}
    words = ", ".join(f"{values[k]:.4f} with {k:,} classes" for k in sorted(values))
    return Finding(gap >= _ROUNDING, f"up to {most:,} classes they differ by {gap:.0e}: {words}")


def _temperature(records: Sequence[Record]) -> Finding:
    spreads: dict[float, list[float]] = {}
    held = True
    for each in records:
        alphas = [each[f"alpha[{i}]"] for i in range(3)]
        held &= abs(sum(alphas) - each["c"]) < _ROUNDING and alphas == sorted(alphas)[::-1]
        spreads.setdefault(each["c"], []).append(max(alphas) / min(alphas))
    held &= all(np.all(np.diff(ratios) < 0) and ratios[-1] < 1.01 for ratios in spreads.values())
    ratios = ", ".join(
        f"{ratio:.3g} at κ = {kappa:g}"
        for kappa, ratio in zip(_KAPPAS, spreads[_SUMS[0]], strict=True)
    )
    return Finding(bool(held), f"largest over smallest level {ratios}")


def _is_lower(records: Sequence[Record]) -> Finding:
    first, last = records[0], records[-1]
    words = ", ".join(
        f"{each['risk[0]']:.4f} against {each['risk[1]']:.4f} at p = {each['p']:.2f}"
        for each in (first, last)
    )
    return Finding(all(each["risk[0]"] < each["risk[1]"] for each in records), words)


def _fewer_near(records: Sequence[Record]) -> Finding:
    near, worst = (np.array([each[name] for each in records]) for name in ("near", "worst"))
    held = bool(np.all(np.diff(near) < 0) and np.all(np.diff(worst) < 0))
    words = (
        f"points near one half {near[0]:.1%} to {near[-1]:.1%}, least worst-class risk "
        f"{worst[0]:.4f} to {worst[-1]:.4f}"
    )
    return Finding(held, words)


def _stays(records: Sequence[Record]) -> Finding:
    values = [each["worst_of_fixed_classes"] for each in records]
    # The jump of the rule is off by a point of the grid.
    held = max(values) - min(values) < 1e-3
    return Finding(held, f"least worst-class risk {min(values):.4f} to {max(values):.4f}")


def _is_faster(records: Sequence[Record], other: str) -> Finding:
    """Whether the closed form ends nearer to the optimum than another way to find the level."""
    words, held = [], True
    for method in _LEVEL_SETS:
        closed, trained = (_above(records, method.label, level) for level in (CLOSED, other))
        held &= bool(np.all(closed < trained))
        epochs = sorted(distinct(records, "epochs"))
        words.append(
            f"{method.label} {closed[-1]:.4f} against {trained[-1]:.4f} above the optimum after "
            f"{epochs[-1]:,} epochs"
        )
    return Finding(held, "; ".join(words))


def _have_rates(records: Sequence[Record]) -> Finding:
    slopes = {
        name: float(np.polyfit(np.log(_sizes(records)), np.log(_distances(records, name)), 1)[0])
        for name in (KERNEL, NEIGHBOURS)
    }
    held = all(-slope >= _RATES[name] for name, slope in slopes.items())
    words = ", ".join(
        f"{name} n^({slope:.2f}), promised n^({-_RATES[name]:.2f})"
        for name, slope in slopes.items()
    )
    return Finding(held, words)


STUDY = Study(
    "remarks",
    "Remarks in passing",
    _units,
    _report,
    {
        "estimators": "remarks-estimators",
        "levels": "remarks-levels",
        "lipschitz": "remarks-lipschitz",
        "imbalance": "remarks-imbalance",
        "duals": "remarks-duals",
        "kappas": "remarks-kappas",
    },
)
