r"""A class of functions whose margin losses are known: which the bounds of the paper are tried on.

.. math:: f_1(x) = \tfrac{s}{2} (x - t) = -f_0(x), \qquad
          \|(\tfrac{s}{2}, \tfrac{s t}{2})\|_2 \leq \Lambda

On the paper's synthetic model the margin loss of such a function is a ramp in ``x``. Its class
risks are sums over sorted rows, so that all functions of a fine grid are evaluated at once, on a
sample as in the population.

Conventions
-----------
``risks`` has shape ``(n_functions, 2)``. ``corners`` are the extreme masses of a set, of shape
``(2, 2)``: with two classes the largest of two sums is the robust risk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import Matrix, Vector
from equipoise.datasets import PowerImbalance
from equipoise.paper.methods import BALANCED, Method, lcvar
from equipoise.paper.records import Record
from equipoise.theory import RiskBound, class_rademacher

P = 0.9
# The bound of the coefficients, fixed before any rows are seen; no row (x, 1) is longer.
RADIUS, LONGEST = 5.0, float(np.sqrt(2.0))
CONFIDENCE = 0.95
# The sets of weightings: one point, a set whose caps bind, and the simplex.
SETS: list[Method] = [BALANCED, lcvar(0.3), lcvar(0.05)]
_SHARES = (0.1, 0.25, 0.5, 1.0)
_N_THRESHOLDS = 201
_N_POINTS = 20_000


def grid() -> tuple[Vector, Vector]:
    """Thresholds and steepness of the functions."""
    t, share = (
        each.ravel() for each in np.meshgrid(np.linspace(0, 1, _N_THRESHOLDS), np.array(_SHARES))
    )
    return t, 2 * RADIUS * share / np.sqrt(1 + t**2)


def ramp_risks(x: Vector, weights: Vector, t: Vector, slope: Vector) -> Vector:
    """Mean loss of rows that should lie above ``t``: one below it, none beyond ``t + 1/slope``."""
    order = np.argsort(x, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    moments = np.concatenate([[0.0], np.cumsum((weights * x)[order])])
    low, high = (np.searchsorted(x[order], ends, side="right") for ends in (t, t + 1 / slope))
    between = (sums[high] - sums[low]) * (1 + slope * t) - slope * (moments[high] - moments[low])
    return np.asarray((sums[low] + between) / sums[-1])


def _class_risks(x: Vector, weights: tuple[Vector, Vector]) -> Matrix:
    t, slope = grid()
    # Class 0 should lie below: the same seen from the other end of the interval.
    return np.column_stack(
        [ramp_risks(1 - x, weights[0], 1 - t, slope), ramp_risks(x, weights[1], t, slope)]
    )


def population_risks() -> Matrix:
    """Class risks of all functions under the model."""
    points, _ = PowerImbalance(P).quadrature(_N_POINTS)
    eta = PowerImbalance(P).eta(points[:, 0])
    return _class_risks(points[:, 0], (1 - eta, eta))


@dataclass(frozen=True, eq=False)
class RampSample:
    """A sample, the class risks of all functions on it, and the complexity of the class."""

    counts: Vector
    risks: Matrix
    complexity: Vector

    @classmethod
    def draw(cls, n_rows: int, seed: int) -> "RampSample":
        """Rows of the model, as they come."""
        X, y = PowerImbalance(P).sample(n_rows, seed)
        rows = np.column_stack([X, np.ones(len(X))])
        complexities = class_rademacher(rows, y, RADIUS)
        risks = _class_risks(X[:, 0], ((y == 0).astype(float), (y == 1).astype(float)))
        counts = np.bincount(y, minlength=2).astype(float)
        return cls(counts, risks, np.array([complexities[0], complexities[1]]))


def corners_of(method: Method) -> Matrix:
    """The extreme masses of a set."""
    masses = method.uncertainty().resolve(PowerImbalance(P).prior)
    return np.stack([masses.maximize(row) for row in np.eye(2)])


def robust(risks: Matrix, corners: Matrix) -> Vector:
    """The robust risks of all functions."""
    return np.asarray((risks @ corners.T).max(axis=1))


def bound_record(
    observed: Matrix, truth: Matrix, corners: Matrix, bounds: tuple[RiskBound, RiskBound]
) -> Record:
    """What became of a bound of the robust risk, and of the excess risk, on one sample.

    ``used`` is the largest share of the width that any function of the class uses up; the bound is
    broken where it is above one.
    """
    generalization, excess = bounds
    terms = np.asarray(generalization.terms)
    empirical, risks = robust(observed, corners), robust(truth, corners)
    allowed = robust(observed + terms, corners)
    best = int(np.argmin(empirical))
    return {
        "empirical": float(empirical[best]),
        "risk": float(risks[best]),
        "bound": float(allowed[best]),
        "width": generalization.width,
        "gap": float((risks - empirical).max()),
        "used": float(((risks - empirical) / (allowed - empirical)).max()),
        "excess": float(risks[best] - risks.min()),
        "excess_bound": excess.value,
    }


def options(method: Method, **others: Any) -> dict[str, Any]:
    """Arguments of every bound."""
    prior = PowerImbalance(P).prior
    known = {"uncertainty": method.uncertainty(), "confidence": CONFIDENCE}
    return {"class_prior": prior, **known, **others}


def broken(records: Sequence[Record], field: str = "used") -> int:
    """In how many samples a bound is broken."""
    if field == "used":
        return sum(record["used"] > 1 for record in records)
    return sum(record["excess"] > record["excess_bound"] for record in records)
