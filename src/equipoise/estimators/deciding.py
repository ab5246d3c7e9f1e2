"""The base of classifiers around others: probabilities of the population, and tuned decisions."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from copy import copy, deepcopy
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.metadata_routing import MetadataRouter, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, indexable

from equipoise.arrays import Matrix, NDArray, Vector
from equipoise.blocks.answers import streamed
from equipoise.blocks.base import Blocks
from equipoise.blocks.memory import check_memory
from equipoise.blocks.sources import as_blocks, is_sliced
from equipoise.decisions import (
    Fits,
    Folds,
    HeldOut,
    LabelledRows,
    Splitting,
    Task,
    Training,
    TunedWeights,
    evaluate,
    predict,
    predict_fitted,
    refit,
    split,
    tune,
)
from equipoise.decisions.abstained import ScoredWithAbstentions
from equipoise.decisions.alphas import alpha_choice
from equipoise.decisions.classifiers import (
    check_base,
    fit_and_split_router,
    refuse_validation_rows,
    take_tags,
)
from equipoise.decisions.held_out import rescaled
from equipoise.decisions.levels import choose_level
from equipoise.decisions.summary import DecisionSummary, Summarised
from equipoise.decisions.trained import class_probabilities, take_fit, weight_argument
from equipoise.decisions.tune import POOLING, known_rule
from equipoise.decisions.tuned_weights import (
    check_rare,
    few_classes,
    reported,
    warn_of_cost,
    warn_of_seen_rows,
)
from equipoise.estimators.fit_costs import fit_costs, seconds_of_decision
from equipoise.estimators.sampled_rows import (
    FittedDecisions,
    draw_sample,
    evaluated_on_all,
    stream_of,
)
from equipoise.estimators.unknown_parameters import RefusesUnknownParameters
from equipoise.exceptions import (
    EquipoiseWarning,
    InvalidInputError,
    InvalidParameterError,
    warn,
)
from equipoise.goals import SetGoal, as_goal
from equipoise.goals.labelled_predictions import scores
from equipoise.sets import LabelCVaR
from equipoise.validation.labels import (
    complete_labels,
    encode_labels,
    known_labels,
    one_label_per_row,
    weights_and_totals,
)
from equipoise.validation.numbers import check_flag, check_number, check_seed, check_verbosity
from equipoise.weights.by_class import ByClass


def _of_tuned(name: str) -> property:
    """A fitted attribute that the tuned weights hold, or do not have."""

    def read(self: Any) -> Any:
        value = getattr(self.tuned_, name)
        if value is None:
            raise AttributeError(f"this {type(self).__name__} has no {name}_")
        return value

    return property(read)


class DecidingClassifier(
    RefusesUnknownParameters,
    Summarised,
    ScoredWithAbstentions,
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
):
    """A classifier around another, with decision weights that were tuned on held-out rows.

    Use it as the base of a classifier with other training weights.
    """

    # Whether decisions that are known are evaluated on held-out rows.
    evaluates_known: ClassVar[bool] = False
    instead: ClassVar[dict[str, str]] = {
        "class_weight": "training='balanced' of RobustClassifier trains with class weights, and "
        "the estimator of TunedDecisionClassifier may have its own",
        "uncertainty": "the uncertainty set is its goal",
    }

    def __init__(
        self,
        estimator: Any,
        goal: Any = None,
        *,
        pooling: float = POOLING,
        cv: Any = 5,
        refit: bool = True,
        class_prior: Any = None,
        rare_classes: str = "error",
        min_rows: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        memory: int | str = "1 GiB",
        sample_rows: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.goal = goal
        self.pooling = pooling
        self.cv = cv
        self.refit = refit
        self.class_prior = class_prior
        self.rare_classes = rare_classes
        self.min_rows = min_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.memory = memory
        self.sample_rows = sample_rows
        self.verbose = verbose

    weights_ = _of_tuned("weights")
    threshold_ = _of_tuned("threshold")
    abstain_below_ = _of_tuned("abstain_below")
    costs_ = _of_tuned("costs")
    fold_weights_ = _of_tuned("fold_weights")
    pooling_ = _of_tuned("pooling")
    class_risks_ = _of_tuned("class_risks")
    class_risk_intervals_ = _of_tuned("class_risk_intervals")
    robust_risk_ = _of_tuned("robust_risk")
    metric_value_ = _of_tuned("metric_value")
    class_prior_ = _of_tuned("class_prior")
    rows_seen_ = _of_tuned("rows_seen")

    @property
    def may_abstain(self) -> bool:
        """Whether ``predict`` may give None instead of a class."""
        check_is_fitted(self)
        return bool(self.tuned_.may_abstain)

    def __sklearn_clone__(self) -> Self:
        try:
            return super().__sklearn_clone__()  # type: ignore[no-any-return]
        except RuntimeError:
            # The base estimator is one that scikit-learn refuses to clone.
            bare = copy(self)
            bare.__dict__ = {name: v for name, v in vars(self).items() if not name.endswith("_")}
            return deepcopy(bare)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        take_tags(tags, self.estimator)
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Train the base estimator and tune the weights.

        If anything interrupts the fit, the estimator is left as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features), or Blocks
            Features as the base estimator takes them. Of out-of-core data
            (:mod:`equipoise.blocks`), or of a sliced array larger than half of ``memory``, a
            sample is fitted to, and all other rows are evaluated.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, for the training of the base estimator and for the tuning.
        **params : dict
            For the base estimator's ``fit``, and ``groups`` for the splitter. With metadata
            routing they go to the objects that requested them.
        """
        self._check_estimator()
        blocks = as_blocks(X, y, sample_weight, check_memory(self.memory))
        if blocks is None:
            X, y = (part[:] if is_sliced(part) else part for part in (X, y))
            fitted = self._fitted_to(X, y, sample_weight, params)
        else:
            fitted = self._fitted_to_blocks(blocks, params)
        warn_of_cost(fitted.tuned)
        classes, training = fitted.tuned.classes, fitted.training
        return take_fit(
            self,
            fitted.model,
            classes_=classes,
            tuned_=fitted.tuned,
            class_shares_=ByClass(training.shares, classes),
            training_weights_=ByClass(training.weights_of_model, classes),
            **fitted.attributes,
        )

    def _fitted_to_blocks(self, blocks: Blocks, params: dict[str, Any]) -> FittedDecisions:
        """The stages on a sample of out-of-core rows; all rows outside of it are evaluated."""
        if params:
            raise InvalidInputError(
                f"fit takes no {', '.join(sorted(params))} with out-of-core data: weights come "
                "with the rows, as (X, y, weights)."
            )
        inner, stream = copy(self), stream_of(blocks, self.memory)
        inner.random_state = check_seed(self.random_state)
        try:
            sample = draw_sample(inner, stream)
            X, y = sample.rows.X, sample.classes[sample.rows.labels]
            unweighted = bool(np.all(sample.rows.weights == 1))
            if sample.is_whole:
                return inner._fitted_to(X, y, None if unweighted else sample.rows.weights, {})
            inner.min_rows = sample.least_rows(self.min_rows)
            if not self._is_fitted_before():
                inner.cv, inner.refit = [sample.parts], False
            with warnings.catch_warnings():
                if unweighted:
                    # Of an estimator that takes no weights a sample has the shares of all rows.
                    pattern = ".* does not take sample_weight"
                    warnings.filterwarnings("ignore", pattern, EquipoiseWarning)
                fitted = inner._fitted_to(X, y, sample.weights(), {})
            return evaluated_on_all(fitted, sample, stream, self.class_prior)
        finally:
            stream.blocks.close()

    def _fitted_to(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]
    ) -> FittedDecisions:
        """Split, predict, tune, evaluate, select and refit, on rows in memory."""
        choice = alpha_choice(self.goal)
        rows, to_split = self._labelled(X, y, sample_weight, params)
        training = self._training(rows)
        task = Task(
            as_goal(self.goal),
            rows.classes,
            training.prior,
            few=np.zeros(len(rows.classes), dtype=bool),
            drop=self.rare_classes == "drop",
            pooling=check_number(self.pooling, "pooling", "[0, inf)"),
            seed=check_seed(self.random_state),
        )
        if task.goal.is_known and not self.evaluates_known and not self._is_fitted_before():
            rule = known_rule(task)
            tuned = TunedWeights(rows.classes, training.prior, rule.rule)
            model = refit(self.estimator, rows, training)
            return FittedDecisions(model, training, tuned, {}, (task, rule))

        began = perf_counter()
        held_out, task = self._held_out(task, rows, training, to_split)
        tasks, predicted_at = [task], perf_counter()
        if choice is not None:
            alphas = choice.levels(task.prior[~task.few])
            goals = [SetGoal(LabelCVaR(alpha)) for alpha in alphas.tolist()]
            tasks = [replace(task, goal=goal) for goal in goals]
        rules = [tune(held_out, each) for each in tasks]
        evaluated = [evaluate(held_out, *pair) for pair in zip(rules, tasks, strict=True)]
        index, attributes = 0, dict[str, Any]()
        if choice is not None:
            level = choose_level(choice, alphas, evaluated, rows.classes)
            index, attributes = level.index, level.attributes()
        tuned = reported(tasks[index], rules[index], evaluated[index], len(tasks))
        tuned_at, model = perf_counter(), held_out.model
        if held_out.tested_per_trained:
            trained_on = rows.without(task.few) if task.drop else rows
            model = refit(self.estimator, trained_on, training)
        if held_out.seconds is not None:
            once, predicting = held_out.seconds
            attributes["seconds_"] = {
                "fit": perf_counter() - began,
                "one base fit": once,
                "tuning": tuned_at - predicted_at,
                "base prediction": predicting / len(held_out.fold),
                "decision": seconds_of_decision(held_out, rules[index]),
            }
        decided = tasks[index], rules[index]
        return FittedDecisions(model, training, tuned, attributes, decided, evaluated[index])

    def _held_out(
        self, task: Task, rows: LabelledRows, training: Training, to_split: dict[str, Any]
    ) -> tuple[HeldOut, Task]:
        """Predictions for held-out rows, and the task with the classes that have too few rows."""
        goal, classes = task.goal, rows.classes
        rare = check_rare(self.rare_classes, self.min_rows, goal)
        if self._is_fitted_before():
            held_out = predict_fitted(self.estimator, rows, training, task.seed)
            warn_of_seen_rows(held_out.predictions)
            return held_out, replace(task, few=few_classes(held_out, goal, classes, rare))
        # A confidence is about one model.
        once = goal.confidence is not None
        folds = split(rows, Splitting(self.cv, task.seed, to_split, once, rare))
        keeps_model = once or self._keeps_model(folds)
        task = replace(task, few=folds.few)
        if alpha_choice(goal) is None:
            # What the rows can never show is refused before any training.
            tested = np.bincount(rows.labels[folds.rows], minlength=len(classes))
            task.criterion.check_counts(tested[~folds.few])
        fits = Fits(self.n_jobs, not keeps_model, check_verbosity(self.verbose))
        held_out = predict(self.estimator, rows, folds, training, fits)
        return (replace(held_out, tested_per_trained=0.0) if keeps_model else held_out), task

    def _training(self, rows: LabelledRows) -> Training:
        """The class weights of the trainings, and the class frequencies of the population."""
        shares, prior = rows.prior(), rows.prior(self.class_prior)
        weights = np.ones((1, len(shares)))
        if not self._is_fitted_before():
            weights = self._class_weights(rows.classes, shares)
        return Training(weights, shares, prior)

    @abstractmethod
    def _class_weights(self, classes: NDArray[Any], shares: Vector) -> Matrix:
        """Class weights to train with, a line for each model."""

    def _keeps_model(self, folds: Folds) -> bool:
        """Whether the model of a single split is kept."""
        if not self.refit and len(folds.parts) > 1:
            raise InvalidParameterError(
                f"refit must be True where cv has several splits, got refit=False and "
                f"{len(folds.parts)} splits: hold out a share of the rows instead, as in cv=0.2."
            )
        return not self.refit

    def _is_fitted_before(self) -> bool:
        prefit = isinstance(self.cv, str) and self.cv == "prefit"
        return prefit or isinstance(self.estimator, FrozenEstimator)

    def _check_estimator(self) -> None:
        check_flag(self.refit, "refit")
        check_base(self.estimator, fitted=self._is_fitted_before())

    def _labelled(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[LabelledRows, dict[str, Any]]:
        """The rows as scikit-learn takes them, and arguments of the splitter."""
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X, y = indexable(X, one_label_per_row(y))
        y = complete_labels(column_or_1d(y, warn=True))
        assert_all_finite(y, input_name="y")
        if self._is_fitted_before():
            check_classification_targets(y)
            classes = np.asarray(self.estimator.classes_)
            labels = known_labels(y, classes, owner="the fitted estimator")
        else:
            classes, labels = encode_labels(y)
        weights, _ = weights_and_totals(sample_weight, labels, classes)
        to_fit, to_split = self._route(None if sample_weight is None else weights, params)
        # Rows without weight are not used.
        labels = np.where(weights > 0, labels, -1)
        return LabelledRows(X, y, labels, classes, weights, to_fit), to_split

    def _route(
        self, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the base estimator's fit, and what to the splitter."""
        refuse_validation_rows(params)
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed["estimator"]["fit"]), dict(routed["splitter"]["split"])
        to_fit = {name: value for name, value in params.items() if name != "groups"}
        to_split = {name: value for name, value in params.items() if name == "groups"}
        if sample_weight is not None:
            key = weight_argument(self.estimator)
            if key is not None:
                to_fit.setdefault(key, sample_weight)
            elif not self._is_fitted_before() and not any("__sample_weight" in n for n in to_fit):
                warn(
                    f"{type(self.estimator).__name__} does not take sample_weight in fit: it is "
                    "trained without, and the weights count in the tuning alone. For a step of a "
                    "pipeline pass them as STEP__sample_weight too, or enable metadata routing.",
                    EquipoiseWarning,
                )
        return to_fit, to_split

    def get_metadata_routing(self) -> MetadataRouter:
        """What metadata ``fit`` takes, and where it goes."""
        return fit_and_split_router(self, self.estimator, self.cv)

    @streamed
    def predict(self, X: Any, *, costs: Any = None) -> NDArray[Any]:
        """The class of the largest weighted probability, or of the least expected cost.

        A row that the goal abstains from has None instead of a class.

        Parameters
        ----------
        X : array-like
            Rows, as the base estimator takes them.
        costs : array-like of shape (n_rows, n_classes, n_classes) or (n_rows, n_classes), optional
            Costs of each row, by true class and decision or of missing each class, which take the
            place of the tuned weights (:func:`~equipoise.goals.decide_by_costs`).
        """
        table = self._population(X)
        return np.asarray(self.tuned_.of_table(table, costs))

    @streamed
    def decision_function(self, X: Any) -> NDArray[Any]:
        r"""Scores for ``predict``: :math:`w_i \eta_i(x)`, or minus the expected cost of a class.

        For two classes it is the difference, of shape (n_rows,), positive for the second class.
        Where the goal may abstain they say which class comes first, not whether it is predicted.
        """
        return scores(self._population(X), self.tuned_.rule[..., : len(self.classes_)])

    def _population(self, X: Any) -> Matrix:
        check_is_fitted(self)
        table = class_probabilities(self.estimator_, X, self.classes_)
        return np.asarray(rescaled(table, self.factors_))

    @property
    def training_masses_(self) -> ByClass:
        """Class frequencies on whose scale ``predict_proba`` is: those of the population."""
        return self.class_prior_  # type: ignore[no-any-return]

    @property
    def factors_(self) -> Vector:
        """Factors from the probabilities of ``estimator_`` to those of the population."""
        weights, shares = np.asarray(self.training_weights_), np.asarray(self.class_shares_)
        training = Training(weights[None], shares, np.asarray(self.class_prior_))
        return training.factors_for(self.estimator_)

    def summary(self) -> DecisionSummary:
        """What the decisions gain and cost on held-out rows, class by class, and in time and size.

        Default predictions are the most probable classes of the same models. Known decisions of a
        model that is not fitted before are not evaluated by ``TunedDecisionClassifier``, and have
        none.
        """
        check_is_fitted(self)
        return self.tuned_.summary().with_costs(**fit_costs(self))  # type: ignore[no-any-return]

    @available_if(  # type: ignore[untyped-decorator]
        lambda self: hasattr(self.estimator, "predict_proba")
    )
    @streamed
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Class probabilities on the scale of the population; ``predict`` is not their argmax.

        They are for the class frequencies ``class_prior``, by default those of the training rows,
        with any training weights. ``predict`` is the class of the largest *weighted* one.
        """
        return self._population(X)
