"""Class frequencies that change: learned from unlabelled rows, with their uncertainty.

Start from :func:`estimate_prior`, which takes a fitted classifier or Pipeline, or probabilities.
"""

from equipoise.shift.calibration import Calibration, calibrate
from equipoise.shift.prior_estimate import PriorEstimate, estimate_prior

__all__ = ["Calibration", "PriorEstimate", "calibrate", "estimate_prior"]
