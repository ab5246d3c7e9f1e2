"""Table 1: Covertype, on the paper's split and on random ones. Figure 4 is of the same fits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from equipoise.paper import pages
from equipoise.paper.figure_4 import (
    CAPTION,
    CLASSES,
    NOTE,
    class_risks_of,
    figure_4,
    on_random_rows,
)
from equipoise.paper.fits import COVERTYPE_C, CovertypeSize, paper_units, random_units
from equipoise.paper.methods import BALANCED, STANDARD, Method, lcvar, lhcvar
from equipoise.paper.records import Record, RecordsByKind, Spread, counted, select, spread
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


class Printed(NamedTuple):
    """Standard risk and worst-class risk of a row of a table of the paper."""

    standard: float
    worst: float


# The table as the paper prints it.
TABLE_1 = {
    "Standard": Printed(0.3275, 0.5111),
    "Balanced": Printed(0.3765, 0.5333),
    "LCVaR": Printed(0.3384, 0.5037),
    "LHCVaR": Printed(0.3979, 0.4907),
}
# The method behind each row; the scripts have parameters of their own.
_TEXT_ROWS = {
    "Standard": STANDARD,
    "Balanced": BALANCED,
    "LCVaR": lcvar(0.1),
    "LHCVaR": lhcvar(0.05),
}
_SCRIPT_ROWS = _TEXT_ROWS | {"LCVaR": lcvar(0.05), "LHCVaR": lhcvar(0.01, inverted=True)}
_ROWS = {"exact": _TEXT_ROWS, "text": _TEXT_ROWS, "scripts": _SCRIPT_ROWS}
# Beyond the table: a cap that the optimum reaches on the random splits.
_RANDOM = [*_TEXT_ROWS.values(), lcvar(0.5)]

_WHERE = "Section 5, Real"
_RANDOM_WHERE = "beyond the paper: random training rows"
_ROBUST = ("LCVaR", "LHCVaR")
_FIXED = ("Standard", "Balanced")
_FIELDS = ("standard_risk", "worst_class_risk")
# How near a risk must be to the printed one.
_CLOSE = 0.01

_LEAD = """\
The paper takes UCI's split: the first 11,340 rows for training, the last 565,892 for testing{step}.
All 54 features are standardised with the mean and standard deviation of the training rows. Risks
are shares of wrong test rows.

The training rows are balanced, 1,620 per class. So *Standard and Balanced are the same problem*,
and since every class has a seventh of the rows no cap of LCVaR binds for alpha up to 1/7, and none
of LHCVaR for any c: *both are the worst-class problem*. Whatever differs within a pair of rows of
Table 1 is a difference of optimisation, not of method. For the exact fits and the text LCVaR has
alpha = 0.1 and LHCVaR c = 0.05, κ = 1 (the rows of Table 2 with the same worst-class risks as
Table 1, though LCVaR's standard risk is 0.3384 in one and 0.4060 in the other); the scripts have
alpha = 0.05 and c = 0.01.
"""
_WHY = """\
Why the order of the rows is another one, too: every fit is made on rows of which each class has a
seventh, and evaluated on rows of which two classes have 87%. *Standard minimises the risk under the
uniform prior and not the standard risk of the table*, which is that under the prior of the test
rows. Nothing makes it the smallest there. (The study `shift` fits the same model on the same rows
for the prior of the test rows.) How the printed numbers came about we do not know.
"""
_CAPS_NOTE = (
    "Caps: `none`, the set is the simplex; `idle`, the optimum reaches none; `active`, it does."
)
_RANDOM_LEAD = """\
{rows:,} random rows for training and the others for testing, {splits} splits: the classes are as
unequal as in all the data (the rarest has 0.5%), and the methods are different problems. Mean ±
standard deviation over splits. The caps of LCVaR(0.1) are there, but most optima reach none of
them: it is the worst-class problem, or nearly so, here as well. LCVaR(0.5) is not.
"""


def _units(plan: StudyPlan) -> list[Unit]:
    text, scripts = list(_TEXT_ROWS.values()), list(_SCRIPT_ROWS.values())
    exact = [
        paper_units("covertype-exact", plan, text, C=C) for C in CovertypeSize.of(plan).penalties
    ]
    return [
        *(unit for units in exact for unit in units),
        *random_units("covertype-random-exact", plan, _RANDOM),
        *paper_units("covertype-text", plan, text, "text"),
        *paper_units("covertype-scripts", plan, scripts, "covertype-scripts"),
        *random_units("covertype-random-text", plan, _RANDOM, "text"),
        *random_units("covertype-random-scripts", plan, scripts, "covertype-scripts"),
    ]


def _report(plan: StudyPlan, results: RecordsByKind) -> StudyReport:
    size = CovertypeSize.of(plan)
    by_way = {way: results[f"covertype-{way}"] for way in WAYS}
    random = {way: results[f"covertype-random-{way}"] for way in WAYS}
    exact = select(by_way["exact"], C=COVERTYPE_C)
    at_weak = {**by_way, "exact": exact}
    parts = [
        _LEAD.format(step=size.kept_rows),
        "## Table 1",
        _table_1(at_weak),
        _certificate(exact),
        *_not_reproduced(at_weak, plan.ways),
        "## Figure 4",
        pages.figure("class-risks", CAPTION),
        NOTE,
        "Class risks, solved exactly:",
        _class_table(exact),
        "## Other penalties, solved exactly",
        _penalty_table(by_way["exact"]),
        "## Random training rows",
        _RANDOM_LEAD.format(rows=size.n_random, splits=size.n_splits),
        _random_table({way: random[way] for way in ("exact", "text")}),
        _CAPS_NOTE,
        f"{plan.ways['scripts'].capitalize()}, with their parameters, on the same rows:",
        _script_table(random["scripts"]),
        pages.figure("class-risks-random", f"{CAPTION}. Random training rows, solved exactly"),
        *pages.covertype_distances(by_way, random, plan.ways),
    ]
    return StudyReport(
        claims=_claims(at_weak, random),
        page=pages.sections(*parts),
        figures={
            "class-risks": figure_4(at_weak, _ROWS, plan.ways),
            "class-risks-random": on_random_rows(random["exact"], _RANDOM),
        },
    )


def _table_1(by_way: Mapping[str, Sequence[Record]]) -> str:
    rows = [
        [
            name,
            *printed,
            *(
                cell
                for way, records in by_way.items()
                for cell in pages.risk_cells(records, _ROWS[way][name])
            ),
        ]
        for name, printed in TABLE_1.items()
    ]
    return pages.table(["method", *pages.risk_headers(["paper", *WAYS])], rows)


def _certificate(records: Sequence[Record]) -> str:
    gap = max(record["gap"] for record in records)
    return (
        f"Exact: C = {COVERTYPE_C:g}; the largest certified gap of these fits is {gap:.1e}. Text "
        "and scripts: mean ± standard deviation over starts."
    )


def _class_table(records: Sequence[Record]) -> str:
    rows = [[name, *class_risks_of(records, method)] for name, method in _TEXT_ROWS.items()]
    return pages.table(["class", *map(str, CLASSES)], rows)


def _penalty_table(records: Sequence[Record]) -> str:
    rows = [
        [
            f"{C:g}",
            label,
            record["standard_risk"],
            record["worst_class_risk"],
            f"{record['gap']:.0e}",
        ]
        for C in sorted({record["C"] for record in records})
        for label in ("Balanced", lcvar(0.1).label, lhcvar(0.05).label)
        for record in select(records, C=C, method=label)
    ]
    return pages.table(["C", "method", "standard risk", "worst class risk", "certified gap"], rows)


def _random_table(random: Mapping[str, Sequence[Record]]) -> str:
    rows = [
        [
            method.label,
            counted(random["exact"], "caps", method=method.label),
            *(cell for each in random.values() for cell in pages.risk_cells(each, method)),
        ]
        for method in _RANDOM
    ]
    return pages.table(["method", "caps", *pages.risk_headers(random)], rows)


def _script_table(records: Sequence[Record]) -> str:
    rows = [[each.label, *pages.risk_cells(records, each)] for each in _SCRIPT_ROWS.values()]
    return pages.table(["method", *pages.risk_headers(["scripts"])], rows)


def _not_reproduced(by_way: Mapping[str, Sequence[Record]], ways: Mapping[str, str]) -> list[str]:
    """That no way of fitting gives the printed numbers, and why the order of its rows turns."""
    rows = _rows_by_way(by_way)
    pairs = [f"{_pair(each, 'Standard')} {ways[way]}" for way, each in rows.items()]
    lowest = min(each("Standard", "standard_risk") for each in rows.values())
    exact = rows["exact"]
    priors = [
        [ways[way], name, each.mean(name, under_training_prior), each(name, "standard_risk")]
        for way, each in rows.items()
        for name in TABLE_1
    ]
    return [
        "### No way of fitting gives these numbers",
        f"The paper's Standard has risks of {_printed('Standard')} (standard / worst class); ours "
        f"has {'; '.join(pairs)}. The lowest of our standard risks is {lowest:.4f}, and training "
        "longer would end at the optimum, which is the first of them.",
        _WHY,
        pages.table(["", "method", "under the training prior", "under the test rows'"], priors),
        f"Solved exactly, Standard has {exact.mean('Standard', under_training_prior):.4f} against "
        f"{exact.mean('LCVaR', under_training_prior):.4f} of LCVaR under the prior that it was "
        f"fitted to, and {exact('Standard', 'standard_risk'):.4f} against "
        f"{exact('LCVaR', 'standard_risk'):.4f} under that of the test rows.",
    ]


@dataclass(frozen=True)
class RowRisks:
    """The risks of the rows of the table: means over starts or splits, of every fit's own."""

    records: Sequence[Record]
    methods: Mapping[str, Method]

    def __call__(self, name: str, field: str) -> float:
        """The mean of a field of the records of a row."""
        return self.mean(name, itemgetter(field))

    def mean(self, name: str, of: Callable[[Record], float]) -> float:
        """The mean of what a function makes of every record of a row."""
        return self.spread(name, of).mean

    def spread(self, name: str, of: Callable[[Record], float]) -> Spread:
        """Mean and standard deviation of the same."""
        return spread([of(each) for each in select(self.records, method=self.methods[name].label)])


def under_training_prior(record: Record) -> float:
    """The risk where every class has a seventh of the rows, as among the training rows."""
    return float(np.mean(_class_risks(record)))


def _class_risks(record: Record) -> list[float]:
    return [record[f"risk[{each}]"] for each in CLASSES]


def _rows_by_way(by_way: Mapping[str, Sequence[Record]]) -> dict[str, RowRisks]:
    return {way: RowRisks(records, _ROWS[way]) for way, records in by_way.items()}


def _claims(
    by_way: Mapping[str, Sequence[Record]], random: Mapping[str, Sequence[Record]]
) -> list[Claim]:
    """Every claim on the paper's split, then those that random splits answer differently."""
    paper, others = _rows_by_way(by_way), _rows_by_way(random)
    # Random training rows have the prior of the test rows.
    again = [replace(each, where=_RANDOM_WHERE, reading="", others={}) for each in _CLAIMS[:3]]
    return [*(each.checked(paper) for each in _CLAIMS), *(each.checked(others) for each in again)]


def _lower_worst_risk(rows: RowRisks) -> Finding:
    risks = {name: rows(name, "worst_class_risk") for name in (*_ROBUST, *_FIXED)}
    best = min(risks[name] for name in _FIXED)
    return Finding(all(risks[name] < best for name in _ROBUST), _listing(risks))


def _costs_standard_risk(rows: RowRisks) -> Finding:
    return _above_standard(rows, itemgetter("standard_risk"))


def _costs_under_training_prior(rows: RowRisks) -> Finding:
    return _above_standard(rows, under_training_prior)


def _above_standard(rows: RowRisks, of: Callable[[Record], float]) -> Finding:
    risks = {name: rows.mean(name, of) for name in (*_ROBUST, *_FIXED)}
    return Finding(all(risks[name] > risks["Standard"] for name in _ROBUST), _listing(risks))


def _concentrated(rows: RowRisks) -> Finding:
    return _narrower(rows, np.ptp, "largest less smallest class risk")


def _concentrated_by_deviation(rows: RowRisks) -> Finding:
    return _narrower(rows, np.std, "standard deviation of the class risks")


def _narrower(rows: RowRisks, width: Callable[[list[float]], float], words: str) -> Finding:
    widths = {
        name: rows.mean(name, lambda record: float(width(_class_risks(record))))
        for name in (*_ROBUST, *_FIXED)
    }
    least = min(widths[name] for name in _FIXED)
    return Finding(all(widths[name] < least for name in _ROBUST), f"{words}: {_listing(widths)}")


def _as_printed(rows: RowRisks) -> Finding:
    """Whether both numbers of every row are close to the printed ones."""
    return _close_to_print(rows, lambda found, printed: abs(found.mean - printed) <= _CLOSE)


def _as_printed_within_spread(rows: RowRisks) -> Finding:
    return _close_to_print(rows, lambda found, printed: abs(found.mean - printed) <= 2 * found.sd)


def _close_to_print(rows: RowRisks, close: Callable[[Spread, float], bool]) -> Finding:
    near = []
    for name, printed in TABLE_1.items():
        spreads = [rows.spread(name, itemgetter(field)) for field in _FIELDS]
        near += [[close(*pair) for pair in zip(spreads, printed, strict=True)]]
    words = ", ".join(f"{name} {_pair(rows, name)} (printed {_printed(name)})" for name in TABLE_1)
    whole, single = sum(map(all, near)), sum(map(sum, near))
    return Finding(
        whole == len(near),
        f"{whole} of {len(near)} rows and {single} of {2 * len(near)} numbers; {words}",
    )


def _pair(rows: RowRisks, name: str) -> str:
    return " / ".join(f"{rows(name, field):.4f}" for field in _FIELDS)


def _printed(name: str) -> str:
    return " / ".join(f"{risk:.4f}" for risk in TABLE_1[name])


def _best_of_table_1(rows: RowRisks) -> Finding:
    worst = {name: rows(name, "worst_class_risk") for name in TABLE_1}
    standard = {name: rows(name, "standard_risk") for name in TABLE_1}
    first = min(worst, key=worst.__getitem__), min(standard, key=standard.__getitem__)
    alone = _is_alone(worst, first[0]) and _is_alone(standard, first[1])
    names = [
        name if _is_alone(risks, name) else f"{name} (tied)"
        for name, risks in zip(first, (worst, standard), strict=True)
    ]
    return Finding(
        first == ("LHCVaR", "Standard") and alone,
        f"lowest worst-class risk: {names[0]}; lowest standard risk: {names[1]}",
    )


def _is_alone(risks: Mapping[str, float], name: str) -> bool:
    return sum(abs(risk - risks[name]) < 1e-12 for risk in risks.values()) == 1


def _below_the_printed(rows: RowRisks) -> Finding:
    printed = min(row.worst for row in TABLE_1.values())
    risks = {name: rows(name, "worst_class_risk") for name in _ROBUST}
    held = all(risk < printed for risk in risks.values())
    return Finding(held, f"{_listing(risks)}; printed {printed:.4f}")


def _listing(risks: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {risk:.4f}" for name, risk in risks.items())


_CLAIMS: list[Statement[RowRisks]] = [
    Statement(
        _WHERE,
        "LCVaR and LHCVaR have a lower worst-class risk than the standard and the balanced "
        "classifier",
        _lower_worst_risk,
    ),
    Statement(
        _WHERE,
        "that costs standard risk: theirs is higher than the standard classifier's",
        _costs_standard_risk,
        "the standard risk is the share of wrong test rows, as in the table",
        {"evaluated under the prior of the training rows": _costs_under_training_prior},
    ),
    Statement(
        _WHERE,
        "their class risks are more concentrated than those of the two baselines",
        _concentrated,
        "by the largest less the smallest class risk",
        {"by the standard deviation of the class risks": _concentrated_by_deviation},
    ),
    Statement(
        "Table 1",
        "LHCVaR has the lowest worst-class risk of all four, Standard the lowest standard risk",
        _best_of_table_1,
    ),
    Statement(
        "Table 1",
        "the numbers of the table, standard and worst-class risk of four methods",
        _as_printed,
        f"within {_CLOSE:g} of the print",
        {"within two standard deviations over starts": _as_printed_within_spread},
    ),
    Statement(
        "beyond the paper",
        "the worst-class risks of LCVaR and LHCVaR are below the best that the paper prints",
        _below_the_printed,
    ),
]


STUDY = Study(
    "covertype",
    "Covertype: class risks (Table 1 and Figure 4)",
    _units,
    _report,
    {"paper-split": "covertype-{way}", "random-splits": "covertype-random-{way}"},
)
