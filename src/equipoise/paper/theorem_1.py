"""Theorem 1 on data, with Corollary 2 and Appendix D: do the bounds hold, and how wide are they?"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.datasets import PowerImbalance
from equipoise.paper import appendix_d, corollary_2, drawing, pages
from equipoise.paper.fits import COVERTYPE_C, CovertypeSize, exact_fit
from equipoise.paper.methods import Method, lcvar
from equipoise.paper.ramps import (
    CONFIDENCE,
    RADIUS,
    SETS,
    P,
    RampSample,
    bound_record,
    broken,
    corners_of,
    grid,
    options,
    population_risks,
)
from equipoise.paper.records import Record, RecordsByKind, distinct, mean_of, means_over, select
from equipoise.paper.splits import Sources
from equipoise.paper.study import Claim, Finding, Study, StudyPlan, StudyReport, Unit
from equipoise.risks import class_risks, robust_risk_interval
from equipoise.theory import RiskBound, class_rademacher, conditional_bound, iid_bound

THEOREM = "Theorem 1"
_SHOWN = (THEOREM, corollary_2.THEOREM, appendix_d.THEOREM)
_LOOKS = {
    THEOREM: {"color": "#0072B2", "marker": "^", "linestyle": "-"},
    corollary_2.THEOREM: {"color": "#E69F00", "marker": "s", "linestyle": "--"},
    appendix_d.THEOREM: {"color": "#CC3311", "marker": "D", "linestyle": ":"},
}
# On Covertype: the bound of the coefficients of each class, and the width to ask for.
_FOREST_RADIUS, _WIDTH = 1.0, 0.1

_LEAD = """\
Theorem 1 bounds the robust risk of *every* function of a class by its empirical robust risk and a
width, with probability 0.95 here, and the excess risk of the empirical minimiser by another.
Corollary 2 puts C/√n in place of the complexity on the rows; Appendix D is the same for rows whose
labels are given. The loss is the margin loss. Three departures keep the bounds proven: Appendix D
has 4k where 2k is printed, excess risks have log(2k/δ), and complexities that were computed on the
rows cost three times the deviation.

The functions are `f_1(x) = s (x - t)/2 = -f_0(x)` with coefficients no longer than {radius:g}, on
the synthetic model with p = {p:g}: {functions} of them, a grid over t and s, all evaluated at once
on {seeds} samples of each size, against their risks in the population.
"""
_NAMES = {
    "Balanced": "Balanced weights",
    "LCVaR(0.3)": "LCVaR(0.3), a cap of 1/3",
    "LCVaR(0.05)": "LCVaR(0.05), the worst-class risk",
}
_TABLE_LEAD = """\
Of the empirical minimiser in the class: its empirical robust risk, its robust risk in the
population and the bounds of it; then by how much it misses the lowest robust risk, and the bound
of that. Means over samples. A bound above 1 says nothing.
"""
_FOREST_LEAD = """\
## Covertype

{rows:,} random training rows, seven classes. The scores are those of the exact worst-class fit
with its coefficients scaled to length {radius:g}; risks are margin losses of the worst class. The
prior counts as known for Theorem 1.
"""


def _numbers(plan: StudyPlan) -> tuple[tuple[int, ...], int]:
    """Numbers of rows, and of samples of each."""
    if plan.quick:
        return (1_000, 10_000, 100_000), 5
    return (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000), 40


def _units(plan: StudyPlan) -> list[Unit]:
    sizes, n_seeds = _numbers(plan)
    forest = CovertypeSize.of(plan)
    split = {"n_train": forest.n_random, "seed": plan.seed, "test_step": forest.test_step}
    return [
        *(
            Unit("bounds", bounds_on_samples, {"n_rows": n_rows, "seeds": plan.seeds(n_seeds)})
            for n_rows in sizes
        ),
        Unit("bounds-covertype", bounds_on_covertype, split, needs="covertype"),
    ]


def iid_bounds(sample: RampSample, method: Method) -> tuple[RiskBound, RiskBound]:
    """Of the robust risk and of the excess risk."""
    settings = options(method)
    risks = iid_bound(sample.counts, sample.complexity, risks=sample.risks[0], **settings)
    return risks, iid_bound(sample.counts, sample.complexity, **settings)


def bounds_on_samples(*, n_rows: int, seeds: list[int]) -> list[Record]:
    """Every bound for every set on samples of one size."""
    truth, prior = population_risks(), PowerImbalance(P).prior
    records = []
    for seed in seeds:
        sample = RampSample.draw(n_rows, seed)
        # With rows as they come, the empirical weighted risk has the shares of the sample.
        drawn = sample.risks * sample.counts / (n_rows * prior)
        theorems = {
            THEOREM: (iid_bounds, drawn),
            corollary_2.THEOREM: (corollary_2.rate_bounds, drawn),
            appendix_d.THEOREM: (appendix_d.conditional_bounds, sample.risks),
            appendix_d.AS_PRINTED: (appendix_d.printed_bounds, sample.risks),
        }
        for method in SETS:
            for name, (bounds, observed) in theorems.items():
                record = bound_record(observed, truth, corners_of(method), bounds(sample, method))
                case = {"n_rows": n_rows, "seed": seed, "theorem": name, "set": method.label}
                records.append({**case, **record})
    return records


def bounds_on_covertype(
    sources: Sources, *, n_train: int, seed: int, test_step: int
) -> list[Record]:
    """The bounds of one exact fit, and how many rows would make them narrow."""
    split = sources.random_split(n_train, seed, test_step)
    fit = exact_fit(lcvar(0.01), split.X, split.y, C=COVERTYPE_C)
    weights = np.column_stack([fit.coef_, fit.intercept_])
    weights *= _FOREST_RADIUS / np.linalg.norm(weights, axis=1).max()
    train, test = (np.column_stack([X, np.ones(len(X))]) for X in (split.X, split.X_test))
    risks = dict(class_risks(split.y, train @ weights.T, loss="margin", classes=fit.classes_))
    evaluated = robust_risk_interval(
        split.y_test,
        test @ weights.T,
        "worst_class",
        confidence=CONFIDENCE,
        loss="margin",
        classes=fit.classes_,
    )
    counts, prior = (_by_class(y, fit.classes_) for y in (split.y, sources.covertype[1]))
    complexity = class_rademacher(train, split.y, _FOREST_RADIUS)
    settings: dict[str, Any] = {
        "uncertainty": "worst_class",
        "risks": risks,
        "confidence": CONFIDENCE,
    }
    bounds = {
        THEOREM: iid_bound(
            counts,
            complexity,
            {name: rows / sum(prior.values()) for name, rows in prior.items()},
            **settings,
        ),
        appendix_d.THEOREM: conditional_bound(counts, complexity, **settings),
    }
    return [
        {
            "theorem": name,
            "empirical": max(risks.values()),
            "risk": evaluated.estimate,
            "lower": evaluated.lower,
            "upper": evaluated.upper,
            "width": bound.width,
            "bound": bound.value,
            "class": bound.dominant,
            # Every term is a constant over the root of the rows, if all classes grow together.
            "rows_needed": n_train * ((bound.width / _WIDTH) ** 2 - 1),
        }
        for name, bound in bounds.items()
    ]


def _by_class(y: Any, classes: Any) -> dict[Any, int]:
    return {name: int(np.sum(y == name)) for name in classes.tolist()}


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    records, forest = results["bounds"], results["bounds-covertype"]
    caption = (
        "Widths of the three bounds, and the largest amount by which the risk of a function of the "
        "class exceeds its empirical risk; means over samples"
    )
    lead = _LEAD.format(radius=RADIUS, p=P, functions=len(grid()[0]), seeds=_numbers(plan)[1])
    parts = [lead, pages.figure("widths", caption), _TABLE_LEAD]
    for method in SETS:
        parts += [f"## {_NAMES[method.label]}", _table(records, method.label)]
    if forest:
        rows = CovertypeSize.of(plan).n_random
        parts += [
            _FOREST_LEAD.format(rows=rows, radius=_FOREST_RADIUS),
            _forest_table(forest),
            _held_out(forest[0]),
        ]
    return StudyReport(
        claims=_claims(records, forest),
        page=pages.sections(*parts),
        figures={"widths": _figure(records)},
    )


def _table(records: Sequence[Record], label: str) -> str:
    kept = select(records, set=label)
    rows = []
    for n_rows in sorted(distinct(kept, "n_rows")):
        case = {"n_rows": n_rows, "theorem": THEOREM}
        bounds = [mean_of(kept, "bound", n_rows=n_rows, theorem=theorem).mean for theorem in _SHOWN]
        fields = ("empirical", "risk", "excess", "excess_bound")
        empirical, risk, excess, limit = (mean_of(kept, field, **case).mean for field in fields)
        rows.append([f"{n_rows}", empirical, risk, *bounds, excess, limit])
    header = ["rows", "empirical", "robust risk", *_SHOWN, "excess risk", f"{THEOREM}, excess"]
    return pages.table(header, rows)


def _forest_table(records: Sequence[Record]) -> str:
    rows = [
        [
            record["theorem"],
            record["empirical"],
            record["risk"],
            record["width"],
            record["bound"],
            f"{record['class']}",
            f"{record['rows_needed']:.1e}",
        ]
        for record in records
    ]
    header = ["", "empirical", "on the test rows", "width", "bound", "class that makes it wide"]
    return pages.table([*header, f"more rows for a width of {_WIDTH:g}"], rows)


def _held_out(record: Record) -> str:
    """What the test rows say about the same fit."""
    return (
        "A bound of every function of a class at once is more than one classifier needs. For that, "
        "`robust_risk_interval` on rows which it has not seen has no complexity term and needs no "
        f"known prior: of this fit, on the test rows, {record['lower']:.4f} to "
        f"{record['upper']:.4f} with confidence {CONFIDENCE:g}."
    )


def _figure(records: Sequence[Record]) -> Any:
    picture, axes = drawing.figure(12.5, 4.4, columns=len(SETS), sharey=True)
    sizes = np.array(sorted(distinct(records, "n_rows")), dtype=float)
    for ax, method in zip(axes, SETS, strict=True):
        for theorem, look in _LOOKS.items():
            kept = select(records, set=method.label, theorem=theorem)
            ax.plot(sizes, means_over("n_rows", kept, "width"), label=f"width, {theorem}", **look)
        kept = select(records, set=method.label, theorem=THEOREM)
        gaps = means_over("n_rows", kept, "gap")
        ax.plot(sizes, gaps, color="black", marker="o", label="largest excess over empirical risk")
        ax.axhline(1.0, color="0.5", linewidth=1.0, linestyle=(0, (6, 2)))
        title = _NAMES[method.label]
        ax.set(xscale="log", yscale="log", xlabel="rows n", title=title)
    axes[0].set_ylabel("mean over samples")
    drawing.legend_below(picture, axes[0], ncols=4)
    return picture


def _claims(records: Sequence[Record], forest: Sequence[Record]) -> list[Claim]:
    claims = []
    for theorem in (THEOREM, corollary_2.THEOREM):
        kept = select(records, theorem=theorem)
        claims += [
            Claim(
                theorem,
                "the robust risk of every function of the class is at most the bound, with "
                "probability at least 0.95",
                {"exact": appendix_d.never_broken(kept)},
            ),
            Claim(
                theorem,
                "the excess risk of the empirical minimiser is at most its bound, with probability "
                "at least 0.95",
                {"exact": _excess_holds(kept)},
            ),
        ]
    claims += [
        appendix_d.conditional_claim(records),
        Claim(
            "Appendix A",
            "the bound for conditional sampling is slightly stronger than Theorem 1",
            {"exact": _is_stronger(records, by_sample=False)},
            "a smaller width, in the mean over samples of every size and set",
            {"in every sample": {"exact": _is_stronger(records, by_sample=True)}},
        ),
        corollary_2.rate_claim(records),
    ]
    if forest:
        words = [f"{each['theorem']} {each['bound']:.1f}" for each in forest]
        claims.append(
            Claim(
                "beyond the paper",
                "the bounds say something about a linear fit on Covertype: they are below 1",
                {"exact": Finding(all(each["bound"] < 1 for each in forest), ", ".join(words))},
            )
        )
    return claims


def _excess_holds(records: Sequence[Record]) -> Finding:
    count = broken(records, "excess")
    used = max(record["excess"] / record["excess_bound"] for record in records)
    return Finding(
        count <= (1 - CONFIDENCE) * len(records),
        f"broken in {count} of {len(records)} cases; at most {used:.1%} of the bound is used",
    )


def _is_stronger(records: Sequence[Record], *, by_sample: bool) -> Finding:
    """Whether the conditional width is the smaller one, for each set and size, or each sample."""
    fields = ("n_rows", "seed", "set") if by_sample else ("n_rows", "set")
    iid, conditional = (
        _mean_widths(select(records, theorem=theorem), fields)
        for theorem in (THEOREM, appendix_d.THEOREM)
    )
    shares = np.array([conditional[case] / width for case, width in iid.items()])
    words = f"{shares.min():.0%} to {shares.max():.0%} of Theorem 1 in {len(shares)} cases"
    return Finding(bool(np.all(shares < 1)), words)


def _mean_widths(records: Sequence[Record], fields: Sequence[str]) -> dict[tuple[Any, ...], float]:
    """Means of the width over the records that agree in these fields."""
    cases: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        cases.setdefault(tuple(record[name] for name in fields), []).append(record["width"])
    return {case: float(np.mean(widths)) for case, widths in cases.items()}


STUDY = Study(
    "bounds",
    "Bounds of the robust risk, on data (Theorem 1, Corollary 2 and Appendix D)",
    _units,
    _report,
    {"bounds": "bounds", "covertype": "bounds-covertype"},
)
