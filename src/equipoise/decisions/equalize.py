r"""Log-weights that lower the worst case of class risks, all classes at once.

Over many rows the zero-one risks are nearly smooth in the log-weights :math:`\theta`: the rows
within a width :math:`h` of a decision boundary give the slopes :math:`J_{ij} = \partial R_i /
\partial \theta_j`. Each step solves

.. math:: \min_\delta \; \max_{m \in M} \; \langle m, R + J \delta \rangle
          + \tfrac{1}{2 \eta} \|\delta\|^2

through its dual in the masses. Lines alone would stall where several classes share the worst
case.
"""

import numpy as np

from equipoise.arrays import Matrix, Vector
from equipoise.decisions.evidence import Evidence
from equipoise.sets import MassSet
from equipoise.sets.mass_program import mass_program

# Steps, and how far one may go in any log-weight: at first, and at least.
STEPS = 80
FIRST, SHORTEST = 0.5, 0.002
TRIALS = (1.0, 0.5)


def equalized(evidence: Evidence, masses: MassSet, theta: Vector) -> Vector:
    """Log-weights with a lower robust risk than ``theta``, or ``theta`` itself."""
    slopes = _Slopes(evidence)
    start = np.full(masses.n_classes, 1 / masses.n_classes)
    program = mass_program(masses, np.asarray(masses.project(start)))
    risks, radius, rate = slopes.risks(theta), FIRST, 1.0
    value = float(masses.support(risks))
    for _ in range(STEPS):
        # Slopes at the scale of the step that they are for.
        J = slopes.jacobian(theta, radius)
        mass = program.solve(rate * (J @ J.T), risks, 1e-9)
        slope = mass @ J
        steepest = max(1e-12, float(np.abs(slope).max()))
        found = _best_trial(slopes, masses, theta, -min(rate, radius / steepest) * slope)
        rate = radius / steepest
        if found[0] < value:
            value, theta, risks = found
            radius *= 1.2
        else:
            radius /= 1.6
            if radius < SHORTEST:
                break
    return theta


def _best_trial(
    slopes: "_Slopes", masses: MassSet, theta: Vector, step: Vector
) -> tuple[float, Vector, Vector]:
    found = []
    for length in TRIALS:
        point = theta + length * step
        risks = slopes.risks(point)
        found.append((float(masses.support(risks)), point, risks))
    return min(found, key=lambda trial: trial[0])


class _Slopes:
    """Rows of each class as their scores' distances: risks and slopes at any log-weights."""

    def __init__(self, evidence: Evidence) -> None:
        order = np.argsort(evidence.labels, kind="stable")
        ends = np.cumsum(np.bincount(evidence.labels, minlength=evidence.n_classes))
        with np.errstate(divide="ignore"):
            logs = np.log(evidence.probabilities[order])
        self._parts, begin = [], 0
        for own, end in enumerate(ends):
            rows = slice(begin, end)
            # How far another class is behind the own one; -inf where only others are possible.
            with np.errstate(invalid="ignore"):
                lead = np.ascontiguousarray((logs[rows, own][:, None] - logs[rows]).T)
            lead[np.isnan(lead)] = np.inf  # both impossible: never in the way
            lead[own] = np.inf
            weight = evidence.sample_weight[order[rows]]
            self._parts.append((lead, weight / weight.sum()))
            begin = end

    def risks(self, theta: Vector) -> Vector:
        out = np.empty(len(theta))
        for own, (lead, share) in enumerate(self._parts):
            behind = (lead + (theta[own] - theta)[:, None]).min(axis=0) <= 0
            out[own] = share @ behind
        return out

    def jacobian(self, theta: Vector, width: float) -> Matrix:
        """Slopes of the class risks (rows) by the log-weights (columns)."""
        J = np.zeros((len(theta), len(theta)))
        for own, (lead, share) in enumerate(self._parts):
            distance = lead + (theta[own] - theta)[:, None]
            nearest = distance.min(axis=0)
            close = np.abs(nearest) < width
            rival = distance[:, close].argmin(axis=0)
            J[own] = np.bincount(rival, weights=share[close], minlength=len(theta))
            J[own, own] = -J[own].sum()
        return J / (2 * width)
