"""Any classifier trained with class weights, its probabilities put back on the rows' own scale."""

import inspect
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import VotingClassifier
from sklearn.metrics import get_scorer
from sklearn.pipeline import Pipeline

from equipoise.arrays import Indices, NDArray, Vector
from equipoise.decisions import left_out
from equipoise.estimators.robust_linear import RobustLinearModel
from equipoise.exceptions import InvalidParameterError
from equipoise.sets import FixedWeights, as_uncertainty
from equipoise.validation.classifiers import last_of

# Parameters by which other classifiers weigh classes themselves, and the values that do nothing.
_OWN_WEIGHTS = (
    "class_weight", "class_weights", "auto_class_weights", "is_unbalance", "unbalance",
    "unbalanced_sets", "scale_pos_weight",
)  # fmt: skip
_NO_WEIGHTS = ("None", "False", "1", "1.0")
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
        routed = get_config()["enable_metadata_routing"]
        given = params.pop("sample_weight" if routed else key, None)
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


def weight_argument(estimator: Any) -> str | None:
    """How weights of rows are passed to ``fit``, None if they cannot be."""
    if isinstance(estimator, Pipeline):
        name, step = estimator.steps[-1]
        own = weight_argument(step)
        return own and f"{name}__{own}"
    if isinstance(estimator, VotingClassifier):
        every = {weight_argument(each) for _, each in estimator.estimators if each != "drop"}
        return "sample_weight" if every == {"sample_weight"} else None
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
        if name.split("__")[-1] in _OWN_WEIGHTS and str(value) not in _NO_WEIGHTS
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
    """The estimator fitted with weights, to rows that are there so many times."""
    rows = np.repeat(np.arange(len(y)), times)
    own = _own(key, weights, times)
    if last_of(estimator) is not estimator and get_config()["enable_metadata_routing"]:
        estimator, own = asking(estimator), {"sample_weight": own[key]} if own else {}
    return left_out.train_on(estimator, X, y, params | own, rows)


def asking(estimator: Any) -> Any:
    """A copy whose last step is routed the weights of rows; other steps only if they ask."""
    found = left_out.unfitted(estimator)
    if isinstance(found, Pipeline):
        steps = [(name, _not_asking(step)) for name, step in found.steps[:-1]]
        return found.set_params(steps=[*steps, (found.steps[-1][0], asking(found.steps[-1][1]))])
    if hasattr(found, "estimator") and hasattr(found, "refit"):
        if isinstance(named := getattr(found, "scoring", None), str):
            found.set_params(scoring=get_scorer(named).set_score_request(sample_weight=False))
        return found.set_params(estimator=asking(found.estimator))
    ready = _not_asking(found)
    return ready.set_fit_request(sample_weight=True) if hasattr(ready, "set_fit_request") else ready


def _not_asking(step: Any) -> Any:
    """A step that takes weights where it has said so, and without an error where it has not."""
    for method in ("fit", "transform", "score"):
        known = getattr(getattr(step, "_get_metadata_request", dict)(), method, None)
        requests = {} if known is None else known.requests
        if requests.get("sample_weight", False) is None:
            getattr(step, f"set_{method}_request")(sample_weight=False)
    return step


def _own(key: str, weights: Vector, times: Indices) -> dict[str, Vector]:
    """Weights of rows that are repeated; equal ones are none."""
    own = weights / times
    return {} if np.any(times > 1) and np.all(own == own[0]) else {key: own}
