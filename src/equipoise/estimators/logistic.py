"""Logistic regression that is optimal over a whole set of class weightings."""

from __future__ import annotations

from abc import ABC
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from equipoise.arrays import is_tensor
from equipoise.decisions import Splitting
from equipoise.decisions.alphas import alpha_choice
from equipoise.estimators.linear_paths import adopt, fit_level
from equipoise.estimators.robust_linear import RobustLinearModel, streamed
from equipoise.estimators.tensor_rows import probabilities_of
from equipoise.losses import TrainedLoss, as_trained
from equipoise.weights.by_class import ByClass


class LogisticModel(RobustLinearModel, ABC):
    """What a linear model has by being trained with the cross-entropy: probabilities."""

    plain_kind = LogisticRegression

    def _trained_loss(self) -> TrainedLoss:
        return as_trained("cross_entropy")

    @streamed
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities in the world of the worst-case weights.

        They are not those of the population: see :func:`~equipoise.population_proba`.
        ``predict`` is their argmax, unless decisions are tuned: ``decision_offsets_`` are no part
        of them.
        """
        scores = self._fitted_scores(X)
        if is_tensor(scores):
            return probabilities_of(scores)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    @streamed
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of ``predict_proba``, without rounding to minus infinity."""
        if is_tensor(X):
            return probabilities_of(self._fitted_scores(X), logarithms=True)
        scores = self._fitted_scores(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return np.asarray(log_softmax(scores, axis=1))

    def _fitted_scores(self, X: Any) -> Any:
        return self._scores(X, np.zeros(1))

    @property
    def training_masses_(self) -> ByClass:
        """The shares of the classes on whose scale ``predict_proba`` is."""
        return self.worst_case_masses_


class RobustLogisticRegression(LogisticModel):
    r"""Logistic regression that minimises the worst weighted risk over an uncertainty set.

    .. math:: \min_{w, b} \; \max_{q \in Q} \; \sum_i q_i p_i R_i(w, b) + \frac{\|w\|^2}{2 C n}

    with :math:`R_i` the mean cross-entropy over the rows of class ``i``, :math:`p_i` the class
    prior and ``n`` the sum of the sample weights. Two classes have one coefficient vector, more
    have one each (multinomial); intercepts are not penalised.

    Parameters
    ----------
    goal : Uncertainty, "standard", "balanced" or "worst_class", default=None
        The set of weightings. None means ``LabelCVaR(alpha=0.1)``: no class counts more than ten
        times its share. ``LabelCVaR("auto")`` chooses the level on rows left out, in five folds.
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
        ``goal`` count relative to these.
    decisions : {"argmax", "tuned"}, default="argmax"
        ``"argmax"`` predicts the class of the highest score, as the fit has it. ``"tuned"`` adds
        offsets by class to the scores, with which the largest weighted *error rate* over the set is
        the smallest on rows left out; the fit, its certificate and ``predict_proba`` stay as they
        are. The scores of a row left out are approximate: of one Newton step from the fit, without
        all rows of equal features, for at most 1,000 rows of a class and 20,000 in all. Five folds
        are fitted instead where the Hessian is too large (as of texts: about 1,500 coefficients).
        Tensors are tuned on in the main memory; out-of-core data are refused. A set of one
        weighting has nothing to tune, nor has a class of fewer than three distinct rows.
    warm_start : bool, default=False
        Whether to start from the last fit.
    memory : int or str, default="1 GiB"
        Where rows are read in blocks, about how much memory to use for it: bytes, or a text such as
        ``"500 MB"``.
    adjustment : float, default=None
        A model does better on the rows it was fitted to than on others, and the more so for a class
        of few: the risk of class ``i`` counts as :math:`R_i + a / \sqrt{n_i}`, with this ``a`` and
        the number of its rows that weigh anything, whatever they weigh. None is 0, the objective
        above; with ``LabelCVaR("auto")``, whose level is judged by the errors of other rows, it is
        0.5.
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
    decision_offsets_ : ByClass
        What is added to the scores in ``decision_function`` and ``predict``, and not in
        ``predict_proba``: of mean zero with ``decisions="tuned"``, and else zeros. For two classes
        the one score is moved by their difference.
    class_risks_ : ByClass
        Cross-entropy of each class on the training rows.
    robust_risk_ : float
        The largest weighted risk over the set, without the penalty; of adjusted risks where there
        is an ``adjustment``, as are the numbers that follow.
    worst_case_weights_ : ByClass
        The weights that attain it at the optimum: the world the fit was made robust against.
    worst_case_masses_ : ByClass
        The same as shares of the objective: weights times ``class_prior_``.
    class_prior_ : ByClass
        Class priors that were used.
    objective_, lower_bound_, duality_gap_ : float
        Robust risk plus penalty of ``coef_`` and ``intercept_`` as they are returned, a proven
        lower bound of the optimum, and their difference. Without a penalty there is no bound: it is
        minus infinity.
    caps_active_ : bool
        Whether the bounds of the set matter at the optimum: the worst class's risk exceeds the
        robust risk. Where they do not, this is the optimum of the worst-class problem as well.
    n_iter_, n_evaluations_ : int
        Iterations, and evaluations of the class risks on all rows.
    n_passes_ : int
        Passes over the rows, where they were read in blocks.
    status_, message_ : str
        How the solve ended: a word and a sentence.
    history_ : dict of ndarray
        ``iteration``, ``evaluations``, ``objective``, ``gap`` and ``seconds`` along the solve.
    alpha_, best_index_, path_
        With ``LabelCVaR("auto")``, the level that was chosen, as in :class:`RobustnessCV`.

    References
    ----------
    Xu, Dan, Khim and Ravikumar (2020), "Class-Weighted Classification: Trade-offs and Robust
    Approaches", definitions 2 to 4.

    Sagawa, Koh, Hashimoto and Liang (2020), "Distributionally Robust Neural Networks", for the
    ``adjustment``.

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

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        for name in {"alpha_", "best_index_", "path_"} & set(vars(self)):
            delattr(self, name)
        choice = alpha_choice(self.goal)
        if choice is None:
            super()._fit(X, y, sample_weight)
        else:
            adopt(self, fit_level(clone(self), choice, X, y, sample_weight, Splitting()))
