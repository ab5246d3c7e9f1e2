"""What the paper says about Table 1 and Figure 4, claim by claim."""

from collections.abc import Callable, Mapping, Sequence

from equipoise.paper.aggregate import Spread, mean_of
from equipoise.paper.methods import Method
from equipoise.paper.paper import COVERTYPE
from equipoise.paper.study import Claim, Record, Verdict

_WHERE = "Section 5, Real"
_RANDOM_WHERE = "beyond the paper: random training rows"
_ROBUST = ("LCVaR", "LHCVaR")
_FIXED = ("Standard", "Balanced")
_CLASSES = range(1, 8)

# The risks of a row of Table 1: a field of the records of its method.
Rows = Callable[[str, str], Spread]


def covertype_claims(
    by_way: Mapping[str, Sequence[Record]],
    random: Mapping[str, Sequence[Record]],
    methods: Mapping[str, Mapping[str, Method]],
) -> list[Claim]:
    """Every claim on the paper's split, then those that random splits answer differently."""
    paper = {way: _rows(records, methods[way]) for way, records in by_way.items()}
    others = {way: _rows(records, methods[way]) for way, records in random.items()}
    claims = [
        Claim(where, text, {way: judge(rows) for way, rows in paper.items()})
        for where, text, judge in _CLAIMS
    ]
    claims += [
        Claim(_RANDOM_WHERE, text, {way: judge(rows) for way, rows in others.items()})
        for _, text, judge in _CLAIMS[:3]
    ]
    return claims


def _rows(records: Sequence[Record], methods: Mapping[str, Method]) -> Rows:
    return lambda name, field: mean_of(records, field, method=methods[name].label)


def _lower_worst_risk(rows: Rows) -> Verdict:
    risks = {name: rows(name, "worst_class_risk").mean for name in (*_ROBUST, *_FIXED)}
    best = min(risks[name] for name in _FIXED)
    return Verdict(all(risks[name] < best for name in _ROBUST), _listing(risks))


def _costs_standard_risk(rows: Rows) -> Verdict:
    risks = {name: rows(name, "standard_risk").mean for name in (*_ROBUST, *_FIXED)}
    return Verdict(all(risks[name] > risks["Standard"] for name in _ROBUST), _listing(risks))


def _concentrated(rows: Rows) -> Verdict:
    ranges = {}
    for name in (*_ROBUST, *_FIXED):
        risks = [rows(name, f"risk[{each}]").mean for each in _CLASSES]
        ranges[name] = max(risks) - min(risks)
    least = min(ranges[name] for name in _FIXED)
    held = all(ranges[name] < least for name in _ROBUST)
    return Verdict(held, f"largest less smallest class risk: {_listing(ranges)}")


def _best_of_table_1(rows: Rows) -> Verdict:
    worst = {name: rows(name, "worst_class_risk").mean for name in COVERTYPE}
    standard = {name: rows(name, "standard_risk").mean for name in COVERTYPE}
    first = min(worst, key=worst.__getitem__), min(standard, key=standard.__getitem__)
    alone = _is_alone(worst, first[0]) and _is_alone(standard, first[1])
    names = [
        name if _is_alone(risks, name) else f"{name} (tied)"
        for name, risks in zip(first, (worst, standard), strict=True)
    ]
    return Verdict(
        first == ("LHCVaR", "Standard") and alone,
        f"lowest worst-class risk: {names[0]}; lowest standard risk: {names[1]}",
    )


def _is_alone(risks: Mapping[str, float], name: str) -> bool:
    return sum(abs(risk - risks[name]) < 1e-12 for risk in risks.values()) == 1


def _below_the_printed(rows: Rows) -> Verdict:
    printed = min(row.worst for row in COVERTYPE.values())
    risks = {name: rows(name, "worst_class_risk").mean for name in _ROBUST}
    held = all(risk < printed for risk in risks.values())
    return Verdict(held, f"{_listing(risks)}; printed {printed:.4f}")


def _listing(risks: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {risk:.4f}" for name, risk in risks.items())


_CLAIMS: list[tuple[str, str, Callable[[Rows], Verdict]]] = [
    (
        _WHERE,
        "LCVaR and LHCVaR have a lower worst-class risk than the standard and the balanced "
        "classifier",
        _lower_worst_risk,
    ),
    (
        _WHERE,
        "that costs standard risk: theirs is higher than the standard classifier's",
        _costs_standard_risk,
    ),
    (
        _WHERE,
        "their class risks are more concentrated than those of the two baselines",
        _concentrated,
    ),
    (
        "Table 1",
        "LHCVaR has the lowest worst-class risk of all four, Standard the lowest standard risk",
        _best_of_table_1,
    ),
    (
        "beyond the paper",
        "the worst-class risks of LCVaR and LHCVaR are below the best that the paper prints",
        _below_the_printed,
    ),
]
