"""Class priors, weights and masses, and values by class."""

from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import (
    balanced_weights,
    check_prior,
    masses_of,
    normalize_weights,
    weights_of,
)

__all__ = [
    "ByClass",
    "balanced_weights",
    "check_prior",
    "masses_of",
    "normalize_weights",
    "weights_of",
]
