r"""How the level :math:`\alpha` of LabelCVaR is picked where the user names none.

At :math:`\alpha` no class counts more than :math:`1/\alpha` times its share: 1 is the standard
risk, and from the smallest prior downwards the set is the simplex, so that the worst class decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.arrays import ROUNDING, ArrayLike, Matrix, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.sets.cvar import LabelCVaR
from equipoise.sets.registry import DEFAULT_ALPHA
from equipoise.validation.numbers import check_number, check_word

# N_LEVELS: in a grid.
N_LEVELS = 10
# End of a grid without class priors: below it the worst of a hundred equal classes decides alone.
LOWEST_ALPHA = 0.01


def middle_alpha(prior: ArrayLike) -> float:
    """A level between standard and worst class: 0.1, unless no cap binds there.

    Examples
    --------
    >>> middle_alpha([0.95, 0.05]), middle_alpha([0.75, 0.25])
    (0.1, 0.5)
    """
    smallest = float(np.min(prior))
    if smallest < DEFAULT_ALPHA:
        return DEFAULT_ALPHA
    # The geometric mean of 1 and the level from which down no cap binds.
    return round(float(np.sqrt(smallest)), 2)


def alpha_grid(prior: ArrayLike | None = None) -> Vector:
    """Ten levels from standard to worst class, evenly spaced on a logarithmic scale.

    With a class prior the grid ends where no cap binds any more, and holds the level of
    :func:`middle_alpha`; without one it ends at 0.01.

    Examples
    --------
    >>> alpha_grid().round(2).tolist()
    [1.0, 0.6, 0.36, 0.22, 0.13, 0.08, 0.05, 0.03, 0.02, 0.01]
    >>> alpha_grid([0.95, 0.05]).round(2).tolist()
    [1.0, 0.72, 0.51, 0.37, 0.26, 0.19, 0.14, 0.1, 0.07, 0.05]
    """
    if prior is None:
        return np.geomspace(1.0, LOWEST_ALPHA, N_LEVELS)
    lowest = min(float(np.min(prior)), 0.5)
    grid, middle = np.geomspace(1.0, lowest, N_LEVELS), middle_alpha(prior)
    if middle > lowest:
        nearest = int(np.argmin(np.abs(np.log(grid / middle))))
        grid[np.clip(nearest, 1, N_LEVELS - 2)] = middle
    return grid


@dataclass(frozen=True)
class AlphaChoice:
    r"""How much robustness: which level to take, by the held-out risks of the rule of each level.

    The rule fitted for level :math:`b` has class risks :math:`R_b`, the robust risks
    :math:`V_a(R_b)` over the sets of all levels :math:`a`, and the regrets
    :math:`V_a(R_b) - \min_c V_a(R_c)`.

    Parameters
    ----------
    rule : {"regret", "price", "recall"}, default="regret"
        The level whose largest regret is the smallest (estimators take the least robust one within
        one standard error); or the lowest risk of the worst class among levels whose standard risk
        is within a price of the lowest; or the least robust level that reaches a recall of the
        worst class, or else comes closest.
    price : float in [0, 100]
        For ``"price"``: points of the standard risk that may be given up, 1 for 0.01.
    recall : float in (0, 1)
        For ``"recall"``: the recall of the worst class to be reached.
    alphas : array-like of float in (0, 1], optional
        The levels; by default those of :func:`alpha_grid`.
    verbose : int, default=0
        Above 0, a line is printed for each level.

    Examples
    --------
    >>> risks = [[0.05, 0.6], [0.1, 0.3], [0.2, 0.25]]
    >>> levels, prior = [1.0, 0.5, 0.1], [0.9, 0.1]
    >>> AlphaChoice().choose(risks, levels, prior)
    1
    >>> AlphaChoice("recall", recall=0.74).choose(risks, levels, prior)
    2
    """

    rule: str = "regret"
    price: float | None = None
    recall: float | None = None
    alphas: Any = None
    verbose: int = 0

    def __post_init__(self) -> None:
        check_word(self.rule, "rule", ("regret", "price", "recall"))
        for name, interval, what in (
            ("price", "[0, 100]", "the points of the standard risk that may be given up"),
            ("recall", "(0, 1)", "the recall of the worst class to be reached"),
        ):
            limit = getattr(self, name)
            if name == self.rule and limit is None:
                raise InvalidParameterError(f"rule={name!r} needs {name}, {what}; got None.")
            if limit is not None:
                check_number(limit, name, interval)
                if name != self.rule:
                    raise InvalidParameterError(
                        f"{name} is for rule={name!r}, got {name}={limit!r} and rule={self.rule!r}."
                    )

    def levels(self, prior: ArrayLike) -> Vector:
        """The levels to be compared, from the least robust to the most."""
        if self.alphas is None:
            p = np.asarray(prior, dtype=np.float64)
            return alpha_grid(p[p > 0] / p.sum())
        alphas = np.asarray(self.alphas)
        if alphas.ndim != 1 or alphas.size == 0 or alphas.dtype.kind not in "iuf":
            raise InvalidParameterError(
                f"alphas must be a sequence of at least one number, got {self.alphas!r}."
            )
        return np.unique([check_number(a, "alphas", "(0, 1]") for a in alphas.tolist()])[::-1]

    def choose(self, class_risks: ArrayLike, alphas: ArrayLike, prior: ArrayLike) -> int:
        """The index among the levels, from class risks of shape (n_alphas, n_classes)."""
        path = path_risks(class_risks, alphas, prior)
        standard, worst = path["standard_risk"], path["worst_class_risk"]
        if self.rule == "regret":
            return _first_lowest(path["largest_regret"])
        if self.price is not None:
            kept = np.flatnonzero(standard <= standard.min() + self.price / 100 + ROUNDING)
            return int(kept[_first_lowest(worst[kept])])
        reached = np.flatnonzero(1 - worst >= (self.recall or 0.0) - ROUNDING)
        return int(reached[0]) if len(reached) else _first_lowest(worst)


def path_risks(class_risks: ArrayLike, alphas: ArrayLike, prior: ArrayLike) -> dict[str, Vector]:
    """Standard risk, worst class risk and largest regret of the rule of each level.

    Classes without evaluation rows, whose risks are nan, and classes of prior 0 do not count.

    Examples
    --------
    >>> path = path_risks([[0.0, 0.4], [0.1, 0.2]], [1.0, 0.5], [0.5, 0.5])
    >>> path["largest_regret"].round(3).tolist()
    [0.2, 0.0]
    """
    risks, p = np.asarray(class_risks, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    evaluated = (p > 0) & ~np.isnan(risks).any(axis=0)
    risks, p = risks[:, evaluated], p[evaluated] / p[evaluated].sum()
    return {
        "standard_risk": risks @ p,
        "worst_class_risk": risks.max(axis=1),
        "largest_regret": _regrets(risks, np.asarray(alphas), p).max(axis=0),
    }


def _regrets(risks: Matrix, alphas: Vector, prior: Vector) -> Matrix:
    """By level (first), what each rule loses to the best for it."""
    sets = [LabelCVaR(alpha).resolve(prior) for alpha in alphas.tolist()]
    values = np.array([[float(each.support(row)) for row in risks] for each in sets])
    return np.asarray(values - values.min(axis=1, keepdims=True))


def _first_lowest(values: Vector) -> int:
    return int(np.flatnonzero(values <= values.min() + ROUNDING)[0])


def alpha_choice(uncertainty: Any) -> AlphaChoice | None:
    """How the level of a set, or of the goal of a set, is chosen; None where nothing is.

    Examples
    --------
    >>> alpha_choice(LabelCVaR("auto")).rule, alpha_choice(LabelCVaR(0.1))
    ('regret', None)
    """
    uncertainty = getattr(uncertainty, "uncertainty", uncertainty)
    alpha = uncertainty.alpha if isinstance(uncertainty, LabelCVaR) else None
    if isinstance(alpha, str) and alpha == "auto":
        return AlphaChoice()
    return alpha if isinstance(alpha, AlphaChoice) else None
