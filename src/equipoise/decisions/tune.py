"""Decision weights for held-out rows, and those that were tuned without each fold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from equipoise.arrays import Mask, Matrix, Vector
from equipoise.decisions.held_out import HeldOut
from equipoise.exceptions import UnattainableError
from equipoise.goals import Criterion
from equipoise.goals.labelled_predictions import Predictions

# POOLING: strength of the shrinkage of decision weights towards the goal's centre, in rows of a
# class times the goal's value for a factor of e: decided on splits 0 and 1 of 96 tables, where 0.5
# and 2 differ by half a point at most, and confirmed on 2 and 3 (docs/studies/tuner.txt).
POOLING = 2.0
# _NEXT_TO_NOTHING: weight of a row of a class that the population lacks, in rows.
_NEXT_TO_NOTHING = 1e-100


@dataclass(frozen=True, eq=False)
class Tuned:
    """A decision rule, on the scale of the predictions that it was tuned on.

    ``by_fold`` are the rules that were tuned without each fold, of shape (n_folds, n_classes);
    empty where fewer rows cannot show what all of them do.
    """

    rule: Vector | Matrix
    by_fold: Matrix
    pooling: float


def tune(
    held_out: HeldOut, criterion: Criterion, few: Mask, *, prior: Vector, drop: bool = False,
    pooling: float = POOLING, seed: int = 0,
) -> Tuned:  # fmt: skip
    """The decision weights that are the best for a criterion, and those without each fold.

    The criterion is of the classes that have rows enough. Those of too ``few`` are not tuned: they
    are never predicted if ``drop``, and otherwise have the weight 1. Weights have a mean of one
    over the ``prior``.
    """
    rows, fold = held_out.predictions, held_out.fold
    among = on_scale_of(rows, prior).among(~few)
    own = fold[~few[rows.labels]]
    masks = [np.ones(len(own), dtype=bool), *(own != each for each in range(fold.max() + 1))]
    found = criterion.tune(among, masks[:1], pooling=pooling, seed=seed)
    # Where all rows show what is promised, and fewer do not, nothing is evaluated.
    with suppress(UnattainableError):
        found += criterion.tune(among, masks[1:], pooling=pooling, seed=seed)
    rules = [_among_all(each, few, prior, drop=drop) for each in found]
    return Tuned(rules[0], np.array(rules[1:]), pooling)


def on_scale_of(rows: Predictions, prior: Vector) -> Predictions:
    """The rows with weights under which the classes have the frequencies of the population."""
    totals = rows.totals
    factors = np.divide(prior, totals, out=np.zeros_like(prior), where=totals > 0)
    # A class that the population lacks still has recalls.
    factors[(prior == 0) & (totals > 0)] = _NEXT_TO_NOTHING
    return replace(rows, sample_weight=rows.sample_weight * factors[rows.labels])


def known_rule(rule: Vector | Matrix, dropped: Mask, n_folds: int) -> Tuned:
    """A rule that is known, and so the same without any fold; dropped classes have weight 0."""
    own = rule * ~dropped if rule.ndim == 1 else rule
    return Tuned(own, np.array([own] * n_folds), 0.0)


def _among_all(rule: Vector, few: Mask, prior: Vector, *, drop: bool) -> Vector:
    """Weights of some classes as those of all; untuned classes have weight 1, or 0 if dropped."""
    found = np.full(len(few), 0.0 if drop else 1.0)
    own = prior[~few]
    found[~few] = rule * (own.sum() / (own @ rule))
    return found
