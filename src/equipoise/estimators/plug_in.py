"""Any classifier with probabilities, and decision weights that serve a purpose."""

import inspect
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, indexable

from equipoise.arrays import Matrix, Vector
from equipoise.decisions import Evidence
from equipoise.estimators.base import unchanged_on_failure
from equipoise.estimators.plug_in_folds import (
    Splits,
    as_seed,
    deal,
    in_folds,
    predict_parts,
    refuse_few,
    split,
)
from equipoise.estimators.plug_in_purpose import Purpose, check_shrinkage
from equipoise.estimators.plug_in_rows import Rows, class_probabilities, row_weights
from equipoise.estimators.plug_in_rules import Rule
from equipoise.estimators.plug_in_trial import (
    Trial,
    TunedWeights,
    judge_known,
    rule_of,
    trial_of_one_model,
    tune_trial,
)
from equipoise.exceptions import EquipoiseWarning, InvalidInputError, InvalidParameterError
from equipoise.goals import as_goal
from equipoise.validation.labels import encode_labels, known_labels
from equipoise.validation.numbers import check_flag
from equipoise.weights.by_class import ByClass
from equipoise.weights.priors import check_prior


class PlugInClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier with probabilities, decided by weights that serve a purpose.

    .. math:: f(x) = \arg\max_i \; w_i \eta_i(x)

    with the base estimator's probabilities :math:`\eta`; for two classes this is
    :math:`\eta_1(x) > w_0 / (w_0 + w_1)`. The weights are the best for a goal:

    - the smallest worst-case risk :math:`\max_{q \in Q} \sum_i q_i p_i R_i` over a set of
      weightings, with zero-one class risks :math:`R_i`;
    - the largest value of a metric;
    - the smallest risk among all weights that keep the recall of some classes above floors;
    - or they are known, as is a table of costs, then decided by the least expected cost.

    Weights that are not known are tuned on predictions for rows that the base estimator was not
    trained on, and what is reported of their risks comes from rows that they were not tuned on.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        The base estimator. One that is already fitted goes inside scikit-learn's
        ``FrozenEstimator``; ``fit`` is then given rows that it has not seen.
    goal : Uncertainty, str, metric, CostMatrix, RecallFloors or None, default=None
        A set of weightings such as ``LabelCVaR(0.1)``, which is the default, or
        ``"worst-class"``; a metric or its name, ``"macro_f1"``, ``"macro_f2"`` and so on,
        ``"geometric_mean"``, ``"balanced_accuracy"`` or ``"accuracy"``, for two classes, of which
        the second is the positive one, also ``"f1"`` and every other linear-fractional metric of
        :mod:`equipoise.metrics`; ``RecallFloors(...)``. ``FixedWeights(...)``, ``"balanced"``,
        ``"standard"`` and ``CostMatrix(...)`` are known: they need no tuning, and no
        cross-validation.
    cv : int, float, splitter, iterable or "prefit", default=5
        The number of folds (stratified, rows shuffled); or the share of the rows to hold out for
        tuning; or a splitter that tests no row twice; or ``"prefit"`` for an estimator that is
        already fitted.
    refit : bool, default=True
        Whether the base estimator is trained on all rows in the end; False keeps the one of a
        single split.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far the tuned weights are drawn towards balanced ones. ``"auto"`` averages them over
        the folds and chooses the amount by cross-validation; 0 takes the best weights for the
        tuning rows as they are. Floors allow for neither.
    class_prior : dict or array-like of shape (n_classes,), default=None
        Class frequencies of the population, where those of the rows differ. Weights and sets count
        relative to these, and known weights are carried over to the scale of ``predict_proba``.
    rare : {"error", "keep"}, default="error"
        What to do with a class of too few rows to be tuned: refuse, or train on it, count its
        probability as it is (weight 1), and report no risk.
    n_jobs : int, default=None
        How many folds are fitted at a time.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the hold-out split. None is the same in every fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class names.
    estimator_ : estimator
        The fitted base estimator.
    weights_ : ByClass
        Decision weights on the scale of ``predict_proba``, with :math:`\sum_i p_i w_i = 1` for
        the class shares :math:`p` of the rows. Absent where a cost matrix says more.
    costs_ : ndarray of shape (n_classes, n_classes)
        Costs beyond those of right decisions, where they decide.
    threshold_ : float
        For two classes: the second is decided where its probability is above this.
    class_risks_ : ByClass
        Share of wrong decisions in each class, by cross-fitting: each fold was decided by weights
        that were tuned on the other folds. nan for a class of too few rows.
    class_risk_intervals_ : RiskIntervals
        The same with 95% confidence intervals.
    robust_risk_ : float
        Their worst case over the set of weightings.
    metric_value_ : float
        The metric, by cross-fitting.
    fold_weights_ : ndarray of shape (n_folds, n_classes)
        The weights that each fold was decided by: how far they differ says how uncertain the
        choice is.
    shrinkage_ : float
        How far the weights were drawn towards balanced ones.
    class_prior_ : ByClass
        Class frequencies that were used.
    n_features_in_, feature_names_in_
        Of the base estimator.

    Notes
    -----
    Known weights have no risks to report, except with an estimator that is already fitted.

    Reported risks are those of as many rules as there are folds, each tuned on somewhat fewer rows
    than ``weights_``; they say how such rules do on new rows, and tend to be a little too high for
    the final one. The intervals take them for one rule.

    References
    ----------
    Xu, Dan, Khim and Ravikumar (2020), "Class-Weighted Classification: Trade-offs and Robust
    Approaches", Section 2.3.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from equipoise.estimators import PlugInClassifier
    >>> from equipoise.datasets import load_thyroid
    >>> X, y = load_thyroid(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=10, random_state=0)
    >>> clf = PlugInClassifier(forest, "worst-class", cv=3).fit(X, y)
    >>> bool(clf.class_risks_.max() < 0.1)
    True
    """

    def __init__(
        self,
        estimator: Any,
        goal: Any = None,
        *,
        cv: Any = 5,
        refit: bool = True,
        shrinkage: float | str = "auto",
        class_prior: Any = None,
        rare: str = "error",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.goal = goal
        self.cv = cv
        self.refit = refit
        self.shrinkage = shrinkage
        self.class_prior = class_prior
        self.rare = rare
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self.estimator)
        tags.input_tags.sparse = base.input_tags.sparse
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        if base.classifier_tags is not None:
            tags.classifier_tags.multi_class = base.classifier_tags.multi_class
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Train the base estimator and tune the weights.

        If anything interrupts the fit, the estimator is left as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Whatever the base estimator takes.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, for the training of the base estimator and for the tuning.
        **params : dict
            For the base estimator's ``fit``, and ``groups`` for the splitter. With metadata
            routing they go to who requested them.

        Returns
        -------
        self : PlugInClassifier
        """
        with unchanged_on_failure(self):
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)
            self._fit(X, y, sample_weight, params)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> None:
        purpose = Purpose(as_goal(self.goal))
        shrinkage = check_shrinkage(self.shrinkage, purpose)
        check_flag(self.refit, "refit")
        self._check_estimator()
        every, split_params = self._rows(X, y, sample_weight, params)
        rows = every.with_weight()
        self.classes_ = rows.classes
        prior = rows.shares
        if self.class_prior is not None:
            prior = check_prior(self.class_prior, rows.classes, name="class_prior")
        self.class_prior_ = ByClass(prior, rows.classes)
        if purpose.is_known:
            self._take_known(purpose, rows, prior)
        elif self._is_fitted_before():
            self._take(tune_trial(self._fitted_trial(purpose, rows, prior), purpose, shrinkage))
        else:
            splits = split(self.cv, every, split_params, as_seed(self.random_state))
            refuse_few(splits, rows.counts, rows.classes, self.rare)
            # What cannot be a goal is refused before any model is trained.
            purpose.goal(prior, rows.classes, splits.few)
            trial = self._cross_validated_trial(rows, splits, prior)
            self._take(tune_trial(trial, purpose, shrinkage))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def _is_fitted_before(self) -> bool:
        prefit = isinstance(self.cv, str) and self.cv == "prefit"
        return prefit or isinstance(self.estimator, FrozenEstimator)

    def _check_estimator(self) -> None:
        if inspect.isclass(self.estimator) or not hasattr(self.estimator, "fit"):
            raise InvalidParameterError(
                f"estimator must be a classifier with fit and predict_proba, got "
                f"{self.estimator!r}; for given probabilities use tune_weights."
            )
        if not hasattr(self.estimator, "predict_proba"):
            raise InvalidParameterError(
                f"estimator must have predict_proba, which {type(self.estimator).__name__} has "
                "not: wrap it in scikit-learn's CalibratedClassifierCV, or switch its "
                "probabilities on."
            )
        if self._is_fitted_before():
            check_is_fitted(
                self.estimator,
                "classes_",
                msg="cv='prefit' and FrozenEstimator are for an estimator that is already fitted, "
                "and %(name)s is not: fit it first, or give the plain estimator and a number of "
                "folds as cv.",
            )

    def _rows(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[Rows, dict[str, Any]]:
        """The rows, and what goes to the splitter."""
        if y is None:
            raise InvalidInputError(
                "PlugInClassifier requires y to be passed, but the target y is None."
            )
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if self._is_fitted_before():
            check_classification_targets(y)
            classes = np.asarray(self.estimator.classes_)
            labels = known_labels(y, classes, owner="the fitted estimator")
        else:
            classes, labels = encode_labels(y)
        weights = row_weights(sample_weight, labels, classes)
        fit_params, split_params = self._route(None if sample_weight is None else weights, params)
        return Rows(X, y, labels, classes, weights, fit_params), split_params

    def _route(
        self, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the base estimator's fit, and what to the splitter."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed["estimator"]["fit"]), dict(routed["splitter"]["split"])
        to_fit = {name: value for name, value in params.items() if name != "groups"}
        to_split = {name: value for name, value in params.items() if name == "groups"}
        if sample_weight is not None:
            if "sample_weight" in inspect.signature(self.estimator.fit).parameters:
                to_fit["sample_weight"] = sample_weight
            elif not any(name.endswith("__sample_weight") for name in to_fit):
                self._warn_unweighted()
        return to_fit, to_split

    def _warn_unweighted(self) -> None:
        if self._is_fitted_before():
            return
        warnings.warn(
            f"{type(self.estimator).__name__} does not take sample_weight in fit: it is trained "
            "without, and the weights count in the tuning alone. For a step of a pipeline pass "
            "them as STEP__sample_weight too, or enable metadata routing.",
            EquipoiseWarning,
            stacklevel=5,
        )

    def get_metadata_routing(self) -> MetadataRouter:
        """What metadata ``fit`` takes, and where it goes."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def _cross_validated_trial(self, rows: Rows, splits: Splits, prior: Vector) -> Trial:
        """Predictions for rows left out, while the base estimator is trained."""
        if not self.refit and len(splits.parts) > 1:
            raise InvalidParameterError(
                f"refit must be True where cv has several splits, got refit=False and "
                f"{len(splits.parts)} splits: hold out a share of the rows instead, as in cv=0.2."
            )
        predicted = predict_parts(self.estimator, rows, splits, self.n_jobs)
        self.estimator_ = rows.train(self.estimator) if self.refit else predicted[0].model
        found = in_folds(splits, predicted, rows, as_seed(self.random_state))
        evidence = Evidence(found.probabilities, rows.labels[found.rows], rows.weights[found.rows])
        return Trial(evidence, found.folds, splits.few, rows.classes, rows.shares, prior)

    def _fitted_trial(self, purpose: Purpose, rows: Rows, prior: Vector) -> Trial:
        """Predictions of an estimator that has not seen the rows."""
        self.estimator_ = self.estimator
        probabilities = class_probabilities(self.estimator_, rows.X, rows.classes)
        evidence = Evidence(probabilities, rows.labels, rows.weights)
        folds = deal(rows.labels, as_seed(self.random_state))
        return trial_of_one_model(
            evidence, rows.classes, prior, folds, known=purpose.is_known, rare=self.rare
        )

    def _take_known(self, purpose: Purpose, rows: Rows, prior: Vector) -> None:
        rule = purpose.rule(prior, rows.shares, rows.classes)
        if self._is_fitted_before():
            self._take(judge_known(self._fitted_trial(purpose, rows, prior), rule))
            return
        self.estimator_ = rows.train(self.estimator)
        weights = None if rule.weights is None else ByClass(rule.weights, rows.classes)
        self._set(weights_=weights, threshold_=rule.threshold, costs_=rule.costs)

    def _take(self, tuned: TunedWeights) -> None:
        self._set(
            weights_=tuned.weights,
            threshold_=tuned.threshold,
            costs_=tuned.costs,
            class_risks_=tuned.class_risks,
            class_risk_intervals_=tuned.class_risk_intervals,
            robust_risk_=tuned.robust_risk,
            metric_value_=tuned.metric_value,
            fold_weights_=tuned.fold_weights,
            shrinkage_=tuned.shrinkage,
        )

    def _set(self, **attributes: Any) -> None:
        """Keep what applies."""
        for name, value in attributes.items():
            if value is not None:
                setattr(self, name, value)

    def _probabilities(self, X: Any) -> Matrix:
        check_is_fitted(self)
        return class_probabilities(self.estimator_, X, self.classes_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest weighted probability, or of the least expected cost."""
        probabilities = self._probabilities(X)
        return np.asarray(self.classes_[self._rule().decide(probabilities)])

    def decision_function(self, X: Any) -> NDArray[Any]:
        r"""What decides: :math:`w_i \eta_i(x)`, or minus the expected cost of each class.

        For two classes it is the difference, of shape (n_rows,), positive for the second class.
        """
        probabilities = self._probabilities(X)
        return self._rule().scores(probabilities)

    def _rule(self) -> Rule:
        return rule_of(getattr(self, "weights_", None), getattr(self, "costs_", None))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The base estimator's probabilities as they are, *not* reweighted.

        ``predict`` is the class of the largest *weighted* probability, which need not be the
        largest of these.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))
