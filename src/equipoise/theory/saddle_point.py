r"""Gradient descent-ascent with a bound that holds: averages for a linear model in a ball.

.. math::

    \min_{\|\theta\| \le r} \; \max_{m \in M} \; L(\theta, m), \qquad
    L(\theta, m) = \sum_i m_i R_i(\theta) + \tfrac{\rho}{2} \|w\|^2

with :math:`R_i` the mean cross-entropy of class ``i``, :math:`w` the coefficients in
:math:`\theta` (intercepts are in the ball and carry no penalty) and :math:`\rho = 1 / (C n)`. From
:math:`\theta = 0` both sides take steps of :math:`D / (L \sqrt t)` along their gradients, and are
projected onto their own sets. The averages over :math:`T` rounds satisfy

.. math::

    |L(\bar\theta, \bar m) - L^*| \le b, \qquad
    \max_{m \in M} L(\bar\theta, m) - L^* \le b, \qquad
    b = \frac{3 (L_\theta D_\theta + L_m D_m)}{2 \sqrt T} .

The constants follow from the radius and the rows. Let :math:`l_i` be the mean length of the rows
:math:`(x, 1)` of class ``i``, times :math:`\sqrt 2` with more than two classes: :math:`R_i` is
:math:`l_i`-Lipschitz. Then

.. math::

    D_\theta = 2 r, \quad L_\theta = \max_{m \in M} \langle m, l \rangle + \rho r, \quad
    L_m = \bigl\| (\log k + l_i r)_i \bigr\|_2

are true, and so is the largest distance :math:`D_m` that the bounds of the masses allow.

References
----------
Xu, Dan, Khim and Ravikumar (2020), Appendix E: Algorithm 2 (with the masses projected onto their
own set) and its proposition; Algorithm 1 is the step of one side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from equipoise.arrays import Matrix, NDArray, Vector, norm
from equipoise.exceptions import InvalidParameterError
from equipoise.losses import as_trained
from equipoise.objectives import LinearObjective
from equipoise.objectives.registry import kind_of
from equipoise.objectives.row_order import by_class
from equipoise.sets import MassSet, as_uncertainty
from equipoise.solvers import Problem
from equipoise.solvers.descent_ascent import DescentAscent, StepConstants
from equipoise.threads import Workers
from equipoise.validation.labels import check_length, encode_labels, weights_and_totals
from equipoise.validation.numbers import check_count, check_flag, check_number
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior


@dataclass(frozen=True, eq=False)
class SaddleAverages:
    """Averages of descent-ascent, and how far from the saddle value they can be.

    Attributes
    ----------
    coef, intercept : ndarray
        The averaged parameters, as in :class:`equipoise.RobustLogisticRegression`.
    masses, class_risks : ByClass
        The averaged masses, and the cross-entropy of each class at the averaged parameters.
    value : float
        The penalised risk at both averages: within ``bound`` of the saddle value.
    objective : float
        The penalised robust risk of the averaged parameters: at most ``bound`` above its optimum in
        the ball.
    bound : float
        The bound of the proposition. It holds if the constants are true ones.
    constants : StepConstants
    rounds : int

    Examples
    --------
    >>> found = descent_ascent([[0.0], [1.0], [2.0]], [0, 0, 1], radius=3, rounds=100)
    >>> found.lower_bound < found.objective
    True
    """

    coef: Matrix
    intercept: Vector
    masses: ByClass
    class_risks: ByClass
    value: float
    objective: float
    bound: float
    constants: StepConstants
    rounds: int

    @property
    def lower_bound(self) -> float:
        """What the penalised robust risk is at least, anywhere in the ball."""
        return self.objective - self.bound


def descent_ascent(  # noqa: PLR0913  the rows, the problem, and the constants of the steps
    X: Any,
    y: Any,
    uncertainty: Any = None,
    *,
    radius: float | None = None,
    constants: StepConstants | None = None,
    rounds: int = 1000,
    C: float = 1.0,
    fit_intercept: bool = True,
    class_prior: Any = None,
    sample_weight: Any = None,
) -> SaddleAverages:
    r"""Gradient descent-ascent (Algorithm 2) for a linear model, with the bound of its proposition.

    For fits use :class:`equipoise.RobustLogisticRegression`, whose default solver needs a few
    evaluations where this one needs thousands; with ``solver="descent-ascent"`` it guesses the
    constants, and no bound is promised.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Features. Scale them: constants grow with the lengths of the rows.
    y : array-like of shape (n_rows,)
        Labels.
    uncertainty : Uncertainty, str or None
        The set of weightings.
    radius : float > 0, optional
        The radius :math:`r` of the ball of parameters, intercepts included. The constants follow
        from it. The bound is about the best parameters *in the ball*.
    constants : StepConstants, optional
        Diameters and Lipschitz constants, in place of ``radius``; the ball then has half the
        diameter of the parameters. The bound holds if they are true, which is not checked.
    rounds : int, default=1000
        The number :math:`T` of rounds.
    C : float > 0, default=1.0
        Inverse strength of the penalty; infinity for none.
    fit_intercept : bool, default=True
    class_prior : dict by class or array-like of shape (n_classes,), optional
        Class frequencies of the population, the shares of the rows if not given.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.

    Examples
    --------
    >>> from equipoise.datasets import make_power_imbalance
    >>> X, y = make_power_imbalance(500, p=0.8, random_state=0)
    >>> found = descent_ascent(X, y, "worst_class", radius=5, rounds=2_000)
    >>> round(found.bound, 2), abs(found.value - found.objective) < found.bound
    (0.89, True)
    """
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    classes, labels = encode_labels(y)
    check_length(labels, rows.shape[0], name="y", of="X")
    weights, totals = weights_and_totals(sample_weight, labels, classes)
    prior = totals / totals.sum() if class_prior is None else check_prior(class_prior, classes)
    masses = as_uncertainty(uncertainty, name="uncertainty").resolve(prior, classes)
    ridge = 1 / (check_number(C, "C", "(0, inf]") * float(totals.sum()))
    count = check_count(rounds, "rounds")
    column = check_flag(fit_intercept, "fit_intercept")
    slopes = _slopes(rows, labels, weights, fit_intercept=column)
    chosen = _constants(radius, constants, slopes, masses, ridge)
    objective = _raw_objective(rows, labels, weights, fit_intercept=column)
    problem, solver = Problem(objective, masses, ridge), DescentAscent(chosen)
    iterate = solver.start(problem, np.zeros(objective.size), masses.project(prior))
    for _ in range(count):
        iterate = solver.step(problem, iterate)
    theta, mass = (total / count for total in iterate.sums)
    state = objective.evaluate(theta)
    coef, intercept = objective.unpack(theta)
    return SaddleAverages(
        coef=coef,
        intercept=intercept,
        masses=ByClass(mass, classes),
        class_risks=ByClass(state.risks, classes),
        value=problem.lagrangian(state, mass),
        objective=problem.value(state),
        bound=chosen.bound(count),
        constants=chosen,
        rounds=count,
    )


def _raw_objective(
    rows: Any, labels: NDArray[Any], weights: Vector, *, fit_intercept: bool
) -> LinearObjective:
    """Class risks in the units of the user's columns, so that the ball is one in these units."""
    totals = np.bincount(labels, weights=weights).astype(np.float64)
    kernel = as_trained("cross_entropy").kernel(len(totals))
    order, bounds, shares = by_class(labels, weights, totals)
    features = kind_of(rows).in_order(rows, order, kernel.n_scores, fit_intercept)
    return LinearObjective(features, kernel, bounds, shares, Workers())


def _slopes(rows: Any, labels: NDArray[Any], weights: Vector, *, fit_intercept: bool) -> Vector:
    """The Lipschitz constants :math:`l_i` of the class risks in the parameters."""
    squares = rows.multiply(rows).sum(axis=1) if issparse(rows) else np.square(rows).sum(axis=1)
    lengths = np.sqrt(np.asarray(squares).ravel() + fit_intercept)
    means = np.bincount(labels, weights=weights * lengths) / np.bincount(labels, weights=weights)
    # The probabilities less the indicator of the true class are no longer than the root of two;
    # two classes have one score, whose slope is at most one.
    return np.asarray(means * (np.sqrt(2) if len(means) > 2 else 1.0))


def _constants(
    radius: Any, constants: StepConstants | None, slopes: Vector, masses: MassSet, ridge: float
) -> StepConstants:
    """The constants that are given, or true ones for a ball of the radius."""
    if (radius is None) == (constants is None):
        raise InvalidParameterError(
            "descent_ascent takes either radius or constants, got "
            f"radius={radius!r} and constants={constants!r}."
        )
    if constants is not None:
        return constants
    reach = check_number(radius, "radius", "(0, inf)")
    lower, upper = masses.bounds
    largest_risks = np.log(len(slopes)) + slopes * reach
    return StepConstants(
        theta_diameter=2 * reach,
        theta_slope=float(masses.support(slopes)) + ridge * reach,
        # Two points of the simplex are no further apart than two corners.
        mass_diameter=min(float(np.sqrt(2)), norm(upper - lower)),
        mass_slope=norm(largest_risks),
    )
