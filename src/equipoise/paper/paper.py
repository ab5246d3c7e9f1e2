"""The numbers that the paper prints, to be shown beside ours."""

from typing import NamedTuple


class Printed(NamedTuple):
    """Standard risk and worst-class risk of a row of a table."""

    standard: float
    worst: float


# Table 1.
COVERTYPE = {
    "Standard": Printed(0.3275, 0.5111),
    "Balanced": Printed(0.3765, 0.5333),
    "LCVaR": Printed(0.3384, 0.5037),
    "LHCVaR": Printed(0.3979, 0.4907),
}

# Table 2: LCVaR by alpha, and LHCVaR with c = 0.05 by kappa.
COVERTYPE_ALPHA = {
    0.01: Printed(0.4266, 0.5474),
    0.05: Printed(0.3993, 0.4932),
    0.1: Printed(0.4060, 0.5037),
}
COVERTYPE_KAPPA = {
    0.8: Printed(0.4308, 0.5408),
    1.0: Printed(0.3979, 0.4907),
    1.2: Printed(0.4171, 0.5050),
}
