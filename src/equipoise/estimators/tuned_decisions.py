"""Any classifier with probabilities, and decision weights that serve a purpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.estimators.adapting import Adaptable
from equipoise.estimators.deciding import DecidingClassifier
from equipoise.estimators.parameters import documented


@documented
class TunedDecisionClassifier(Adaptable, DecidingClassifier):
    r"""Tune decisions of a classifier; ``predict`` is not the argmax of ``predict_proba``.

    The classifier is trained as it is given. The predicted class is that of the largest weighted
    probability,

    .. math:: f(x) = \arg\max_i \; w_i \eta_i(x)

    where :math:`\eta` are the probabilities of ``predict_proba``, on the scale of the population;
    for two classes this is :math:`\eta_1(x) > w_0 / (w_0 + w_1)`. The weights are the best ones for
    a goal:

    - an uncertainty set: the smallest worst-case risk :math:`\max_{q \in Q} \sum_i q_i p_i R_i`,
      with zero-one class risks :math:`R_i`;
    - a metric: its largest value;
    - recall floors: the smallest overall error among all weights that keep them;
    - known weights or a cost matrix: nothing is tuned, and the class of the smallest expected cost
      is predicted.

    Weights are tuned on held-out rows, and the reported risks are those of rows that the weights
    were not tuned on either. Use it where the training of the model is to stay as it is;
    :class:`RobustClassifier` also trains it with class weights.

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
    No risks are reported for known weights, unless the estimator is already fitted, nor for a floor
    whose confidence needs more tuning rows than remain without one fold.

    Reported risks are averages over folds, each with weights that were tuned on the other folds, on
    somewhat fewer rows than ``weights_``; they tend to be a little too high for the final weights.
    The intervals are for the final weights, and wider for that, but not exact:
    ``pytest -m slow -s tests/test_coverage.py`` prints how often they contain the risk, learner by
    learner. Exact intervals need rows that nothing was fitted on:
    ``class_risk_intervals(y_test, clf.predict(X_test))``.

    References
    ----------
    Xu, Dan, Khim and Ravikumar (2020), "Class-Weighted Classification: Trade-offs and Robust
    Approaches", Section 2.3.

    Examples
    --------
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> from sklearn.metrics import f1_score
    >>> from sklearn.model_selection import train_test_split
    >>> from equipoise import TunedDecisionClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> trees = ExtraTreesClassifier(30, min_samples_leaf=5, random_state=0)
    >>> balanced = ExtraTreesClassifier(**trees.get_params() | {"class_weight": "balanced"})
    >>> tuned = TunedDecisionClassifier(trees, "f1_macro", cv=3)
    >>> for name, clf in {"plain": trees, "balanced": balanced, "tuned": tuned}.items():
    ...     predicted = clf.fit(X, y).predict(X_test)
    ...     print(f"{name:8} macro F1 {f1_score(y_test, predicted, average='macro'):.2f}")
    plain    macro F1 0.63
    balanced macro F1 0.78
    tuned    macro F1 0.90
    """

    def _class_weights(self, classes: NDArray[Any], shares: Vector) -> Matrix:
        return np.ones((1, len(shares)))
