"""Data to try things on: bundled, drawn from a model, or already on the machine."""

from equipoise.datasets.covtype import fetch_covtype
from equipoise.datasets.debian import load_debian_packages
from equipoise.datasets.power_imbalance import PowerImbalance, make_power_imbalance
from equipoise.datasets.thyroid import load_thyroid

__all__ = [
    "PowerImbalance",
    "fetch_covtype",
    "load_debian_packages",
    "load_thyroid",
    "make_power_imbalance",
]
