"""Appendix D: the bound for conditional sampling, given the number of rows of each class."""

from collections.abc import Sequence
from dataclasses import replace

from equipoise.paper.methods import Method
from equipoise.paper.ramps import CONFIDENCE, RampSample, broken, options
from equipoise.paper.records import Record, select
from equipoise.paper.study import Claim, Finding
from equipoise.theory import RiskBound, conditional_bound

THEOREM = "Appendix D"
AS_PRINTED = "Appendix D, as printed"


def conditional_bounds(sample: RampSample, method: Method) -> tuple[RiskBound, RiskBound]:
    """Of the robust risk and of the excess risk."""
    settings = options(method)
    risks = conditional_bound(sample.counts, sample.complexity, risks=sample.risks[0], **settings)
    return risks, conditional_bound(sample.counts, sample.complexity, **settings)


def printed_bounds(sample: RampSample, method: Method) -> tuple[RiskBound, RiskBound]:
    """The same with 2k in place of 4k, which the paper's lemmas do not give."""
    return conditional_bounds(replace(sample, complexity=sample.complexity / 2), method)


def conditional_claim(records: Sequence[Record]) -> Claim:
    """Whether the theorem holds, with the factor of its lemmas and with the printed one."""
    return Claim(
        THEOREM,
        "given the labels, the robust risk of every function of the class is at most the bound, "
        "with probability at least 0.95",
        {"exact": never_broken(select(records, theorem=THEOREM))},
        "with 4k times the complexity of the scores, as its lemmas have it",
        {"with 2k, as printed": {"exact": never_broken(select(records, theorem=AS_PRINTED))}},
    )


def never_broken(records: Sequence[Record]) -> Finding:
    """Whether a bound of the robust risk is broken no more often than it may be."""
    count, used = broken(records), max(record["used"] for record in records)
    return Finding(
        count <= (1 - CONFIDENCE) * len(records),
        f"broken in {count} of {len(records)} cases; at most {used:.0%} of the width is used",
    )
