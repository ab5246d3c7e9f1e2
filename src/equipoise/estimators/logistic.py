"""Logistic regression that is optimal over a whole set of class weightings."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from equipoise.arrays import Vector
from equipoise.estimators.base import unchanged_on_failure, warn_few_rows
from equipoise.exceptions import (
    InactiveCapsWarning,
    InvalidParameterError,
    NotConvergedWarning,
    SeparableDataWarning,
)
from equipoise.objectives import Objective, open_objective
from equipoise.risks.population import odds_factors
from equipoise.sets import MassSet, Uncertainty, WorstClass, as_uncertainty
from equipoise.solvers import Limits, Problem, Progress, Solution, Status, run
from equipoise.validation.labels import encode_labels
from equipoise.validation.numbers import check_count, check_flag, check_number, check_verbosity
from equipoise.validation.row_weights import weights_and_totals
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior, weights_of

# A converged fit whose last step still moved the coefficients by so much has no finite optimum.
_DIVERGING = 1e-2
# Below this mass a class decides nothing, and dividing by it would amplify rounding.
_NO_MASS = 1e-12
_NO_MASS_REMEDY = (
    "Use a set whose weights stay positive (WeightBox with a lower bound), or a prior of 0 for it."
)
# Values that predictions convert to float64 at a time.
_BLOCK = 1 << 18

_ADVICE = {
    Status.MAX_ITER: "Raise max_iter, raise tol, or scale the features.",
    Status.STALLED: "Raise tol, scale the features, or give them in float64.",
}


class RobustLogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Logistic regression that minimises the worst weighted risk over an uncertainty set.

    .. math:: \min_{w, b} \; \max_{q \in Q} \; \sum_i q_i p_i R_i(w, b) + \frac{\|w\|^2}{2 C n}

    with :math:`R_i` the mean cross-entropy over the rows of class ``i``, :math:`p_i` the class
    prior and ``n`` the sum of the sample weights. Two classes have one coefficient vector, more
    have one each (multinomial); intercepts are not penalised.

    Parameters
    ----------
    uncertainty : Uncertainty, "standard", "balanced" or "worst-class", default=None
        The set of weightings. None means ``LabelCVaR(alpha=0.1)``: no class counts more than ten
        times its share.
    C : float, default=1.0
        Inverse strength of the penalty, scaled as in scikit-learn; ``numpy.inf`` for none.
    fit_intercept : bool, default=True
        Whether to fit intercepts.
    tol : float, default=1e-6
        The fit has converged when its certified gap is at most ``tol`` times the objective (or
        1e-3 where the objective is less).
    max_iter : int, default=1000
        Iterations at most.
    solver : str, default="auto"
        ``"sqp-newton"``, ``"sqp-lbfgs"``, ``"multipliers"``, ``"descent-ascent"``, or ``"auto"`` to
        choose by the size of the problem.
    class_prior : dict or array-like of shape (n_classes,), default=None
        Class frequencies of the population, where those of the sample differ. The weights in
        ``uncertainty`` count relative to these.
    warm_start : bool, default=False
        Whether to start from the last fit.
    verbose : int, default=0
        Above 0, a line of progress with the gap.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class names.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    class_risks_ : ByClass
        Cross-entropy of each class on the training rows.
    robust_risk_ : float
        The largest weighted risk over the set, without the penalty.
    worst_case_weights_ : ByClass
        The weights that attain it at the optimum: the world the fit was made robust against.
    worst_case_masses_ : ByClass
        The same as shares of the objective: weights times ``class_prior_``.
    class_prior_ : ByClass
        Class priors that were used.
    objective_, lower_bound_, duality_gap_ : float
        Robust risk plus penalty, a proven lower bound of the optimum, and their difference.
        Without a penalty there is no bound: it is minus infinity.
    caps_bind_ : bool
        False where the set is the whole simplex: the problem is then the worst-class one.
    n_iter_, n_evaluations_ : int
        Iterations, and evaluations of the class risks on all rows.
    status_, message_ : str
        How the solve ended: a word and a sentence.
    history_ : dict of ndarray
        ``iteration``, ``evaluations``, ``objective``, ``gap`` and ``seconds`` along the solve.

    References
    ----------
    Xu, Dan, Khim and Ravikumar (2020), "Class-Weighted Classification: Trade-offs and Robust
    Approaches", definitions 2 to 4.

    Examples
    --------
    >>> from equipoise import LabelCVaR, RobustLogisticRegression
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> clf = RobustLogisticRegression(LabelCVaR(alpha=0.05)).fit(X, y)
    >>> clf.status_
    'converged'
    >>> bool(clf.duality_gap_ <= 1e-6 * clf.objective_)
    True
    """

    def __init__(
        self,
        uncertainty: Uncertainty | str | None = None,
        *,
        C: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str = "auto",
        class_prior: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.uncertainty = uncertainty
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.class_prior = class_prior
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to rows ``X`` with labels ``y``.

        If anything interrupts the fit, the estimator is left as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Features; float32 data stay float32.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self : RobustLogisticRegression
        """
        with unchanged_on_failure(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        check_number(self.C, "C", "(0, inf]")
        limits = Limits(
            check_number(self.tol, "tol", "(0, inf)"), check_count(self.max_iter, "max_iter")
        )
        fit_intercept = check_flag(self.fit_intercept, "fit_intercept")
        progress = Progress(check_verbosity(self.verbose))
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        classes, labels = encode_labels(y)
        weights, totals = weights_and_totals(sample_weight, labels, classes)
        used = weights > 0
        if not np.all(used):
            X, labels, weights = X[used], labels[used], weights[used]
        prior = self._prior(totals, classes)
        masses = as_uncertainty(self.uncertainty).resolve(prior, classes)
        ridge = check_ridge(self.C, float(totals.sum()))
        with open_objective(
            X, labels, weights, n_classes=len(classes), fit_intercept=fit_intercept, ridge=ridge
        ) as objective:
            problem = Problem(objective, masses, ridge)
            start, cold = self._start(objective, masses, prior, classes)
            solution = run(problem, self.solver, start, limits, progress, cold=cold)
            self._take(problem, solution, prior, classes)
        self._warn(solution, masses, np.bincount(labels), limits)

    def _prior(self, totals: Vector, classes: NDArray[Any]) -> Vector:
        if self.class_prior is None:
            return np.asarray(totals / totals.sum())
        return check_prior(self.class_prior, classes, name="class_prior")

    def _start(
        self, objective: Objective, masses: MassSet, prior: Vector, classes: NDArray[Any]
    ) -> tuple[tuple[Vector, Vector], bool]:
        """Parameters and masses to start from, and whether they know nothing yet."""
        if self.warm_start and self._fits_again(objective, classes):
            mass = masses.project(np.asarray(self.worst_case_masses_))
            return (objective.pack(self.coef_, self.intercept_), mass), False
        return (np.zeros(objective.size), masses.project(prior)), True

    def _fits_again(self, objective: Objective, classes: NDArray[Any]) -> bool:
        if not hasattr(self, "coef_") or not np.array_equal(classes, self.classes_):
            return False
        coef, _ = objective.unpack(np.zeros(objective.size))
        return bool(coef.shape == self.coef_.shape)

    def _take(
        self, problem: Problem, solution: Solution, prior: Vector, classes: NDArray[Any]
    ) -> None:
        """Keep what the solve found."""
        coef, intercept = problem.objective.unpack(solution.theta)
        if len(intercept) > 1:
            intercept = intercept - intercept.mean()
        self.classes_, self.coef_, self.intercept_ = classes, coef, intercept
        self.class_prior_ = ByClass(prior, classes)
        self.class_risks_ = ByClass(solution.risks, classes)
        self.worst_case_masses_ = ByClass(solution.mass, classes)
        self.worst_case_weights_ = ByClass(weights_of(solution.mass, prior), classes)
        self.robust_risk_ = float(problem.masses.support(solution.risks))
        self.objective_ = float(solution.objective)
        self.lower_bound_ = float(solution.lower_bound)
        self.duality_gap_ = float(solution.gap)
        self.caps_bind_ = not problem.masses.is_simplex
        self.n_iter_ = max(1, solution.n_iter)
        self.n_evaluations_ = solution.n_evaluations
        self.status_, self.message_ = solution.status.name.lower(), _sentence(solution, problem)
        fields = ("iteration", "evaluations", "objective", "gap", "seconds")
        self.history_ = {
            name: np.array([getattr(record, name) for record in solution.history])
            for name in fields
        }

    def _warn(
        self, solution: Solution, masses: MassSet, rows: NDArray[np.intp], limits: Limits
    ) -> None:
        if not solution.status.converged:
            target = limits.target(solution.objective)
            gap = f"The gap is {solution.gap:.3g}, the target was {target:.3g}, "
            warnings.warn(
                f"{solution.status.value} {gap if np.isfinite(solution.gap) else 'It stopped '}"
                f"after {solution.n_iter} iterations. {_ADVICE[solution.status]}",
                NotConvergedWarning,
                stacklevel=4,
            )
        if np.isinf(self.C) and _diverges(solution):
            barred = _bars_a_class(masses)
            reason = "a class can carry no mass" if barred else "some classes can be separated"
            warnings.warn(
                f"C is infinite and {reason}: the optimum lies at infinity, and the parameters are "
                f"those of a fit stopped at a risk of {self.robust_risk_:.2g}. Use a finite C.",
                SeparableDataWarning,
                stacklevel=4,
            )
        if masses.is_simplex and isinstance(self.uncertainty, Uncertainty):
            _warn_inactive(self.uncertainty)
        if not _is_point(masses):
            weights = np.asarray(self.worst_case_weights_)
            warn_few_rows(solution.mass, weights, rows, self.classes_)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores of the rows: one each for two classes, else one per class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        scores = _products(X, self.coef_) + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the highest probability, in the world of the worst-case weights."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Class probabilities in the world of the worst-case weights, consistent with predict.

        They are not those of the population: see ``predict_population_proba``.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of ``predict_proba``, without rounding to minus infinity."""
        return np.asarray(log_softmax(self._class_scores(X), axis=1))

    def _class_scores(self, X: Any) -> NDArray[Any]:
        scores = self.decision_function(X)
        return scores if scores.ndim == 2 else np.column_stack([np.zeros_like(scores), scores])

    def predict_population_proba(self, X: Any, prior: Any = None) -> NDArray[Any]:
        r"""Class probabilities on the scale of the population.

        The fit sees class ``i`` with mass :math:`m_i = p_i q_i` instead of :math:`p_i`; by Bayes'
        rule the odds are put back by the factors :math:`\pi_i / m_i`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Features.
        prior : dict or array-like of shape (n_classes,), optional
            Class frequencies :math:`\pi` to put the probabilities on. The default is
            ``class_prior_``.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
        """
        scores = self._class_scores(X)
        given = self.class_prior_ if prior is None else prior
        target = check_prior(given, self.classes_, name="prior")
        mass = np.asarray(self.worst_case_masses_)
        factors = odds_factors(
            mass, target, self.classes_, negligible=_NO_MASS, remedy=_NO_MASS_REMEDY
        )
        with np.errstate(divide="ignore"):
            factors = np.log(factors)
        return np.asarray(softmax(scores + factors, axis=1))

    def to_sklearn(self) -> LogisticRegression:
        """An ordinary fitted LogisticRegression with the same coefficients and predictions."""
        check_is_fitted(self)
        twin = LogisticRegression(C=self.C, fit_intercept=self.fit_intercept, tol=self.tol)
        for name in ("classes_", "coef_", "intercept_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(twin, name, getattr(self, name).copy())
        twin.n_features_in_ = self.n_features_in_
        twin.n_iter_ = np.array([self.n_iter_], dtype=np.int32)
        return twin


def _sentence(solution: Solution, problem: Problem) -> str:
    if problem.masses.is_simplex:
        return f"{solution.status.value} The set is the whole simplex: the worst-class problem."
    return solution.status.value


def _products(X: Any, coef: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows times coefficients in float64; float32 rows are converted a few at a time."""
    values = X.nnz if issparse(X) else X.size
    step = max(1, _BLOCK * X.shape[0] // max(1, values)) if X.dtype != coef.dtype else X.shape[0]
    starts = range(0, X.shape[0], step)
    parts = (X[start : start + step] for start in starts)
    return np.vstack([safe_sparse_dot(part, coef.T, dense_output=True) for part in parts])


def _diverges(solution: Solution) -> bool:
    """Whether large parameters were still growing, or have left no risk."""
    large = float(np.linalg.norm(solution.theta)) > 1
    return (large and _DIVERGING < solution.last_step < np.inf) or solution.objective < 1e-6


def _is_point(masses: MassSet) -> bool:
    # A direction along which only a point has no width.
    direction = np.cos(np.arange(masses.n_classes) ** 2)
    width = masses.support(direction) + masses.support(-direction)
    return bool(width <= 1e-12)


def _bars_a_class(masses: MassSet) -> bool:
    """Whether some class has no mass anywhere in the set."""
    return any(masses.support(row) <= 0 for row in np.eye(masses.n_classes))


def _warn_inactive(uncertainty: Uncertainty) -> None:
    if isinstance(uncertainty, WorstClass):
        return
    warnings.warn(
        f"The bounds of {uncertainty!r} bind nowhere for these class priors: this is exactly the "
        "worst-class problem. Use WorstClass() to say so, or tighten the set.",
        InactiveCapsWarning,
        stacklevel=5,
    )


def check_ridge(C: float, total: float) -> float:
    """The strength ``1 / (C n)`` of the penalty, ``n`` the sum of the sample weights."""
    scale = float(C) * total
    if not scale > np.finfo(np.float64).tiny:
        raise InvalidParameterError(
            f"C times the sum of the sample weights must not vanish, got C = {C:.6g} and a sum of "
            f"{total:.6g}."
        )
    return 1 / scale
