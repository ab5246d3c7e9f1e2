"""Uncertainty sets: recipes that users write down, and the numerical sets they resolve to."""

from equipoise.sets.ball import Ball, PriorBall
from equipoise.sets.base import MassSet, Uncertainty, check_point, check_risks
from equipoise.sets.box import PriorBox, WeightBox
from equipoise.sets.capped_simplex import CappedSimplex
from equipoise.sets.cvar import LabelCVaR, LabelHCVaR, WorstClass
from equipoise.sets.hull import FixedWeights, Hull, WeightHull
from equipoise.sets.ratio import RatioCone, WeightRatio
from equipoise.sets.registry import SETS, WORDS, as_uncertainty

__all__ = [
    "SETS",
    "WORDS",
    "Ball",
    "CappedSimplex",
    "FixedWeights",
    "Hull",
    "LabelCVaR",
    "LabelHCVaR",
    "MassSet",
    "PriorBall",
    "PriorBox",
    "RatioCone",
    "Uncertainty",
    "WeightBox",
    "WeightHull",
    "WeightRatio",
    "WorstClass",
    "as_uncertainty",
    "check_point",
    "check_risks",
]
