"""Section 6: class priors that shift between training and test."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from equipoise.arrays import Vector
from equipoise.datasets import PowerImbalance
from equipoise.paper import drawing, pages
from equipoise.paper.fits import (
    COVERTYPE_C,
    SYNTHETIC_C,
    CovertypeSize,
    SyntheticSize,
    exact_fit,
)
from equipoise.paper.methods import (
    BALANCED,
    STANDARD,
    Method,
    known_prior,
    lcvar,
    lhcvar,
    prior_box,
)
from equipoise.paper.records import Record, RecordsByKind, mean_of
from equipoise.paper.splits import Sources, synthetic_split
from equipoise.paper.study import Claim, Finding, Study, StudyPlan, StudyReport, Unit
from equipoise.risks import class_risks

P = 0.9
_LCVAR, _LHCVAR = lcvar(0.25), lhcvar(1.0, 4.0)
# Shares of the rare class that each set allows: LCVaR(0.25) caps its mass at 0.1/0.25, LHCVaR at
# 0.1/alpha_1, about 0.27.
LCVAR_RANGE, BOX_RANGE, OUTSIDE = (0.0, 0.4), (0.2, 0.6), (0.4, 1.0)
LHCVAR_RANGE = (0.0, float(_LHCVAR.caps([P, 1 - P])[1]))
_BOX = prior_box((1 - BOX_RANGE[1], BOX_RANGE[0]), (1 - BOX_RANGE[0], BOX_RANGE[1]))
_FIXED = [STANDARD, BALANCED]
SYNTHETIC = [*_FIXED, _LCVAR, _LHCVAR, _BOX]
_SHARES = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9)

# What a forester might say of the seven covers: two common ones, five rare ones.
FOREST_LOWER = (0.2, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0)
FOREST_UPPER = (0.6, 0.6, 0.1, 0.1, 0.1, 0.1, 0.1)
UNIFORM = tuple([1 / 7] * 7)
# Of the 565,892 test rows, and of all rows.
_COUNTS = (209_680, 281_141, 33_594, 587, 7_333, 15_207, 18_350)
TEST_PRIOR = tuple(count / sum(_COUNTS) for count in _COUNTS)
_FOREST_BOX = prior_box(FOREST_LOWER, FOREST_UPPER)
_FOREST_LHCVAR = lhcvar(0.05)
COVERTYPE = [
    STANDARD,
    lcvar(0.7),
    lcvar(0.1),
    _FOREST_LHCVAR,
    _FOREST_BOX,
    known_prior(TEST_PRIOR),
]
_CLASSES = range(1, 8)
# Beginnings of the fields that hold class risks.
_ERRORS, _ENTROPY = "risk", "cross_entropy"

_LEAD = """\
If the classes look the same and only their shares change, a test prior is a weighting, and a set of
weightings is a set of test priors. The paper closes with the suggestion that LCVaR and LHCVaR may
then help. All fits are exact, and risks are shares of wrong predictions.
"""
_SYNTHETIC_LEAD = """\
## Synthetic model

Trained where the rare class has 10% of the rows ({rows:,} of them, mean over {seeds} seeds),
evaluated where it has another share; risks are those of the population, in closed form. LCVaR(0.25)
assumes that the share lies between 0 and 40%, LHCVaR(c=1, κ=4) between 0 and {lhcvar:.0%}, the
PriorBox between 20% and 60%. (With these two classes LHCVaR(c=1, κ=2) has the set of LCVaR(0.25).)
The grey line is the Bayes risk of each share: the smallest risk that is possible where it is known.
"""
_COVERTYPE_LEAD = """\
## Covertype

The paper's split is such a shift: trained with all classes equally frequent, tested where two of
them have 87% of the rows{step}. The PriorBox is what one might know without counting: the two
common covers have 20% to 60% each, the five others at most 10% each. 'Told the prior' is the fit
for the prior of the test rows themselves. Standard and balanced weights are the same here, and so
are LCVaR(0.1) and LHCVaR for any c and κ: with all classes equally frequent κ has no effect, and no
cap binds.
"""


def _units(plan: StudyPlan) -> list[Unit]:
    small, large = SyntheticSize.of(plan), CovertypeSize.of(plan)
    synthetic = {
        "p": P,
        "n_rows": small.n_rows,
        "seeds": plan.seeds(small.n_seeds),
        "methods": [method.spec() for method in SYNTHETIC],
    }
    specs = [method.spec() for method in COVERTYPE]
    covertype = {"methods": specs, "test_step": large.test_step}
    return [
        Unit("shift-synthetic", shift_synthetic, synthetic),
        Unit("shift-covertype", shift_covertype, covertype, needs="covertype"),
    ]


def shift_synthetic(
    *, p: float, n_rows: int, seeds: list[int], methods: list[dict[str, Any]]
) -> list[Record]:
    """Class risks of the population, and cross-entropies of the training rows."""
    records = []
    for seed in seeds:
        split = synthetic_split(p, n_rows, 1, seed)
        for method in (Method(**spec) for spec in methods):
            fit = exact_fit(method, split.X, split.y, C=SYNTHETIC_C)
            boundary = np.clip(-fit.intercept_[0] / fit.coef_[0, 0], 0, 1)
            risks = PowerImbalance(p).class_risks_at(boundary)
            entropies = {f"cross_entropy[{i}]": fit.class_risks_[i] for i in (0, 1)}
            fields = {f"risk[{i}]": float(risks[i]) for i in (0, 1)}
            records.append({"seed": seed, "method": method.label, **fields, **entropies})
    return records


def shift_covertype(
    sources: Sources, *, methods: list[dict[str, Any]], test_step: int
) -> list[Record]:
    """Class risks on the test rows of the paper's split."""
    split = sources.paper_split(test_step)
    records = []
    for method in (Method(**spec) for spec in methods):
        fit = exact_fit(method, split.X, split.y, C=COVERTYPE_C)
        risks = class_risks(split.y_test, fit.predict(split.X_test))
        fields = {f"risk[{name}]": risk for name, risk in risks.items()}
        records.append({"method": method.label, "gap": fit.duality_gap_, **fields})
    return records


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    small = SyntheticSize.of(plan)
    synthetic, covertype = results["shift-synthetic"], results["shift-covertype"]
    caption = "Risk against the share of the rare class at test time; shaded: the assumed sets"
    parts = [
        _LEAD,
        _SYNTHETIC_LEAD.format(rows=small.n_rows, seeds=small.n_seeds, lhcvar=LHCVAR_RANGE[1]),
        pages.figure("synthetic", caption),
        _synthetic_table(synthetic),
    ]
    drawings = {"synthetic": _synthetic_figure(synthetic)}
    if covertype:
        lead = _COVERTYPE_LEAD.format(step=CovertypeSize.of(plan).kept_rows)
        caption = "Risk on the way from the training prior (0) to that of the test rows (1)"
        parts += [lead, pages.figure("covertype", caption)]
        parts += [_covertype_table(covertype)]
        drawings["covertype"] = _covertype_figure(covertype)
    return StudyReport(
        claims=_claims(synthetic, covertype),
        page=pages.sections(*parts),
        figures=drawings,
    )


def _risks(
    records: Sequence[Record], method: str, classes: Sequence[int], loss: str = _ERRORS
) -> Vector:
    return np.array([mean_of(records, f"{loss}[{i}]", method=method).mean for i in classes])


def _largest(
    records: Sequence[Record], method: str, shares: tuple[float, float], loss: str = _ERRORS
) -> float:
    """Largest risk over an interval of shares of the rare class: at one of its ends."""
    risks = _risks(records, method, (0, 1), loss)
    return float(max((1 - share) * risks[0] + share * risks[1] for share in shares))


def _synthetic_table(records: Sequence[Record]) -> str:
    rows = []
    for method in SYNTHETIC:
        risks = _risks(records, method.label, (0, 1))
        at = [float((1 - share) * risks[0] + share * risks[1]) for share in _SHARES]
        largest = [
            _largest(records, method.label, ends) for ends in (LCVAR_RANGE, LHCVAR_RANGE, BOX_RANGE)
        ]
        rows.append([method.label, *at, *largest])
    header = ["share of class 1", *(f"{share:g}" for share in _SHARES)]
    ends = [f"largest in 0 to {each[1]:.2g}" for each in (LCVAR_RANGE, LHCVAR_RANGE)]
    return pages.table([*header, *ends, "largest in 0.2 to 0.6"], rows)


def _synthetic_figure(records: Sequence[Record]) -> Any:
    picture, ax = drawing.figure(7.2, 5.2)
    shares = np.linspace(0, 1, 51)
    for method in SYNTHETIC:
        risks = _risks(records, method.label, (0, 1))
        look = drawing.style(method.label, markevery=5)
        ax.plot(shares, (1 - shares) * risks[0] + shares * risks[1], **look)
    prior = PowerImbalance(P).prior
    inner = shares[1:-1]
    bayes = [_bayes_risk(share, prior) for share in inner]
    ax.plot(inner, bayes, color="0.45", linestyle=(0, (6, 2)), label="Bayes risk of each share")
    sets = (
        (LCVAR_RANGE, "#0072B2", "///", "LCVaR's set"),
        (LHCVAR_RANGE, "#CC3311", "xxx", "LHCVaR's set"),
        (BOX_RANGE, "#117733", "...", "PriorBox's set"),
    )
    for place, (ends, color, hatch, label) in enumerate(sets):
        strip = {"ymin": 0.05 * place, "ymax": 0.05 * (place + 1), "facecolor": "none"}
        ax.axvspan(*ends, edgecolor=color, hatch=hatch, label=label, **strip)
    ax.axvline(1 - P, color="0.6", linestyle=":", linewidth=1.2)
    ax.annotate(
        "training",
        (1 - P, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(4, 0),
        textcoords="offset points",
        va="top",
        color="0.4",
    )
    ax.set(xlabel="share of class 1 at test time", ylabel="risk", xlim=(0, 1), ylim=(0, 0.45))
    picture.legend(loc="outside lower center", ncols=3, frameon=False)
    return picture


def _bayes_risk(share: float, prior: Vector) -> float:
    weights = np.array([1 - share, share]) / prior
    return PowerImbalance(P).bayes_risk(weights)


def _priors() -> dict[str, Vector]:
    uniform, test = np.array(UNIFORM), np.array(TEST_PRIOR)
    return {"training prior": uniform, "halfway": (uniform + test) / 2, "test rows": test}


def _covertype_table(records: Sequence[Record]) -> str:
    largest, rows = _over_box(records), []
    for method in COVERTYPE:
        risks = _risks(records, method.label, _CLASSES)
        under = [float(prior @ risks) for prior in _priors().values()]
        rows.append([method.label, *under, largest[method.label], float(risks.max())])
    return pages.table(["fitted for", *_priors(), "largest in the box", "worst class"], rows)


def _covertype_figure(records: Sequence[Record]) -> Any:
    picture, ax = drawing.figure(7.2, 4.8)
    steps = np.linspace(0, 1, 11)
    for method in COVERTYPE:
        risks = _risks(records, method.label, _CLASSES)
        start, end = (float(np.array(prior) @ risks) for prior in (UNIFORM, TEST_PRIOR))
        look = drawing.style(method.label, markevery=2)
        ax.plot(steps, (1 - steps) * start + steps * end, **look)
    ax.set(xlabel="from the training prior (0) to that of the test rows (1)", ylabel="risk")
    picture.legend(loc="outside lower center", ncols=3, frameon=False)
    return picture


def _claims(synthetic: Sequence[Record], covertype: Sequence[Record]) -> list[Claim]:
    findings = [
        (
            "Section 6",
            "LCVaR improves on standard and balanced weights when the test prior differs "
            "(synthetic; largest risk over the priors that LCVaR assumes)",
            _smallest(_over_shares(synthetic, LCVAR_RANGE), _LCVAR, among=[*_FIXED, _LCVAR]),
        ),
        (
            "Section 6",
            "LHCVaR does, too (synthetic; largest risk over the priors that LHCVaR assumes)",
            _smallest(_over_shares(synthetic, LHCVAR_RANGE), _LHCVAR, among=[*_FIXED, _LHCVAR]),
        ),
        (
            "beyond the paper",
            "a PriorBox has the smallest largest cross-entropy over the priors that it assumes, on "
            "the training rows (synthetic)",
            _smallest(_over_shares(synthetic, BOX_RANGE, _ENTROPY), _BOX, among=SYNTHETIC),
        ),
        (
            "beyond the paper",
            "and therefore the smallest largest share of errors in the population (synthetic)",
            _smallest(_over_shares(synthetic, BOX_RANGE), _BOX, among=SYNTHETIC),
        ),
        (
            "beyond the paper",
            "LCVaR improves also on priors outside its set (synthetic; share of the rare class "
            "from 0.4 to 1)",
            _smallest(_over_shares(synthetic, OUTSIDE), _LCVAR, among=[*_FIXED, _LCVAR]),
        ),
    ]
    if covertype:
        findings += [
            (
                "Section 6",
                "LCVaR improves on the standard fit under the prior of the test rows (Covertype)",
                _smallest(_under_test_prior(covertype), lcvar(0.1), among=[STANDARD, lcvar(0.1)]),
            ),
            (
                "Section 6",
                "LHCVaR does, too, and is the same fit (Covertype)",
                _smallest(
                    _under_test_prior(covertype), _FOREST_LHCVAR, among=[STANDARD, _FOREST_LHCVAR]
                ),
            ),
            (
                "beyond the paper",
                "a PriorBox does so over all the priors that it assumes, with a lower risk than "
                "any other fit that was not told the prior (Covertype)",
                _smallest(_over_box(covertype), _FOREST_BOX, among=COVERTYPE[:-1]),
            ),
        ]
    return [Claim(where, text, {"exact": finding}) for where, text, finding in findings]


def _over_shares(
    records: Sequence[Record], shares: tuple[float, float], loss: str = _ERRORS
) -> dict[str, float]:
    return {each.label: _largest(records, each.label, shares, loss) for each in SYNTHETIC}


def _under_test_prior(records: Sequence[Record]) -> dict[str, float]:
    prior = np.array(TEST_PRIOR)
    return {each.label: float(prior @ _risks(records, each.label, _CLASSES)) for each in COVERTYPE}


def _over_box(records: Sequence[Record]) -> dict[str, float]:
    box = _FOREST_BOX.uncertainty().resolve(UNIFORM)
    return {
        each.label: float(box.support(_risks(records, each.label, _CLASSES))) for each in COVERTYPE
    }


def _smallest(risks: Mapping[str, float], method: Method, among: Sequence[Method]) -> Finding:
    """Whether a method has the smallest of these risks among some methods."""
    labels = [each.label for each in among]
    others = [risks[label] for label in labels if label != method.label]
    words = ", ".join(f"{label} {risks[label]:.4f}" for label in labels)
    return Finding(risks[method.label] < min(others), words)


STUDY = Study(
    "shift",
    "Class priors that shift (Section 6)",
    _units,
    _report,
    {"synthetic": "shift-synthetic", "covertype": "shift-covertype"},
)
