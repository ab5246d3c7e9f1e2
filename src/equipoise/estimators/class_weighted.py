"""Any classifier trained with class weights, its probabilities put back on the rows' own scale."""

import inspect
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from equipoise.arrays import Indices, NDArray, Vector
from equipoise.decisions import left_out
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import FixedWeights, as_uncertainty

# Parameters by which other classifiers weigh classes themselves, and the values that do nothing.
_OWN_WEIGHTS = (
    "class_weight", "class_weights", "auto_class_weights", "is_unbalance", "scale_pos_weight",
)  # fmt: skip
_NO_WEIGHTS = (None, False, 1, "None")
# Rows that a booster which stops early holds out of each training part.
_HELD_OUT = 0.15
# Parameters by which a leaf must hold so many rows, whatever they weigh, and for how many leaves a
# class that is trained with weights has rows at least.
_LEAF_ROWS = ("min_samples_leaf", "min_child_samples", "min_data_in_leaf")
_LEAVES = 10
# What splits the rows that it is given itself: a copy of a row would be on both sides.
_SPLITS_ROWS = ("cv", "refit")
# From so many rows on, scikit-learn's boosting stops early if it is to choose.
_STOPS_FROM = 10_000


class ClassWeighted(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that is trained with a weight for each class.

    A model trained with weights sees class ``i`` as often as its share times its weight;
    ``predict_proba`` divides by the weights, so that probabilities are on the scale of the rows
    whatever the weights. Trees whose leaves must hold so many rows, whatever they weigh, cannot set
    apart a class of fewer: of two classes, the rows of the smaller are then repeated, each with its
    share of the weight.

    Parameters
    ----------
    estimator : classifier that takes ``sample_weight``
    weights : dict by class
        Positive weights.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.arange(12.0)[:, None], np.array([0] * 9 + [1] * 3)
    >>> plain = LogisticRegression().fit(X, y)
    >>> twice = ClassWeighted(LogisticRegression(), {0: 2.0, 1: 2.0}).fit(X, y)
    >>> twice.weights_
    array([2., 2.])
    """

    def __init__(self, estimator: Any, weights: Mapping[Any, float]) -> None:
        self.estimator = estimator
        self.weights = weights

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Train a copy of the estimator; weights of rows are multiplied by those of their class."""
        names, places = np.unique(y, return_inverse=True)
        self.weights_ = np.array([self.weights[name] for name in names.tolist()])
        key = weight_argument(self.estimator)
        assert key is not None
        given = params.pop(key, None)
        own = self.weights_[places] * (1.0 if given is None else np.asarray(given))
        times = repeats(self.estimator, np.bincount(places))[places]
        fitted = train_weighted(self.estimator, X, np.asarray(y), params, key, own, times)
        self.estimator_, self.classes_ = fitted, np.asarray(fitted.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities as if trained without weights."""
        table = left_out.class_probabilities(self.estimator_, X, self.classes_) / self.weights_
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest probability."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


def last_of(estimator: Any) -> Any:
    """What is trained in the end: inside searches, and the last step of a pipeline."""
    while True:
        if isinstance(estimator, Pipeline):
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "refit"):  # of a search, or of a classifier around another
            estimator = estimator.estimator
        else:
            return estimator


def weight_argument(estimator: Any) -> str | None:
    """How weights of rows are passed to ``fit``, None if they cannot be."""
    if isinstance(estimator, Pipeline):
        name, step = estimator.steps[-1]
        own = weight_argument(step)
        return own and f"{name}__{own}"
    if "sample_weight" in inspect.signature(estimator.fit).parameters:
        return "sample_weight"
    if hasattr(estimator, "estimator") and hasattr(estimator, "refit"):
        return weight_argument(estimator.estimator)
    return None


def is_robust(estimator: Any) -> bool:
    """Whether the training weighs the classes by itself, as linear models over a set do."""
    return isinstance(last_of(estimator), RobustLinearModel) and _single(estimator) is None


def _single(estimator: Any) -> FixedWeights | None:
    """The weighting of a linear model that is made for one, else None."""
    last = last_of(estimator)
    given = last.uncertainty if isinstance(last, RobustLinearModel) else None
    known = as_uncertainty(given) if isinstance(given, str) else given
    return known if isinstance(known, FixedWeights) else None


def refuse_own_weights(estimator: Any) -> None:
    """Refuse an estimator that weighs classes itself: no weights of ours would be what they say."""
    own = {
        name: value
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] in _OWN_WEIGHTS
        and not any(value is n or value == n for n in _NO_WEIGHTS)
    }
    if (single := _single(estimator)) is not None:
        if not (isinstance(single.weights, str) and single.weights == "standard"):
            own["uncertainty"] = single
        # With a prior of its own, a model does not see weights that are the same within a class.
        if last_of(estimator).class_prior is not None:
            own["class_prior"] = last_of(estimator).class_prior
    for name, value in own.items():
        raise InvalidParameterError(
            f"estimator must not weigh classes itself, got {name}={value!r}: training weights "
            "are chosen here, and would multiply with it or be ignored. "
            + ('Use "standard"' if name == "uncertainty" else "Leave it out")
            + ", or use PlugInClassifier, which takes the training as it is."
        )


def repeats(estimator: Any, counts: Indices) -> Indices:
    """How often rows of each class are trained on, for leaves that count rows whatever they weigh.

    Only of two classes: among more, trees that set apart a handful of rows of each small class took
    longer, and were worse on other rows.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> repeats(HistGradientBoostingClassifier(min_samples_leaf=20), np.array([500, 4]))
    array([ 1, 50])
    """
    known = [(name.split("__")[-1], value) for name, value in estimator.get_params().items()]
    once = np.ones(len(counts), dtype=np.intp)
    needed = max((value for name, value in known if name in _LEAF_ROWS and value), default=1)
    splits_rows = any(name in _SPLITS_ROWS for name, _ in known)
    if needed == 1 or splits_rows or np.count_nonzero(counts) != 2:
        return once
    rows = _LEAVES * (needed if needed > 1 else needed * counts.sum())
    times = np.round(min(rows, counts.max()) / np.where(counts, counts, np.inf))
    times = np.maximum(times, once).astype(np.intp)
    stops = dict(known).get("early_stopping", False)
    by_itself = stops == "auto" and times @ counts > _STOPS_FROM
    return once if stops is True or by_itself else times


def train_weighted(
    estimator: Any, X: Any, y: NDArray[Any], params: dict[str, Any], key: str, weights: Vector,
    times: Indices,
) -> Any:  # fmt: skip
    """The estimator fitted with weights; one that stops early gets rows of its own to stop by."""
    if not stops_early(estimator):
        rows = np.repeat(np.arange(len(y)), times)
        return left_out.train_on(estimator, X, y, params | _own(key, weights, times), rows)
    library = type(estimator).__module__.split(".")[0]
    if isinstance(estimator, Pipeline) or library not in ("lightgbm", "xgboost", "catboost"):
        raise InvalidParameterError(
            f"{type(estimator).__name__} asks for rows to stop by, which can be held out for a "
            "booster of LightGBM, XGBoost or CatBoost that stands alone: fix its number of rounds."
        )
    train, stop = train_test_split(
        np.arange(len(y)), test_size=_HELD_OUT, stratify=y, random_state=0
    )
    numbers = np.unique(y, return_inverse=True)[1] if library == "xgboost" else y
    part = _safe_indexing(X, stop), numbers[stop]
    own = {"lightgbm": "eval_sample_weight", "xgboost": "sample_weight_eval_set"}.get(library)
    if own is not None:
        params = {**params, "eval_set": [part], own: [weights[stop]]}
    else:
        from catboost import Pool

        columns = estimator.get_params().get("cat_features")
        params = {**params, "eval_set": Pool(*part, cat_features=columns, weight=weights[stop])}
    rows = np.repeat(np.arange(len(train)), times[train])
    params |= _own(key, weights[train], times[train])
    return left_out.train_on(estimator, _safe_indexing(X, train), y[train], params, rows)


def _own(key: str, weights: Vector, times: Indices) -> dict[str, Vector]:
    """Weights of rows that are repeated; equal ones are none."""
    own = weights / times
    return {} if np.any(times > 1) and np.all(own == own[0]) else {key: own}


def stops_early(estimator: Any) -> bool:
    """Whether a booster asks for rows to stop by."""
    known = last_of(estimator).get_params()
    return any(known.get(name) for name in ("early_stopping_rounds", "early_stopping_round"))
