"""Figure 1, drawn to scale: irreducible and estimation error between two weightings."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Vector
from equipoise.datasets import PowerImbalance
from equipoise.paper import drawing, pages
from equipoise.paper.records import Record, RecordsByKind, mean_of, select
from equipoise.paper.study import Claim, Finding, Study, StudyPlan, StudyReport, Unit
from equipoise.theory import LocalPolynomialClassifier, excess_risk

P = 0.9
PAIRS = (
    ("standard", "balanced"),
    ("balanced", "standard"),
    ("standard", "standard"),
    ("balanced", "balanced"),
)
N_POINTS = 20_000
_CURVE_POINTS = 801

_LEAD = """\
X is uniform on [0, 1] and η(x) = P(Y = 1 given x) = x^9, so that class 1 has 10% of the rows. The
plug-in rule fitted for weights q predicts 1 where the estimate of η exceeds
`t_q = q_0/(q_0 + q_1)`: 0.5 for the standard risk, 0.1 for the balanced one. Evaluated under other
weights q', its excess risk is

> estimation error `R_q'(f̂_q) - R_q'(f*_q)`, which more data cure, plus irreducible error
> `R_q'(f*_q) - R_q'(f*_q')`, which they do not.

Both are integrals of `(q'_0 + q'_1) |η - t_q'|` over x: the irreducible error over the x whose η
lies between the two thresholds, the estimation error over the x where η̂ and η fall on different
sides of t_q (negative where the mistake happens to help under q'). The paper's caption calls them
the *measure* of these regions; what counts is the shaded area below.
"""
_TABLE_LEAD = """\
{n:,} rows, degree-1 local polynomials, mean ± standard deviation over {seeds} seeds. The bounds are
those of Propositions 2 and 3, with the L1 distance of η̂ itself in place of its rate.
"""


def _sizes(plan: StudyPlan) -> tuple[int, int]:
    """Rows and seeds; few rows, so that the estimation error can be seen."""
    return (500, 5) if plan.quick else (500, 50)


def _units(plan: StudyPlan) -> list[Unit]:
    n_rows, n_seeds = _sizes(plan)
    settings = {"p": P, "n_rows": n_rows, "seeds": plan.seeds(n_seeds)}
    curve = {"p": P, "n_rows": n_rows, "seed": plan.seed}
    return [
        Unit("tradeoff-parts", excess_parts, settings),
        Unit("tradeoff-curve", excess_curve, curve),
    ]


def excess_parts(*, p: float, n_rows: int, seeds: list[int]) -> list[Record]:
    """The parts of the excess risk, and their bounds, for each pair of weightings."""
    model = PowerImbalance(p)
    points, weights = model.quadrature(N_POINTS)
    records = []
    for seed in seeds:
        fit = LocalPolynomialClassifier(degree=1).fit(*model.sample(n_rows, seed))
        truth, estimate = model.predict_proba(points), fit.predict_proba(points)
        for fitted_for, evaluated_under in PAIRS:
            excess = excess_risk(
                truth, estimate, fitted_for, evaluated_under, sample_weight=weights
            )
            pair = {"fitted_for": fitted_for, "evaluated_under": evaluated_under}
            records.append({"n_rows": n_rows, "seed": seed, **pair, **excess.to_dict()})
    return records


def excess_curve(*, p: float, n_rows: int, seed: int) -> list[Record]:
    """True and estimated regression function of one sample."""
    model = PowerImbalance(p)
    fit = LocalPolynomialClassifier(degree=1).fit(*model.sample(n_rows, seed))
    x = np.linspace(0, 1, _CURVE_POINTS)
    estimate = fit.predict_proba(x[:, None])[:, 1]
    columns = zip(x.tolist(), model.eta(x).tolist(), estimate.tolist(), strict=True)
    return [{"x": x, "eta": eta, "estimate": estimated} for x, eta, estimated in columns]


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    n_rows, n_seeds = _sizes(plan)
    parts, curve = results["tradeoff-parts"], results["tradeoff-curve"]
    caption = (
        f"Where the two errors come from, in one sample of {n_rows:,} rows; the areas are those of "
        "this sample, the table has their means over samples"
    )
    return StudyReport(
        claims=_claims(parts),
        page=pages.sections(
            _LEAD,
            pages.figure("excess-risk", caption),
            _TABLE_LEAD.format(n=n_rows, seeds=n_seeds),
            _table(parts),
        ),
        figures={"excess-risk": _figure(curve, select(parts, seed=plan.seed))},
    )


def _figure(curve: Sequence[Record], parts: Sequence[Record]) -> Any:
    """A column for each of the two pairs of different weightings.

    The areas in the legend are ``parts``, the errors of this sample by quadrature.
    """
    x, eta, estimate = (np.array([r[name] for r in curve]) for name in ("x", "eta", "estimate"))
    picture, axes = drawing.figure(11, 6.4, rows=2, columns=2, sharex=True, sharey="row")
    for (top, bottom), pair in zip(axes.T, PAIRS, strict=False):
        _draw_functions(top, x, (eta, estimate), pair)
        (areas,) = select(parts, fitted_for=pair[0], evaluated_under=pair[1])
        _draw_errors(bottom, x, _densities(eta, estimate, pair), areas)
        top.set(title=f"fitted for {pair[0]}, evaluated under {pair[1]}", ylim=(0, 1))
        bottom.set(xlabel="x", xlim=(0.6, 1))
        for ax in (top, bottom):
            ax.legend(frameon=False, loc="upper left")
    axes[0, 0].set_ylabel("probability of class 1")
    axes[1, 0].set_ylabel("excess risk per unit of x")
    return picture


def _draw_functions(
    ax: Any, x: Vector, functions: tuple[Vector, Vector], pair: tuple[str, str]
) -> None:
    fitted_for, evaluated_under = map(PowerImbalance(P).threshold, pair)
    ax.plot(x, functions[0], color="black", label="η")
    ax.plot(x, functions[1], color="#0072B2", linestyle="--", label="η̂, estimated")
    for level, name, dash in ((fitted_for, "t_q", ":"), (evaluated_under, "t_q'", "-.")):
        ax.axhline(level, color="0.4", linestyle=dash, linewidth=1.2, label=f"{name} = {level:g}")


def _draw_errors(ax: Any, x: Vector, densities: tuple[Vector, Vector], areas: Record) -> None:
    estimation, irreducible = densities
    looks = (
        (irreducible, "0.8", "///", "irreducible"),
        (estimation, "#56B4E9", "...", "estimation"),
    )
    for values, color, hatch, name in looks:
        label = f"{name} error: area {areas[name]:.4f}"
        look = {"facecolor": color, "edgecolor": "0.25", "hatch": hatch, "linewidth": 0.6}
        ax.fill_between(x, values, step="mid", label=label, **look)
    ax.axhline(0, color="0.3", linewidth=0.8)


def _densities(eta: Vector, estimate: Vector, pair: tuple[str, str]) -> tuple[Vector, Vector]:
    """What each x adds to the estimation error and to the irreducible error."""
    model = PowerImbalance(P)
    t_q, t_judge = map(model.threshold, pair)
    cost = model.weights(pair[1]).sum() * np.abs(eta - t_judge)
    best, judge, fitted = eta > t_q, eta > t_judge, estimate > t_q
    return cost * (1.0 * (fitted != judge) - (best != judge)), cost * (best != judge)


def _table(records: Sequence[Record]) -> str:
    names = ("excess", "estimation", "irreducible", "estimation_bound", "irreducible_bound")
    rows = [
        [
            *pair.values(),
            *(f"{mean_of(records, name, **pair):.4f}" for name in names),
        ]
        for pair in ({"fitted_for": one, "evaluated_under": other} for one, other in PAIRS)
    ]
    header = ["fitted for", "evaluated under", *(name.replace("_", " ") for name in names)]
    return pages.table(header, rows)


def _claims(records: Sequence[Record]) -> list[Claim]:
    return [
        Claim(
            "Section 3, Equation 2",
            "excess risk under other weights is estimation plus irreducible error",
            {"exact": _identity(records)},
        ),
        Claim(
            "Proposition 2",
            "the irreducible error is at most `(q'_0 + q'_1) |t_q - t_q'| P(η between them)`",
            {"exact": _below(records, "irreducible")},
        ),
        Claim(
            "Proposition 3",
            "the estimation error is at most "
            "`(q'_0 + q'_1) (‖η - η̂‖ + |t_q - t_q'| P(f̂_q ≠ f*_q))`",
            {"exact": _below(records, "estimation")},
        ),
        Claim(
            "Section 3",
            "optimising for one weighting can be far from optimal for another: the irreducible "
            "error exceeds the error of estimation",
            {"exact": _dominates(records)},
        ),
    ]


def _identity(records: Sequence[Record]) -> Finding:
    gaps = [abs(r["excess"] - r["estimation"] - r["irreducible"]) for r in records]
    # Records have eight digits.
    return Finding(max(gaps) < 1e-7, f"largest deviation {max(gaps):.0e}")


def _below(records: Sequence[Record], part: str) -> Finding:
    # The quadrature counts each jump of a rule to within a point.
    slack = 20 / N_POINTS
    sizes = [r[part] for r in records]
    ratios = [
        size / r[f"{part}_bound"] for size, r in zip(sizes, records, strict=True) if size > slack
    ]
    held = all(size <= r[f"{part}_bound"] + slack for size, r in zip(sizes, records, strict=True))
    return Finding(held, f"at most {max(ratios):.0%} of the bound in {len(records)} cases")


def _dominates(records: Sequence[Record]) -> Finding:
    words, held = [], True
    for fitted_for, evaluated_under in PAIRS[:2]:
        pair = {"fitted_for": fitted_for, "evaluated_under": evaluated_under}
        irreducible = mean_of(records, "irreducible", **pair).mean
        estimation = mean_of(records, "estimation", **pair).mean
        held &= irreducible > abs(estimation)
        words.append(
            f"{fitted_for} under {evaluated_under}: {irreducible:.4f} against {estimation:.4f}"
        )
    return Finding(held, "; ".join(words))


STUDY = Study(
    "tradeoff",
    "What one weighting costs under another (Figure 1)",
    _units,
    _report,
    {"excess-risk": "tradeoff-parts", "regression-function": "tradeoff-curve"},
)
