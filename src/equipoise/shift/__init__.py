"""Class frequencies that change: learned from unlabelled rows, with their uncertainty.

Start from :func:`estimate_prior`, which takes a fitted classifier or Pipeline, and ``adapt`` of its
result; classifiers of ours have a method ``adapt`` of their own.
"""

from equipoise.shift.adapted import AdaptedClassifier
from equipoise.shift.calibration import CalibratedProbabilities, calibrate
from equipoise.shift.prior_estimate import PriorEstimate, estimate_prior
from equipoise.shift.prior_monitor import MonitorStep, PriorMonitor

__all__ = [
    "AdaptedClassifier",
    "CalibratedProbabilities",
    "MonitorStep",
    "PriorEstimate",
    "PriorMonitor",
    "calibrate",
    "estimate_prior",
]
