"""Any classifier with probabilities, and decision weights that serve a purpose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy, deepcopy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, indexable

from equipoise.arrays import Indices, Mask, Matrix, NDArray, Vector
from equipoise.blocks.memory import check_memory
from equipoise.blocks.sources import as_blocks, is_sliced
from equipoise.decisions import Predictions, TunedWeights, decide, left_out, tuning
from equipoise.decisions.tuning import check_rare, check_shrinkage, judge_known, tune_predicted
from equipoise.estimators.alpha_path import tune_along
from equipoise.estimators.class_weighted import weight_argument
from equipoise.estimators.robust_linear import streamed
from equipoise.estimators.sampled_rows import fit_to_sample
from equipoise.exceptions import (
    EquipoiseWarning,
    FewRowsWarning,
    InvalidInputError,
    InvalidParameterError,
    warn,
)
from equipoise.goals import Criterion, Goal, SetGoal, as_goal
from equipoise.sets import AlphaChoice, LabelCVaR, alpha_choice
from equipoise.validation.classifiers import check_base, refuse_rows_to_stop_by, take_tags
from equipoise.validation.folds import deal, folds_of, refuse_few, split_rows, without_classes
from equipoise.validation.labels import encode_labels, known_labels
from equipoise.validation.numbers import check_count, check_flag, check_seed
from equipoise.weights.priors import check_prior


def _of_tuned(name: str) -> property:
    """A fitted attribute that the tuned weights hold, or do not have."""

    def read(self: Any) -> Any:
        value = getattr(self.tuned_, name)
        if value is None:
            raise AttributeError(f"this {type(self).__name__} has no {name}_")
        return value

    return property(read)


# An estimator, its model of the first split, what was tuned for it, and what tunes it for another
# criterion.
Judged = tuple[Any, Any, tuning.Outcome, Callable[..., tuning.Outcome] | None]
# Where nothing but the level is to be chosen, it is tuned for when that is.
_LATER: tuning.Outcome = ({}, np.empty((0, 0, 0)), "")


class DecidingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier around another, which decides by weights that were tuned on rows left out."""

    # Whether there is a choice to be made where the decisions are known.
    chooses_training: ClassVar[bool] = False

    estimator: Any
    goal: Any
    cv: Any
    refit: bool
    shrinkage: Any
    class_prior: Any
    rare: str
    min_rows: int
    n_jobs: int | None
    random_state: Any
    memory: int | str

    weights_ = _of_tuned("weights")
    threshold_ = _of_tuned("threshold")
    costs_ = _of_tuned("costs")
    fold_weights_ = _of_tuned("fold_weights")
    shrinkage_ = _of_tuned("shrinkage")
    class_risks_ = _of_tuned("class_risks")
    class_risk_intervals_ = _of_tuned("class_risk_intervals")
    robust_risk_ = _of_tuned("robust_risk")
    metric_value_ = _of_tuned("metric_value")
    class_prior_ = _of_tuned("class_prior")
    rows_seen_ = _of_tuned("rows_seen")

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
            Whatever the base estimator takes. To a sample of rows in :mod:`equipoise.blocks`, or of
            a sliced array larger than half of ``memory``, it is fitted; all others are judged.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, for the training of the base estimator and for the tuning.
        **params : dict
            For the base estimator's ``fit``, and ``groups`` for the splitter. With metadata
            routing they go to who requested them.
        """
        self._check_estimator()
        blocks = as_blocks(X, y, sample_weight, check_memory(self.memory))
        if blocks is None:
            X, y = (part[:] if is_sliced(part) else part for part in (X, y))
            model, tuned, more = self._fitted(X, y, sample_weight, params)
        else:
            model, tuned, more = fit_to_sample(self, blocks, params)
        found = {"classes_": tuned.classes, "estimator_": model, "tuned_": tuned, **more}
        for name in ("n_features_in_", "feature_names_in_"):
            found[name] = getattr(model, name, None)
        given = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        # In one step, so that nothing can be left half-done.
        self.__dict__ = given | {name: v for name, v in found.items() if v is not None}
        return self

    def _fitted(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[Any, TunedWeights, dict[str, Any]]:
        """The fitted base estimator, the weights that decide, and other attributes."""
        goal, choice = as_goal(self.goal), alpha_choice(self.goal)
        shrinkage, rare = check_shrinkage(self.shrinkage, goal), check_rare(self.rare, goal)
        min_rows, seed = check_count(self.min_rows, "min_rows"), check_seed(self.random_state)
        # The rows, of which those without weight are left out.
        X, y, classes, labels = self._labelled(X, y)
        weights = left_out.row_weights(sample_weight, labels, classes)
        to_fit, to_split = self._route(None if sample_weight is None else weights, params)
        totals = np.bincount(labels, weights=weights, minlength=len(classes))
        shares, given = totals / totals.sum(), self.class_prior
        prior = shares if given is None else check_prior(given, classes, name="class_prior")
        labels = np.where(weights > 0, labels, -1)
        used = np.flatnonzero(labels >= 0)
        if self._is_fitted_before():
            predictions = self._predicted_before(X, used, labels, weights, classes)
            tune_goal = partial(
                tune_predicted, predictions, deal(predictions.labels, seed), prior=prior,
                classes=classes, shrinkage=shrinkage, rare=rare, min_rows=min_rows, seed=seed,
            )  # fmt: skip
            return self.estimator, *_settled(goal, choice, tune_goal, classes, prior)
        if goal.is_known and not self.chooses_training:
            rule = goal.resolve(prior, classes).known(shares)
            model = left_out.train_on(self.estimator, X, y, to_fit, used)
            return model, TunedWeights(classes, prior, rule), {}

        # What cannot be tuned is refused before any training; a confidence is about one model.
        once = goal.confidence is not None
        parts, few, needed = split_rows(self.cv, X, y, labels, to_split, seed, once=once)
        few = refuse_few(few, needed, np.bincount(labels[used]), classes, rare, min_rows)
        refit = 0.0 if once else self._refit_of(parts)
        first = goal if choice is None else SetGoal(LabelCVaR(choice.central(prior[~few])))
        criterion = first.resolve_some(prior, classes, few)
        if rare == "drop":
            labels, parts, used = without_classes(few, labels, parts)
        criterion.allowed_errors(np.bincount(labels[parts[0][1]], minlength=len(few))[~few])
        # Every row is predicted by a model that has not seen it.
        tune = partial(tuning.tune_on_folds, drop=rare == "drop", shrinkage=shrinkage, seed=seed)
        judge = partial(judge_known if goal.is_known else tune, shares=shares, classes=classes)

        def judged(estimator: Any, as_trained: Vector | None = None) -> Judged:
            train = partial(left_out.train_on, estimator, X, y, to_fit, quiet=refit > 0)
            predictions, model = left_out.predict_parts(
                train, X, labels, weights, parts, classes=classes, n_jobs=self.n_jobs
            )
            folds = folds_of(parts, predictions.labels, seed)
            at = partial(judge, predictions, folds, few=few, refit=refit)
            own = {} if criterion.lean is None else {"as_trained": as_trained}
            found = _LATER if choice and not self.chooses_training else at(criterion, **own)
            if as_trained is not None and not own:
                rule = as_trained * ~(few & (rare == "drop"))
                found = tuning.judge_either(found, predictions, folds, criterion, rule, few, refit)
            return estimator, model, found, at if choice else None

        (estimator, model, found, at), more = self._choose(judged, criterion, classes, shares, few)
        level = lambda other: at(other.resolve_some(prior, classes, few)) if at else found  # noqa: E731
        tuned, path = _settled(goal, choice, level, classes, prior, few)
        model = left_out.train_on(estimator, X, y, to_fit, used) if refit else model
        return model, tuned, more | path

    def _predicted_before(
        self, X: Any, used: Indices, labels: Indices, weights: Vector, classes: NDArray[Any]
    ) -> Predictions:
        """What an estimator that was fitted before says of rows."""
        rows = left_out.rows_of(X, used, len(labels))
        table = left_out.class_probabilities(self.estimator, rows, classes)
        predictions = Predictions(table, labels[used], weights[used])
        tuning.warn_of_seen_rows(predictions)
        return predictions

    @abstractmethod
    def _choose(
        self, judged: Callable[..., Judged], criterion: Criterion, classes: NDArray[Any],
        shares: Vector, few: Mask,
    ) -> tuple[Judged, dict[str, Any]]:  # fmt: skip
        """What is trained in the end, as it was judged, and attributes that tell of the choice."""

    def _is_fitted_before(self) -> bool:
        prefit = isinstance(self.cv, str) and self.cv == "prefit"
        return prefit or isinstance(self.estimator, FrozenEstimator)

    def _check_estimator(self) -> None:
        check_flag(self.refit, "refit")
        check_base(self.estimator, fitted=self._is_fitted_before())

    def _labelled(self, X: Any, y: Any) -> tuple[Any, NDArray[Any], NDArray[Any], Indices]:
        """The rows as scikit-learn takes them, class names, and the class index of every row."""
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if not self._is_fitted_before():
            return X, y, *encode_labels(y)
        check_classification_targets(y)
        classes = np.asarray(self.estimator.classes_)
        return X, y, classes, known_labels(y, classes, owner="the fitted estimator")

    def _refit_of(self, parts: list[tuple[Indices, Indices]]) -> float:
        """Rows judged for each row of a training part, 0 where the model of that part is kept."""
        if not self.refit and len(parts) > 1:
            raise InvalidParameterError(
                f"refit must be True where cv has several splits, got refit=False and {len(parts)} "
                "splits: hold out a share of the rows instead, as in cv=0.2."
            )
        return left_out.judged_per_trained(parts) if self.refit else 0.0

    def _route(
        self, sample_weight: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What goes to the base estimator's fit, and what to the splitter."""
        refuse_rows_to_stop_by(params)
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return dict(routed["estimator"]["fit"]), dict(routed["splitter"]["split"])
        to_fit = {name: value for name, value in params.items() if name != "groups"}
        to_split = {name: value for name, value in params.items() if name == "groups"}
        if sample_weight is not None:
            key = weight_argument(self.estimator)
            if key == "sample_weight" or (key and self.chooses_training):
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
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=to_split)

    @streamed
    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest weighted probability, or of the least expected cost."""
        decided = decide(*self._probabilities_and_rule(X))
        return np.asarray(self.classes_[decided])

    @streamed
    def decision_function(self, X: Any) -> NDArray[Any]:
        r"""What decides: :math:`w_i \eta_i(x)`, or minus the expected cost of each class.

        For two classes it is the difference, of shape (n_rows,), positive for the second class.
        """
        return left_out.scores(*self._probabilities_and_rule(X))

    def _probabilities_and_rule(self, X: Any) -> tuple[Matrix, Vector | Matrix]:
        """Probabilities, and the weights, or the costs where these decide."""
        check_is_fitted(self)
        table = left_out.class_probabilities(self.estimator_, X, self.classes_)
        return table, self.tuned_.rule

    @available_if(  # type: ignore[untyped-decorator]
        lambda self: hasattr(getattr(self, "estimator_", self.estimator), "predict_proba")
    )
    @streamed
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The base estimator's probabilities as they are, *not* reweighted.

        ``predict`` is the class of the largest *weighted* probability, which need not be the
        largest of these. A class that was dropped has a column of zeros.
        """
        check_is_fitted(self)
        table = np.asarray(self.estimator_.predict_proba(X))
        if table.shape[1] == len(self.classes_):
            return table
        return left_out.class_probabilities(self.estimator_, X, self.classes_)


def _settled(
    goal: Goal, choice: AlphaChoice | None, tune: Callable[[Goal], tuning.Outcome],
    classes: NDArray[Any], prior: Vector, few: Mask | None = None,
) -> tuple[TunedWeights, dict[str, Any]]:  # fmt: skip
    """What is tuned for a goal, or at the level that is chosen for it, and attributes of that."""
    if choice is None:
        (found, _, words), more = tune(goal), dict[str, Any]()
    else:
        found, words, more = tune_along(choice, tune, classes, prior, few)
    if words:
        warn(words, FewRowsWarning)
    return TunedWeights(classes, prior, **found), more


class PlugInClassifier(DecidingClassifier):
    r"""A classifier with probabilities, decided by weights that serve a purpose.

    .. math:: f(x) = \arg\max_i \; w_i \eta_i(x)

    with the base estimator's probabilities :math:`\eta`; for two classes this is
    :math:`\eta_1(x) > w_0 / (w_0 + w_1)`. The weights are the best for a goal:

    - the smallest worst-case risk :math:`\max_{q \in Q} \sum_i q_i p_i R_i` over a set of
      weightings, with zero-one class risks :math:`R_i`;
    - a large value of a metric on new rows;
    - the smallest risk among all weights that keep the recall of some classes above floors;
    - or they are known, as is a table of costs, then decided by the least expected cost.

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
        or ``"worst-class"``; a metric or its name, such as ``"macro_f1"``: see
        :class:`~equipoise.goals.MetricGoal`; ``RecallFloors(...)``. ``FixedWeights(...)``,
        ``"balanced"``, ``"standard"`` and ``CostMatrix(...)`` are known: they need no tuning, and
        no cross-validation.
    cv : int, float, splitter, iterable or "prefit", default=5
        The number of folds (stratified, rows shuffled); or the share of the rows to hold out for
        tuning; or a splitter that tests no row twice; or ``"prefit"`` for an estimator that is
        already fitted. Equal rows stay together, or a model would be judged by what it has seen
        (``StratifiedKFold(5, shuffle=True)`` parts them). Floors with a confidence are about one
        model: there is one split, the first of a splitter, and a number of folds holds out the
        share of one (a fifth by default).
    refit : bool, default=True
        Whether the base estimator is trained on all rows in the end; False keeps the one of a
        single split. That one is always kept for floors with a confidence.
    shrinkage : "auto" or float in [0, 1], default="auto"
        How far the tuned weights are drawn towards balanced ones. ``"auto"`` averages them over
        the folds and chooses the amount by cross-validation (0 for metrics of two classes that
        count rows, such as F1 and accuracy); 0 takes the best weights for the tuning rows as they
        are, which on new rows has mostly done worse: see
        :class:`~equipoise.goals.MetricGoal`. Floors allow for neither.
    class_prior : dict or array-like of shape (n_classes,), default=None
        Class frequencies of the population, where those of the rows differ. Weights and sets count
        relative to these, and known weights are carried over to the scale of ``predict_proba``.
    rare : {"error", "keep", "drop"}, default="error"
        What to do with a class of too few rows to be tuned: refuse; or train on it, count its
        probability as it is (weight 1), and report no risk; or leave its rows out of training,
        tuning and judging. A class that was dropped keeps its name in ``classes_`` and has weight
        0, probability 0 and no risk: it is never decided. Floors with a confidence keep none.
    min_rows : int, default=1
        A class of fewer rows has too few, even if it could be tuned (with ``rare="keep"`` only if
        two others have enough). Where it is tuned, one of fewer than 30 rows beside two others or
        more decides their worst case only as far as its rows show that this helps it (with
        ``shrinkage="auto"``, for the worst class and other sets of caps). A warning says what the
        weight of one among 20 times as many rows costs these.
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
    weights_, threshold_, costs_, fold_weights_, shrinkage_
        What decides, as in :class:`~equipoise.TunedWeights`, on the scale of ``predict_proba``.
        There are ``costs_`` and no ``weights_`` where a cost matrix says more than weights can, and
        a ``threshold_`` for two classes.
    class_risks_, class_risk_intervals_, robust_risk_, metric_value_
        What the decisions do to new rows, as in ``TunedWeights``, by cross-fitting: each fold was
        decided by weights that were tuned on the other folds. Intervals are of 95% confidence.
    class_prior_ : ByClass
        Class frequencies of the population: those given, or those of the rows.
    rows_seen_, n_passes_
        Of blocks, the rows of each class that were trained on, tuned on, and judged (all that were
        not trained on), and how often they were read.
    alpha_, chosen_, path_
        With ``LabelCVaR("auto")``, the level that was chosen, as in :class:`RobustPathCV`.
    n_features_in_, feature_names_in_
        Of the base estimator.

    Notes
    -----
    Known weights have no risks to report, except with an estimator that is already fitted. Nor has
    a floor that only all tuning rows can show with its confidence, and four of five cannot.

    Reported risks are those of as many rules as there are folds, each tuned on somewhat fewer rows
    than ``weights_``; they say how such rules do on new rows, and tend to be a little too high for
    the final one. The intervals are for the final one, and wider for that. In simulations with five
    learners (``pytest -m slow tests/test_coverage.py`` prints the rates) they held its risks as
    often as they should, with one exception: for boosted trees with 2,000 rows of one class and 40
    of the other, the risk of the larger class in 78.8% of the tables, because training on all rows
    changes the scale of the probabilities. With ``cv=0.3, refit=False``, or a fitted estimator, it
    is one model that is judged and returned, and they held there, too.
    Intervals that are exact need rows that nothing was fitted on:
    ``class_risk_intervals(y_test, clf.predict(X_test))``.

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
        min_rows: int = 1,
        n_jobs: int | None = None,
        random_state: Any = None,
        memory: int | str = "1 GiB",
        sample_rows: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.goal = goal
        self.cv = cv
        self.refit = refit
        self.shrinkage = shrinkage
        self.class_prior = class_prior
        self.rare = rare
        self.min_rows = min_rows
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.memory = memory
        self.sample_rows = sample_rows

    def _choose(
        self, judged: Callable[..., Judged], criterion: Criterion, classes: NDArray[Any],
        shares: Vector, few: Mask,
    ) -> tuple[Judged, dict[str, Any]]:  # fmt: skip
        return judged(self.estimator), {}
