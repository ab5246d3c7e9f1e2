"""Class frequencies that change: learned from unlabelled rows, with their uncertainty.

Start from :func:`estimate_prior` and :func:`adapt`, which take a fitted classifier or Pipeline.
"""

from equipoise.shift.adapted import AdaptedClassifier, adapt
from equipoise.shift.calibration import CalibratedProbabilities, calibrate
from equipoise.shift.prior_estimate import PriorEstimate, estimate_prior
from equipoise.shift.prior_monitor import MonitorStep, PriorMonitor

__all__ = [
    "AdaptedClassifier",
    "CalibratedProbabilities",
    "MonitorStep",
    "PriorEstimate",
    "PriorMonitor",
    "adapt",
    "calibrate",
    "estimate_prior",
]
