"""Boxes: a range for every class weight, or for every class prior at test time."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from equipoise.arrays import ArrayLike, NDArray, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.sets.base import Uncertainty
from equipoise.sets.capped_simplex import CappedSimplex, check_sums
from equipoise.validation.numbers import check_interval, check_numbers
from equipoise.weights.priors import masses_of, named_prior

# Weight that stands for no cap: finite, so that a class of prior 0 has a cap of 0.
_NO_CAP = 1e300


class WeightBox(Uncertainty):
    r"""Class weights within given ranges.

    .. math:: M = \{ m : p_i \, \text{lower}_i \le m_i \le p_i \, \text{upper}_i, \;
              \textstyle\sum_i m_i = 1 \}.

    Parameters
    ----------
    lower, upper : float, dict by class or array, optional
        Ranges of the weights. A class that a dict leaves out may have any weight.

    Examples
    --------
    >>> mass_set = WeightBox(upper={"rare": 3.0}).resolve([0.9, 0.1], ["common", "rare"])
    >>> mass_set.maximize([0.2, 0.6]).round(12)
    array([0.7, 0.3])
    """

    def __init__(self, lower: Any = None, upper: Any = None) -> None:
        self.lower = lower
        self.upper = upper

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(0.5, 2.0), cls(lower=0.9)]

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> CappedSimplex:
        p, names = named_prior(prior, classes)
        low, up = _ranges(self.lower, self.upper, names, np.inf)
        floors, caps = masses_of(low, p), masses_of(np.minimum(up, _NO_CAP), p)
        check_sums(floors, caps, ("prior * lower", "prior * upper"))
        return CappedSimplex(floors, caps)


class PriorBox(Uncertainty):
    r"""Class priors at test time within given ranges, as in 'between 0.1% and 5%'.

    .. math:: M = \{ m : \text{lower}_i \le m_i \le \text{upper}_i, \;
              \textstyle\sum_i m_i = 1 \}.

    Use it where you know the range of the class frequencies of new rows. If only the frequencies
    change, and not the features of each class, a test prior is a mass.

    Parameters
    ----------
    lower, upper : float, dict by class or array, optional
        Ranges of the priors, inside [0, 1]. A class that a dict leaves out may have any prior.

    Examples
    --------
    >>> recipe = PriorBox(lower={"rare": 0.001}, upper={"rare": 0.05})
    >>> mass_set = recipe.resolve([0.9, 0.1], ["common", "rare"])
    >>> mass_set.maximize([0.2, 0.6]).round(12)
    array([0.95, 0.05])
    """

    def __init__(self, lower: Any = None, upper: Any = None) -> None:
        self.lower = lower
        self.upper = upper

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(0.01, 0.6), cls(upper=0.9)]

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> CappedSimplex:
        _, names = named_prior(prior, classes)
        return CappedSimplex(*_ranges(self.lower, self.upper, names, 1))


def _ranges(lower: Any, upper: Any, classes: NDArray[Any], most: float) -> tuple[Vector, Vector]:
    """Floors and caps per class, between 0 and ``most``, which stand for what is not given."""
    low, up = (
        check_interval(
            check_numbers(free if limit is None else limit, classes, name=name, default=free),
            classes,
            name,
            f"[0, {most}]",
        )
        for limit, name, free in ((lower, "lower", 0), (upper, "upper", most))
    )
    if np.any(low > up):
        bad = int(np.argmax(low > up))
        raise InvalidParameterError(
            f"lower must not exceed upper, got lower = {low[bad]:.6g} and upper = {up[bad]:.6g} "
            f"for class {classes.tolist()[bad]!r}."
        )
    return low, up
