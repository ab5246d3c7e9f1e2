"""Sets of labels around any classifier, whose coverage holds under a chosen weighting, or many."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from equipoise.arrays import Mask, Matrix, NDArray, Vector
from equipoise.blocks.answers import streamed
from equipoise.blocks.memory import check_memory
from equipoise.blocks.sources import as_blocks
from equipoise.decisions import (
    Fits,
    HeldOut,
    LabelledRows,
    RareClasses,
    Splitting,
    Training,
    TunedWeights,
    predict,
    predict_fitted,
    split,
)
from equipoise.decisions.abstained import share_right
from equipoise.decisions.calibrated_sets import (
    calibrated_sets,
    labels_of_sets,
    listed,
    named_thresholds,
    sets_of,
)
from equipoise.decisions.classifiers import check_base
from equipoise.decisions.conformal import in_cross_sets, in_sets
from equipoise.decisions.coverage_path import CoveragePath, coverage_path
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.set_goals import (
    check_abstention,
    coverage_task,
    held_out_share,
    rule_of,
    share_to_calibrate,
)
from equipoise.decisions.set_summary import SetSummary, evaluated_sets
from equipoise.decisions.trained import AveragedTrainings, class_probabilities
from equipoise.estimators.adapted_sets import AdaptableSets
from equipoise.estimators.deciding import DecidingClassifier
from equipoise.estimators.parameters import documented
from equipoise.estimators.sampled_rows import FittedDecisions
from equipoise.exceptions import InvalidInputError
from equipoise.sets import LabelCVaR
from equipoise.validation.labels import labels_of_rows
from equipoise.validation.numbers import check_flag, check_seed, check_verbosity


@documented
class PredictionSets(AdaptableSets, DecidingClassifier):
    r"""Sets of labels that hold the true one with a given probability, class by class or weighted.

    .. math:: C(x) = \{i : w_i \eta_i(x) \geq T_i\}

    With decision weights :math:`w_i = q_i` for class weights ``q`` no smaller sets have the same
    ``q``-weighted coverage :math:`\sum_i q_i p_i P(Y \in C(X) \mid Y = i)`, for exact
    probabilities. The coverage holds for any probabilities.

    Use it where several labels, or none, are a better answer than a wrong one;
    :class:`RobustClassifier` predicts one label for every row.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        The base estimator. One that is already fitted goes inside scikit-learn's
        ``FrozenEstimator``; ``fit`` then takes held-out rows.
    coverage : float in (0, 1), default=0.9
        The probability that a set holds the true label.
    goal : "balanced", "standard", "worst_class", Uncertainty or dict, default="balanced"
        Whose coverage: the mean over the classes; that over all rows; that of each class; the
        smallest one over a set of weightings, such as ``LabelCVaR(0.2)`` or ``PriorBox(...)``; or
        ``{class: level}``, where the classes that are not named have the level ``coverage``.
    confidence : float in (0, 1), default=None
        The probability with which the coverage holds for the fitted rule. With None it
        holds on average over draws of the calibration rows.
    abstain : None, "empty", "several", "empty or several" or int, default=None
        When ``predict`` gives None instead of a label: for sets of no label, of several, of either,
        or of none and of more than a number.
    cv : int, float, splitter, iterable or "prefit", default=0.25
        The share of the rows to calibrate on, which the model is not trained on; or a number of
        folds or a splitter of several parts for cross-conformal sets, whose models are all kept. A
        confidence is about one model, and takes one split.
    $class_prior
    $n_jobs
    $random_state
    $verbose

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class names, in the order of the columns of the sets.
    thresholds_ : ByClass
        Probabilities from which on a class is in a set; minus infinity for a class that is in every
        set, because it has too few calibration rows. With folds those of all rows together, which
        ``predict`` alone uses.
    levels_ : ByClass
        The coverage that is asked for each class; with a weighting that of all together.
    masses_ : ByClass
        The masses of the weighting, where the classes share one level; no attribute otherwise.
    estimator_ : classifier
        The fitted base estimator; with folds the mean of their models.

    Notes
    -----
    What is proven of new rows with the calibration rows' distribution in each class, for any
    model and given how many calibration rows each class has, with one split:

    - one weighting: the coverage at the class frequencies :math:`m_i = q_i p_i` is at least
      ``coverage``, on average over draws of the calibration rows, where ``p`` is ``class_prior_``;
    - ``"standard"`` with a fitted model and without a ``class_prior``: the coverage over all new
      rows, those of classes that no calibration row has included, is at least ``coverage``, on
      average over draws of independent rows of equal weight;
    - ``{class: level}`` and ``"worst_class"``: that of each class is at least its level, on
      average over draws;
    - a set of weightings: that at each vector of class frequencies in the set is at least
      ``coverage``, on average over draws;
    - with a ``confidence`` each of these holds for the returned rule with that probability over
      the draw of independent rows, for all classes, or the whole set, at once;
    - with several folds nothing, but for ``"standard"`` without a ``class_prior``, and equal folds
      that are drawn regardless of the labels, such as ``KFold(5, shuffle=True)``: the coverage over
      all rows is then at least ``2 coverage - 1`` up to ``sqrt(2 / n_rows)``, on average over draws
      (Barber et al. 2021). Folds by a number are stratified.

    Rows of unequal weight within a class are drawn by their weight, and those kept count one each:
    new rows are then those of the weighted population, up to the largest weight of a class, and the
    statements of weightings need a ``class_prior`` of their own.

    A class without calibration rows is in every set; with one weighting it may instead have the
    threshold of the others, which are then covered so much more often that the statements hold if
    it is always missed: the way of the smaller sets is taken, by numbers of rows alone. A class of
    weight 0, or of frequency 0 in a ``class_prior``, is in none.

    Examples
    --------
    Sets that hold for 95% of all patients miss most of a rare class; ``"balanced"`` counts classes:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> from equipoise import PredictionSets
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> for goal in ("standard", "balanced"):
    ...     sets = PredictionSets(LogisticRegression(), 0.95, goal, random_state=0).fit(X, y)
    ...     covered = sets.evaluate(X_test, y_test).class_coverage
    ...     print(f"{goal:8} {covered['compensated']:.0%} rare, {covered['normal']:.0%} normal")
    standard 33% rare, 99% normal
    balanced 99% rare, 95% normal
    """

    # As DecidingClassifier has it, for the rows of predictions; not a parameter here.
    memory = "1 GiB"

    def __init__(
        self,
        estimator: Any,
        coverage: Any = 0.9,
        goal: Any = "balanced",
        *,
        confidence: float | None = None,
        abstain: Any = None,
        cv: Any = 0.25,
        class_prior: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.goal = goal
        self.confidence = confidence
        self.abstain = abstain
        self.cv = cv
        self.class_prior = class_prior
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Train the base estimator on a part of the rows, and calibrate on the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Features as the base estimator takes them.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, for the training and for the calibration.
        **params : dict
            For the base estimator's ``fit``, and ``groups`` for the splitter. With metadata
            routing they go to the objects that requested them.
        """
        self._check_estimator()
        check_abstention(self.abstain)
        if as_blocks(X, y, sample_weight, check_memory(self.memory)) is not None:
            raise InvalidInputError(
                "X must be in memory for PredictionSets, got out-of-core data: fit the model first "
                "and give FrozenEstimator(model) with calibration rows."
            )
        return super().fit(X, y, sample_weight, **params)

    def _check_estimator(self) -> None:
        check_base(self.estimator, fitted=self._is_fitted_before())

    def _class_weights(self, classes: NDArray[Any], shares: Vector) -> Matrix:
        return np.ones((1, len(shares)))

    def _fitted_to(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]
    ) -> FittedDecisions:
        """Split, predict and calibrate, on rows in memory."""
        rows, to_split = self._labelled(X, y, sample_weight, params)
        training, seed = self._training(rows), check_seed(self.random_state)
        task = coverage_task(
            self.goal,
            self.coverage,
            self.confidence,
            training.prior,
            rows.classes,
            estimated=self.class_prior is None,
        )
        if self._is_fitted_before():
            models = [self.estimator]
            held_out = predict_fitted(self.estimator, rows, training, seed)
        else:
            models, held_out = self._trained(rows, training, to_split, seed)
        crossed = len(models) > 1
        found = calibrated_sets(held_out, task, rows.classes, seed, crossed=crossed)
        rule = rule_of(task, found.thresholds)
        named = named_thresholds(task, found.thresholds, rows.classes) | {
            "summary_": found.summary,
            "calibration_": found.rows.as_dict() | {"prior": training.prior},
        }
        model = models[0]
        if crossed:
            model = AveragedTrainings(models, np.ones((len(models), len(rule))), rows.classes)
        tuned = TunedWeights(rows.classes, training.prior, rule)
        return FittedDecisions(model, training, tuned, named)

    def _trained(
        self, rows: LabelledRows, training: Training, to_split: Any, seed: int
    ) -> tuple[list[Any], HeldOut]:
        """The models and their held-out rows."""
        share = share_to_calibrate(self.cv, self.confidence)
        if share is None:
            once = self.confidence is not None
            folds = split(
                rows, Splitting(self.cv, seed, to_split, once, RareClasses("keep", of_sets=True))
            )
        else:
            folds = held_out_share(rows, share, seed)
        fits = Fits(self.n_jobs, False, check_verbosity(self.verbose))
        held_out = predict(self.estimator, rows, folds, training, fits)
        return [part.model for each in fits.tables.values() for part in each], held_out

    @streamed
    def predict_set(self, X: Any, *, labels: bool = False) -> NDArray[Any]:
        """The set of every row.

        Parameters
        ----------
        X : array-like
            Rows, as the base estimator takes them.
        labels : bool, default=False
            Whether to give lists of class names, the most likely first, instead of flags.

        Returns
        -------
        ndarray of bool of shape (n_rows, n_classes), or of lists of shape (n_rows,)
            Columns in the order of ``classes_``.
        """
        return self._listed(X) if check_flag(labels, "labels") else self._sets(X)

    @streamed
    def _sets(self, X: Any) -> Mask:
        return self._in_sets(self._tables(X))

    @streamed
    def _listed(self, X: Any) -> NDArray[Any]:
        tables = self._tables(X)
        return listed(self._in_sets(tables), self._weighted(tables), self.classes_)

    def _in_sets(self, tables: list[Matrix]) -> Mask:
        if len(tables) == 1:
            return in_sets(tables[0], np.asarray(self.thresholds_))
        return in_cross_sets(tables, self._calibration, self._task_of(self.goal))

    def _weighted(self, tables: list[Matrix]) -> Matrix:
        return np.asarray(np.mean(tables, axis=0) * self.label_weights_)

    @streamed
    def predict(self, X: Any, *, costs: Any = None) -> NDArray[Any]:
        """The likeliest label of each set, of all labels for an empty set; None if abstained.

        The labels are weighted as in the sets; with ``costs`` of the rows, which leave sets
        out of account, the label of the least expected cost is predicted.
        """
        if costs is not None:
            return np.asarray(super().predict(X, costs=costs))
        tables = self._tables(X)
        sets, weighted = self._in_sets(tables), self._weighted(tables)
        return labels_of_sets(sets, weighted, self.classes_, self.abstain)

    @property
    def may_abstain(self) -> bool:
        """Whether ``predict`` may give None instead of a label."""
        return self.abstain is not None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is predicted; with ``abstain`` None counts as an error.

        Parameters
        ----------
        X, y : array-like
            Rows and labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.
        """
        return share_right(y, self.predict(X), sample_weight)

    def _tables(self, X: Any) -> list[Matrix]:
        """Probabilities of each model, on the scale that they were calibrated on."""
        check_is_fitted(self)
        crossed = isinstance(self.estimator_, AveragedTrainings)
        models = self.estimator_.estimators if crossed else [self.estimator_]
        return [
            rescaled(class_probabilities(each, X, self.classes_), self.set_factors(each))
            for each in models
        ]

    def set_probabilities(self, X: Any) -> Matrix:
        """The probabilities that are compared with ``thresholds_``, of sets of one split."""
        (table,) = self._tables(X)
        return np.asarray(table)

    def set_factors(self, model: Any) -> Vector:
        """Factors from the probabilities of a model to those that sets are compared with."""
        training = Training(
            np.asarray(self.training_weights_)[None],
            np.asarray(self.class_shares_),
            np.asarray(self.calibration_["prior"]),
        )
        return training.factors_for(model)

    def evaluate(self, X: Any, y: Any) -> SetSummary:
        """Coverage by class with exact intervals, and sizes, on rows that nothing was fitted to.

        Parameters
        ----------
        X, y : array-like
            Rows and labels.
        """
        sets, lowest = self.predict_set(X), np.asarray(self.thresholds_)
        labels, prior = labels_of_rows(y, self.classes_, len(sets)), np.asarray(self.class_prior_)
        return evaluated_sets(sets, labels, self.classes_, prior, None, lowest)

    def coverage_path(self, X: Any, y: Any, alphas: Any = None) -> CoveragePath:
        """Coverage and sizes of the sets for ``LabelCVaR(alpha)``, from all rows to each class.

        The model and its calibration rows are those of the fit; the goal is not used.

        Parameters
        ----------
        X, y : array-like
            Rows that nothing was fitted to, and labels.
        alphas : array-like of shape (n_alphas,), optional
            Levels in (0, 1]; by default ten, from 1 to the frequency of the smallest class.
        """
        tables, calibration = self._tables(X), self._calibration
        labels = labels_of_rows(y, self.classes_, len(tables[0]))

        def sets_for(alpha: float) -> Mask:
            return sets_of(tables, calibration, self._task_of(LabelCVaR(alpha)))

        return coverage_path(sets_for, labels, self.classes_, np.asarray(self.class_prior_), alphas)

    def summary(self) -> SetSummary:  # type: ignore[override]
        """Coverage by class and sizes on the calibration rows, in five parts.

        The sets of each part are calibrated without it; the intervals are approximate. Models from
        a file, and adapted ones, have none: use ``evaluate`` with new rows.
        """
        check_is_fitted(self)
        summary: SetSummary | None = getattr(self, "summary_", None)
        if summary is None:
            raise InvalidInputError(
                "There is no summary of a model from a file, or one that was adapted: use "
                "evaluate(X, y) with new rows."
            )
        return summary
