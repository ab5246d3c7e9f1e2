"""Every uncertainty set a second time, in the words of CVXPY: what tests compare it with."""

from functools import singledispatch

import cvxpy as cp
import numpy as np

from equipoise.sets import (
    FixedWeights,
    LabelCVaR,
    LabelHCVaR,
    PriorBall,
    PriorBox,
    WeightBox,
    WeightHull,
    WeightRatio,
    WorstClass,
)
from equipoise.weights.priors import mass_of_weighting


@singledispatch
def constraints(recipe, mass, prior):
    """What a set of masses demands beside the simplex; ``mass`` is a variable of CVXPY."""
    raise NotImplementedError(f"{recipe!r} does not state its constraints.")


@constraints.register
def _(recipe: WorstClass, mass, prior):
    return []


@constraints.register
def _(recipe: LabelCVaR, mass, prior):
    return [mass <= prior / recipe.alpha]


@constraints.register
def _(recipe: LabelHCVaR, mass, prior):
    levels = recipe.alphas
    if levels is None:
        power = prior ** (1 / (recipe.kappa or 1.0))
        levels = (recipe.c or 1.0) * power / power.sum()
    return [mass <= prior / levels]


@constraints.register
def _(recipe: WeightBox, mass, prior):
    lower = 0.0 if recipe.lower is None else recipe.lower
    caps = [] if recipe.upper is None else [mass <= recipe.upper * prior]
    return [mass >= lower * prior, *caps]


@constraints.register
def _(recipe: PriorBox, mass, prior):
    lower = 0.0 if recipe.lower is None else recipe.lower
    return [mass >= lower, mass <= (1.0 if recipe.upper is None else recipe.upper)]


@constraints.register
def _(recipe: WeightRatio, mass, prior):
    weights = cp.multiply(mass, 1 / prior)
    return [cp.max(weights) <= recipe.ratio * cp.min(weights)]


@constraints.register
def _(recipe: FixedWeights, mass, prior):
    return [mass == mass_of_weighting(recipe.weights, prior, np.arange(len(prior)), name="")]


@constraints.register
def _(recipe: WeightHull, mass, prior):
    # Of two weightings, as in the examples.
    names = np.arange(len(prior))
    one, other = (mass_of_weighting(q, prior, names, name="") for q in recipe.weightings)
    way = other - one
    share = (mass - one) @ way / max(way @ way, np.finfo(np.float64).tiny)
    return [share >= 0, share <= 1, mass == one + cp.multiply(share, way)]


@constraints.register
def _(recipe: PriorBall, mass, prior):
    if recipe.radius == 0:
        return [mass == prior]
    distance = {
        "kl": cp.sum(cp.kl_div(mass, prior)),
        "chi2": cp.sum(cp.multiply(cp.square(mass - prior), 1 / prior)),
        "tv": cp.norm1(mass - prior) / 2,
        "l2": cp.norm2(mass - prior),
    }
    return [distance[recipe.divergence] <= recipe.radius]
