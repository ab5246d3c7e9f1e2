"""Propositions 1 and 3: how fast the excess risk of the plug-in rule falls with the rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Vector
from equipoise.paper import drawing, pages
from equipoise.paper.figure_1 import P, excess_parts
from equipoise.paper.records import (
    Record,
    RecordsByKind,
    Spread,
    distinct,
    mean_of,
    means_over,
    select,
)
from equipoise.paper.study import Claim, Finding, Study, StudyPlan, StudyReport, Unit

# Degree-1 polynomials make use of a smoothness of two: the rate of the L1 distance is
# n^(-beta / (2 beta + d)) with beta = 2 and d = 1.
_RATE = 2 / 5
# The largest numbers of rows, from which the exponents in the limit are estimated.
_LAST = 3
_TERMS = {
    "estimation": "estimation error",
    "l1": "L1 distance",
    "disagreement": "decided otherwise",
}
_MATCHED = (("standard", "standard"), ("balanced", "balanced"))
_MISMATCHED = (("standard", "balanced"), ("balanced", "standard"))
_LOOKS = (
    {"color": "#000000", "marker": "o", "linestyle": "-"},
    {"color": "#E69F00", "marker": "s", "linestyle": "--"},
)

_LEAD = """\
The plug-in rule of degree-1 local polynomials on the synthetic model with p = {p} (one feature), by
the number of rows; mean over {seeds} seeds, risks of the population. The regression function is as
smooth as one likes and degree 1 can use a smoothness of β = 2, so Proposition 1 promises
`n^(-β/(2β+1)) = n^(-0.4)` for the excess risk, by way of the L1 distance between η̂ and η. The rule
itself can do better: η crosses the thresholds at an angle, so that few rows lie near them (the
margin condition of Appendix A.2 with exponent 1), and the exponent of the excess risk is twice as
large in theory, up to logarithms. At these n the windows are still wide for a curve as steep as
x^9, and all exponents a little smaller than in the limit.

Evaluated under other weights, the estimation error vanishes and the irreducible error stays.
Corollary 1 bounds the estimation error by two terms: the L1 distance, and the share of points that
are decided otherwise than with η, times the distance of the thresholds. Corollary 1 has no rate for
the second term. Appendix A.2 has one: with a margin exponent of 1 both terms are
`O((log n / n)^0.4)`. So the exponents below are those of n / log n. The estimation error may be
negative, where the mistake helps under the other weights.
"""
_TERMS_LEAD = """\
Exponents of n / log n under the other weights, of means over seeds, ± standard error: of the
estimation error, and of the two terms of Corollary 1. In theory each is at least 0.4 in the limit.
"""


def _numbers(plan: StudyPlan) -> tuple[tuple[int, ...], int]:
    """Numbers of rows, and of seeds."""
    if plan.quick:  # the same large n; 20 seeds leave errors of a tenth in the exponents there
        return (500, 2_000, 8_000, 32_000, 64_000, 128_000), 20
    return (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000), 50


def _units(plan: StudyPlan) -> list[Unit]:
    sizes, n_seeds = _numbers(plan)
    shared = {"p": P, "seeds": plan.seeds(n_seeds)}
    return [Unit("rates", excess_parts, {"n_rows": n_rows, **shared}) for n_rows in sizes]


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    records = results["rates"]
    lead = _LEAD.format(p=P, seeds=_numbers(plan)[1])
    caption = (
        "Left: evaluated under the weights it was fitted for. Middle and right: under the other "
        "ones, the estimation error alone (its size) and the excess risk"
    )
    return StudyReport(
        claims=_claims(records),
        page=pages.sections(
            lead,
            pages.figure("rates", caption),
            _table(records),
            _TERMS_LEAD,
            _terms_table(records),
        ),
        figures={"rates": _figure(records)},
    )


def _sizes(records: Sequence[Record]) -> list[int]:
    return sorted(distinct(records, "n_rows"))


def _means(records: Sequence[Record], field: str, pair: tuple[str, str]) -> Vector:
    """Means for every number of rows."""
    return means_over("n_rows", records, field, fitted_for=pair[0], evaluated_under=pair[1])


def _slope(records: Sequence[Record], field: str, pair: tuple[str, str]) -> float:
    """Exponent of n in a least-squares fit on logarithmic scales."""
    means = _means(records, field, pair)
    return float(np.polyfit(np.log(_sizes(records)), np.log(means), 1)[0])


def _exponent(records: Sequence[Record], field: str, pair: tuple[str, str], last: int) -> Spread:
    """Exponent of log n / n in a fit to the means over seeds of the last few n, and its error.

    The fit is by least squares on logarithmic scales, to the size of each mean. It is linear in the
    logarithms of the means, whose errors are the relative errors of the means (delta method).
    """
    sizes = _sizes(records)[-last:]
    fitted_for, evaluated_under = pair
    among = select(records, fitted_for=fitted_for, evaluated_under=evaluated_under)
    spreads = [mean_of(among, field, n_rows=n_rows) for n_rows in sizes]
    x = np.log(np.log(sizes) / np.array(sizes))
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    errors = np.array([each.sd / each.count**0.5 / abs(each.mean) for each in spreads])
    exponent = float(weights @ np.log([abs(each.mean) for each in spreads]))
    return Spread(exponent, float(np.linalg.norm(weights * errors)), spreads[0].count)


def _terms_table(records: Sequence[Record]) -> str:
    """Exponents of the estimation error and of both terms of its bound, late and over all n."""
    spans = {f"the last {_LAST} n": _LAST, "all n": len(_sizes(records))}
    rows = [
        [
            f"{pair[0]} under {pair[1]}",
            span,
            *(f"{_exponent(records, field, pair, last):.2f}" for field in _TERMS),
        ]
        for pair in _MISMATCHED
        for span, last in spans.items()
    ]
    return pages.table(["", "over", *_TERMS.values()], rows)


def _figure(records: Sequence[Record]) -> Any:
    picture, (left, middle, right) = drawing.figure(14.5, 4.4, columns=3)
    sizes = np.array(_sizes(records), dtype=float)
    for pair, look in zip(_MATCHED, _LOOKS, strict=True):
        slope = _slope(records, "excess", pair)
        label = f"excess risk, {pair[0]}: n^({slope:.2f})"
        left.plot(sizes, _means(records, "excess", pair), label=label, **look)
    distance = _means(records, "l1", _MATCHED[0])
    slope = _slope(records, "l1", _MATCHED[0])
    left.plot(
        sizes,
        distance,
        color="#0072B2",
        marker="^",
        linestyle="-.",
        label=f"L1 distance of η̂: n^({slope:.2f})",
    )
    guide = distance[0] * 1.6 * (sizes / sizes[0]) ** -_RATE
    left.plot(
        sizes, guide, color="0.55", linestyle=":", label="n^(-0.4), the rate of Proposition 1"
    )
    left.set(xscale="log", yscale="log", xlabel="rows n", ylabel="mean over seeds")
    _draw_estimation(middle, records)
    for pair, look in zip(_MISMATCHED, _LOOKS, strict=True):
        name = f"{pair[0]} under {pair[1]}"
        right.plot(sizes, _means(records, "excess", pair), label=f"excess risk, {name}", **look)
        level = _means(records, "irreducible", pair)[-1]
        right.axhline(
            level,
            color=look["color"],
            linestyle=":",
            linewidth=1.4,
            label=f"irreducible error, {name}",
        )
    right.set(xscale="log", xlabel="rows n", ylabel="excess risk", ylim=(0, None))
    for ax in (left, middle, right):
        ax.legend(frameon=False, fontsize=8.5)
    return picture


def _draw_estimation(ax: Any, records: Sequence[Record]) -> None:
    """The size of the estimation error under other weights."""
    sizes = np.array(_sizes(records), dtype=float)
    for pair, look in zip(_MISMATCHED, _LOOKS, strict=True):
        exponent = _exponent(records, "estimation", pair, _LAST).mean
        label = f"{pair[0]} under {pair[1]}: (log n / n)^{exponent:.2f} at the end"
        ax.plot(sizes, np.abs(_means(records, "estimation", pair)), label=label, **look)
    first = np.abs(_means(records, "estimation", _MISMATCHED[1]))[0]
    guide = (np.log(sizes) / sizes) ** _RATE
    guide *= first * 1.3 / guide[0]
    ax.plot(sizes, guide, color="0.55", linestyle=":", label="(log n / n)^0.4, in theory")
    ax.set(xscale="log", yscale="log", xlabel="rows n", ylabel="size of the estimation error")


def _table(records: Sequence[Record]) -> str:
    pairs = (*_MATCHED, *_MISMATCHED)
    header = ["rows", "L1 distance", *(f"{a} under {b}" for a, b in pairs)]
    columns = [_means(records, "l1", _MATCHED[0])] + [
        _means(records, "excess", pair) for pair in pairs
    ]
    rows = [
        [f"{n}", *(f"{column[place]:.5f}" for column in columns)]
        for place, n in enumerate(_sizes(records))
    ]
    errors = [_means(records, "estimation", pair) for pair in _MISMATCHED]
    parts = [
        [f"{n}", *(f"{column[place]:.5f}" for column in errors)]
        for place, n in enumerate(_sizes(records))
    ]
    return pages.sections(
        "Mean excess risk:",
        pages.table(header, rows),
        "Mean estimation error under the other weights:",
        pages.table(["rows", *(f"{a} under {b}" for a, b in _MISMATCHED)], parts),
    )


def _claims(records: Sequence[Record]) -> list[Claim]:
    return [
        Claim(
            "Proposition 1",
            "the excess risk of the plug-in rule falls at least as fast as `n^(-β/(2β+d))`, that "
            "is n^(-0.4), under standard and balanced weights",
            {"exact": _falls(records)},
        ),
        Claim(
            "Proposition 1",
            "weights enter by q_0 + q_1: the excess risk is at most `(q_0 + q_1) ‖η - η̂‖`",
            {"exact": _weights_enter(records)},
        ),
        Claim(
            "Corollary 1, Appendix A.2",
            "evaluated under other weights, the estimation error falls at least as fast as "
            "(log n / n)^0.4",
            {"exact": _estimation_falls(records, _LAST)},
            f"for large n: over the last {_LAST} n",
            {"at small n too: over all n": {"exact": _estimation_falls(records, None)}},
        ),
        Claim(
            "Section 3",
            "evaluated under other weights, the excess risk does not vanish: it tends to the "
            "irreducible error",
            {"exact": _stays(records)},
        ),
    ]


def _falls(records: Sequence[Record]) -> Finding:
    slopes = {pair[0]: _slope(records, "excess", pair) for pair in _MATCHED}
    words = ", ".join(f"{name} n^({slope:.2f})" for name, slope in slopes.items())
    distance = _slope(records, "l1", _MATCHED[0])
    held = all(slope <= -_RATE for slope in slopes.values())
    return Finding(held, f"{words}; L1 distance n^({distance:.2f})")


def _estimation_falls(records: Sequence[Record], last: int | None) -> Finding:
    """Whether the size of the mean error falls as fast as promised, over all or the last few n."""
    sizes = _sizes(records)[0 if last is None else -last :]
    exponents = [_exponent(records, "estimation", pair, len(sizes)) for pair in _MISMATCHED]
    words = [
        f"{pair[0]} under {pair[1]} (log n / n)^({exponent:.2f})"
        for pair, exponent in zip(_MISMATCHED, exponents, strict=True)
    ]
    held = min(exponent.mean for exponent in exponents) >= _RATE
    return Finding(held, f"n from {sizes[0]:,} to {sizes[-1]:,}: {', '.join(words)}")


def _weights_enter(records: Sequence[Record]) -> Finding:
    """The bound of a matched pair is exactly (q_0 + q_1) times the L1 distance."""
    matched = [
        each for each in records if (each["fitted_for"], each["evaluated_under"]) in _MATCHED
    ]
    ratios = [each["excess"] / each["estimation_bound"] for each in matched]
    return Finding(
        max(ratios) <= 1, f"at most {max(ratios):.0%} of the bound in {len(ratios)} cases"
    )


def _stays(records: Sequence[Record]) -> Finding:
    words, held = [], True
    for pair in _MISMATCHED:
        excess, floor = (_means(records, field, pair) for field in ("excess", "irreducible"))
        distances = np.abs(excess - floor)
        held &= bool(distances[-1] < distances[0] and excess[-1] > floor[-1] / 2)
        words.append(f"{pair[0]} under {pair[1]}: {excess[-1]:.4f}, irreducible {floor[-1]:.4f}")
    return Finding(held, "; ".join(words))


STUDY = Study(
    "rates",
    "How fast the excess risk falls (Propositions 1 and 3)",
    _units,
    _report,
    {"rates": "rates"},
)
