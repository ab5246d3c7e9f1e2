"""Class priors, weights and masses, and values by class."""

from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import (
    check_prior,
    masses_of,
    named_prior,
    normalize_weights,
    weights_of,
)

__all__ = [
    "ByClass",
    "check_prior",
    "masses_of",
    "named_prior",
    "normalize_weights",
    "weights_of",
]
