"""Logistic regression that is optimal over a whole set of class weightings."""

from __future__ import annotations

from abc import ABC
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from equipoise.arrays import ROUNDING, is_tensor, on_host
from equipoise.blocks.answers import streamed
from equipoise.decisions import Splitting
from equipoise.decisions.alphas import alpha_choice
from equipoise.estimators.linear_paths import adopt, fit_level
from equipoise.estimators.parameters import documented
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.estimators.tensor_rows import probabilities_of
from equipoise.goals import decide_by_costs
from equipoise.losses import TrainedLoss, as_trained
from equipoise.risks.population import odds_factors, reweighted
from equipoise.weights.by_class import ByClass


class LogisticModel(RobustLinearModel, ABC):
    """What a linear model has by being trained with the cross-entropy: probabilities."""

    plain_kind = LogisticRegression

    def _trained_loss(self) -> TrainedLoss:
        return as_trained("cross_entropy")

    @streamed
    def predict(self, X: Any, *, costs: Any = None) -> Any:
        """The class of the highest score, offsets of the decisions included.

        With ``costs`` of the rows (:func:`~equipoise.goals.decide_by_costs`) that of the least
        expected cost, by probabilities on the scale of the population.
        """
        if costs is None:
            return super().predict(X)
        masses, prior = np.asarray(self.worst_case_masses_), np.asarray(self.class_prior_)
        factors = odds_factors(masses, prior, self.classes_, negligible=ROUNDING)
        table = reweighted(np.asarray(on_host(self.predict_proba(X))), factors)
        return self.classes_[decide_by_costs(table, costs)]

    @streamed
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities on the scale of the worst-case weights.

        :func:`~equipoise.population_proba` returns those of the population. ``predict`` is the
        argmax, unless decisions are tuned: probabilities are without ``decision_offsets_``.
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


@documented
class RobustLogisticRegression(LogisticModel):
    r"""Worst-case logistic regression; ``predict_proba`` is on the scale of the worst-case weights.

    Minimises the largest class-weighted cross-entropy over an uncertainty set of class weights, and
    proves how far the result is from the optimum. Use it where a linear model is good enough and
    the class weights are known within bounds only. The problem is

    .. math:: \min_{w, b} \; \max_{q \in Q} \; \sum_i q_i p_i R_i(w, b) + \frac{\|w\|^2}{2 C n}

    with :math:`R_i` the mean cross-entropy over the rows of class ``i``, :math:`p_i` the class
    prior, :math:`Q` the set of class weights :math:`q`, and ``n`` the sum of the sample weights.
    Two classes have one coefficient vector, more have one each (multinomial); intercepts are not
    penalised.

    As in scikit-learn's weighted ``LogisticRegression``, ``predict`` is the argmax of
    ``predict_proba``, unless decisions are tuned. :func:`~equipoise.population_proba` returns
    probabilities on the scale of the population.

    Parameters
    ----------
    $goal_set
        ``LabelCVaR("auto")`` chooses the level on held-out rows, in five folds.
    $C
    $fit
    adjustment : float, default=None
        Training risks underestimate true risks, most for small classes. With ``adjustment=a``
        the risk of class ``i`` counts as :math:`R_i + a / \sqrt{n_i}`, where :math:`n_i` is its
        number of rows with a positive weight. None is 0, the objective above; with
        ``LabelCVaR("auto")``, whose level is chosen on held-out rows, it is 0.5.
    $warm_start
    $verbose

    Attributes
    ----------
    $linear_attributes
    alpha_, best_index_, path_
        With ``LabelCVaR("auto")``, the level that was chosen, as in :class:`RobustnessCV`.

    Notes
    -----
    Tuned decisions take the approximate scores of one Newton step from the fit, without all rows of
    equal features, for at most 1,000 rows of a class and 20,000 in all. Five folds are fitted
    instead where the Hessian is too large (above about 1,500 coefficients, common for text).
    Tuning copies tensors to main memory; out-of-core data are refused. A set of one weighting has
    nothing to tune, nor has a class of fewer than three distinct rows.

    References
    ----------
    Xu, Dan, Khim and Ravikumar (2020), "Class-Weighted Classification: Trade-offs and Robust
    Approaches", definitions 2 to 4.

    Sagawa, Koh, Hashimoto and Liang (2020), "Distributionally Robust Neural Networks", for the
    ``adjustment``.

    Examples
    --------
    With balanced weights the worst class has a cross-entropy of 0.71. The robust fit, optimal for
    the penalised objective, brings it to 0.596:

    >>> from equipoise import RobustLogisticRegression
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> for goal in ("balanced", "worst_class"):
    ...     clf = RobustLogisticRegression(goal).fit(X, y)
    ...     print(f"{goal:11} {clf.class_risks_.max():.3f}")
    balanced    0.711
    worst_class 0.596
    >>> clf.status_, bool(clf.duality_gap_ <= 1e-6 * clf.objective_)
    ('converged', True)
    """

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        for name in {"alpha_", "best_index_", "path_"} & set(vars(self)):
            delattr(self, name)
        choice = alpha_choice(self.goal)
        if choice is None:
            super()._fit(X, y, sample_weight)
        else:
            adopt(self, fit_level(clone(self), choice, X, y, sample_weight, Splitting()))
