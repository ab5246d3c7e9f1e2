"""Training a model on some of the rows, with class weights if any, and its probabilities."""

import inspect
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Self, TypeVar

import numpy as np
from scipy.special import softmax
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import VotingClassifier
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_method_params, _num_samples

from equipoise.arrays import Indices, Matrix, NDArray, Vector, on_host
from equipoise.decisions.classifiers import last_of, stops_early
from equipoise.decisions.early_stopping import with_validation_rows
from equipoise.decisions.folds import LabelledRows
from equipoise.exceptions import InvalidInputError
from equipoise.validation.labels import known_labels
from equipoise.validation.predictions import as_probabilities
from equipoise.validation.prefitted import Prefitted

Fitted = TypeVar("Fitted", bound=BaseEstimator)


def train(
    estimator: Any, rows: LabelledRows, part: Indices, class_weights: Vector | None = None
) -> Any:
    """A copy of the estimator, fitted to some rows; arguments with an entry a row follow them.

    Class weights multiply the weights of the rows; equal ones change nothing and are not given.
    """
    params = dict(rows.params)
    if class_weights is not None and np.any(class_weights != class_weights[0]):
        key = weight_argument(estimator)
        assert key is not None
        routed = get_config()["enable_metadata_routing"]
        user_weights = params.pop("sample_weight" if routed else key, None)
        weights = class_weights[rows.labels] * (
            1.0 if user_weights is None else np.asarray(user_weights)
        )
        if routed and last_of(estimator) is not estimator:
            estimator, key = _requesting(estimator), "sample_weight"
        params[key] = weights
    if stops_early(estimator):
        part, stopping = with_validation_rows(estimator, rows.X, rows.y, params, part)
    else:
        stopping = {}
    if len(part) < len(rows.y):
        params = _check_method_params(rows.X, params, part)
    return _fitted(estimator, rows.features(part), rows.y[part], {**params, **stopping})


def _fitted(estimator: Any, X: Any, y: NDArray[Any], params: Mapping[str, Any]) -> Any:
    """A fitted copy, of one that takes classes as numbers alone around their indices."""
    try:
        model = unfitted(estimator).fit(X, y, **params)
    except (TypeError, ValueError) as error:
        classes = np.unique(y)
        if classes.dtype.kind in "biu" and np.array_equal(classes, np.arange(len(classes))):
            raise
        # Any other error occurs again.
        try:
            model = NumberedClasses(estimator).fit(X, y, **params)
        except Exception as with_numbers:
            raise error from with_numbers
        model.reason_ = str(error)
    if model is None or not hasattr(model, "classes_"):
        problem = "returned None" if model is None else "left no classes_"
        raise InvalidInputError(
            f"fit of {type(estimator).__name__} {problem}: a classifier's fit must return itself, "
            "with the class names as classes_."
        )
    return model


def unfitted(estimator: Any) -> Any:
    """A copy without what was fitted, also of an estimator that scikit-learn refuses to clone."""
    try:
        return clone(estimator)
    except RuntimeError:
        # Its constructor copies its arguments, as CatBoost's does with lists of columns.
        return deepcopy(estimator)


def take_fit(estimator: Fitted, model: Any, **learned: Any) -> Fitted:
    """Give an estimator around a fitted model what it has learned, in place of an earlier fit.

    In one step, so that nothing can be left half-done.
    """
    names = "n_features_in_", "feature_names_in_"
    shape = {name: getattr(model, name) for name in names if hasattr(model, name)}
    parameters = {name: value for name, value in vars(estimator).items() if not name.endswith("_")}
    estimator.__dict__ = parameters | learned | shape | {"estimator_": model}
    return estimator


class NumberedClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that takes classes as numbers 0, 1, ... alone, for classes of any names.

    Use it for base estimators that refuse class names, as XGBoost's do; estimators of this package
    do so themselves.

    ``reason_`` says why names were refused.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> NumberedClasses(LogisticRegression()).fit([[0.0], [1.0]], ["a", "b"]).predict([[2.0]])
    array(['b'], dtype='<U1')
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit a copy of the estimator to the indices of the classes among their sorted names."""
        classes, numbers = np.unique(y, return_inverse=True)
        model = unfitted(self.estimator).fit(X, numbers, **params)
        return take_fit(self, model, classes_=classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """The names of the classes that the estimator predicts."""
        return np.asarray(self.classes_[np.asarray(self.estimator_.predict(X), dtype=np.intp)])

    def predict_proba(self, X: Any) -> Any:
        """The estimator's probabilities, columns in the order of the sorted names."""
        return self.estimator_.predict_proba(X)


class AveragedTrainings(Prefitted):
    """Fitted models of several training weights, whose probabilities are averaged.

    Use it as the fitted model of ``RobustClassifier(training="average")``.

    ``predict_proba`` divides those of each model by its class weights, which puts them on the scale
    of the training class frequencies, and takes their mean.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> models = [LogisticRegression().fit([[0.0], [1.0]], [0, 1]) for _ in range(2)]
    >>> AveragedTrainings(models, np.ones((2, 2)), [0, 1]).predict([[0.0], [1.0]])
    array([0, 1])
    """

    def __init__(self, estimators: Any, class_weights: Any, classes: Any) -> None:
        self.estimators = estimators
        self.class_weights = class_weights
        self.classes = classes

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self.estimators[0].n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, where the models know them."""
        return np.asarray(self.estimators[0].feature_names_in_)

    def predict_proba(self, X: Any) -> Matrix:
        """Class probabilities on the scale of the training class frequencies."""
        pairs = zip(self.estimators, self.class_weights, strict=True)
        return mean_probabilities([class_probabilities(m, X, self.classes_) / v for m, v in pairs])


def mean_probabilities(tables: list[Matrix]) -> Matrix:
    """The mean of tables whose rows are scaled to sum to one."""
    return np.asarray(np.mean([each / each.sum(axis=1, keepdims=True) for each in tables], axis=0))


def class_probabilities(model: Any, X: Any, classes: NDArray[Any]) -> Matrix:
    """Probabilities of a fitted model, with a column of zeros for a class it has never seen.

    Of a model that has scores alone, their logistic transformation.
    """
    known = np.asarray(getattr(model, "classes_", classes))
    if hasattr(model, "predict_proba"):
        source = f"predict_proba of {type(model).__name__}"
        probabilities = as_probabilities(model.predict_proba(X), len(known), name=source)
    else:
        scores = np.asarray(on_host(model.decision_function(X)), dtype=np.float64)
        scores = np.column_stack([0 * scores, scores]) if scores.ndim == 1 else scores
        probabilities = softmax(scores, axis=1)
    if len(probabilities) != (n_rows := _num_samples(X)):
        raise InvalidInputError(
            f"{type(model).__name__} must give probabilities for each of {n_rows} rows, got "
            f"{len(probabilities)}."
        )
    if np.array_equal(known, classes):
        return probabilities
    aligned = np.zeros((len(probabilities), len(classes)))
    aligned[:, known_labels(known, classes, owner="the classifier")] = probabilities
    return aligned


# How weights of rows reach an estimator


def weight_argument(estimator: Any) -> str | None:
    """How weights of rows are passed to ``fit``, None if they cannot be."""
    if isinstance(estimator, Pipeline):
        name, step = estimator.steps[-1]
        argument = weight_argument(step)
        return argument and f"{name}__{argument}"
    if isinstance(estimator, VotingClassifier):
        every = {weight_argument(each) for _, each in estimator.estimators if each != "drop"}
        return "sample_weight" if every == {"sample_weight"} else None
    if "sample_weight" in inspect.signature(estimator.fit).parameters:
        return "sample_weight"
    if hasattr(estimator, "estimator") and hasattr(estimator, "refit"):
        return weight_argument(estimator.estimator)
    return None


def _requesting(estimator: Any) -> Any:
    """A copy whose last step is routed the weights of rows; other steps only if they ask."""
    model = unfitted(estimator)
    if isinstance(model, Pipeline):
        steps = [(name, _not_requesting(step)) for name, step in model.steps[:-1]]
        last = model.steps[-1]
        return model.set_params(steps=[*steps, (last[0], _requesting(last[1]))])
    if hasattr(model, "estimator") and hasattr(model, "refit"):
        if isinstance(named := getattr(model, "scoring", None), str):
            model.set_params(scoring=get_scorer(named).set_score_request(sample_weight=False))
        return model.set_params(estimator=_requesting(model.estimator))
    ready = _not_requesting(model)
    return ready.set_fit_request(sample_weight=True) if hasattr(ready, "set_fit_request") else ready


def _not_requesting(step: Any) -> Any:
    """A step that takes weights where it has said so, and without an error where it has not."""
    for method in ("fit", "transform", "score"):
        known = getattr(getattr(step, "_get_metadata_request", dict)(), method, None)
        requests = {} if known is None else known.requests
        if requests.get("sample_weight", False) is None:
            getattr(step, f"set_{method}_request")(sample_weight=False)
    return step
