"""Any classifier with probabilities, and decision weights that serve a purpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.estimators.deciding import DecidingClassifier
from equipoise.estimators.parameters import documented


@documented
class TunedDecisionClassifier(DecidingClassifier):
    r"""``predict`` serves a goal and is not the argmax of ``predict_proba``: any classifier, tuned.

    .. math:: f(x) = \arg\max_i \; w_i \eta_i(x)

    with the probabilities :math:`\eta` of ``predict_proba``, which are on the scale of the
    population; for two classes this is :math:`\eta_1(x) > w_0 / (w_0 + w_1)`. The weights are the
    best for a goal:

    - the smallest worst-case risk :math:`\max_{q \in Q} \sum_i q_i p_i R_i` over a set of
      weightings, with zero-one class risks :math:`R_i`;
    - a large value of a metric on new rows;
    - the smallest risk among all weights that keep the recall of some classes above floors;
    - or they are known, as is a table of costs, of which the least expected one is predicted.

    Weights that are not known are tuned on predictions for rows that the base estimator was not
    trained on, and what is reported of their risks comes from rows that they were not tuned on.

    Use it to tune the decisions of a model as it is trained; :class:`RobustClassifier` also trains
    it with class weights.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        The base estimator. One that is already fitted goes inside scikit-learn's
        ``FrozenEstimator``; ``fit`` then takes held-out rows, or the weights and their risks mean
        nothing.
    $goal
    $pooling
    $cv
    $refit
    $class_prior
    $rare_classes
    $n_jobs
    $random_state
    $memory

    Attributes
    ----------
    $decision_attributes

    Notes
    -----
    Known weights have no risks to report, except with an estimator that is already fitted. Nor has
    a floor that only all tuning rows can show with its confidence, and four of five cannot.

    Reported risks are those of as many rules as there are folds, each tuned on somewhat fewer rows
    than ``weights_``; they say how such rules do on new rows, and tend to be a little too high for
    the final one. The intervals are for the final one, and wider for that, but not exact:
    ``pytest -m slow -s tests/test_coverage.py`` prints how often they hold the risk, learner by
    learner.
    Intervals that are exact need rows that nothing was fitted on:
    ``class_risk_intervals(y_test, clf.predict(X_test))``.

    References
    ----------
    Xu, Dan, Khim and Ravikumar (2020), "Class-Weighted Classification: Trade-offs and Robust
    Approaches", Section 2.3.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from equipoise.estimators import TunedDecisionClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=10, random_state=0)
    >>> clf = TunedDecisionClassifier(forest, "worst_class", cv=3).fit(X, y)
    >>> bool(clf.class_risks_.max() < 0.1)
    True
    """

    def _class_weights(self, classes: NDArray[Any], shares: Vector) -> Matrix:
        return np.ones((1, len(shares)))
