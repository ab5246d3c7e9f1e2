"""Robust logistic regression with its regularisation chosen on held-out rows."""

from numbers import Integral
from typing import Any

import numpy as np

from equipoise.arrays import Vector
from equipoise.decisions import Splitting, select
from equipoise.decisions.tune import POOLING
from equipoise.estimators.linear_paths import adopt, evaluated_along, path_rows
from equipoise.estimators.logistic import LogisticModel, RobustLogisticRegression
from equipoise.estimators.parameters import documented
from equipoise.exceptions import InvalidParameterError
from equipoise.goals import CostMatrix, as_goal
from equipoise.goals.registry import as_training_set
from equipoise.validation.numbers import check_count, check_number, check_seed


@documented
class RobustLogisticRegressionCV(LogisticModel):
    r"""Worst-case logistic regression whose penalty ``C`` is chosen on held-out rows.

    :class:`RobustLogisticRegression` with a penalty that is chosen on held-out rows. Use it where
    ``C`` is not known. In every fold the model is fitted for all values of ``C``, and the goal is
    evaluated on the predicted classes of the held-out rows.
    The strongest penalty within one standard error of the best is fitted to all rows,

    .. math:: \min_{w, b} \; \max_{q \in Q} \; \sum_i q_i p_i R_i(w, b) + \frac{\|w\|^2}{2 C n}

    with :math:`R_i` the mean cross-entropy over the rows of class ``i``, :math:`p_i` the class
    prior and :math:`Q` the set of class weights. :func:`~equipoise.population_proba` returns
    probabilities on the scale of the population.

    Parameters
    ----------
    $goal_set
    Cs : int or array-like of float, default=10
        Values of ``C``, or the number of values, evenly spaced on a logarithmic scale from 1e-4 to
        1e4, as in scikit-learn.
    selection_goal : Uncertainty, str, metric or None, default=None
        The goal that is evaluated on held-out rows, with zero-one class risks: a set of weightings,
        or a metric. None is ``goal`` itself.
    $fit
    cv : int, float, splitter or iterable, default=5
        5 is five folds, stratified and shuffled, with equal rows kept together. A float is the
        share of the rows to hold out; a splitter must test no row twice.
    $n_jobs
    $random_state
    $verbose

    Attributes
    ----------
    C_ : float
        The value that was chosen.
    Cs_ : ndarray of shape (n_values,)
        The values that were compared, ascending.
    goal_values_ : ndarray of shape (n_values,)
        The goal on held-out rows for each value: the robust risk with zero-one loss, or one minus
        the metric.
    goal_value_errors_ : ndarray of shape (n_values,)
        Standard errors of the differences from the smallest goal value, by the jackknife.
    $linear_attributes

    Examples
    --------
    >>> from equipoise import RobustLogisticRegressionCV
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> clf = RobustLogisticRegressionCV("worst_class", Cs=[0.01, 1, 100], cv=3).fit(X, y)
    >>> clf.goal_values_.round(2).tolist(), clf.C_  # the error of the worst class
    ([0.56, 0.37, 0.2], 100.0)
    """

    def __init__(
        self,
        goal: Any = None,
        *,
        Cs: Any = 10,
        selection_goal: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str = "auto",
        decisions: str = "argmax",
        pooling: float = POOLING,
        cv: Any = 5,
        class_prior: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.goal = goal
        self.Cs = Cs
        self.selection_goal = selection_goal
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.decisions = decisions
        self.pooling = pooling
        self.cv = cv
        self.class_prior = class_prior
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def C(self) -> float:  # type: ignore[override]
        """The value of ``C`` of the final fit."""
        return float(self.C_)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        grid, seed = _grid(self.Cs), check_seed(self.random_state)
        aim = as_training_set(self.goal) if self.selection_goal is None else self.selection_goal
        goal, rows = as_goal(aim), path_rows(self, X, y, sample_weight, "C")
        if isinstance(goal, CostMatrix):
            raise InvalidParameterError(
                "selection_goal must be a set of weightings, a metric or RecallFloors, got a "
                "CostMatrix: give its weights as FixedWeights, or wrap the classifier in "
                "TunedDecisionClassifier."
            )
        # A goal that does not fit the classes is refused before any fit.
        criterion = goal.resolve(rows.prior(self.class_prior), rows.classes)
        cv_params = {"Cs", "cv", "selection_goal", "n_jobs", "random_state"}
        model = RobustLogisticRegression(
            **{name: v for name, v in self.get_params(deep=False).items() if name not in cv_params}
        )
        settings = [{"C": C} for C in grid.tolist()]
        evaluated = evaluated_along(model, settings, rows, Splitting(self.cv, seed), self.n_jobs)
        values = np.array([each.value(criterion) for each in evaluated])
        choice = select(values, np.array([each.values_without(criterion) for each in evaluated]))
        adopt(self, model.set_params(C=grid[choice.index]).fit(X, y, sample_weight))
        self.Cs_, self.C_ = grid, float(grid[choice.index])
        self.goal_values_, self.goal_value_errors_ = choice.values, choice.errors


def _grid(Cs: Any) -> Vector:
    """Distinct values of C, the strongest penalty first."""
    if isinstance(Cs, Integral):
        return np.logspace(-4, 4, check_count(Cs, "Cs"))
    values = np.atleast_1d(np.asarray(Cs))
    if values.ndim != 1 or values.size == 0 or values.dtype.kind not in "iuf":
        raise InvalidParameterError(
            f"Cs must be a number of values or at least one value above 0, got {Cs!r}."
        )
    return np.unique([check_number(value, "Cs", "(0, inf]") for value in values.tolist()])
