"""The sets of the paper: each class weight is capped at an inverse level, or not at all."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np

from equipoise.arrays import ArrayLike, Vector
from equipoise.exceptions import InvalidParameterError
from equipoise.sets.base import Uncertainty
from equipoise.sets.capped_simplex import CappedSimplex, check_sums
from equipoise.validation.numbers import check_interval, check_number, check_numbers
from equipoise.weights.priors import masses_of, named_prior


class WorstClass(Uncertainty):
    r"""All weightings: the robust risk is the largest class risk.

    .. math:: M = \{ m \ge 0 : \textstyle\sum_i m_i = 1 \}.

    Examples
    --------
    >>> float(WorstClass().resolve([0.9, 0.1]).support([0.2, 0.6]))
    0.6
    """

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> CappedSimplex:
        p, _ = named_prior(prior, classes)
        return CappedSimplex(np.zeros(len(p)), np.ones(len(p)))


class LabelCVaR(Uncertainty):
    r"""Label conditional value at risk: no class weight above :math:`1/\alpha`.

    .. math:: M = \{ m \ge 0 : m_i \le p_i / \alpha, \; \textstyle\sum_i m_i = 1 \}.

    Use it as the default: with ``alpha=0.1`` no class counts more than ten times its share.
    ``alpha=1`` is the standard risk, and an alpha up to the smallest class prior the risk of the
    worst class. Definition 3 of the paper.

    Parameters
    ----------
    alpha : float in (0, 1] or "auto"
        The largest class weight is ``1 / alpha``. With ``"auto"``, ``RobustLogisticRegression``,
        ``TunedDecisionClassifier`` and ``RobustClassifier`` choose it on held-out rows, as
        ``RobustnessCV`` does with ``rule="regret"``: the least robust level whose largest regret is
        within one standard error of the smallest.

    Examples
    --------
    >>> mass_set = LabelCVaR(alpha=0.5).resolve([0.9, 0.1])
    >>> round(float(mass_set.support([0.2, 0.6])), 12)
    0.28
    """

    def __init__(self, alpha: Any) -> None:
        self.alpha = alpha

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(1.0), cls(0.5), cls(0.01)]

    @property
    def is_open(self) -> bool:
        return not isinstance(self.alpha, Real)

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> CappedSimplex:
        p, _ = named_prior(prior, classes)
        if isinstance(self.alpha, str) and self.alpha == "auto":
            raise InvalidParameterError(
                'alpha must be a number in (0, 1] here, got "auto": RobustLogisticRegression, '
                "TunedDecisionClassifier, RobustClassifier and RobustnessCV alone choose it, on "
                "held-out rows."
            )
        alpha = check_number(self.alpha, "alpha", "(0, 1]")
        return CappedSimplex(np.zeros(len(p)), _caps(p, alpha))


class LabelHCVaR(Uncertainty):
    r"""Label heterogeneous conditional value at risk: a level for each class.

    .. math:: M = \{ m \ge 0 : m_i \le p_i / \alpha_i, \; \textstyle\sum_i m_i = 1 \}.

    Definition 4 of the paper. Give either the levels, or the paper's two numbers for

    .. math:: \alpha_i = c \, p_i^{1/\kappa} / \textstyle\sum_j p_j^{1/\kappa}.

    Parameters
    ----------
    c : float in (0, 1], optional
        Sum of the levels; 1 when only ``kappa`` is given.
    kappa : float > 0, optional
        How even the levels are: large values treat all classes alike. 1 when only ``c`` is given,
        which is the worst class risk for every ``c``.
    alphas : float, dict by class or array, optional
        The levels themselves, each above 0, one for every class. The set is empty unless
        :math:`\sum_i p_i / \alpha_i \ge 1`.

    Examples
    --------
    >>> recipe = LabelHCVaR(alphas={"common": 0.9, "rare": 0.4})
    >>> recipe.resolve([0.9, 0.1], ["common", "rare"]).upper
    array([1.  , 0.25])
    """

    def __init__(
        self, *, c: float | None = None, kappa: float | None = None, alphas: Any = None
    ) -> None:
        self.c = c
        self.kappa = kappa
        self.alphas = alphas

    @classmethod
    def examples(cls) -> list[Self]:
        return [cls(kappa=2), cls(alphas=0.7), cls(c=0.5)]

    def resolve(self, prior: ArrayLike, classes: ArrayLike | None = None) -> CappedSimplex:
        p, names = named_prior(prior, classes)
        by_formula = self.c is not None or self.kappa is not None
        if by_formula == (self.alphas is not None):
            raise InvalidParameterError(
                "LabelHCVaR takes either alphas, or c and kappa (one of them is enough), "
                f"got c={self.c!r}, kappa={self.kappa!r}, alphas={self.alphas!r}."
            )
        if by_formula:
            alphas = self._by_formula(p)
        else:
            alphas = check_numbers(self.alphas, names, name="alphas")
            check_interval(alphas, names, "alphas", "(0, inf)")
        none, caps = np.zeros(len(p)), _caps(p, alphas)
        check_sums(none, caps, ("", "prior / alpha"), remedy=": lower the alphas")
        return CappedSimplex(none, caps)

    def _by_formula(self, prior: Vector) -> Vector:
        c = check_number(1.0 if self.c is None else self.c, "c", "(0, 1]")
        kappa = check_number(1.0 if self.kappa is None else self.kappa, "kappa", "(0, inf)")
        present = prior > 0
        # Logarithms keep the powers apart where kappa is small and they would underflow.
        power = np.log(prior[present]) / kappa
        power = np.exp(power - power.max())
        levels = np.ones_like(prior)
        levels[present] = c * power / power.sum()
        return levels


def _caps(prior: Vector, alphas: Vector | float) -> Vector:
    """Largest masses under weights of at most ``1 / alpha``."""
    # The smallest normal float stands for levels whose inverse would overflow.
    return masses_of(1 / np.maximum(alphas, np.finfo(np.float64).tiny), prior)
