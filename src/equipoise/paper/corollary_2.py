"""Corollary 2: the bounds of Theorem 1 for classes of complexity at most C / sqrt(n)."""

from collections.abc import Sequence

import numpy as np

from equipoise.paper.methods import Method
from equipoise.paper.ramps import LONGEST, RADIUS, RampSample, options
from equipoise.paper.records import Record, means_over, select
from equipoise.paper.study import Claim, Finding
from equipoise.theory import RiskBound, rate_bound

THEOREM = "Corollary 2"
# Linear functions of coefficients and rows that are no longer than these.
CONSTANT = RADIUS * LONGEST
# How near to -1/2 an exponent of n must be.
_NEAR = 0.1


def rate_bounds(sample: RampSample, method: Method) -> tuple[RiskBound, RiskBound]:
    """Of the robust risk and of the excess risk."""
    settings = options(method)
    risks = rate_bound(sample.counts, CONSTANT, risks=sample.risks[0], **settings)
    return risks, rate_bound(sample.counts, CONSTANT, **settings)


def rate_claim(records: Sequence[Record]) -> Claim:
    """Whether the deviations that the corollary bounds fall as fast as its bound."""
    sizes = sorted({record["n_rows"] for record in records})
    slopes = {}
    for label in dict.fromkeys(record["set"] for record in records):
        kept = select(records, theorem=THEOREM, set=label)
        means = means_over("n_rows", kept, "gap")
        slopes[label] = float(np.polyfit(np.log(sizes), np.log(means), 1)[0])
    words = ", ".join(f"{label} n^({slope:.2f})" for label, slope in slopes.items())
    held = all(abs(slope + 0.5) <= _NEAR for slope in slopes.values())
    return Claim(
        "beyond the paper",
        "the bound of Corollary 2 has the right rate: the largest excess of risk over empirical "
        "risk in the class falls like n^(-1/2), as its width does",
        {"exact": Finding(held, words)},
        f"an exponent within {_NEAR:g} of -1/2, of the mean over samples",
    )
