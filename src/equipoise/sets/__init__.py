"""Uncertainty sets: recipes that users write down, and the numerical sets they resolve to."""

from equipoise.sets.alphas import (
    AlphaChoice,
    alpha_choice,
    alpha_grid,
    middle_alpha,
    path_risks,
)
from equipoise.sets.ball import Ball, PriorBall
from equipoise.sets.base import MassSet, Uncertainty
from equipoise.sets.box import PriorBox, WeightBox
from equipoise.sets.capped_simplex import CappedSimplex
from equipoise.sets.cvar import LabelCVaR, LabelHCVaR, WorstClass
from equipoise.sets.hull import FixedWeights, Hull, WeightHull
from equipoise.sets.registry import SETS, WORDS, as_uncertainty

__all__ = [
    "SETS",
    "WORDS",
    "AlphaChoice",
    "Ball",
    "CappedSimplex",
    "FixedWeights",
    "Hull",
    "LabelCVaR",
    "LabelHCVaR",
    "MassSet",
    "PriorBall",
    "PriorBox",
    "Uncertainty",
    "WeightBox",
    "WeightHull",
    "WorstClass",
    "alpha_choice",
    "alpha_grid",
    "as_uncertainty",
    "middle_alpha",
    "path_risks",
]
