"""Appendix B: the trade-off between weightings inside a class of functions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Vector
from equipoise.datasets import PowerImbalance
from equipoise.estimators import RobustLogisticRegression
from equipoise.paper import drawing, pages
from equipoise.paper.fits import SYNTHETIC_C, exact_fit
from equipoise.paper.methods import BALANCED, STANDARD
from equipoise.paper.records import Record, RecordsByKind, distinct, means_over, select
from equipoise.paper.study import Claim, Finding, Study, StudyPlan, StudyReport, Unit
from equipoise.theory import excess_risk_in_class

P = 0.9
_METHODS = {"standard": STANDARD, "balanced": BALANCED}
_PAIRS = [(made, evaluated) for made in _METHODS for evaluated in _METHODS]
_MISMATCHED = [pair for pair in _PAIRS if pair[0] != pair[1]]
_MATCHED = [pair for pair in _PAIRS if pair[0] == pair[1]]
_N_POINTS = 4_000
# Two rules that tie under equal masses and differ under these.
_TIED_PRIOR, _JUDGING_MASSES = (0.5, 0.5), (0.9, 0.1)
_LOOKS = (
    {"color": "#000000", "marker": "o", "linestyle": "-"},
    {"color": "#E69F00", "marker": "s", "linestyle": "--"},
)

_LEAD = """\
The functions are linear in x with cross-entropy as their loss, on the synthetic model with
p = {p:g}. The best of them under one weighting is not the best under another: what it loses there
is irreducible, however many rows there are. Risks are those of the population; mean over {seeds}
samples.

> `R_q'(f̂_q) - R_q'(f_q') = [R_q'(f̂_q) - R_q'(f_q)] + [R_q'(f_q) - R_q'(f_q')]`

This identity always holds. The paper goes on to bound the first bracket by O(n^(-1/2)), because
the q-risk of f̂_q converges. That does not follow: two functions can have the same q-risk and
different q'-risks. For cross-entropy, which has one minimiser, the bracket does vanish. It does not
in the smallest of classes, the two constant rules, with equally frequent classes: both have a risk
of 1/2, the sample decides between them by chance, and under masses (0.9, 0.1) one costs 0.1 and the
other 0.9.
"""
_TABLE_LEAD = "Excess risk, and in brackets its estimation part, of the linear functions:"
_TIED_LEAD = "Mean estimation part of the two constant rules, fitted for equal masses:"


def _numbers(plan: StudyPlan) -> tuple[tuple[int, ...], int, int]:
    """Numbers of rows, of samples of each, and of samples for the two rules."""
    if plan.quick:
        return (500, 2_000, 8_000), 10, 400
    return (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000), 50, 4_000


def _units(plan: StudyPlan) -> list[Unit]:
    sizes, n_seeds, n_draws = _numbers(plan)
    return [
        *(
            Unit("function-class-linear", linear_parts, {"n_rows": n, "seeds": plan.seeds(n_seeds)})
            for n in sizes
        ),
        Unit(
            "function-class-tied",
            tied_parts,
            {"sizes": list(sizes), "n_draws": n_draws, "seed": plan.seed},
        ),
    ]


def cross_entropies(fit: RobustLogisticRegression) -> Vector:
    """Class risks of a fit in the population."""
    points, weights = PowerImbalance(P).quadrature(_N_POINTS)
    eta, scores = PowerImbalance(P).eta(points[:, 0]), fit.decision_function(points)
    losses = np.column_stack([np.logaddexp(0, scores), np.logaddexp(0, -scores)])
    shares = weights[:, None] * np.column_stack([1 - eta, eta])
    return np.asarray((shares * losses).sum(axis=0) / shares.sum(axis=0))


def _best_fits() -> dict[str, RobustLogisticRegression]:
    """The best linear function under each weighting: every point with both labels, weighted."""
    points, _ = PowerImbalance(P).quadrature(_N_POINTS)
    eta = PowerImbalance(P).eta(points[:, 0])
    X, y = np.vstack([points, points]), np.repeat([0, 1], len(points))
    fits = {}
    for name, method in _METHODS.items():
        fit = RobustLogisticRegression(method.uncertainty(), C=SYNTHETIC_C, max_iter=5000)
        fits[name] = fit.fit(X, y, sample_weight=np.concatenate([1 - eta, eta]))
    return fits


def linear_parts(*, n_rows: int, seeds: list[int]) -> list[Record]:
    """The parts of the excess risk of fits to samples of one size."""
    best = {name: cross_entropies(fit) for name, fit in _best_fits().items()}
    prior, records = PowerImbalance(P).prior, []
    for seed in seeds:
        X, y = PowerImbalance(P).sample(n_rows, seed)
        fitted = {
            name: cross_entropies(exact_fit(method, X, y, C=SYNTHETIC_C))
            for name, method in _METHODS.items()
        }
        for made, evaluated in _PAIRS:
            parts = excess_risk_in_class(
                fitted[made], best[made], best[evaluated], evaluated, class_prior=prior
            )
            case = {
                "n_rows": n_rows,
                "seed": seed,
                "fitted_for": made,
                "evaluated_under": evaluated,
            }
            records.append({**case, **parts._asdict()})
    return records


def tied_parts(*, sizes: list[int], n_draws: int, seed: int) -> list[Record]:
    """The same for the two constant rules: which one fits better is chance."""
    rng, masses = np.random.default_rng(seed), np.array(_JUDGING_MASSES)
    weights = masses / np.array(_TIED_PRIOR)
    always_0, always_1 = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    records = []
    for n_rows in sizes:
        ones = rng.binomial(n_rows, _TIED_PRIOR[1], n_draws)
        picked = (2 * ones > n_rows) | ((2 * ones == n_rows) & (rng.uniform(size=n_draws) < 0.5))
        parts = [
            excess_risk_in_class(rule, always_0, always_0, weights, class_prior=_TIED_PRIOR)
            for rule in (always_0, always_1)
        ]
        share = float(picked.mean())
        records.append(
            {
                "n_rows": n_rows,
                "picks_always_1": share,
                "estimation": (1 - share) * parts[0].estimation + share * parts[1].estimation,
                "irreducible": parts[0].irreducible,
            }
        )
    return records


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    linear, tied = results["function-class-linear"], results["function-class-tied"]
    caption = (
        "Left: evaluated under the weights it was fitted for. Middle: the mean size of the "
        "estimation part under the other ones. Right: the excess risk under these, and its "
        "irreducible part (dotted)"
    )
    return StudyReport(
        claims=_claims(linear, tied),
        page=pages.sections(
            _LEAD.format(p=P, seeds=_numbers(plan)[1]),
            pages.figure("parts", caption),
            _TABLE_LEAD,
            _table(linear),
            _TIED_LEAD,
            pages.table(
                ["rows", "estimation part"],
                [[f"{each['n_rows']}", each["estimation"]] for each in tied],
            ),
        ),
        figures={"parts": _figure(linear, tied)},
    )


def _means(records: Sequence[Record], field: str, pair: tuple[str, str]) -> Vector:
    kept = select(records, fitted_for=pair[0], evaluated_under=pair[1])
    return means_over("n_rows", kept, field)


def _sizes(records: Sequence[Record]) -> list[int]:
    return sorted(distinct(records, "n_rows"))


def _slope(records: Sequence[Record], field: str, pair: tuple[str, str]) -> float:
    means = _means(records, field, pair)
    return float(np.polyfit(np.log(_sizes(records)), np.log(means), 1)[0])


def _table(records: Sequence[Record]) -> str:
    columns = [
        (_means(records, "excess", pair), _means(records, "estimation", pair)) for pair in _PAIRS
    ]
    rows = [
        [f"{n}", *(f"{excess[place]:.5f} ({part[place]:.5f})" for excess, part in columns)]
        for place, n in enumerate(_sizes(records))
    ]
    return pages.table(["rows", *(f"{made} under {evaluated}" for made, evaluated in _PAIRS)], rows)


def _figure(linear: Sequence[Record], tied: Sequence[Record]) -> Any:
    picture, (left, middle, right) = drawing.figure(14.5, 4.4, columns=3)
    sizes = np.array(_sizes(linear), dtype=float)
    for pair, look in zip(_MATCHED, _LOOKS, strict=True):
        label = f"{pair[0]}: n^({_slope(linear, 'excess', pair):.2f})"
        left.plot(sizes, _means(linear, "excess", pair), label=label, **look)
    for pair, look in zip(_MISMATCHED, _LOOKS, strict=True):
        name = f"{pair[0]} under {pair[1]}"
        middle.plot(sizes, _means(_sized(linear), "size", pair), label=name, **look)
        right.plot(sizes, _means(linear, "excess", pair), label=name, **look)
        level = _means(linear, "irreducible", pair)[-1]
        right.axhline(level, color=look["color"], linestyle=":", linewidth=1.4)
    parts = [each["estimation"] for each in tied]
    middle.plot(
        sizes, parts, color="#CC3311", marker="D", linestyle=":", label="two constant rules"
    )
    left.set(xscale="log", yscale="log", xlabel="rows n", ylabel="excess risk")
    middle.set(
        xscale="log", yscale="log", xlabel="rows n", ylabel="mean size of the estimation part"
    )
    right.set(xscale="log", xlabel="rows n", ylabel="excess risk", ylim=(0, None))
    for ax in (left, middle, right):
        ax.legend(frameon=False, fontsize=9)
    return picture


def _claims(linear: Sequence[Record], tied: Sequence[Record]) -> list[Claim]:
    printed = Claim(
        "Appendix B",
        "the excess q'-risk is at most its irreducible part plus O(n^(-1/2)): the estimation part "
        "falls at least as fast as n^(-1/2)",
        {"exact": _does_not_follow(tied)},
        "for every class whose q-risks converge; here the two constant rules",
        {"for linear functions with cross-entropy": {"exact": _vanishes(linear)}},
    )
    return [
        Claim(
            "Appendix B",
            "the excess q-risk of the empirical minimiser falls at least as fast as n^(-1/2)",
            {"exact": _falls(linear)},
        ),
        Claim(
            "Appendix B",
            "evaluated under other weights there is an irreducible part, and the excess risk tends "
            "to it",
            {"exact": _stays(linear)},
        ),
        printed,
    ]


def _falls(records: Sequence[Record]) -> Finding:
    slopes = {pair[0]: _slope(records, "excess", pair) for pair in _MATCHED}
    words = ", ".join(f"{name} n^({slope:.2f})" for name, slope in slopes.items())
    return Finding(max(slopes.values()) <= -0.5, words)


def _stays(records: Sequence[Record]) -> Finding:
    words, held = [], True
    for pair in _MISMATCHED:
        excess, floor = (_means(records, field, pair) for field in ("excess", "irreducible"))
        distances = np.abs(excess - floor)
        held &= bool(floor[-1] > 0 and distances[-1] < distances[0])
        words.append(f"{pair[0]} under {pair[1]}: {excess[-1]:.4f}, irreducible {floor[-1]:.4f}")
    return Finding(held, "; ".join(words))


def _sized(records: Sequence[Record]) -> list[Record]:
    """The records with the size of the estimation part: its mean may be near zero by chance."""
    return [{**each, "size": abs(each["estimation"])} for each in records]


def _vanishes(records: Sequence[Record]) -> Finding:
    """Whether the mean size of the estimation part falls."""
    slopes = [_slope(_sized(records), "size", pair) for pair in _MISMATCHED]
    words = [
        f"{pair[0]} under {pair[1]} n^({slope:.2f})"
        for pair, slope in zip(_MISMATCHED, slopes, strict=True)
    ]
    # The exponent of a part that falls like n^(-1/2) exactly is that up to chance.
    return Finding(max(slopes) <= -0.45, f"mean size: {', '.join(words)}")


def _does_not_follow(records: Sequence[Record]) -> Finding:
    first, last = records[0], records[-1]
    return Finding(
        last["estimation"] < first["estimation"] * (first["n_rows"] / last["n_rows"]) ** 0.45,
        f"{first['estimation']:.3f} with {first['n_rows']:,} rows, {last['estimation']:.3f} with "
        f"{last['n_rows']:,}",
    )


STUDY = Study(
    "function-class",
    "The trade-off inside a class of functions (Appendix B)",
    _units,
    _report,
    {"linear": "function-class-linear", "two-rules": "function-class-tied"},
)
