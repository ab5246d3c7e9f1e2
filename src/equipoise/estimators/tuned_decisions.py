"""Any classifier with probabilities, and decision weights that serve a purpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.estimators.deciding import DecidingClassifier


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

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        The base estimator. One that is already fitted goes inside scikit-learn's
        ``FrozenEstimator``; ``fit`` is then given rows that it has not seen, or the weights and
        their risks mean nothing. One that takes classes as numbers alone (XGBoost's) is given
        their places; ``estimator_.estimator_`` then is what was fitted.
    goal : Uncertainty, str, metric, CostMatrix, RecallFloors or None, default=None
        A set of weightings such as ``LabelCVaR(0.1)``, which is the default, ``LabelCVaR("auto")``
        or ``"worst_class"``; a metric or its name, such as ``"f1_macro"``: see
        :class:`~equipoise.goals.MetricGoal`; ``RecallFloors(...)``. ``FixedWeights(...)``,
        ``"balanced"``, ``"standard"`` and ``CostMatrix(...)`` are known: they need no tuning, and
        no cross-validation.
    cv : int, float, splitter, iterable or "prefit", default=5
        The number of folds (stratified, rows shuffled); or the share of the rows to hold out for
        tuning; or a splitter that tests no row twice; or ``"prefit"`` for an estimator that is
        already fitted. Equal rows stay together, or a model would be evaluated by what it has seen
        (``StratifiedKFold(5, shuffle=True)`` parts them). Floors with a confidence are about one
        model: there is one split, the first of a splitter, and a number of folds holds out the
        share of one (a fifth by default).
    refit : bool, default=True
        Whether the base estimator is trained on all rows in the end; False keeps the one of a
        single split. That one is always kept for floors with a confidence.
    pooling : float, default=2.0
        How strongly the decision weights of a class of few rows are shrunk towards those that the
        goal would take if nothing were known: a penalty of ``pooling`` over the number of rows, on
        squared differences of log-weights. 0 turns it off. Floors, known weights and costs are not
        shrunk.
    class_prior : dict or array-like of shape (n_classes,), default=None
        Class frequencies of the population, where those of the rows differ. Weights and sets count
        relative to these, and known weights are carried over to the scale of ``predict_proba``.
    rare_classes : {"error", "keep", "drop"}, default="error"
        What to do with a class of too few rows to be tuned: refuse; or train on it, count its
        probability as it is (weight 1), and report no risk; or leave its rows out of training,
        tuning and evaluation. A class that was dropped keeps its name in ``classes_`` and has
        weight 0, probability 0 and no risk: it is never predicted. Floors with a confidence keep
        none.
    min_rows : int, default=1
        A class of fewer rows has too few, even if it could be tuned (with ``rare_classes="keep"``
        only if two others have enough).
    n_jobs : int, default=None
        How many folds are fitted at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the hold-out split, and of which weighted rows are drawn for floors
        with a confidence. None is the same in every fit.
    memory : int or str, default="1 GiB"
        What rows in blocks may take; what the base estimator takes beside them is its own.
    sample_rows : int, default=None
        Rows of blocks to train and to tune on, half each: an equal number of every class, all of
        one with fewer (of which ``cv`` says how many tune), and weights that make up for it; in the
        shares of all rows where the base estimator takes no weights. None is what an eighth of
        ``memory`` holds, at most 200,000. No more rows than that are fitted to as in memory.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class names.
    estimator_ : estimator
        The fitted base estimator.
    tuned_ : TunedWeights
        All of what follows.
    weights_, threshold_, costs_, fold_weights_, pooling_
        The decision rule, as in :class:`~equipoise.TunedWeights`, for ``predict_proba``.
        There are ``costs_`` and no ``weights_`` where a cost matrix says more than weights can, and
        a ``threshold_`` for two classes.
    class_risks_, class_risk_intervals_, robust_risk_, metric_value_
        What the decisions do to new rows, as in ``TunedWeights``, by cross-fitting: each fold was
        predicted by weights that were tuned on the other folds. Intervals are of 95% confidence.
    class_prior_ : ByClass
        Class frequencies of the population: those given, or those of the rows.
    rows_seen_, n_passes_
        Of out-of-core data, the rows of each class that were trained on, tuned on, and evaluated
        (all that were not trained on), and the number of passes over the data.
    alpha_, best_index_, path_
        With ``LabelCVaR("auto")``, the level that was chosen, as in :class:`RobustnessCV`.
    n_features_in_, feature_names_in_
        Of the base estimator.

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
