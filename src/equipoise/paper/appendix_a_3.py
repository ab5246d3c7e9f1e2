"""Appendix A.3: every linear-fractional metric is some weighting of the classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.datasets import PowerImbalance
from equipoise.metrics import (
    Coefficients,
    LinearFractional,
    arithmetic_mean,
    as_metric,
    fbeta,
    optimal_rule,
    weighted_accuracy,
)
from equipoise.paper import drawing, pages
from equipoise.paper.records import Record, RecordsByKind, distinct, means_over, select
from equipoise.paper.study import Claim, Finding, Study, StudyPlan, StudyReport, Unit
from equipoise.theory import LocalPolynomialClassifier

P = 0.9
_SHARE = 1 - P
METRICS: dict[str, LinearFractional] = {
    "accuracy": as_metric("accuracy", _SHARE),
    "arithmetic mean": arithmetic_mean(_SHARE),
    "F1": fbeta(1),
    "F2": fbeta(2),
    "Jaccard": as_metric("jaccard", _SHARE),
    "accuracy, weights (1, 4)": weighted_accuracy(1, 4),
    # The larger the worse a rule decides: its condition fails.
    "share of errors": LinearFractional(
        Coefficients(fp=1, fn=1), Coefficients(constant=1), "share of errors"
    ),
}
_FLIPS = "share of errors"
_WEIGHTINGS = [name for name in METRICS if name != _FLIPS]
_LEARNT = ("F1", "arithmetic mean")
_N_POINTS, _CURVE_POINTS = 20_000, 400
# The quadrature counts each jump of a rule to within a point.
_SLACK = 10 / _N_POINTS
_LOOKS: dict[str, dict[str, Any]] = {
    "accuracy": {"color": "#000000", "linestyle": "-"},
    "arithmetic mean": {"color": "#E69F00", "linestyle": "--"},
    "F1": {"color": "#0072B2", "linestyle": "-."},
    "F2": {"color": "#CC3311", "linestyle": ":"},
    "Jaccard": {"color": "#117733", "linestyle": (0, (6, 2))},
    "accuracy, weights (1, 4)": {"color": "0.5", "linestyle": (0, (4, 2, 1, 2))},
}

_LEAD = """\
A linear-fractional metric is a ratio of two sums over the table of true and decided classes. Its
best rule decides class 1 where η exceeds a threshold that depends on the best value alone (Koyejo
and others, 2014), and so it is the Bayes rule of some weights q. Here on the synthetic model with
p = {p:g}: the best value, found by trying every threshold; the weights that the paper's formula
makes of it; and their threshold q_0/(q_0 + q_1) beside the one that was found.

As printed, the weights do not have E[q_Y] = 1: they must be divided by `Σ p_i q_i`, which leaves
the threshold where it is. Where q_0 + q_1 is negative the rule flips, and no weighting gives it.
"""
_DATA_LEAD = """\
## From rows

Nobody knows η or the best value. With probabilities of a local polynomial instead, from which the
best value and so the weights are taken: by how much the rule misses the best value in the
population, mean over {seeds} samples.
"""


def _numbers(plan: StudyPlan) -> tuple[tuple[int, ...], int]:
    """Numbers of rows, and of samples of each."""
    if plan.quick:
        return (500, 2_000, 8_000), 8
    return (500, 1_000, 2_000, 4_000, 8_000, 16_000), 40


def _units(plan: StudyPlan) -> list[Unit]:
    sizes, n_seeds = _numbers(plan)
    return [
        Unit("universality-known", known_weightings, {}),
        Unit("universality-curves", metric_curves, {"n_points": _CURVE_POINTS}),
        *(
            Unit(
                "universality-rows", learnt_weightings, {"n_rows": n, "seeds": plan.seeds(n_seeds)}
            )
            for n in sizes
        ),
    ]


def metric_of_rule(metric: LinearFractional, threshold: float, *, above: bool = True) -> float:
    """The metric of deciding class 1 where η is above a threshold, or below."""
    model = PowerImbalance(P)
    x = float(np.clip(threshold, 0, 1)) ** (1 / model.exponent)
    wrong_0, wrong_1 = model.class_risks_at(x)
    fp, fn = (wrong_0, wrong_1) if above else (1 - wrong_0, 1 - wrong_1)
    return metric.value([[P * (1 - fp), P * fp], [_SHARE * fn, _SHARE * (1 - fn)]])


def printed_weights(metric: LinearFractional, value: float) -> tuple[float, float]:
    """The weights as the paper's corollary prints them."""
    a, b = metric.numerator, metric.denominator
    return (b.fp - b.tn) * value - a.fp + a.tn, (b.fn - b.tp) * value - a.fn + a.tp


def known_weightings() -> list[Record]:
    """Best value, weights and thresholds of every metric, with η known."""
    points, weights = PowerImbalance(P).quadrature(_N_POINTS)
    eta = PowerImbalance(P).eta(points[:, 0])
    records = []
    for name, metric in METRICS.items():
        best = optimal_rule(eta, metric, weights)
        weighting = metric.weighting(best.value, _SHARE)
        q0, q1 = printed_weights(metric, best.value)
        rule = metric_of_rule(metric, weighting.threshold, above=weighting.above)
        records.append(
            {
                "metric": name,
                "best": best.value,
                "found": float(np.mean([best.lower, best.upper])),
                "threshold": weighting.threshold,
                "printed_q0": q0,
                "printed_q1": q1,
                "printed_mean": P * q0 + _SHARE * q1,
                "q0": weighting.weights[0],
                "q1": weighting.weights[1],
                "rule": rule,
                "is_weighting": int(weighting.is_weighting),
            }
        )
    return records


def metric_curves(*, n_points: int) -> list[Record]:
    """Every metric against the threshold."""
    thresholds = (np.arange(n_points) + 0.5) / n_points
    return [
        {"threshold": float(t)} | {name: metric_of_rule(METRICS[name], t) for name in _WEIGHTINGS}
        for t in thresholds
    ]


def learnt_weightings(*, n_rows: int, seeds: list[int]) -> list[Record]:
    """What is lost when best value and weights come from rows."""
    model = PowerImbalance(P)
    points, weights = model.quadrature(_N_POINTS)
    best = {
        name: optimal_rule(model.eta(points[:, 0]), METRICS[name], weights).value
        for name in _LEARNT
    }
    records = []
    for seed in seeds:
        fit = LocalPolynomialClassifier(degree=1).fit(*model.sample(n_rows, seed))
        estimate = fit.predict_proba(points)[:, 1]
        truth = model.eta(points[:, 0])
        for name in _LEARNT:
            metric = METRICS[name]
            threshold = optimal_rule(estimate, metric, weights).weighting.threshold
            tp, fp = (
                float(weights @ (each * (estimate > threshold))) for each in (truth, 1 - truth)
            )
            value = metric.value([[P - fp, fp], [_SHARE - tp, tp]])
            case = {"n_rows": n_rows, "seed": seed, "metric": name}
            records.append({**case, "threshold": threshold, "missed": best[name] - value})
    return records


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    known, curves, learnt = (
        results[f"universality-{kind}"] for kind in ("known", "curves", "rows")
    )
    caption = "Metrics against the threshold on η; points: the weights that the formula gives"
    parts = [
        _LEAD.format(p=P),
        pages.figure("metrics", caption),
        _table(known),
        _DATA_LEAD.format(seeds=_numbers(plan)[1]),
        _learnt_table(learnt),
    ]
    return StudyReport(
        claims=_claims(known, learnt),
        page=pages.sections(*parts),
        figures={"metrics": _figure(known, curves)},
    )


def _table(records: Sequence[Record]) -> str:
    rows = [
        [
            record["metric"],
            record["best"],
            record["rule"],
            f"({record['printed_q0']:.4f}, {record['printed_q1']:.4f})",
            record["printed_mean"],
            f"({record['q0']:.4f}, {record['q1']:.4f})",
            record["threshold"],
            record["found"],
            "yes" if record["is_weighting"] else "no",
        ]
        for record in records
    ]
    header = ["metric", "best value", "value of the rule of q", "q as printed", "E[q_Y] as printed"]
    return pages.table([*header, "q", "threshold of q", "threshold found", "a weighting"], rows)


def _learnt_table(records: Sequence[Record]) -> str:
    columns = [_missed(records, name) for name in _LEARNT]
    rows = [
        [f"{n}", *(f"{column[place]:.5f}" for column in columns)]
        for place, n in enumerate(sorted(distinct(records, "n_rows")))
    ]
    return pages.table(["rows", *(f"{name} missed by" for name in _LEARNT)], rows)


def _missed(records: Sequence[Record], name: str) -> Any:
    return means_over("n_rows", select(records, metric=name), "missed")


def _figure(known: Sequence[Record], curves: Sequence[Record]) -> Any:
    picture, ax = drawing.figure(7.6, 5.0)
    thresholds = [each["threshold"] for each in curves]
    for name in _WEIGHTINGS:
        look = _LOOKS[name]
        ax.plot(thresholds, [each[name] for each in curves], label=name, **look)
        (record,) = select(known, metric=name)
        ax.plot(record["threshold"], record["rule"], "o", color=look["color"], markersize=7)
    ax.set(xlabel="threshold on η", ylabel="metric", xlim=(0, 1), ylim=(0, 1.02))
    picture.legend(loc="outside lower center", ncols=3, frameon=False)
    return picture


def _claims(known: Sequence[Record], learnt: Sequence[Record]) -> list[Claim]:
    weightings = [record for record in known if record["metric"] != _FLIPS]
    return [
        Claim(
            "Appendix A.3, corollary",
            "where its condition holds, the best rule for a metric is the Bayes rule of the "
            "weights q of the formula",
            {"exact": _same_rule(weightings)},
        ),
        Claim(
            "Appendix A.3",
            "F1 and the arithmetic mean meet the condition",
            {"exact": _meets(select(known, metric="F1") + select(known, metric="arithmetic mean"))},
        ),
        Claim(
            "Appendix A.3, corollary",
            "q as printed is a weighting: E[q_Y] = 1",
            {"exact": _normalised(weightings)},
        ),
        Claim(
            "beyond the paper",
            "where the condition fails no weighting gives the best rule (share of errors)",
            {"exact": _flips(known)},
        ),
        Claim(
            "beyond the paper",
            "with probabilities and best value from rows, the value comes ever nearer to the best",
            {"exact": _comes_near(learnt)},
        ),
    ]


def _same_rule(records: Sequence[Record]) -> Finding:
    gaps = [abs(each["best"] - each["rule"]) for each in records]
    apart = [abs(each["found"] - each["threshold"]) for each in records]
    return Finding(
        max(gaps) <= _SLACK,
        f"best value and value of the rule of q differ by at most {max(gaps):.0e}, thresholds by "
        f"at most {max(apart):.0e}, for {len(records)} metrics",
    )


def _meets(records: Sequence[Record]) -> Finding:
    words = [f"{each['metric']} q = ({each['q0']:.4f}, {each['q1']:.4f})" for each in records]
    return Finding(all(each["is_weighting"] for each in records), ", ".join(words))


def _normalised(records: Sequence[Record]) -> Finding:
    words = ", ".join(f"{each['metric']} {each['printed_mean']:.4f}" for each in records)
    return Finding(all(abs(each["printed_mean"] - 1) < _SLACK for each in records), words)


def _flips(records: Sequence[Record]) -> Finding:
    (record,) = select(records, metric=_FLIPS)
    return Finding(not record["is_weighting"], f"q = ({record['q0']:.4f}, {record['q1']:.4f})")


def _comes_near(records: Sequence[Record]) -> Finding:
    missed = {name: _missed(records, name) for name in _LEARNT}
    words = [f"{name} {each[0]:.4f} to {each[-1]:.4f}" for name, each in missed.items()]
    return Finding(all(each[-1] < each[0] for each in missed.values()), ", ".join(words))


STUDY = Study(
    "universality",
    "Metrics as weightings (Appendix A.3)",
    _units,
    _report,
    {
        "weightings": "universality-known",
        "curves": "universality-curves",
        "rows": "universality-rows",
    },
)
