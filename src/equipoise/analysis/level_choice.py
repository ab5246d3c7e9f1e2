r"""The two numbers of LHCVaR, ``c`` and ``kappa``, chosen on held-out rows.

The levels are :math:`\alpha_i = c \, p_i^{1/\kappa} / \sum_j p_j^{1/\kappa}`: ``c`` is their sum,
and ``kappa`` says how even they are. With ``kappa=1`` the set is the whole simplex whatever ``c``;
a grid holds each set once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from equipoise.arrays import ArrayLike, Matrix, NDArray, Vector
from equipoise.decisions.alphas import AlphaChoice
from equipoise.estimators import RobustLogisticRegression
from equipoise.exceptions import InactiveCapsWarning, InvalidParameterError
from equipoise.extras import require
from equipoise.risks import ClassRisks, class_risks
from equipoise.sets import LabelHCVaR
from equipoise.validation.numbers import check_count, check_seed
from equipoise.weights.by_class import ByClass

# Sums of the levels, and how even they are: from the worst class (kappa = 1) to levels that hardly
# differ, on logarithmic scales.
_SUMS, _KAPPAS = (1.0, 0.5, 0.2), (1.0, 2.0, 4.0, 16.0)
# Decimal digits in which the largest masses of two sets differ, or they are one set.
_DIGITS = 12
# Risks that differ by less are equal.
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class LevelChoice:
    """What :func:`choose_levels` found, one entry per set of the grid.

    Attributes
    ----------
    goal : LabelHCVaR
        The set that was chosen.
    chosen : int
        Its position in the grid.
    c, kappa : ndarray of shape (n_sets,)
        The grid: every set once, those of the largest ``c`` first.
    class_risks : ndarray of shape (n_sets, n_classes)
        Shares of errors by class, cross-validated.
    standard_risk, worst_class_risk, largest_regret : ndarray of shape (n_sets,)
        The largest regret is over the sets of the grid.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> found = choose_levels(*load_iris(return_X_y=True), kappa=[1, 4], cv=3)
    >>> found.c.tolist(), found.kappa.tolist()
    ([1.0], [1.0])
    """

    goal: LabelHCVaR
    chosen: int
    c: Vector
    kappa: Vector
    class_risks: Matrix
    standard_risk: Vector
    worst_class_risk: Vector
    largest_regret: Vector

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Columns by name, without the class risks."""
        names = ("c", "kappa", "standard_risk", "worst_class_risk", "largest_regret")
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> Any:
        """The columns of :meth:`to_dict` as a pandas DataFrame."""
        return require("pandas", extra="report").DataFrame(self.to_dict())


def choose_levels(  # noqa: PLR0913  data, the grid, the rule, and how sets are compared
    X: Any,
    y: ArrayLike,
    *,
    c: Sequence[float] = _SUMS,
    kappa: Sequence[float] = _KAPPAS,
    rule: str = "regret",
    price: float | None = None,
    recall: float | None = None,
    estimator: RobustLogisticRegression | None = None,
    sample_weight: ArrayLike | None = None,
    cv: int = 5,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> LevelChoice:
    r"""Choose ``c`` and ``kappa`` of :class:`equipoise.LabelHCVaR` by cross-validated class errors.

    With :math:`V_a(R)` the robust risk over the set :math:`a` of the grid and :math:`R_b` the class
    risks of the rule fitted for the set :math:`b`,

    - ``"regret"`` takes the smallest :math:`\max_a \, (V_a(R_b) - \min_d V_a(R_d))`;
    - ``"price"`` the lowest risk of the worst class whose standard risk is at most ``price`` points
      above the lowest;
    - ``"recall"`` the lowest standard risk among sets by which every class has this ``recall``, or
      else the lowest risk of the worst class.

    Of equal ones the first is taken. For one ``alpha`` in place of two numbers see
    :class:`equipoise.RobustnessCV`, which also allows for noise: sets of this grid have no order
    by robustness.

    Parameters
    ----------
    X, y : array-like
        Rows and labels.
    c, kappa : sequence of float
        The values whose pairs are compared.
    rule, price, recall
        As in :class:`equipoise.RobustnessCV`.
    estimator : RobustLogisticRegression, optional
        Settings of the fits (``C``, ``class_prior``, ...); its set is replaced.
    sample_weight : array-like, optional
        Weights of the rows, in fits and risks.
    cv : int, default=5
        The number of stratified, shuffled folds.
    random_state : int, RandomState or None, default=None
        Deals out the folds; None is 0.
    n_jobs : int, optional
        Folds fitted at a time.

    Examples
    --------
    >>> from equipoise.datasets import make_power_imbalance
    >>> X, y = make_power_imbalance(2_000, p=0.9, random_state=0)
    >>> found = choose_levels(X, y, c=[1], kappa=[1, 2, 8])
    >>> bool(found.standard_risk[0] > found.standard_risk[2])  # the worst class costs the others
    True
    >>> found.goal
    LabelHCVaR(c=1.0, kappa=8.0)
    """
    AlphaChoice(rule, price=price, recall=recall)  # checks the rule and its number
    base = RobustLogisticRegression() if estimator is None else clone(estimator)
    labels = np.asarray(y)
    options: dict[str, Any] = {"sample_weight": sample_weight, "class_prior": base.class_prior}
    prior = class_risks(labels, labels, **options).prior
    recipes = _grid(c, kappa, prior)
    count, seed = check_count(cv, "cv", 2), check_seed(random_state)
    folds = StratifiedKFold(count, shuffle=True, random_state=seed)
    how: dict[str, Any] = {
        "cv": folds,
        "n_jobs": n_jobs,
        "params": {"sample_weight": sample_weight},
    }
    found = []
    for recipe in recipes:
        fit = clone(base).set_params(goal=recipe)
        with warnings.catch_warnings():
            # A set without caps belongs to the grid.
            warnings.simplefilter("ignore", InactiveCapsWarning)
            predicted = cross_val_predict(fit, X, labels, **how)
        found.append(class_risks(labels, predicted, **options))
    standard = np.array([risks.standard() for risks in found])
    worst = np.array([risks.worst() for risks in found])
    regrets = _largest_regrets(found, recipes)
    chosen = _chosen(standard, worst, regrets, price, recall)
    return LevelChoice(
        goal=recipes[chosen],
        chosen=chosen,
        c=np.array([recipe.c for recipe in recipes]),
        kappa=np.array([recipe.kappa for recipe in recipes]),
        class_risks=np.array([np.asarray(risks) for risks in found]),
        standard_risk=standard,
        worst_class_risk=worst,
        largest_regret=regrets,
    )


def _grid(c: Sequence[float], kappa: Sequence[float], prior: ByClass) -> list[LabelHCVaR]:
    """The sets of all pairs, each once."""
    recipes: dict[bytes, LabelHCVaR] = {}
    sums, kappas = (np.sort(np.asarray(each, dtype=np.float64)).tolist() for each in (c, kappa))
    for total, evenness in product(reversed(sums), kappas):
        recipe = LabelHCVaR(c=total, kappa=evenness)
        largest = np.minimum(recipe.resolve(np.asarray(prior), prior.classes).upper, 1)
        recipes.setdefault(np.round(largest, _DIGITS).tobytes(), recipe)
    if not recipes:
        raise InvalidParameterError(
            f"c and kappa must hold at least one number each, got {c!r} and {kappa!r}."
        )
    return list(recipes.values())


def _largest_regrets(found: Sequence[ClassRisks], recipes: Sequence[LabelHCVaR]) -> Vector:
    """By rule, the most that it loses to the best rule for any set."""
    values = np.array([[risks.robust(recipe) for risks in found] for recipe in recipes])
    return np.asarray((values - values.min(axis=1, keepdims=True)).max(axis=0))


def _chosen(
    standard: Vector, worst: Vector, regrets: Vector, price: float | None, recall: float | None
) -> int:
    """The position of the set that the rule takes; the rule is that whose number is given."""
    values, kept = regrets, np.ones(len(regrets), dtype=bool)
    if price is not None:
        values, kept = worst, standard <= standard.min() + price / 100 + _SAME
    elif recall is not None:
        reached = 1 - worst >= recall - _SAME
        values, kept = (standard, reached) if reached.any() else (worst, ~reached)
    lowest = values[kept].min()
    return int(np.flatnonzero(kept & (values <= lowest + _SAME))[0])
