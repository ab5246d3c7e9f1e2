"""The examples of every registered uncertainty set: what tests over all sets go through."""

from equipoise.sets import SETS
from equipoise.sets.ball import DIVERGENCES, PriorBall


def every_example():
    """All examples: they resolve for two to a hundred classes of any prior."""
    return [recipe for kind in SETS.values() for recipe in kind.examples()]


def few_examples():
    """At most two of a kind, and a ball for each divergence: for slower tests."""
    others = [kind.examples()[:2] for kind in SETS.values() if kind is not PriorBall]
    balls = [PriorBall(0.2, divergence) for divergence in DIVERGENCES]
    return [recipe for some in others for recipe in some] + balls
