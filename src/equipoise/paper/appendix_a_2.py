r"""Appendix A.2: the shifted margin condition, and the rates that it gives.

.. math:: P(|\eta(X) - t_q| \le t) \le C \, t^\alpha \quad\text{for all } t > 0
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Matrix, Vector
from equipoise.paper import drawing, pages
from equipoise.paper.records import Record, RecordsByKind, distinct, means_over, select
from equipoise.paper.study import Claim, Finding, Study, StudyPlan, StudyReport, Unit
from equipoise.theory import LocalPolynomialClassifier, excess_risk, margin_condition

# The weightings by their thresholds: one at which the models are flat, and one beside it.
_WEIGHTS = {0.5: (1.0, 1.0), 0.2: (1.0, 4.0)}
_FLATNESS = (0.5, 1.0, 2.0)
# Smoothness of each model, as far as polynomials of degree 1 can use it.
_SMOOTHNESS = {0.5: 0.5, 1.0: 2.0, 2.0: 2.0}
_N_POINTS = 4_000
# What so few samples leave uncertain of an exponent.
_UNCERTAIN = 0.05
_LOOKS = (
    {"color": "#000000", "marker": "o", "linestyle": "-"},
    {"color": "#E69F00", "marker": "s", "linestyle": "--"},
    {"color": "#0072B2", "marker": "^", "linestyle": "-."},
)

_LEAD = """\
Few rows near the threshold make a rule easy to learn: the margin condition says how few, with an
exponent alpha (large is easy) and a constant C. Its point is that with weights the threshold is not
1/2, and that a distribution can be hard at one threshold and easy at another. The models here are

> `η(x) = 1/2 + sign(2x - 1) |2x - 1|^g / 2`, x uniform on [0, 1], both classes equally frequent.

At t_q = 1/2 the exponent is 1/g exactly: 2 where η is steep (g = 0.5), 1 where it is straight, 0.5
where it is flat (g = 2). Weights (1, 4) shift the threshold to 0.2, where every one of them crosses
at an angle and the exponent is 1. C is the smallest with which the condition holds. Local
polynomials of degree 1, {seeds} samples of each size; suprema over {points:,} points.
"""
_TABLE_LEAD = """\
Mean over samples of the largest error of η̂, and of the share of points that are decided otherwise
than with η itself:
"""
_EXPONENT_LEAD = """\
## The exponent from a sample

`margin_condition` estimates it from those of {rows:,} rows whose probabilities are nearest to the
threshold. How many of {seeds} intervals with confidence 0.95 hold the true exponent:
"""


@dataclass(frozen=True)
class CrossingModel:
    """Two classes whose probability crosses 1/2 as flat as one likes."""

    flatness: float

    def eta(self, x: Vector) -> Vector:
        """The probability of class 1."""
        u = 2 * x - 1
        return np.asarray(0.5 + 0.5 * np.sign(u) * np.abs(u) ** self.flatness)

    def sample(self, n_rows: int, seed: int) -> tuple[Matrix, Vector]:
        """Independent rows and labels."""
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=n_rows)
        return x[:, None], (rng.uniform(size=n_rows) < self.eta(x)).astype(np.int64)

    def exponent(self, threshold: float) -> float:
        """The exponent of the margin condition."""
        return 1 / self.flatness if threshold == 0.5 else 1.0

    def constant(self, threshold: float) -> float:
        """The smallest constant with which the condition holds, with this exponent."""
        x = (np.arange(_N_POINTS * 25) + 0.5) / (_N_POINTS * 25)
        distances = np.sort(np.abs(self.eta(x) - threshold))
        shares = (np.arange(len(x)) + 1) / len(x)
        # The very nearest points are fewer than their quadrature can tell.
        kept = slice(100, None)
        return float((shares[kept] / distances[kept] ** self.exponent(threshold)).max())


def _numbers(plan: StudyPlan) -> tuple[tuple[int, ...], int]:
    """Numbers of rows, and of samples of each."""
    if plan.quick:
        return (500, 2_000, 8_000), 6
    return (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000), 30


def _exponent_numbers(plan: StudyPlan) -> tuple[int, int]:
    return (5_000, 40) if plan.quick else (20_000, 400)


def _units(plan: StudyPlan) -> list[Unit]:
    sizes, n_seeds = _numbers(plan)
    n_rows, n_samples = _exponent_numbers(plan)
    return [
        *(
            Unit(
                "margin-rules",
                margin_rules,
                {"flatness": flatness, "n_rows": n, "seeds": plan.seeds(n_seeds)},
            )
            for flatness in _FLATNESS
            for n in sizes
        ),
        Unit(
            "margin-exponents", margin_exponents, {"n_rows": n_rows, "seeds": plan.seeds(n_samples)}
        ),
    ]


def margin_rules(*, flatness: float, n_rows: int, seeds: list[int]) -> list[Record]:
    """How far the estimate is from the truth, and what that does to the rules made from it."""
    model = CrossingModel(flatness)
    x = (np.arange(_N_POINTS) + 0.5) / _N_POINTS
    eta = model.eta(x)
    constants = {threshold: model.constant(threshold) for threshold in _WEIGHTS}
    records = []
    for seed in seeds:
        fit = LocalPolynomialClassifier(degree=1).fit(*model.sample(n_rows, seed))
        estimate = fit.predict_proba(x[:, None])[:, 1]
        largest = float(np.abs(eta - estimate).max())
        for threshold, weights in _WEIGHTS.items():
            (other,) = (each for name, each in _WEIGHTS.items() if name != threshold)
            mismatched = excess_risk(eta, estimate, weights, other)
            matched = excess_risk(eta, estimate, weights, weights)
            power = constants[threshold] * largest ** model.exponent(threshold)
            # q'_0 + q'_1, and the distance of the thresholds.
            total, shift = float(mismatched.evaluated_under.sum()), 0.3
            records.append(
                {
                    "flatness": flatness,
                    "threshold": threshold,
                    "n_rows": n_rows,
                    "seed": seed,
                    "largest_error": largest,
                    "disagreement": mismatched.disagreement,
                    "disagreement_bound": power,
                    "estimation": mismatched.estimation,
                    "estimation_bound": total * (largest + shift * power),
                    "matched_excess": matched.excess,
                }
            )
    return records


def margin_exponents(*, n_rows: int, seeds: list[int]) -> list[Record]:
    """Exponents estimated from samples, with their intervals."""
    records = []
    for flatness in _FLATNESS:
        model = CrossingModel(flatness)
        for seed in seeds:
            X, _ = model.sample(n_rows, seed)
            for threshold, weights in _WEIGHTS.items():
                condition = margin_condition(model.eta(X[:, 0]), weights)
                lower, upper = condition.exponent_interval
                case = {"flatness": flatness, "threshold": threshold, "seed": seed}
                records.append(
                    {**case, "exponent": condition.exponent, "lower": lower, "upper": upper}
                )
    return records


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    rules, exponents = results["margin-rules"], results["margin-exponents"]
    n_rows, n_samples = _exponent_numbers(plan)
    caption = (
        "Left: how much mass lies near the threshold; the slope is the exponent. Right: the share "
        "of points decided otherwise than with η, mean over samples"
    )
    parts = [
        _LEAD.format(seeds=_numbers(plan)[1], points=_N_POINTS),
        pages.figure("margin", caption),
        _TABLE_LEAD,
        _table(rules),
        _EXPONENT_LEAD.format(rows=n_rows, seeds=n_samples),
        _exponent_table(exponents),
    ]
    return StudyReport(
        claims=_claims(rules, exponents),
        page=pages.sections(*parts),
        figures={"margin": _figure(rules)},
    )


def _cases() -> list[tuple[float, float]]:
    return [(flatness, threshold) for threshold in _WEIGHTS for flatness in _FLATNESS]


def _name(case: tuple[float, float]) -> str:
    exponent = CrossingModel(case[0]).exponent(case[1])
    return f"g = {case[0]:g}, t_q = {case[1]:g} (alpha = {exponent:g})"


def _of(records: Sequence[Record], case: tuple[float, float]) -> list[Record]:
    return select(records, flatness=case[0], threshold=case[1])


def _sizes(records: Sequence[Record]) -> list[int]:
    return sorted(distinct(records, "n_rows"))


def _table(records: Sequence[Record]) -> str:
    errors = [
        means_over("n_rows", select(records, flatness=flatness, threshold=0.5), "largest_error")
        for flatness in _FLATNESS
    ]
    shares = [means_over("n_rows", _of(records, case), "disagreement") for case in _cases()]
    rows = [
        [f"{n}", *(f"{column[place]:.4f}" for column in (*errors, *shares))]
        for place, n in enumerate(_sizes(records))
    ]
    header = ["rows", *(f"error, g = {flatness:g}" for flatness in _FLATNESS)]
    return pages.table([*header, *map(_name, _cases())], rows)


def _exponent_table(records: Sequence[Record]) -> str:
    rows = []
    for case in _cases():
        kept, truth = _of(records, case), CrossingModel(case[0]).exponent(case[1])
        mean = float(np.mean([each["exponent"] for each in kept]))
        rows.append([_name(case), f"{truth:g}", mean, f"{_covering(kept, truth)} of {len(kept)}"])
    return pages.table(["", "exponent", "mean estimate", "intervals that hold it"], rows)


def _covering(records: Sequence[Record], truth: float) -> int:
    return sum(each["lower"] <= truth <= each["upper"] for each in records)


def _figure(records: Sequence[Record]) -> Any:
    picture, (left, right) = drawing.figure(11.5, 4.6, columns=2)
    x = (np.arange(_N_POINTS * 25) + 0.5) / (_N_POINTS * 25)
    near = np.logspace(-2.2, -0.7, 60)
    sizes = _sizes(records)
    for case in _cases():
        look = _LOOKS[_FLATNESS.index(case[0])]
        shifted = {"markerfacecolor": "none", "alpha": 0.6} if case[1] != 0.5 else {}
        distances = np.sort(np.abs(CrossingModel(case[0]).eta(x) - case[1]))
        shares = np.searchsorted(distances, near) / len(x)
        left.plot(near, shares, **look, **shifted, markevery=8, label=_name(case))
        means = means_over("n_rows", _of(records, case), "disagreement")
        right.plot(sizes, means, **look, **shifted)
    left.set(xscale="log", yscale="log", xlabel="t", ylabel="P(|η - t_q| ≤ t)")
    right.set(xscale="log", yscale="log", xlabel="rows n", ylabel="share decided otherwise")
    drawing.legend_below(picture, left, ncols=3)
    return picture


def _claims(rules: Sequence[Record], exponents: Sequence[Record]) -> list[Claim]:
    return [
        Claim(
            "Appendix A.2, lemma",
            "no more than `C ‖η - η̂‖_∞^alpha` of the points are decided otherwise than with η",
            {"exact": _within(rules, "disagreement")},
        ),
        Claim(
            "Appendix A.2, proposition",
            "the estimation error under other weights is at most "
            "`(q'_0 + q'_1) (‖η - η̂‖_∞ + |t_q - t_q'| C ‖η - η̂‖_∞^alpha)`",
            {"exact": _within(rules, "estimation")},
        ),
        Claim(
            "Appendix A.2, proposition",
            "the share of points decided otherwise falls at least as fast as "
            "`(log n / n)^(alpha β/(2β+d))`",
            {"exact": _rates(rules, _UNCERTAIN)},
            f"the exponent over all n here, of the mean over samples, up to {_UNCERTAIN:g}",
            {"without that allowance": {"exact": _rates(rules, 0.0)}},
        ),
        Claim(
            "beyond the paper",
            "a sample tells the exponent: intervals with confidence 0.95 hold it in 95% of samples",
            {"exact": _told(exponents)},
        ),
    ]


def _within(records: Sequence[Record], part: str) -> Finding:
    ratios = [record[part] / record[f"{part}_bound"] for record in records]
    return Finding(
        max(ratios) <= 1, f"at most {max(ratios):.0%} of the bound in {len(ratios)} cases"
    )


def _rates(records: Sequence[Record], allowance: float) -> Finding:
    words, held = [], True
    sizes = np.array(_sizes(records), dtype=float)
    for case in _cases():
        means = means_over("n_rows", _of(records, case), "disagreement")
        seen = float(np.polyfit(np.log(np.log(sizes) / sizes), np.log(means), 1)[0])
        beta = _SMOOTHNESS[case[0]]
        promised = CrossingModel(case[0]).exponent(case[1]) * beta / (2 * beta + 1)
        held &= seen >= promised - allowance
        words.append(f"{_name(case)} {seen:.2f}, promised {promised:.2f}")
    return Finding(held, "; ".join(words))


def _told(records: Sequence[Record]) -> Finding:
    words, held = [], True
    for case in _cases():
        kept, truth = _of(records, case), CrossingModel(case[0]).exponent(case[1])
        share = _covering(kept, truth) / len(kept)
        held &= share >= 0.95
        words.append(f"{_name(case)} {share:.1%}")
    return Finding(held, "; ".join(words))


STUDY = Study(
    "margin",
    "Rows near the threshold (Appendix A.2)",
    _units,
    _report,
    {"rules": "margin-rules", "exponents": "margin-exponents"},
)
